"""Follow metrics over several releases, detect slow drift from a reference run, and find flaky cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalsuite.decisions.baseline import compare_to_baselines
from evalsuite.decisions.comparison import ComparedMetric, ComparisonRules, list_compared_metrics
from evalsuite.decisions.gates import Gate, read_gates
from evalsuite.decisions.measured import MeasuredBenchmark, select_cases
from evalsuite.decisions.quarantine import drop_quarantined_cases, read_run_quarantine

if TYPE_CHECKING:
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Estimate
    from evalsuite.stats import NonInferiority


def compute_test_level(number: int, level: float = 0.05) -> float:
    """Compute the significance level of the n-th test: level / (n (n + 1)). The levels of all tests sum to `level`.

    By Bonferroni's inequality, a false alarm in any of the tests has at most the probability `level`. The inequality
    also holds for dependent tests, such as comparisons of releases that answer the same questions.
    """
    return level / (number * (number + 1))


@dataclass(frozen=True, slots=True)
class ReferenceComparison:
    """One metric of one release, compared with one reference run."""

    result: NonInferiority | None  # The paired comparison with the reference run; None if the runs cannot be compared.
    level: float  # The significance level of this comparison.
    drifted: bool = False  # Whether the loss is significant and not proven smaller than the margin.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseEstimate:
    """One metric of one run."""

    run: str
    model: str
    started: str  # The start of the run, as ISO 8601.
    estimate: Estimate | None  # The metric's estimate; None if the run does not have the metric.
    # The comparisons with older reference runs, keyed by the name of the reference.
    standings: Mapping[str, ReferenceComparison] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """One metric over all releases, oldest first."""

    subject: ComparedMetric
    releases: Sequence[ReleaseEstimate]

    def list_drifts(self, latest_only: bool = False) -> list[str]:  # noqa: FBT001, FBT002 - named by its callers
        """Report each release that drifted from a reference."""
        chosen = self.releases[-1:] if latest_only else self.releases
        return [
            f"{self.subject} has drifted: {standing.result.candidate:.4g} in {release.run} after "
            f"{standing.result.baseline:.4g} in {reference} (p = {standing.result.pvalue:.2g}, "
            f"level {standing.level:.2g})"
            for release in chosen
            for reference, standing in release.standings.items()
            if standing.drifted and standing.result is not None
        ]


def track_metrics(runs: Sequence[Run], references: Sequence[Run], rules: ComparisonRules) -> list[MetricHistory]:
    """Track the metrics that the newest run's gates name, or its primary metrics if it has no gates."""
    gates = read_gates(runs[-1])
    # If a case was in quarantine when a release ran, leave the case out of this release and of its comparisons.
    runs = [drop_quarantined_cases(run, read_run_quarantine(run)) for run in runs]
    listed = list(list_compared_metrics(runs[-1], gates, rules))
    standings = {
        reference.folder.name: _compare_releases(reference, runs, gates, rules, max(1, len(listed)) * len(references))
        for reference in references
    }
    return [MetricHistory(subject, [_estimate_release(run, subject, standings) for run in runs]) for subject in listed]


def _compare_releases(
    reference: Run, runs: Sequence[Run], gates: Sequence[Gate], rules: ComparisonRules, level_divisor: int
) -> dict[tuple[str, str], ReferenceComparison]:
    """Compare releases with a reference run; the result is keyed by run and metric."""
    names = [run.folder.name for run in runs]
    later = runs[names.index(reference.folder.name) + 1 :] if reference.folder.name in names else runs
    compared: dict[tuple[str, str], ReferenceComparison] = {}
    for number, run in enumerate(later, 1):
        level = compute_test_level(number) / level_divisor
        compared_reference = drop_quarantined_cases(reference, read_run_quarantine(run))
        (against,) = compare_to_baselines([compared_reference], run, gates, rules)
        for subject, result, verdict in against.found:
            # The verdict `no worse` means that the loss is smaller than the margin, so it is not drift.
            drifted = result.deteriorated and result.pvalue <= level and verdict != "no worse"
            compared[run.folder.name, str(subject)] = ReferenceComparison(result, level, drifted)
        for subject, reason in against.not_compared.items():
            compared[run.folder.name, str(subject)] = ReferenceComparison(None, level, reason=reason)
    return compared


def _estimate_release(
    run: Run, subject: ComparedMetric, comparisons: Mapping[str, Mapping[tuple[str, str], ReferenceComparison]]
) -> ReleaseEstimate:
    """Estimate a metric of one run, and look up the metric's comparisons with each reference run."""
    name, model, started = run.folder.name, run.info.get("model") or "", run.info.get("started") or ""
    estimate = None
    if subject.benchmark in run.benchmarks:
        measured = MeasuredBenchmark.from_run(run, subject.benchmark)
        cases = select_cases(measured.tally, subject.tag, subject.value)
        estimate = measured.estimate_with_interval(subject.metric, cases)
    key = name, str(subject)
    standings = {reference: compared[key] for reference, compared in comparisons.items() if key in compared}
    return ReleaseEstimate(name, str(model), str(started), estimate, standings)


REQUEST_FINGERPRINTS = ("input", "target", "prompt", "params", "scorers", "judge", "user")
"""Fingerprints that must be equal for two outcomes to count as repetitions of the same question."""


@dataclass(frozen=True, slots=True)
class FlakyCase:
    """A flaky question: some epochs or runs passed and others failed."""

    model: str
    benchmark: str
    sample: str
    passed: int  # The number of epochs, over all runs, in which the test passed.
    failed: int  # The number of epochs in which the test failed; errors do not count.


def find_flaky_cases(runs: Iterable[Run]) -> list[FlakyCase]:
    """List the questions that passed and failed in different epochs or runs of one model, most changes first."""
    outcomes: dict[tuple[str, ...], Counter[str]] = {}
    for run in runs:
        for benchmark, bench in run.benchmarks.items():
            for row in bench.tally:
                ask = (row.fingerprints.get(name, "") for name in REQUEST_FINGERPRINTS)
                key = (str(run.info.get("model")), benchmark, row.sample, *ask)
                outcomes.setdefault(key, Counter())[row.outcome] += 1
    flaky = [
        FlakyCase(key[0], key[1], key[2], counts["passed"], counts["failed"])
        for key, counts in outcomes.items()
        if counts["passed"] and counts["failed"]
    ]
    return sorted(flaky, key=lambda one: (-min(one.passed, one.failed), one.model, one.benchmark, one.sample))
