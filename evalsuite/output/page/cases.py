"""The cases of a run for the page: one row per case, and chunks of the records.

The chunks contain unchanged lines of `records.jsonl`; each line is parsed once for its row and never rewritten.
"""

from __future__ import annotations

import json
import math
import sqlite3
from typing import TYPE_CHECKING, Any

from evalsuite.core.json_codec import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from evalsuite.output.page.document import Chunks


CHUNK = 1 << 20  # Bytes of records in one chunk, which the browser loads to show one case.
ASKED, ANSWERED, EXPECTED = 160, 160, 80  # Maximum characters of a case's texts that the list shows.
OUTCOMES = ("passed", "failed", "error", "skipped")


def read_cases(
    file: Path, number: int, chunks: Chunks, table: CaseTable, keep: Callable[[PageRow], bool] = lambda _make_row: True
) -> None:
    """Read a run's records into rows and chunks."""
    lines: list[bytes] = []
    size = chunk = 0
    for line in _list_whole_lines(file):
        row = _make_row(json.loads(line))
        if not keep(row):
            table.add(row)
            continue
        row["at"] = (chunk, len(lines))
        table.add(row)
        lines.append(line)
        size += len(line)
        if size >= CHUNK:
            chunks.add(f"r{number}-{chunk}", b"".join(lines))
            lines, size, chunk = [], 0, chunk + 1
    if lines:
        chunks.add(f"r{number}-{chunk}", b"".join(lines))


def _list_whole_lines(file: Path) -> Iterator[bytes]:
    """Yield complete lines; a last line without a line end is still being written, or its run was killed."""
    with file.open("rb") as stream:
        yield from (line for line in stream if line.endswith(b"\n"))


def _make_row(record: Mapping[str, Any]) -> PageRow:
    usage, transcript = record["usage"], record.get("transcript") or {}
    return {
        "benchmark": record["benchmark"],
        "case": record["case"],
        "sample": record["sample"],
        "epoch": record["epoch"],
        "outcome": OUTCOMES.index(record["outcome"]),
        "tags": record.get("tags") or {},
        "scores": {name: _finite(value) for name, value in (record.get("scores") or {}).items()},
        "cause": record.get("cause"),
        "seconds": _finite(record.get("seconds", 0.0)),
        "tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        "estimated": usage.get("estimated", 0),
        "cost": _finite(usage["cost"]),
        "asked": _shorten(record.get("input"), ASKED),
        "answered": _shorten(transcript.get("answer") or record.get("error"), ANSWERED),
        "expected": _shorten(record.get("target"), EXPECTED),
        "needed": (record.get("facts") or {}).get("at_least"),
        "at": None,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _shorten(text: Any, longest: int) -> str:
    """Shorten a text to its beginning, on one line."""
    if text is None:
        return ""
    shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return " ".join(shown[: 2 * longest].split())[:longest]


def has_changed(row: PageRow, other: PageRow | None) -> bool:
    """Tell whether a case has another outcome or other scores in another run."""
    return other is not None and (row["outcome"], row["scores"]) != (other["outcome"], other["scores"])


PageRow = dict[str, Any]
PARTS = (
    *("benchmark", "case", "sample", "epoch", "outcome", "tags", "scores", "cause", "seconds", "tokens", "estimated"),
    *("cost", "asked", "answered", "expected", "needed", "at"),
)
"""The names of a row's parts, in the order in which the page stores them."""


class CaseTable:
    """Rows by case id; if a case is added twice, the later row counts. Closed at the end of its `with` block."""

    def __init__(self) -> None:
        # A database without a name is a temporary file, which keeps only a few megabytes in memory.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute('CREATE TABLE cases ("case" BLOB PRIMARY KEY, benchmark BLOB, row TEXT) WITHOUT ROWID')
        self._database.execute("BEGIN")

    def __enter__(self) -> Self:
        """Return the table itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete the rows."""
        self._database.close()

    def add(self, row: PageRow) -> None:
        """Add a row."""
        values = _encode_key(row["case"]), _encode_key(row["benchmark"]), dumps([row[name] for name in PARTS])
        self._database.execute("INSERT OR REPLACE INTO cases VALUES (?, ?, ?)", values)

    def get(self, case: str) -> PageRow | None:
        """Return the row of a case; None if it has none."""
        stored = self._database.execute('SELECT row FROM cases WHERE "case" = ?', (_encode_key(case),)).fetchone()
        return dict(zip(PARTS, json.loads(stored[0]), strict=True)) if stored else None

    def pieces(self) -> Iterator[str]:
        """Yield a JSON array in pieces: the names of the parts, then all rows, sorted by benchmark and case id."""
        yield f"[{dumps(PARTS)}"
        for (row,) in self._database.execute('SELECT row FROM cases ORDER BY benchmark, "case"'):
            yield f",{row}"
        yield "]"


def _encode_key(text: str) -> bytes:
    # SQLite stores no half of a surrogate pair as text.
    return text.encode("utf-8", "surrogatepass")
