"""Blocks of bytes as lines, and the first line of a dump that is not what it should be."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from evalsuite.builders.head_to_tail.dump_reader import decompressed
from evalsuite.core.errors import DatasetError, EvalsuiteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    # What is found and what is expected, where a line (without its end) is wrong; else None.
    Check = Callable[[str], "tuple[str, str] | None"]

# No line of a dump is longer: what is, is damaged, or made to fill the memory.
LONGEST = 1 << 21
# Escapes of JSON: pairs of halves and escaped backslashes are passed over, so that what is left is half alone.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without their ends; one that is longer than any of a dump comes in pieces."""
    rest = b""
    for block in blocks:
        first, *others = block.split(b"\n")
        rest += first
        if others:
            yield rest
            yield from others[:-1]
            rest = others[-1]
        elif len(rest) > LONGEST:
            yield rest
            rest = b""
    if rest:
        yield rest


def first_line(blocks: Iterator[bytes], path: Path) -> tuple[str, Iterator[bytes]]:
    """The first line without its end, and all that follows it.

    Raises:
        DatasetError: there is none, or it is not UTF-8.
    """
    start = b""
    for block in blocks:
        start += block
        if b"\n" in block or len(start) > LONGEST:
            break
    line, _, rest = start.partition(b"\n")
    if not line:
        raise DatasetError(path, "line 1", "an empty file" if not start else "an empty line", "data")
    if wrong := _encoding(line):
        raise DatasetError(path, "line 1", *wrong)
    return line.decode(), chain((rest,), blocks)


def bounded(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks, as long as there are lines in them.

    Raises:
        EvalsuiteError: a line goes on and on; where it would end the database might lose it without a word.
    """
    length = 0
    for block in blocks:
        end = block.rfind(b"\n")
        length = length + len(block) if end < 0 else len(block) - end - 1
        if length > LONGEST:
            raise EvalsuiteError(f"a line is longer than {LONGEST:,} bytes")
        yield block


def without_comments(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks without the lines that begin with `#`, cut at the ends of lines."""
    rest = b""
    for block in chain(blocks, (b"\n",)):
        whole, end, rest = (rest + block).rpartition(b"\n")
        if whole.startswith(b"#") or b"\n#" in whole:
            whole = b"\n".join(line for line in whole.split(b"\n") if not line.startswith(b"#"))
        yield whole + end


def without_returns(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks without carriage returns, which stand at ends of lines or by mistake."""
    return (block.replace(b"\r", b"") for block in blocks)


def whole_characters(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Blocks of JSON, cut at the ends of lines, with U+FFFD for each escaped half of a character (`\ud800`).

    Such a half is no reason to give up a dump: mostly it stands in a field that nobody reads, a description cut
    short.
    """
    rest = b""
    for block in chain(blocks, (b"",)):
        text = rest + block
        cut = text.rfind(b"\n") + 1 if block else len(text)
        whole, rest = text[:cut], text[cut:]
        yield _ESCAPE.sub(_character, whole) if b"\\ud" in whole or b"\\uD" in whole else whole


def _character(escape: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if escape["half"] else escape[0]


def first_fault(path: Path, check: Callable[[str], tuple[str, str] | None], skip: int) -> DatasetError | None:
    """Reads a file again to find its first line that is wrong.

    Args:
        path: the file.
        check: what is wrong with a line.
        skip: lines at the beginning that are not checked.

    Raises:
        DatasetError: the file cannot be read.
    """
    for number, line in enumerate(lines(without_returns(decompressed(path, int))), 1):
        if number > skip and (wrong := _length(line) or _encoding(line) or check(line.decode())):
            return DatasetError(path, f"line {number}", *wrong)
    return None


def _length(line: bytes) -> tuple[str, str] | None:
    return ("a line without end", f"at most {LONGEST:,} bytes") if len(line) > LONGEST else None


def _encoding(line: bytes) -> tuple[str, str] | None:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"the byte 0x{line[error.start]:02x} as its byte {error.start + 1}", "UTF-8 text"
    return None
