r"""The column specification of a LaTeX table: one letter a column, without rules and widths."""

from __future__ import annotations

import re

MOST_COLUMNS = 1000
"""A specification can ask for more columns than there are atoms: `*{999}{*{999}{...}}`."""
DEEPEST = 8
PIECE = re.compile(r"\\[a-zA-Z]+|\\.|\{|\}|\[|\]|.", re.DOTALL)
BETWEEN = frozenset("@!><")
"""What is put between, before or after columns: they and their group are no column."""


def read_columns(specification: str) -> tuple[str, ...]:
    """The letters of the columns: `|l|*{2}{c}p{3cm}@{}` gives l, c, c, p. Never more than `MOST_COLUMNS`."""
    return tuple(_columns(PIECE.findall(specification), DEEPEST))


def _columns(pieces: list[str], depth: int) -> list[str]:
    columns: list[str] = []
    place = 0
    while place < len(pieces) and len(columns) < MOST_COLUMNS:
        piece, place = pieces[place], place + 1
        if piece == "*":
            count, place = _group(pieces, place)
            repeated, place = _group(pieces, place)
            if depth:
                columns += _columns(repeated, depth - 1) * min(_number(count), MOST_COLUMNS)
        elif piece in BETWEEN:
            _, place = _group(pieces, place)
        elif piece.isalpha():
            columns.append(piece)
        elif piece in "[{":
            # The width of the column before, or its options.
            _, place = _group(pieces, place - 1)
    return columns[:MOST_COLUMNS]


def _group(pieces: list[str], place: int) -> tuple[list[str], int]:
    """What a group or a bracket holds that starts here, or a single piece; and the place after it."""
    while place < len(pieces) and pieces[place].isspace():
        place += 1
    if place >= len(pieces):
        return [], place
    opening = pieces[place]
    if opening not in "{[":
        return [opening], place + 1
    depth, closing = 0, "}" if opening == "{" else "]"
    for end in range(place, len(pieces)):
        depth += (pieces[end] == opening) - (pieces[end] == closing)
        if not depth:
            return pieces[place + 1 : end], end + 1
    return pieces[place + 1 :], len(pieces)


def _number(pieces: list[str]) -> int:
    digits = "".join(pieces).strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else 1
