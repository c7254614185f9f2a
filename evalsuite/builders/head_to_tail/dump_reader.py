"""Compressed files as blocks of plain bytes, and blocks of bytes as a file that a database can read.

A named pipe stands between the two: one thread decompresses here while the database parses there, nothing
is written to the disk, and what has been read of the compressed file is known at every moment.
"""

from __future__ import annotations

import bz2
import os
import zlib
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Protocol

from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
