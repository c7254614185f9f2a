"""The numbers of the system calls that are refused, against the kernel's own headers."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from evalsuite.sandbox.inside.calls import AUDIT_ARCH, CLONE, CLONE3, DENIED, FCNTL, call_filter

HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    # aarch64 has the generic table.
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_the_call_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    header = next((path for path in map(Path, HEADERS[machine]) if path.exists()), None)
    if header is None:
        pytest.skip("the kernel's headers are not installed")
    defined = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(), re.MULTILINE)
    numbers = {name: int(number) for name, number in defined}
    column = list(AUDIT_ARCH).index(machine)
    ours = {name: number for name, pair in DENIED.items() if (number := pair[column]) is not None}
    ours |= {"clone": CLONE[machine], "clone3": CLONE3, "fcntl": FCNTL[machine]}
    assert ours == {name: numbers.get(name) for name in ours}
    assert {name for name, pair in DENIED.items() if pair[column] is None}.isdisjoint(numbers)


@pytest.mark.parametrize("machine", sorted(AUDIT_ARCH))
def test_every_jump_of_the_filter_lands_within_it(machine: str) -> None:
    program = call_filter(machine)
    steps = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    assert len(steps) <= 4096, "the kernel's limit"
    for at, (_, if_true, if_false, _) in enumerate(steps):
        assert at + 1 + max(if_true, if_false) <= len(steps)
    assert steps[-1] == (0x06, 0, 0, 0x7FFF0000), "what is not refused is allowed"
