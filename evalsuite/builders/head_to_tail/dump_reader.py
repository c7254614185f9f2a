"""Compressed dumps as blocks of bytes, as lines, and as a pipe that a database can read."""

from __future__ import annotations

import bz2
import os
import re
import zlib
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Protocol

from evalsuite.core.errors import DatasetError, EvalsuiteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    # Returns what is found and what is expected if a line (without its end) is wrong; else None.
    Check = Callable[[str], "tuple[str, str] | None"]


# Measured: larger blocks leave the processor's cache and cost a tenth more.
BLOCK = 1 << 16
# What comes out of a block at once: a few kilobytes made for it can hold gigabytes.
PIECE = 1 << 20
# MAG's files are packed with the longest window that zstd knows.
_ZSTD_WINDOW = 1 << 31
_ZSTD_SLICE = 1 << 10


def locate(folder: Path, name: str) -> Path:
    """A file as it is downloaded, or else the same file decompressed or compressed by the user.

    Raises:
        DatasetError: there is none of these.
    """
    plain = name.removesuffix(Path(name).suffix) if Path(name).suffix in _DECODERS else name
    for candidate in (name, plain, *(plain + suffix for suffix in _DECODERS)):
        if (folder / candidate).is_file():
            return folder / candidate
    problem = "no such file" if folder.is_dir() else "no such folder"
    raise DatasetError(folder / name, "", problem, "the file as it is downloaded")


class Decoder(Protocol):
    """One compressed stream, decompressed piece by piece."""

    @property
    def eof(self) -> bool:
        """Whether the compressed stream has ended."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What follows its end."""
        ...

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """As much as can be known after these further compressed bytes, never much of it at once."""
        ...


def decompressed(path: Path, advance: Callable[[int], object]) -> Iterator[bytes]:
    """The content of a file, decompressed by what its name ends with (.gz, .bz2, .zst, else as it is).

    Args:
        path: the file; it may consist of several compressed streams, one after the other.
        advance: told of every compressed byte that was read.

    Raises:
        DatasetError: the file is missing, cannot be read, is damaged or ends too early.
    """
    at = 0
    try:
        with path.open("rb") as file:
            decode = _Decoding(path.suffix)
            while block := file.read(BLOCK):
                yield from decode(block)
                at += len(block)
                advance(len(block))
    except FileNotFoundError:
        raise DatasetError(path, "", "no such file", "the file as it is downloaded") from None
    except OSError as error:
        # bz2 reports damaged data as an OSError without a number.
        problem = error.strerror or str(error)
        raise DatasetError(path, f"about byte {at}", problem, "a readable, undamaged file") from error
    except (zlib.error, _zstd_error()) as error:
        raise DatasetError(path, f"about byte {at}", str(error), "undamaged compressed data") from error
    if not decode.complete:
        raise DatasetError(
            path, f"byte {at}", "the end amid compressed data", "a complete file: download it again"
        )


class _Decoding:
    """Decompresses block by block, across the streams that a file consists of."""

    def __init__(self, suffix: str) -> None:
        self._make = _DECODERS.get(suffix)
        self._decoder: Decoder | None = self._make() if self._make else None

    @property
    def complete(self) -> bool:
        return self._decoder is None or self._decoder.eof

    def __call__(self, block: bytes) -> Iterator[bytes]:
        if self._make is None or self._decoder is None:
            yield block
            return
        while block:
            if self._decoder.eof:
                self._decoder = self._make()
            yield from self._decoder.pieces(block)
            block = self._decoder.unused_data if self._decoder.eof else b""


class _Gzip:
    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data and not self.eof:
            yield self._decoder.decompress(data, PIECE)
            data = self._decoder.unconsumed_tail


class _Bzip2:
    def __init__(self) -> None:
        self._decoder = bz2.BZ2Decompressor()

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def pieces(self, data: bytes) -> Iterator[bytes]:
        yield self._decoder.decompress(data, PIECE)
        while not (self.eof or self._decoder.needs_input):
            yield self._decoder.decompress(b"", PIECE)


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self._decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        self.unused_data = b""

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    def pieces(self, data: bytes) -> Iterator[bytes]:
        # It cannot be told to stop after so much, but a few bytes are a few of its blocks of 128 KiB.
        decompressed: list[bytes] = []
        for at in range(0, len(data), _ZSTD_SLICE):
            decompressed.append(self._decoder.decompress(data[at : at + _ZSTD_SLICE]))
            if self.eof:
                self.unused_data = self._decoder.unused_data + data[at + _ZSTD_SLICE :]
                break
            if sum(map(len, decompressed)) > PIECE:
                yield b"".join(decompressed)
                decompressed = []
        yield b"".join(decompressed)


_DECODERS: dict[str, Callable[[], Decoder]] = {".gz": _Gzip, ".bz2": _Bzip2, ".zst": _Zstd}


def _zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError


@contextmanager
def piped(blocks: Iterable[bytes], pipe: Path) -> Iterator[None]:
    """Feeds blocks into a named pipe while the body of the `with` reads from it, once.

    What goes wrong with the blocks is raised at the end of the body, in place of what the body raises:
    a reader that complains about the end of its data does so because the blocks broke off.

    Args:
        blocks: taken one by one, in another thread.
        pipe: made here, and taken away.
    """
    os.mkfifo(pipe, 0o600)
    failures: list[BaseException] = []

    def feed() -> None:
        try:
            with pipe.open("wb") as out:
                for block in blocks:
                    out.write(block)
        except BrokenPipeError:
            pass  # The reader has had enough, or failed; the latter is its own to tell.
        except BaseException as error:  # noqa: BLE001 - handed over to the thread that waits
            failures.append(error)

    feeder = Thread(target=feed, name=f"feed {pipe.name}", daemon=True)
    feeder.start()
    try:
        yield
    finally:
        while feeder.is_alive():
            # Wakes a feeder that waits for a reader: the body may have failed before it opened the pipe.
            os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
            feeder.join(0.05)
        pipe.unlink()
        if failures:
            raise failures[0]


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
        yield _ESCAPE.sub(_replace_half, whole) if b"\\ud" in whole or b"\\uD" in whole else whole


def _replace_half(escape: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if escape["half"] else escape[0]


def first_fault(path: Path, check: Check, skip: int) -> DatasetError | None:
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
