"""The F1 of text-to-table: of the names of rows, the names of columns, and the cells with both.

Source: Wu, Zhang and Li, Text-to-table: a new way of information extraction (arXiv 2109.02707): sets are compared,
so order does not count; each element counts by the most similar one on the other side, either exactly or by chrF.
As in the code released with it, a blank name is a name like any other, and a blank cell is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from evalsuite.metrics.tables.table_score import match_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from evalsuite.metrics.tables.grid import CellGrid
    from evalsuite.metrics.tables.names import Format

    Element = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CellF1:
    """Three values of F1 in [0, 1]: names of rows, names of columns, and cells that are neither."""

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
    """Compares the elements of all wanted tables, each table's with those of its partner; the mean is given.

    Raises:
        ScoringError: the reference holds no table that can be read.
    """
    match = match_tables(prediction, reference, format=format)
    compare = _exact if similarity == "exact" else _chrf
    totals = [0.0, 0.0, 0.0]
    for pair in match.content.pairs:
        wanted = _elements(match.wanted.tables[pair.wanted])
        predicted = (
            _elements(match.predicted.tables[pair.predicted])
            if pair.predicted is not None
            else (set(), set(), set())
        )
        for place in range(3):
            totals[place] += _f1(predicted[place], wanted[place], compare)
    return CellF1(*(total / len(match.content.pairs) for total in totals))


def _elements(table: CellGrid) -> tuple[set[Element], set[Element], set[Element]]:
    head = table.columns
    rows: set[Element] = {(row[0] if row else "",) for row in table.rows[1:]}
    columns: set[Element] = {(name,) for name in head[1:]}
    cells: set[Element] = {
        (row[0], name, cell)
        for row in table.rows[1:]
        for name, cell in zip(head[1:], row[1:], strict=False)
        if cell
    }
    return rows, columns, cells


def _f1(
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
