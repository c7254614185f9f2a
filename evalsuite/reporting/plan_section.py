"""A plan as tables: what each benchmark will take, and which loss each gated metric can show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.reporting.section import Cell, Column, Table
from evalsuite.types import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.decisions.planning import Expense, Sight

EXPENSES = (
    Column("benchmark"),
    Column("cases", "count"),
    Column("calls", "count"),
    Column("prompt tokens", "count"),
    Column("completion tokens", "count"),
    Column("US dollars", "number", 2),
    Column("minutes", "number", 1),
)
SIGHTS = (
    Column("metric"),
    Column("questions", "count"),
    Column("epochs", "count"),
    Column("loss shown", "number", 4),
    Column("twice the questions", "number", 4),
    Column("twice the epochs", "number", 4),
    Column("loss wanted", "number", 4),
    Column("questions for it", "count"),
    Column("epochs for it"),
)


def expense_table(expenses: Sequence[Expense]) -> Table:
    """What each benchmark is expected to take, and all together."""
    rows: list[list[Cell]] = [_expense(one.asked.benchmark, one.asked.cases, one) for one in expenses]
    measured = [one for one in expenses if one.usage is not None]
    if len(expenses) > 1 and measured:
        usage = sum((one.usage for one in measured if one.usage), Usage())
        minutes = [one.minutes for one in measured if one.minutes is not None]
        cases = sum(one.asked.cases for one in expenses)
        rows.append(["all", cases, *_amounts(usage), math.fsum(minutes) if minutes else None])
    return Table("", EXPENSES, rows)


def _expense(name: str, cases: int, one: Expense) -> list[Cell]:
    return [name, cases, *_amounts(one.usage), one.minutes]


def _amounts(usage: Usage | None) -> list[Cell]:
    if usage is None:
        return [None] * 4
    return [usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost]


def sight_table(sights: Sequence[Sight]) -> Table:
    """Which loss each metric shows with a power of 80%, and what the loss that is wanted needs."""
    return Table("", SIGHTS, [_sight(one) for one in sights])


def _sight(one: Sight) -> list[Cell]:
    return [
        str(one.subject),
        one.questions,
        one.after,
        _finite(one.visible),
        _finite(one.with_twice_the_questions),
        _finite(one.with_twice_the_epochs),
        one.loss,
        one.needed,
        "?" if not one.noise_known else str(one.needed_epochs or "none suffice"),
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def advice(one: Sight) -> str:
    """In words, whether the loss that is wanted can be shown, and whether questions or epochs pay."""
    name = str(one.subject)
    if one.visible <= one.loss:
        return f"{name}: a loss of {one.loss:.3g} can be shown with what is there."
    seen = f"a loss of {one.visible:.3g} or more" if math.isfinite(one.visible) else "no loss at all"
    words = f"{name}: {seen} can be shown, not {one.loss:.3g}."
    if one.needed is not None:
        words += f" It needs {one.needed:,} questions instead of {one.questions:,}"
        if one.needed_epochs:
            words += f", or {one.needed_epochs} epochs in both runs"
        words += "."
    return f"{words} {_better(one)}"


def _better(one: Sight) -> str:
    epochs = one.with_twice_the_epochs
    if epochs is None:
        return "Whether epochs help is not known: the baseline has one for each question."
    if not math.isfinite(epochs) or one.with_twice_the_questions < 0.98 * epochs:
        return "For the same number of calls more questions pay more than more epochs."
    return "More epochs pay as much as more questions, call for call, and need no new questions."
