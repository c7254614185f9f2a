"""Gates on judges outside of a run: which of them may replace people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalsuite.decisions.conditions import JUDGE
from evalsuite.decisions.gates import decide
from evalsuite.decisions.measured import Measured
from evalsuite.decisions.verdict import Status
from evalsuite.output.reports.judges.certificate import labels_by_case
from evalsuite.results.judge_labels import JUDGE_METRICS
from evalsuite.results.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.decisions.conditions import Gate
    from evalsuite.decisions.gates import GateDecision
    from evalsuite.output.reports.judges.certificate import JudgeResults
    from evalsuite.results.tally import Row


def decide_judges(
    gates: Sequence[Gate],
    judges: Sequence[JudgeResults],
    people: Mapping[str, float],
    benchmark: str,
    sheets: Sequence[Mapping[str, float]] = (),
) -> list[GateDecision]:
    """Decide every gate on every judge.

    Args:
        gates: conditions on `judge.kappa` and the like, or on what the judge scores: `qa.corrected_faithful`.
        judges: those that have been asked.
        people: their labels, by case.
        benchmark: the one whose answers were judged.
        sheets: the labels of each person.
    """
    decisions = []
    for judge in judges:
        tally = labelled_tally(judge, people, sheets)
        agreeing = Tally(tuple(row for row in tally if row.facts))
        measured = {benchmark: Measured(tally, {})}
        if len(agreeing):
            measured[JUDGE] = Measured(agreeing, JUDGE_METRICS)
        decisions += [
            replace(decision, subject=f"{judge.name}: {decision.subject}")
            for decision in decide(gates, measured)
        ]
    return decisions


def labelled_tally(
    judge: JudgeResults, people: Mapping[str, float], sheets: Sequence[Mapping[str, float]] = ()
) -> Tally:
    """Make the judge's cases as a run has them: people's labels among the facts, errors where it was unreadable."""
    labels = labels_by_case(people, sheets)
    return Tally(
        tuple(_row(row, judge, people.get(row.case), labels.get(row.case, ())) for row in judge.tally)
    )


def _row(row: Row, judge: JudgeResults, label: float | None, labels: Sequence[float]) -> Row:
    if row.case not in judge.scores:
        return replace(row, outcome="error", facts={})
    scored = replace(row, scores={judge.score: judge.scores[row.case]}, facts={})
    if label is None:
        return scored
    compared = {"label": label, "passes": judge.passes, "nominal": judge.nominal}
    if judge.verdict(label) is not None:
        verdict = judge.people_verdict(labels)
        compared["verdict"] = 0.5 if verdict is None else verdict
    return replace(scored, facts={"ballots": [judge.judge], "people": {judge.score: compared}})


def status(decisions: Sequence[GateDecision], judges: Sequence[JudgeResults] = ()) -> Status:
    """Choose the status of a run with these decisions alone; incomplete if a judge gave nothing readable."""
    verdicts = {decision.verdict for decision in decisions}
    if verdicts - {"met", "missed"} or not all(judge.scores for judge in judges):
        return Status.INCOMPLETE
    return Status.GATE_MISSED if "missed" in verdicts else Status.GOOD
