"""Builds a run's page: one HTML file from hand-written parts, with a strict content security policy.

The page shows cases in rows; to open a case, it loads a chunk: a group of unchanged lines of `records.jsonl`.
"""

import base64
import hashlib
import html
import json
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evalsuite.core.json_codec import dumps
from evalsuite.output.reports.section import convert_cell

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = (
    *("dom.js", "numbers.js", "chunks.js", "cases.js", "search.js", "filters.js", "diff.js", "tables.js", "bars.js"),
    *("charts.js", "overview.js", "compare.js", "report.js", "list.js", "case.js", "runs.js", "main.js"),
)
"""The scripts, in an order in which each script precedes the scripts that use it."""


def build_page(title: str, overview: Mapping[str, Any], chunks: Iterable[tuple[str, str]] = ()) -> str:
    """Build the page's HTML."""
    frame_style = read_asset("frame.css")
    content = {**overview, "frame_style": frame_style}
    return _build_html(title, content, SCRIPTS, read_asset("style.css"), frame_style, chunks)


def build_sheet_page(title: str, cases: Mapping[str, Any]) -> str:
    """Build the page of a label sheet, where a person enters labels for cases."""
    return _build_html(title, cases, ("dom.js", "sheet.js"), read_asset("style.css") + read_asset("sheet.css"))


def _build_html(
    title: str,
    content: Mapping[str, Any],
    scripts: Iterable[str],
    style: str,
    frame_style: str = "",
    chunks: Iterable[tuple[str, str]] = (),
) -> str:
    script = '"use strict";\n' + "\n".join(map(read_asset, scripts))
    overview = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # HTML tags in a model's text must not end the script element that holds the JSON.
    overview = overview.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    parts = {
        "TITLE": html.escape(title),
        "POLICY": build_content_policy(script, style, frame_style),
        "STYLE": style,
        "OVERVIEW": overview.encode("utf-8", "replace").decode("utf-8"),
        "CHUNKS": "\n".join(
            f'<script type="text/plain" id="{html.escape(name)}">{text}</script>' for name, text in chunks
        ),
        "SCRIPT": script,
    }
    # Replace all placeholders in one pass, because an inserted text may itself contain a placeholder.
    return re.sub(r"<!--([A-Z]+)-->", lambda match: parts[match[1]], read_asset("page.html"))


def read_asset(name: str) -> str:
    """Read a file from `assets/`: a script, a style sheet or the HTML frame."""
    return (ASSETS / name).read_text("utf-8")


