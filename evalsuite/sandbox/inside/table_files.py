"""Tables as files: what a program finds in its folder, and what it gets for a path that it made up.

A model that answers with a program often reads its table from a file, under a name that it was never told.
Such a read gets the table; any other file that is missing stays missing.
"""

from __future__ import annotations

import builtins
import csv
import io
import os
from pathlib import Path
from typing import Any

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
        """Writes the tables where programs look for them first, and hears of files that are missing."""
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
            written = self._written(file) if set(mode) <= set("rbtU") else None
            if written is None:
                raise
            return self._open(written, mode, *args, **kwargs)

    def _written(self, file: Any) -> str | None:
        """A file of this program's that holds the table meant by a path; None where no table is meant."""
        path = Path(os.fsdecode(file)) if isinstance(file, str | bytes | os.PathLike) else Path()
        kind = path.suffix.lower()
        if kind not in {".csv", *TABULATED, *WORKBOOKS}:
            return None
        name = self._meant(str(path), path.stem)
        target = f".{name}{kind}"
        if not Path(target).exists():
            if kind in WORKBOOKS:
                self._write_workbook(name, target)
            else:
                self._write_text(name, target, "\t" if kind in TABULATED else ",")
        return target

    def _meant(self, path: str, stem: str) -> str:
        """The table of that name, else one for each further path in the order in which they are read."""
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
