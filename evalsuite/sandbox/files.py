"""Files that a program wrote, as the host believes them: few, small, and of kinds that can carry nothing active."""

from __future__ import annotations

import base64
import re
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.sandbox.inside.written_files import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_FILES, MOST_BYTES, MOST_TEXT = 8, 1 << 20, 64 << 10
"""Of one round: how many files, bytes of all together, bytes of a text (a longer one is left out)."""
MOST_PIXELS = 4096
"""Of a picture's width and height: a small file may hold a picture that no browser can unpack."""
_PNG = b"\x89PNG\r\n\x1a\n"
_SIZE = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A file that a program wrote.

    Attributes:
        name: its own name, in letters, digits and `.-_` alone.
        content: a PNG picture of at most 4096 pixels each way, or text in UTF-8 (`.csv`, `.txt`).
    """

    name: str
    content: bytes = field(repr=False)

    @property
    def is_picture(self) -> bool:
        """Whether it is a PNG picture; otherwise it is text."""
        return self.name.endswith(".png")


def read_files(handed_over: bytes) -> tuple[ProgramFile, ...]:
    """The files among what a program's process handed over, up to the limits; whatever is malformed is left out."""
    files: list[ProgramFile] = []
    room = MOST_BYTES
    for name, content in _parts(handed_over):
        file = ProgramFile(_plain(name), content)
        if len(files) < MOST_FILES and len(content) <= room and _is_harmless(file):
            files.append(file)
            room -= len(content)
    return tuple(files)


def as_event(files: Sequence[ProgramFile]) -> Mapping[str, Any]:
    """The files as JSON, for the event of their program; nothing where there are none.

    Pictures are `figures` (`name`, `png` in base64), texts `files` (`name`, `text`).
    """
    figures = [
        {"name": file.name, "png": base64.b64encode(file.content).decode()}
        for file in files
        if file.is_picture
    ]
    texts = [{"name": file.name, "text": file.content.decode()} for file in files if not file.is_picture]
    return {**({"figures": figures} if figures else {}), **({"files": texts} if texts else {})}


def _parts(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at + HEAD.size <= len(data):
        name_size, size = HEAD.unpack_from(data, at)
        begin = at + HEAD.size + name_size
        at = begin + size
        if at <= len(data):
            yield data[begin - name_size : begin].decode("utf-8", "replace"), data[begin:at]


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".")[-80:].lower()


def _is_harmless(file: ProgramFile) -> bool:
    if file.is_picture:
        head = file.content[: 16 + _SIZE.size]
        if not head.startswith(_PNG) or head[12:16] != b"IHDR" or len(head) < 16 + _SIZE.size:
            return False
        return all(0 < side <= MOST_PIXELS for side in _SIZE.unpack_from(head, 16))
    if not file.name.endswith((".csv", ".txt")) or len(file.content) > MOST_TEXT or b"\0" in file.content:
        return False
    try:
        file.content.decode()
    except UnicodeDecodeError:
        return False
    return True