def build_content_policy(script: str, *styles: str) -> str:
    """Build a content security policy that allows the given script and styles, and the chunks that the script loads."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash_for_content_policy(script)} 'strict-dynamic'",
            f"style-src {' '.join(_hash_for_content_policy(style) for style in styles)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash_for_content_policy(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


FOLDER = "page"  # Folder next to the page in which the chunks of a large run are stored.
LEVEL = 1  # Compression level for zlib; each higher level doubles the time but saves only a few percent of the size.


def _compress_pieces(pieces: Iterable[bytes]) -> Iterator[str]:
    """Compress data piece by piece, and encode them as base64; the joined pieces decode to the joined data."""
    compressor, left = zlib.compressobj(LEVEL), b""
    for piece in pieces:
        left += compressor.compress(piece)
        # Encode only multiples of three bytes (four base64 letters), because padding is allowed only at the end.
        whole = len(left) - len(left) % 3
        yield base64.b64encode(left[:whole]).decode("ascii")
        left = left[whole:]
    yield base64.b64encode(left + compressor.flush()).decode("ascii")


class ChunkStore:
    """Stores compressed chunks of records, in the page or in a folder next to it.

    Attributes:
        inside: the name and the compressed text of each chunk that is inside the page.
    """

    def __init__(self, folder: Path, *, beside: bool) -> None:
        self._folder, self._beside = folder / FOLDER, beside
        self.inside: list[tuple[str, str]] = []
        for stale in self._folder.glob("*.js"):
            stale.unlink()
        if beside:
            self._folder.mkdir(parents=True, exist_ok=True)
        elif self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def add_chunk(self, name: str, pieces: Iterable[bytes]) -> None:
        """Add a chunk; its name may contain letters, digits and `-`. A chunk next to the page needs little memory."""
        packed = _compress_pieces(pieces)
        if not self._beside:
            self.inside.append((name, "".join(packed)))
            return
        file = self._folder / f"{name}.js"
        draft = file.with_name(f".{file.name}.draft")
        with draft.open("w", encoding="ascii") as stream:
            stream.write(f'keepChunk({json.dumps(name)},"')
            # The compressed text needs no escapes, because it is base64, which is safe inside quotes.
            stream.writelines(packed)
            stream.write('")\n')
        draft.replace(file)


CHUNK = 1 << 20  # Size of a chunk in bytes of records; to show one case, the browser loads one chunk.
# Maximum characters of question, answer and target in the page's list of cases.
ASKED, ANSWERED, EXPECTED = 160, 160, 80
OUTCOMES = ("passed", "failed", "error", "skipped")


def add_run_records(
    file: Path, run_number: int, chunks: ChunkStore, table: "CaseTable", other_table: "CaseTable | None"
) -> None:
    """Add a row for each record in a run's file to `table`, and the records to `chunks`.

    Args:
        run_number: the run's number on the page, from 0.
        other_table: another run's table; if given, only records whose outcome or scores differ are added to `chunks`.
    """
    lines: list[bytes] = []
    size = chunk = 0
    with file.open("rb") as stream:
        for line in stream:
            if not line.endswith(b"\n"):  # A killed process may leave an unfinished last line.
                break
            row = _make_page_row(json.loads(line))
            compared = other_table and other_table.find_row(row["case"])
            if other_table is None or (compared and any(row[part] != compared[part] for part in ("outcome", "scores"))):
                row["at"] = (chunk, len(lines))
                lines.append(line)
                size += len(line)
            table.add_row(row)
            if size >= CHUNK:
                chunks.add_chunk(f"r{run_number}-{chunk}", lines)
                lines, size, chunk = [], 0, chunk + 1
    if lines:
        chunks.add_chunk(f"r{run_number}-{chunk}", lines)


def _make_page_row(record: Mapping[str, Any]) -> "PageRow":
    usage, transcript = record["usage"], record.get("transcript") or {}
    return {
        "benchmark": record["benchmark"],
        "case": record["case"],
        "sample": record["sample"],
        "epoch": record["epoch"],
        "outcome": OUTCOMES.index(record["outcome"]),
        "tags": record.get("tags") or {},
        "scores": {name: convert_cell(value) for name, value in (record.get("scores") or {}).items()},
        "cause": record.get("cause"),
        "seconds": convert_cell(record.get("seconds", 0.0)),
        "tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        "estimated": usage.get("estimated", 0),
        "cost": convert_cell(usage["cost"]),
        "asked": _shorten_text(record.get("input"), ASKED),
        "answered": _shorten_text(transcript.get("answer") or record.get("error"), ANSWERED),
        "expected": _shorten_text(record.get("target"), EXPECTED),
        "needed": (record.get("facts") or {}).get("at_least"),
        "at": None,
    }


def _shorten_text(text: Any, max_length: int) -> str:
    """Return a text's beginning on one line; convert other values to JSON, and None to ""."""
    if text is None:
        return ""
    shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return " ".join(shown[: 2 * max_length].split())[:max_length]


PageRow = dict[str, Any]
PARTS = (
    *("benchmark", "case", "sample", "epoch", "outcome", "tags", "scores", "cause", "seconds", "tokens", "estimated"),
    *("cost", "asked", "answered", "expected", "needed", "at"),
)
"""The names of a row's parts, in the order in which the page stores them."""


class CaseTable:
    """The page's rows, keyed by case id; if a case is added twice, the later row replaces the earlier."""

    def __init__(self) -> None:
        # An empty name makes SQLite use a temporary database, which keeps only a few megabytes in memory.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute('CREATE TABLE cases ("case" BLOB PRIMARY KEY, benchmark BLOB, row TEXT) WITHOUT ROWID')
        self._database.execute("BEGIN")

    def close(self) -> None:
        self._database.close()

    def add_row(self, row: PageRow) -> None:
        values = _encode_as_blob(row["case"]), _encode_as_blob(row["benchmark"]), dumps([row[name] for name in PARTS])
        self._database.execute("INSERT OR REPLACE INTO cases VALUES (?, ?, ?)", values)

    def find_row(self, case: str) -> PageRow | None:
        stored = self._database.execute('SELECT row FROM cases WHERE "case" = ?', (_encode_as_blob(case),)).fetchone()
        return dict(zip(PARTS, json.loads(stored[0]), strict=True)) if stored else None

    def encode_rows_in_pieces(self) -> Iterator[bytes]:
        """Yield a JSON array in pieces: first the columns' names, then the rows, sorted by benchmark and case id."""
        yield f"[{dumps(PARTS)}".encode()
        for (row,) in self._database.execute('SELECT row FROM cases ORDER BY benchmark, "case"'):
            yield f",{row}".encode("utf-8", "replace")
        yield b"]"


def _encode_as_blob(text: str) -> bytes:
    # Encode the text as bytes, because SQLite cannot store an unpaired surrogate as text.
    return text.encode("utf-8", "surrogatepass")
