"""The processes of a program, as seen from the warm interpreter, whose /proc shows all in the sandbox.

The descendants of a program's first process are all there is of it, as orphans fall to the first process of
their pid namespace.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    """How many sockets these processes have open, each counted once whoever shares it."""
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
    """The parent of every process that lives; zombies are left out."""
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
    """A process and its descendants."""
    tree = {root}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return tree


def groups() -> dict[int, set[int]]:
    """The processes that live, by their process group."""
    members: dict[int, set[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are enough
        if name.isdecimal():
            with contextlib.suppress(OSError):  # it is gone
                state, _, group, *_ = _stat(int(name))
                if state != "Z":
                    members.setdefault(int(group), set()).add(int(name))
    return members


def threads(pid: int) -> int:
    """How many threads a process has; 0 if it is gone."""
    try:
        return int(_stat(pid)[17])
    except OSError:
        return 0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat after the name, which may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
