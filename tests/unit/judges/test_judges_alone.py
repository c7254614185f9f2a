"""One model as a judge: asked once, several times, or for probabilities."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from evalsuite.core.errors import JudgeError, RequestRefused, SettingsError
from evalsuite.core.types import Completion, TokenLogprob
from evalsuite.judges import Likert, multiple_evidence, pairwise, single, weighted
from evalsuite.judges.g_eval import compute_expectation, drop_reasoning_tokens
from evalsuite.judges.prompts import JudgedInput

ONE = JudgedInput("Why?", ("because",))
PAIR = JudgedInput("Why?", ("long answer", "short"))
FIVE_POINTS = Likert("", 1, 5, name="stars")


def judged(scorer: Any, subject: JudgedInput, model: Any) -> Any:
    return asyncio.run(scorer.judge(subject, model))


def first_place(shown: str) -> str:
    return shown.split("<answer_1>\n")[1].split("\n", maxsplit=1)[0]


def test_a_single_judge_asks_once_and_for_no_reasons(scripted: Any) -> None:
    model = scripted(lambda _: "quality: 7")
    found = judged(single(max_tokens=9), ONE, model)
    assert found.opinion.scores == {"quality": 7.0}
    assert len(model.calls) == 1
    asked = model.calls[0].params
    assert (asked["max_tokens"], asked["temperature"]) == (9, 0.0)
    schema = asked["response_format"]["json_schema"]["schema"]
    assert schema["properties"] == {"quality": {"type": "integer", "minimum": 1, "maximum": 10}}
    assert "for and against" not in model.calls[0].prompt


def test_a_pair_is_asked_in_both_orders_at_once(scripted: Any) -> None:
    model = scripted(lambda asked: "Verdict: 1" if first_place(asked.prompt) == "short" else "Verdict: 2")
    found = judged(pairwise(), PAIR, model)
    assert [first_place(asked.prompt) for asked in model.calls] == ["long answer", "short"]
    assert [asked.beside for asked in model.calls] == [2, 2]
    assert found.opinion.verdict == "second", "it is the same answer in both orders"


def test_without_swapping_one_order_is_asked(scripted: Any) -> None:
    model = scripted(lambda _: "Verdict: 1")
    assert judged(pairwise(swap=False), PAIR, model).opinion.verdict == "first"
    assert len(model.calls) == 1


def test_multiple_evidence_asks_for_reasons_k_times_in_both_orders_and_averages(scripted: Any) -> None:
    given_scores = iter([(9, 2), (8, 2), (4, 6), (5, 5), (5, 5), (6, 4)])

    def answer(_: Any) -> str:
        first, second = next(given_scores)
        return f"It is so.\nScore of answer 1: {first}\nScore of answer 2: {second}"

    model = scripted(answer)
    found = judged(multiple_evidence(rival="target", samples=3), PAIR, model)
    assert len(model.calls) == 6
    assert all("for and against" in asked.prompt for asked in model.calls)
    # As given: 9 8 4 against 2 2 6; swapped, so the first place is the second answer: 5 5 4 against 5 5 6.
    assert found.opinion.scores == {"first": 35 / 6, "second": 26 / 6}
    assert found.opinion.verdict == "first"


def test_samples_are_different_requests_and_may_be_seeded(scripted: Any) -> None:
    model = scripted(lambda _: "quality: 5")
    judged(multiple_evidence(samples=3, seed=40), ONE, model)
    assert sorted(asked.params["seed"] for asked in model.calls) == [40, 41, 42]
    assert {asked.params["temperature"] for asked in model.calls} == {1.0}


def logprobs(*tops: dict[str, float]) -> tuple[TokenLogprob, ...]:
    """One token each: the likeliest of its alternatives, given by their probabilities."""
    made = []
    for top in tops:
        likely = sorted(((token, math.log(chance)) for token, chance in top.items()), key=lambda one: -one[1])
        made.append(TokenLogprob(*likely[0], tuple(likely)))
    return tuple(made)


def test_a_weighted_score_is_the_expected_value_over_the_scores_probabilities(scripted: Any) -> None:
    said = Completion(" 4", logprobs=logprobs({" 4": 0.5, "5": 0.2, "4": 0.1, "good": 0.2}))
    model = scripted(lambda _: said)
    found = judged(weighted([FIVE_POINTS]), ONE, model)
    assert found.opinion.scores["stars"] == pytest.approx((4 * 0.6 + 5 * 0.2) / 0.8)
    assert found.facts["weights"]["stars"]["method"] == "logprobs"
    assert found.facts["weights"]["stars"]["mass"] == pytest.approx(0.8)
    assert model.calls[0].params == {"logprobs": True, "top_logprobs": 20, "temperature": 0.0}
    assert found.calls == 1


def test_where_no_logprobs_come_the_mean_of_samples_takes_their_place(scripted: Any) -> None:
    model = scripted(lambda asked: str(1 + asked.params.get("seed", 0) % 5))
    found = judged(weighted([FIVE_POINTS], samples=10), ONE, model)
    assert found.opinion.scores == {"stars": 3.0}
    assert found.facts["weights"] == {"stars": {"method": "samples", "mass": 1.0}}
    assert len(model.calls) == 11, "one asked for log-probabilities in vain"


def test_one_unreadable_sample_of_three_leaves_the_other_two_and_is_kept(scripted: Any) -> None:
    said = {0: "4", 1: "hm", 2: "2"}
    model = scripted(lambda asked: said.get(asked.params.get("seed"), "4"))
    found = judged(weighted([FIVE_POINTS], samples=3, attempts=1), ONE, model)
    assert found.opinion.scores == {"stars": 3.0}
    assert found.facts["weights"]["stars"]["mass"] == pytest.approx(2 / 3)
    assert "hm" in [entry["content"] for entry in found.log]


def test_an_aspect_that_cannot_be_read_is_an_error_that_keeps_what_was_said_of_the_others(scripted: Any) -> None:
    model = scripted(lambda asked: "4" if "stars" in asked.prompt else "hm")
    with pytest.raises(JudgeError, match="1 of 2 answers could be read; 2 are needed") as error:
        judged(weighted([FIVE_POINTS, Likert("", 1, 5, name="wit")], samples=1, attempts=1), ONE, model)
    assert {"4", "hm"} <= {entry["content"] for entry in error.value.log}


def test_where_logprobs_are_refused_samples_take_their_place(scripted: Any) -> None:
    model = scripted(lambda asked: RequestRefused("no logprobs") if "logprobs" in asked.params else "2")
    found = judged(weighted([FIVE_POINTS], samples=4), ONE, model)
    assert found.opinion.scores == {"stars": 2.0}
    assert len(model.calls) == 5


def test_two_answers_are_weighted_each_alone(scripted: Any) -> None:
    def answer(asked: Any) -> Completion:
        high = 0.7 if "long answer" in asked.prompt else 0.3
        return Completion("5", logprobs=logprobs({"5": high, "1": 1 - high}))

    model = scripted(answer)
    found = judged(weighted(rival="target"), PAIR, model)
    assert found.opinion.verdict == "first"
    assert found.opinion.scores == pytest.approx({"first": 3.8, "second": 2.2})
    assert not any("long answer" in asked.prompt and "short" in asked.prompt for asked in model.calls)


def test_an_expectation_is_read_at_the_score_and_not_at_a_number_that_was_thought_of() -> None:
    spoken = [("<think>", 0.0), ("2", 0.0), ("</think>", 0.0), ("1", 0.0), (". Score: ", 0.0), ("4", 0.0)]
    tokens = tuple(TokenLogprob(text, chance) for text, chance in spoken)
    assert [token.token for token in drop_reasoning_tokens(tokens)] == ["1", ". Score: ", "4"]
    assert compute_expectation(drop_reasoning_tokens(tokens), FIVE_POINTS, 4) == (4.0, 1.0)
    assert drop_reasoning_tokens(tokens[3:]) == tokens[3:]


def test_an_expectation_needs_a_token_that_is_a_score_with_some_probability() -> None:
    assert compute_expectation(logprobs({"ok": 1.0}, {"3": 1.0}), FIVE_POINTS, 3) == (3.0, 1.0)
    assert compute_expectation(logprobs({"ok": 1.0}), FIVE_POINTS, 3) is None
    assert compute_expectation((TokenLogprob("3", -9999.0),), FIVE_POINTS, 3) is None
    assert compute_expectation(logprobs({"²": 1.0}), FIVE_POINTS, 2) is None


@pytest.mark.parametrize("text", ["", "six", "6", "0", "4 of 5", "4.5", "3 or 4"])
def test_a_weighted_judge_must_answer_with_a_number_of_the_scale_alone(scripted: Any, text: str) -> None:
    model = scripted(lambda asked: "3" if len(asked.messages) > 2 else text)
    found = judged(weighted([FIVE_POINTS], samples=1), ONE, model)
    assert found.opinion.scores == {"stars": 3.0}
    assert "whole number from 1 to 5 alone" in model.calls[-1].messages[-1].content


@pytest.mark.parametrize(
    ("factory", "options"),
    [
        (weighted, {"aspects": [Likert("", 1, 10, name="a")]}),
        (weighted, {"samples": 0}),
        (multiple_evidence, {"samples": 0}),
        (multiple_evidence, {"aspects": ["a", "b"], "rival": "target"}),
    ],
    ids=["two digits", "no samples", "no evidence", "two aspects"],
)
def test_what_cannot_be_asked_is_refused_where_it_is_declared(factory: Any, options: Any) -> None:
    with pytest.raises(SettingsError):
        factory(**options)
