"""Metrics over all cases of a benchmark, for `@benchmark(..., metrics=[...])`."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from evalsuite import stats
from evalsuite.core.errors import SettingsError
from evalsuite.core.types import SHARE
from evalsuite.metrics import classification
from evalsuite.output.reports.generic import CaseMetric
from evalsuite.output.reports.section import Chart, Series, Table, parse_columns
from evalsuite.results.tally import Estimate, RunView, Tally

__all__ = ["auroc", "calibration_error", "confusion_matrix", "macro_f1", "micro_f1", "spearman"]


def _read_labels(tally: Tally) -> tuple[list[str], list[str]]:
    """Read each case's target label and answered label from the facts that the scorer `one_of` records."""
    rows = [row for row in tally if row.outcome != "error" and row.facts.get("target_label")]
    return [str(row.facts["target_label"]) for row in rows], [str(row.facts.get("label", "")) for row in rows]


def _estimate_label_metric(function: Callable[[Sequence[str], Sequence[str]], float], tally: Tally) -> Estimate | None:
    """Estimate a metric from the cases' target labels and answered labels; None without labels."""
    targets, labels = _read_labels(tally)
    return Estimate(function(targets, labels), n=len(targets)) if targets else None


def macro_f1() -> CaseMetric:
    """Make the metric `macro_f1`: the unweighted mean of the labels' F1, in [0, 1].

    The scorer `one_of` records each case's target label and answered label.
    """
    return CaseMetric("macro_f1", partial(_estimate_label_metric, classification.compute_macro_f1), range=SHARE.range)


def micro_f1() -> CaseMetric:
    """Make the metric `micro_f1`: F1 over all labels together, in [0, 1].

    The scorer `one_of` records each case's target label and answered label.
    """
    return CaseMetric("micro_f1", partial(_estimate_label_metric, classification.compute_micro_f1), range=SHARE.range)


def confusion_matrix() -> CaseMetric:
    """Make the metric `labels_confused`: the share of cases whose answered label differs from the target.

    The report shows a matrix with a row per target label and a column per answered label; the last column counts
    answers without a label.
    """
    measure = partial(_estimate_label_metric, _compute_share_of_wrong_labels)
    return CaseMetric("labels_confused", measure, _make_confusion_matrix, lower_is_better=True, range=SHARE.range)


def _compute_share_of_wrong_labels(targets: Sequence[str], labels: Sequence[str]) -> float:
    return sum(target != label for target, label in zip(targets, labels, strict=True)) / len(targets)


def _make_confusion_matrix(name: str, run: RunView) -> Sequence[Table | Chart]:
    targets, labels = _read_labels(run.tally)
    rows = sorted(set(targets) | set(labels) - {""})
    columns = [*rows, *([""] if "" in labels else [])]  # The last column counts answers without a label.
    pairs = Counter(zip(targets, labels, strict=True))
    counts = [[pairs[row, column] for column in columns] for row in rows]
    heads = [column or "(none)" for column in columns]
    table = Table(
        "Confusion matrix",
        parse_columns("target", heads, "count"),
        [[row, *line] for row, line in zip(rows, counts, strict=True)],
        "Rows are targets, columns the labels that the answers named.",
    )
    series = [Series(row, list(map(float, line))) for row, line in zip(rows, counts, strict=True)]
    chart = Chart("heatmap", f"{name}_confusion", f"{name}: confusion matrix", heads, series, "count", x_title="answer")
    return [table, chart] if rows else []


def _require_score_names(metric: str, *scores: object) -> None:
    """Raise SettingsError if a value is not a text, because it must name a score."""
    for score in scores:
        if not isinstance(score, str):
            raise SettingsError(
                f"case_metrics.{metric} takes the names of two scores, not {score!r:.40}; for numbers there is "
                f"{'evalsuite.stats' if metric == 'spearman' else 'evalsuite.metrics.classification'}"
            )


def _list_paired_scores(tally: Tally, first: str, second: str) -> tuple[list[float], list[float]]:
    """Return the values of two scores as two lists, for the cases that have both."""
    rows = [row for row in tally.scored(first) if second in row.scores]
    return [row.scores[first] for row in rows], [row.scores[second] for row in rows]


def calibration_error(confidence: str, right: str, *, bins: int = 10) -> CaseMetric:
    """Make the metric `calibration_error`: how much confidence differs from accuracy, in [0, 1]; 0 is best.

    Args:
        confidence: name of the score that tells the model's confidence, in [0, 1].
        right: name of the score that tells whether the answer is right.
        bins: number of bins of equal width.
    """
    _require_score_names("calibration_error", confidence, right)

    def compute_calibration_error(tally: Tally) -> Estimate | None:
        sure, correct = _list_paired_scores(tally, confidence, right)
        if not sure:
            return None
        return Estimate(classification.compute_calibration_error(sure, correct, bins), n=len(sure))

    def make_reliability_chart(name: str, run: RunView) -> Sequence[Table | Chart]:
        rows = classification.compute_reliability_bins(*_list_paired_scores(run.tally, confidence, right), bins)
        labels = [f"{sure:.2f}" for sure, _, _ in rows]
        series = [Series("right", [share for _, share, _ in rows]), Series("sure", [sure for sure, _, _ in rows])]
        stem, title = f"{name}_calibration", f"{name}: calibration"
        chart = Chart("lines", stem, title, labels, series, limits=(0.0, 1.0), x_title=confidence)
        return [chart] if rows else []

    return CaseMetric(
        "calibration_error", compute_calibration_error, make_reliability_chart, lower_is_better=True, range=SHARE.range
    )


def auroc(score: str, positive: str) -> CaseMetric:
    """Make the metric `auroc`: the probability that a positive case has a higher score than a negative case; in [0, 1].

    Args:
        score: name of the score that ranks the cases.
        positive: name of the score that is 1 for positive cases, otherwise 0.
    """
    _require_score_names("auroc", score, positive)

    def compute_auroc(tally: Tally) -> Estimate | None:
        scores, marks = _list_paired_scores(tally, score, positive)
        if not 0 < sum(mark > 0.5 for mark in marks) < len(marks):
            return None
        return Estimate(classification.compute_area_under_roc(scores, [mark > 0.5 for mark in marks]), n=len(scores))

    return CaseMetric("auroc", compute_auroc, range=SHARE.range)


def spearman(first: str, second: str) -> CaseMetric:
    """Make `spearman`: the rank correlation of two named scores, in [-1, 1]."""
    _require_score_names("spearman", first, second)

    def compute_spearman(tally: Tally) -> Estimate | None:
        a, b = _list_paired_scores(tally, first, second)
        if len(set(a)) < 2 or len(set(b)) < 2:
            return None
        result: Any = stats.spearman(a, b)
        return Estimate(float(result.statistic), n=len(a))

    return CaseMetric("spearman", compute_spearman, range=(-1.0, 1.0))
