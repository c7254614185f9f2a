"""TReB's templates for Table Query and Table Selection, and the pairs that all templates make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from evalsuite.builders.treb.sheet import is_number
from evalsuite.metrics.numbers import numeric_match

if TYPE_CHECKING:
    from evalsuite.builders.treb.sheet import Sheet


@dataclass(frozen=True, slots=True)
class TemplatePair:
    """A template's question with the form of its answer, the answer computed from the cells, and a program on `df`."""

    question: str
    answer: str
    program: str
    number: float | None = None


# Returns None if a table does not allow the question.
QuestionMaker = Callable[["Sheet", Random], "TemplatePair | None"]


def same_answer(printed: str, answer: str) -> bool:
    """Compare a program's output with the answer: equal texts ignoring case, or equal numbers."""
    return printed.strip().lower() == answer.strip().lower() or numeric_match(printed, answer) == 1.0


def make_number_pair(question: str, value: float, program: str) -> TemplatePair:
    """Make a pair whose answer is a number; whole numbers are written without a point."""
    number = int(value) if float(value).is_integer() else value
    return TemplatePair(f"{question} Answer with the number only.", str(number), program, number)


def make_text_pair(question: str, answer: str, program: str) -> TemplatePair:
    """Make a pair whose answer is a text."""
    return TemplatePair(f"{question} Answer with that only.", answer, program)


def make_list_pair(question: str, answers: list[str], program: str) -> TemplatePair:
    """Make a pair whose answer is a list, in the order of the table."""
    ending = "Answer with them only, in the order of the table, separated by commas."
    return TemplatePair(f"{question} {ending}", ", ".join(answers), program)


