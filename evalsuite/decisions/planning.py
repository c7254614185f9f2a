"""Predict, from an earlier run and before any request, what a suite will cost and how small a loss it can detect."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from evalsuite import stats
from evalsuite.core.types import Usage
from evalsuite.decisions import comparison
from evalsuite.decisions.comparison import ComparedMetric, ScorePair
from evalsuite.decisions.measured import select_cases
from evalsuite.results.tally import Tally

if TYPE_CHECKING:
    from evalsuite.decisions.gates import Gate
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Row
    from evalsuite.stats.power import DifferenceVariance


@dataclass(frozen=True, slots=True)
class PlannedBenchmark:
    """One benchmark's cases in a planned run."""

    benchmark: str
    cases: int
    questions: int  # The number of different samples among the cases.
    epochs: int  # The number of epochs of the sample with the most epochs.


def count_planned_cases(cases: Iterable[tuple[str, str]]) -> list[PlannedBenchmark]:
    """Count the cases, samples and epochs of each benchmark, given the benchmark and sample of each case."""
    epochs: dict[str, Counter[str]] = {}
    for benchmark, sample in cases:
        epochs.setdefault(benchmark, Counter())[sample] += 1
    counted = sorted(epochs.items())
    return [PlannedBenchmark(name, counts.total(), len(counts), max(counts.values())) for name, counts in counted]


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """The expected cost of one benchmark, from the mean costs in an earlier run."""

    planned: PlannedBenchmark
    # The expected usage of model, judge and simulators; None if the earlier run lacks the benchmark.
    usage: Usage | None = None
    # The expected duration in minutes, if as many requests run at once as in the earlier run.
    minutes: float | None = None


@dataclass(frozen=True, slots=True)
class DetectableLoss:
    """The smallest loss of one metric that a planned run can show."""

    subject: ComparedMetric
    questions: int  # How many planned questions have the metric.
    before: int  # Epochs per sample in the baseline.
    after: int  # Epochs per sample in the planned run.
    loss: float  # The loss that the planned run should be able to detect, on the metric's own scale.
    variance: DifferenceVariance
    source: str  # A description of the data from which the variance is estimated.
    noise_known: bool  # Whether the earlier run has several epochs, so that the effect of more epochs is known.
    # Two probabilities of failing: for an equally good model, and for a model with the loss `loss`. None without
    # repeated answers.
    calibration: stats.Calibration | None = None

    def compute_detectable_loss(self, *, question_factor: int = 1, epoch_factor: int = 1) -> float:
        """Compute the smallest loss detected with a probability of 80%, with more questions, or more epochs per run."""
        epochs = epoch_factor * self.before, epoch_factor * self.after
        return self.variance.compute_detectable_loss(question_factor * self.questions, *epochs)

    @property
    def questions_needed(self) -> int | None:
        """The number of questions that would show the loss with the planned epochs; None if it exceeds a billion."""
        try:
            return self.variance.count_questions_needed(self.loss, self.before, self.after)
        except ValueError:
            return None

    @property
    def epochs_needed(self) -> int | None:
        """The epochs that both runs need to show the loss with the planned questions; None if unknown or impossible."""
        return self.variance.count_epochs_needed(self.loss, self.questions) if self.noise_known else None


