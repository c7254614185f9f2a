"""The cases of a run as the page lists them: columns for each benchmark, and chunks of the records themselves.

The chunks hold lines of `records.jsonl` as they are; each line is parsed once, for its columns, and never
written anew.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalsuite.page.chunks import Chunks

CHUNK = 1 << 20
"""Bytes of records in a chunk: what is loaded to show one case."""

ASKED, ANSWERED, EXPECTED = 160, 160, 80
"""Characters of a case's texts that the list shows."""

PageRow = dict[str, Any]
OUTCOMES = ("passed", "failed", "error", "skipped")


def read_cases(
    file: Path, number: int, chunks: Chunks, keep: Callable[[PageRow], bool] = lambda _row: True
) -> dict[str, PageRow]:
    """Reads a run's records into rows and chunks.

    Args:
        file: the records.
        number: of the run in the page, from 0.
        chunks: take the records.
        keep: whether a case's record goes into the page.

    Returns:
        One row per case, by its id; if a case ran twice, the later record counts.
    """
    rows: dict[str, PageRow] = {}
    lines: list[bytes] = []
    size = chunk = 0
    for line in _whole_lines(file):
        row = _row(json.loads(line))
        rows[row["case"]] = row
        if not keep(row):
            continue
        row["at"] = (chunk, len(lines))
        lines.append(line)
        size += len(line)
        if size >= CHUNK:
            chunks.add(f"r{number}-{chunk}", b"".join(lines))
            lines, size, chunk = [], 0, chunk + 1
    if lines:
        chunks.add(f"r{number}-{chunk}", b"".join(lines))
    return rows


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


def columns(rows: Iterable[PageRow]) -> list[dict[str, Any]]:
    """A table of columns a benchmark, its cases in the order of their ids."""
    groups: dict[str, list[PageRow]] = {}
    for row in rows:
        groups.setdefault(row["benchmark"], []).append(row)
    return [_columns(name, sorted(groups[name], key=lambda row: str(row["case"]))) for name in sorted(groups)]


def _columns(name: str, rows: Sequence[PageRow]) -> dict[str, Any]:
    # Ids differ at their ends; their common beginning is stored once.
    prefix = _common_start([row["case"] for row in rows]) if len(rows) > 1 else ""
    plain = {
        key: [row[key] for row in rows]
        for key in (
            "sample",
            "epoch",
            "outcome",
            "seconds",
            "tokens",
            "cost",
            "asked",
            "answered",
            "expected",
        )
    }
    if any(row["needed"] is not None for row in rows):
        plain["needed"] = [row["needed"] for row in rows]
    return {
        "benchmark": name,
        "prefix": prefix,
        "case": [row["case"][len(prefix) :] for row in rows],
        **plain,
        "cause": _coded([row["cause"] for row in rows]),
        "tags": {
            tag: _coded([row["tags"].get(tag) for row in rows])
            for tag in sorted({tag for row in rows for tag in row["tags"]})
        },
        "scores": {
            metric: [row["scores"].get(metric) for row in rows]
            for metric in dict.fromkeys(metric for row in rows for metric in row["scores"])
        },
        "chunk": [row["at"][0] if row["at"] else -1 for row in rows],
        "line": [row["at"][1] if row["at"] else -1 for row in rows],
    }


def _common_start(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    differing = (place for place, letter in enumerate(first) if letter != last[place : place + 1])
    return first[: next(differing, len(first))]


def _coded(values: Sequence[str | None]) -> dict[str, Any]:
    """Words that repeat, each once, and their numbers; -1 where there is none."""
    words = sorted({value for value in values if value is not None})
    number: dict[str | None, int] = {word: place for place, word in enumerate(words)}
    return {"words": words, "codes": [number.get(value, -1) for value in values]}
