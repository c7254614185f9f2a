"""Records as flat rows of plain values, one a case: what CSV, Parquet and data frames hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.core.types import Record


def flat_row(record: Record) -> dict[str, Any]:
    """One record; tags are columns `tag.NAME`, scores `score.NAME`; several targets are a JSON list."""
    target = record.target
    return {
        "case": record.case,
        "benchmark": record.benchmark,
        "sample": record.sample,
        "epoch": record.epoch,
        "model": record.model,
        "outcome": record.outcome,
        **{f"tag.{name}": value for name, value in record.tags.items()},
        **{f"score.{name}": value for name, value in record.scores.items()},
        "error": record.error,
        "cause": record.cause,
        "calls": record.usage.calls,
        "prompt_tokens": record.usage.prompt_tokens,
        "completion_tokens": record.usage.completion_tokens,
        "cost": record.usage.cost,
        "seconds": record.seconds,
        "input": record.input,
        "target": json.dumps(target, ensure_ascii=False) if isinstance(target, list | tuple) else target,
        "answer": record.transcript.answer if record.transcript else None,
    }


def columns_of(rows: Iterable[dict[str, Any]]) -> Sequence[str]:
    """All columns of rows that need not have the same, in order of first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))
