"""Metrics over all cases of a benchmark, for `@benchmark(..., metrics=[...])`: measured, gated on, drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SettingsError
from evalsuite.core.types import SHARE
from evalsuite.metrics import classification
from evalsuite.output.reports.generic import generic_section
from evalsuite.output.reports.section import Chart, Column, Section, Series, Table
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from evalsuite.results.tally import RunView, Tally

Measure = Callable[["Tally"], "Estimate | float | None"]
_Draw = Callable[[str, "RunView"], "Sequence[Table | Chart]"]


@dataclass(frozen=True, slots=True)
class CaseMetric:
    """A metric that is no mean over cases.

    Attributes:
        name: as gates and tables have it.
        measure: reads it off a tally; None where it cannot be had.
        draw: makes further tables and charts of a benchmark's name and a run; None for none.
        lower_is_better: whether less is better.
        range: its least and greatest value, which a loss against a baseline is a share of; None where it has none.
    """

    name: str
    measure: Measure
    draw: _Draw | None = None
    lower_is_better: bool = False
    range: tuple[float, float] | None = None

    def __call__(self, tally: Tally) -> Estimate | None:
        """The metric of these cases."""
        value = self.measure(tally)
        return value if isinstance(value, Estimate | None) else Estimate(float(value), n=len(tally))


def as_case_metric(metric: CaseMetric | Measure) -> CaseMetric:
    """A metric by itself, or made of any function of a tally, whose name it has.

    Raises:
        SettingsError: it is no function with a name.
    """
    if isinstance(metric, CaseMetric):
        return metric
    name = str(getattr(metric, "__name__", "<"))
    if not name.isidentifier():
        raise SettingsError(
            f"metrics: {metric!r} is not a metric; give macro_f1() or the like, or a named function"
        )
    return CaseMetric(name, metric)


def report_with(
    metrics: Sequence[CaseMetric], title: str, name: str
) -> Callable[[Sequence[RunView]], Section]:
    """A benchmark's report: its metrics and tags, and what these metrics draw."""
    return partial(_report, tuple(metrics), title, name)


def _report(metrics: Sequence[CaseMetric], title: str, name: str, runs: Sequence[RunView]) -> Section:
    section = generic_section(title, name, runs, {metric.name: metric for metric in metrics})
    drawn = [
        _of_run(block, run, number if len(runs) > 1 else 0)
        for metric in metrics
        if metric.draw
        for number, run in enumerate(runs, 1)
        for block in metric.draw(name, run)
    ]
    return Section(section.title, [*section.blocks, *drawn])


def _of_run(block: Table | Chart, run: RunView, number: int) -> Table | Chart:
    """Name the run that a table or chart is of, where there are several; 0 where there is one."""
    if not number:
        return block
    title = f"{block.title}: {run.label}"
    if isinstance(block, Chart):
        return replace(block, title=title, name=f"{block.name}_{number}")
    return replace(block, title=title)


def _labels(tally: Tally) -> tuple[list[str], list[str]]:
    """What should have been said, and what was; as the scorer `one_of` leaves it."""
    rows = [row for row in tally if row.outcome != "error" and row.facts.get("target_label")]
    return [str(row.facts["target_label"]) for row in rows], [str(row.facts.get("label", "")) for row in rows]


def _of_labels(function: Callable[[Sequence[str], Sequence[str]], float], tally: Tally) -> Estimate | None:
    targets, labels = _labels(tally)
    return Estimate(function(targets, labels), n=len(targets)) if targets else None


def macro_f1() -> CaseMetric:
    """`macro_f1`: the plain mean of the F1 of the labels that `one_of` reads; in [0, 1]."""
    return CaseMetric("macro_f1", partial(_of_labels, classification.macro_f1), range=SHARE.range)


def micro_f1() -> CaseMetric:
    """`micro_f1`: the F1 of all labels that `one_of` reads, together; in [0, 1]."""
    return CaseMetric("micro_f1", partial(_of_labels, classification.micro_f1), range=SHARE.range)


def confusion_matrix() -> CaseMetric:
    """`labels_confused`: cases with another label than the target's; the report draws the matrix.

    Rows are targets, columns what `one_of` read; the last column is answers that named no label.
    """
    return CaseMetric("labels_confused", _confused, _draw_confusion, lower_is_better=True)


