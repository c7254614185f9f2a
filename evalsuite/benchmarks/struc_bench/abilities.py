"""Compare an answer's tables with the wanted tables; compute types of errors and the paper's ability map.

The paper (arXiv 2309.08963, Figure 5) names six abilities without formulas, because people rated them. The page
docs/struc_bench.md defines the types of errors and the formulas of the abilities.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.cells import (
    EQUAL,
    CellVerdict,
    SearchedText,
    compare_cells,
    is_blank,
    read_cell_value,
    strip_cell_markup,
)

if TYPE_CHECKING:
    from evalsuite.metrics.tables import CellGrid, FormFact
    from evalsuite.metrics.tables.content import ContentComparison, TablePair

    Numbers = Sequence[Sequence[float | None]]


RIGHT_VALUE_VERDICTS: frozenset[CellVerdict] = EQUAL | {"sign missing"}  # The verdicts that count as a right value.


@dataclass(frozen=True, slots=True)
class CellPair:
    """The texts, without markup, of a wanted data cell and the predicted cell at the same position."""

    predicted: str
    wanted: str
    verdict: CellVerdict


@dataclass(slots=True)
class TableComparison:
    """The differences between the wanted and the predicted tables.

    The head rows of a wanted table contain the column names; if the markup marks no head row, the first row is the
    head. In tables with two or more columns, the first column contains the names of the rows. All other cells are data.
    """

    tables: int = 0  # The number of wanted tables.
    # Numbers of missing, unwanted and displaced tables, rows and columns; the keys are texts such as `missing rows`.
    structure: Counter[str] = field(default_factory=Counter)
    names: list[tuple[str, str]] = field(default_factory=list)  # Wrong names of rows or columns: (predicted, wanted).
    cells: list[CellPair] = field(default_factory=list)  # Pairs of data cells that both tables have.
    lost: list[str] = field(default_factory=list)  # Wanted data cells in rows or columns that the prediction lacks.
    predicted: list[str] = field(default_factory=list)  # All data cells of the prediction.
    # Whether each sum of the wanted tables also holds in the prediction (see `compare_sums`).
    sums: list[bool] = field(default_factory=list)

    @property
    def wanted_cells(self) -> list[str]:
        """All data cells of the reference."""
        return [*(pair.wanted for pair in self.cells), *self.lost]


def find_table_differences(content_comparison: ContentComparison, wanted: Sequence[CellGrid]) -> TableComparison:
    """Find the differences in names, data and structure, given a comparison of the tables' contents."""
    comparison = TableComparison(tables=len(wanted))
    for pair in content_comparison.pairs:
        _add_table_differences(pair, wanted[pair.wanted].head_rows, comparison)
    comparison.structure["extra tables"] += len(content_comparison.extra)
    for table in content_comparison.extra:
        first = int(table.width > 1)
        comparison.predicted += [text for row in _strip_markup_of_cells(table.texts)[1:] for text in row[first:]]
    return comparison


def _add_table_differences(pair: TablePair, head_rows: int, comparison: TableComparison) -> None:
    wanted, predicted = _strip_markup_of_cells(pair.right.texts), _strip_markup_of_cells(pair.left.texts)
    # If all rows are head rows, take only the first row as the head.
    head = head_rows if 0 < head_rows < len(wanted) else 1
    first = int(pair.right.width > 1)
    rows = {there: here for here, there in pair.rows}
    columns = {there: here for here, there in pair.columns}

    def pair_cells(row: int, column: int) -> CellPair | None:
        if row not in rows or column not in columns:
            return None
        here, there = rows[row], columns[column]
        verdict = compare_cells(pair.left.texts[here][there], pair.right.texts[row][column])
        return CellPair(predicted[here][there], wanted[row][column], verdict)

    arranged: list[list[str]] = []
    for row, texts in enumerate(wanted):
        cells = [pair_cells(row, column) for column in range(len(texts))]
        names = cells[: first if row >= head else None]
        comparison.names += [(cell.predicted, cell.wanted) for cell in names if cell and cell.verdict not in EQUAL]
        if row >= head:
            comparison.cells += filter(None, cells[first:])
            comparison.lost += [text for cell, text in zip(cells[first:], texts[first:], strict=True) if not cell]
            arranged.append([cell.predicted if cell else "" for cell in cells[first:]])
    comparison.sums += compare_sums(arranged, [texts[first:] for texts in wanted[head:]])
    if pair.predicted is None:
        comparison.structure["missing tables"] += 1
        return
    heads = {rows[row] for row in range(head) if row in rows}
    named = {columns[column] for column in range(first) if column in columns}
    comparison.predicted += [
        text
        for row, texts in enumerate(predicted)
        if row not in heads
        for column, text in enumerate(texts)
        if column not in named
    ]
    comparison.structure += Counter(
        {
            "missing rows": len(wanted) - len(rows),
            "extra rows": len(predicted) - len(rows),
            "missing columns": pair.right.width - len(columns),
            "extra columns": pair.left.width - len(columns),
            "displaced lines": int(pair.displaced),
        }
    )


