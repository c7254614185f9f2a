"""Which metrics of a run are compared with its baseline, and their declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.core.types import SHARE, Metric
from evalsuite.decisions.baseline_result import ComparedMetric, ComparisonRules
from evalsuite.decisions.judge_drift import is_canary
from evalsuite.decisions.measured import PASS_RATE
from evalsuite.results.built_in import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalsuite.decisions.conditions import Gate
    from evalsuite.results.runs import Bench, Run


def subjects(
    run: Run, gates: Iterable[Gate], rules: ComparisonRules | None = None
) -> Iterator[ComparedMetric]:
    """Yields what to compare: each gated metric once, in the order of the gates.

    What a run took (`RESOURCES`) has no range that a margin could be a share of, and is compared only where
    `--margin` names it.
    """
    seen = set()
    for subject in _gated(run, list(gates)):
        named = rules is not None and own_margin(subject, rules) is not None
        if str(subject) not in seen and (subject.metric not in RESOURCES or named):
            seen.add(str(subject))
            yield subject


def _gated(run: Run, gates: Sequence[Gate]) -> Iterator[ComparedMetric]:
    for name, bench in run.benchmarks.items():
        if is_canary(bench.tally):
            # Its answers are nobody's: what differs there is the judge, see `judge_drift`.
            continue
        own = [gate for gate in gates if gate.covers(name)]
        if not gates and bench.primary is not None:
            lower = run.lower_is_better(name, bench.primary)
            yield ComparedMetric(name, None, None, bench.primary, lower_is_better=lower)
        for gate in own:
            for metric in bench.tally.metrics() if gate.metric == "*" else (gate.metric,):
                yield ComparedMetric(name, gate.tag, gate.value, metric, lower_is_better=not gate.wants_more)


def declared(run: Run, benchmark: str, metric: str) -> Metric:
    """A metric's declaration; without a range if there is none."""
    if metric == PASS_RATE:
        return SHARE
    return run.metrics(benchmark).get(metric, Metric())


def is_derived(bench: Bench, metric: str) -> bool:
    """Whether a metric is something other than a mean over cases."""
    return metric in bench.derived


def own_margin(subject: ComparedMetric, rules: ComparisonRules) -> float | None:
    """The loss that `--margin` sets for a subject, on the metric's own scale."""
    return rules.margins.get(f"{subject.benchmark}.{subject.metric}", rules.margins.get(subject.metric))
