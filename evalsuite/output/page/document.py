"""The page as one HTML file: hand-written parts, combined without changes, under a strict content policy."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from concurrent.futures import Future
    from types import TracebackType


ASSETS = Path(__file__).parent / "assets"
SCRIPTS = (
    "dom.js",
    "numbers.js",
    "chunks.js",
    "cases.js",
    "search.js",
    "filters.js",
    "diff.js",
    "tables.js",
    "bars.js",
    "charts.js",
    "overview.js",
    "compare.js",
    "report.js",
    "list.js",
    "case.js",
    "runs.js",
    "main.js",
)
"""The scripts, each after those that it uses."""


def page(title: str, overview: Mapping[str, Any], chunks: Iterable[tuple[str, str]] = ()) -> str:
    """Build the page's HTML."""
    frame_style = asset("frame.css")
    return _combine(title, {**overview, "frame_style": frame_style}, program(), asset("style.css"), frame_style, chunks)


def sheet_page(title: str, cases: Mapping[str, Any]) -> str:
    """Build the page of a sheet, on which people label cases."""
    script = f'"use strict";\n{asset("dom.js")}\n{asset("sheet.js")}'
    return _combine(title, cases, script, asset("style.css") + asset("sheet.css"))


def _combine(
    title: str,
    content: Mapping[str, Any],
    script: str,
    style: str,
    frame_style: str = "",
    chunks: Iterable[tuple[str, str]] = (),
) -> str:
    parts = {
        "TITLE": html.escape(title),
        "POLICY": policy(script, style, frame_style),
        "STYLE": style,
        "OVERVIEW": inert_json(content),
        "CHUNKS": "\n".join(
            f'<script type="text/plain" id="{html.escape(name)}">{text}</script>' for name, text in chunks
        ),
        "SCRIPT": script,
    }
    # Replace everything in one pass, so that the text of a part is never read as the name of another.
    return re.sub(r"<!--([A-Z]+)-->", lambda match: parts[match[1]], asset("page.html"))


@cache
def asset(name: str) -> str:
    """Read a hand-written file from `assets/`."""
    return (ASSETS / name).read_text("utf-8")


@cache
def program() -> str:
    """Join all scripts."""
    return '"use strict";\n' + "\n".join(asset(name) for name in SCRIPTS)


def policy(script: str, *styles: str) -> str:
    """Build the content security policy: it allows this script and its chunks, these styles, and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)} 'strict-dynamic'",
            f"style-src {' '.join(_hash(style) for style in styles)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def inert_json(value: Any) -> str:
    """Encode JSON that is safe inside a script element, whatever a model wrote into it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return text.encode("utf-8", "replace").decode("utf-8")


FOLDER = "page"  # Name of the folder next to the page that contains the chunks of a large run.
LEVEL = 1  # zlib's compression level: each higher level doubles the time and saves only a few percent.
IN_FLIGHT = 8  # Maximum chunks that wait for compression, to limit memory.


def pack(data: bytes) -> str:
    """Compress data into text that is safe inside a script."""
    return base64.b64encode(zlib.compress(data, LEVEL)).decode("ascii")


def _pack_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """Compress and encode as `pack` does, piece by piece."""
    compressor, left = zlib.compressobj(LEVEL), b""
    for piece in pieces:
        left += compressor.compress(piece.encode("utf-8", "replace"))
        # Three bytes become four letters, so only the last piece needs padding.
        whole = len(left) - len(left) % 3
        yield base64.b64encode(left[:whole]).decode("ascii")
        left = left[whole:]
    yield base64.b64encode(left + compressor.flush()).decode("ascii")


class Chunks:
    """Stores chunks in the page or next to it; compresses several at a time."""

    def __init__(self, folder: Path, *, beside: bool) -> None:
        self._folder, self._beside = folder / FOLDER, beside
        self._inside: list[tuple[str, str]] = []
        self._waiting: deque[tuple[str, Future[str]]] = deque()
        # zlib releases the interpreter's lock.
        self._pool = ThreadPoolExecutor(min(4, os.cpu_count() or 1))

    def __enter__(self) -> Self:
        """Remove the chunks of an earlier page."""
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
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    def add(self, name: str, data: bytes) -> None:
        """Add a chunk under a name of letters, digits and `-`."""
        self._waiting.append((name, self._pool.submit(pack, data)))
        while len(self._waiting) > IN_FLIGHT:
            self._keep_first()

    def add_pieces(self, name: str, pieces: Iterable[str]) -> None:
        """Add a chunk piece by piece; if it is stored next to the page, only a few pieces are in memory."""
        if self._beside:
            self._write(name, _pack_pieces(pieces))
        else:
            self.add(name, "".join(pieces).encode("utf-8", "replace"))

    def _keep_first(self) -> None:
        name, packed = self._waiting.popleft()
        if self._beside:
            self._write(name, [packed.result()])
        else:
            self._inside.append((name, packed.result()))

    def _write(self, name: str, packed: Iterable[str]) -> None:
        """Write a chunk's file atomically."""
        file = self._folder / f"{name}.js"
        draft = file.with_name(f".{file.name}.draft")
        with draft.open("w", encoding="ascii") as stream:
            stream.write(f'keepChunk({json.dumps(name)},"')
            # The compressed text contains only letters, digits and a few signs that are safe within quotes.
            stream.writelines(packed)
            stream.write('")\n')
        draft.replace(file)

    def finish(self) -> Iterator[tuple[str, str]]:
        """Wait for all chunks; yield name and text of those that are stored in the page."""
        while self._waiting:
            self._keep_first()
        yield from self._inside
