"""The seccomp filter, which blocks system calls that programs must not make.

Namespaces and limits confine programs even without the filter. The filter removes parts of the kernel that programs do
not need and that often had vulnerabilities (ptrace, bpf, io_uring, keyrings, new namespaces). The filter blocks calls
that allocate memory outside of all limits (System V and POSIX queues, memory files). The filter blocks sockets, because
programs that run at the same time could use them to communicate.

The numbers of system calls are from the kernel's arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h.
"""

import errno
import struct

CallNumbers = dict[str, tuple[int | None, int | None]]


def _parse_call_numbers(table: str) -> CallNumbers:
    """Parse entries `name x86_64-number aarch64-number`; `-` stands for a system call that the architecture lacks."""
    entries = (entry.split() for entry in table.split(","))
    return {name: (int(x86), None if arm == "-" else int(arm)) for name, x86, arm in entries}


DENIED = {
    # Calls that reach other processes' memory and descriptors, and calls for performance counters, BPF, page faults and
    # asynchronous I/O.
    **_parse_call_numbers(
        "ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, process_madvise 440 440, "
        "pidfd_getfd 438 438, kcmp 312 272, perf_event_open 298 241, bpf 321 280, userfaultfd 323 282, "
        "io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427"
    ),
    # Calls that make namespaces or mounts, and calls that open files by handle.
    **_parse_call_numbers(
        "unshare 272 97, setns 308 268, mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, "
        "open_tree 428 428, move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, "
        "mount_setattr 442 442, name_to_handle_at 303 264, open_by_handle_at 304 265"
    ),
    # Calls for keyrings, and calls that allocate memory outside of all limits.
    **_parse_call_numbers(
        "add_key 248 217, request_key 249 218, keyctl 250 219, shmget 29 194, semget 64 190, msgget 68 186, "
        "mq_open 240 180, memfd_create 319 279, memfd_secret 447 447"
    ),
    # Calls that make or use sockets; only `socketpair` is allowed. `bind` and `connect` would let other programs reach
    # a socket; `setsockopt` could enlarge buffers beyond all limits.
    **_parse_call_numbers("socket 41 198, bind 49 200, connect 42 203, setsockopt 54 208"),
    # Calls that lock or watch files; they would disturb processes of the host, which use the same files.
    **_parse_call_numbers("flock 73 32, inotify_init 253 -, inotify_init1 294 26, fanotify_init 300 262"),
    # Calls that administer the machine.
    **_parse_call_numbers(
        "syslog 103 116, acct 163 89, quotactl 179 60, quotactl_fd 443 443, kexec_load 246 104, init_module 175 105, "
        "finit_module 313 273, delete_module 176 106, modify_ldt 154 -"
    ),
}
# Calls that reach other processes and files of the same user; without namespaces, only the filter blocks them.
UNCONFINED = _parse_call_numbers(
    "setsid 112 157, setpgid 109 154, setpriority 141 140, ioprio_set 251 30, sched_setparam 142 118, "
    "sched_setscheduler 144 119, sched_setaffinity 203 122, sched_setattr 314 274, migrate_pages 256 238, "
    "move_pages 279 239, process_mrelease 448 448, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, tkill 200 130, "
    "setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16"
)
# Calls that change files' modes, owners and times, which Landlock cannot restrict. In the sandbox, calls that change
# modes, owners or times report success without effect, so that copying files still works.
IDLE = _parse_call_numbers(
    "chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 -, fchown 93 55, lchown 94 -, "
    "fchownat 260 54, utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88"
)
# System calls that may target only the caller (pid 0) or the program's first process.
OWN_ONLY: dict[str, tuple[int, int]] = {"prlimit64": (302, 261)}
SIGNALS: dict[str, tuple[int, int]] = {"kill": (62, 129), "tgkill": (234, 131), "pidfd_send_signal": (424, 424)}
# fcntl commands for leases and directory notices; they would disturb processes of the host.
FCNTL, SET_LEASE, NOTIFY = {"x86_64": 72, "aarch64": 25}, 1024, 1026
NAMESPACE_FLAGS = 0x7E020000  # All CLONE_NEW flags of clone: mounts, cgroups, uts, ipc, users, pids, net.
CLONE, CLONE3 = {"x86_64": 56, "aarch64": 220}, 435
SOCKETPAIR, STREAM, SEQPACKET, SOCKET_TYPES = {"x86_64": 53, "aarch64": 199}, 1, 5, 0xF
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000
_LOAD, _AND, _EQUALS, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_AT_NUMBER, _AT_ARCHITECTURE, _AT_FIRST_ARGUMENT, _AT_SECOND_ARGUMENT = 0, 4, 16, 24


def make_call_filter(machine: str, *, own_pid: int | None = None, landlock_blocks_signals: bool = True) -> bytes:
    """Make the seccomp filter for a machine type, as classic BPF instructions."""
    machine_column = list(AUDIT_ARCH).index(machine)
    refuse, missing, nothing = _REFUSE | errno.EPERM, _REFUSE | errno.ENOSYS, _REFUSE
    answers = [(DENIED, refuse)]
    own_only: list[tuple[int, tuple[int, ...]]] = []  # Numbers of calls, and the processes that each may target.
    if own_pid is not None:
        answers += [(UNCONFINED, refuse), (IDLE, nothing)]
        own_only += [(pair[machine_column], (0, own_pid)) for pair in OWN_ONLY.values()]
        if not landlock_blocks_signals:
            own_only += [(pair[machine_column], (own_pid,)) for pair in SIGNALS.values()]
    # Each instruction of the filter: operation, steps to skip if true, steps to skip if false, operand.
    steps = [
        (_LOAD, 0, 0, _AT_ARCHITECTURE),
        (_EQUALS, 1, 0, AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _AT_NUMBER),
        (_AT_LEAST, 0, 1, X32_BIT),
        (_RETURN, 0, 0, refuse),
        # Report clone3 as missing, because the filter cannot read its flags in memory; libc then calls clone instead.
        (_EQUALS, 0, 1, CLONE3),
        (_RETURN, 0, 0, missing),
    ]
    for calls, answer in answers:
        for pair in calls.values():
            if (number := pair[machine_column]) is not None:
                steps += [(_EQUALS, 0, 1, number), (_RETURN, 0, 0, answer)]
    for call, allowed in own_only:
        steps += [
            (_EQUALS, 0, 2 + len(allowed) + 1, call),
            (_LOAD, 0, 0, _AT_FIRST_ARGUMENT),
            *((_EQUALS, len(allowed) - place, 0, pid) for place, pid in enumerate(allowed)),
            (_RETURN, 0, 0, refuse),
            (_RETURN, 0, 0, _ALLOW),
        ]
    # Refuse socket pairs of datagrams, because such a socket can send data and descriptors to any path.
    steps += [
        (_EQUALS, 0, 6, SOCKETPAIR[machine]),
        (_LOAD, 0, 0, _AT_SECOND_ARGUMENT),
        (_AND, 0, 0, SOCKET_TYPES),
        (_EQUALS, 2, 0, STREAM),
        (_EQUALS, 1, 0, SEQPACKET),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUALS, 0, 4, CLONE[machine]),
        (_LOAD, 0, 0, _AT_FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, NAMESPACE_FLAGS),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUALS, 0, 4, FCNTL[machine]),
        (_LOAD, 0, 0, _AT_SECOND_ARGUMENT),
        (_EQUALS, 1, 0, SET_LEASE),
        (_EQUALS, 0, 1, NOTIFY),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)
