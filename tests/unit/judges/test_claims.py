"""Claims of answers and references, and passages: each is judged by itself where an answer is long."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from evalsuite.core.errors import JudgeError
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.judges import Each, citations, context_precision, context_recall, faithful, rubric

PASSAGES = ["Oolong is a tea.", "It rains in Oslo.", "Oolong is partly oxidised."]
SAMPLE = Sample("tea", "What is oolong?", "A partly oxidised tea.", metadata={"passages": PASSAGES})
LONG = Transcript("Oolong is a tea [1]. It is black [3]. " + "It is drunk in many places by many people. " * 30)


def judged(scorer: Any, model: Any, transcript: Transcript = LONG, sample: Sample = SAMPLE) -> dict[str, Score]:
    scores: dict[str, Score] = asyncio.run(scorer.judged(sample, transcript, model))
    return scores


def answer(found: list[Any], good: tuple[str, ...], otherwise: str = "no") -> Any:
    """Lists these items where a list is asked for, and says yes to the good ones."""

    def say(asked: Any) -> str:
        if '{"items": ["' in asked.prompt:
            return json.dumps({"items": found})
        yes = any(one in asked.prompt.rpartition("</")[0].rpartition(">\n")[2] for one in good)
        return json.dumps({"reason": "so", "verdict": "yes" if yes else otherwise})

    return say


CLAIMS = ["Oolong is a tea [1].", "Oolong is black [3].", "Oolong is drunk in many places."]


@pytest.mark.parametrize("factory", [faithful, citations])
def test_the_claims_of_a_long_answer_are_asked_one_by_one_and_kept(scripted: Any, factory: Any) -> None:
    model = scripted(answer(CLAIMS, ("is a tea", "in many")))
    ((name, score),) = judged(factory(), model).items()
    assert score.value == pytest.approx(2 / 3)
    assert score.facts[name]["parts"] == {
        "1. Oolong is a tea [1].": 1.0,
        "2. Oolong is black [3].": 0.0,
        "3. Oolong is drunk in many places.": 1.0,
    }
    assert score.facts[name]["calls"] == 4
    assert score.note == "2. Oolong is black [3].: so"
    assert [f"<claim>\n{claim}\n</claim>" in call.prompt for claim, call in zip(CLAIMS, model.calls[1:], strict=True)]
    assert not any("<answer" in call.prompt for call in model.calls[1:])
    assert all("Oolong is partly oxidised." in call.prompt for call in model.calls)
    assert not any("Split the answer" in call.prompt for call in model.calls), "the steps are about all claims"


def test_the_claims_of_a_short_answer_are_judged_by_one_call(scripted: Any) -> None:
    model = scripted(lambda _: json.dumps({"items": [{"claim": "a", "reason": "so", "score": "no"}]}))
    score = judged(faithful(), model, Transcript("It is black."))["faithful"]
    assert (score.value, score.facts["faithful"]["calls"]) == (0.0, 1)


def test_one_claim_that_cannot_be_read_is_an_error_with_the_whole_log(scripted: Any) -> None:
    with pytest.raises(JudgeError, match="faithful: judge scripted gave no usable answer in 1 attempts") as raised:
        judged(faithful(attempts=1), scripted(answer(CLAIMS, ("is a tea",), otherwise="?")))
    assert sum(entry["role"] == "assistant" for entry in raised.value.log) == 4


@pytest.mark.parametrize("found", [["a"] * 201, [{"claim": "a"}], "a"])
def test_a_list_that_is_not_of_texts_or_too_long_is_asked_for_again(scripted: Any, found: Any) -> None:
    model = scripted(answer(found, ()))
    with pytest.raises(JudgeError, match="at most 200 texts"):
        judged(faithful(), model)
    assert len(model.calls) == 3


def test_a_long_answer_without_claims_is_faithful(scripted: Any) -> None:
    score = judged(faithful(), scripted(answer(["", " "], ())))["faithful"]
    assert (score.value, score.note) == (1.0, "there is no claim")


def test_claims_that_the_judge_cannot_tell_are_left_out_unless_they_are_half(scripted: Any) -> None:
    def tells(of: str) -> Any:
        return lambda asked: answer(CLAIMS, ())(asked) if of not in asked.prompt else '{"verdict": "cannot tell"}'

    assert judged(faithful(cannot_tell=True), scripted(tells("<claim>\nOolong is black")))["faithful"].value == 0.0
    scores = judged(faithful(cannot_tell=True), scripted(tells("<claim>\nOolong is")))
    assert scores["faithful_cannot_tell"].value == 1.0


def test_items_on_a_scale_are_scored_one_by_one(scripted: Any) -> None:
    each = Each("step", "how clear is it?", 1, 5, section="answer", at_once=0)
    model = scripted(
        lambda asked: (
            '{"items": ["mix", "bake"]}'
            if "List every step" in asked.prompt
            else json.dumps({"reason": "so", "score": 4 if "<step>\nmix" in asked.prompt else 1})
        )
    )
    assert judged(rubric(each), model)["rubric"].value == 2.5


def test_recall_is_the_share_of_the_references_claims_that_the_passages_say(scripted: Any) -> None:
    model = scripted(
        lambda asked: json.dumps(
            {"items": [{"claim": one, "reason": "so", "score": one in asked.prompt} for one in ("oxidised", "green")]}
        )
    )
    assert judged(context_recall(), model, Transcript(""))["context_recall"].value == 0.5
    assert "<reference>\nA partly oxidised tea." in model.calls[0].prompt
    assert "<answer" not in model.calls[0].prompt


@pytest.mark.parametrize(("useful", "value"), [((0, 2), (1 + 2 / 3) / 2), ((2,), 1 / 3), ((0, 1, 2), 1.0), ((), 0.0)])
def test_precision_is_the_average_precision_of_the_passages_in_their_order(
    scripted: Any, useful: tuple[int, ...], value: float
) -> None:
    model = scripted(answer([], tuple(PASSAGES[at] for at in useful)))
    score = judged(context_precision(), model)["context_precision"]
    assert score.value == pytest.approx(value)
    assert len(model.calls) == 3, "one call per passage, and none to list them"


def test_a_search_that_found_nothing_has_the_precision_zero_without_a_call(scripted: Any) -> None:
    sample = Sample("tea", "What?", "Tea.", metadata={"passages": []})
    model = scripted(answer([], ()))
    assert judged(context_precision(), model, sample=sample)["context_precision"].value == 0.0
    assert not model.calls
