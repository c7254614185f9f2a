"""The few Linux calls that Python's `os` lacks, by ctypes; failures are OSErrors that name the call."""

from __future__ import annotations

import ctypes
import os
import signal

NEW_MOUNTS = 0x00020000
NEW_USERS = 0x10000000
NEW_PIDS = 0x20000000

READ_ONLY, NO_SUID, NO_DEVICES = 1, 2, 4
_BIND, _WITH_ALL_BELOW, _DETACH = 4096, 16384, 2

_SET_PARENT_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _SET_SUBREAPER, _SET_NO_NEW_PRIVILEGES = (
    1,
    4,
    22,
    36,
    38,
)
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
    """The children to come live in this pid namespace, given as a descriptor."""
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
