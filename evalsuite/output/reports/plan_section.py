"""Show a plan as tables: expected cost per benchmark, and smallest detectable loss per gated metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalsuite.core.phrases import write_count
from evalsuite.core.types import Usage
from evalsuite.output.reports.section import Cell, Table, convert_cell, parse_columns

if TYPE_CHECKING:
    from evalsuite.decisions.planning import DetectableLoss, Expense

EXPENSE_COLUMNS = parse_columns(
    "benchmark | cases: count | calls: count | prompt tokens: count | completion tokens: count | US dollars: number 2 "
    "| minutes: number 1"
)
LOSS_COLUMNS = parse_columns(
    "metric | questions: count | epochs: count | loss shown: number 4 | twice the questions: number 4 | twice the "
    "epochs: number 4 | loss wanted: number 4 | questions for it: count | epochs for it"
)


def tabulate_expenses(expenses: Sequence[Expense]) -> Table:
    """Tabulate the expected cost of each benchmark, and the sum."""
    rows: list[list[Cell]] = [
        [each.asked.benchmark, each.asked.cases, *_make_amounts(each.usage), each.minutes] for each in expenses
    ]
    measured = [expense for expense in expenses if expense.usage is not None]
    if len(expenses) > 1 and measured:
        usage = sum((expense.usage for expense in measured if expense.usage), Usage())
        minutes = [expense.minutes for expense in measured if expense.minutes is not None]
        cases = sum(expense.asked.cases for expense in expenses)
        rows.append(["all", cases, *_make_amounts(usage), math.fsum(minutes) if minutes else None])
    return Table("", EXPENSE_COLUMNS, rows)


def _make_amounts(usage: Usage | None) -> list[Cell]:
    if usage is None:
        return [None] * 4
    return [usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost]


def tabulate_detectable_losses(sights: Sequence[DetectableLoss]) -> Table:
    """Tabulate the loss that each metric can show (power 80%), and how many questions the wanted loss needs."""
    return Table("", LOSS_COLUMNS, [_make_loss_row(sight) for sight in sights])


def _make_loss_row(sight: DetectableLoss) -> list[Cell]:
    return [
        str(sight.subject),
        sight.questions,
        sight.after,
        convert_cell(sight.detectable_loss),
        convert_cell(sight.detectable_loss_at_double_questions),
        convert_cell(sight.detectable_loss_at_double_epochs),
        sight.loss,
        sight.questions_needed,
        "?" if not sight.noise_known else str(sight.epochs_needed or "none suffice"),
    ]


def advise_on_loss(sight: DetectableLoss) -> str:
    """State whether the wanted loss is detectable; if it is not, state whether more questions or epochs would help."""
    name = str(sight.subject)
    drawn = sight.calibration
    fails = (
        f" Drawn {drawn.draws:,} times from earlier answers, equal models fail in {drawn.equal_fails:.1%}, and a loss "
        f"of {sight.loss:.3g} fails in {drawn.loss_fails:.0%}."
        if drawn
        else ""
    )
    if sight.detectable_loss <= sight.loss:
        return f"{name}: a loss of {sight.loss:.3g} can be shown with what is there.{fails}"
    seen = (
        f"a loss of {sight.detectable_loss:.3g} or more" if math.isfinite(sight.detectable_loss) else "no loss at all"
    )
    words = f"{name}: {seen} can be shown, not {sight.loss:.3g}."
    if sight.questions_needed is not None:
        more = write_count(sight.questions_needed - sight.questions, "more question")
        words += f" {sight.loss:.3g} needs {more} ({sight.questions_needed:,} instead of {sight.questions:,})"
        if sight.epochs_needed:
            words += f", or {sight.epochs_needed} epochs in both runs"
        words += "."
    return f"{words} {_advise_on_epochs(sight)}{fails}"


def _advise_on_epochs(sight: DetectableLoss) -> str:
    epochs = sight.detectable_loss_at_double_epochs
    if epochs is None:
        return "Whether epochs help is not known: the baseline has one for each question."
    if not math.isfinite(epochs) or sight.detectable_loss_at_double_questions < 0.98 * epochs:
        return "For the same number of calls more questions pay more than more epochs."
    return "More epochs pay as much as more questions, call for call, and need no new questions."
