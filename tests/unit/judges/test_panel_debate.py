"""What each strategy lets whom hear, in which order, in which turn, with which prompt."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import CallFailed, JudgeError, SettingsError
from evalsuite.judges import Aspect, DebaterRole, panel
from evalsuite.judges.forms import ChoiceForm
from evalsuite.judges.panels import ANNOTATOR, ROLES, Panel, make_debaters
from evalsuite.judges.prompts import JudgedInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.judges.panels import Strategy

PAIR = JudgedInput("Why is the sky blue?", ("Scattering.", "Paint."))
TRIO = ("general public", "critic", "scientist")
SPEAKER = re.compile(r"called ([a-z ]+\d?)\.")


def seat(asked: Any) -> str:
    """Who is asked: a debater by its name, or the summarizer."""
    found = SPEAKER.search(asked.system)
    return found[1] if found else "summarizer"


def turn_of(asked: Any) -> str:
    if "debate is over" in asked.prompt:
        return "vote"
    return "sum up" if seat(asked) == "summarizer" else "talk"


def heard(asked: Any) -> list[str]:
    """The words spoken before that this call was shown: each speech is `word<number>`."""
    return re.findall(r"word\d+", asked.prompt)


def speaking(verdict: str = "Verdict: 1") -> Callable[[Any], str]:
    """Speaks word1, word2, ... in the order of being asked, and votes as told."""
    spoken = iter(range(1, 1000))
    return lambda asked: verdict if turn_of(asked) == "vote" else f"word{next(spoken)}"


def debate(model: Any, **options: Any) -> Any:
    options = {"form": ChoiceForm(), "debaters": make_debaters(TRIO), "swap": False, **options}
    return asyncio.run(Panel(**options)(PAIR, model))


def test_one_by_one_each_hears_all_that_was_said_before(scripted: Any) -> None:
    model = scripted(speaking())
    debate(model, strategy="one_by_one", turns=2)
    talks = [asked for asked in model.calls if turn_of(asked) == "talk"]
    assert [seat(asked) for asked in talks] == [*TRIO, *TRIO]
    assert [heard(asked) for asked in talks] == [[f"word{n}" for n in range(1, at)] for at in range(1, 7)]
    assert all(asked.beside == 1 for asked in talks)


def test_simultaneously_each_hears_only_the_earlier_turns(scripted: Any) -> None:
    model = scripted(speaking())
    debate(model, strategy="simultaneous", turns=2)
    first, second = model.calls[:3], model.calls[3:6]
    assert [heard(asked) for asked in first] == [[], [], []]
    assert [heard(asked) for asked in second] == [["word1", "word2", "word3"]] * 3
    assert max(asked.beside for asked in first) == max(asked.beside for asked in second) == 3


def test_under_a_summarizer_only_summaries_are_heard(scripted: Any) -> None:
    model = scripted(speaking())
    debate(model, strategy="simultaneous_summarizer", turns=2)
    kinds = [turn_of(asked) for asked in model.calls]
    assert kinds == ["talk"] * 3 + ["sum up"] + ["talk"] * 3 + ["sum up"] + ["vote"] * 3
    # word4 and word8 are the summaries of turns 1 and 2.
    assert heard(model.calls[3]) == ["word1", "word2", "word3"]
    assert [heard(asked) for asked in model.calls[4:7]] == [["word4"]] * 3
    assert heard(model.calls[7]) == ["word5", "word6", "word7"]
    assert [heard(asked) for asked in model.calls[8:]] == [["word4", "word8"]] * 3


@pytest.mark.parametrize("strategy", ["one_by_one", "simultaneous", "simultaneous_summarizer"])
def test_in_the_final_turn_all_vote_at_once_and_nobody_hears_a_vote(scripted: Any, strategy: Strategy) -> None:
    model = scripted(speaking())
    debate(model, strategy=strategy, turns=1)
    votes = [asked for asked in model.calls if turn_of(asked) == "vote"]
    assert [seat(asked) for asked in votes] == list(TRIO)
    assert max(asked.beside for asked in votes) == 3
    assert all("`Verdict: 1`" in asked.prompt for asked in votes), "the form is asked for"
    assert not any("[critic] Verdict" in asked.prompt for asked in votes)


def test_each_debater_gets_its_own_role_prompt_and_everybody_the_answers(scripted: Any) -> None:
    model = scripted(speaking())
    debate(model, turns=1)
    for asked in model.calls:
        assert ROLES[seat(asked)] in asked.system
        assert "Scattering." in asked.prompt
        assert "Paint." in asked.prompt


def test_the_same_role_ablation_gives_all_the_same_prompt_under_different_names(scripted: Any) -> None:
    model = scripted(speaking())
    debate(model, debaters=make_debaters(TRIO, same_role=True), turns=1)
    assert {seat(asked) for asked in model.calls} == {"annotator 1", "annotator 2", "annotator 3"}
    assert all(ANNOTATOR in asked.system for asked in model.calls)


def test_both_orders_are_debated_apart_and_at_once(scripted: Any) -> None:
    model = scripted(lambda asked: "Verdict: 1" if turn_of(asked) == "vote" else f"heard {len(heard(asked))}")
    found = debate(model, turns=1, swap=True)
    swapped = ["<answer_1>\nPaint." in asked.prompt for asked in model.calls]
    assert swapped.count(True) == swapped.count(False) == 6
    assert max(asked.beside for asked in model.calls) > 3
    assert found.opinion.verdict == "tie", "whoever always takes the first place decides nothing"
    assert [(ballot.swapped, ballot.opinion.verdict) for ballot in found.ballots] == (
        [(False, "first")] * 3 + [(True, "second")] * 3
    )


def test_debaters_and_the_summarizer_may_be_different_models(scripted: Any) -> None:
    seats = make_debaters([DebaterRole("critic", "You are strict.", model="gpt-4"), "scientist"])
    model = scripted(speaking(), "judge")
    options = {"debaters": seats, "strategy": "simultaneous_summarizer", "turns": 1, "summarizer": "small"}
    found = debate(model, **options)
    assert {(seat(asked), asked.model) for asked in model.calls} == {
        ("critic", "gpt-4"),
        ("scientist", "judge"),
        ("summarizer", "small"),
    }
    assert [(ballot.judge, ballot.model) for ballot in found.ballots] == [("critic", "gpt-4"), ("scientist", "judge")]


def test_direct_scores_are_averaged_over_the_debaters_in_one_order(scripted: Any) -> None:
    given_score = {"general public": 4, "critic": 1, "scientist": 4}
    model = scripted(lambda asked: f"clarity: {given_score[seat(asked)]}" if turn_of(asked) == "vote" else "hm")
    judge = panel(TRIO, turns=1, aspects=[Aspect("clarity", low=1, high=5)]).judge
    found = asyncio.run(judge(JudgedInput("Q", ("A",)), model))
    assert found.opinion.scores == {"clarity": 3.0}
    assert found.calls == len(model.calls) == 6


@pytest.mark.parametrize("strategy", ["one_by_one", "simultaneous", "simultaneous_summarizer"])
@settings(max_examples=10, deadline=None)
@given(seats=st.integers(1, 6), turns=st.integers(0, 3), swap=st.booleans())
def test_a_panel_makes_as_many_calls_as_the_documented_formula(
    strategy: Strategy, scripted: Any, seats: int, turns: int, *, swap: bool
) -> None:
    model = scripted(speaking())
    found = debate(model, debaters=make_debaters(seats), strategy=strategy, turns=turns, swap=swap)
    orders, summaries = (2 if swap else 1), (turns if strategy == "simultaneous_summarizer" else 0)
    assert len(model.calls) == found.calls == orders * (seats * (turns + 1) + summaries)


def test_the_log_holds_everything_said_in_order_and_the_answers_once(scripted: Any) -> None:
    found = debate(scripted(speaking()), strategy="simultaneous_summarizer", turns=1)
    said = [(entry["speaker"], entry["turn"]) for entry in found.log if entry["role"] == "assistant"]
    assert said == [*((name, 1) for name in TRIO), ("summary", 1), *((name, 2) for name in TRIO)]
    assert sum("Scattering." in entry["content"] for entry in found.log) == 1
    assert [entry["content"] for entry in found.log if entry["speaker"] == "critic" and entry["turn"]] == [
        "word2",
        "Verdict: 1",
    ]


def test_a_malformed_vote_is_asked_again_with_what_was_wrong(scripted: Any) -> None:
    def answer(asked: Any) -> str:
        if turn_of(asked) != "vote":
            return "hm"
        return "Verdict: 2" if len(asked.messages) > 2 else "the latter"

    model = scripted(answer)
    found = debate(model, turns=1)
    assert found.opinion.verdict == "second"
    assert found.calls == 9
    assert "no line of the form Verdict" in model.calls[-1].messages[-1].content
    assert sum("no line of the form" in entry["content"] for entry in found.log) == 3


def test_an_empty_speech_is_asked_again(scripted: Any) -> None:
    model = scripted(lambda asked: "Verdict: tie" if turn_of(asked) == "vote" else "hm" * (len(asked.messages) > 2))
    assert debate(model, turns=1).calls == 9


def test_one_ballot_of_three_that_cannot_be_read_leaves_the_other_two(scripted: Any) -> None:
    model = scripted(lambda asked: "Verdict: 1" if seat(asked) != "critic" else "hm")
    found = debate(model, turns=0, attempts=2)
    assert found.opinion.verdict == "first"
    assert [ballot.judge for ballot in found.ballots] == ["general public", "scientist"]
    assert found.plain()["unreadable"] == 1
    assert [entry["content"] for entry in found.log].count("hm") == 2, "what was paid for is kept"


def test_fewer_readable_ballots_than_the_quorum_are_an_error_that_keeps_everything_said(scripted: Any) -> None:
    model = scripted(lambda asked: "Verdict: 1" if seat(asked) == "critic" else "hm")
    with pytest.raises(JudgeError, match=r"in 2 attempts.*Verdict.*1 of 3 ballots.*2 are needed") as raised:
        debate(model, turns=0, attempts=2)
    assert [entry["content"] for entry in raised.value.log].count("hm") == 4
    assert "Verdict: 1" in [entry["content"] for entry in raised.value.log]


def test_a_quorum_may_ask_for_every_ballot(scripted: Any) -> None:
    model = scripted(lambda asked: "Verdict: 1" if seat(asked) != "critic" else "hm")
    with pytest.raises(JudgeError, match="3 are needed"):
        debate(model, turns=0, attempts=1, quorum=3)


@pytest.mark.parametrize("kind", ["talk", "sum up", "vote"])
def test_one_failed_call_makes_the_whole_judgement_an_error_with_its_cause(scripted: Any, kind: str) -> None:
    cause = CallFailed("the server hung up")
    model = scripted(lambda asked: cause if turn_of(asked) == kind else "Verdict: 1")
    with pytest.raises(CallFailed) as raised:
        debate(model, strategy="simultaneous_summarizer", swap=True)
    assert raised.value is cause


def test_a_name_that_is_no_known_role_makes_a_role_of_its_own() -> None:
    (teacher,) = make_debaters(["school teacher"])
    assert teacher.name == "school teacher"
    assert "school teacher" in teacher.prompt


def test_a_number_of_roles_takes_the_known_ones_and_starts_again() -> None:
    names = [role.name for role in make_debaters(6)]
    assert names == ["general public 1", "critic", "psychologist", "news author", "scientist", "general public 2"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"strategy": "shouting"}, "one_by_one, simultaneous, simultaneous_summarizer"),
        ({"turns": -1}, "-1"),
        ({"roles": 0}, "at least 1 debater"),
        ({"roles": "critic"}, "list of names"),
        ({"aspects": "wit"}, "list of names"),
        ({"rival": "target", "decide": "dice"}, "dice"),
        ({"aspects": ["a", "a"]}, "needs a unique name"),
        ({"aspects": ["a", "b"], "rival": "target"}, "a single aspect"),
    ],
)
def test_what_is_no_panel_is_refused_where_it_is_declared(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        panel(**options)
