"""Table Query: cells and columns looked up by position, by neighbour and by value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.builders.treb.pair import QuestionMaker, TemplatePair, numbered, worded
from evalsuite.builders.treb.sheet import is_number

if TYPE_CHECKING:
    from random import Random

    from evalsuite.builders.treb.sheet import Sheet


def cell_by_position(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The cell in row r, column c, both counted from 1."""
    column = random.randrange(len(sheet.names))
    cells = sheet.columns[sheet.names[column]]
    row = random.randrange(len(cells))
    question = f"What is in row {row + 1} of the data, column {column + 1}?"
    return _cell(question, cells[row], f"print(df.iloc[{row}, {column}])")


def cell_by_name(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The cell of a named column in row r."""
    name = random.choice(sheet.names)
    row = random.randrange(len(sheet.columns[name]))
    question = f'What is in row {row + 1} of the data in the column "{name}"?'
    return _cell(question, sheet.columns[name][row], f"print(df[{name!r}].iloc[{row}])")


def neighbour(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The cell right above or below one that is the only one of its content."""
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
    """The cell of another column in the row of a key."""
    others = [name for name in sheet.names if name != sheet.key]
    if sheet.key is None or not others:
        return None
    name, row = random.choice(others), random.randrange(len(sheet.table.rows))
    key = sheet.columns[sheet.key][row]
    question = f'What is in the column "{name}" where "{sheet.key}" is "{key}"?'
    program = f"print(df.loc[df[{sheet.key!r}] == {key!r}, {name!r}].iloc[0])"
    return _cell(question, sheet.columns[name][row], program)


def row_of(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The number of the row that holds a key."""
    if sheet.key is None:
        return None
    row = random.randrange(len(sheet.table.rows))
    key = sheet.columns[sheet.key][row]
    question = f'In which row of the data is "{key}" in the column "{sheet.key}"?'
    return numbered(question, row + 1, f"print(df.index[df[{sheet.key!r}] == {key!r}][0] + 1)")


def column_number(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The number of a named column."""
    name = random.choice(sheet.names)
    program = f"print(list(df.columns).index({name!r}) + 1)"
    return numbered(
        f'Which column is called "{name}", counted from the left?', sheet.names.index(name) + 1, program
    )


def next_column(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The name of the column to the right of a named one."""
    if len(sheet.names) < 2:
        return None
    place = random.randrange(len(sheet.names) - 1)
    question = f'What is the name of the column directly to the right of "{sheet.names[place]}"?'
    program = f"print(df.columns[list(df.columns).index({sheet.names[place]!r}) + 1])"
    return worded(question, sheet.names[place + 1], program)


TEMPLATES: tuple[QuestionMaker, ...] = (
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
    return numbered(question, float(cell), program) if is_number(cell) else worded(question, cell, program)
