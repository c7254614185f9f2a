"""The cases of a run for the page: one row per case, and chunks of the records.

The chunks contain unchanged lines of `records.jsonl`; each line is parsed once for its columns and never
rewritten.
"""

from __future__ import annotations

import json
import math
import sqlite3
from array import array
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from evalsuite.output.page.document import Chunks


CHUNK = 1 << 20  # Bytes of records in one chunk, which the browser loads to show one case.
ASKED, ANSWERED, EXPECTED = 160, 160, 80  # Maximum characters of a case's texts that the list shows.
OUTCOMES = ("passed", "failed", "error", "skipped")


def read_cases(
    file: Path, number: int, chunks: Chunks, table: CaseTable, keep: Callable[[PageRow], bool] = lambda _row: True
) -> None:
    """Read a run's records into rows and chunks."""
    lines: list[bytes] = []
    size = chunk = 0
    for line in _list_whole_lines(file):
        row = _row(json.loads(line))
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


def _row(record: Mapping[str, Any]) -> PageRow:
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
        "asked": _start(record.get("input"), ASKED),
        "answered": _start(transcript.get("answer") or record.get("error"), ANSWERED),
        "expected": _start(record.get("target"), EXPECTED),
        "needed": (record.get("facts") or {}).get("at_least"),
        "at": None,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _start(text: Any, longest: int) -> str:
    """Shorten a text to its beginning, on one line."""
    if text is None:
        return ""
    shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return " ".join(shown[: 2 * longest].split())[:longest]


def has_changed(row: PageRow, other: PageRow | None) -> bool:
    """Tell whether a case has another outcome or other scores in another run."""
    return other is not None and (row["outcome"], row["scores"]) != (other["outcome"], other["scores"])


PageRow = dict[str, Any]
PLAIN = ("sample", "epoch", "outcome", "seconds", "tokens", "estimated", "cost", "asked", "answered", "expected")
"""Parts of a row that become one column each, without changes."""

IN_MEMORY = 1 << 18  # Bytes of a column that are kept in memory before it is written to a file.
AT_ONCE = 200  # Values that are written together, because writing them one by one costs five times as much.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


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
        # JSON escapes half of a surrogate pair, which SQLite cannot store.
        values = _key(row["case"]), _key(row["benchmark"]), json.dumps(row)
        self._database.execute("INSERT OR REPLACE INTO cases VALUES (?, ?, ?)", values)

    def get(self, case: str) -> PageRow | None:
        """Return the row of a case; None if it has none."""
        stored = self._database.execute('SELECT row FROM cases WHERE "case" = ?', (_key(case),)).fetchone()
        return json.loads(stored[0]) if stored else None

    def columns(self) -> Iterator[str]:
        """Yield JSON in pieces: one table of columns per benchmark, with its cases sorted by id."""
        names = self._database.execute("SELECT DISTINCT benchmark FROM cases ORDER BY benchmark").fetchall()
        yield "["
        for place, (name,) in enumerate(names):
            yield "," if place else ""
            yield from self._table(name)
        yield "]"

    def _table(self, name: bytes) -> Iterator[str]:
        first, last, count = self._database.execute(
            'SELECT min("case"), max("case"), count(*) FROM cases WHERE benchmark = ?', (name,)
        ).fetchone()
        # Ids differ at their ends, so their common beginning is stored once.
        prefix = _common_start(_write_text(first), _write_text(last)) if count > 1 else ""
        columns = _Columns(len(prefix))
        rows = self._database.execute('SELECT row FROM cases WHERE benchmark = ? ORDER BY "case"', (name,))
        for (row,) in rows:
            columns.add(json.loads(row))
        yield f'{{"benchmark":{_encode(_write_text(name))},"prefix":{_encode(prefix)},'
        yield from columns.pieces()
        yield "}"


def _key(text: str) -> bytes:
    return str(text).encode("utf-8", "surrogatepass")


