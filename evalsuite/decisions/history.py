"""Releases over time: each gated metric of each run, compared with fixed references.

A gate that compares each release with the previous one lets ten losses of one point pass. Here every release is
compared with the same reference. Since this repeats with each release, the error is spread over all looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalsuite.decisions.baseline import compare_to_baseline
from evalsuite.decisions.baseline_result import ComparisonRules
from evalsuite.decisions.compared_metrics import subjects
from evalsuite.decisions.conditions import gates_of
from evalsuite.decisions.measured import Measured, select
from evalsuite.decisions.quarantine import deciding, quarantine_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.decisions.baseline_result import ComparedMetric
    from evalsuite.decisions.conditions import Gate
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Estimate
    from evalsuite.stats import NonInferiority


def level_at(look: int, level: float = 0.05) -> float:
    """The level of the n-th of arbitrarily many looks: level / (n (n + 1)), which sums to the level over all of them.

    By Bonferroni's inequality the chance of any false alarm, ever, is at most the level, however the looks depend on
    each other; releases that answer the same questions do.

    Args:
        look: from 1.
        level: of all looks together.
    """
    return level / (look * (look + 1))


@dataclass(frozen=True, slots=True)
class Standing:
    """One release compared with one reference by one metric.

    Attributes:
        result: the paired comparison; None where there is none.
        level: at which a fall counts as shown at this look.
        drifted: whether a fall is shown, and a loss of the margin is not excluded.
        reason: why there is no comparison.
    """

    result: NonInferiority | None
    level: float
    drifted: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """One metric of one run.

    Attributes:
        run: its name.
        model: that was asked.
        started: when, as ISO 8601.
        estimate: the metric; None where it was not measured.
        standings: by the name of the reference; none for a reference itself and for runs before it.
    """

    run: str
    model: str
    started: str
    estimate: Estimate | None
    standings: Mapping[str, Standing] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Course:
    """One metric over all releases, oldest first."""

    subject: ComparedMetric
    releases: Sequence[Release]

    def drifts(self, latest_only: bool = False) -> list[str]:  # noqa: FBT001, FBT002 - named by its callers
        """A line for each release that fell behind a reference."""
        chosen = self.releases[-1:] if latest_only else self.releases
        return [
            f"{self.subject} has drifted: {standing.result.candidate:.4g} in {release.run} after "
            f"{standing.result.baseline:.4g} in {reference} (p = {standing.result.pvalue:.2g}, "
            f"level {standing.level:.2g})"
            for release in chosen
            for reference, standing in release.standings.items()
            if standing.drifted and standing.result is not None
        ]


def trace(
    runs: Sequence[Run], references: Sequence[Run], rules: ComparisonRules | None = None
) -> list[Course]:
    """The course of each metric that the newest run gates, or of its primary metrics.

    Args:
        runs: the releases in their order.
        references: protected runs, which every other run after them is compared with.
        rules: of the comparisons.
    """
    rules = rules or ComparisonRules()
    gates = gates_of(runs[-1])
    # Each release decides without what was in quarantine when it ran.
    runs = [deciding(run, quarantine_of(run)) for run in runs]
    references = [deciding(run, quarantine_of(runs[-1])) for run in references]
    listed = list(subjects(runs[-1], gates, rules))
    standings = {
        reference.folder.name: _against(reference, runs, gates, rules, max(1, len(listed)) * len(references))
        for reference in references
    }
    return [Course(subject, [_release(run, subject, standings) for run in runs]) for subject in listed]


def _against(
    reference: Run, runs: Sequence[Run], gates: Sequence[Gate], rules: ComparisonRules, tests: int
) -> dict[str, dict[str, Standing]]:
    """By run and metric, how releases after a reference compare with it; metrics share the level."""
    names = [run.folder.name for run in runs]
    later = runs[names.index(reference.folder.name) + 1 :] if reference.folder.name in names else runs
    by_run: dict[str, dict[str, Standing]] = {}
    for look, run in enumerate(later, 1):
        level = level_at(look) / tests
        against = compare_to_baseline(reference, run, gates, rules)
        own = {
            str(subject): Standing(
                result,
                level,
                # The plain verdict tells whether the margin is excluded; a fall within it is no drift.
                result.deteriorated and result.pvalue <= level and verdict != "no worse",
            )
            for subject, result, verdict in against.found
        }
        own |= {
            subject: Standing(None, level, reason=reason) for subject, reason in against.not_compared.items()
        }
        by_run[run.folder.name] = own
    return by_run


def _release(
    run: Run, subject: ComparedMetric, standings: Mapping[str, Mapping[str, Mapping[str, Standing]]]
) -> Release:
    name = run.folder.name
    return Release(
        name,
        str(run.info.get("model") or ""),
        str(run.info.get("started") or ""),
        _estimate(run, subject),
        {
            reference: by_run[name][str(subject)]
            for reference, by_run in standings.items()
            if str(subject) in by_run.get(name, {})
        },
    )


def _estimate(run: Run, subject: ComparedMetric) -> Estimate | None:
    bench = run.benchmarks.get(subject.benchmark)
    if bench is None:
        return None
    measured = Measured(bench.tally, bench.derived, run.metrics(subject.benchmark))
    return measured.with_interval(subject.metric, select(bench.tally, subject.tag, subject.value))
