"""The packages that sandboxed programs may import: this process's packages, or a named environment built by uv.

A named environment is a folder of packages in the user's cache folder. This folder is built once and never changed,
because its name contains a hash of the requirements.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import distributions
from pathlib import Path

from evalsuite.core.errors import SandboxUnavailable, SettingsError
from evalsuite.core.json_codec import digest

OWN, AUTO = "own", "auto"
NAMED: Mapping[str, tuple[str, ...]] = {
    # The versions come from requirements.txt in github.com/JT-LM/jiutian-treb (commit 6f753e1). For packages without a
    # version in requirements.txt, the last version that supports Python 3.9 is used.
    "treb-2025": (
        *("numpy==2.0.2", "pandas==2.2.3", "scipy==1.13.1", "statsmodels==0.14.4", "scikit-learn==1.6.1"),
        *("seaborn==0.13.2", "matplotlib==3.9.4", "networkx==3.2.1", "openpyxl==3.1.5", "tabulate==0.9.0"),
    )
}
MENTIONED = tuple(requirement.partition("==")[0] for requirement in NAMED["treb-2025"])
"""Packages that prompts mention if they are installed, and whose versions affect the scores of programs."""


@dataclass(frozen=True)
class ProgramEnvironment:
    """An interpreter and the packages that programs may import."""

    name: str  # `own` for this process's environment, the name of a named environment, or a requirements file's path.
    interpreter: "Interpreter"
    packages: tuple[str, ...]  # Folders in which programs find packages.
    # Versions of packages by name; for the environment `own`, only the packages in `MENTIONED`.
    installed: Mapping[str, str]

    @cached_property
    def fingerprint(self) -> str:
        """Hash of 16 hexadecimal digits; environments with equal versions of Python and packages have equal hashes."""
        return digest([self.interpreter.version, sorted(self.installed.items())])

    @cached_property
    def description(self) -> str:
        """Python and the packages as text: `Python 3.11 with numpy 2.0.2, pandas 2.2.3`."""
        python = ".".join(self.interpreter.version.split(".")[:2])
        present = [f"{name} {self.installed[name]}" for name in MENTIONED if name in self.installed]
        return f"Python {python} with {', '.join(present) or 'no further packages'}"

    @property
    def is_current(self) -> bool:
        """Whether this is the environment of the current process."""
        return self.name == OWN


@cache
def get_own_environment() -> ProgramEnvironment:
    """Describe the environment that this process runs in."""
    paths = sysconfig.get_paths()
    folders = [paths["purelib"], paths["platlib"]]
    for name in ("numpy", "pandas"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            folders.append(str(Path(spec.origin).parent.parent))
    packages = tuple(dict.fromkeys(path for path in folders if Path(path).is_dir()))
    by_name = {name: list(distributions(name=name, path=list(packages))) for name in MENTIONED}
    installed = {name: packages_found[0].version for name, packages_found in by_name.items() if packages_found}
    return ProgramEnvironment(OWN, get_own_interpreter(), packages, installed)


def read_requirements(name: str) -> tuple[str, ...]:
    """Read the list of required packages, from a named environment or from a requirements file."""
    if name in NAMED:
        return NAMED[name]
    try:
        lines = Path(name).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"evalsuite_program_env {name}: no environment has this name ({', '.join([OWN, *NAMED])}), and it is not a "
            "file of requirements (one per line, as pip reads them)"
        ) from error
    return tuple(line for raw in lines if (line := raw.partition(" #")[0].strip()) and not line.startswith("#"))


_DESCRIBE = """
import json, platform, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps([getattr(sys, "_base_executable", None) or sys.executable, sys.base_prefix,
    [paths["stdlib"], paths["platstdlib"]], platform.python_version()]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python installation."""

    executable: str  # The interpreter's path with links resolved, which leads out of a virtual environment.
    prefix: str  # The folder in which Python is installed, as the interpreter reports it.
    libraries: tuple[str, ...]  # The folders of the standard library.
    version: str  # A version such as `3.11.7`.

    @property
    def prefixes(self) -> list[Path]:
        """The folders in which Python is installed: the one that the interpreter reports, and the one in its path."""
        return list(dict.fromkeys([Path(self.prefix), Path(self.executable).parents[1]]))


@cache
def get_own_interpreter() -> Interpreter:
    """Describe the interpreter that this process runs in."""
    paths = sysconfig.get_paths()
    executable = getattr(sys, "_base_executable", None) or sys.executable
    libraries = (paths["stdlib"], paths["platstdlib"])
    return Interpreter(str(Path(executable).resolve()), sys.base_prefix, libraries, platform.python_version())


OLDEST, NEWEST = (3, 11), (3, 12)  # Python versions for which wheels of all pinned packages exist.
BUILD_SECONDS = 1800.0


def find_cache_folder() -> Path:
    """Find the folder for named environments: `EVALSUITE_CACHE`, by default `evalsuite` in the user's cache folder."""
    if own := os.environ.get("EVALSUITE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evalsuite"


def provide_environment(name: str, notify: Callable[[str], None] = lambda _: None) -> ProgramEnvironment:
    """Return the environment with this name; if it does not exist yet, build it."""
    if name in {OWN, AUTO}:
        return get_own_environment()
    requirements, interpreter = read_requirements(name), _find_supported_interpreter(name)
    tag = "".join(interpreter.version.split(".")[:2])
    code = hashlib.sha256("\n".join(sorted(requirements)).encode()).hexdigest()[:12]
    target = find_cache_folder() / "environments" / f"{Path(name).stem}-{code}-py{tag}"
    try:
        if not target.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                # Check again: another process may have built the environment since the first check.
                if not target.is_dir():
                    notify(f"building the program environment {name} in {target} (once)")
                    _install_packages(name, requirements, interpreter, target)
    except OSError as error:
        raise SandboxUnavailable(f"evalsuite_program_env {name}: {target}: {error.strerror or error}") from error
    versions: dict[str, str] = {}
    for package in distributions(path=[str(target)]):
        versions.setdefault((package.metadata["Name"] or "").lower().replace("_", "-"), package.version)
    return ProgramEnvironment(name, interpreter, (str(target),), versions)


def _find_supported_interpreter(name: str) -> Interpreter:
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return get_own_interpreter()
    wanted = f">={'.'.join(map(str, OLDEST))},<{NEWEST[0]}.{NEWEST[1] + 1}"
    executable = _run_uv(name, "python", "find", "--system", wanted).strip()
    command = [executable, "-I", "-c", _DESCRIBE]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, timeout=60)  # noqa: S603 - uv has found it
        base, prefix, libraries, version = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise SandboxUnavailable(f"evalsuite_program_env {name}: {executable} cannot be used: {error}") from error
    return Interpreter(str(Path(base).resolve()), prefix, tuple(libraries), version)


def _install_packages(name: str, requirements: Sequence[str], interpreter: Interpreter, target: Path) -> None:
    """Install into a draft folder; rename it to the environment's name only when it is complete."""
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        # Let all users read the packages, because programs may run as another user.
        draft.chmod(0o755)
        requirements_file = draft / "requirements.txt"
        requirements_file.write_text("\n".join(requirements), encoding="utf-8")
        # Compile packages now: programs cannot store bytecode, so each program would compile the packages again.
        install = ("pip", "install", "--compile-bytecode", "--target", str(draft), "-r", str(requirements_file))
        _run_uv(name, *install, "--python", interpreter.executable)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _run_uv(environment: str, *arguments: str) -> str:
    """Run uv, and return what it prints; errors name the environment that it builds."""
    uv = shutil.which("uv")
    if uv is None:
        raise SandboxUnavailable(
            f"evalsuite_program_env {environment} is built by uv, which is not installed: pip install uv, "
            "or set evalsuite_program_env to own"
        )
    folder = find_cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Do not run uv in the user's project, because uv would then apply the project's settings.
        result = subprocess.run(  # noqa: S603 - our own command; requirements are the user's
            [uv, *arguments], cwd=folder, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
    except OSError as error:
        raise SandboxUnavailable(f"evalsuite_program_env {environment}: {folder}: {error.strerror or error}") from error
    except subprocess.TimeoutExpired as error:
        raise SandboxUnavailable(
            f"evalsuite_program_env {environment}: uv did not end within {BUILD_SECONDS / 60:.0f} minutes"
        ) from error
    if result.returncode:
        raise SandboxUnavailable(
            f"evalsuite_program_env {environment}: uv {' '.join(arguments[:2])} failed: {result.stderr.strip()[-2000:]}"
        )
    return result.stdout
