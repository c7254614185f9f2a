"""Linux calls that Python's `os` lacks, by ctypes; descriptors of a program; processes in /proc."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NEW_MOUNTS = 0x00020000
NEW_USERS = 0x10000000
NEW_PIDS = 0x20000000

READ_ONLY, NO_SUID, NO_DEVICES = 1, 2, 4
_BIND, _WITH_ALL_BELOW, _DETACH = 4096, 16384, 2

_SET_PARENT_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _SET_SUBREAPER, _SET_NO_NEW_PRIVILEGES = (1, 4, 22, 36, 38)
_FILTER_MODE = 2
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args: object) -> None:
    if getattr(_libc, name)(*args):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def unshare(namespaces: int) -> None:
    """Leaves these namespaces for new ones; new pids are for the children to come."""
    _call("unshare", ctypes.c_int(namespaces))


def children_born_in(pid_namespace: int) -> None:
    """Put future children into this pid namespace, given as a descriptor."""
    _call("setns", ctypes.c_int(pid_namespace), ctypes.c_int(NEW_PIDS))


def mount_tmpfs(target: str, options: str, flags: int = NO_SUID | NO_DEVICES) -> None:
    """Mounts a new, empty tmpfs over `target`."""
    _call("mount", b"tmpfs", target.encode(), b"tmpfs", ctypes.c_ulong(flags), options.encode())


def unmount(target: str) -> None:
    """Takes away what was mounted last; a file that is still open there lives on without a name."""
    _call("umount2", target.encode(), ctypes.c_int(_DETACH))


def show(source: str, target: str) -> None:
    """Mounts a folder or file at a second place, read-only if it is read-only at the first."""
    _call("mount", source.encode(), target.encode(), None, ctypes.c_ulong(_BIND | _WITH_ALL_BELOW), None)


def _set(option: int, value: int) -> None:
    _call("prctl", ctypes.c_int(option), *(ctypes.c_ulong(each) for each in (value, 0, 0, 0)))


def make_dumpable() -> None:
    """Gives a process that has changed its user its own files in /proc back."""
    _set(_SET_DUMPABLE, 1)


def close_to_others() -> None:
    """Keeps other processes of the same user from looking into this one's memory and from stopping it."""
    _set(_SET_DUMPABLE, 0)


def die_with_parent() -> None:
    """Has the kernel kill this process when the one that forked it ends."""
    _set(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose own parent has ended."""
    _set(_SET_SUBREAPER, 1)


def forbid_new_privileges() -> None:
    """Gives up every way to gain rights by executing a file."""
    _set(_SET_NO_NEW_PRIVILEGES, 1)


def drop_capabilities() -> None:
    """Gives up every capability, and every way to gain one by executing a file."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())
    forbid_new_privileges()


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_calls(instructions: bytes) -> None:
    """Puts this process and its descendants under a seccomp filter.

    Args:
        instructions: a BPF program, eight bytes an instruction.
    """
    program = _Filter(len(instructions) // 8, instructions)
    zero = ctypes.c_ulong(0)
    mode = ctypes.c_ulong(_FILTER_MODE)
    _call("prctl", ctypes.c_int(_SET_SECCOMP), mode, ctypes.byref(program), zero, zero)


# What the program finds at these descriptors; all others are closed.
STDIN, STDOUT, STDERR, CHANNEL, PAYLOAD, FILES = range(6)


def keep_only(descriptors: dict[int, int]) -> None:
    """Closes all descriptors but these and a new, empty standard input.

    Args:
        descriptors: each open descriptor by its new number; the numbers count up from 1.
    """
    # Opened anew: a lock or a flag on one that they share would pass from program to program.
    descriptors = {STDIN: os.open("/dev/null", os.O_RDONLY), **descriptors}
    # In two steps, as the wanted numbers may be taken by others that are wanted.
    high = {n: fcntl.fcntl(descriptor, fcntl.F_DUPFD, len(descriptors)) for n, descriptor in descriptors.items()}
    for number, descriptor in high.items():
        os.dup2(descriptor, number, inheritable=number <= STDERR)
    os.closerange(len(descriptors), resource.getrlimit(resource.RLIMIT_NOFILE)[0])


PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def address_space(pid: int) -> int:
    """Bytes of address space of a process; 0 if it is gone.

    What is mapped, and not what is resident: memory that processes share is resident in those alone that
    have touched it.
    """
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[0]) * PAGE
    except OSError:
        return 0


def sockets(pids: Iterable[int]) -> int:
    """Count the open sockets of these processes; a shared socket counts once."""
    names = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it is gone, or a descriptor is
            for file in os.scandir(f"/proc/{pid}/fd"):
                target = os.readlink(file.path)  # noqa: PTH115 - many, and often
                if target.startswith("socket:"):
                    names.add(target)
    return len(names)


def cpu_seconds(pid: int) -> float:
    """CPU time that a process and the children that it has waited for have spent; 0 if it is gone."""
    try:
        return sum(map(int, _stat(pid)[11:15])) / TICKS
    except OSError:
        return 0.0


def parents() -> dict[int, int]:
    """Find the parent of every living process; zombies are left out."""
    parent_of = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are enough
        if name.isdecimal():
            try:
                state, parent, *_ = _stat(int(name))
            except OSError:
                continue
            if state != "Z":
                parent_of[int(name)] = int(parent)
    return parent_of


def family(root: int, parents: dict[int, int]) -> set[int]:
    """Find a process and its descendants."""
    tree = {root}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return tree


def process_groups() -> dict[int, set[int]]:
    """List the living processes by process group."""
    members: dict[int, set[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are enough
        if name.isdecimal():
            with contextlib.suppress(OSError):  # it is gone
                state, _, group, *_ = _stat(int(name))
                if state != "Z":
                    members.setdefault(int(group), set()).add(int(name))
    return members


def threads(pid: int) -> int:
    """Count a process's threads; 0 if it is gone."""
    try:
        return int(_stat(pid)[17])
    except OSError:
        return 0


def _stat(pid: int) -> list[str]:
    """Read the fields of /proc/<pid>/stat after the name, which may contain spaces and parentheses."""
    return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
