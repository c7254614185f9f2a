"""Biases of judges, on judges whose bias is known because they were made with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from evalsuite.output.reports.judges import find_model_family, read_judged_cases, tabulate_biases
from evalsuite.output.reports.judges.estimates import estimate_share
from evalsuite.results.tally import Estimate
from evalsuite.stats import exact_interval

FLIPS, FIRST, LONGER, FAMILY = range(4)


def value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


class Bias(NamedTuple):
    """A row of the table of biases, without its names."""

    judge: Estimate | None
    expected: float | None
    excess: Estimate | None
    cases: int | None
    flagged: str | None


def measured(made: Any, rows: list[Any]) -> list[Bias]:
    cells: Any = [row[2:] for row in tabulate_biases("Biases", [("mine", made.tally(rows))]).rows]
    return [Bias(*row) for row in cells]


def both_orders(made: Any, name: str, as_given: str, swapped: str, **facts: Any) -> Any:
    ballots = [made.ballot(as_given), made.ballot(swapped, swapped=True)]
    return made.row(name, as_given if as_given == swapped else "tie", ballots, **facts)


def test_a_judge_that_takes_the_first_place_always_flips_and_is_flagged(made: Any) -> None:
    rows = [both_orders(made, f"s{at}", "first", "second") for at in range(20)]
    found = measured(made, rows)
    assert value(found[FLIPS].judge) == 1.0
    assert value(found[FIRST].judge) == 1.0
    assert found[FIRST].expected == 0.5
    assert found[FIRST].flagged == "yes"


def test_the_excess_of_a_judge_that_never_takes_the_first_place_reaches_down_to_minus_a_half(made: Any) -> None:
    excess = measured(made, [both_orders(made, f"s{at}", "second", "first") for at in range(20)])[FIRST].excess
    assert excess is not None
    assert (excess.value, excess.low) == (-0.5, -0.5)


def test_a_judge_that_sticks_to_its_answers_has_no_position_bias(made: Any) -> None:
    verdicts = ["first", "second"] * 10
    found = measured(made, [both_orders(made, f"s{at}", said, said) for at, said in enumerate(verdicts)])
    assert value(found[FLIPS].judge) == 0.0
    assert value(found[FIRST].excess) == 0.0
    assert found[FIRST].flagged == "no"


def test_cases_of_one_source_are_one_case_of_a_bias(made: Any) -> None:
    rows = [both_orders(made, f"s{at}", *(("first", "second") if at < 15 else ("first", "first"))) for at in range(20)]
    found = measured(made, rows)
    again = measured(made, [replace(row, tags={"cluster": f"source {at // 5}"}) for at, row in enumerate(rows)])
    for place in (FLIPS, FIRST):
        alone, together = found[place].judge, again[place].judge
        assert alone is not None
        assert together is not None
        assert together.low is not None
        assert (together.value, together.n) == (alone.value, alone.n)
        assert together.low < (alone.low or 0)


def test_first_places_count_only_where_both_orders_were_shown(made: Any) -> None:
    rows = [made.row(f"s{at}", "first", [made.ballot("first")]) for at in range(20)]
    assert measured(made, rows)[FIRST].judge is None


def test_orders_are_compared_debater_by_debater(made: Any) -> None:
    ballots = [
        made.ballot("first", "critic"),
        made.ballot("first", "public"),
        made.ballot("second", "critic", swapped=True),
        made.ballot("first", "public", swapped=True),
    ]
    flips = measured(made, [made.row("s", "first", ballots)])[FLIPS].judge
    assert flips is not None
    assert (flips.value, flips.n) == (0.5, 2)


def test_length_is_held_against_people_on_the_same_cases(made: Any) -> None:
    rows = [
        made.row(f"s{at}", "first", [made.ballot("first")], lengths=[90, 10], human="first" if at < 10 else "second")
        for at in range(20)
    ]
    longer = measured(made, rows)[LONGER]
    assert (value(longer.judge), longer.expected, value(longer.excess)) == (1.0, 0.5, 0.5)
    assert longer.flagged == "yes"


def test_a_judge_that_likes_what_people_like_is_not_biased_to_length(made: Any) -> None:
    rows = [made.row(f"s{at}", "first", [made.ballot("first")], lengths=[90, 10], human="first") for at in range(20)]
    longer = measured(made, rows)[LONGER]
    assert value(longer.excess) == 0.0
    assert longer.flagged == "no"


def test_ties_of_either_and_equal_lengths_say_nothing_about_length(made: Any) -> None:
    rows = [
        made.row("a", "tie", [made.ballot("tie")], lengths=[9, 1], human="first"),
        made.row("b", "first", [made.ballot("first")], lengths=[9, 1], human="tie"),
        made.row("c", "first", [made.ballot("first")], lengths=[5, 5], human="first"),
    ]
    assert measured(made, rows)[LONGER].judge is None


@pytest.mark.parametrize(
    ("model", "systems", "share_of_own"),
    [
        ("gpt-4", ["gpt35", "vicuna-13b"], 1.0),
        ("local:/x/vicuna-7b.gguf", ["gpt35", "vicuna-13b"], 0.0),
        ("claude-3", ["gpt35", "vicuna-13b"], None),
        ("gpt-4", ["gpt35", "gpt-4o"], None),
    ],
)
def test_kinship_counts_where_exactly_one_answer_is_of_the_judges_family(
    made: Any, model: str, systems: list[str], share_of_own: float | None
) -> None:
    rows = [
        made.row(f"s{at}", "first", [made.ballot("first", model=model)], systems=systems, human="first")
        for at in range(5)
    ]
    assert value(measured(made, rows)[FAMILY].judge) == share_of_own


def test_families_are_told_by_names() -> None:
    names = ["gpt-4", "openai/o3-mini", "gemma-2b", "local:smollm2", "meta/llama-3", "my-model", "proto1"]
    assert [find_model_family(name) for name in names] == ["GPT", "GPT", "Gemini", "SmolLM", "Llama", None, None]


def test_a_share_of_one_sided_votes_is_as_sure_as_its_cases_not_its_votes() -> None:
    found = estimate_share([1.0] * 6, ["a", "a", "b", "b", "c", "c"])
    expected = exact_interval(3, 3)
    assert found == Estimate(1.0, expected.low, 1.0, 6)
    assert estimate_share([], []) is None


def test_the_table_has_a_row_a_bias_and_dashes_where_nothing_was_measured(made: Any) -> None:
    table = tabulate_biases("Biases", [("mine", made.tally([both_orders(made, "s", "first", "second")]))])
    assert [row[1] for row in table.rows] == [
        "changes with the order",
        "prefers the first place",
        "prefers the longer answer",
        "prefers its own family",
    ]
    assert table.rows[0][0] == "mine"
    assert table.rows[3][2:] == (None, None, None, None, None)


def test_two_judges_of_one_case_are_told_apart_by_their_prefix(made: Any) -> None:
    row = made.row("s", None, [])
    facts: Any = {"strict_": {"verdict": "first", "ballots": [made.ballot("first")]}, "verdict": None, "ballots": []}
    tally = made.tally([type(row)("s", "s", 1, "passed", {}, {}, facts)])
    assert read_judged_cases(tally) == []
    assert [case.verdict for case in read_judged_cases(tally, "strict_")] == ["first"]
