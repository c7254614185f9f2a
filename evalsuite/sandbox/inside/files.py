"""Files of a program: its tables under any name that it tries, and what it leaves in its folder."""

from __future__ import annotations

import builtins
import contextlib
import csv
import io
import os
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 16 << 20
"""Bytes of all tables together that are written out beforehand; larger ones are written when they are read."""

TABULATED, WORKBOOKS = {".tsv", ".txt"}, {".xlsx", ".xls"}


class TableFiles:
    """The tables of one program as files.

    Args:
        contents: comma-separated values by the variable's name; None where only the frame is there.
        frames: the same tables as DataFrames.
    """

    def __init__(self, contents: dict[str, bytes | None], frames: dict[str, Any]) -> None:
        # As they were when the program began, whatever it does to its variables.
        self._contents, self._frames = contents, {name: frame.copy() for name, frame in frames.items()}
        self._open = builtins.open
        self._made_up: dict[str, str] = {}

    def install(self) -> None:
        """Writes the tables where programs look for them first, and replaces `open`."""
        if sum(len(content or b"") for content in self._contents.values()) <= LARGEST:
            for name, content in self._contents.items():
                if content is not None:
                    Path(f"{name}.csv").write_bytes(content)
        builtins.open = io.open = self.open

    def open(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        """Opens a file as `builtins.open` does; one that is missing may be a table under another name."""
        try:
            return self._open(file, mode, *args, **kwargs)
        except FileNotFoundError:
            written = self._write_table(file) if set(mode) <= set("rbtU") else None
            if written is None:
                raise
            return self._open(written, mode, *args, **kwargs)

    def _write_table(self, file: Any) -> str | None:
        """Write the table that a path means to a file and return its name; None if the path means no table."""
        path = Path(os.fsdecode(file)) if isinstance(file, str | bytes | os.PathLike) else Path()
        kind = path.suffix.lower()
        if kind not in {".csv", *TABULATED, *WORKBOOKS}:
            return None
        name = self._find_table(str(path), path.stem)
        target = f".{name}{kind}"
        if not Path(target).exists():
            if kind in WORKBOOKS:
                self._write_workbook(name, target)
            else:
                self._write_text(name, target, "\t" if kind in TABULATED else ",")
        return target

    def _find_table(self, path: str, stem: str) -> str:
        """Find the table of that name; otherwise assign tables to further paths in the order of reading."""
        if stem in self._contents:
            return stem
        if path not in self._made_up:
            names = list(self._contents)
            self._made_up[path] = names[min(len(self._made_up), len(names) - 1)]
        return self._made_up[path]

    def _write_text(self, name: str, target: str, delimiter: str) -> None:
        content = self._contents[name]
        text = (
            self._frames[name].to_csv(index=False) if content is None else content.decode("utf-8", "replace")
        )
        with self._open(target, "w", encoding="utf-8", newline="") as stream:
            if delimiter == ",":
                stream.write(text)
            else:
                csv.writer(stream, delimiter=delimiter).writerows(csv.reader(io.StringIO(text)))

    def _write_workbook(self, name: str, target: str) -> None:
        frame = self._frames[name]
        written = f"{target}.draft.xlsx"
        # pandas writes columns of several levels only together with the index.
        frame.to_excel(written, index=frame.columns.nlevels > 1)
        Path(written).rename(target)


KINDS = (".png", ".csv", ".txt")
LARGEST, MOST = 1 << 20, 16
"""Bytes of one file, and how many files are handed over; the host keeps fewer."""
FIGURES = 4
HEAD = struct.Struct(">HI")
"""Before each file: the bytes of its name in UTF-8, and of its content."""

Seen = dict[str, tuple[int, int]]


def list_files() -> Seen:
    """List the files in the program's folder with their modification times and sizes."""
    return {entry.name: _state(entry) for entry in _entries()}


def hand_over(before: Seen) -> None:
    """Writes what is new since `before` where the host looks for it."""
    from .kernel import FILES

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
    """Saves the figures that a program showed and did not save, because `plt.show()` cannot open a window.

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
