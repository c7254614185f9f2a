"""Detects whether the judge has changed since the baseline, by canaries: fixed answers judged in both runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.decisions.pairing import common_questions
from evalsuite.results.judge_labels import CANARY, judge_accuracy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Tally

SURELY = 0.05
"""Share of canaries that a judge may judge otherwise by chance, before it counts as another judge."""


def judge_drift(baseline: Run, run: Run) -> list[str]:
    """A line for each score of a canary benchmark that the judge now gives differently."""
    return [
        line
        for name, bench in run.benchmarks.items()
        if is_canary(bench.tally) and name in baseline.benchmarks
        for line in _moved(name, baseline.benchmarks[name].tally, bench.tally, baseline.folder.name)
    ]


def is_canary(tally: Tally) -> bool:
    """Whether all cases are canaries, which watch the judge."""
    return len(tally) > 0 and all(CANARY in row.tags for row in tally)


def _moved(name: str, before: Tally, now: Tally, baseline: str) -> Iterator[str]:
    from evalsuite.stats import count_interval

    common = common_questions(before, now)
    for metric in now.metrics():
        pairs = common.pairs(metric)
        changed = sum(pair.before != pair.after for pair in pairs)
        if not changed:
            continue
        difference = (
            f"{name}.{metric}: {changed} of {len(pairs)} canaries are judged otherwise than in {baseline}"
        )
        accuracy = _agreement(before, now)
        if count_interval(changed, len(pairs)).low > SURELY:
            yield f"{difference}{accuracy}: the judge has moved, so what the comparison shows is not the model's alone"
        else:
            yield f"{difference}{accuracy}, which is within what a judge may vary"


def _agreement(before: Tally, now: Tally) -> str:
    old, new = judge_accuracy(before), judge_accuracy(now)
    return f" (agreement with people {new.value:.0%} after {old.value:.0%})" if old and new else ""
