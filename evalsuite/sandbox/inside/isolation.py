"""Two kinds of isolation: namespaces inside bubblewrap or, if the machine allows no namespaces, Landlock.

With namespaces, each program has its own pids, mounts and user.

Landlock (from Linux 6.2) blocks all files but the interpreter's and those in the program's own folder; newer kernels
also block signals. The seccomp filter blocks sockets and other ways to reach another process (`calls.UNCONFINED`). With
Landlock, the warm interpreter checks the number of processes and the size of all files, because the kernel does not
limit them. A program cannot leave its process group, so killing the group ends all of its processes.
"""

import ctypes
import dataclasses
import errno
import os
import platform
import shutil
import signal
import stat
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from . import DEVICES, LOADING, OWN_FILES, Limits, kernel
from .calls import make_call_filter
from .kernel import STDERR

PROGRAM_USER = 1000


class NamespaceIsolation:
    """Isolates each program in namespaces of its own."""

    def __init__(self, limits: Limits, hidden: Sequence[str]) -> None:
        self._limits, self._hidden = limits, hidden
        # Run programs as user 1, which has no privileges; it exists only if root started the sandbox (see `launch.py`).
        users = Path("/proc/self/uid_map").read_text("ascii").splitlines()
        self._user = 1 if any(line.split()[0] == "1" for line in users) else 0
        self._filter = make_call_filter(platform.machine())
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)

    @contextmanager
    def open_loading_folder(self) -> Iterator[str]:
        """Mount a tmpfs in which packages may write during their import."""
        kernel.mount_tmpfs(LOADING, "size=16m,nr_inodes=256,mode=0700")
        try:
            yield LOADING
        finally:
            kernel.unmount_target(LOADING)

    def fork_child(self) -> int:
        """Fork the first process of a new pid namespace; the child, which gets 0, must then call `confine_child`."""
        kernel.enter_namespaces(kernel.NEW_PIDS)
        try:
            pid = os.fork()
        except OSError:
            kernel.set_pid_namespace_of_children(self._own_pids)
            raise
        if pid:
            kernel.set_pid_namespace_of_children(self._own_pids)
        return pid

    def confine_child(self, key: int) -> None:  # noqa: ARG002 - Landlock needs the key
        """Isolate the child; if the kernel refuses, raise OSError, after which the child must not run a program."""
        # Leave the warm interpreter's process group: signals to a group, by `kill(0, ...)`, cross pid namespaces.
        os.setsid()
        kernel.enter_namespaces(kernel.NEW_MOUNTS)
        process = os.open("/proc/self", os.O_PATH)
        descriptors = {path: os.open(path, os.O_PATH) for path in self._hidden}
        kernel.mount_tmpfs(OWN_FILES, f"size={self._limits.files},nr_inodes=4096,mode=1777")
        for path, descriptor in descriptors.items():
            _remount_path(path, descriptor)
        # Hide /proc from programs, because it shows information about the machine.
        kernel.mount_tmpfs("/proc", "size=0,nr_inodes=1,mode=0555", kernel.READ_ONLY)
        _switch_user_and_namespace(self._user, process)
        os.close(process)
        # Limit core dumps to 1 byte: with 0, the kernel would still start the host's program that collects core dumps.
        kernel.limit_resources(self._limits, most_processes=self._limits.processes, most_core_bytes=1)
        os.chdir(OWN_FILES)
        kernel.drop_capabilities()
        kernel.install_seccomp_filter(self._filter)

    def map_program_processes(self, pids: Iterable[int]) -> dict[int, set[int]]:
        """Map each program's first process (by pid) to all of the program's processes."""
        parents = {pid: parent for pid, parent, _ in kernel.list_living_processes()}
        return {pid: kernel.list_process_tree(pid, parents) for pid in pids}

    def find_exceeded_limit(self, key: int, pids: set[int]) -> str:  # noqa: ARG002 - Landlock needs both
        """Return "" (no limit exceeded), because with namespaces, the kernel enforces these limits."""
        return ""

    def kill_program(self, pid: int) -> None:
        """Kill a program's first process; the kernel then kills all other processes of the pid namespace."""
        os.kill(pid, 9)

    def reap_program(self, pid: int, key: int) -> int:  # noqa: ARG002 - Landlock needs the key
        """Wait for a program that has died; return its wait status."""
        return os.waitpid(pid, 0)[1]

    def find_breach(self) -> str:
        """Isolate this process with a limit of 1 process, and try to fork; return "" if the kernel refuses the fork."""
        self._limits = dataclasses.replace(self._limits, processes=1)
        self.confine_child(0)
        try:
            os.fork()
        except OSError:
            return ""
        return "the kernel does not limit the number of this user's processes"


