"""Show a plan as tables: expected cost per benchmark, and smallest detectable loss per gated metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalsuite.core.errors import write_count
from evalsuite.core.types import Usage
from evalsuite.output.reports.section import Cell, Table, convert_cell, parse_columns

if TYPE_CHECKING:
    from evalsuite.decisions.planning import DetectableLoss, ExpectedCost

EXPENSE_COLUMNS = parse_columns(
    "benchmark | cases: count | calls: count | prompt tokens: count | completion tokens: count | US dollars: number 2 "
    "| minutes: number 1"
)
LOSS_COLUMNS = parse_columns(
    "metric | questions: count | epochs: count | loss shown: number 4 | twice the questions: number 4 | twice the "
    "epochs: number 4 | loss wanted: number 4 | questions for it: count | epochs for it"
)


def tabulate_expenses(expenses: Sequence[ExpectedCost]) -> Table:
    """Tabulate the expected cost of each benchmark, and the sum."""
    rows: list[list[Cell]] = [
        [each.planned.benchmark, each.planned.cases, *_make_usage_cells(each.usage), each.minutes] for each in expenses
    ]
    measured = [expense for expense in expenses if expense.usage is not None]
    if len(expenses) > 1 and measured:
        usage = sum((expense.usage for expense in measured if expense.usage), Usage())
        minutes = [expense.minutes for expense in measured if expense.minutes is not None]
        cases = sum(expense.planned.cases for expense in expenses)
        rows.append(["all", cases, *_make_usage_cells(usage), math.fsum(minutes) if minutes else None])
    return Table("", EXPENSE_COLUMNS, rows)


def _make_usage_cells(usage: Usage | None) -> list[Cell]:
    if usage is None:
        return [None] * 4
    return [usage.calls, usage.prompt_tokens, usage.completion_tokens, convert_cell(usage.cost)]


def tabulate_detectable_losses(losses: Sequence[DetectableLoss]) -> Table:
    """Tabulate each metric's smallest detectable loss (power 80%), and how many questions detect the target loss."""
    return Table("", LOSS_COLUMNS, [_make_loss_row(metric) for metric in losses])


def _make_loss_row(metric: DetectableLoss) -> list[Cell]:
    return [
        str(metric.subject),
        metric.questions,
        metric.after,
        convert_cell(metric.compute_detectable_loss()),
        convert_cell(metric.compute_detectable_loss(question_factor=2)),
        convert_cell(metric.compute_detectable_loss(epoch_factor=2) if metric.noise_known else None),
        metric.loss,
        metric.questions_needed,
        "?" if not metric.noise_known else str(metric.epochs_needed or "none suffice"),
    ]


def advise_on_loss(metric: DetectableLoss) -> str:
    """State whether the target loss is detectable and, if not, whether more questions or epochs would help."""
    name = str(metric.subject)
    drawn = metric.calibration
    fails = (
        f" Drawn {drawn.draws:,} times from earlier answers, equal models fail in {drawn.equal_fails:.1%}, and a loss "
        f"of {metric.loss:.3g} fails in {drawn.loss_fails:.0%}."
        if drawn
        else ""
    )
    detectable = metric.compute_detectable_loss()
    if detectable <= metric.loss:
        return f"{name}: a loss of {metric.loss:.3g} can be shown with what is there.{fails}"
    seen = f"a loss of {detectable:.3g} or more" if math.isfinite(detectable) else "no loss at all"
    words = f"{name}: {seen} can be shown, not {metric.loss:.3g}."
    if metric.questions_needed is not None:
        more = write_count(metric.questions_needed - metric.questions, "more question")
        words += f" {metric.loss:.3g} needs {more} ({metric.questions_needed:,} instead of {metric.questions:,})"
        if metric.epochs_needed:
            words += f", or {metric.epochs_needed} epochs in both runs"
        words += "."
    return f"{words} {_advise_on_epochs(metric)}{fails}"


def _advise_on_epochs(metric: DetectableLoss) -> str:
    if not metric.noise_known:
        return "Whether epochs help is not known: the baseline has one score per question."
    epochs = metric.compute_detectable_loss(epoch_factor=2)
    if not math.isfinite(epochs) or metric.compute_detectable_loss(question_factor=2) < 0.98 * epochs:
        return "For the same number of calls more questions pay more than more epochs."
    return "More epochs pay as much as more questions, call for call, and need no new questions."
