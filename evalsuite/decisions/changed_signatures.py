"""Says where scores of two runs were made by judges that differ in prompts, scale, parameters or model."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from evalsuite.results.judge_labels import signatures_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.decisions.pairing import Common

_Change = tuple[str, str]
"""A signature in the baseline, and the one in this run."""


def changed_signatures(matches: Mapping[str, Common], baseline: str) -> list[str]:
    """A line for each change of a judge's signature on the questions that two runs share.

    Args:
        matches: the shared questions by benchmark.
        baseline: name of the earlier run.
    """
    return [
        f"{benchmark}: since {baseline}, the judge of {', '.join(metrics)} has changed from {before} to {now}: what "
        "the comparison shows of them is not the model's alone"
        for benchmark, common in matches.items()
        for (before, now), metrics in _changes(common).items()
    ]


def _changes(common: Common) -> dict[_Change, list[str]]:
    """By change, the scores that it concerns, in the order of their first appearance."""
    metrics: dict[_Change, dict[str, None]] = defaultdict(dict)
    for question in common.shared:
        before = signatures_of(common.before[question][0].facts)
        for metric, now in signatures_of(common.after[question][0].facts).items():
            if metric in before and before[metric] != now:
                metrics[before[metric], now][metric] = None
    return {change: list(names) for change, names in metrics.items()}
