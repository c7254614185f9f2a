"""The files that a program leaves in its folder, handed to the host at the end of a round.

This runs in the program's own process, so the host checks whatever it gets (see `files.py` there).
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = (".png", ".csv", ".txt")
LARGEST, MOST = 1 << 20, 16
"""Bytes of one file, and how many files are handed over; the host keeps fewer."""
FIGURES = 4
HEAD = struct.Struct(">HI")
"""Before each file: the bytes of its name in UTF-8, and of its content."""

Seen = dict[str, tuple[int, int]]


def seen() -> Seen:
    """The files in the program's folder, each with its time of change and its size."""
    return {entry.name: _state(entry) for entry in _entries()}


def hand_over(before: Seen) -> None:
    """Writes what is new since `before` where the host looks for it."""
    from .isolation import FILES  # the host reads this module's constants, and needs none of that one

    with contextlib.suppress(Exception):
        new = [entry for entry in _entries() if before.get(entry.name) != _state(entry)]
        for entry in sorted(new, key=lambda entry: entry.name)[:MOST]:
            with open(entry.path, "rb") as file:  # noqa: PTH123 - as the program would
                content = file.read(LARGEST + 1)
            name = os.fsencode(entry.name)
            if len(content) <= LARGEST:
                os.write(FILES, HEAD.pack(len(name), len(content)) + name + content)


def _entries() -> Iterator[os.DirEntry[str]]:
    with os.scandir(".") as entries:
        for entry in entries:
            if entry.name.lower().endswith(KINDS) and not entry.name.startswith("."):
                yield entry


def _state(entry: os.DirEntry[str]) -> tuple[int, int]:
    about = entry.stat()
    return about.st_mtime_ns, about.st_size


def save_open_figures(before: Seen) -> None:
    """Saves what a program showed and did not save: there is no window that `plt.show()` could open.

    To be called before what is registered with `atexit` runs, which closes all figures.
    """
    with contextlib.suppress(Exception):
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is None or not plt.get_fignums():
            return
        pictures = {entry.name for entry in _entries() if entry.name.lower().endswith(".png")} - set(before)
        if not pictures:
            for number in plt.get_fignums()[:FIGURES]:
                plt.figure(number).savefig(f"figure_{number}.png")
        plt.close("all")
