"""Which table is compared with which, and the mean over the wanted ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.metrics.tables.table_score import match_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.metrics.tables.grid import CellGrid
    from evalsuite.metrics.tables.names import Format


def mean_over_tables(
    prediction: str, reference: str, written: Format, compare: Callable[[CellGrid, CellGrid], float]
) -> float:
    """The mean of a comparison over the wanted tables; one for which nothing was predicted counts 0.0.

    Raises:
        ScoringError: the reference holds no table that can be read.
    """
    match = match_tables(prediction, reference, format=written)
    scores = [
        compare(match.predicted.tables[pair.predicted], match.wanted.tables[pair.wanted])
        if pair.predicted is not None
        else 0.0
        for pair in match.content.pairs
    ]
    return sum(scores) / len(scores)
