"""Reads compressed dumps as blocks of bytes, as lines, and through a pipe that a database can read.

With a named pipe, one thread decompresses while the database parses. Decompressed data are never written to disk, and
the progress bar can count the compressed bytes.
"""

from __future__ import annotations

import bz2
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO

from evalsuite.core.errors import DatasetError, EvalsuiteError

# Checks a line; returns what is wrong and what was expected, or None if the line is correct.
Check = Callable[[str], "tuple[str, str] | None"]
BLOCK = 1 << 16  # Bytes per block; larger blocks exceed the processor's cache and were 10% slower.
_ZSTD_WINDOW = 1 << 31  # Maximum zstd window in bytes; MAG's files need this much.
_ZSTD_SLICE = 1 << 10


def find_dump_file(folder: Path, name: str) -> Path:
    """Find a downloaded file; the user may have decompressed the file or compressed it in another format."""
    plain = name.removesuffix(Path(name).suffix) if Path(name).suffix in _DECODERS else name
    for candidate in (name, plain, *(plain + suffix for suffix in _DECODERS)):
        if (folder / candidate).is_file():
            return folder / candidate
    problem = "no such file" if folder.is_dir() else "no such folder"
    raise DatasetError(folder / name, "", problem, "the downloaded file")


class _CountingFile:
    """A file that passes the size of each read block to `advance`; `at` is the number of bytes read so far."""

    def __init__(self, file: BinaryIO, advance: Callable[[int], object]) -> None:
        self._file, self._advance, self.at = file, advance, 0

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self.at += len(block)
        self._advance(len(block))
        return block


def decompress_file(path: Path, advance: Callable[[int], object]) -> Iterator[bytes]:
    """Decompress a file in the format of its suffix; call `advance` with the number of compressed bytes read."""
    try:
        opened = path.open("rb")
    except OSError as error:
        problem = "no such file" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise DatasetError(path, "", problem, "the downloaded file") from None
    with opened:
        file = _CountingFile(opened, advance)
        try:
            yield from _DECODERS.get(path.suffix, _read_blocks)(file)
        except EOFError:
            problem = "the end amid compressed data"
            raise DatasetError(path, f"byte {file.at}", problem, "a complete file: download it again") from None
        except (OSError, zlib.error, _import_zstd_error_class()) as error:
            place, problem = f"about byte {max(0, file.at - BLOCK)}", getattr(error, "strerror", None) or str(error)
            raise DatasetError(path, place, problem, "a readable, undamaged file") from error


def _read_blocks(file: Any) -> Iterator[bytes]:
    while piece := file.read(BLOCK):
        yield piece


def _read_zstd(file: Any) -> Iterator[bytes]:
    """Decompress slice by slice, because this decoder cannot limit its output."""
    import zstandard

    decoder: Any = None
    ready: list[bytes] = []
    while data := file.read(_ZSTD_SLICE):
        while data:
            if decoder is None or decoder.eof:
                decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
            ready.append(decoder.decompress(data))
            data = decoder.unused_data
        if sum(map(len, ready)) > BLOCK:
            yield b"".join(ready)
            ready = []
    yield b"".join(ready)
    if decoder is None or not decoder.eof:
        raise EOFError


_DECODERS: dict[str, Callable[[Any], Iterator[bytes]]] = {
    ".gz": lambda file: _read_blocks(gzip.GzipFile(fileobj=file)),
    ".bz2": lambda file: _read_blocks(bz2.BZ2File(file)),
    ".zst": _read_zstd,
}


def _import_zstd_error_class() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError


@contextmanager
def open_pipe(blocks: Iterable[bytes], pipe: Path) -> Iterator[None]:
    """Write blocks into a new named pipe, in another thread; the caller's `with` block must read the pipe once.

    If the iteration over `blocks` fails, its error is raised at the end of the `with` block. This error replaces any
    error of the `with` block, because incomplete data caused that error.
    """
    os.mkfifo(pipe, 0o600)
    failures: list[BaseException] = []

    def write_blocks() -> None:
        try:
            with pipe.open("wb") as out:
                for block in blocks:
                    out.write(block)
        except BrokenPipeError:
            pass  # Ignore this error, because the reader has finished or raises its own error.
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            failures.append(error)

    feeder = Thread(target=write_blocks, name=f"feed {pipe.name}", daemon=True)
    feeder.start()
    try:
        yield
    finally:
        while feeder.is_alive():
            # If the `with` block failed before it opened the pipe, open it here, because the feeder waits for a reader.
            os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
            feeder.join(0.05)
        pipe.unlink()
        if failures:
            raise failures[0]


LONGEST = 1 << 21  # Maximum length of a line; a longer line is damaged or malicious.
# Escapes in JSON. The group `half` matches only lone surrogates, because complete pairs and escaped backslashes match
# earlier alternatives.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def split_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines without their ends; a line that is longer than the limit is split."""
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


def read_first_line(blocks: Iterator[bytes], path: Path) -> tuple[str, Iterator[bytes]]:
    """Return the first line without its end, and the remaining blocks."""
    start = b""
    for block in blocks:
        start += block
        if b"\n" in block or len(start) > LONGEST:
            break
    line, _, rest = start.partition(b"\n")
    if not line:
        raise DatasetError(path, "line 1", "an empty file" if not start else "an empty line", "data")
    if wrong := _find_encoding_error(line):
        raise DatasetError(path, "line 1", *wrong)
    return line.decode(), chain((rest,), blocks)


def refuse_long_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks; raise an error if a line is too long."""
    length = 0
    for block in blocks:
        end = block.rfind(b"\n")
        length = length + len(block) if end < 0 else len(block) - end - 1
        if length > LONGEST:
            raise EvalsuiteError(f"a line is longer than {LONGEST:,} bytes")
        yield block


def drop_comments(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Remove the lines that begin with `#`; yield blocks that end at line ends."""
    rest = b""
    for block in chain(blocks, (b"\n",)):
        whole, end, rest = (rest + block).rpartition(b"\n")
        if whole.startswith(b"#") or b"\n#" in whole:
            whole = b"\n".join(line for line in whole.split(b"\n") if not line.startswith(b"#"))
        yield whole + end


def drop_carriage_returns(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield blocks without carriage returns."""
    return (block.replace(b"\r", b"") for block in blocks)


def replace_surrogates(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Replace lone surrogates (`\ud800`), which are common in dumps, by U+FFFD; yield whole lines of JSON."""
    rest = b""
    for block in chain(blocks, (b"",)):
        text = rest + block
        cut = text.rfind(b"\n") + 1 if block else len(text)
        whole, rest = text[:cut], text[cut:]
        if b"\\ud" in whole or b"\\uD" in whole:
            whole = _ESCAPE.sub(lambda escape: b"\\ufffd" if escape["half"] else escape[0], whole)
        yield whole


def find_malformed_line(path: Path, check: Check, skip: int) -> DatasetError | None:
    """Return an error about the first malformed line, ignoring the first `skip` lines; None if there is none."""
    endless = ("a line without end", f"at most {LONGEST:,} bytes")
    for number, line in enumerate(split_lines(drop_carriage_returns(decompress_file(path, int))), 1):
        too_long = endless if len(line) > LONGEST else None
        if number > skip and (wrong := too_long or _find_encoding_error(line) or check(line.decode())):
            return DatasetError(path, f"line {number}", *wrong)
    return None


def _find_encoding_error(line: bytes) -> tuple[str, str] | None:
    """Describe the first byte that is not UTF-8, and what was expected; None if all bytes are UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"the byte 0x{line[error.start]:02x} as its byte {error.start + 1}", "UTF-8 text"
    return None
