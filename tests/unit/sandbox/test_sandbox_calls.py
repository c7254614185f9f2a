"""The numbers of the system calls that are refused, against the kernel's own headers."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from evalsuite.sandbox.inside.calls import (
    AUDIT_ARCH,
    CLONE,
    CLONE3,
    DENIED,
    FCNTL,
    IDLE,
    OWN_ONLY,
    SIGNALS,
    SOCKETPAIR,
    UNCONFINED,
    make_call_filter,
)

ALLOWED, REFUSED, IDLED = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000
HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    # aarch64 has the generic table.
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_the_call_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    header = next((path for path in map(Path, HEADERS[machine]) if path.exists()), None)
    if header is None:
        pytest.skip("the kernel's headers are not installed: apt-get install linux-libc-dev")
    defined = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(), re.MULTILINE)
    numbers = {name: int(number) for name, number in defined}
    column = list(AUDIT_ARCH).index(machine)
    tables = DENIED | UNCONFINED | IDLE | OWN_ONLY | SIGNALS
    ours = {name: number for name, pair in tables.items() if (number := pair[column]) is not None}
    ours |= {"clone": CLONE[machine], "clone3": CLONE3, "fcntl": FCNTL[machine], "socketpair": SOCKETPAIR[machine]}
    # A call may be newer than the headers.
    newest = max(numbers.values())
    assert ours == {name: numbers.get(name, number if number > newest else None) for name, number in ours.items()}
    assert {name for name, pair in tables.items() if pair[column] is None}.isdisjoint(numbers)


@pytest.mark.parametrize("machine", sorted(AUDIT_ARCH))
@pytest.mark.parametrize(
    "options", [{}, {"own_pid": 77}, {"own_pid": 77, "landlock_blocks_signals": False}], ids=["tier 1", "tier 2", "old"]
)
def test_every_jump_of_the_filter_lands_within_it(machine: str, options: dict[str, Any]) -> None:
    steps = instructions(make_call_filter(machine, **options))
    assert len(steps) <= 4096, "the kernel's limit"
    for at, (_, if_true, if_false, _) in enumerate(steps):
        assert at + 1 + max(if_true, if_false) <= len(steps)
    assert steps[-1] == (0x06, 0, 0, ALLOWED), "what is not refused is allowed"


def instructions(program: bytes) -> list[tuple[int, int, int, int]]:
    return [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]


def answer(program: bytes, machine: str, number: int | None, first: int = 0, second: int = 0) -> int:
    """What a filter answers to a system call, by the rules of classic BPF."""
    memory = {0: number or 0, 4: AUDIT_ARCH[machine], 16: first, 24: second}
    steps, at, value = instructions(program), 0, 0
    while True:
        operation, if_true, if_false, operand = steps[at]
        at += 1
        if operation == 0x06:
            return operand
        if operation == 0x20:
            value = memory[operand]
        elif operation == 0x54:
            value &= operand
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[operation]
            at += if_true if holds else if_false


@pytest.mark.parametrize("machine", sorted(AUDIT_ARCH))
def test_without_namespaces_limits_and_signals_are_for_the_program_alone(machine: str) -> None:
    column = list(AUDIT_ARCH).index(machine)
    old = make_call_filter(machine, own_pid=77, landlock_blocks_signals=False)
    new = make_call_filter(machine, own_pid=77)
    for name, pair in (OWN_ONLY | SIGNALS).items():
        assert answer(old, machine, pair[column], 77) == ALLOWED, name
        assert answer(old, machine, pair[column], 78) == REFUSED, name
    assert answer(new, machine, OWN_ONLY["prlimit64"][column], 0) == ALLOWED
    assert answer(new, machine, OWN_ONLY["prlimit64"][column], 78) == REFUSED
    # Landlock sees to signals there.
    assert answer(new, machine, SIGNALS["kill"][column], 78) == ALLOWED
    assert {answer(new, machine, pair[column], 1) for pair in IDLE.values() if pair[column] is not None} == {IDLED}
    assert {answer(new, machine, pair[column], 1) for pair in UNCONFINED.values()} == {REFUSED}


@pytest.mark.parametrize("machine", sorted(AUDIT_ARCH))
@pytest.mark.parametrize("flags", [0, 0o2000000, 0o4000])
def test_a_pair_of_sockets_is_allowed_only_where_it_cannot_send_to_a_path(machine: str, flags: int) -> None:
    allowed = {
        kind
        for kind in range(1, 11)
        if answer(make_call_filter(machine), machine, SOCKETPAIR[machine], 1, kind | flags) == ALLOWED
    }
    assert allowed == {1, 5}
