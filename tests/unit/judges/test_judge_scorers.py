"""Judges as scorers of a case."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from evalsuite.core.errors import JudgeError, ScoringError
from evalsuite.core.protocols import JudgedScorer
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.judges import Likert, multiple_evidence, pairwise, panel, single, weighted

SAMPLE = Sample(
    "sky",
    "Why is the sky blue?",
    target="Scattering of light.",
    tags={"system": "gpt-4"},
    metadata={"rival": "Because vicuna-13b says so.", "fact": "Rayleigh, 1871.", "rival_name": "vicuna-13b"},
)
TRANSCRIPT = Transcript("I, GPT-4, say: scattering.", facts={"model": "gpt-4"})


def scores(scorer: Any, model: Any, sample: Sample = SAMPLE) -> dict[str, float | Score]:
    found: dict[str, float | Score] = asyncio.run(scorer.judged(sample, TRANSCRIPT, model))
    return found


MARKS = {"clarity": 3, "quality": 6, "depth": 5}


def answering(asked: Any) -> str:
    if "Reply with the number alone" in asked.prompt:
        return "4"
    if "Verdict: " in asked.prompt:
        return "Verdict: 1"
    if "Score of answer" in asked.prompt:
        return "Score of answer 1: 8\nScore of answer 2: 4"
    marks = [f"{name}: {mark}" for name, mark in MARKS.items() if f"`{name}: `" in asked.prompt]
    return "\n".join(marks) or "I see."


@pytest.mark.parametrize(
    "scorer",
    [
        single(),
        pairwise(rival="rival"),
        multiple_evidence(rival="rival"),
        weighted(rival="rival", samples=2),
        panel(["critic", "scientist"], strategy="simultaneous_summarizer", turns=1, compare="rival"),
    ],
)
def test_names_of_the_compared_systems_never_reach_a_judge(scripted: Any, scorer: Any) -> None:
    model = scripted(answering)
    scores(scorer.given(hide=("gpt-4", "vicuna-13b")), model)
    assert model.calls
    for asked in model.calls:
        assert "gpt-4" not in asked.prompt.lower()
        assert "vicuna" not in asked.prompt.lower()
        assert "[name withheld]" in asked.prompt


@pytest.mark.parametrize("scorer", [single(), pairwise(), multiple_evidence(), weighted(), panel()])
def test_every_factory_makes_a_judged_scorer(scorer: Any) -> None:
    assert isinstance(scorer, JudgedScorer)


def test_each_aspect_is_a_score_and_the_first_carries_facts_and_log(scripted: Any) -> None:
    found = scores(panel(["critic"], criteria=["clarity", Likert("", 1, 5, name="depth")]), scripted(answering))
    first = found["clarity"]
    depth = found["depth"]
    assert isinstance(first, Score)
    assert isinstance(depth, Score)
    assert (first.value, depth.value) == (3.0, 5.0)
    assert first.signature == depth.signature
    assert not depth.log
    assert first.facts["calls"] == 2
    assert first.facts["ballots"][0]["judge"] == "critic"
    assert [entry["turn"] for entry in first.log if entry["role"] == "assistant"] == [1, 2]
    assert first.note == "critic: clarity 3, depth 5"


@pytest.mark.parametrize(
    ("with_own_first", "with_rival_first", "preference"),
    [("1", "2", 1.0), ("2", "1", 0.0), ("1", "1", 0.5), ("tie", "2", 0.5)],
)
def test_a_preference_is_what_the_verdict_is_worth_to_the_answer_under_test(
    scripted: Any, with_own_first: str, with_rival_first: str, preference: float
) -> None:
    own = "<answer_1>\nI, GPT-4"
    model = scripted(lambda asked: f"Verdict: {with_own_first if own in asked.prompt else with_rival_first}")
    found = scores(pairwise("rival"), model)["preference"]
    assert isinstance(found, Score)
    assert found.value == preference
    assert found.facts["lengths"] == [len(TRANSCRIPT.answer), len(SAMPLE.metadata["rival"])]


def with_metadata(**metadata: Any) -> Sample:
    return replace(SAMPLE, metadata={**SAMPLE.metadata, **metadata})


def test_who_wrote_two_answers_and_what_people_said_is_kept_for_the_bias_report_and_not_shown(scripted: Any) -> None:
    model = scripted(answering)
    sample = with_metadata(systems=("gpt-4", "claude-3"), human="second")
    found = scores(pairwise("rival"), model, sample)["preference"]
    assert isinstance(found, Score)
    assert (found.facts["systems"], found.facts["human"]) == (["gpt-4", "claude-3"], "second")
    assert not any("claude" in asked.prompt or "second" in asked.prompt for asked in model.calls)


@pytest.mark.parametrize("given", [{}, {"systems": "gpt-4", "human": 0.7}, {"systems": ["a"], "human": "yes"}])
def test_metadata_of_another_meaning_is_left_alone(scripted: Any, given: dict[str, Any]) -> None:
    found = scores(pairwise("rival"), scripted(answering), with_metadata(**given))["preference"]
    assert isinstance(found, Score)
    assert not {"systems", "human"} & set(found.facts)


def test_the_rival_is_the_target_unless_another_is_named(scripted: Any) -> None:
    model = scripted(answering)
    scores(pairwise(), model)
    assert "Scattering of light." in model.calls[0].prompt
    assert "<reference>" not in model.calls[0].prompt


def test_a_direct_judge_sees_the_target_as_reference_and_the_background(scripted: Any) -> None:
    model = scripted(answering)
    scores(single().given(background="fact"), model)
    assert "<reference>\nScattering of light.\n</reference>" in model.calls[0].prompt
    assert "<background>\nRayleigh, 1871.\n</background>" in model.calls[0].prompt


def test_a_prefix_tells_two_judges_apart(scripted: Any) -> None:
    assert list(scores(single(["clarity"]).given(prefix="strict_"), scripted(answering))) == ["strict_clarity"]


def test_a_judge_keeps_what_it_was_given_before(scripted: Any) -> None:
    model = scripted(answering)
    scorer = single(["clarity"]).given(prefix="strict_").given(background="fact").given(hide=("blue",))
    assert list(scores(scorer, model)) == ["strict_clarity"]
    assert "Rayleigh, 1871." in model.calls[0].prompt
    assert scorer.given(prefix="").prefix == ""


@pytest.mark.parametrize("scorer", [pairwise("baseline"), single().given(background="baseline")])
def test_a_sample_without_what_its_judge_needs_is_an_error_that_says_so(scripted: Any, scorer: Any) -> None:
    with pytest.raises(ScoringError, match=r"sample sky has no text 'baseline'.*'fact'"):
        scores(scorer, scripted(answering))


def test_a_rival_that_is_not_a_text_is_shown_in_the_error(scripted: Any) -> None:
    with pytest.raises(ScoringError, match=r"no text 'rival' for its judge \(it is \['a', 'b'\]\)"):
        scores(pairwise("rival"), scripted(answering), with_metadata(rival=["a", "b"]))


def test_a_judge_that_cannot_be_parsed_is_an_error_and_no_score(scripted: Any) -> None:
    model = scripted(lambda _: "quite good")
    with pytest.raises(JudgeError, match="3 attempts"):
        scores(single(), model)
    assert len(model.calls) == 3


def test_importing_the_judges_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'scipy', 'pandas', 'openai', 'matplotlib'}"
    code = f"import sys, evalsuite.judges; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def signature(scorer: Any, model: Any) -> str:
    first = next(iter(scores(scorer, model).values()))
    assert isinstance(first, Score)
    return first.signature


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (single(), single(["clarity"])),
        (pairwise(), pairwise("rival")),
        (panel(["critic"]), panel(["scientist"])),
        (single(), single(temperature=0.5)),
        (single(), single(model="another")),
    ],
)
def test_a_signature_is_the_same_for_the_same_question_and_changes_with_what_is_asked(
    scripted: Any, one: Any, other: Any
) -> None:
    assert signature(one, scripted(answering)) == signature(one, scripted(answering))
    assert signature(one, scripted(answering)) != signature(other, scripted(answering))


def test_a_parameter_that_the_user_sets_for_the_run_changes_the_signature_and_a_key_does_not(scripted: Any) -> None:
    def of(**overrides: Any) -> str:
        return signature(single(), scripted(answering, overrides=overrides))

    assert len({of(), of(temperature=1.0), of(temperature=0.5)}) == 3
    assert of(extra_headers={"x-api-key": "one"}) == of(extra_headers={"x-api-key": "two"})


@pytest.mark.parametrize(
    "words",
    ["judges.panels.TALK", "judges.panels.JUDGEMENT", "judges.panels.SUMMARY_PROMPT", "judges.panels.SYSTEM_PROMPT"],
)
def test_the_words_of_a_panels_prompts_are_part_of_its_signature(
    scripted: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signature(panel(1), scripted(answering))
    monkeypatch.setattr(f"evalsuite.{words}", "other words, {name}")
    assert signature(panel(1), scripted(answering)) != before


@pytest.mark.parametrize("scorer", [single(model="another"), pairwise(model="another"), panel(1, model="another")])
def test_another_judge_than_the_runs_may_be_asked(scripted: Any, scorer: Any) -> None:
    assert "|judge:another|" in signature(scorer, scripted(answering))


def test_a_quorum_says_how_many_ballots_must_be_readable(scripted: Any) -> None:
    def first_alone(asked: Any) -> str:
        return "quality: 6" if asked.params.get("seed") == 0 else "hm"

    assert scores(multiple_evidence(quorum=1, attempts=1), scripted(first_alone))
    with pytest.raises(JudgeError, match="1 of 3 ballots could be read; 2 are needed"):
        scores(multiple_evidence(attempts=1), scripted(first_alone))


def test_a_label_of_a_comparison_is_kept_as_a_verdict(scripted: Any) -> None:
    labelled = replace(SAMPLE, metadata={**SAMPLE.metadata, "human": "second"})
    first = scores(pairwise("rival"), scripted(answering), labelled)["preference"]
    assert isinstance(first, Score)
    assert first.facts["people"] == {"preference": {"label": 0.0, "nominal": True}}