def _remount_path(path: str, descriptor: int) -> None:
    """Mount a path again, because the program's own mounts have hidden it."""
    outermost_first = reversed(Path(path).parents)
    for folder in (folder for folder in outermost_first if not folder.exists()):
        folder.mkdir()
        # Set the mode explicitly: the program may run as another user, to whom the host's umask could deny access.
        folder.chmod(0o755)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        Path(path).mkdir()
    else:
        Path(path).touch()
    kernel.bind_mount(f"/proc/self/fd/{descriptor}", path)
    os.close(descriptor)


def _switch_user_and_namespace(user: int, process_folder: int) -> None:
    if user:
        kernel.switch_user(user)
        # Allow this process to write its own files in /proc, which the kernel forbids after a switch of the user.
        kernel.set_process_option(kernel.DUMPABLE, 1)
    # Make a separate user namespace, because the kernel counts processes per user and namespace.
    kernel.enter_namespaces(kernel.NEW_USERS)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{PROGRAM_USER} {user} 1"),
        ("gid_map", f"{PROGRAM_USER} {user} 1"),
        # If the machine runs out of memory, let the kernel kill programs before other processes.
        ("oom_score_adj", "1000"),
    ):
        file = os.open(name, os.O_WRONLY, dir_fd=process_folder)
        os.write(file, text.encode())
        os.close(file)


OLDEST = 3
"""The Landlock version of Linux 6.2; with older versions, a program could truncate files that it cannot write."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE, _DEVICES = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_ALL_OF_VERSION_3 = (1 << 15) - 1
_FILE_RIGHTS = _EXECUTE | _WRITE | _READ | _TRUNCATE
# Landlock's bits for binding and connecting TCP sockets, and for abstract sockets and signals.
_NETWORK, _SCOPES = 0b11, 0b11
_FIRST_USER, _USERS = 20_000, 40_000  # If the sandbox runs as root, programs get user ids from this range.
_libc = ctypes.CDLL(None, use_errno=True)


def explain_missing_landlock(code: int) -> str:
    """Explain from a system call's error number why the kernel has no Landlock version."""
    # A container engine's seccomp filter that does not know Landlock reports ENOSYS instead of refusing the call.
    status = ""
    with suppress(OSError):
        status = Path("/proc/self/status").read_text("utf-8", "replace")
    hides = code == errno.ENOSYS and "\nSeccomp:\t2" in status
    if code in {errno.EPERM, errno.EACCES} or hides:
        return (
            "a seccomp filter blocks it, most often a container's: start the container with --security-opt "
            "seccomp=unconfined, or with a newer engine"
        )
    if code == errno.EOPNOTSUPP:
        return "this kernel has it, but it is off: add landlock to the boot parameter lsm="
    return "this kernel has none"


def read_landlock_version() -> int:
    """Return the kernel's Landlock version; 0 if it has no Landlock."""
    return max(0, int(_libc.syscall(_CREATE, None, 0, 1)))


