"""The grid: how the table score responds to known changes of the user's own tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.metaeval.table_changes import CORRUPTIONS, corruptions, rewrites, spelled_out
from evalsuite.metrics.tables import table_score

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.metrics.tables import Format

NEAR_ZERO = 0.05
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class GridLine:
    """One change, over all tables it applies to.

    Attributes:
        change: what was changed.
        rule: what the score must do.
        tables: how many tables were changed so.
        mean: mean score, in [0, 1].
        failures: the tables for which the rule does not hold, each with its score.
    """

    change: str
    rule: str
    tables: int
    mean: float
    failures: tuple[str, ...]


def run_grid(items: Sequence[tuple[str, str, Format]]) -> list[GridLine]:
    """Score every table against changed versions of itself.

    Args:
        items: name, markup and format of each table.

    Raises:
        ScoringError: a table cannot be read.
    """
    scores: dict[tuple[str, str], list[tuple[str, float]]] = {}
    broken: dict[tuple[str, str], list[str]] = {}
    for name, table, written in items:
        for change, rule, score, holds in _checks(table, written):
            scores.setdefault((change, rule), []).append((name, score))
            if not holds:
                broken.setdefault((change, rule), []).append(f"{name} ({score:.3f})")
    # Rewrites as they come, then corruptions from the least to the worst, though few tables have them all.
    keys = sorted(scores, key=lambda key: CORRUPTIONS.index(key[0]) if key[0] in CORRUPTIONS else -1)
    return [
        GridLine(key[0], key[1], len(scores[key]), _mean(scores[key]), tuple(broken.get(key, ())))
        for key in keys
    ]


def _mean(values: Sequence[tuple[str, float]]) -> float:
    return sum(score for _, score in values) / len(values)


def _checks(table: str, written: Format) -> Iterator[tuple[str, str, float, bool]]:
    whole = table_score(table, table, format=written).value
    yield "none", "stays 1", whole, abs(whole - 1) < SLACK
    for change, changed in rewrites(table, written):
        score = table_score(changed, table, format=written).value
        yield change, "stays 1", score, abs(score - 1) < SLACK
    content = table_score(spelled_out(table, written), table, format=written).content
    yield "spans written out", "content stays 1", content, abs(content - 1) < SLACK
    before = content
    for change, changed in corruptions(table, written):
        score = table_score(changed, table, format=written).content
        last = change == CORRUPTIONS[-1]
        if change == "all wrong":
            yield change, f"content at most {NEAR_ZERO:g}", score, score <= NEAR_ZERO
        elif last:
            yield change, "content 0", score, score == 0.0
        else:
            yield change, "content no higher than above", score, score <= before + SLACK
        before = score
