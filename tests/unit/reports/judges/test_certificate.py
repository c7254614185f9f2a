"""The certificate of a judge against the labels of several people."""

from __future__ import annotations

from typing import Any

from evalsuite.commands.judge import decide_judge_gates
from evalsuite.decisions.gates import parse_gate
from evalsuite.output.reports.judges.certificate import JudgeResults, make_judge_quality_section
from evalsuite.output.reports.section import Table
from evalsuite.results.judge_labels import NOT_ASKED
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
        for block in make_judge_quality_section([judge], people, sheets).blocks
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


def test_evenly_divided_people_have_no_verdict_but_on_two_compared_answers_a_tie() -> None:
    tally = Tally((Row("case", "case", 1, "passed", {}, {}),))
    labels = ({"case": 1.0}, {"case": 0.0})
    found: dict[bool, Any] = {}
    for nominal in (True, False):
        judge = JudgeResults("j", {"case": 0.5}, 1, 1.0, score="s", nominal=nominal, scale=(0.0, 1.0), tally=tally)
        (table,) = (
            block
            for block in make_judge_quality_section([judge], {"case": 0.5}, labels).blocks
            if isinstance(block, Table) and block.title == "Agreement with people"
        )
        assert table.note is not None
        assert "a comparison counts as a tie; any other case has no verdict" in table.note
        found[nominal] = table.rows[0][1]
    assert (found[True].value, found[False]) == (1.0, None)


def test_cases_without_the_judge_count_in_gates_on_scores_and_only_for_their_own_tags() -> None:
    tally = Tally(tuple(Row(case, case, 1, "passed", {"part": "asked"}, {}) for case in CASES))
    known = Tally(
        tuple(Row(f"x{at}", f"x{at}", 1, "passed", {"part": "rule"}, {"s": 0.0}, {NOT_ASKED: True}) for at in range(25))
    )
    scores = dict.fromkeys(CASES, 1.0)
    judge = JudgeResults("j", scores, 100, 1.0, score="s", scale=(0.0, 1.0), tally=tally, known=known)
    names = ["qa.s", "qa[part=asked].s", "qa.corrected_s", "qa[part=asked].corrected_s"]
    gates = [parse_gate(f"{name} >= 0.9") for name in names]
    decisions = decide_judge_gates(gates, [judge], dict.fromkeys(CASES[:50], 1.0), "qa")
    assert [each.estimate and (each.estimate.value, each.estimate.n) for each in decisions] == [
        (0.8, 125),
        (1.0, 100),
        (0.8, 125),
        (1.0, 100),
    ]


def _certify(scores: dict[str, float], people: dict[str, float], cluster_of: dict[str, str]) -> list[Table]:
    tally = Tally(tuple(Row(case, case, 1, "passed", {"cluster": cluster_of[case]}, {}) for case in scores))
    judges = [
        JudgeResults(
            name,
            values,
            len(scores),
            passes=1.0,
            mutations={"detects_numbers": values},
            score="right",
            lengths={case: 7 * int(case[5:8]) % 11 for case in scores},
            tally=tally,
        )
        for name, values in (("one", scores), ("other", people))
    ]
    return [block for block in make_judge_quality_section(judges, people).blocks if isinstance(block, Table)]


def _measure_width(estimate: Estimate) -> float:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.high - estimate.low


def test_cases_that_share_a_cluster_widen_every_interval() -> None:
    people = {f"{case} {epoch}": verdict for case, verdict in MAJORITY.items() for epoch in (1, 2)}
    scores = {f"{case} {epoch}": verdict for case, verdict in DISSENTER.items() for epoch in (1, 2)}
    independent = _certify(scores, people, {case: case for case in scores})
    clustered = _certify(scores, people, {case: case[:8] for case in scores})
    titles = [table.title for table in independent]
    assert titles == ["Judges", "Agreement with people", "Judges compared", "Longer answers", "Mutation tests"]
    for before, after in zip(independent, clustered, strict=True):
        cells = [cell for cell in zip(before.rows[0], after.rows[0], strict=True) if isinstance(cell[0], Estimate)]
        assert cells
        for narrow, wide in cells:
            assert isinstance(narrow, Estimate)
            assert isinstance(wide, Estimate)
            assert (narrow.value, narrow.n) == (wide.value, wide.n)
            assert _measure_width(wide) > 1.2 * _measure_width(narrow), before.title
