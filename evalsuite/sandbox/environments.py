"""What programs may import: the packages of the project's own environment, or a named environment that uv builds.

A named environment is a folder of packages in the user's cache, made once and never changed: its name holds the hash
of what it was made from.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sysconfig
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.errors import SettingsError
from evalsuite.core.json_codec import digest
from evalsuite.sandbox.interpreters import own_interpreter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from evalsuite.sandbox.interpreters import Interpreter

OWN = "own"
MENTIONED = (
    "numpy",
    "pandas",
    "scipy",
    "statsmodels",
    "scikit-learn",
    "seaborn",
    "matplotlib",
    "networkx",
    "openpyxl",
    "tabulate",
)
"""The packages that a prompt names where they are installed, and on which scores of programs depend."""

NAMED: Mapping[str, tuple[str, ...]] = {
    # The versions of requirements.txt in github.com/JT-LM/jiutian-treb (commit 6f753e1), and, of packages that it
    # leaves open, the last ones for the Python 3.9 that it was made for.
    "treb-2025": (
        "numpy==2.0.2",
        "pandas==2.2.3",
        "scipy==1.13.1",
        "statsmodels==0.14.4",
        "scikit-learn==1.6.1",
        "seaborn==0.13.2",
        "matplotlib==3.9.4",
        "networkx==3.2.1",
        "openpyxl==3.1.5",
        "tabulate==0.9.0",
    )
}


@dataclass(frozen=True)
class ProgramEnvironment:
    """An interpreter and what it may import.

    Attributes:
        name: `own`, the name of a named environment, or the file of requirements.
        interpreter: what runs programs.
        packages: folders that are searched for packages.
        installed: versions by package: of the own environment those in `MENTIONED`, of others all.
    """

    name: str
    interpreter: Interpreter
    packages: tuple[str, ...]
    installed: Mapping[str, str]

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits, equal where Python and packages have the same versions."""
        return digest([self.interpreter.version, sorted(self.installed.items())])

    @cached_property
    def mentioned(self) -> str:
        """Python and its packages for people and models: `Python 3.11 with numpy 2.0.2, pandas 2.2.3`."""
        python = ".".join(self.interpreter.version.split(".")[:2])
        present = [f"{name} {self.installed[name]}" for name in MENTIONED if name in self.installed]
        return f"Python {python} with {', '.join(present) or 'no further packages'}"

    @property
    def is_own(self) -> bool:
        """Whether it is the environment that this process runs in."""
        return self.name == OWN


@cache
def own_environment() -> ProgramEnvironment:
    """The environment that this process runs in: its packages, and wherever pandas and numpy are."""
    paths = sysconfig.get_paths()
    folders = [paths["purelib"], paths["platlib"]]
    for name in ("numpy", "pandas"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            folders.append(str(Path(spec.origin).parent.parent))
    packages = tuple(dict.fromkeys(path for path in folders if Path(path).is_dir()))
    there = {name: list(distributions(name=name, path=list(packages))) for name in MENTIONED}
    installed = {name: package[0].version for name, package in there.items() if package}
    return ProgramEnvironment(OWN, own_interpreter(), packages, installed)


def versions_in(folders: Iterable[str]) -> dict[str, str]:
    """The versions of the packages in these folders, by their normalised names."""
    versions: dict[str, str] = {}
    for package in distributions(path=list(folders)):
        name = (package.metadata["Name"] or "").lower().replace("_", "-")
        versions.setdefault(name, package.version)
    return versions


def requirements_of(name: str) -> tuple[str, ...]:
    """The requirements of a named environment, or of a file of them.

    Raises:
        SettingsError: there is neither.
    """
    if name in NAMED:
        return NAMED[name]
    try:
        lines = Path(name).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"--program-env {name}: there is no environment of that name ({', '.join([OWN, *NAMED])}), and no file of "
            "requirements, one a line as pip reads them"
        ) from error
    return tuple(
        line for raw in lines if (line := raw.partition(" #")[0].strip()) and not line.startswith("#")
    )


def environment(name: str, say: Callable[[str], None] = lambda _: None) -> ProgramEnvironment:
    """The environment of that name, which is built where it is not there yet.

    Args:
        name: `own`, a name in `NAMED`, or the path of a file of requirements.
        say: is told, once, before something is built.

    Raises:
        SettingsError: there is no such environment.
        SandboxUnavailable: it cannot be built; the message says why.
    """
    if name == OWN:
        return own_environment()
    from evalsuite.sandbox.environment_builder import built

    requirements = requirements_of(name)
    interpreter, folder = built(name, requirements, _hash(requirements), say)
    return ProgramEnvironment(name, interpreter, (folder,), versions_in([folder]))


def _hash(requirements: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(requirements)).encode()).hexdigest()[:12]
