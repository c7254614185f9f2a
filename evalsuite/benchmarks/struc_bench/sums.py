"""Sums and differences among the cells of a table: Lead = Points - Opponents, Total = the quarters together."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.cell_values import value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Numbers = Sequence[Sequence[float | None]]

MOST_COLUMNS = 16
"""Of wider tables only as many lines are looked through: each pair is tried with each other line."""
TOLERANCE = 1e-6
FEWEST_LINES = 2
"""In a single line, two small numbers make a third one by chance."""


def sums_held(predicted: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> list[bool]:
    """For each sum that a wanted table's lines form, whether it holds among the predicted cells as well.

    A line, a row or a column, is the sum of two others, or of all others, if it is in each place across where all
    of them have numbers, in two places at least. A difference is a sum seen from another of its lines. Each place
    counts for itself.

    Args:
        predicted: data cells in the wanted arrangement; empty where there is no table.
        wanted: data cells, all rows equally long.
    """
    numbers = [[_number(cell) for cell in row] for row in wanted]
    answered = [[_number(cell) for cell in row] for row in predicted]
    if not answered:
        answered = [[None] * len(row) for row in numbers]
    return [*_held(answered, numbers), *_held(_turned(answered), _turned(numbers))]


def _held(predicted: Numbers, wanted: Numbers) -> Iterator[bool]:
    for total, parts in _sums(wanted):
        for row, answered in zip(wanted, predicted, strict=True):
            if _is_sum(row, total, parts):
                yield _is_sum(answered, total, parts) is True


def _sums(rows: Numbers) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The columns that are sums, each with those it is the sum of."""
    columns = range(min(len(rows[0]), MOST_COLUMNS) if rows else 0)
    for total in columns:
        others = [column for column in columns if column != total]
        whole = [tuple(others)] if len(others) > 2 else []
        for parts in (*combinations(others, 2), *whole):
            if _is_sum_throughout(rows, total, parts):
                yield total, parts


def _is_sum_throughout(rows: Numbers, total: int, parts: tuple[int, ...]) -> bool:
    lines = 0
    for row in rows:
        verdict = _is_sum(row, total, parts)
        if verdict is False:
            return False
        lines += verdict is True
    return lines >= FEWEST_LINES


def _is_sum(row: Sequence[float | None], total: int, parts: tuple[int, ...]) -> bool | None:
    """Whether it is the sum in this row; None where a number is missing, or one that changes nothing is added."""
    whole, values = row[total], [row[part] for part in parts]
    numbers = [value for value in values if value]
    if whole is None or len(numbers) < len(values):
        return None
    return abs(whole - sum(numbers)) <= TOLERANCE * max(1.0, abs(whole))


def _turned(rows: Numbers) -> list[tuple[float | None, ...]]:
    return list(zip(*rows, strict=True))


def _number(cell: str) -> float | None:
    try:
        number = float(value_of(cell))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
