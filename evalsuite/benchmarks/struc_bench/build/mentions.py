"""What a report says of a box score: a table asks for nothing that its text does not hold.

A cell is said if its number stands, in digits or words, in a sentence about its row: by itself together with
a word for its column, or in a pair (`7 - of - 13`, a record of 46 - 12, a final score). A sentence is about the
rows that it names, or, where it names none, about those of the sentence before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalsuite.metrics.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.benchmarks.struc_bench.build.box_columns import BoxColumn

ENDS = frozenset({".", "!", "?"})
NUMBER = re.compile(r"(?<![\d.,])\d+(?!\d|[.,]\d)")
WORD = re.compile(r"[a-z]+(?:-[a-z]+)?")
NAMED = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen
"""
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
IN_WORDS = {word: str(number) for number, word in enumerate(NAMED.split())}
IN_WORDS |= {ten: str(10 * place) for place, ten in enumerate(TENS, 2)}
IN_WORDS |= {
    f"{ten}-{one}": str(10 * place + number)
    for place, ten in enumerate(TENS, 2)
    for number, one in enumerate(NAMED.split()[1:10], 1)
}
BETWEEN = r"\s*(?:-\s*(?:(?:of|for)\s*-?)?|of|for|out of)\s*"


def sentences(tokens: Sequence[str]) -> list[str]:
    """A report's sentences, without what ends them."""
    found: list[list[str]] = [[]]
    for token in tokens:
        if token in ENDS:
            found.append([])
        else:
            found[-1].append(token)
    return [" ".join(sentence) for sentence in found if sentence]


def about(said: Sequence[str], names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The sentences about each row.

    Args:
        said: all sentences in order.
        names: what each row is called in a text.
    """
    patterns = {row: _any_of(called) for row, called in names.items()}
    found: dict[str, list[str]] = {row: [] for row in names}
    subjects: list[str] = []
    for sentence in said:
        subjects = [row for row, pattern in patterns.items() if pattern.search(sentence)] or subjects
        for row in subjects:
            found[row].append(sentence)
    return found


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
        return is_pair(sentence, value, values.get(column.second, ""))
    return bool(column.first) and is_pair(sentence, values.get(column.first, ""), value)


def numbers(sentence: str) -> set[str]:
    """All whole numbers of a sentence, in digits; those in words up to 99."""
    words = (IN_WORDS.get(word) for word in WORD.findall(sentence.lower()))
    return {str(int(digits)) for digits in NUMBER.findall(sentence)} | {word for word in words if word}


def is_pair(sentence: str, one: str, other: str) -> bool:
    """Whether two numbers stand there as a pair: 7 - 13, 7 - of - 13, 7 for 13."""
    if not (one.isdecimal() and other.isdecimal()):
        return False
    return re.search(rf"(?<![\d.,]){one}{BETWEEN}{other}(?!\d|[.,]\d)", sentence) is not None


def narrow(
    name: str,
    columns: Sequence[BoxColumn],
    rows: Mapping[str, Mapping[str, str]],
    said: Mapping[str, set[str]],
) -> Table:
    """A table of the rows and columns with at least one value that is said; the other cells are blank.

    Args:
        name: of the table.
        columns: all that there could be.
        rows: the values by key, by row.
        said: the keys whose values are said, by row.
    """
    kept = [column for column in columns if any(column.key in keys for keys in said.values())]
    cells = [
        (row, *(values[column.key] if column.key in said[row] else "" for column in kept))
        for row, values in rows.items()
        if said[row]
    ]
    return Table((("", *(column.title for column in kept)), *cells) if cells else (), name=name)


def _any_of(names: Sequence[str]) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)" if alternatives else "(?!)")