def _strip_markup_of_cells(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[strip_cell_markup(text) for text in row] for row in rows]


MOST_COLUMNS = 16  # Maximum columns checked for sums, because the time grows with the cube of the number of columns.
TOLERANCE = 1e-6
FEWEST_LINES = 2  # Minimum positions at which a sum must hold; a single one may hold by chance.


def compare_sums(predicted: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> list[bool]:
    """Tell for each sum in a wanted table whether it also holds for the predicted cells at the same positions.

    A line (row or column) is a sum if each of its numbers is the sum of two other lines' numbers, or of all others'.
    Positions with a missing number or a summand of 0 are ignored; a sum must hold at two positions or more. Each
    position of a sum gives a separate result. Differences need no rule of their own, because c - b = a means a + b = c.
    """
    numbers = [[_parse_finite_number(cell) for cell in row] for row in wanted]
    answered = [[_parse_finite_number(cell) for cell in row] for row in predicted]
    if not answered:
        answered = [[None] * len(row) for row in numbers]
    transposed = [list(zip(*rows, strict=True)) for rows in (answered, numbers)]
    return [*_compare_column_sums(answered, numbers), *_compare_column_sums(transposed[0], transposed[1])]


def _compare_column_sums(predicted: Numbers, wanted: Numbers) -> Iterator[bool]:
    """Yield, for each sum of columns in each row of `wanted`, whether it also holds in `predicted`."""
    columns = range(min(len(wanted[0]), MOST_COLUMNS) if wanted else 0)
    for total in columns:
        others = [column for column in columns if column != total]
        whole = [tuple(others)] if len(others) > 2 else []
        for summands in (*combinations(others, 2), *whole):
            if not any(_is_sum(row, total, summands) is False for row in wanted):
                rows = zip(wanted, predicted, strict=True)
                answers = [answered for row, answered in rows if _is_sum(row, total, summands)]
                if len(answers) >= FEWEST_LINES:
                    yield from (_is_sum(answered, total, summands) is True for answered in answers)


def _is_sum(row: Sequence[float | None], total: int, summands: tuple[int, ...]) -> bool | None:
    """Tell whether a row's cell in column `total` is the sum of its cells in `summands`; None if one lacks a number."""
    whole, values = row[total], [row[summand] for summand in summands]
    numbers = [value for value in values if value]
    if whole is None or len(numbers) < len(values):
        return None
    return abs(whole - sum(numbers)) <= TOLERANCE * max(1.0, abs(whole))


def _parse_finite_number(cell: str) -> float | None:
    try:
        number = float(read_cell_value(cell))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


ABILITIES = {
    "coverage": "Coverage",
    "formatting": "Formatting",
    "reasoning": "Reasoning",
    "comprehension": "Comprehension",
    "pragmatics": "Pragmatics",
    "hallucination_control": "Hallucination control",
}
"""Metric names, and their labels in the radar chart."""
SIZE_FACTS = frozenset({"tables", "rows", "columns"})  # Names of the layout checks that do not concern markup.


def measure_abilities(
    comparison: TableComparison, *, source: str, form_share: float, markup_share: float, table_share: float
) -> dict[str, float]:
    """Score the abilities that an output shows, each in [0, 1]; leave out abilities that the item does not test.

    If no table was wanted, only formatting is measured. Coverage, comprehension and pragmatics are left out if all
    cells of the wanted table are blank.

    Args:
        form_share: the share of passed checks of layout and markup.
        markup_share: the share of passed checks of the markup alone, that is, of all checks except `SIZE_FACTS`.
        table_share: the share of the answer's characters that are part of its table, not of other text.
    """
    if not comparison.tables:
        return {"formatting": form_share}
    right = [pair for pair in comparison.cells if pair.verdict in RIGHT_VALUE_VERDICTS and read_cell_value(pair.wanted)]
    wanted, predicted = _count_cell_values(comparison.wanted_cells), _count_cell_values(comparison.predicted)
    covered = (wanted & predicted).total()
    in_form = sum(pair.verdict == "same" for pair in right)
    text, sums, placed = SearchedText(source), comparison.sums, _divide_or_none(len(right), covered) or 0.0
    # If the source text lacks a value, the model must derive this value.
    derived = [pair for pair in comparison.cells if not text.contains_value(pair.wanted)]
    lost = sum(not text.contains_value(cell) for cell in comparison.lost)
    answered = [cell for cell in comparison.predicted if not is_blank(cell)]
    supported = sum(text.contains_value(cell) or read_cell_value(cell) in wanted for cell in answered)
    values = {
        "coverage": _divide_or_none(covered, wanted.total()),
        "formatting": form_share,
        "reasoning": _divide_or_none(
            sum(pair.verdict in RIGHT_VALUE_VERDICTS for pair in derived), len(derived) + lost
        ),
        "comprehension": (placed + sum(sums) / len(sums)) / 2 if sums else placed,
        "pragmatics": (markup_share + (_divide_or_none(in_form, len(right)) or 0.0) + table_share) / 3,
        "hallucination_control": _divide_or_none(supported, len(answered)),
    }
    untested = () if wanted else ("coverage", "comprehension", "pragmatics")
    return {name: value for name, value in values.items() if value is not None and name not in untested}


def _count_cell_values(cells: Iterable[str]) -> Counter[str]:
    return Counter(value for cell in cells if (value := read_cell_value(cell)))


def _divide_or_none(part: int, whole: int) -> float | None:
    """Return part / whole, at most 1.0; None if `whole` is 0."""
    return min(part / whole, 1.0) if whole else None


ERROR_TYPES = {
    "structure_error": "Structure error",
    "naming_error": "Structure naming error",
    "element_error": "Element error",
    "element_format_error": "Element format error",
}
"""Metric names and headings."""
ERROR_FREE = "error_free"
BROKEN = frozenset({"markup", "well_formed", "compiles"})
"""Facts of form that every table must fulfil, whatever the reference is; otherwise the markup is broken."""


def flag_error_types(comparison: TableComparison, facts: Iterable[FormFact] = ()) -> dict[str, float]:
    """Map each type of error to 1.0 if the output has such an error, otherwise to 0.0; empty if no table was wanted.

    `error_free` is 1.0 if no type of error occurs and every check of layout and markup is passed. Cells of missing rows
    and columns are not counted as errors of their own.
    """
    if not comparison.tables:
        return {}
    unfulfilled = {fact.name for fact in facts if not fact.fulfilled}
    verdicts = {pair.verdict for pair in comparison.cells}
    present = {
        "structure_error": comparison.structure.total() > 0 or bool(unfulfilled & BROKEN),
        "naming_error": bool(comparison.names),
        "element_error": bool(verdicts & {"differs", "missing", "unwanted"}),
        "element_format_error": bool(verdicts & {"other form", "sign missing"}),
    }
    free = not unfulfilled and not any(present.values())
    return {**{name: float(has) for name, has in present.items()}, ERROR_FREE: float(free)}
