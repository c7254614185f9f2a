"""The Python that runs programs: where it is installed, and where its own libraries are."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ASK = """
import json, platform, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps([getattr(sys, "_base_executable", None) or sys.executable, sys.base_prefix,
    [paths["stdlib"], paths["platstdlib"]], platform.python_version()]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python installation.

    Attributes:
        executable: the interpreter itself, not a virtual environment's link to it.
        prefix: where it says that it is installed.
        libraries: the folders of its standard library.
        version: such as `3.11.7`.
    """

    executable: str
    prefix: str
    libraries: tuple[str, ...]
    version: str

    @property
    def prefixes(self) -> list[Path]:
        """Where it is installed: as it says itself, and without links on the way."""
        return list(dict.fromkeys([Path(self.prefix), Path(self.executable).parents[1]]))


@cache
def own_interpreter() -> Interpreter:
    """The one that this process runs in."""
    paths = sysconfig.get_paths()
    executable = getattr(sys, "_base_executable", None) or sys.executable
    libraries = (paths["stdlib"], paths["platstdlib"])
    return Interpreter(str(Path(executable).resolve()), sys.base_prefix, libraries, platform.python_version())


def other_interpreter(executable: str) -> Interpreter:
    """Another one of this machine, which is asked about itself.

    Raises:
        OSError: it cannot be started.
        ValueError: it does not answer as a Python does.
        subprocess.SubprocessError: it fails.
    """
    # A command of our own over an interpreter that uv has found.
    answer = subprocess.run([executable, "-I", "-c", _ASK], capture_output=True, check=True, timeout=60)  # noqa: S603
    base, prefix, libraries, version = json.loads(answer.stdout)
    return Interpreter(str(Path(base).resolve()), prefix, tuple(libraries), version)
