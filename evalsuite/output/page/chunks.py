"""Compressed chunks of text, inside the page or beside it."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future
    from pathlib import Path
    from types import TracebackType

FOLDER = "page"
"""Name of the folder beside the page that holds the chunks of a large run."""

LEVEL = 1
"""Of zlib: each step up costs as much time again and saves a few percent."""

IN_FLIGHT = 8
"""Chunks that wait for their compression, at most; it bounds memory."""


def pack(data: bytes) -> str:
    """Data compressed, as text that is safe inside a script."""
    return base64.b64encode(zlib.compress(data, LEVEL)).decode("ascii")


def _packed(pieces: Iterable[str]) -> Iterator[str]:
    """As `pack`, piece by piece."""
    compressor, left = zlib.compressobj(LEVEL), b""
    for piece in pieces:
        left += compressor.compress(piece.encode("utf-8", "replace"))
        # Three bytes make four letters, so that only the last piece is padded.
        whole = len(left) - len(left) % 3
        yield base64.b64encode(left[:whole]).decode("ascii")
        left = left[whole:]
    yield base64.b64encode(left + compressor.flush()).decode("ascii")


class Chunks:
    """Takes chunks and puts them into the page or beside it; compresses several at a time.

    Args:
        folder: of the page; what an earlier page left there is replaced.
        beside: whether the chunks are files beside the page.
    """

    def __init__(self, folder: Path, *, beside: bool) -> None:
        self._folder, self._beside = folder / FOLDER, beside
        self._inside: list[tuple[str, str]] = []
        self._waiting: deque[tuple[str, Future[str]]] = deque()
        # zlib works outside of the interpreter's lock.
        self._pool = ThreadPoolExecutor(min(4, os.cpu_count() or 1))

    def __enter__(self) -> Self:
        """Removes the chunks of an earlier page."""
        for stale in self._folder.glob("*.js"):
            stale.unlink()
        if self._beside:
            self._folder.mkdir(parents=True, exist_ok=True)
        elif self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the threads."""
        self._pool.shutdown(cancel_futures=True)

    def add(self, name: str, data: bytes) -> None:
        """Adds a chunk under a name of letters, digits and `-`."""
        self._waiting.append((name, self._pool.submit(pack, data)))
        while len(self._waiting) > IN_FLIGHT:
            self._keep_first()

    def add_pieces(self, name: str, pieces: Iterable[str]) -> None:
        """Adds a chunk of which no more than a few pieces are in memory at once, if it lies beside the page."""
        if self._beside:
            self._write(name, _packed(pieces))
        else:
            self.add(name, "".join(pieces).encode("utf-8", "replace"))

    def _keep_first(self) -> None:
        name, packed = self._waiting.popleft()
        if self._beside:
            self._write(name, [packed.result()])
        else:
            self._inside.append((name, packed.result()))

    def _write(self, name: str, packed: Iterable[str]) -> None:
        """Writes a chunk into its file, which appears as a whole."""
        file = self._folder / f"{name}.js"
        draft = file.with_name(f".{file.name}.draft")
        with draft.open("w", encoding="ascii") as stream:
            stream.write(f'keepChunk({json.dumps(name)},"')
            # What is packed is letters, digits and a few signs that mean nothing within quotes.
            stream.writelines(packed)
            stream.write('")\n')
        draft.replace(file)

    def finish(self) -> Iterator[tuple[str, str]]:
        """Waits for all chunks; gives name and text of those that belong into the page."""
        while self._waiting:
            self._keep_first()
        yield from self._inside
