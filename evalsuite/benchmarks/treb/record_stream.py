"""The raw records of a file one by one: the official test set has a file of 3 GB, which no process should hold."""

from __future__ import annotations

import codecs
import json
import re
from typing import IO, TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import expect, parse_json, read_json_lines, read_text
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

AT_ONCE = 16 << 20
"""Bytes: a smaller file is read whole, which is quicker, and a fault in it is told with its line and column."""
PIECE = 1 << 20
_BLANK = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


def raw_records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a JSON list or of JSON lines, each with its place (`record 3`, `line 3`).

    Raises:
        DatasetError: the file is neither, cannot be read, or is not UTF-8.
    """
    try:
        large = path.stat().st_size > AT_ONCE
    except OSError:
        large = False  # reading says why
    yield from _streamed(path) if large else _whole(path)


def _whole(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    text = read_text(path)
    if not text.strip():
        raise DatasetError(path, "", "nothing", "a JSON list of records, or JSON lines")
    if not text.lstrip().startswith("["):
        yield from read_json_lines(path)
        return
    for number, value in enumerate(parse_json(text, path), 1):
        place = f"record {number}"
        yield place, expect(value, dict, path, place)


def _streamed(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        with path.open("rb") as file:
            listed = file.read(64).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
            file.seek(0)
            yield from _List(path, file).records() if listed else _lines(path, file)
    except OSError as error:
        raise DatasetError(path, "", error.strerror or str(error), "a readable file") from error
    except UnicodeDecodeError as error:
        raise DatasetError(path, "", f"the byte 0x{error.object[error.start]:02x}", "UTF-8 text") from error


def _lines(path: Path, file: IO[bytes]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(file, 1):
        if line.strip():
            place = f"line {number}"
            yield place, expect(parse_json(line.decode("utf-8-sig"), path, place), dict, path, place)


class _List:
    """A JSON list of objects of which one at a time is in memory.

    Args:
        path: for messages.
        file: at its beginning.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        self._text, self._at = "", 0
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()

    def records(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Its objects, in order."""
        self._take("[", "its beginning")
        number = 0
        while self._next() != "]" or number:
            number += 1
            place = f"record {number}"
            yield place, self._record(place)
            if self._next() != ",":
                break
            self._at += 1
        self._take("]", f"the place after record {number}")
        if self._next():
            raise self._fault(f"the place after record {number}", "the end of the file")

    def _record(self, place: str) -> Mapping[str, Any]:
        if self._next() != "{":
            raise self._fault(place, "an object")
        wanted = PIECE
        while True:
            try:
                _, end = _DECODER.raw_decode(self._text, self._at)
            except ValueError as error:
                # Twice as much each time: a record that comes in many pieces is not parsed as many times.
                if not self._more(wanted):
                    raise self._fault(place, "a whole JSON object") from error
                wanted *= 2
            except RecursionError:
                end = len(self._text)  # parsed once more below, which tells it
                break
            else:
                break
        text, self._at = self._text[self._at : end], end
        return expect(parse_json(text, self._path, place), dict, self._path, place)

    def _take(self, sign: str, place: str) -> None:
        if self._next() != sign:
            raise self._fault(place, repr(sign))
        self._at += 1

    def _next(self) -> str:
        """The next character that is no blank; empty at the end of the file."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(PIECE):
                return ""

    def _more(self, size: int) -> bool:
        """Reads on, and lets go of what was read; False at the end of the file."""
        data = self._file.read(size)
        self._text = self._text[self._at :] + self._decoder.decode(data, final=not data)
        self._at = 0
        return bool(data)

    def _fault(self, place: str, expected: str) -> DatasetError:
        ahead = (
            repr(self._text[self._at : self._at + 20])
            if self._at < len(self._text)
            else "the end of the file"
        )
        return DatasetError(self._path, place, ahead, expected)
