"""Walls made of namespaces, within bubblewrap: each program has its own pids, mounts and user."""

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


class Namespaces:
    """The stronger walls; see `isolate`.

    Args:
        limits: what one program may use.
        kept: folders and files of the sandbox's view that lie where a program's own files come to lie.
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
        """Forks; the child, to which 0 is returned, is the first process of a new pid namespace."""
        kernel.unshare(kernel.NEW_PIDS)
        try:
            pid = os.fork()
        except OSError:
            kernel.children_born_in(self._own_pids)
            raise
        if pid:
            kernel.children_born_in(self._own_pids)
        return pid

    def shut_in(self, key: int) -> None:  # noqa: ARG002 - the other walls need it
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
        """Return no limit, because the kernel enforces all of them here."""
        return ""

    def kill(self, pid: int) -> None:
        """Kills a program; the kernel ends all others of its pid namespace with its first process."""
        os.kill(pid, 9)

    def reap(self, pid: int, key: int) -> int:  # noqa: ARG002 - as above
        """Waits for a program that is dead; returns its wait status."""
        return os.waitpid(pid, 0)[1]

    def prove(self) -> None:
        """Forks a trial program that must not be able to fork itself, or ends with the reason."""
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
    """User 1 where the sandbox has one beside its own (see `launch.py`), else its own."""
    users = Path("/proc/self/uid_map").read_text("ascii").splitlines()
    return 1 if any(line.split()[0] == "1" for line in users) else 0


PROGRAM_USER = 1000


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
