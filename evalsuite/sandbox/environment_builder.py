"""Builds an environment for programs: uv puts its packages into a folder of the user's cache, once."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.errors import SandboxUnavailable
from evalsuite.sandbox.interpreters import Interpreter, other_interpreter, own_interpreter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

OLDEST, NEWEST = (3, 11), (3, 12)
"""Pythons for which the pinned packages come as wheels."""
SECONDS = 1800.0


def cache_folder() -> Path:
    """Where environments are kept: `EVALSUITE_CACHE`, else `evalsuite` in the user's folder of caches."""
    if own := os.environ.get("EVALSUITE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evalsuite"


def built(
    name: str, requirements: Sequence[str], code: str, say: Callable[[str], None]
) -> tuple[Interpreter, str]:
    """The interpreter of an environment and the folder of its packages, built where it is not there.

    Args:
        name: for messages and the folder's name.
        requirements: as pip and uv write them.
        code: stands for the requirements in the folder's name.
        say: is told before something is built.

    Raises:
        SandboxUnavailable: it cannot be built.
    """
    interpreter = _interpreter(name)
    tag = "".join(interpreter.version.split(".")[:2])
    target = cache_folder() / "environments" / f"{Path(name).stem}-{code}-py{tag}"
    try:
        if not target.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            with _lock(target.with_suffix(".lock")):
                # Another process may have built it in the meantime.
                if not target.is_dir():
                    say(f"building the program environment {name} in {target} (once)")
                    _build(name, requirements, interpreter, target)
    except OSError as error:
        raise SandboxUnavailable(f"--program-env {name}: {target}: {error.strerror or error}") from error
    return interpreter, str(target)


def _interpreter(name: str) -> Interpreter:
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return own_interpreter()
    wanted = f">={'.'.join(map(str, OLDEST))},<{NEWEST[0]}.{NEWEST[1] + 1}"
    executable = _uv(name, "python", "find", "--system", wanted).strip()
    try:
        return other_interpreter(executable)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise SandboxUnavailable(f"--program-env {name}: {executable} cannot be used: {error}") from error


def _build(name: str, requirements: Sequence[str], interpreter: Interpreter, target: Path) -> None:
    """Installs into a draft, which becomes the environment only when it is whole."""
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        # Programs may run as another user, who has to read them.
        draft.chmod(0o755)
        listed = draft / "requirements.txt"
        listed.write_text("\n".join(requirements), encoding="utf-8")
        # Programs cannot write bytecode there, and would compile every package anew.
        install = ("pip", "install", "--compile-bytecode", "--target", str(draft), "-r", str(listed))
        _uv(name, *install, "--python", interpreter.executable)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _uv(name: str, *words: str) -> str:
    uv = shutil.which("uv")
    if uv is None:
        raise SandboxUnavailable(
            f"--program-env {name} is built by uv, and there is none here: pip install uv, or leave the option out"
        )
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Our own words; requirements are the user's.
        result = subprocess.run(  # noqa: S603
            [uv, *words],
            # Not in the user's project, whose settings are not for this environment.
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except OSError as error:
        raise SandboxUnavailable(f"--program-env {name}: {folder}: {error.strerror or error}") from error
    except subprocess.TimeoutExpired as error:
        raise SandboxUnavailable(
            f"--program-env {name}: uv did not end within {SECONDS / 60:.0f} minutes"
        ) from error
    if result.returncode:
        raise SandboxUnavailable(
            f"--program-env {name}: uv {words[0]} {words[1]} failed: {result.stderr.strip()[-2000:]}"
        )
    return result.stdout


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Keeps other processes from building the same environment at the same time."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
