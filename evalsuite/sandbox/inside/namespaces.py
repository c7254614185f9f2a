"""Isolation by namespaces, inside bubblewrap: each program has its own pids, mounts and user."""

from __future__ import annotations

import dataclasses
import os
import platform
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

PROGRAM_USER = 1000


class NamespaceIsolation:
    """Isolates each program in namespaces of its own."""

    def __init__(self, limits: Limits, hidden: Sequence[str]) -> None:
        self._limits, self._hidden = limits, hidden
        # User 1 has no privileges; it exists if root started the sandbox (see `launch.py`).
        users = Path("/proc/self/uid_map").read_text("ascii").splitlines()
        self._user = 1 if any(line.split()[0] == "1" for line in users) else 0
        self._filter = call_filter(platform.machine())
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)

    @contextmanager
    def loading_folder(self) -> Iterator[str]:
        """Mount a tmpfs while packages are imported."""
        kernel.mount_tmpfs(LOADING, "size=16m,nr_inodes=256,mode=0700")
        try:
            yield LOADING
        finally:
            kernel.unmount(LOADING)

    def fork(self) -> int:
        """Fork; the child, which gets 0, is the first process of a new pid namespace and must call `confine`."""
        kernel.unshare(kernel.NEW_PIDS)
        try:
            pid = os.fork()
        except OSError:
            kernel.set_pid_namespace_of_children(self._own_pids)
            raise
        if pid:
            kernel.set_pid_namespace_of_children(self._own_pids)
        return pid

    def confine(self, key: int) -> None:  # noqa: ARG002 - Landlock needs the key
        """Isolate the child; an OSError says which step the kernel refused, and the child must then run no program."""
        self._isolate(self._limits)

    def _isolate(self, limits: Limits) -> None:
        # kill(0, ...) reaches a process group across pid namespaces, so leave the warm interpreter's group.
        os.setsid()
        kernel.unshare(kernel.NEW_MOUNTS)
        process = os.open("/proc/self", os.O_PATH)
        descriptors = {path: os.open(path, os.O_PATH) for path in self._hidden}
        kernel.mount_tmpfs(OWN_FILES, f"size={limits.files},nr_inodes=4096,mode=1777")
        for path, descriptor in descriptors.items():
            _mount_again(path, descriptor)
        # Programs have no /proc, because it would reveal information about the machine.
        kernel.mount_tmpfs("/proc", "size=0,nr_inodes=1,mode=0555", kernel.READ_ONLY)
        _switch_user(self._user, process)
        os.close(process)
        # With 0, the kernel would still start a host's program that collects core dumps; with 1 it does not.
        kernel.limit_resources(limits, processes=limits.processes, core=1)
        os.chdir(OWN_FILES)
        kernel.drop_capabilities()
        kernel.filter_calls(self._filter)

    def processes(self, pids: Iterable[int]) -> dict[int, set[int]]:
        """Find all processes of each program by the pid of its first process."""
        parents = kernel.parents()
        return {pid: kernel.descendants(pid, parents) for pid in pids}

    def exceeded_limit(self, key: int, pids: set[int]) -> str:  # noqa: ARG002 - Landlock needs both
        """Return an empty text, because the kernel enforces all limits here."""
        return ""

    def kill(self, pid: int) -> None:
        """Kill a program's first process; the kernel then kills all others of its pid namespace."""
        os.kill(pid, 9)

    def reap(self, pid: int, key: int) -> int:  # noqa: ARG002 - Landlock needs the key
        """Wait for a dead program; return its wait status."""
        return os.waitpid(pid, 0)[1]

    def verify(self) -> None:
        """Fork a trial program that must not be able to fork; if it can, end this process with the reason."""
        pid = self.fork()
        if pid == 0:
            self._try_to_fork()
        if os.waitpid(pid, 0)[1]:
            os._exit(1)

    def _try_to_fork(self) -> NoReturn:
        try:
            self._isolate(dataclasses.replace(self._limits, processes=1))
        except OSError as error:
            os.write(STDERR, f"a program could not be isolated: {error}\n".encode())
            os._exit(1)
        try:
            os.fork()
        except OSError:
            os._exit(0)
        os.write(STDERR, b"the kernel does not limit the number of this user's processes\n")
        os._exit(1)


def _mount_again(path: str, descriptor: int) -> None:
    """Mount a folder or file that the program's own mounts have hidden."""
    outermost_first = reversed(Path(path).parents)
    for folder in (folder for folder in outermost_first if not folder.exists()):
        folder.mkdir()
        folder.chmod(0o755)  # the program may be another user, so do not depend on the host's umask
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        Path(path).mkdir()
    else:
        Path(path).touch()
    kernel.bind_mount(f"/proc/self/fd/{descriptor}", path)
    os.close(descriptor)


def _switch_user(user: int, process: int) -> None:
    if user:
        kernel.switch_user(user)
        kernel.make_dumpable()
    # A separate user namespace is needed because the kernel counts processes by user and namespace.
    kernel.unshare(kernel.NEW_USERS)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{PROGRAM_USER} {user} 1"),
        ("gid_map", f"{PROGRAM_USER} {user} 1"),
        # If the machine runs out of memory, programs are killed first.
        ("oom_score_adj", "1000"),
    ):
        file = os.open(name, os.O_WRONLY, dir_fd=process)
        os.write(file, text.encode())
        os.close(file)
