"""JSON schemas are offered to servers that know them, and to no other."""

from __future__ import annotations

import asyncio
from typing import Any

from evalsuite.core.errors import RequestRefused
from evalsuite.core.types import Sample, Transcript
from evalsuite.judges import pairwise, single

SAMPLE = Sample("a", "Which?", metadata={"rival": "That."})


def ask(scorer: Any, model: Any) -> dict[str, Any]:
    scores: dict[str, Any] = asyncio.run(scorer.judged(SAMPLE, Transcript("This."), model))
    return scores


def test_a_server_that_refuses_a_schema_is_asked_without_and_offered_no_other(scripted: Any) -> None:
    def answer(asked: Any) -> Any:
        return RequestRefused("no response_format") if "response_format" in asked.params else "quality: 4"

    model, scorer = scripted(answer), single()
    assert [ask(scorer, model)["quality"].value for _ in range(2)] == [4.0, 4.0]
    assert ["response_format" in asked.params for asked in model.calls] == [True, False, False]


def test_a_response_format_of_the_users_own_stays(scripted: Any) -> None:
    model = scripted(lambda _: '{"quality": 3}')
    assert ask(single(response_format={"type": "json_object"}), model)["quality"].value == 3.0
    assert model.calls[0].params["response_format"] == {"type": "json_object"}


def test_a_comparison_in_five_levels_is_scored_by_its_mean_over_orders_and_samples(scripted: Any) -> None:
    model = scripted(lambda asked: f'{{"verdict": "1 {"much " if asked.params["seed"] else ""}better"}}')
    preference = ask(pairwise("rival", levels=5, samples=2), model)["preference"]
    assert preference.value == 0.5
    assert [ballot["scores"]["preference"] for ballot in preference.facts["ballots"]] == [0.75, 1.0, 0.25, 0.0]
    assert {asked.params["temperature"] for asked in model.calls} == {1.0}


def test_a_quorum_lets_one_readable_judgement_of_each_order_stand(scripted: Any) -> None:
    model = scripted(lambda asked: "Verdict: tie" if asked.params["seed"] else "hm")
    preference = ask(pairwise("rival", samples=3, quorum=1, attempts=1), model)["preference"]
    assert preference.value == 0.5
    assert preference.facts["unreadable"] == 2
