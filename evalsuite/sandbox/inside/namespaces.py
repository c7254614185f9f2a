"""Isolation by namespaces, inside bubblewrap: each program has its own pids, mounts and user."""

from __future__ import annotations

import dataclasses
import os
import platform
import resource
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from . import LOADING, OWN_FILES, kernel
from .calls import call_filter
from .kernel import STDERR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from . import Limits


class NamespaceIsolation:
    """Stronger isolation than Landlock; see `isolate`.

    Args:
        limits: the resource limits of one program.
        kept: folders and files of the sandbox that a program's own mounts would hide.
    """

    def __init__(self, limits: Limits, kept: Sequence[str]) -> None:
        self._limits, self._kept = limits, kept
        self._user = _powerless_user()
        self._filter = call_filter(platform.machine())
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)

    @contextmanager
    def room_to_load(self) -> Iterator[str]:
        """Mount a tmpfs while packages are imported."""
        kernel.mount_tmpfs(LOADING, "size=16m,nr_inodes=256,mode=0700")
        try:
            yield LOADING
        finally:
            kernel.unmount(LOADING)

    def fork(self) -> int:
        """Forks; the child, which gets 0, is the first process of a new pid namespace."""
        kernel.unshare(kernel.NEW_PIDS)
        try:
            pid = os.fork()
        except OSError:
            kernel.children_born_in(self._own_pids)
            raise
        if pid:
            kernel.children_born_in(self._own_pids)
        return pid

    def shut_in(self, key: int) -> None:  # noqa: ARG002 - the other kind needs it
        """Isolates the child.

        Raises:
            OSError: the kernel refused a step.
        """
        isolate(self._limits, self._user, self._filter, self._kept)

    def families(self, pids: Iterable[int]) -> dict[int, set[int]]:
        """Find all processes of each program by the pid of its first process."""
        parents = kernel.parents()
        return {pid: kernel.family(pid, parents) for pid in pids}

    def excess(self, key: int, family: set[int]) -> str:  # noqa: ARG002 - the kernel itself holds these limits
        """Return an empty text, because the kernel enforces all limits here."""
        return ""

    def kill(self, pid: int) -> None:
        """Kills a program's first process; the kernel then ends all others of its pid namespace."""
        os.kill(pid, 9)

    def reap(self, pid: int, key: int) -> int:  # noqa: ARG002 - as above
        """Waits for a dead program; returns its wait status."""
        return os.waitpid(pid, 0)[1]

    def prove(self) -> None:
        """Forks a trial program that must not be able to fork; if it can, ends this process with the reason."""
        kernel.unshare(kernel.NEW_PIDS)
        pid = os.fork()
        if pid == 0:
            self._try()
        kernel.children_born_in(self._own_pids)
        _, status = os.waitpid(pid, 0)
        if status:
            os._exit(1)

    def _try(self) -> NoReturn:
        try:
            isolate(dataclasses.replace(self._limits, processes=1), self._user, self._filter, self._kept)
        except OSError as error:
            os.write(STDERR, f"a program could not be isolated: {error}\n".encode())
            os._exit(1)
        try:
            os.fork()
        except OSError:
            os._exit(0)
        os.write(STDERR, b"the kernel does not limit the number of this user's processes\n")
        os._exit(1)


def _powerless_user() -> int:
    """Return user 1 if the sandbox has a second user (see `launch.py`), else the sandbox's own user."""
    users = Path("/proc/self/uid_map").read_text("ascii").splitlines()
    return 1 if any(line.split()[0] == "1" for line in users) else 0


PROGRAM_USER = 1000


def isolate(limits: Limits, user: int, call_filter: bytes, kept: Sequence[str] = ()) -> None:
    """Isolates this process, which must be the first of a new pid namespace.

    Args:
        limits: the resource limits of the program.
        user: the user within the sandbox's user namespace whose rights the program gets.
        call_filter: the filter of system calls; see `calls`.
        kept: folders and files of the sandbox that the program's own mounts would hide.

    Raises:
        OSError: the kernel refused a step; the process must then not run a program.
    """
    # kill(0, ...) reaches a whole process group, across pid namespaces, so leave the warm interpreter's
    # group.
    os.setsid()
    kernel.unshare(kernel.NEW_MOUNTS)
    process = os.open("/proc/self", os.O_PATH)
    descriptors = {path: os.open(path, os.O_PATH) for path in kept}
    kernel.mount_tmpfs(OWN_FILES, f"size={limits.files},nr_inodes=4096,mode=1777")
    for path, descriptor in descriptors.items():
        _show_again(path, descriptor)
    # Programs have no /proc, because it would reveal information about the machine.
    kernel.mount_tmpfs("/proc", "size=0,nr_inodes=1,mode=0555", kernel.READ_ONLY)
    _become(user, process)
    os.close(process)
    _limit(limits)
    os.chdir(OWN_FILES)
    kernel.drop_capabilities()
    kernel.filter_calls(call_filter)


def _show_again(path: str, descriptor: int) -> None:
    """Mounts a folder or file again that the program's own mounts have hidden."""
    outermost_first = reversed(Path(path).parents)
    for folder in (folder for folder in outermost_first if not folder.exists()):
        folder.mkdir()
        folder.chmod(0o755)  # the program may be another user, so do not depend on the host's umask
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
    # A separate user namespace is needed because the kernel counts processes by user and namespace.
    kernel.unshare(kernel.NEW_USERS)
    _write(process, "setgroups", "deny")
    _write(process, "uid_map", f"{PROGRAM_USER} {user} 1")
    _write(process, "gid_map", f"{PROGRAM_USER} {user} 1")
    # If the machine runs out of memory, programs are killed first.
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
        # With 0, the kernel would still call a host's program that collects core dumps; with 1 it does not.
        (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_SIGPENDING, 256),
    ):
        most = resource.getrlimit(kind)[1]
        least = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (least, least))
    os.nice(5)  # lower priority than the warm interpreter, which must be able to stop programs
