"""A question with its answer and the program that finds the same answer on a data frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from evalsuite.metrics.numbers import numeric_match

if TYPE_CHECKING:
    from evalsuite.builders.treb.sheet import Sheet


@dataclass(frozen=True, slots=True)
class TemplatePair:
    """What a template makes of a table.

    Attributes:
        question: complete, with the form of the answer.
        answer: worked out in plain Python from the cells.
        program: pandas on `df`; prints the answer.
        number: the answer as a number, where it is one.
    """

    question: str
    answer: str
    program: str
    number: float | None = None


# None where a table has nothing to ask for in this way.
QuestionMaker = Callable[["Sheet", Random], "TemplatePair | None"]


def same_answer(printed: str, answer: str) -> bool:
    """Whether what a program printed is the answer: the same text, whatever its case, or the same number."""
    return printed.strip().lower() == answer.strip().lower() or numeric_match(printed, answer) == 1.0


def numbered(question: str, value: float, program: str) -> TemplatePair:
    """A pair whose answer is a number; whole ones are written without a point."""
    number = int(value) if float(value).is_integer() else value
    return TemplatePair(f"{question} Answer with the number only.", str(number), program, number)


def worded(question: str, answer: str, program: str) -> TemplatePair:
    """A pair whose answer is a text."""
    return TemplatePair(f"{question} Answer with that only.", answer, program)


def listed(question: str, answers: list[str], program: str) -> TemplatePair:
    """A pair whose answer is a list, in the order of the table."""
    ending = "Answer with them only, in the order of the table, separated by commas."
    return TemplatePair(f"{question} {ending}", ", ".join(answers), program)
