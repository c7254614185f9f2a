"""The certificate of a judge against the labels of several people."""

from __future__ import annotations

from evalsuite.output.reports.judges.certificate import JudgeResults, make_certificate
from evalsuite.output.reports.section import Table
from evalsuite.results.tally import Estimate, Row, Tally

CASES = [f"case {at:03}" for at in range(100)]
MAJORITY = {case: float(at % 3 > 0) for at, case in enumerate(CASES)}
DISSENTER = {case: 1 - verdict if at % 2 else verdict for at, (case, verdict) in enumerate(MAJORITY.items())}


def test_a_judge_that_agrees_with_most_people_on_every_case_has_full_agreement() -> None:
    sheets = [MAJORITY, MAJORITY, DISSENTER]
    people = {case: sum(sheet[case] for sheet in sheets) / 3 for case in CASES}
    tally = Tally(tuple(Row(case, case, 1, "passed", {}, {}) for case in CASES))
    judge = JudgeResults("judge", MAJORITY, len(CASES), 1.0, score="right", scale=(0.0, 1.0), tally=tally)
    (table,) = [
        block
        for block in make_certificate([judge], people, sheets).blocks
        if isinstance(block, Table) and block.title == "Agreement with people"
    ]
    (row,) = table.rows
    accuracy, sensitivity, specificity, kappa = row[1:5]
    assert isinstance(accuracy, Estimate)
    assert isinstance(kappa, Estimate)
    assert isinstance(sensitivity, Estimate)
    assert isinstance(specificity, Estimate)
    assert (accuracy.value, sensitivity.value, specificity.value, kappa.value) == (1.0, 1.0, 1.0, 1.0)
    assert row[-2:] == ("pass → pass: 66, pass → fail: 0, fail → pass: 0, fail → fail: 34", 100)
