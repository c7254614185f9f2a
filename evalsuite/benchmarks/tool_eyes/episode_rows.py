"""Small readings of a line's cases: headings, episodes, means over repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalsuite.results.rows import Row
    from evalsuite.results.tally import Tally


def named(metric: str) -> str:
    """A metric's name as a heading."""
    return metric.replace("_", " ").capitalize()


def episodes(tally: Tally) -> list[Row]:
    """The rows with an episode."""
    return [row for row in tally if row.outcome != "error" and "turns" in row.facts]


def by_sample(tally: Tally, metric: str) -> dict[str, float]:
    """The mean over each sample's repetitions."""
    scores: dict[str, list[float]] = {}
    for row in tally.scored(metric):
        scores.setdefault(row.sample, []).append(row.scores[metric])
    return {sample: sum(values) / len(values) for sample, values in scores.items()}
