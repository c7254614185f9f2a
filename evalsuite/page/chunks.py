"""Compressed chunks of text, inside the page or beside it."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from evalsuite.results.runs import replace_text

if TYPE_CHECKING:
    from collections.abc import Iterator
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

    def _keep_first(self) -> None:
        name, packed = self._waiting.popleft()
        if self._beside:
            replace_text(
                self._folder / f"{name}.js", f"keepChunk({json.dumps(name)},{json.dumps(packed.result())})\n"
            )
        else:
            self._inside.append((name, packed.result()))

    def finish(self) -> Iterator[tuple[str, str]]:
        """Waits for all chunks; gives name and text of those that belong into the page."""
        while self._waiting:
            self._keep_first()
        yield from self._inside