def _confused(tally: Tally) -> Estimate | None:
    targets, labels = _labels(tally)
    wrong = sum(target != label for target, label in zip(targets, labels, strict=True))
    return Estimate(float(wrong), n=len(targets)) if targets else None


def confusion_counts(tally: Tally) -> tuple[list[str], list[str], list[list[int]]]:
    """Targets, labels (the empty one last, where it occurs), and how often each met each."""
    targets, labels = _labels(tally)
    rows = sorted(set(targets) | set(labels) - {""})
    columns = [*rows, *([""] if "" in labels else [])]
    counts = Counter(zip(targets, labels, strict=True))
    return rows, columns, [[counts[row, column] for column in columns] for row in rows]


def _draw_confusion(name: str, run: RunView) -> Sequence[Table | Chart]:
    rows, columns, counts = confusion_counts(run.tally)
    heads = [column or "(none)" for column in columns]
    table = Table(
        "Confusion matrix",
        [Column("target"), *(Column(head, "count") for head in heads)],
        [[row, *line] for row, line in zip(rows, counts, strict=True)],
        "Rows are targets, columns the labels that the answers named.",
    )
    series = [Series(row, list(map(float, line))) for row, line in zip(rows, counts, strict=True)]
    chart = Chart(
        "heatmap", f"{name}_confusion", f"{name}: confusion matrix", heads, series, "count", x_title="answer"
    )
    return [table, chart] if rows else []


def _both(tally: Tally, first: str, second: str) -> tuple[list[float], list[float]]:
    rows = [row for row in tally.scored(first) if second in row.scores]
    return [row.scores[first] for row in rows], [row.scores[second] for row in rows]


def calibration_error(confidence: str, right: str, *, bins: int = 10) -> CaseMetric:
    """`calibration_error`: expected calibration error of two scores; in [0, 1], 0 is best.

    Args:
        confidence: name of the score that says how sure the model was, in [0, 1].
        right: name of the score that says whether it was right.
        bins: of equal width.
    """

    def measure(tally: Tally) -> Estimate | None:
        sure, correct = _both(tally, confidence, right)
        if not sure:
            return None
        return Estimate(classification.expected_calibration_error(sure, correct, bins), n=len(sure))

    def draw(name: str, run: RunView) -> Sequence[Table | Chart]:
        rows = classification.reliability(*_both(run.tally, confidence, right), bins)
        labels = [f"{sure:.2f}" for sure, _, _ in rows]
        series = [
            Series("right", [share for _, share, _ in rows]),
            Series("sure", [sure for sure, _, _ in rows]),
        ]
        chart = Chart(
            "lines",
            f"{name}_calibration",
            f"{name}: calibration",
            labels,
            series,
            limits=(0.0, 1.0),
            x_title=confidence,
        )
        return [chart] if rows else []

    return CaseMetric("calibration_error", measure, draw, lower_is_better=True, range=SHARE.range)


def auroc(score: str, positive: str) -> CaseMetric:
    """`auroc`: the chance that a score ranks a positive case above a negative one; in [0, 1].

    Args:
        score: name of the score that ranks.
        positive: name of the score that is 1 for positive cases, else 0.
    """

    def measure(tally: Tally) -> Estimate | None:
        scores, marks = _both(tally, score, positive)
        if not 0 < sum(mark > 0.5 for mark in marks) < len(marks):
            return None
        return Estimate(classification.area_under_roc(scores, [mark > 0.5 for mark in marks]), n=len(scores))

    return CaseMetric("auroc", measure, range=SHARE.range)


def spearman(first: str, second: str) -> CaseMetric:
    """`spearman`: rank correlation of two scores, by their names; in [-1, 1]."""

    def measure(tally: Tally) -> Estimate | None:
        from evalsuite import stats

        a, b = _both(tally, first, second)
        if len(set(a)) < 2 or len(set(b)) < 2:
            return None
        result: Any = stats.spearman(a, b)
        return Estimate(float(result.statistic), n=len(a))

    return CaseMetric("spearman", measure, range=(-1.0, 1.0))