def estimate_expense(
    planned: PlannedBenchmark, baseline: Run | None, price: Callable[[Usage], float] | None = None
) -> ExpectedCost:
    """Estimate the cost of one benchmark.

    The function `price` computes a usage's cost in US dollars, or NaN if the cost is unknown. If `price` is None, the
    calls keep the costs of the earlier run.
    """
    bench = baseline.benchmarks.get(planned.benchmark) if baseline else None
    rows = [row for row in bench.tally if row.outcome in {"passed", "failed"}] if bench else []
    if not rows or baseline is None:
        return ExpectedCost(planned)
    factor = planned.cases / len(rows)
    whole = sum((row.usage for row in rows), Usage())
    counts = {name: math.ceil(count * factor) for name, count in asdict(whole).items() if name != "cost"}
    kept, costs = whole, 0.0
    if price is not None:
        # Replace only the tested model's cost; the cost of judge and simulators stays the same.
        kept = sum((row.usage - row.model_usage for row in rows), Usage())
        costs = math.fsum(price(row.model_usage) for row in rows)
    usage = Usage(**counts, cost=math.nan if kept.unpriced else factor * (kept.cost + costs))
    minutes = None
    total = math.fsum(row.seconds for row in baseline.all_rows())
    if total and (seconds := baseline.info.get("seconds")):
        # The earlier run's duration times this benchmark's share of the seconds of all its cases.
        minutes = float(seconds) * math.fsum(row.seconds for row in rows) / total * factor / 60
    return ExpectedCost(planned, usage, minutes)


def compute_detectable_losses(
    planned: Iterable[PlannedBenchmark], baseline: Run, earlier: Run | None, gates: Iterable[Gate], target_loss: float
) -> list[DetectableLoss]:
    """Compute the smallest detectable loss of each gated metric or, if the run has no gates, of each primary metric.

    `target_loss` is the loss that the run should be able to show, as a share of a metric's range.
    """
    parts = {part.benchmark: part for part in planned}
    return [
        sight
        for subject in comparison.list_compared_metrics(baseline, gates)
        if subject.benchmark in parts
        if (sight := _compute_detectable_loss(subject, parts[subject.benchmark], baseline, earlier, target_loss))
        is not None
    ]


def _compute_detectable_loss(
    subject: ComparedMetric, planned: PlannedBenchmark, baseline: Run, earlier: Run | None, target_loss: float
) -> DetectableLoss | None:
    """Compute the detectable loss of a metric; None without a range or with fewer than two scored questions."""
    if subject.metric in baseline.benchmarks[subject.benchmark].derived:
        return _compute_detectable_loss_of_derived_metric(subject, planned, baseline, earlier, target_loss)
    tally = select_cases(baseline.benchmarks[subject.benchmark].tally, subject.tag, subject.value)
    groups = comparison.group_by_question(tally).values()
    found = ((rows[0], comparison.list_scores_of_question(rows, subject.metric)) for rows in groups)
    scored = [(row, scores) for row, scores in found if scores]
    bounds = comparison.find_range(baseline, subject, (score for _, scores in scored for score in scores))
    if len(scored) < 2 or bounds is None:
        return None
    width = bounds[1] - bounds[0]
    questions = _estimate_question_count(planned, baseline, subject, tally)
    before = max(len(scores) for _, scores in scored)
    loss = target_loss * width
    pairs = []
    if earlier is not None and subject.benchmark in earlier.benchmarks:
        pairs = comparison.pair_questions(earlier.benchmarks[subject.benchmark].tally, tally).list_pairs(subject.metric)
    pairs = pairs if len(pairs) > 1 else []  # One pair does not have a variance.
    variance, source = _estimate_variance(scored, pairs, width)
    epochs = [ScorePair(row, scores[0], scores[1]) for row, scores in scored if len(scores) > 1]
    drawn = None
    if (repeated := pairs or epochs) and 0 < loss < width:
        first, second, clusters = comparison.split_score_pairs(repeated)
        compared = stats.compare_paired(first, second, margin=loss, clusters=clusters, scale=width)
        drawn = compared.calibrate(cases=questions)
    return DetectableLoss(subject, questions, before, planned.epochs, loss, variance, source, before > 1, drawn)


