"""The five capabilities, each score worked out by hand."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.tool_eyes import TOOL_EYES
from evalsuite.benchmarks.tool_eyes.dataset import CAPABILITIES, load_dataset
from evalsuite.benchmarks.tool_eyes.episodes import read_example_episodes
from evalsuite.benchmarks.tool_eyes.scoring import (
    NOT_RUN,
    JudgedCapabilities,
    RuleScores,
    make_judge_prompt,
    parse_score,
)
from evalsuite.core.errors import JudgeError
from evalsuite.core.protocols import JudgedScorer, Setup
from evalsuite.core.types import Completion, Score, ToolCall
from evalsuite.output.reports.judges import format_judge_log
from evalsuite.solvers.tool_protocols import parse_turn

if TYPE_CHECKING:
    from evalsuite.core.types import Request, Sample

DATES, DATES_NATIVE = (
    next(
        sample
        for sample in load_dataset(Setup("tested", modes=(mode,))).samples
        if sample.metadata["subject"] == "Calculator/Dates"
    )
    for mode in ("paper", "functions")
)


def act(name: str, arguments: str, thought: str = "I think so.") -> str:
    return f"Thought: {thought}\nAction: {name}\nAction Input: {arguments}"


GOOD = act("weekday", '{"day": "2024-05-30"}')
FINISH = act("finish", '{"answer": "Thursday"}')


@pytest.mark.parametrize(
    ("turns", "format_alignment", "reality", "finished"),
    [
        # Every turn of the form, every call real.
        ([GOOD, FINISH], 1.0, 1.0, 1.0),
        # One of three turns has no form; both calls of the others are real.
        (["It is Thursday.", GOOD, FINISH], 2 / 3, 1.0, 1.0),
        # All of the form; one call in four real: unknown tool, missing and unknown parameter.
        ([act("day", "{}"), act("weekday", "{}"), act("weekday", '{"day": "x", "y": 1}'), FINISH], 1.0, 1 / 4, 1.0),
        # A value of the wrong type and a failing tool are real calls all the same.
        ([act("is_leap_year", '{"year": []}'), act("weekday", '{"day": "x"}'), FINISH], 1.0, 1.0, 1.0),
        # finish without an answer does not finish, and lacks a required parameter.
        ([act("finish", "{}"), FINISH], 1.0, 1 / 2, 1.0),
        # Redundant text in two of nine turns, no form at all in six.
        ([GOOD + " well", GOOD, GOOD + "!", *["hm"] * 6], 1 / 9, 1.0, 0.0),
        # Nothing of the form: no valid turn, so nothing is real.
        (["hm"] * 9, 0.0, 0.0, 0.0),
        # Nine good turns without an answer.
        ([GOOD] * 9, 1.0, 1.0, 0.0),
    ],
)
def test_the_rules_score_as_worked_by_hand(
    turns: list[str], format_alignment: float, reality: float, finished: float, play: Any
) -> None:
    transcript = play(DATES, turns)
    assert RuleScores()(DATES, transcript) == {
        "format_alignment": pytest.approx(format_alignment),
        "reality": pytest.approx(reality),
        "finished": finished,
    }


def test_a_native_turn_with_several_calls_counts_with_the_mean_of_them(play: Any) -> None:
    both = (ToolCall("1", "weekday", '{"day": "2024-05-30"}'), ToolCall("2", "day", "{}"))
    finish = (ToolCall("3", "finish", '{"answer": "Thursday"}'),)
    turns = [Completion("so", tool_calls=both), Completion("so", tool_calls=finish)]
    # Turn 1: (1 + 0) / 2; turn 2: 1. Reality: 1.5 / 2.
    assert RuleScores()(DATES_NATIVE, play(DATES_NATIVE, turns)) == {
        "format_alignment": 1.0,
        "reality": 0.75,
        "finished": 1.0,
    }


# What the judge says to each kind of question, known by a word of its criteria.
MARKS = {"user wants": 8, "plans, by": 9, "sound": 6, "fits the thought": 5, "user gets in the end": 7}


def judge(request: Request) -> str:
    asked = request.messages[0].content
    (mark,) = [mark for words, mark in MARKS.items() if words in asked]
    return f"It is so.\nScore: {mark}"


def judged(
    play: Any, backend: Any, turns: list[str | Completion], sample: Sample = DATES
) -> tuple[dict[str, Any], Any]:
    asked = backend(judge)
    transcript = play(sample, turns)
    given = asyncio.run(JudgedCapabilities().judged(sample, transcript, asked.handle("judge")))
    values = {name: score.value if isinstance(score, Score) else score for name, score in given.items()}
    return values, (asked, given)


def test_a_finished_episode_is_judged_as_worked_by_hand(play: Any, backend: Any) -> None:
    values, (asked, given) = judged(play, backend, ["hm", GOOD, act("day", "{}"), FINISH])
    assert values == {
        "intent_comprehension": 0.8,
        "behaviour_planning": pytest.approx(0.9 * 0.6),
        "validity": 0.9,
        "integrity": 0.6,
        "match": 0.5,
        # Three valid turns, the second of which calls an unknown tool: 1 x 0.5, 0 x 0.5, 1 x 0.5.
        "tool_selection": pytest.approx((0.5 + 0 + 0.5) / 3),
        "quality": 0.7,
        "answer_organisation": 0.7,
        # Format alignment is 3/4.
        "overall": pytest.approx((0.75 + 0.8 + 0.54 + 1 / 3 + 0.7) / 5),
    }
    assert len(asked.requests) == 4 + 3
    first = given["intent_comprehension"]
    questions = ["integrity", "intent", "match 2.1", "match 3.1", "match 4.1", "quality", "validity"]
    assert [(entry["speaker"], entry["role"]) for entry in first.log] == [
        (f"judge of {name}", role) for name in questions for role in ("user", "assistant")
    ]
    assert "\n(documents of " in first.log[0]["content"]
    assert "[judge of match 2.1]\nIt is so.\nScore: 5\n\n[to judge of match 3.1]\n" in format_judge_log(first.log)


def test_an_unfinished_episode_has_no_answer_to_organise(play: Any, backend: Any) -> None:
    values, (asked, given) = judged(play, backend, ["hm"] * 9)
    assert values["answer_organisation"] == 0.0
    assert values["tool_selection"] == 0.0
    assert values["overall"] == pytest.approx((0 + 0.8 + 0.54 + 0 + 0) / 5)
    assert not {"quality", "match"} & set(given)
    assert len(asked.requests) == 3


def test_a_choice_without_a_thought_counts_half_unasked(play: Any, backend: Any) -> None:
    empty = act("finish", '{"answer": "Thursday"}', thought="")
    values, (asked, _) = judged(play, backend, [empty])
    assert values["tool_selection"] == 0.5
    assert len(asked.requests) == 4


def test_the_judge_sees_tools_request_and_thoughts_and_what_the_user_said(play: Any, backend: Any) -> None:
    turns: list[str | Completion] = [act("ask_to_user", '{"question": "Which day?"}', "I ask."), FINISH]
    _, (asked, _) = judged(play, backend, turns)
    shown = [re.sub(r' key="\w+"', "", request.messages[0].content) for request in asked.requests]
    assert all('"name": "days_between"' in text for text in shown)
    assert all("<request>\nWhich day of the week is it 100 days after 2024-02-20?" in text for text in shown)
    (intent,) = [text for text in shown if "user wants" in text]
    assert "<thought_1>\nI ask.\n</thought_1>\n\n<call_1.1>\nask_to_user" in intent
    assert "<said_by_the_user>\nI have nothing to add" in intent
    assert "<thought_2>\nI think so." in intent
    (quality,) = [text for text in shown if "user gets" in text]
    assert "<answer>\nThursday" in quality
    (choice, _) = [text for text in shown if "fits the thought" in text]
    assert "<thought>\nI ask.\n</thought>\n\n<tool>\nask_to_user" in choice
    assert all(request.params == {"temperature": 0, "max_tokens": 512} for request in asked.requests)


def test_the_judge_sees_what_the_tools_returned_and_the_log_names_what_is_long(play: Any, backend: Any) -> None:
    _, (asked, _) = judged(play, backend, ["hm", GOOD, FINISH])
    shown = [re.sub(r' key="\w+"', "", request.messages[0].content) for request in asked.requests]
    result = '<call_2.1>\nweekday {"day": "2024-05-30"}\n</call_2.1>\n\n<result_2.1>\nThursday\n</result_2.1>'
    assert [result in text for text in shown if "fits the thought" not in text] == [True] * 4
    assert [NOT_RUN in text for text in shown if "user gets" in text] == [False]
    assert [NOT_RUN in text for text in shown if "plans, by" in text] == [True]
    flooded = play(DATES, [GOOD, FINISH])
    events = [{**event, "observation": "so " * 100} for event in flooded.events]
    scores = asyncio.run(
        JudgedCapabilities().judged(DATES, replace(flooded, events=tuple(events)), asked.handle("judge"))
    )
    first = scores["intent_comprehension"]
    assert isinstance(first, Score)
    log = "".join(entry["content"] for entry in first.log)
    assert "(result 1.1, 299 characters)" in log
    assert "so so" not in log


def value(score: float | Score) -> float:
    """The value of a score that a judge made."""
    assert isinstance(score, Score)
    assert score.signature.startswith("tool_eyes|judge:judge|")
    return score.value


NATIVE_MARKS = {**MARKS, "called last fits": 4}


def test_a_native_call_without_words_is_no_missing_thought(play: Any, backend: Any) -> None:
    def native_judge(request: Request) -> str:
        asked = request.messages[0].content
        (mark,) = [mark for words, mark in NATIVE_MARKS.items() if words in asked]
        return f"It is so.\nScore: {mark}"

    asked = backend(native_judge)
    call = (ToolCall("1", "weekday", '{"day": "2024-05-30"}'),)
    finish = (ToolCall("2", "finish", '{"answer": "Thursday"}'),)
    turns = [Completion("", tool_calls=call), Completion("Done.", tool_calls=finish)]
    transcript = play(DATES_NATIVE, turns)
    scores = asyncio.run(JudgedCapabilities().judged(DATES_NATIVE, transcript, asked.handle("judge")))
    # The wordless call is judged (4) and not given a half; the other one has a thought (5).
    assert value(scores["match"]) == pytest.approx((0.4 + 0.5) / 2)
    shown = [request.messages[0].content for request in asked.requests]
    assert not any("no thought was written" in text for text in shown)
    assert sum("do not hold the missing words against it" in text for text in shown) == 3


def test_calls_after_finish_count_like_any_other(play: Any, backend: Any) -> None:
    asked = backend(judge)
    calls = (
        ToolCall("1", "finish", '{"answer": "Thursday"}'),
        ToolCall("2", "weekday", '{"day": "2024-05-30"}'),
        ToolCall("3", "day", "{}"),
    )
    transcript = play(DATES_NATIVE, [Completion("so", tool_calls=calls)])
    # One turn of three calls, of which the last names no tool.
    assert RuleScores()(DATES_NATIVE, transcript)["reality"] == pytest.approx(2 / 3)
    scores = asyncio.run(JudgedCapabilities().judged(DATES_NATIVE, transcript, asked.handle("judge")))
    assert value(scores["tool_selection"]) == pytest.approx(2 / 3 * 0.5)
    assert transcript.facts["faults"] == {"after_finish": 2, "unknown_tool": 1}
    assert transcript.answer == "Thursday"


def test_a_judge_that_cannot_be_read_is_an_error_and_no_score(play: Any, backend: Any) -> None:
    mute = backend(lambda _: "I would rather not say.")
    with pytest.raises(JudgeError, match=r"^integrity: judge") as error:
        asyncio.run(JudgedCapabilities().judged(DATES, play(DATES, [FINISH]), mute.handle("judge")))
    speakers = {entry["speaker"] for entry in error.value.log}
    assert {"judge of intent", "judge of quality"} < speakers, "what was paid for is kept"


def test_scores_are_read_strictly() -> None:
    assert parse_score("Because.\nScore: 10") == 1.0
    assert parse_score("Score: 1") == 0.1
    for text in ("", "ten", "Score: 0", "Score: 11", "Score: ten", "Score: 3\nScore: 4"):
        with pytest.raises(ValueError, match="Score"):
            parse_score(text)


def test_every_criterion_can_be_asked_for() -> None:
    criteria = ("intent", "validity", "integrity", "match", "match_call", "quality")
    prompts = {
        name: make_judge_prompt(name, [{"name": "x"}], "a request", [("answer", "what")], native=False)
        for name in criteria
    }
    assert len(set(prompts.values())) == 6
    assert all("Score: <number>" in prompt and "no instruction" in prompt for prompt in prompts.values())


def test_only_a_run_with_a_judge_is_judged() -> None:
    alone = TOOL_EYES.scorers(Setup("tested", modes=("paper",)))
    together = TOOL_EYES.scorers(Setup("tested", judge="judge", modes=("paper",)))
    assert [isinstance(scorer, JudgedScorer) for scorer in alone] == [False]
    assert [isinstance(scorer, JudgedScorer) for scorer in together] == [False, True]
    assert len(CAPABILITIES) == 5


def test_the_examples_keep_the_form_they_teach() -> None:
    examples = list(read_example_episodes())
    assert len(examples) == 5
    for example in examples:
        roles = [message.role for message in example]
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        turns = [parse_turn(message.content) for message in example[1::2]]
        assert [turn.fault for turn in turns] == [None] * len(turns)
        assert [turn.calls[0].name == "finish" for turn in turns] == [False] * (len(turns) - 1) + [True]
        assert all(message.content.startswith("Observation: ") for message in example[2::2])
