"""The table of how judged scores were made, and the remark that a judge has changed since the baseline."""

from __future__ import annotations

from typing import Any

from evalsuite.core.types import SIGNATURES
from evalsuite.decisions.baseline import list_signature_changes
from evalsuite.decisions.comparison import pair_questions
from evalsuite.output.reports.judges import tabulate_signatures
from evalsuite.results.tally import Row, RunView, Tally


def tally(*facts: Any) -> Tally:
    return Tally(tuple(Row(f"c{at}", f"s{at}", 1, "passed", {}, {}, one) for at, one in enumerate(facts)))


def signed(**signatures: str) -> dict[str, Any]:
    return {SIGNATURES: signatures}


def test_each_signature_has_a_row_with_its_scores_and_cases() -> None:
    both = signed(quality="sampled|1", depth="sampled|1", clear="rubric|2")
    table = tabulate_signatures([RunView("gpt", tally(signed(quality="sampled|1"), both, {}, both))])
    assert table is not None
    assert table.rows == [["gpt", "clear", "rubric|2", 2], ["gpt", "quality, depth", "sampled|1", 3]]


def test_expected_scores_made_of_little_probability_are_flagged_with_their_share() -> None:
    name = signed(quality="weighted|w", clear="rubric|r")
    weighted = {**name, "weights": {"quality": {"method": "logprobs", "mass": 0.9}}}
    little = {**name, "weights": {"quality": {"method": "logprobs", "mass": 0.1, "little": True}}}
    table = tabulate_signatures([RunView("gpt", tally(weighted, little, weighted, little))])
    assert table is not None
    assert [(row[1], row[4]) for row in table.rows] == [("clear", None), ("quality", 0.5)]


def test_without_judges_there_is_no_table() -> None:
    assert tabulate_signatures([RunView("gpt", tally({}))]) is None


def test_a_judge_that_changed_since_the_baseline_is_named_with_its_scores() -> None:
    before = tally(signed(quality="a", depth="a", clear="r"), signed(quality="a"))
    now = tally(signed(quality="b", depth="b", clear="r", new="n"), signed(quality="b"))
    (line,) = list_signature_changes({"poems": pair_questions(before, now)}, "main")
    assert line.startswith("poems: since main, the judge of quality, depth has changed from a to b: ")
    assert not list(list_signature_changes({"poems": pair_questions(now, now)}, "main"))
