"""A table that questions can be made of, and the paper's conditions on it (arXiv 2506.18421)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from evalsuite.builders.treb import column_kinds as kinds
from evalsuite.builders.treb.column_kinds import NUMBER, YEAR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.benchmarks.treb.tables import SourceTable

LONGEST, EMPTIEST = 30_000, 0.7
_TOTAL = re.compile(
    r"(grand |sub-?)?totals?( .{0,20})?|sums?|averages?|means?|overall|all|turnout|majority|.{0,30} (hold|gain)|net|"
    r"[合总小]计|平均值?|均值|总和|总数|全部",
    re.IGNORECASE,
)
# What pandas.read_csv takes for a missing value (its documentation, parameter na_values).
MISSING = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
        *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    ]
)


@dataclass(frozen=True)
class Sheet:
    """A qualified table by columns, with missing cells as None.

    Attributes:
        name: for ids.
        table: its cells.
    """

    name: str
    table: SourceTable

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.table.header[0]

    @cached_property
    def columns(self) -> dict[str, list[str | None]]:
        """The cells below each name."""
        return {
            name: [None if row[place] in MISSING else row[place] for row in self.table.rows]
            for place, name in enumerate(self.names)
        }

    @cached_property
    def numeric(self) -> dict[str, list[float | None]]:
        """The columns that hold at least two numbers and nothing else but gaps."""
        return {
            name: [None if cell is None else float(cell) for cell in cells]
            for name, cells in self.columns.items()
            if sum(cell is not None for cell in cells) > 1 and all(map(_numeric_or_missing, cells))
        }

    @cached_property
    def compared(self) -> dict[str, list[float | None]]:
        """The numeric columns whose rows can be compared: no codes, telephone numbers or numbers of rows."""
        return {name: cells for name, cells in self.numeric.items() if not self._is_code(name, cells)}

    @cached_property
    def measured(self) -> dict[str, list[float | None]]:
        """The compared columns that can be reckoned with: no years, ranks, dates, answers or classes either.

        The sum of a column of seasons is a number that nobody would ask for.
        """
        return {name: cells for name, cells in self.compared.items() if not self._is_order(name, cells)}

    def _is_code(self, name: str, cells: list[float | None]) -> bool:
        if kinds.says_nothing(name) or kinds.names_a_code(name) or kinds.are_codes(self.columns[name]):
            return True
        if kinds.are_flags(cells):
            return not kinds.names_an_amount(name)
        numbered = kinds.are_row_numbers(cells) or (name == self.names[0] and kinds.rise(cells))
        return numbered and not kinds.names_an_order(name) and not kinds.are_years(cells)

    def _is_order(self, name: str, cells: list[float | None]) -> bool:
        if kinds.names_an_order(name) or kinds.are_years(cells) or kinds.are_running_numbers(cells):
            return True
        return kinds.are_levels(cells) and not kinds.names_an_amount(name)

    @cached_property
    def summable(self) -> list[str]:
        """The measured columns whose sum means something: sales do, unit prices and marks do not."""
        return [name for name in self.measured if kinds.names_an_amount(name)]

    @cached_property
    def texts(self) -> dict[str, list[str | None]]:
        """The columns that are not numeric."""
        return {name: cells for name, cells in self.columns.items() if name not in self.numeric}

    @cached_property
    def named(self) -> dict[str, list[str | None]]:
        """The columns of texts that name things, by which a question may speak of rows and groups."""
        return {
            name: cells
            for name, cells in self.texts.items()
            if kinds.name_things(cells) and not kinds.says_nothing(name)
        }

    @cached_property
    def key(self) -> str | None:
        """The first column of names without gaps and repetitions, by which rows are named; else None."""
        for name, cells in self.named.items():
            if None not in cells and len(set(cells)) == len(cells):
                return name
        return None

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The columns of names in which a value stands twice or more on average, with their values in order."""
        groups = {}
        for name, cells in self.named.items():
            values = [cell for cell in cells if cell is not None]
            distinct = list(dict.fromkeys(values))
            if 2 <= len(distinct) <= len(values) / 2:
                groups[name] = distinct
        return groups


def disqualified(table: SourceTable, characters: int) -> str | None:
    """Why no questions are made of a table (of so many characters of CSV); None where it qualifies."""
    if characters > LONGEST:
        return f"it has {characters} characters of content, more than {LONGEST}"
    return next((reason for reason in _faults(table) if reason), None)


def _faults(table: SourceTable) -> Iterator[str | None]:
    """What is wrong with a table, test by test, None where it passes."""
    names, cells = table.header[0], [cell for row in table.rows for cell in row]
    yield None if cells else "it has no rows"
    empty = sum(cell in MISSING for cell in cells)
    too_empty = empty > EMPTIEST * len(cells)
    yield f"{empty} of its {len(cells)} cells are empty, more than {EMPTIEST:.0%}" if too_empty else None
    named = all(names) and len(set(names)) == len(names) and not any("\n" in name for name in names)
    yield None if named else "its first row does not name every column, each differently and on one line"
    repeated = any(list(row) == list(names) for row in table.rows)
    yield "it repeats its header row" if repeated else None
    yield "it has more than one header row" if _second_header(table) else None
    numeric = Sheet("", table).numeric
    yield None if numeric else "it has no column of numbers"
    yield "its first row looks like data" if all(map(_is_data, numeric)) else None
    mirrored = _is_mirrored(list(numeric.values()))
    yield "it is a table of correlations or distances" if mirrored else None
    yield "it has a row of totals or averages" if any(map(_is_total, cells)) else None
    measured = Sheet("", table).measured
    yield None if measured else "its columns of numbers only name something: years, ranks, codes"


def _is_mirrored(columns: list[list[float | None]]) -> bool:
    """Whether three or more columns of numbers are as many rows, and the same read across as down."""
    square = len(columns) > 2 and all(len(column) == len(columns) for column in columns)
    return square and [list(row) for row in zip(*columns, strict=True)] == columns


def _second_header(table: SourceTable) -> bool:
    """Whether the first row of data has words above a column that holds only numbers from there on."""
    return any(
        column[0] not in MISSING
        and not is_number(column[0])
        and sum(map(is_number, column[1:])) > 1
        and all(map(_numeric_or_missing, (None if cell in MISSING else cell for cell in column[1:])))
        for column in zip(*table.rows, strict=True)
    )


def _is_total(cell: str) -> bool:
    return bool(_TOTAL.fullmatch(cell.strip(" :\uff1a")))


def _is_data(name: str) -> bool:
    """Whether the name of a numeric column is itself a number, and no year."""
    return is_number(name) and not YEAR.fullmatch(name)


def is_number(cell: str) -> bool:
    """Whether a cell is a plain decimal number: what pandas and people read alike."""
    return bool(NUMBER.fullmatch(cell))


def _numeric_or_missing(cell: str | None) -> bool:
    return cell is None or is_number(cell)
