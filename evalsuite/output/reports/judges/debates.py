"""Debate on demand: accuracy by the number of calls, and whether the debate was worth its cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalsuite.judges.scorers import ALONE, WINS
from evalsuite.output.reports.judges.ballots import read_ballots
from evalsuite.output.reports.judges.estimates import mean_of_scores
from evalsuite.output.reports.section import Column, Table
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.output.reports.judges.ballots import Judged
    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import Tally

COLUMNS = (
    Column("Cases"),
    Column("Number", "count"),
    Column("Calls per case", "number", 1),
    Column("With people's choice", "count"),
    Column("Judge alone (%)", "percent"),
    Column("With debate (%)", "percent"),
    Column("Gain (%)", "percent"),
    Column("Calls per verdict gained", "number", 0),
    Column("Debate earned its cost"),
)
NOTE = (
    "One judge compares both orders; only where its two verdicts differ does the panel debate. Accuracy is agreement "
    "with people's choice; a tie counts one half where people prefer an answer, as a toss of a coin would. The debate "
    "earned its cost if the 95% interval of the gain lies above zero. Calls per verdict gained: the debate's calls "
    "by the gain in right verdicts."
)


def debate_table(title: str, tally: Tally, prefix: str = "") -> Table | None:
    """Make rows for cases that one judge decided, debated cases, and all cases; None if debates were not on demand."""
    cases = [case for case in read_ballots(tally, prefix) if ALONE in case.facts]
    debated = [case for case in cases if case.facts["calls"] > case.facts[ALONE]["calls"]]
    settled = [case for case in cases if case not in debated]
    groups = (("decided by one judge", settled), ("debated", debated), ("all", cases))
    return Table(title, COLUMNS, [_make_row(*group) for group in groups if group[1]], NOTE) if cases else None


def _make_row(name: str, cases: Sequence[Judged]) -> tuple[Cell, ...]:
    calls = sum(case.facts["calls"] for case in cases) / len(cases)
    labelled = [case for case in cases if case.facts.get("human") in WINS]
    if not labelled:
        return (name, len(cases), calls, 0, None, None, None, None, None)
    alone = [_agree(case.facts[ALONE]["verdict"], case) for case in labelled]
    joint = [_agree(case.verdict, case) for case in labelled]
    before, after = _find_accuracy(alone), _find_accuracy(joint)
    further = sum(case.facts["calls"] - case.facts[ALONE]["calls"] for case in labelled) / len(labelled)
    if not further:
        return (name, len(cases), calls, len(labelled), before, after, None, None, None)
    gain = _find_gain(alone, joint, [case.sample for case in labelled])
    price = further / gain.value if gain.value > 0 else None
    earned = "yes" if gain.low is not None and gain.low > 0 else "not shown"
    return (name, len(cases), calls, len(labelled), before, after, gain, price, earned)


def _agree(verdict: str | None, case: Judged) -> float:
    return 1 - abs(WINS[verdict] - WINS[case.facts["human"]])


def _find_accuracy(values: Sequence[float]) -> Estimate:
    mean = mean_of_scores(values)
    return (
        mean if mean.low is None or mean.high is None else replace(mean, low=max(0, mean.low), high=min(1, mean.high))
    )


def _find_gain(alone: Sequence[float], joint: Sequence[float], samples: Sequence[str]) -> Estimate:
    from evalsuite.stats import paired_difference

    found = paired_difference(alone, joint, clusters=samples, scale=1)
    return Estimate(found.difference, found.low, found.high, len(samples))
