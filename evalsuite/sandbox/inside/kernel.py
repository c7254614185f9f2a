"""Linux system calls that `os` lacks, programs' resource limits and descriptors, and data from /proc."""

import contextlib
import ctypes
import fcntl
import os
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path

from . import Limits

NEW_MOUNTS = 0x00020000
NEW_USERS = 0x10000000
NEW_PIDS = 0x20000000
READ_ONLY, NO_SUID, NO_DEVICES = 1, 2, 4
_BIND, _WITH_ALL_BELOW, _DETACH = 4096, 16384, 2
PARENT_DEATH_SIGNAL, DUMPABLE, _SECCOMP, SUBREAPER, NO_NEW_PRIVILEGES = 1, 4, 22, 36, 38
_FILTER_MODE = 2
_CAPABILITY_VERSION_3 = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)


def _call_libc(name: str, *args: object) -> None:
    if getattr(_libc, name)(*args):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def enter_namespaces(namespaces: int) -> None:
    """Move this process into new namespaces; a new pid namespace applies only to children made later."""
    _call_libc("unshare", ctypes.c_int(namespaces))


def set_pid_namespace_of_children(descriptor: int) -> None:
    """Put later child processes of this process into the pid namespace of a descriptor."""
    _call_libc("setns", ctypes.c_int(descriptor), ctypes.c_int(NEW_PIDS))


def mount_tmpfs(target: str, options: str, flags: int = NO_SUID | NO_DEVICES) -> None:
    """Mount a new, empty tmpfs over `target`."""
    _call_libc("mount", b"tmpfs", target.encode(), b"tmpfs", ctypes.c_ulong(flags), options.encode())


def unmount_target(target: str) -> None:
    """Remove the last mount at `target`; files that are open in it stay usable."""
    _call_libc("umount2", target.encode(), ctypes.c_int(_DETACH))


def bind_mount(source: str, target: str) -> None:
    """Mount a folder or file at a second path; if the source is read-only, so is the second path."""
    _call_libc("mount", source.encode(), target.encode(), None, ctypes.c_ulong(_BIND | _WITH_ALL_BELOW), None)


def set_process_option(option: int, value: int) -> None:
    """Set an attribute of this process (see the manual page of `prctl`).

    With `PARENT_DEATH_SIGNAL`, the kernel kills this process when its parent ends; with `NO_NEW_PRIVILEGES`, it cannot
    gain privileges when it executes a file.
    """
    _call_libc("prctl", ctypes.c_int(option), *(ctypes.c_ulong(each) for each in (value, 0, 0, 0)))


def drop_capabilities() -> None:
    """Drop all capabilities, and prevent this process from gaining privileges when it executes a file."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call_libc("capset", header, (ctypes.c_uint32 * 6)())
    set_process_option(NO_NEW_PRIVILEGES, 1)


def switch_user(user: int) -> None:
    """Switch to another user and the group of the same number, and leave all other groups."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


class _SeccompProgram(ctypes.Structure):
    """A seccomp filter in the form in which libc passes it to the kernel."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install_seccomp_filter(instructions: bytes) -> None:
    """Apply a seccomp filter (a BPF program with 8 bytes per instruction) to this process and its descendants."""
    program = _SeccompProgram(len(instructions) // 8, instructions)
    zero = ctypes.c_ulong(0)
    _call_libc("prctl", ctypes.c_int(_SECCOMP), ctypes.c_ulong(_FILTER_MODE), ctypes.byref(program), zero, zero)


def limit_resources(limits: Limits, *, most_processes: int, most_core_bytes: int) -> None:
    """Set a program's resource limits, but keep limits that are already lower; lower the program's priority."""
    for kind, value in (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_FSIZE, limits.file),
        (resource.RLIMIT_NPROC, most_processes),
        (resource.RLIMIT_NOFILE, limits.descriptors),
        (resource.RLIMIT_CORE, most_core_bytes),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_SIGPENDING, 256),
    ):
        most = resource.getrlimit(kind)[1]
        least = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (least, least))
    os.nice(5)  # Give programs a lower priority, because the warm interpreter must always be able to stop them.


# Numbers of the descriptors that each program gets; it has no other open descriptors.
STDIN, STDOUT, STDERR, CHANNEL, PAYLOAD, FILES = range(6)


def close_other_descriptors(descriptors: dict[int, int]) -> None:
    """Close all descriptors but the given ones; standard input becomes empty.

    `descriptors` maps new numbers (1, 2, 3 and so on) to open descriptors.
    """
    # Open /dev/null for each program anew, because a shared descriptor would share locks and flags.
    descriptors = {STDIN: os.open("/dev/null", os.O_RDONLY), **descriptors}
    # First move all descriptors to high numbers, because another descriptor may still occupy a wanted number.
    high = {n: fcntl.fcntl(descriptor, fcntl.F_DUPFD, len(descriptors)) for n, descriptor in descriptors.items()}
    for number, descriptor in high.items():
        os.dup2(descriptor, number, inheritable=number <= STDERR)
    os.closerange(len(descriptors), resource.getrlimit(resource.RLIMIT_NOFILE)[0])


PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def read_mapped_bytes(pid: int) -> int:
    """Return the mapped bytes of a process; 0 if the process has ended.

    Do not count resident bytes: shared memory is resident only in processes that have used it.
    """
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[0]) * PAGE
    except OSError:
        return 0


def count_sockets(pids: Iterable[int]) -> int:
    """Count the sockets that these processes have open; a socket that several processes share counts once."""
    names = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # Skip processes that have ended and descriptors that are closed.
            for file in os.scandir(f"/proc/{pid}/fd"):
                target = os.readlink(file.path)  # noqa: PTH115 - many, and often
                if target.startswith("socket:"):
                    names.add(target)
    return len(names)


def read_cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process, including children that it has waited for; 0 if the process has ended."""
    return sum(map(int, _read_stat(pid)[11:15])) / TICKS


def count_threads(pid: int) -> int:
    """Count a process's threads; 0 if the process has ended."""
    return sum(map(int, _read_stat(pid)[17:18]))


def list_process_tree(root: int, parents: dict[int, int]) -> set[int]:
    """List a process and all of its descendants."""
    tree = {root}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return tree


def list_living_processes() -> Iterator[tuple[int, int, int]]:
    """Yield the pid, the parent and the process group of each process; skip zombies."""
    for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - names are enough
        stat = _read_stat(int(name))
        if stat and stat[0] != "Z":
            yield int(name), int(stat[1]), int(stat[2])


def _read_stat(pid: int) -> list[str]:
    """Read /proc/<pid>/stat from the field after the name; return [] if the process has ended.

    Skip the name, because it may contain spaces and parentheses.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []
