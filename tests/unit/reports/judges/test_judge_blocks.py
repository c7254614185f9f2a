"""What the report of any cases says of their judges."""

from __future__ import annotations

from typing import Any

from evalsuite.output.reports.generic import make_generic_section
from evalsuite.output.reports.judges import make_judge_tables
from evalsuite.results.tally import Row, RunView


def view(tally: Any) -> RunView:
    return RunView("run", tally, judge="gpt-4")


def test_cases_without_judges_have_nothing_to_say_of_them(made: Any) -> None:
    assert (
        make_judge_tables(
            [view(made.tally([Row("a", "a", 1, "passed", {}, {"exact_match": 1.0}, {"finish": "stop"})]))]
        )
        == []
    )


def test_comparisons_show_biases_and_panels_their_agreement(made: Any) -> None:
    pair = [made.ballot("first", "a"), made.ballot("second", "b")]
    tables = make_judge_tables([view(made.tally([made.row("s", "tie", pair), made.row("t", "tie", pair)]))])
    assert [table.title for table in tables] == ["Biases of gpt-4 (run)", "Agreement within gpt-4 (run)"]


def test_direct_scores_of_one_judge_have_neither(made: Any) -> None:
    assert make_judge_tables([view(made.tally([made.row("s", None, [made.ballot(None, clear=3.0)])]))]) == []


def test_judges_of_one_case_are_shown_apart(made: Any) -> None:
    facts: Any = {
        name: {"verdict": "first", "ballots": [made.ballot("first"), made.ballot(other, swapped=True)]}
        for name, other in (("strict_", "first"), ("kind_", "second"))
    }
    tables = make_judge_tables([view(made.tally([Row("s", "s", 1, "passed", {}, {}, facts)]))])
    assert [table.title for table in tables] == ["Biases of gpt-4, kind (run)", "Biases of gpt-4, strict (run)"]
    assert [table.rows[0][2].value for table in tables] == [1.0, 0.0]  # type: ignore[union-attr] # estimates


def test_the_section_of_any_benchmark_tells_of_its_judges(made: Any) -> None:
    pair = [made.ballot("first"), made.ballot("second", swapped=True)]
    section = make_generic_section("mine", "mine", [view(made.tally([made.row("s", "tie", pair)]))])
    assert "Biases of gpt-4 (run)" in [block.title for block in section.blocks]