def _compute_detectable_loss_of_derived_metric(
    subject: ComparedMetric, planned: PlannedBenchmark, baseline: Run, earlier: Run | None, target_loss: float
) -> DetectableLoss | None:
    """Compute the smallest loss of a metric that is detectable on all cases.

    The variance of one question is the difference's squared jackknife error times the number of questions. A derived
    metric's squared error shrinks in proportion to this number. If two earlier runs exist, the variance comes from the
    difference between them. If only the baseline exists, assume that two independent runs have the baseline's variance.
    Assume that more epochs do not change the variance. The result is None if the metric declares no range, or is
    undefined on all cases or without some group of clusters.
    """
    from evalsuite.stats.power import DifferenceVariance

    bench = baseline.benchmarks[subject.benchmark]
    limits = comparison.find_declaration(baseline, subject.benchmark, subject.metric).range
    tally = select_cases(bench.tally, subject.tag, subject.value)
    before = earlier.benchmarks.get(subject.benchmark) if earlier else None
    common = comparison.pair_questions(before.tally if before else Tally(), tally)
    source, alone = f"{len(common.shared)} questions of two earlier runs", len(common.shared) < 2
    if alone:
        common = comparison.pair_questions(tally, tally)
        source = "the baseline's cases, as if two runs had nothing in common: too cautious"
    replicates = common.compute_replicates(bench.derived[subject.metric])
    values = [after if alone else after - before for before, after in replicates]
    count = len(values)
    if limits is None or count < 2 or any(math.isnan(value) for value in values):
        return None
    centre = math.fsum(values) / count
    error = math.fsum((value - centre) ** 2 for value in values) * (count - 1) / count
    variance = DifferenceVariance(error * len(common.shared) * (2 if alone else 1), 0.0)
    loss = target_loss * (limits[1] - limits[0])
    questions = _estimate_question_count(planned, baseline, subject, tally)
    return DetectableLoss(subject, questions, planned.epochs, planned.epochs, loss, variance, source, noise_known=False)


def _estimate_question_count(planned: PlannedBenchmark, baseline: Run, subject: ComparedMetric, tally: Tally) -> int:
    """Estimate how many planned questions will have the metric: the same share as in the baseline."""
    whole = len(comparison.group_by_question(baseline.benchmarks[subject.benchmark].tally))
    return max(2, round(planned.questions * len(comparison.group_by_question(tally)) / whole))


def _estimate_variance(
    scored: Sequence[tuple[Row, Sequence[float]]], pairs: Sequence[ScorePair], width: float
) -> tuple[DifferenceVariance, str]:
    """Estimate the variance of a difference between two runs, and describe the data behind the estimate."""
    from evalsuite.stats.power import DifferenceVariance, compute_dispersion, estimate_within_variance

    values = [score for _, scores in scored for score in scores]
    within = estimate_within_variance(scores for _, scores in scored)
    crowding = _compute_design_effect(scored)
    shares = crowding == width == 1 and set(values) <= {0.0, 1.0}
    if pairs:
        spread = _compute_variance([pair.after - pair.before for pair in pairs])
        noise = 0.0 if within is None else 2 * within / max(len(scores) for _, scores in scored)
        between, source = max(spread - noise, 0.0), f"{len(pairs)} questions of two earlier runs"
    elif within is not None:
        between, source = 0.0, "the baseline's epochs"
    else:
        between = 2 * _compute_variance([scores[0] for _, scores in scored])
        source = "the spread of its scores, as if two runs had nothing in common: too cautious; ask two epochs"
    dispersion = compute_dispersion(values, width)
    return DifferenceVariance(between, within or 0.0, shares, crowding, width, dispersion), source


def _compute_variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _compute_design_effect(scored: Sequence[tuple[Row, Sequence[float]]]) -> float:
    """Compute how much the variance of a mean grows because questions share a source; the factor is at least 1."""
    sources = [row.cluster for row, _ in scored]
    if len(set(sources)) == len(sources) or len(set(sources)) < 2:
        return 1.0
    means = [math.fsum(scores) / len(scores) for _, scores in scored]
    apart, together = stats.clustered_mean(means).error, stats.clustered_mean(means, sources).error
    return max(1.0, (together / apart) ** 2) if apart else 1.0