class LandlockIsolation:
    """Isolates programs by Landlock, without namespaces."""

    def __init__(self, limits: Limits, readable: Sequence[str], scratch: str) -> None:
        self._limits, self._scratch = limits, Path(scratch)
        self._version = read_landlock_version()
        if self._version < OLDEST:
            reason = (
                f"this kernel has {self._version}" if self._version else explain_missing_landlock(ctypes.get_errno())
            )
            raise OSError(f"Landlock {OLDEST} (Linux 6.2) is needed; {reason}")
        self._readable = tuple(readable)
        self._tasks = _count_own_tasks()
        # If this process is root, run each program as a separate user, but only if such users can read the interpreter.
        folders = [folder for path in (*readable, scratch) for folder in Path(path).resolve().parents]
        self._switches_user = os.geteuid() == 0 and all(folder.stat().st_mode & stat.S_IXOTH for folder in folders)
        kernel.set_process_option(kernel.SUBREAPER, 1)  # Become the parent of descendants whose own parent ends.

    @contextmanager
    def open_loading_folder(self) -> Iterator[str]:
        """Provide a folder beside the programs' folders, in which packages may write during their import."""
        folder = self._scratch / "loading"
        folder.mkdir(mode=0o700)
        try:
            yield str(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def fork_child(self) -> int:
        return os.fork()

    def confine_child(self, key: int) -> None:
        os.setsid()
        kernel.set_process_option(kernel.PARENT_DEATH_SIGNAL, signal.SIGKILL)
        own = self._scratch / str(key)
        own.mkdir(mode=0o700)
        # Open the paths before switching to the program's user, because this user may lack access to them.
        readable = [os.open(path, os.O_PATH) for path in self._readable]
        devices = [os.open(path, os.O_PATH) for path in DEVICES]
        if self._switches_user:
            user = _FIRST_USER + key % _USERS
            os.chown(own, user, user)
            kernel.switch_user(user)
            # Request the parent-death signal again, because switching the user clears it.
            kernel.set_process_option(kernel.PARENT_DEATH_SIGNAL, signal.SIGKILL)
        os.environ.update(HOME=str(own), TMPDIR=str(own))
        os.chdir(own)
        kernel.drop_capabilities()
        self._restrict_to_files(os.open(own, os.O_PATH), readable, devices)
        # Lower the limit on open files only now, because the paths above may need more descriptors than it allows.
        processes = self._limits.processes
        most = processes if self._switches_user else self._tasks + 4 * processes
        kernel.limit_resources(self._limits, most_processes=most, most_core_bytes=0)
        calls = make_call_filter(platform.machine(), own_pid=os.getpid(), landlock_blocks_signals=self._version >= 6)
        kernel.install_seccomp_filter(calls)

    def _restrict_to_files(self, own_folder: int, readable: Sequence[int], devices: Sequence[int]) -> None:
        files = _ALL_OF_VERSION_3 | (_DEVICES if self._version >= 5 else 0)
        network = _NETWORK if self._version >= 4 else 0
        scopes = _SCOPES if self._version >= 6 else 0
        sizes = {3: 8, 4: 16, 5: 16}
        attributes = struct.pack("<QQQ", files, network, scopes)[: sizes.get(self._version, 24)]
        ruleset = _call_landlock(_CREATE, attributes, len(attributes), 0)
        rights = [(own_folder, _ALL_OF_VERSION_3)]
        rights += [(descriptor, _EXECUTE | _READ | _LIST) for descriptor in readable]
        rights += [(descriptor, _READ | _WRITE) for descriptor in devices]
        for descriptor, access in rights:
            is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            rule = struct.pack("<Qi", access if is_folder else access & _FILE_RIGHTS, descriptor)
            _call_landlock(_ADD, ruleset, 1, rule, 0)
        kernel.set_process_option(kernel.NO_NEW_PRIVILEGES, 1)
        _call_landlock(_RESTRICT, ruleset, 0)
        for descriptor in (ruleset, own_folder, *readable, *devices):
            os.close(descriptor)

    def map_program_processes(self, pids: Iterable[int]) -> dict[int, set[int]]:
        """Map each program to its processes, which are the members of its process group."""
        members: dict[int, set[int]] = {pid: set() for pid in pids}
        for pid, _, group in kernel.list_living_processes():
            if group in members:
                members[group].add(pid)
        return members

    def find_exceeded_limit(self, key: int, pids: set[int]) -> str:
        """Return the limit (`processes` or `files`) that a program exceeds and Landlock cannot enforce; "" if none."""
        if sum(map(kernel.count_threads, pids)) > self._limits.processes:
            return "processes"
        return "files" if _sum_file_bytes(self._scratch / str(key), self._limits.files) > self._limits.files else ""

    def kill_program(self, pid: int) -> None:
        """Kill a program together with its process group."""
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            # Kill only the first process, because it does not yet lead a process group.
            os.kill(pid, signal.SIGKILL)

    def reap_program(self, pid: int, key: int) -> int:
        """Kill the processes that a dead program has left; return the wait status of its first process."""
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-pid, 0)
        shutil.rmtree(self._scratch / str(key), ignore_errors=True)
        return status

    def find_breach(self) -> str:
        """Isolate this process, and try to read this machine's files; return "" if the kernel refuses every file."""
        self.confine_child(0)
        for path in ("/", "/proc/self/status", "/etc/passwd"):
            with suppress(OSError):
                os.open(path, os.O_RDONLY)
                return f"the kernel lets programs read {path}"
        return ""


Isolation: TypeAlias = NamespaceIsolation | LandlockIsolation


def verify_isolation(isolation: Isolation) -> None:
    """Test the isolation in a trial process; if the process is not confined, end this process with an error."""
    pid = isolation.fork_child()
    if pid == 0:
        try:
            breach = isolation.find_breach()
        except OSError as error:
            breach = f"a program could not be isolated: {error}"
        os.write(STDERR, f"{breach}\n".encode() if breach else b"")
        os._exit(bool(breach))
    # Wait until the trial has ended, because `reap_program` may kill it.
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    if isolation.reap_program(pid, 0):
        os._exit(1)


def _call_landlock(number: int, *args: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result


def _count_own_tasks() -> int:
    """Count this user's processes and threads as the kernel counts them for its limit."""
    user, tasks = os.getuid(), 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.stat().st_uid == user:
                tasks += len(os.listdir(process / "task"))  # noqa: PTH208 - names are enough
    return tasks


def _sum_file_bytes(folder: Path, enough: int) -> int:
    """Add up the bytes of all files below a folder, plus one block per entry; stop when the sum exceeds `enough`."""
    total, folders = 0, [folder]
    while folders and total <= enough:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += 4096 + 512 * entry.stat(follow_symlinks=False).st_blocks
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
    return total
