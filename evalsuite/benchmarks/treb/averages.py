"""Means computed as in the paper: over cases, then subtasks, then columns of skill and mode.

The paper's printed numbers show that the overall score is the plain mean of the columns, and that a column is the mean
of its subtasks (docs/treb.md).
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

from evalsuite.benchmarks.treb.records import COLUMN_OF, COLUMNS
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.results.tally import Row, Tally

AverageColumn = tuple[str, str]
# The metrics of the paper's tables, with their titles.
METRICS = {"rouge_l": "ROUGE-L", "bleu": "BLEU", "judge": "Judge", "exact_match": "Exact match of numbers"}
# The same metrics as computed by the authors' code, which was used for the published rows.
RELEASED = {
    "rouge_l_released": "ROUGE-L as released",
    "bleu_released": "BLEU as released",
    "exact_match_released": "Exact match as released",
}


def columns_of(metric: str) -> tuple[AverageColumn, ...]:
    """List a metric's columns (skill, mode) in the paper's table; exact match has none for NLU."""
    return tuple(column for column in COLUMNS if not metric.startswith("exact_match") or column[0] != "NLU")


def column_of(row: Row) -> AverageColumn:
    """Return the column to which a case belongs."""
    return row.tags["skill"], COLUMN_OF[row.tags["mode"]]


def column_mean(tally: Tally, metric: str, column: AverageColumn) -> float | None:
    """Average the subtasks of a column that have a measured case; None if no subtask has one."""
    scored = tally.scored(metric).where(lambda row: column_of(row) == column)
    return _mean([cases.mean(metric) or 0.0 for cases in scored.groups("subtask").values()])


def overall(tally: Tally, metric: str, confidence: float = 0.95) -> Estimate | None:
    """Average the measured columns, with a normal interval that is never of zero width.

    The mean is a weighted sum of cases. The modes and epochs of one record form one cluster. Records vary
    only within their subtask, because the 26 subtasks are fixed. If a subtask has a single record, the
    estimate has no interval.

    If all records of each subtask score alike, the observed spread is zero, although the true spread may not
    be. Records that are right with probabilities p are all right with a probability of at most exp(-sum(1 -
    p)). With a weight of at most w per record, a true mean lower by w ln(2 / (1 - confidence)) or more
    therefore has at most half of the error probability; the same holds upwards. Every interval of 0/1 scores
    reaches at least that far, so a wrong answer never narrows it.
    """
    columns = columns_of(metric)
    scored = tally.scored(metric).where(lambda row: column_of(row) in columns)
    if not len(scored):
        return None
    weighted = list(zip(scored, _weights(scored), strict=True))
    value = math.fsum(weight * row.scores[metric] for row, weight in weighted)
    # The cases and their weights by subtask and record.
    records: dict[str, dict[str, list[tuple[Row, float]]]] = defaultdict(lambda: defaultdict(list))
    for row, weight in weighted:
        records[row.tags["subtask"]][row.cluster].append((row, weight))
    if any(len(cases) < 2 for cases in records.values()):
        return Estimate(value, n=len(scored))
    totals = [
        [math.fsum(weight * row.scores[metric] for row, weight in cases) for cases in by_record.values()]
        for by_record in records.values()
    ]
    error = math.sqrt(math.fsum(map(_compute_variance_of_sum, totals)))
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    if error == 0 or all(row.scores[metric] in {0, 1} for row in scored):
        heaviest = max(math.fsum(weight for _, weight in cases) for each in records.values() for cases in each.values())
        reach = max(reach, heaviest * math.log(2 / (1 - confidence)))
    return Estimate(value, max(0.0, value - reach), min(1.0, value + reach), len(scored))


# For gates (`treb.overall_judge`), because a plain mean over cases would weight subtasks by their size.
OVERALLS = {f"overall_{metric}": partial(overall, metric=metric) for metric in METRICS}


def _weights(scored: Iterable[Row]) -> list[float]:
    """Weight each case by 1 / (columns x subtasks in its column x cases of its subtask in that column)."""
    cells: dict[AverageColumn, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in scored:
        cells[column_of(row)][row.tags["subtask"]] += 1
    return [
        1 / (len(cells) * len(cells[column_of(row)]) * cells[column_of(row)][row.tags["subtask"]]) for row in scored
    ]


def _compute_variance_of_sum(parts: Sequence[float]) -> float:
    mean, count = _mean(parts) or 0.0, len(parts)
    return count / (count - 1) * math.fsum((part - mean) ** 2 for part in parts)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