def _write_text(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")


def _common_start(first: str, last: str) -> str:
    """Return the common beginning of sorted texts, given the first and the last."""
    differing = (place for place, letter in enumerate(first) if letter != last[place : place + 1])
    return first[: next(differing, len(first))]


class _ValueColumn:
    """Values of one column as JSON; a long column is stored in a file."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8", errors="surrogatepass")  # noqa: SIM115 - closed by `pieces`
        self._count, self._waiting = 0, list[Any]()

    def add(self, value: Any) -> None:
        self._waiting.append(value)
        self._count += 1
        if len(self._waiting) == AT_ONCE:
            self._write()

    def _write(self) -> None:
        separator = "," if self._count > len(self._waiting) else ""
        self._file.write(separator + _encode(self._waiting)[1:-1])
        self._waiting = []

    def fill(self, count: int) -> None:
        """Add nulls up to this number of values."""
        for _ in range(count - self._count):
            self.add(None)

    def pieces(self, name: str) -> Iterator[str]:
        """Yield the column as a member of a JSON object, and close its file."""
        if self._waiting:
            self._write()
        yield f"{_encode(name)}:["
        self._file.seek(0)
        while piece := self._file.read(IN_MEMORY):
            yield piece
        self._file.close()
        yield "]"


class _WordColumn:
    """A column of repeated words: each word once, and its number per row; -1 for a missing one."""

    def __init__(self) -> None:
        self._numbers, self._codes = dict[str, int](), array("i")

    def add(self, word: str | None) -> None:
        self._codes.append(-1 if word is None else self._numbers.setdefault(word, len(self._numbers)))

    def fill(self, count: int) -> None:
        """Add missing values up to this number of rows."""
        self._codes.extend([-1] * (count - len(self._codes)))

    def pieces(self, name: str) -> Iterator[str]:
        """Yield the column as a member of a JSON object."""
        words = sorted(self._numbers)
        places = {self._numbers[word]: place for place, word in enumerate(words)} | {-1: -1}
        yield f'{_encode(name)}:{{"words":{_encode(words)},"codes":['
        yield ",".join(str(places[code]) for code in self._codes)
        yield "]}"


class _Columns:
    """One benchmark's columns, filled row by row."""

    def __init__(self, prefix: int) -> None:
        self._prefix, self._count = prefix, 0
        self._plain = {name: _ValueColumn() for name in ("case", *PLAIN, "chunk", "line")}
        self._cause = _WordColumn()
        self._tags, self._scores = dict[str, _WordColumn](), dict[str, _ValueColumn]()
        self._needed: _ValueColumn | None = None

    def add(self, row: PageRow) -> None:
        plain, at = self._plain, row["at"] or (-1, -1)
        plain["case"].add(row["case"][self._prefix :])
        for name in PLAIN:
            plain[name].add(row[name])
        if row["needed"] is not None:
            self._needed = self._needed or _ValueColumn()
            self._needed.fill(self._count)
            self._needed.add(row["needed"])
        plain["chunk"].add(at[0])
        plain["line"].add(at[1])
        self._cause.add(row["cause"])
        for tag, value in row["tags"].items():
            words = self._tags.setdefault(tag, _WordColumn())
            words.fill(self._count)
            words.add(value)
        for metric, score in row["scores"].items():
            if metric not in self._scores:
                self._scores[metric] = _ValueColumn()
            self._scores[metric].fill(self._count)
            self._scores[metric].add(score)
        self._count += 1

    def pieces(self) -> Iterator[str]:
        """Yield the columns as members of a JSON object."""
        for words in self._tags.values():
            words.fill(self._count)
        for values in (*self._scores.values(), *((self._needed,) if self._needed else ())):
            values.fill(self._count)
        first = [self._plain[name].pieces(name) for name in ("case", *PLAIN)]
        tags = [self._tags[tag].pieces(tag) for tag in sorted(self._tags)]
        scores = [column.pieces(metric) for metric, column in self._scores.items()]
        members: Sequence[Iterable[str]] = [
            *first,
            *((self._needed.pieces("needed"),) if self._needed else ()),
            self._cause.pieces("cause"),
            _list_object("tags", tags),
            _list_object("scores", scores),
            self._plain["chunk"].pieces("chunk"),
            self._plain["line"].pieces("line"),
        ]
        yield from _join(members)


def _join(members: Sequence[Iterable[str]]) -> Iterator[str]:
    for place, member in enumerate(members):
        yield "," if place else ""
        yield from member


def _list_object(name: str, members: Sequence[Iterable[str]]) -> Iterator[str]:
    yield f"{_encode(name)}:{{"
    yield from _join(members)
    yield "}"
