"""Table Selection: rows that meet one condition or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.builders.treb.pair import QuestionMaker, TemplatePair, listed, numbered

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from evalsuite.builders.treb.sheet import Sheet

MOST_LISTED = 12


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a row, in words, in pandas and in Python.

    Attributes:
        words: `"Rating" is at least 4`.
        program: the same as a mask of `df`.
        holds: the same for the row of this number.
    """

    words: str
    program: str
    holds: Callable[[int], bool]

    def both(self, other: Condition) -> Condition:
        """This one and another."""
        return Condition(
            f"{self.words} and {other.words}",
            f"({self.program}) & ({other.program})",
            lambda row: self.holds(row) and other.holds(row),
        )

    def either(self, other: Condition) -> Condition:
        """This one or another."""
        return Condition(
            f"{self.words} or {other.words}",
            f"({self.program}) | ({other.program})",
            lambda row: self.holds(row) or other.holds(row),
        )


def is_value(sheet: Sheet, random: Random) -> Condition | None:
    """A text column equals one of its repeated values."""
    if not sheet.groups:
        return None
    name = random.choice(list(sheet.groups))
    value, cells = random.choice(sheet.groups[name]), sheet.columns[name]
    return Condition(f'"{name}" is "{value}"', f"df[{name!r}] == {value!r}", lambda row: cells[row] == value)


def compares(sheet: Sheet, random: Random) -> Condition | None:
    """A numeric column lies above, below, at least or at most at one of its values, in some rows and not in all."""
    name = random.choice(list(sheet.compared))
    cells = sheet.compared[name]
    bound = random.choice([cell for cell in cells if cell is not None])
    words, sign, holds = random.choice(_COMPARISONS)
    shown = f"{bound:.15g}"

    def met(row: int) -> bool:
        cell = cells[row]
        return cell is not None and holds(cell, bound)

    if not 0 < sum(map(met, range(len(cells)))) < len(cells):
        return None
    return Condition(f'"{name}" is {words} {shown}', f"df[{name!r}] {sign} {shown}", met)


_COMPARISONS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("greater than", ">", lambda cell, bound: cell > bound),
    ("less than", "<", lambda cell, bound: cell < bound),
    ("at least", ">=", lambda cell, bound: cell >= bound),
    ("at most", "<=", lambda cell, bound: cell <= bound),
)


def list_one(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The keys of the rows that meet a numeric condition."""
    return _listing(sheet, compares(sheet, random))


def list_value(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The keys of the rows with a certain text."""
    return _listing(sheet, is_value(sheet, random))


def list_both(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The keys of the rows that meet two conditions."""
    text, number = is_value(sheet, random), compares(sheet, random)
    return _listing(sheet, text.both(number) if text and number else None)


def list_either(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The keys of the rows that meet one of two conditions."""
    text, number = is_value(sheet, random), compares(sheet, random)
    return _listing(sheet, text.either(number) if text and number else None)


def count_one(sheet: Sheet, random: Random) -> TemplatePair | None:
    """How many rows meet a numeric condition."""
    return _counting(sheet, compares(sheet, random))


def count_both(sheet: Sheet, random: Random) -> TemplatePair | None:
    """How many rows meet two conditions."""
    text, number = is_value(sheet, random), compares(sheet, random)
    return _counting(sheet, text.both(number) if text and number else None)


TEMPLATES: tuple[QuestionMaker, ...] = (list_one, list_value, list_both, list_either, count_one, count_both)


def _listing(sheet: Sheet, condition: Condition | None) -> TemplatePair | None:
    if sheet.key is None or condition is None:
        return None
    keys = [str(key) for row, key in enumerate(sheet.columns[sheet.key]) if condition.holds(row)]
    if not 0 < len(keys) <= MOST_LISTED:
        return None
    program = f"print(', '.join(df.loc[{condition.program}, {sheet.key!r}].astype(str)))"
    return listed(f'Which values has the column "{sheet.key}" where {condition.words}?', keys, program)


def _counting(sheet: Sheet, condition: Condition | None) -> TemplatePair | None:
    if condition is None:
        return None
    count = sum(condition.holds(row) for row in range(len(sheet.table.rows)))
    program = f"print(int(({condition.program}).sum()))"
    return numbered(f"In how many rows of the data is it so that {condition.words}?", count, program)
