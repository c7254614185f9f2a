"""The table of how judged scores were made."""

from __future__ import annotations

from typing import Any

from evalsuite.reporting.judges.signatures import signatures_table
from evalsuite.results.tally import Row, RunView, Tally


def view(*facts: Any) -> RunView:
    return RunView(
        "gpt", Tally(tuple(Row(f"c{at}", f"s{at}", 1, "passed", {}, {}, one) for at, one in enumerate(facts)))
    )


def test_each_signature_has_a_row_with_its_cases() -> None:
    one = {"ballots": [{}], "signature": "sampled|judge:a|version:1|hash:1"}
    other = {"clear": {"ballots": [{}], "signature": "rubric|judge:a|version:1|hash:2"}}
    table = signatures_table([view(one, one, {**one, **other})])
    assert table is not None
    assert [row[1:4] for row in table.rows] == [
        ("", "sampled|judge:a|version:1|hash:1", 3),
        ("clear", "rubric|judge:a|version:1|hash:2", 1),
    ]


def test_expected_scores_made_of_little_probability_are_flagged_with_their_share() -> None:
    weighted = {
        "ballots": [{}],
        "signature": "w",
        "weights": {"quality": {"method": "logprobs", "mass": 0.9}},
    }
    little = {**weighted, "weights": {"quality": {"method": "logprobs", "mass": 0.1, "little": True}}}
    table = signatures_table([view(weighted, little, weighted, little)])
    assert table is not None
    assert [row[4] for row in table.rows] == [0.5]


def test_without_judges_there_is_no_table() -> None:
    assert signatures_table([view({})]) is None
