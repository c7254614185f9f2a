"""The model under test as the judge: what it sees, what is kept of what it says, and what counts against it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from evalsuite.benchmarks.chat_eval import CHAT_EVAL
from evalsuite.benchmarks.chat_eval.solver import MODES, JudgingMode, parse_mode
from evalsuite.core.errors import CallFailed, SettingsError

SCORES = "naturalness: 2, coherence: 3, engagingness: 1, groundedness: 1"


def obedient(prompt: str) -> str:
    """Answers every form, and always with the first answer."""
    if "Write the evaluation steps" in prompt:
        return "1. Read it."
    if "Reply with the number alone" in prompt:
        return "1"
    return f"Verdict: 1\nScore of answer 1: 9\nScore of answer 2: 3\n{SCORES.replace(', ', chr(10))}"


@pytest.mark.parametrize("mode", [*MODES, "paper:one_by_one:2roles:1turns:same_role"])
def test_every_mode_judges_pairs_and_dialogues(judged: Any, mode: str) -> None:
    run = judged(obedient, mode)
    assert Counter(record.scores["parsed"] for record in run.records.values()) == {1.0: 12}
    assert all(record.tags["mode"] == mode for record in run.records.values())


@pytest.mark.parametrize("mode", MODES)
def test_a_judge_never_sees_who_wrote_an_answer_or_what_people_said(judged: Any, folder: Any, mode: str) -> None:
    confession = '{"question_id": %d, "text": "I am %s, also known as %s.", "model_id": "%s:20230327"}\n'
    texts = {
        f"answer/answer_{system}.jsonl": "".join(confession % (at, name, model, model) for at in (1, 2))
        for system, name, model in [("gpt35", "ChatGPT", "gpt-3.5-turbo"), ("vicuna-13b", "Vicuna", "vicuna-13b")]
    }
    run = judged(obedient, mode, data=folder(**texts))
    shown = "\n".join(run.judge.prompts).lower()
    assert "i am [name withheld], also known as [name withheld]." in shown
    for name in ("chatgpt", "gpt35", "gpt-3.5", "vicuna", "vicuna13b"):
        assert name not in shown


def test_a_plain_word_that_happens_to_be_a_systems_name_stays_in_the_answers(judged: Any, folder: Any) -> None:
    said = '{"question_id": %d, "text": "Go north.", "model_id": "north"}\n'
    texts = {"answer/answer_north.jsonl": said % 1 + said % 2, "review/review_gpt35_north_human.txt": "NORTH\nCHATGPT"}
    data = folder(**texts)
    (data / "faireval" / "review" / "review_gpt35_vicuna-13b_human.txt").unlink()
    assert "Go north." in "\n".join(judged(obedient, data=data).judge.prompts)


def test_a_verdict_is_compared_with_peoples(judged: Any) -> None:
    # Whoever always takes the first place flips with the order: every verdict is a tie.
    run = judged(obedient)
    pairs = [record for record in run.records.values() if record.tags["task"] == "pairs"]
    assert {record.facts["verdict"] for record in pairs} == {"tie"}
    assert [record.scores["accuracy"] for record in pairs] == [
        float(record.facts["human"] == "tie") for record in pairs
    ]


def test_a_dialogues_scores_are_the_judges_on_peoples_scale(judged: Any) -> None:
    record = judged(obedient).records["dialogue-1-1"]
    assert record.scores == {"parsed": 1.0, "naturalness": 2, "coherence": 3, "engagingness": 1, "groundedness": 1}
    assert record.facts["judged"] == {"naturalness": 2, "coherence": 3, "engagingness": 1, "groundedness": 1}
    assert record.facts["human"] == {
        "naturalness": 3,
        "coherence": 3,
        "engagingness": 3,
        "groundedness": 1,
        "overall": 5,
    }


def test_what_cannot_be_parsed_is_the_judges_own_failure_and_no_error(judged: Any) -> None:
    run = judged(lambda _: "Both have their strengths.")
    pair, dialogue = run.records["pair-1"], run.records["dialogue-1-1"]
    assert (pair.outcome, pair.scores) == ("passed", {"parsed": 0.0, "accuracy": 0.0})
    assert dialogue.scores == {"parsed": 0.0}, "no score is made up"
    assert pair.facts["verdict"] is None
    assert "2 attempts" in pair.facts["unparsed"]
    assert pair.transcript.answer == "no verdict"
    assert [event["content"] for event in pair.transcript.events].count("Both have their strengths.") == 4


def test_no_verdict_disagrees_even_where_people_see_a_tie(judged: Any) -> None:
    run = judged(lambda _: "")
    assert {record.scores["accuracy"] for record in run.records.values() if "accuracy" in record.scores} == {0.0}


def test_unreadable_scores_are_a_tie_in_the_papers_modes_and_counted_apart(judged: Any) -> None:
    records = judged(lambda _: "Both have their strengths.", "paper:single").records.values()
    pairs = [record for record in records if record.tags["task"] == "pairs"]
    assert {(record.facts["verdict"], record.scores["parsed"]) for record in pairs} == {("tie", 0.0)}
    assert {record.scores["accuracy"] for record in pairs if record.facts["human"] == "tie"} == {1.0}
    assert all("accuracy" not in record.scores for record in records if record.tags["task"] == "dialogues")


def test_a_call_that_fails_is_an_error(judged: Any) -> None:
    run = judged(lambda _: CallFailed("no server"))
    assert {record.outcome for record in run.records.values()} == {"error"}


def test_attempts_and_parameters_may_be_given_where_the_benchmark_is_declared(judged: Any) -> None:
    run = judged(lambda _: "", attempts=1, params={"max_tokens": 7})
    assert len(run.judge.prompts) == 6 * 2 + 6
    assert {params["max_tokens"] for params in run.judge.params} == {7}


def test_other_arguments_are_refused_by_name(judged: Any) -> None:
    with pytest.raises(SettingsError, match="no argument 'turns'; it takes attempts, bert_score, and generation"):
        judged(obedient, turns=3)


def test_generation_parameters_are_taken_by_name_and_in_params(judged: Any) -> None:
    run = judged(obedient, max_tokens=9, params={"top_k": 1})
    assert run.judge.params[0]["max_tokens"] == 9
    assert run.judge.params[0]["top_k"] == 1


def test_what_a_panel_said_before_it_could_not_be_read_is_kept(judged: Any) -> None:
    run = judged(lambda prompt: "hm" if "Score of" in prompt else "I see.", "paper:one_by_one")
    said = [event["content"] for event in run.records["pair-1"].transcript.events if event["role"] == "assistant"]
    in_one_order = ["I see."] * 2 + ["hm"] * 4
    assert said == in_one_order * 2


def test_a_panels_whole_debate_is_in_the_transcript(judged: Any) -> None:
    record = judged(obedient, "paper:one_by_one").records["pair-1"]
    said = [event for event in record.transcript.events if event["role"] == "assistant"]
    assert len(said) == record.facts["calls"] == 2 * 2 * 2
    assert [(event["speaker"], event["turn"], event["order"]) for event in said[:4]] == [
        ("general public", 1, "as given"),
        ("critic", 1, "as given"),
        ("general public", 2, "as given"),
        ("critic", 2, "as given"),
    ]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("single", JudgingMode("single")),
        ("paper:simultaneous_summarizer:5roles:4turns", JudgingMode("paper", "simultaneous_summarizer", 5, 4)),
        ("paper:single", JudgingMode("paper", None, 1, 1)),
        ("paper:one_by_one", JudgingMode("paper", "one_by_one", 2, 2)),
        ("paper:simultaneous:3roles:1turns", JudgingMode("paper", "simultaneous", 3, 1)),
        (
            "paper:one_by_one:4roles:3turns:same_role:ballots",
            JudgingMode("paper", "one_by_one", 4, 3, same_role=True, ballots=True),
        ),
        ("weighted:steps", JudgingMode("weighted", steps=True)),
    ],
)
def test_a_modes_suffixes_say_how_many_roles_and_turns(name: str, mode: JudgingMode) -> None:
    assert parse_mode(name) == mode
    assert name in CHAT_EVAL.modes
    assert CHAT_EVAL.modes[name]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "paper",
        "single:3roles",
        "panel:one_by_one",
        "paper:one_by_one:0roles",
        "paper:one_by_one:3turns:2roles",
        "paper:one_by_one:0turns",
    ],
)
def test_other_names_are_no_modes(name: str) -> None:
    assert name not in CHAT_EVAL.modes


def test_the_plain_modes_are_listed() -> None:
    assert list(CHAT_EVAL.modes) == list(MODES)
    assert {"paper:single", "paper:one_by_one", "paper:simultaneous"} < set(CHAT_EVAL.modes)
