"""RMS: a table as a set of mappings from the names of a row and a column to a value.

Source: Liu et al., DePlot: One-shot visual language reasoning by plot-to-table translation (arXiv
2212.10505). The thresholds are those of the released code: half the length for texts, a tenth for numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables.grits import mean_over_tables
from evalsuite.metrics.tables.table_score import match_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from evalsuite.metrics.tables.grid import CellGrid, Format

    Element = tuple[str, ...]


TEXT_THRESHOLD = 0.5
NUMBER_THRESHOLD = 0.1
MOST_POINTS = 2_000


def rms(prediction: str, reference: str, *, format: Format) -> float:  # noqa: A002
    """Compute the F1 of RMS, for the predicted table or its transpose, whichever is higher.

    Raises:
        ScoringError: the reference contains no readable table, or a table has more values than can be paired
            in a few seconds.
    """
    return mean_over_tables(prediction, reference, format, _rms)


def _rms(predicted: CellGrid, wanted: CellGrid) -> float:
    target = _points(wanted.rows, wanted.name)
    width = predicted.width
    filled = [[*row, *[""] * (width - len(row))] for row in predicted.rows]
    return max(
        _f1_of_points(_points(rows, predicted.name), target) for rows in (filled, list(zip(*filled, strict=True)))
    )


def _points(rows: Sequence[Sequence[str]], title: str) -> dict[str, str]:
    points = {"title": title.lower()} if title else {}
    head = rows[0] if len(rows) > 1 and len(rows[0]) > 1 else ()
    for row in rows[1:]:
        for name, cell in zip(head[1:], row[1:], strict=False):
            points[f"{row[0]} {name}".lower()] = cell.lower()
    return points


def _f1_of_points(predicted: dict[str, str], wanted: dict[str, str]) -> float:
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    if not predicted or not wanted:
        return float(not predicted and not wanted)
    if max(len(predicted), len(wanted)) > MOST_POINTS:
        raise ScoringError(f"RMS pairs at most {MOST_POINTS} values, not {max(len(predicted), len(wanted))}")
    names, others = list(wanted), list(predicted)
    alike = np.array([[_text_similarity(name, other) for other in others] for name in names])
    score = sum(
        alike[one, two] * _value_similarity(wanted[names[one]], predicted[others[two]])
        for one, two in zip(*linear_sum_assignment(alike, maximize=True), strict=True)
    )
    return float(2 * score / (len(wanted) + len(predicted)))


def _text_similarity(one: str, two: str) -> float:
    """Return one minus the edit distance divided by the longer length; 0.0 from the threshold on."""
    import Levenshtein

    distance = Levenshtein.distance(one, two) / max(len(one), len(two), 1)
    return 1.0 - distance if distance < TEXT_THRESHOLD else 0.0


def _value_similarity(wanted: str, predicted: str) -> float:
    target, number = _number(wanted), _number(predicted)
    if number is not None and target:
        distance = min(abs((target - number) / target), 1.0)
        return 1.0 - distance if distance < NUMBER_THRESHOLD else 0.0
    return 1.0 if wanted == predicted else _text_similarity(wanted, predicted)


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class CellF1:
    """Three F1 values in [0, 1]: names of rows, names of columns, and all other cells."""

    rows: float
    columns: float
    cells: float


def cell_f1(
    prediction: str,
    reference: str,
    *,
    format: Format,  # noqa: A002
    similarity: Literal["exact", "chrf"] = "exact",
) -> CellF1:
    """Compare the elements of each wanted table with those of its predicted table; return the means.

    Raises:
        ScoringError: the reference contains no readable table.
    """
    match = match_tables(prediction, reference, format=format)
    compare = _exact if similarity == "exact" else _chrf
    totals = [0.0, 0.0, 0.0]
    for pair in match.content.pairs:
        wanted = _elements(match.wanted.tables[pair.wanted])
        predicted = (
            _elements(match.predicted.tables[pair.predicted]) if pair.predicted is not None else (set(), set(), set())
        )
        for place in range(3):
            totals[place] += _f1_of_elements(predicted[place], wanted[place], compare)
    return CellF1(*(total / len(match.content.pairs) for total in totals))


def _elements(table: CellGrid) -> tuple[set[Element], set[Element], set[Element]]:
    head = table.columns
    rows: set[Element] = {(row[0] if row else "",) for row in table.rows[1:]}
    columns: set[Element] = {(name,) for name in head[1:]}
    cells: set[Element] = {
        (row[0], name, cell) for row in table.rows[1:] for name, cell in zip(head[1:], row[1:], strict=False) if cell
    }
    return rows, columns, cells


def _f1_of_elements(
    predicted: Collection[Element], wanted: Collection[Element], compare: Callable[[str, str], float]
) -> float:
    if not predicted or not wanted:
        return float(not predicted and not wanted)
    if compare is _exact:
        shared = len(set(predicted) & set(wanted))
        return 2 * shared / (len(predicted) + len(wanted))
    alike = [[_product(one, two, compare) for two in wanted] for one in predicted]
    precision = sum(map(max, alike)) / len(predicted)
    recall = sum(map(max, zip(*alike, strict=True))) / len(wanted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _product(one: Element, two: Element, compare: Callable[[str, str], float]) -> float:
    product = 1.0
    for left, right in zip(one, two, strict=True):
        product *= compare(left, right)
        if not product:
            break
    return product


def _exact(one: str, two: str) -> float:
    return float(one == two)


@lru_cache(maxsize=65_536)
def _chrf(one: str, two: str) -> float:
    from sacrebleu import sentence_chrf

    return float(sentence_chrf(one, [two]).score) / 100
