"""Isolation for machines that allow no namespaces: Landlock, seccomp, resource limits, another user.

Landlock (Linux 6.2 or newer) blocks all files but the interpreter's and a folder of the program's own, and on
newer kernels also signals. seccomp blocks sockets and other ways to reach other processes
(`calls.UNCONFINED`). The kernel does not count a program's processes and files here, so the warm interpreter
checks those limits. A program stays in one process group, which it cannot leave and which is killed as a
whole.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import shutil
import signal
import stat
import struct
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from . import kernel
from .calls import call_filter
from .kernel import STDERR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from . import Limits

OLDEST = 3
"""The Landlock version of Linux 6.2; with older versions, a program could truncate files that it cannot write."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE, _DEVICES = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_ALL_OF_VERSION_3 = (1 << 15) - 1
_OF_A_FILE = _EXECUTE | _WRITE | _READ | _TRUNCATE
_TCP, _OTHERS = 0b11, 0b11
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PROGRAMS = 20_000
"""Numeric ids from here on are used for programs, if root assigns users."""

_libc = ctypes.CDLL(None, use_errno=True)


def explain_absence(code: int) -> str:
    """Explain why the kernel names no version of Landlock.

    Args:
        code: the error of the system call that asks for it.
    """
    # In a container whose engine is older than Landlock, the filter hides the call (ENOSYS) rather than refusing it.
    hides = code == errno.ENOSYS and "\nSeccomp:\t2" in _read_or_nothing("/proc/self/status")
    if code in {errno.EPERM, errno.EACCES} or hides:
        return (
            "a seccomp filter blocks it, most often a container's: start the container with --security-opt "
            "seccomp=unconfined, or with a newer engine"
        )
    if code == errno.EOPNOTSUPP:
        return "this kernel has it, but it is off: add landlock to the boot parameter lsm="
    return "this kernel has none"


