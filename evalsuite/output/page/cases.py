"""The cases of a run as the page lists them: a row each, and chunks of the records themselves.

The chunks hold lines of `records.jsonl` as they are; each line is parsed once, for its columns, and never
written anew.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from evalsuite.output.page.case_table import CaseTable, PageRow
    from evalsuite.output.page.chunks import Chunks

CHUNK = 1 << 20
"""Bytes of records in a chunk: what is loaded to show one case."""

ASKED, ANSWERED, EXPECTED = 160, 160, 80
"""Characters of a case's texts that the list shows."""

OUTCOMES = ("passed", "failed", "error", "skipped")


def read_cases(
    file: Path,
    number: int,
    chunks: Chunks,
    table: CaseTable,
    keep: Callable[[PageRow], bool] = lambda _row: True,
) -> None:
    """Reads a run's records into rows and chunks.

    Args:
        file: the records.
        number: of the run in the page, from 0.
        chunks: take the records.
        table: takes the rows.
        keep: whether a case's record goes into the page.
    """
    lines: list[bytes] = []
    size = chunk = 0
    for line in _whole_lines(file):
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


def _whole_lines(file: Path) -> Iterator[bytes]:
    """Lines with an end; one without is being written, or its run died."""
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
    """The beginning of a text, in one line."""
    if text is None:
        return ""
    shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return " ".join(shown[: 2 * longest].split())[:longest]


def has_changed(row: PageRow, other: PageRow | None) -> bool:
    """Whether a case came to something else in another run."""
    return other is not None and (row["outcome"], row["scores"]) != (other["outcome"], other["scores"])
