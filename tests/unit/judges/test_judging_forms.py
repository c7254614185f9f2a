"""The fixed forms: what is accepted, what is refused, and how several opinions are combined."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.core.errors import SettingsError
from evalsuite.judges.forms import ChoiceForm, GradedChoice, Likert, PairedScores, ScoresForm
from evalsuite.judges.judgements import Opinion, PairVerdict, find_better_answer, find_majority_or_tie

CLEAR = Likert("", 1, 5, name="clarity")
DEPTH = Likert("", 0, 1, name="depth")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Verdict: 1", "first"),
        ("Both are fine.\n\n**Verdict:** 2.", "second"),
        ("> verdict : TIE\r\n", "tie"),
        ("2. `Verdict: 1`", "first"),
        ("Verdict: 2\nto repeat\nVerdict: 2", "second"),
        ("Verdict: 1 would be wrong.\nVerdict: 2", "second"),
        ("The verdict is 1", "first"),
        ("Verdict:\n1", "first"),
        ("Verdict: Answer 1", "first"),
        ("Both are long. [[B]]", "second"),
        ("My verdict is [[A]]", "first"),
        ('Here you are:\n```json\n{"reason": "longer", "verdict": "2"}\n```', "second"),
        ("<think>Verdict: 1? No.</think>Verdict: 2", "second"),
        ("Answer 2 is better.\nIt is complete.", "second"),
        ("Both are fine.\n\nA", "first"),
        ("Winner: 2", "second"),
    ],
)
def test_a_verdict_is_read_from_the_end_of_a_line(text: str, verdict: PairVerdict) -> None:
    assert ChoiceForm().parse_opinion(text) == Opinion(verdict=verdict)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no line"),
        ("Verdict: 3", "no line"),
        ("Verdict: 12", "no line"),
        ("Verdict: 1 of 2", "no line"),
        ("Verdict: 1 or 2", "no line"),
        ("Verdict: 1/2", "no line"),
        ("Verdict: 1, 2 or tie", "no line"),
        ("Verdict: 1, Verdict: 2 or Verdict: tie", "no line"),
        ("Verdict: 1\nVerdict: 2", "contradict"),
        ("Verdict: 1 it is, of course", "no line"),
        ("Answer 1\nor\nAnswer 2", "contradict"),
        ("Some would say that answer 1 is better", "no line"),
        ("Verdict: 1. Answer 2 wins.", "no line"),
        ("Verdict: 1 (or 2)", "no line"),
        ("Verdict: 1 (no, 2)", "no line"),
        ("Verdict: 1. On reflection, it is close. Answer 2 wins.", "no line"),
        ("Verdict: 1 - hold on, answer 2 names the year. So 2.", "no line"),
        ("Verdict: 1, because it is shorter. Wait, answer 2 is right.", "no line"),
        ("Verdict: 1. Both are fine, but answer 2 is the better one.", "no line"),
        ("Verdict: tie. Nonetheless I prefer answer 2.", "no line"),
        ("Verdict: 1. Correction: 2.", "no line"),
        ("### Answer 1\nPolite, but it lacks the dead", "no line"),
        ("It compares both.\n\n### Answer 1\nPolite.\n\n### Answer 2", "contradict"),
        ("Response A: polite.\nResponse B: names the dead", "no line"),
        ("1. Relevance: both.\n2. Style: the sec", "no line"),
    ],
)
def test_what_is_no_verdict_or_more_than_one_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ChoiceForm().parse_opinion(text)


def test_a_score_is_read_for_every_aspect_with_or_without_the_scale() -> None:
    said = ScoresForm((CLEAR, DEPTH)).parse_opinion("Thoughts.\nClarity: 4/5\n- depth: 0.5")
    assert said.scores == {"clarity": 4.0, "depth": 0.5}
    assert ScoresForm((CLEAR, DEPTH)).parse_opinion("clarity: 4, depth: 0.5.") == said


@pytest.mark.parametrize(
    "text",
    [
        "quality: 8",
        "8",
        "[8]",
        "8/10",
        "quality: 8 out of 10",
        "quality: 8 (good)",
        "quality: [8]",
        "**Quality:** 8/10 - it covers everything",
        "quality (1 to 10): 8",
        "quality is 8, because it covers everything",
        "quality: 8\nIt covers everything and is clear.",
        "Score: 8",
        '{"quality": 8}',
        '{"quality": "8/10"}',
        'It is good.\n```json\n{"reason": "covers {all}", "quality": {"score": 8}}\n```',
        "<think>quality: 3 or so?</think>\nquality: 8",
        "8 (good)",
        "8\n\nIt covers everything and is clear.",
        "It covers everything.\n\n**8/10**",
        "The quality is 8.",
        "My final score: 8",
        "| quality | 8 |",
        "quality - 8",
        "\\boxed{8}",
    ],
)
def test_a_score_is_read_as_a_reader_would_read_it(text: str) -> None:
    assert ScoresForm().parse_opinion(text).scores == {"quality": 8.0}


@pytest.mark.parametrize(
    "text",
    [
        "quality: 1 to 10",
        "quality: 7-8",
        "quality: 7 or 8",
        "quality: 8/5",
        "quality: 80%",
        "quality: 8, quality: 7",
        "quality: 8,5",
        '{"quality": 8} {"quality": 9}',
        '{"quality": true}',
        "quality: <your number>",
        "8\nor rather\n7",
        "It asks me to rate it 10/10, which I ignore.",
        "quality: 8 (but 6 really)",
        "quality: 8 (or 7)",
        "quality: 10 (reduced to 4 for the wrong year)",
        "quality: 7 (before the deduction for length: final 5)",
        "quality: 7. Strike that. It deserves less.",
        "quality: 7 (after revision: 5)",
        '{"quality": 8, "quality": 9}',
    ],
)
def test_what_a_reader_could_not_settle_either_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quality"):
        ScoresForm().parse_opinion(text)


def test_an_aspects_name_may_have_commas() -> None:
    form = ScoresForm((Likert("", 1, 5, name="clear, short"), DEPTH))
    assert form.parse_opinion("clear, short: 4, depth: 1").scores == {"clear, short": 4.0, "depth": 1.0}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("clarity: 4", "depth"),
        ("clarity: 6\ndepth: 1", "off the scale from 1 to 5"),
        ("clarity: -1\ndepth: 1", "off the scale"),
        ("clarity: 4/10\ndepth: 1", "clarity"),
        ("clarity: 4,5\ndepth: 1", "clarity"),
        ("clarity: four\ndepth: 1", "clarity"),
        ("clarity: 4\nclarity: 5\ndepth: 1", "contradict"),
    ],
)
def test_missing_contradicting_and_impossible_scores_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ScoresForm((CLEAR, DEPTH)).parse_opinion(text)


def test_two_scored_answers_are_compared_and_equal_scores_tie() -> None:
    form = PairedScores()
    assert form.parse_opinion("Score of answer 1: 7\nScore of answer 2: 8").verdict == "second"
    assert form.parse_opinion("Score of answer 1: 7/10\nScore of answer 2: 7.0").verdict == "tie"
    assert form.parse_opinion("Answer 1: 3 reasons.\nScore of answer 1: 7\nScore of answer 2: 8").verdict == "second"
    assert form.parse_opinion("Answer 1: 8\nAnswer 2: 6").verdict == "first"
    assert form.parse_opinion("The score of answer 1 is 8. The score of answer 2 is 6.").verdict == "first"
    with pytest.raises(ValueError, match="Score of answer 2"):
        form.parse_opinion("Score of answer 1: 7")


@given(st.text())
def test_no_text_breaks_a_parser_but_by_being_refused(text: str) -> None:
    for form in (ChoiceForm(), PairedScores(), ScoresForm((CLEAR,))):
        try:
            said = form.parse_opinion(text)
        except ValueError:
            continue
        assert said.verdict in ("first", "second", "tie", None)


@pytest.mark.parametrize(
    "text",
    ["*" * 50_000, "clarity:" + " " * 50_000, "verdict" * 10_000, "9" * 50_000, "{" * 50_000, '{"a":' * 9_000],
    ids=["stars", "spaces", "words", "digits", "braces", "objects"],
)
def test_an_endless_answer_is_refused_at_once(text: str) -> None:
    for form in (ChoiceForm(), PairedScores(), ScoresForm((CLEAR,))):
        with pytest.raises(ValueError, match="no line"):
            form.parse_opinion(text)


@given(st.integers(1, 10), st.integers(1, 10))
def test_an_exchanged_opinion_is_about_the_other_order_and_back_again(one: int, other: int) -> None:
    said = PairedScores().parse_opinion(f"Score of answer 1: {one}\nScore of answer 2: {other}")
    assert said.exchange_answers().scores == {"first": other, "second": one}
    assert said.exchange_answers().exchange_answers() == said
    assert said.exchange_answers().verdict == find_better_answer(other, one)


@pytest.mark.parametrize(
    ("votes", "result"),
    [
        (["first"], "first"),
        (["first", "second"], "tie"),
        (["first", "first", "second"], "first"),
        (["first", "first", "second", "tie"], "tie"),
        (["second"] * 4 + ["first"] * 2, "second"),
        (["tie", "tie", "first"], "tie"),
    ],
)
def test_a_comparison_needs_more_than_half_of_the_votes(votes: list[PairVerdict], result: PairVerdict) -> None:
    assert find_majority_or_tie(votes) == result
    assert ChoiceForm().combine_opinions([Opinion(verdict=vote) for vote in votes]).verdict == result


def test_scores_are_settled_by_their_mean() -> None:
    combined = ScoresForm((CLEAR, DEPTH)).combine_opinions(
        [Opinion({"clarity": 1, "depth": 0}), Opinion({"clarity": 4, "depth": 1})]
    )
    assert combined.scores == {"clarity": 2.5, "depth": 0.5}


def test_scored_pairs_are_settled_by_their_means_not_by_their_verdicts() -> None:
    # Two narrow wins of the first against one clear win of the second: 7.0 against 7 2/3.
    said = [(7.0, 6.0), (7.0, 6.0), (7.0, 11.0)]
    opinions = [Opinion({"first": one, "second": other}, find_better_answer(one, other)) for one, other in said]
    assert PairedScores().combine_opinions(opinions).verdict == "second"


@pytest.mark.parametrize(("name", "low", "high"), [("a", 1, 1), ("a", 5, 1), ("a\nb", 1, 5)])
def test_an_aspect_without_a_scale_or_a_name_of_one_line_is_refused(name: str, low: int, high: int) -> None:
    with pytest.raises(SettingsError):
        Likert("", low, high, name=name)


@pytest.mark.parametrize(
    ("text", "preference"),
    [
        ("Verdict: 1 much better", 1.0),
        ("**Verdict:** Answer 1 is better", 0.75),
        ("verdict: tie", 0.5),
        ('{"verdict": "2 better"}', 0.25),
        ("Answer 2 says more.\n[[B>>A]]", 0.0),
        ("[[A>B]]", 0.75),
        ("[[A=B]]", 0.5),
    ],
)
def test_a_verdict_in_five_levels_says_how_far_the_first_answer_is_preferred(text: str, preference: float) -> None:
    assert GradedChoice().parse_opinion(text).scores == {"preference": preference}


@pytest.mark.parametrize("text", ["Verdict: 1", "Verdict: 1 is worse", "Verdict: 1 better\nVerdict: 2 better"])
def test_a_verdict_without_a_degree_or_against_itself_is_asked_again(text: str) -> None:
    with pytest.raises(ValueError, match=r"Verdict"):
        GradedChoice().parse_opinion(text)


def test_degrees_are_averaged_over_both_orders() -> None:
    shown_first, shown_second = GradedChoice().parse_opinion("[[A>>B]]"), GradedChoice().parse_opinion("[[A>B]]")
    combined = GradedChoice().combine_opinions([shown_first, shown_second.exchange_answers()])
    assert combined == Opinion({"preference": 0.625}, "first")


@pytest.mark.parametrize("form", [ScoresForm((CLEAR, DEPTH)), PairedScores(), ChoiceForm(), GradedChoice()])
def test_what_a_schema_allows_can_be_read(form: Any) -> None:
    properties = form.make_schema()["properties"]
    answer = {name: one["enum"][0] if "enum" in one else one["minimum"] for name, one in properties.items()}
    assert form.parse_opinion(json.dumps(answer, indent=2)).scores or form.parse_opinion(json.dumps(answer)).verdict


@pytest.mark.parametrize(
    "text",
    [
        "<think>At first I would say\nclarity: 4\nbut on second thoughts",
        "I would say\nclarity: 4\nor not</think>",
        "<THINKING>clarity: 4</THINKING>",
    ],
)
def test_a_score_inside_a_thought_is_none_even_where_the_thought_has_no_end(text: str) -> None:
    with pytest.raises(ValueError, match="it has no line of the form"):
        ScoresForm((CLEAR,)).parse_opinion(text)


def test_a_score_after_a_thought_without_a_beginning_is_read() -> None:
    assert ScoresForm((CLEAR,)).parse_opinion("clarity: 2, or so</think>\nclarity: 4").scores == {"clarity": 4.0}


@pytest.mark.parametrize(
    "text", ["Score of answer 2: 3\nScore of answer 1: 9", '{"Score of answer 2": 3, "Score of answer 1": 9}']
)
def test_scores_of_two_answers_are_read_by_their_labels_in_whatever_order(text: str) -> None:
    assert PairedScores().parse_opinion(text).scores == {"first": 9.0, "second": 3.0}
