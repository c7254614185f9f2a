"""Tables as a reader wants them: without columns that nothing was measured for, the best value in bold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.output.reports.section import Cell, Table


def without_unmeasured(table: Table) -> Table:
    """The table without columns that hold nothing but dashes; a note names them.

    Where nothing at all was measured they stay: a table without them would not say so.
    """
    empty = [
        place
        for place, column in enumerate(table.columns)
        if column.style != "text" and all(row[place] is None for row in table.rows)
    ]
    if not empty or not table.rows or len(empty) == sum(column.style != "text" for column in table.columns):
        return table
    names = ", ".join(table.columns[place].title for place in empty)
    kept = [place for place in range(len(table.columns)) if place not in empty]
    return replace(
        table,
        columns=[table.columns[place] for place in kept],
        rows=[[row[place] for place in kept] for row in table.rows],
        note=f"{table.note} Not measured: {names}.".strip(),
    )


def best_of(cells: Iterable[Cell], *, lower_is_better: bool) -> float | None:
    """The best of some numbers, unrounded; None where fewer than two were measured, or all are the same."""
    values = [cell.value if isinstance(cell, Estimate) else cell for cell in cells]
    numbers = [value for value in values if isinstance(value, float | int)]
    if len(numbers) < 2 or min(numbers) == max(numbers):
        return None
    return min(numbers) if lower_is_better else max(numbers)


def distinct(metrics: Sequence[str], values: Sequence[Sequence[object]]) -> tuple[list[str], list[str]]:
    """Metrics that say something of their own, and a line for each that repeats another.

    Args:
        metrics: their names.
        values: all values of each, in one order.
    """
    kept: dict[tuple[object, ...], str] = {}
    repeated = []
    for metric, its in zip(metrics, values, strict=True):
        first = kept.setdefault(tuple(its), metric)
        if first != metric:
            repeated.append(f"{metric} has the values of {first}")
    return list(kept.values()), repeated
