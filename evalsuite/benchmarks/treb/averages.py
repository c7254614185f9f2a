"""Means as the paper takes them: over cases, then subtasks, then skill x mode columns.

That the overall is the plain mean of the columns, and a column the mean of its subtasks, can be read off
the paper's printed numbers: see docs/treb.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

from evalsuite.benchmarks.treb.subtasks import COLUMN_OF, COLUMNS
from evalsuite.results.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.results.rows import Row
    from evalsuite.results.tally import Tally

AverageColumn = tuple[str, str]
# The metrics that the paper's tables are made of, with their titles.
METRICS = {
    "rouge_l": "ROUGE-L",
    "bleu": "BLEU",
    "judge": "Judge",
    "exact_match": "Exact match of numbers",
}
# The same as the authors' code has them, which is what published rows were made with.
RELEASED = {
    "rouge_l_released": "ROUGE-L as released",
    "bleu_released": "BLEU as released",
    "exact_match_released": "Exact match as released",
}


def columns_of(metric: str) -> tuple[AverageColumn, ...]:
    """The columns (skill, mode) of the paper's table for a metric: that of exact match is without NLU."""
    return tuple(column for column in COLUMNS if not metric.startswith("exact_match") or column[0] != "NLU")


def column_of(row: Row) -> AverageColumn:
    """The column that a case counts in."""
    return row.tags["skill"], COLUMN_OF[row.tags["mode"]]


def column_mean(tally: Tally, metric: str, column: AverageColumn) -> float | None:
    """The mean over the subtasks of a column that have a measured case; None where none has."""
    scored = tally.scored(metric).where(lambda row: column_of(row) == column)
    return _mean([cases.mean(metric) or 0.0 for cases in scored.groups("subtask").values()])


def overall(tally: Tally, metric: str, confidence: float = 0.95) -> Estimate | None:
    """The mean over the measured columns, with a normal interval, and never one of no width.

    It is a weighted sum of cases; the modes and epochs of one record are one cluster, and records vary
    within their subtask only, of which there are always the same 26. No interval is given where a subtask
    has a single record.

    Where every record of a subtask scores alike, no spread is seen, which is no proof of none. Records that are right
    with probabilities p are all right with a probability of at most exp(-sum(1 - p)), so that with a weight of at
    most w for each, a true mean lower by w ln(2 / (1 - confidence)) or more leaves at most half of the error
    probability; likewise upwards. No interval of rights and wrongs reaches less far, so that a wrong answer never
    narrows it.
    """
    columns = columns_of(metric)
    scored = tally.scored(metric).where(lambda row: column_of(row) in columns)
    if not len(scored):
        return None
    weights = _weights(scored)
    records = _records(scored, weights)
    value = math.fsum(weight * row.scores[metric] for row, weight in zip(scored, weights, strict=True))
    if any(len(cases) < 2 for cases in records.values()):
        return Estimate(value, n=len(scored))
    error = math.sqrt(math.fsum(_variance_of_sum(_totals(cases, metric)) for cases in records.values()))
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    if error == 0 or all(row.scores[metric] in {0, 1} for row in scored):
        reach = max(reach, _heaviest(records) * math.log(2 / (1 - confidence)))
    return Estimate(value, max(0.0, value - reach), min(1.0, value + reach), len(scored))


# For gates: `treb.overall_judge`; a plain mean over cases would weigh subtasks by their size.
OVERALLS = {f"overall_{metric}": partial(overall, metric=metric) for metric in METRICS}


def _weights(scored: Iterable[Row]) -> list[float]:
    """What each case counts for: 1 / (columns x subtasks in its column x cases of its subtask there)."""
    cells: dict[AverageColumn, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in scored:
        cells[column_of(row)][row.tags["subtask"]] += 1
    return [
        1 / (len(cells) * len(cells[column_of(row)]) * cells[column_of(row)][row.tags["subtask"]])
        for row in scored
    ]


def _records(
    scored: Iterable[Row], weights: Sequence[float]
) -> dict[str, dict[str, list[tuple[Row, float]]]]:
    """The cases of each record with their weights, by subtask."""
    records: dict[str, dict[str, list[tuple[Row, float]]]] = defaultdict(lambda: defaultdict(list))
    for row, weight in zip(scored, weights, strict=True):
        records[row.tags["subtask"]][row.cluster].append((row, weight))
    return records


def _heaviest(records: Mapping[str, Mapping[str, Sequence[tuple[Row, float]]]]) -> float:
    """The greatest weight of a record, over all of its cases."""
    return max(
        math.fsum(weight for _, weight in cases) for each in records.values() for cases in each.values()
    )


def _totals(records: Mapping[str, Sequence[tuple[Row, float]]], metric: str) -> list[float]:
    """What each record of a subtask adds to the overall."""
    return [math.fsum(weight * row.scores[metric] for row, weight in cases) for cases in records.values()]


def _variance_of_sum(parts: Sequence[float]) -> float:
    mean, count = _mean(parts) or 0.0, len(parts)
    return count / (count - 1) * math.fsum((part - mean) ** 2 for part in parts)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
