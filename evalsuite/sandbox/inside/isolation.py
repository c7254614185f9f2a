"""A forked process gives up everything but one program's room: its own pids, mounts, user and limits."""

from __future__ import annotations

import fcntl
import os
import resource
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from . import kernel
from .limits import OWN_FILES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .limits import Limits

# What the program finds at these descriptors; all others are closed.
STDIN, STDOUT, STDERR, CHANNEL, PAYLOAD, FILES = range(6)
PROGRAM_USER = 1000


def keep_only(descriptors: dict[int, int]) -> None:
    """Closes all descriptors but these and a new, empty standard input.

    Args:
        descriptors: by the numbers that they get, from 1 without a gap.
    """
    # Opened anew: a lock or a flag on one that they share would pass from program to program.
    descriptors = {STDIN: os.open("/dev/null", os.O_RDONLY), **descriptors}
    # In two steps, as the wanted numbers may be taken by others that are wanted.
    high = {
        n: fcntl.fcntl(descriptor, fcntl.F_DUPFD, len(descriptors)) for n, descriptor in descriptors.items()
    }
    for number, descriptor in high.items():
        os.dup2(descriptor, number, inheritable=number <= STDERR)
    os.closerange(len(descriptors), resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def isolate(limits: Limits, user: int, call_filter: bytes, kept: Sequence[str] = ()) -> None:
    """Shuts this process in; it must be the first of a new pid namespace.

    Args:
        limits: see there.
        user: the user within the sandbox's user namespace whose rights the program gets.
        call_filter: see `calls`.
        kept: folders and files of the sandbox's view that lie where the program's own files come to lie.

    Raises:
        OSError: the kernel refused a step; the process is then not fit for a program.
    """
    # kill(0, ...) reaches a whole process group, across pid namespaces: leave the warm interpreter's.
    os.setsid()
    kernel.unshare(kernel.NEW_MOUNTS)
    process = os.open("/proc/self", os.O_PATH)
    descriptors = {path: os.open(path, os.O_PATH) for path in kept}
    kernel.mount_tmpfs(OWN_FILES, f"size={limits.files},nr_inodes=4096,mode=1777")
    for path, descriptor in descriptors.items():
        _show_again(path, descriptor)
    # Programs do without /proc, and so without what it tells of the machine.
    kernel.mount_tmpfs("/proc", "size=0,nr_inodes=1,mode=0555", kernel.READ_ONLY)
    _become(user, process)
    os.close(process)
    _limit(limits)
    os.chdir(OWN_FILES)
    kernel.drop_capabilities()
    kernel.filter_calls(call_filter)


def _show_again(path: str, descriptor: int) -> None:
    """Puts what the program's own files have hidden back to its place among them."""
    outermost_first = reversed(Path(path).parents)
    for folder in (folder for folder in outermost_first if not folder.exists()):
        folder.mkdir()
        folder.chmod(0o755)  # whatever the host's umask is: the program may be another user
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        Path(path).mkdir()
    else:
        Path(path).touch()
    kernel.show(f"/proc/self/fd/{descriptor}", path)
    os.close(descriptor)


def _become(user: int, process: int) -> None:
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        kernel.make_dumpable()
    # A user namespace of its own, as the kernel counts processes by user and namespace.
    kernel.unshare(kernel.NEW_USERS)
    _write(process, "setgroups", "deny")
    _write(process, "uid_map", f"{PROGRAM_USER} {user} 1")
    _write(process, "gid_map", f"{PROGRAM_USER} {user} 1")
    # Should the machine run out of memory all the same, programs are the first to go.
    _write(process, "oom_score_adj", "1000")


def _write(directory: int, name: str, text: str) -> None:
    file = os.open(name, os.O_WRONLY, dir_fd=directory)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _limit(limits: Limits) -> None:
    for kind, value in (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_FSIZE, limits.file),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_NOFILE, limits.descriptors),
        # 1 and not 0, at which the kernel would still call a program of the host that collects dumps.
        (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_SIGPENDING, 256),
    ):
        most = resource.getrlimit(kind)[1]
        least = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (least, least))
    os.nice(5)  # behind the warm interpreter, which must be able to stop them
