"""What a report says of a box score: a table asks for nothing that its text does not hold.

A cell is said if its number stands, in digits or words, in a sentence about its row: by itself together with
a word for its column, or in a pair (`7 - of - 13`, a record of 46 - 12, a final score). A sentence is about the
rows that it names, or, where it names none, about those of the sentence before.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from evalsuite.metrics.tables import CellGrid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.builders.struc_bench.box_columns import BoxColumn

ENDS = frozenset({".", "!", "?"})
NUMBER = re.compile(r"(?<![\d.,])\d+(?!\d|[.,]\d)")
ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NAMED = """
    ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
"""
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
IN_WORDS = {word: number for number, word in enumerate(("zero", *ONES, *NAMED.split()))}
IN_WORDS |= {ten: 10 * place for place, ten in enumerate(TENS, 2)}
# RotoWire's reports are tokenized, hyphens stand apart: twenty - one.
WORDS = re.compile(rf"\b({'|'.join(IN_WORDS)})(?:(?<=ty)\s?-\s?({'|'.join(ONES)}))?\b")
THREE_POINTER = re.compile(r"\b(?:three|3)\s?(?:-\s?point|pointer)")
"""The name of a shot, not a number of them."""
PAIR = re.compile(
    r"(?<![\d.,])(?P<one>\d+)\s*(?:-\s*(?:(?:of|for)\s*-?)?|of|for|out of)\s*(?=(?P<other>\d+)(?!\d|[.,]\d))"
)


def sentences(tokens: Sequence[str]) -> list[str]:
    """A report's sentences, without what ends them."""
    split: list[list[str]] = [[]]
    for token in tokens:
        if token in ENDS:
            split.append([])
        else:
            split[-1].append(token)
    return [" ".join(sentence) for sentence in split if sentence]


def about(every_sentence: Sequence[str], names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The sentences about each row.

    Args:
        every_sentence: in order.
        names: what each row is called in a text.
    """
    by_row: dict[str, list[str]] = {row: [] for row in names}
    subjects: list[str] = []
    for sentence in every_sentence:
        subjects = [row for row, called in names.items() if _names(sentence, called)] or subjects
        for row in subjects:
            by_row[row].append(sentence)
    return by_row


def _names(sentence: str, called: Sequence[str]) -> bool:
    """Whether one of these names stands there, in whole tokens; tokens part hyphens, too."""
    padded = f" {sentence} "
    return any(f" {name} " in padded or f" {name.replace('-', ' - ')} " in padded for name in called)


def is_said(sentence: str, values: Mapping[str, str], column: BoxColumn) -> bool:
    """Whether a sentence about a row gives its value in a column.

    Args:
        sentence: see `about`.
        values: the row's values by key.
        column: the column.
    """
    value = values.get(column.key, "")
    if column.cue.search(sentence) and value in numbers(sentence):
        return True
    if column.second:
        return (value, values.get(column.second, "")) in pairs(sentence)
    return bool(column.first) and (values.get(column.first, ""), value) in pairs(sentence)


# A sentence is looked at for every row and column.
@lru_cache(maxsize=256)
def numbers(sentence: str) -> frozenset[str]:
    """All whole numbers of a sentence, in digits; those in words up to 99."""
    counted = THREE_POINTER.sub(" ", sentence.lower())
    words = (IN_WORDS[one] + IN_WORDS.get(other, 0) for one, other in WORDS.findall(counted))
    return frozenset([*(str(int(digits)) for digits in NUMBER.findall(counted)), *map(str, words)])


@lru_cache(maxsize=256)
def pairs(sentence: str) -> frozenset[tuple[str, str]]:
    """Numbers that stand there as a pair: 7 - 13, 7 - of - 13, 7 for 13."""
    return frozenset((pair["one"], pair["other"]) for pair in PAIR.finditer(sentence))


def narrow(
    name: str,
    columns: Sequence[BoxColumn],
    rows: Mapping[str, Mapping[str, str]],
    mentioned: Mapping[str, set[str]],
) -> CellGrid:
    """A table of the rows and columns with at least one value that the report gives; the other cells are blank.

    Args:
        name: of the table.
        columns: all that there could be.
        rows: the values by key, by row.
        mentioned: the keys whose values the report gives, by row.
    """
    kept = [column for column in columns if any(column.key in keys for keys in mentioned.values())]
    cells = [
        (row, *(values[column.key] if column.key in mentioned[row] else "" for column in kept))
        for row, values in rows.items()
        if mentioned[row]
    ]
    return CellGrid((("", *(column.title for column in kept)), *cells) if cells else (), name=name)
