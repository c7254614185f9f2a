"""GriTS and the mean over wanted tables: which tables are compared with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables.sequences import matching_ratio
from evalsuite.metrics.tables.table_score import match_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evalsuite.metrics.tables.grid import CellGrid, Format

    Rewards = NDArray[np.float64]


def mean_over_tables(
    prediction: str, reference: str, written: Format, compare: Callable[[CellGrid, CellGrid], float]
) -> float:
    """Average a comparison over the wanted tables; a wanted table without a predicted one counts 0.0.

    Raises:
        ScoringError: the reference contains no readable table.
    """
    match = match_tables(prediction, reference, format=written)
    scores = [
        compare(match.predicted.tables[pair.predicted], match.wanted.tables[pair.wanted])
        if pair.predicted is not None
        else 0.0
        for pair in match.content.pairs
    ]
    return sum(scores) / len(scores)


MOST_COMPARISONS = 20_000_000
"""Maximum pairs of cells, because memory and time grow with them: two tables of 200 by 20 cells have 16 million."""
Box = tuple[int, int, int, int]


def grits_content(prediction: str, reference: str, *, format: Format) -> float:  # noqa: A002
    """Compute the GriTS of content, which compares cells by difflib's ratio.

    Raises:
        ScoringError: the reference contains no readable table, or the tables are too large for this
            definition.
    """
    return mean_over_tables(prediction, reference, format, _content)


def grits_topology(prediction: str, reference: str, *, format: Format) -> float:  # noqa: A002
    """Compute the GriTS of topology, which compares cells by the overlap of the places that they cover.

    Raises:
        ScoringError: as for `grits_content`.
    """
    return mean_over_tables(prediction, reference, format, _topology)


def _content(predicted: CellGrid, wanted: CellGrid) -> float:
    grids = [[[*row, *[""] * (table.width - len(row))] for row in table.rows] for table in (wanted, predicted)]
    return _grits(grids[0], grids[1], matching_ratio)


def _topology(predicted: CellGrid, wanted: CellGrid) -> float:
    return _grits(_boxes(wanted), _boxes(predicted), _overlap)


def _boxes(table: CellGrid) -> list[list[Box]]:
    """Return for each place the extent of the cell that covers it, relative to that place."""
    boxes: list[list[Box]] = [[(0, 0, 1, 1)] * table.width for _ in table.rows]
    for span in table.spans:
        for row in range(span.row, min(span.row + span.rows, len(boxes))):
            for column in range(span.column, min(span.column + span.columns, table.width)):
                left, top = span.column - column, span.row - row
                boxes[row][column] = (left, top, left + span.columns, top + span.rows)
    return boxes


def _overlap(one: Box, two: Box) -> float:
    width = min(one[2], two[2]) - max(one[0], two[0])
    height = min(one[3], two[3]) - max(one[1], two[1])
    shared = max(0, width) * max(0, height)
    both = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, two)) - shared
    return shared / both


def _grits(
    wanted: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]], similarity: Callable[[Any, Any], float]
) -> float:
    import numpy as np

    sizes = [len(grid) * len(grid[0]) for grid in (wanted, predicted)]
    if sizes[0] * sizes[1] > MOST_COMPARISONS:
        raise ScoringError(f"GriTS compares each cell with each other: {sizes[0]} times {sizes[1]} cells are too many")
    numbers = [
        {cell: place for place, cell in enumerate(dict.fromkeys(cell for row in grid for cell in row))}
        for grid in (wanted, predicted)
    ]
    rewards = np.array([[similarity(one, two) for two in numbers[1]] for one in numbers[0]])
    codes = [
        np.array([[number[cell] for cell in row] for row in grid])
        for grid, number in zip((wanted, predicted), numbers, strict=True)
    ]
    # The axes are wanted row, predicted row, wanted column, predicted column.
    cells = rewards[codes[0][:, None, :, None], codes[1][None, :, None, :]]
    rows = _align_lines(_best_sums(cells))
    columns = _align_lines(_best_sums(cells.transpose(2, 3, 0, 1)))
    total = sum(cells[one, two, here, there] for one, two in rows for here, there in columns)
    return float(2 * total / (sizes[0] + sizes[1]))


def _best_sums(cells: Rewards) -> Rewards:
    """Compute the reward of aligning each pair of lines, cell by cell."""
    import numpy as np

    best = np.zeros((cells.shape[3] + 1, *cells.shape[:2]))
    for here in range(cells.shape[2]):
        above = best.copy()
        for there in range(cells.shape[3]):
            best[there + 1] = np.maximum(
                np.maximum(above[there + 1], best[there]), above[there] + cells[:, :, here, there]
            )
    sums: Rewards = best[-1]
    return sums


def _align_lines(rewards: Rewards) -> list[tuple[int, int]]:
    """Find the best alignment of lines; among equal ones, aligning a pair is preferred, as in the authors' code."""
    import numpy as np

    height, width = rewards.shape
    best = np.zeros((height + 1, width + 1))
    step = np.zeros((height + 1, width + 1), dtype=int)
    for row in range(1, height + 1):
        for column in range(1, width + 1):
            ways = (
                best[row - 1, column - 1] + rewards[row - 1, column - 1],
                best[row - 1, column],
                best[row, column - 1],
            )
            best[row, column] = max(ways)
            step[row, column] = ways.index(max(ways))
    pairs, row, column = list[tuple[int, int]](), height, width
    while row and column:
        way = step[row, column]
        if way == 0:
            pairs.append((row - 1, column - 1))
        row, column = row - (way != 2), column - (way != 1)
    return pairs[::-1]
