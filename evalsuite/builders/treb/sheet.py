"""A table that questions can be made of, and the paper's conditions on it (arXiv 2506.18421)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.benchmarks.treb.tables import SourceTable

LONGEST, EMPTIEST = 30_000, 0.7
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
_TOTAL = re.compile(
    r"(grand |sub-?)?totals?|sums?|averages?|means?|overall|[合总小]计|平均值?|均值|总和", re.IGNORECASE
)
_YEAR = re.compile(r"(1[5-9]|20)\d\d")
# Names of columns whose numbers only name something.
_LABEL = re.compile(
    r"\b(years?|seasons?|rank(ing)?|pos(ition)?|no|nr|number|id|code|zip|postcode|phone|week|round|episode|jersey|place)\b"
    r"|#|_id$|[\u5e74\u5b63]\u4efd?$|\u6392\u540d|\u7f16\u53f7|\u5e8f\u53f7|\u53f7\u7801|\u4ee3\u7801",
    re.IGNORECASE,
)
# Names of columns whose values do not add up: prices by unit, rates, marks, ages.
_LEVEL = re.compile(
    r"\b(rates?|ratings?|ratio|prices?|scores?|shares?|percent(age)?|averages?|avg|means?|median|ages?|heights?|"
    r"temperature|density|index|per|grades?|gpa|humidity|speed|latitude|longitude)\b"
    r"|%|\u5355\u4ef7|\u8bc4\u5206|\u7387|\u6bd4\u4f8b|\u767e\u5206\u6bd4|\u6e29\u5ea6|\u5e74\u9f84|\u5e73\u5747|\u5bc6\u5ea6|\u6307\u6570|\u6210\u7ee9|\u8eab\u9ad8",
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
    def measured(self) -> dict[str, list[float | None]]:
        """The numeric columns that can be reckoned with: no years, ranks, numbers of rows, codes or telephone numbers.

        The sum of a column of seasons is a number that nobody would ask for.
        """
        return {
            name: cells
            for name, cells in self.numeric.items()
            if not (_LABEL.search(name) or _are_years(cells) or _are_counted(cells))
        }

    @cached_property
    def summable(self) -> list[str]:
        """The measured columns whose sum means something: sales do, unit prices and marks do not."""
        return [name for name in self.measured if not _LEVEL.search(re.sub(r"[_/]", " ", name))]

    @cached_property
    def texts(self) -> dict[str, list[str | None]]:
        """The columns that are not numeric."""
        return {name: cells for name, cells in self.columns.items() if name not in self.numeric}

    @cached_property
    def key(self) -> str | None:
        """The first text column without gaps and repetitions, by which rows are named; else None."""
        for name, cells in self.texts.items():
            if None not in cells and len(set(cells)) == len(cells):
                return name
        return None

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The text columns in which some value repeats, with their values in order of appearance."""
        groups = {}
        for name, cells in self.texts.items():
            values = [cell for cell in cells if cell is not None]
            distinct = list(dict.fromkeys(values))
            if 2 <= len(distinct) < len(values):
                groups[name] = distinct
        return groups


def _are_years(cells: Sequence[float | None]) -> bool:
    return all(cell is None or (cell.is_integer() and 1500 <= cell < 2100) for cell in cells)


def _are_counted(cells: Sequence[float | None]) -> bool:
    """Whether it is 1, 2, 3, ... from top to bottom, at least five of them."""
    return len(cells) >= 5 and list(cells) == list(range(1, len(cells) + 1))


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
    named = all(names) and len(set(names)) == len(names)
    yield None if named else "its first row does not name every column, each differently"
    yield "it has more than one header row" if _second_header(table) else None
    numeric = Sheet("", table).numeric
    yield None if numeric else "it has no column of numbers"
    yield "its first row looks like data" if all(map(_is_data, numeric)) else None
    yield "it has a row of totals or averages" if any(map(_is_total, cells)) else None
    measured = Sheet("", table).measured
    yield None if measured else "its columns of numbers only name something: years, ranks, codes"


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
    return is_number(name) and not _YEAR.fullmatch(name)


def is_number(cell: str) -> bool:
    """Whether a cell is a plain decimal number: what pandas and people read alike."""
    return bool(_NUMBER.fullmatch(cell))


def _numeric_or_missing(cell: str | None) -> bool:
    return cell is None or is_number(cell)