def cell_by_position(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask for the cell in row r, column c, both counted from 1."""
    column = random.randrange(len(sheet.names))
    cells = sheet.columns[sheet.names[column]]
    row = random.randrange(len(cells))
    question = f"What is in row {row + 1} of the data, column {column + 1}?"
    return _cell(question, cells[row], f"print(df.iloc[{row}, {column}])")


def cell_by_name(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask for the cell of a named column in row r."""
    name = random.choice(sheet.names)
    row = random.randrange(len(sheet.columns[name]))
    question = f'What is in row {row + 1} of the data in the column "{name}"?'
    return _cell(question, sheet.columns[name][row], f"print(df[{name!r}].iloc[{row}])")


def neighbour(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask for the cell directly above or below one with unique content."""
    places = [
        (name, row)
        for name, cells in sheet.named.items()
        for row, cell in enumerate(cells)
        if cell is not None and _everywhere(sheet).count(cell) == 1
    ]
    if not places:
        return None
    name, row = random.choice(places)
    step, word = random.choice([(1, "below"), (-1, "above")])
    cells, wanted = sheet.columns[name], row + step
    if not 0 <= wanted < len(cells):
        return None
    program = f"row = df.index[df[{name!r}] == {cells[row]!r}][0]\nprint(df[{name!r}].iloc[row + {step}])"
    return _cell(f'What is in the cell directly {word} "{cells[row]}"?', cells[wanted], program)


def same_row(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask for the cell of another column in the row of a key."""
    others = [name for name in sheet.names if name != sheet.key]
    if sheet.key is None or not others:
        return None
    name, row = random.choice(others), random.randrange(len(sheet.table.rows))
    key = sheet.columns[sheet.key][row]
    question = f'What is in the column "{name}" where "{sheet.key}" is "{key}"?'
    program = f"print(df.loc[df[{sheet.key!r}] == {key!r}, {name!r}].iloc[0])"
    return _cell(question, sheet.columns[name][row], program)


def row_of(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask for the number of the row that has a key."""
    if sheet.key is None:
        return None
    row = random.randrange(len(sheet.table.rows))
    key = sheet.columns[sheet.key][row]
    question = f'In which row of the data is "{key}" in the column "{sheet.key}"?'
    return make_number_pair(question, row + 1, f"print(df.index[df[{sheet.key!r}] == {key!r}][0] + 1)")


def column_number(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask for the number of a named column."""
    name = random.choice(sheet.names)
    program = f"print(list(df.columns).index({name!r}) + 1)"
    return make_number_pair(
        f'Which column is called "{name}", counted from the left?', sheet.names.index(name) + 1, program
    )


def next_column(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask for the name of the column to the right of a named one."""
    if len(sheet.names) < 2:
        return None
    place = random.randrange(len(sheet.names) - 1)
    question = f'What is the name of the column directly to the right of "{sheet.names[place]}"?'
    program = f"print(df.columns[list(df.columns).index({sheet.names[place]!r}) + 1])"
    return make_text_pair(question, sheet.names[place + 1], program)


QUERY_TEMPLATES: tuple[QuestionMaker, ...] = (
    cell_by_position,
    cell_by_name,
    neighbour,
    same_row,
    row_of,
    column_number,
    next_column,
)


def _everywhere(sheet: Sheet) -> list[str | None]:
    return [cell for cells in sheet.columns.values() for cell in cells]


def _cell(question: str, cell: str | None, program: str) -> TemplatePair | None:
    if cell is None:
        return None
    return (
        make_number_pair(question, float(cell), program)
        if is_number(cell)
        else make_text_pair(question, cell, program)
    )


MOST_LISTED = 12


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a row in words (`"Rating" is at least 4`), as a mask of `df`, and as a test of a row's number."""

    words: str
    program: str
    holds: Callable[[int], bool]

    def both(self, other: Condition) -> Condition:
        """Combine with another condition by "and"."""
        return Condition(
            f"{self.words} and {other.words}",
            f"({self.program}) & ({other.program})",
            lambda row: self.holds(row) and other.holds(row),
        )

    def either(self, other: Condition) -> Condition:
        """Combine with another condition by "or"."""
        return Condition(
            f"{self.words} or {other.words}",
            f"({self.program}) | ({other.program})",
            lambda row: self.holds(row) or other.holds(row),
        )


def is_value(sheet: Sheet, random: Random) -> Condition | None:
    """Make the condition that a text column equals one of its repeated values."""
    if not sheet.groups:
        return None
    name = random.choice(list(sheet.groups))
    value, cells = random.choice(sheet.groups[name]), sheet.columns[name]
    return Condition(f'"{name}" is "{value}"', f"df[{name!r}] == {value!r}", lambda row: cells[row] == value)


def compares(sheet: Sheet, random: Random) -> Condition | None:
    """Make a comparison of a numeric column with one of its values, true in some rows and false in others."""
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
    """Ask for the keys of the rows that meet a numeric condition."""
    return _listing(sheet, compares(sheet, random))


def list_value(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask for the keys of the rows with a certain text."""
    return _listing(sheet, is_value(sheet, random))


def list_both(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask for the keys of the rows that meet two conditions."""
    text, number = is_value(sheet, random), compares(sheet, random)
    return _listing(sheet, text.both(number) if text and number else None)


def list_either(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask for the keys of the rows that meet one of two conditions."""
    text, number = is_value(sheet, random), compares(sheet, random)
    return _listing(sheet, text.either(number) if text and number else None)


def count_one(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask how many rows meet a numeric condition."""
    return _counting(sheet, compares(sheet, random))


def count_both(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Ask how many rows meet two conditions."""
    text, number = is_value(sheet, random), compares(sheet, random)
    return _counting(sheet, text.both(number) if text and number else None)


SELECTION_TEMPLATES: tuple[QuestionMaker, ...] = (
    list_one,
    list_value,
    list_both,
    list_either,
    count_one,
    count_both,
)


def _listing(sheet: Sheet, condition: Condition | None) -> TemplatePair | None:
    if sheet.key is None or condition is None:
        return None
    keys = [str(key) for row, key in enumerate(sheet.columns[sheet.key]) if condition.holds(row)]
    if not 0 < len(keys) <= MOST_LISTED:
        return None
    program = f"print(', '.join(df.loc[{condition.program}, {sheet.key!r}].astype(str)))"
    return make_list_pair(
        f'Which values has the column "{sheet.key}" where {condition.words}?', keys, program
    )


def _counting(sheet: Sheet, condition: Condition | None) -> TemplatePair | None:
    if condition is None:
        return None
    count = sum(condition.holds(row) for row in range(len(sheet.table.rows)))
    program = f"print(int(({condition.program}).sum()))"
    return make_number_pair(f"In how many rows of the data is it so that {condition.words}?", count, program)
