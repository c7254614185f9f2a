"""The file that records are appended to while a run goes on, and what a crash may have left at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class RecordWriter:
    """Appends records to `records.jsonl`, each on the disk before the next test ends.

    Args:
        file: made if it is not there; a line that a crash cut short is taken off first.
    """

    def __init__(self, file: Path) -> None:
        mend(file)
        self._stream = file.open("ab", buffering=0)

    def append(self, line: str) -> None:
        """Adds one record, as a line of JSON without its end."""
        left = memoryview(line.encode("utf-8", "replace") + b"\n")
        while left:
            # A disk that is nearly full takes a part first, and refuses the rest.
            left = left[self._stream.write(left) :]

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()


def mend(file: Path) -> None:
    """Takes off a last line that has no end."""
    if not file.exists():
        return
    with file.open("rb+") as stream:
        size = stream.seek(0, 2)
        keep = size
        while keep:
            step = min(keep, 65536)
            stream.seek(keep - step)
            found = stream.read(step).rfind(b"\n")
            if found >= 0:
                keep = keep - step + found + 1
                break
            keep -= step
        if keep < size:
            stream.truncate(keep)
