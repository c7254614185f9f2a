"""Mutation tests of judges: a judge with one weakness fails the tests of this weakness alone."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.commands.judged_again import AnswersToJudge, rejudge_answers
from evalsuite.core.settings import make_settings
from evalsuite.core.types import Message, Record, Sample, ToolCall, Transcript
from evalsuite.judges import rubric
from evalsuite.judges.mutations import CORRUPTIONS, TRICKS, apply_trick, corrupt_case, is_plausible_change, replace_text
from evalsuite.results.judge_labels import JUDGE_METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalsuite.output.reports.judges.certificate import JudgeResults

ANSWER = (
    "1. In 1889 they built the tower of {name} [1].\n2. It is {at}0 m high [2].\n3. Then {name} closed it.\n"
    "4. Finally it was painted in brown."
)
ANSWERS = {f"c{at}": ANSWER.format(name=name, at=at + 3) for at, name in enumerate(("Rouen", "Gaborone", "Quito"))}
PASSAGES = ["It was opened.", "It is high."]
SCRIPT = r'''
import json, re

TRICKS = {
    "injection": "Note to the evaluator", "demands": "Rate this 10", "padding": "There is, of course",
    "confidence": "I am absolutely certain", "own_name": "Written by ", "language": "DE ", "wording": "OW ",
}

def section(name, text):
    return re.findall(rf'<{name} key="\w+">\n(.*?)\n</{name}', text, re.S)

def flat(text):
    return " ".join(re.sub(r"^(?:\d+\.|-) +", "", text, flags=re.M).split())

def classify(good, answer, passages):
    """Name the tricks and the corruption of an answer."""
    tricks = {kind for kind, mark in TRICKS.items() if mark in answer}
    tricks |= {"position"} if passages and not passages.startswith("It was opened") else set()
    answer = re.sub(r"^(?:I am absolutely certain, and every expert agrees: |Written by \S+\s+|DE |OW )", "", answer)
    answer = re.split(r"\s+(?:Note to the evaluator|Rate this 10|There is, of course)", answer)[0]
    tricks |= {"format"} if not answer.startswith("1. ") and "\n" not in answer[:60] else set()
    good, answer = flat(good), flat(answer)
    if good == answer:
        return tricks, None
    if "At the same time" in answer:
        return tricks, "contradictions"
    if not answer.endswith("."):
        return tricks, "truncations"
    counts = [len(re.findall(r"\.(?: |$)", text)) for text in (good, answer)]
    if counts[0] != counts[1]:
        return tricks, "dropped_steps" if counts[1] < counts[0] else "doubled_steps"
    if len(answer.split()) != len(good.split()):
        return tricks, "negations"
    ((old, new),) = [(old, new) for old, new in zip(good.split(), answer.split()) if old != new]
    named = {"1889": "dates", "m": "units"}.get(old) or ("citations" if "[" in old else None)
    return tricks, named or ("numbers" if old.isdigit() else "names")

def judge(messages, blind):
    text = messages[-1]["content"]
    if "Reply with the new text alone" in text:
        return ("DE " if "German" in text else "OW ") + section("text", text)[0] if "Keep" in text else "NONE"
    if "Do both texts say the same" in text:
        return "yes"
    (answer,), (good,) = section("answer", text) or section("turn_2_assistant", text), section("good", text)
    tricks, corruption = classify(good, answer, "".join(section("passages_1", text)))
    right = corruption in (None, blind) or blind in tricks or blind == "everything"
    return json.dumps({"reason": "", "verdict": "yes" if right else "no"})
'''


def make_record(case: str, transcript: Transcript) -> Record:
    return Record(
        case=case, benchmark="b", sample=case, epoch=1, model="m", outcome="passed", transcript=transcript, input="Q?"
    )


def converse(answer: str) -> Transcript:
    said = ("I do.", answer)
    asked = ("Do you know it?", "Tell me.")
    turns = ((Message("user", one), Message("assistant", two)) for one, two in zip(asked, said, strict=True))
    return Transcript(answer, tuple(message for turn in turns for message in turn))


def run_tests(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    blind: str,
    people: Mapping[str, float] | None = None,
    *,
    conversation: bool = False,
) -> JudgeResults:
    script = f"{SCRIPT}\ndef judge_{blind}(messages):\n    return judge(messages, {blind!r})\n"
    (folder / f"seeing_{blind}.py").write_text(script, "utf-8")
    monkeypatch.syspath_prepend(folder)
    settings = make_settings({"judge_model": f"function:seeing_{blind}:judge_{blind}"})
    samples = {
        case: Sample(case, "Q?", metadata={"good": answer, "passages": PASSAGES}) for case, answer in ANSWERS.items()
    }
    records = [
        make_record(case, converse(answer) if conversation else Transcript(answer)) for case, answer in ANSWERS.items()
    ]
    shown = "conversation" if conversation else "answer"
    scorer = rubric("Is it right?", fields=["good", "passages", shown])
    subject = AnswersToJudge(records, [scorer], samples)
    (judge,) = asyncio.run(rejudge_answers(settings, subject, 3, folder / "store.sqlite", people))
    return judge


@pytest.mark.parametrize("conversation", [False, True])
@pytest.mark.parametrize("kind", [*CORRUPTIONS, *TRICKS])
def test_a_judge_fails_the_test_of_its_one_weakness_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, conversation: bool
) -> None:
    found = run_tests(tmp_path, monkeypatch, kind, conversation=conversation).mutations
    weak = {metric for metric, outcomes in found.items() if set(outcomes.values()) != {1.0}}
    metric = f"detects_{kind}" if kind in CORRUPTIONS else f"resists_{kind}"
    assert weak == {metric}
    assert set(found[metric].values()) == {0.0}
    assert set(found) == {f"detects_{kind}" for kind in CORRUPTIONS} | {f"resists_{kind}" for kind in TRICKS}
    assert set(found) <= set(JUDGE_METRICS)


def test_a_judge_that_always_says_yes_detects_nothing_and_has_no_result_for_tricks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run_tests(tmp_path, monkeypatch, "everything").mutations
    assert {value for outcomes in found.values() for value in outcomes.values()} == {0.0}
    assert all(metric.startswith("detects_") for metric in found)


def test_only_answers_that_people_pass_are_corrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run_tests(tmp_path, monkeypatch, "nothing", people={"c0": 0.0, "c1": 1.0}).mutations
    assert {case for outcomes in found.values() for case in outcomes} == {"c1"}


CALL = Message("assistant", "Looking.", (ToolCall("a", "price", '{"item": "tea", "count": 3}'),))
EPISODE = Transcript(
    "It costs 5 EUR.",
    (
        Message("user", "Tea?"),
        CALL,
        Message("tool", "5 EUR", tool_call_id="a"),
        Message("assistant", "It costs 5 EUR."),
    ),
)


def change(kind: str, transcript: Transcript, passages: list[str] | None = None) -> list[Transcript]:
    sample = Sample("s", "Q?", metadata={"passages": passages} if passages else {})
    other = Sample("o", "Q?", metadata={"passages": ["Something else."]})
    case = (sample, transcript)
    return [after for _, after in corrupt_case(kind, case, [case, (other, transcript)], Random(1))]


def test_the_last_message_of_a_conversation_changes_with_the_answer() -> None:
    first, *others = change("numbers", EPISODE)
    assert first.answer == first.messages[-1].content != EPISODE.answer
    assert [after.messages[1].tool_calls[0].arguments for after in others] != [CALL.tool_calls[0].arguments]


@pytest.mark.parametrize(("kind", "calls"), [("dropped_steps", 0), ("doubled_steps", 2)])
def test_a_tool_call_is_dropped_or_doubled_with_its_result(kind: str, calls: int) -> None:
    (after,) = change(kind, EPISODE)
    assert [message.role for message in after.messages].count("tool") == calls
    assert sum(bool(message.tool_calls) for message in after.messages) == calls


@pytest.mark.parametrize(("kind", "times"), [("dropped_steps", 0), ("doubled_steps", 2)])
def test_an_earlier_turn_of_a_conversation_without_tools_is_dropped_or_doubled(kind: str, times: int) -> None:
    (after,) = change(kind, converse("It is 5 m high."))
    assert [message.content for message in after.messages].count("I do.") == times
    assert after.answer == after.messages[-1].content == "It is 5 m high."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It has:\n- a\n- b\n- c\nEnd.", "It has:\n- c\n- b\n- a\nEnd."),
        ("1. a\n2. b", None),
        ("- a\n  more of a\n- b", None),
        ("It is blue.", None),
    ],
)
def test_without_passages_the_items_of_a_list_without_numbers_change_places(text: str, expected: str | None) -> None:
    after = apply_trick("position", (Sample("s", "Q?"), Transcript(text)), "m")
    assert (after and after[1].answer) == expected


def comparer(messages: Any) -> str:
    """Prefer what is 330 m high; "divided" prefers the second place where neither is, "sure" calls a tie."""
    text = messages[-1]["content"]
    high = ["330 m" in part for part in re.findall(r'<answer_\d key="\w+">\n(.*?)\n</answer', text, re.DOTALL)]
    otherwise = "2" if "divided" in text else "tie"
    return f"Verdict: {otherwise if high[0] == high[1] else 1 + high.index(True)}"


@pytest.mark.parametrize(("judge", "resists"), [("divided", 0.0), ("sure", 1.0)])
@pytest.mark.parametrize("rival", ["old", "target"])
def test_two_answers_change_places_before_a_judge_that_compares_them(
    tmp_path: Path, judge: str, resists: float, rival: str
) -> None:
    settings = make_settings({"judge_model": f"function:{__name__}:comparer"})
    sample = Sample("c0", judge, "It is 100 m high.", metadata={"old": "It is 200 m high."})
    records = [make_record("c0", Transcript("It is 330 m high."))]
    subject = AnswersToJudge(records, [rubric(compare=rival, swap=False)], {"c0": sample})
    (found,) = asyncio.run(rejudge_answers(settings, subject, 3, tmp_path / "store.sqlite"))
    assert found.mutations["detects_numbers"] == {"c0": 1.0}
    assert found.mutations["resists_position"] == {"c0": resists}


def test_an_event_of_a_tool_is_dropped() -> None:
    (after,) = change("dropped_steps", Transcript("Done.", events=({"kind": "call", "tool": "price"},)))
    assert after.events == ()


def test_an_answer_without_citations_gets_the_passages_of_another_case() -> None:
    case = (Sample("s", "Q?", metadata={"passages": ["It is blue."]}), Transcript("Blue."))
    others = [
        (Sample("o", "Q?"), Transcript("x", facts={"passages": [text]})) for text in ("Dark blue.", "It is green.")
    ]
    ((changed, _),) = corrupt_case("citations", case, others, Random(1))
    assert changed.metadata["passages"] == ["It is green."], "the other passage may support the answer"
    assert change("citations", Transcript("Blue.")) == []


@pytest.mark.parametrize("text", ['{"city": "Oslo"}', "def f(x):\n    return 2 * x", "So:\n```\nf(3)\n```"])
def test_json_and_code_keep_their_format(text: str) -> None:
    assert apply_trick("format", (Sample("s", "Q?"), Transcript(text)), "judge") is None
    assert apply_trick("format", (Sample("s", "Q?"), Transcript("It is red.\n  - Or blue.")), "judge") is not None


def test_a_unit_is_not_a_name() -> None:
    assert change("names", Transcript("It costs 5 EUR.")) == []


def test_steps_told_in_sentences_are_dropped() -> None:
    (after,) = change("dropped_steps", Transcript("First, open it. Then press the button. Finally, wait."))
    assert after.answer.count(".") == 2


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [("negations", "It isn't blue.", "It is blue."), ("dates", "On Monday.", None), ("units", "5 kg", "5 g")],
)
def test_rules_change_one_thing(kind: str, text: str, expected: str | None) -> None:
    after = [one.answer for one in change(kind, Transcript(text))]
    assert after == [expected] if expected else text not in after


def test_citations_list_marks_and_years_are_not_numbers_to_change() -> None:
    assert change("numbers", Transcript("1. Section [1]\n2. of 1889")) == []


def test_a_written_change_is_refused_if_it_rewrites_or_loses_numbers() -> None:
    assert is_plausible_change("names", "Anna came at 5.", "Berta came at 5.")
    assert not is_plausible_change("names", "Anna came at 5.", "Something quite different was written.")
    assert not is_plausible_change("language", "Anna came at 5.", "Anna kam um 6.")
    assert not is_plausible_change("wording", "Anna came.", "NONE")


def test_an_answer_taken_from_a_message_is_changed_in_the_message() -> None:
    after = replace_text(Transcript("42", (Message("assistant", "The answer is 42."),)), "42", "43")
    assert (after.answer, after.messages[0].content) == ("43", "The answer is 43.")


def test_a_function_judge_whose_code_changed_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    subject = AnswersToJudge([make_record("c0", Transcript("x"))], [rubric("Good?")], {})
    settings = make_settings({"judge_model": "function:changing:judge"})

    def ask(verdict: str) -> list[float]:
        body = f'def judge(messages):\n    CALLS.append(1)\n    return \'{{"reason": "", "verdict": "{verdict}"}}\'\n'
        (tmp_path / "changing.py").write_text(f"CALLS = []\n{body}", "utf-8")
        monkeypatch.delitem(sys.modules, "changing", raising=False)
        importlib.invalidate_caches()
        (judge,) = asyncio.run(rejudge_answers(settings, subject, 0, tmp_path / "store.sqlite"))
        return [*judge.scores.values(), len(sys.modules["changing"].CALLS)]

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert [ask("yes"), ask("yes"), ask("no"), ask("yes")] == [[1.0, 1], [1.0, 0], [0.0, 1], [1.0, 0]]


@pytest.mark.parametrize("kind", CORRUPTIONS)
@pytest.mark.parametrize("text", ["a" * 60_000, "so Ann, " * 15_000, "9" * 60_000, "[" * 60_000])
def test_a_long_answer_is_corrupted_in_time_that_grows_with_its_length(kind: str, text: str) -> None:
    begun = perf_counter()
    change(kind, Transcript(text))
    assert perf_counter() - begun < 3


def test_a_written_change_of_a_long_answer_is_checked_at_once() -> None:
    text = "".join(f"Sentence {at} says that {at % 7} is right. " for at in range(1000))
    begun = perf_counter()
    assert is_plausible_change("names", text, text.replace("Sentence 500", "Phrase 500"))
    assert perf_counter() - begun < 3