def _read_or_nothing(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def version() -> int:
    """Return the kernel's Landlock version; 0 if it has none."""
    return max(0, int(_libc.syscall(_CREATE, None, 0, 1)))


class LandlockIsolation:
    """Isolation by Landlock; see the module.

    Args:
        limits: the resource limits of one program.
        shown: folders and files that a program may read and execute.
        scratch: a folder in which each program gets its own folder.

    Raises:
        OSError: this kernel has no Landlock, or an old version.
    """

    def __init__(self, limits: Limits, shown: Sequence[str], scratch: str) -> None:
        self._limits, self._scratch = limits, Path(scratch)
        self._version = version()
        if self._version < OLDEST:
            reason = f"this kernel has {self._version}" if self._version else explain_absence(ctypes.get_errno())
            raise OSError(f"Landlock {OLDEST} (Linux 6.2) is needed; {reason}")
        self._shown = tuple(shown)
        self._tasks = _own_tasks()
        # Root gives each program its own user, unless such users could not reach their interpreter.
        self._switches_user = os.geteuid() == 0 and all(map(_is_open_to_all, [*shown, scratch]))
        kernel.adopt_orphans()

    @contextmanager
    def room_to_load(self) -> Iterator[str]:
        """Provide a writable folder, next to those of programs, while packages are imported."""
        folder = self._scratch / "loading"
        folder.mkdir(mode=0o700)
        try:
            yield str(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def fork(self) -> int:
        """Forks; the child, which gets 0, dies with the warm interpreter."""
        return os.fork()

    def shut_in(self, key: int) -> None:
        """Isolates the child.

        Raises:
            OSError: the kernel refused a step.
        """
        os.setsid()
        kernel.die_with_parent()
        own = self._scratch / str(key)
        own.mkdir(mode=0o700)
        # Open the paths first, because another user may not be able to reach them.
        shown = [os.open(path, os.O_PATH) for path in self._shown]
        devices = [os.open(path, os.O_PATH) for path in DEVICES]
        if self._switches_user:
            self._become(_PROGRAMS + key % 40_000, own)
        os.environ.update(HOME=str(own), TMPDIR=str(own))
        os.chdir(own)
        kernel.drop_capabilities()
        self._close_files(os.open(own, os.O_PATH), shown, devices)
        # Limit open files only now, because the number of shown paths may exceed the limit.
        self._limit()
        kernel.filter_calls(call_filter(platform.machine(), own_pid=os.getpid(), signals_closed=self._version >= 6))

    def _become(self, user: int, own: Path) -> None:
        os.chown(own, user, user)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        # A change of user clears this setting.
        kernel.die_with_parent()

    def _limit(self) -> None:
        limits = self._limits
        processes = limits.processes if self._switches_user else self._tasks + 4 * limits.processes
        for kind, value in (
            (resource.RLIMIT_AS, limits.memory),
            (resource.RLIMIT_FSIZE, limits.file),
            (resource.RLIMIT_NPROC, processes),
            (resource.RLIMIT_NOFILE, limits.descriptors),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_MSGQUEUE, 0),
            (resource.RLIMIT_MEMLOCK, 0),
            (resource.RLIMIT_SIGPENDING, 256),
        ):
            most = resource.getrlimit(kind)[1]
            least = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.setrlimit(kind, (least, least))
        os.nice(5)

    def _close_files(self, own: int, shown: Sequence[int], devices: Sequence[int]) -> None:
        files = _ALL_OF_VERSION_3 | (_DEVICES if self._version >= 5 else 0)
        network = _TCP if self._version >= 4 else 0
        others = _OTHERS if self._version >= 6 else 0
        sizes = {3: 8, 4: 16, 5: 16}
        attributes = struct.pack("<QQQ", files, network, others)[: sizes.get(self._version, 24)]
        ruleset = _call(_CREATE, attributes, len(attributes), 0)
        rights = [(own, _ALL_OF_VERSION_3)]
        rights += [(descriptor, _EXECUTE | _READ | _LIST) for descriptor in shown]
        rights += [(descriptor, _READ | _WRITE) for descriptor in devices]
        for descriptor, access in rights:
            _allow(ruleset, descriptor, access)
        kernel.forbid_new_privileges()
        _call(_RESTRICT, ruleset, 0)
        for descriptor in (ruleset, own, *shown, *devices):
            os.close(descriptor)

    def families(self, pids: Iterable[int]) -> dict[int, set[int]]:
        """Find all processes of each program, which are its process group."""
        groups = kernel.process_groups()
        return {pid: groups.get(pid, set()) for pid in pids}

    def excess(self, key: int, family: set[int]) -> str:
        """Name the limit that a program has exceeded and that the kernel does not enforce here; empty if none."""
        if sum(map(kernel.threads, family)) > self._limits.processes:
            return "processes"
        return "files" if _size(self._scratch / str(key), self._limits.files) > self._limits.files else ""

    def kill(self, pid: int) -> None:
        """Kills a program with its whole process group."""
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            # The process has not become the leader of a group yet.
            os.kill(pid, signal.SIGKILL)

    def reap(self, pid: int, key: int) -> int:
        """Ends and reaps the remaining processes of a dead program; returns its first process's wait status."""
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-pid, 0)
        shutil.rmtree(self._scratch / str(key), ignore_errors=True)
        return status

    def prove(self) -> None:
        """Forks a trial program that must not reach this machine; if it can, ends this process with the reason."""
        pid = os.fork()
        if pid == 0:
            os._exit(_try(self))
        # Wait until the trial ends by itself, because `reap` kills processes that are still working.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        if self.reap(pid, 0):
            os._exit(1)


def _try(isolation: LandlockIsolation) -> int:
    try:
        isolation.shut_in(0)
    except OSError as error:
        os.write(STDERR, f"a program could not be isolated: {error}\n".encode())
        return 1
    for path in ("/", "/proc/self/status", "/etc/passwd"):
        try:
            os.open(path, os.O_RDONLY)
        except OSError:
            continue
        os.write(STDERR, f"the kernel lets programs read {path}\n".encode())
        return 1
    return 0


def _call(number: int, *args: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result


def _allow(ruleset: int, descriptor: int, access: int) -> None:
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        access &= _OF_A_FILE
    rule = struct.pack("<Qi", access, descriptor)
    _call(_ADD, ruleset, 1, rule, 0)


def _is_open_to_all(path: str) -> bool:
    """Check whether every user may enter the folders above a path."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in Path(path).resolve().parents)


def _own_tasks() -> int:
    """Count the processes and threads of this user, as the kernel's limit does."""
    user, tasks = os.getuid(), 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.stat().st_uid == user:
                tasks += len(os.listdir(process / "task"))  # noqa: PTH208 - names are enough
    return tasks


def _size(folder: Path, enough: int) -> int:
    """Sum the bytes below a folder until they exceed `enough`; each entry counts for a block."""
    total, folders = 0, [folder]
    while folders and total <= enough:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += 4096 + 512 * entry.stat(follow_symlinks=False).st_blocks
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
    return total
