"""Draws: each equal request of a case has an answer of its own, which a rerun of the case finds again."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.applications.case_model import CaseModel
from evalsuite.core.errors import CallFailed, RequestRefused
from evalsuite.core.types import Completion, Message, Request, Sample, Usage
from evalsuite.engine.solving import run_solver
from evalsuite.gateway.concealment import EPOCH_MARK, make_request_keys
from evalsuite.gateway.handle import CaseToolCalls, ModelHandle, UsageMeter
from tests.unit.gateway.scripted_answers import journal_of

if TYPE_CHECKING:
    from evalsuite.gateway.gateway import Gateway
    from tests.unit.gateway.conftest import House, Virtual


def counting() -> Any:
    """Answer each call with another number."""
    numbers = itertools.count(1)
    return lambda _: Completion(str(next(numbers)), usage=Usage(1, 10, 5))


def handle(gateway: Gateway, case: str, epoch: int = 1, *, share_greedy: bool = False) -> ModelHandle:
    return ModelHandle(gateway, "m", epoch=epoch, meter=UsageMeter(scope=case, share_greedy=share_greedy))


async def ask(model: ModelHandle, times: int = 1, **params: Any) -> list[str]:
    return [(await model.chat("VOTE", **params)).text for _ in range(times)]


def test_equal_requests_of_a_case_are_independent_and_a_rerun_finds_them_in_order(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(counting())

    async def main() -> None:
        gateway = house.gateway(backend)
        first = await ask(handle(gateway, "case"), 5, temperature=1.0)
        assert first == ["1", "2", "3", "4", "5"]
        await gateway.aclose()
        again = house.gateway(backend)
        assert await ask(handle(again, "case"), 5, temperature=1.0) == first
        await again.aclose()

    virtual(main())
    assert len(backend.asked) == 5


def test_a_rerun_of_parallel_requests_finds_the_same_draws(house: House, virtual: Virtual) -> None:
    backend = house.Backend(counting())

    async def votes(gateway: Gateway) -> list[str]:
        model = handle(gateway, "case")
        answers = await asyncio.gather(*(model.chat("VOTE") for _ in range(5)))
        return [answer.text for answer in answers]

    async def main() -> None:
        gateway = house.gateway(backend)
        first = await votes(gateway)
        assert sorted(first) == ["1", "2", "3", "4", "5"]
        await gateway.aclose()
        again = house.gateway(backend)
        assert await votes(again) == first
        await again.aclose()

    virtual(main())
    assert len(backend.asked) == 5


def test_cases_and_epochs_never_share_an_answer(house: House, virtual: Virtual) -> None:
    backend = house.Backend(counting())

    async def main() -> None:
        gateway = house.gateway(backend)
        answers = [await ask(handle(gateway, case, epoch), temperature=0) for case in "abcd" for epoch in (1, 2)]
        assert len({text for (text,) in answers}) == 8
        await gateway.aclose()

    virtual(main())


def test_models_of_one_case_number_their_requests_together(house: House, virtual: Virtual) -> None:
    backend = house.Backend(counting())

    async def main() -> None:
        gateway = house.gateway(backend)
        model = handle(gateway, "case")
        answers = [*await ask(model), *await ask(model.peer("m")), *await ask(model.player("m"))]
        assert answers == ["1", "2", "3"]
        await gateway.aclose()

    virtual(main())


def test_greedy_requests_share_an_answer_if_the_user_says_so(house: House, virtual: Virtual) -> None:
    backend = house.Backend(counting())

    async def main() -> None:
        gateway = house.gateway(backend)
        models = [handle(gateway, case, share_greedy=True) for case in "ab"]
        assert [await ask(model, 2, temperature=0) for model in models] == [["1", "1"]] * 2
        assert [await ask(model, temperature=0.5) for model in models] == [["2"], ["3"]]
        assert [await ask(model) for model in models] == [["4"], ["5"]]
        await gateway.aclose()

    virtual(main())


def test_a_peer_with_an_epoch_of_its_own_and_embeddings_share_an_answer(house: House, virtual: Virtual) -> None:
    backend = house.Backend(counting())

    async def main() -> None:
        gateway = house.gateway(backend)
        models = [handle(gateway, case, epoch) for case in "ab" for epoch in (1, 2)]
        assert [await ask(model.peer("tool", epoch=1)) for model in models] == [["1"]] * 4
        assert await ask(models[0], 2, api="embeddings") == await ask(models[2], 2, api="embeddings")
        await gateway.aclose()

    virtual(main())


def test_several_answers_of_one_request_are_refused_with_advice() -> None:
    model = ModelHandle(None, "m", meter=UsageMeter(scope="case"))  # type: ignore[arg-type] # it is not asked
    with pytest.raises(RequestRefused, match="n=3: a request has one answer; send it 3 times"):
        asyncio.run(model.chat("VOTE", n=3))


def test_a_journal_from_before_draws_still_answers_every_equal_request(house: House, virtual: Virtual) -> None:
    backend = house.Backend(counting())

    async def main() -> None:
        gateway = house.gateway(backend)
        old = Request("m", (Message("user", "VOTE"),))
        await journal_of(gateway).store_completion(
            make_request_keys("scripted", old, with_older_keys=True)[-1], old, Completion("old")
        )
        await gateway.aclose()
        resumed = house.gateway(backend)
        assert [await ask(handle(resumed, case), 2) for case in "ab"] == [["old", "old"]] * 2
        assert await ask(handle(resumed, "a", 2)) == ["1"]
        await resumed.aclose()

    virtual(main())
    assert len(backend.asked) == 1


def test_a_further_epoch_finds_the_answers_of_a_run_with_one(house: House, virtual: Virtual) -> None:
    backend = house.Backend(counting())

    async def main() -> None:
        gateway = house.gateway(backend)
        assert await ask(handle(gateway, "test[a]"), 2) == ["1", "2"]
        assert await ask(handle(gateway, f"test[a{EPOCH_MARK}-e1]"), 2) == ["1", "2"]
        assert await ask(handle(gateway, f"test[a{EPOCH_MARK}-e2]", 2), 2) == ["3", "4"]
        await gateway.aclose()

    virtual(main())


def test_a_journal_whose_draws_name_the_epoch_still_answers(house: House, virtual: Virtual) -> None:
    backend = house.Backend(counting())

    async def main() -> None:
        gateway = house.gateway(backend)
        # As earlier versions named them.
        assert await ask(handle(gateway, "test[a-e1]")) == ["1"]
        assert await ask(handle(gateway, "test[b-e1]")) == ["2"]
        await gateway.aclose()
        resumed = house.gateway(backend)
        assert await ask(handle(resumed, f"test[a{EPOCH_MARK}-e1]")) == ["1"]
        await resumed.aclose()

    virtual(main())


def test_requests_of_a_tool_call_count_although_the_tool_does_not_run_again(house: House, virtual: Virtual) -> None:
    backend = house.Backend(counting())

    async def play(gateway: Gateway) -> tuple[list[str], Usage, Usage, Any]:
        meter = UsageMeter(scope="case")
        model = CaseModel(gateway, "m", meter=meter, effects=CaseToolCalls(gateway, "case"))

        async def vote() -> dict[str, Any]:
            played = await model.player("player", epoch=1).chat("PLAY")
            return {"votes": [*await ask(model, 2), played.text]}

        results = await asyncio.gather(*(model.effects.run_tool_once("vote", {}, vote) for _ in range(2)))
        votes = [*(text for result in results for text in result["votes"]), *await ask(model)]
        return votes, meter.usage, model.players.usage, meter.fingerprints

    async def main() -> None:
        gateway = house.gateway(backend)
        first = await play(gateway)
        assert len(set(first[0])) == 6
        assert (first[1].calls, first[2].calls) == (7, 2)
        total = gateway.sum_usage()
        await gateway.aclose()
        again = house.gateway(backend)
        assert await play(again) == first
        assert again.sum_usage() == total
        await again.aclose()

    virtual(main())
    assert len(backend.asked) == 6


@pytest.mark.parametrize("delays", [{"1": 2.0, "2": 1.0}, {"1": 1.0, "2": 2.0}])
def test_a_case_has_the_failure_of_the_call_that_it_sent_first(virtual: Virtual, delays: dict[str, float]) -> None:
    class Failing:
        async def ask(self, request: Request) -> Completion:
            text = request.messages[-1].content
            await asyncio.sleep(delays[text])
            raise CallFailed(f"call {text} failed")

    async def agent(sample: Sample, model: CaseModel) -> str:
        await asyncio.gather(model.chat("1"), model.chat("2"), return_exceptions=True)
        return sample.id

    asker: Any = Failing()
    with pytest.raises(CallFailed, match="call 1 failed"):
        virtual(run_solver(agent, Sample(id="a", input="a"), CaseModel(asker, "m")))


@pytest.mark.parametrize("copied", [False, True])
def test_parallel_requests_of_a_client_are_sent_in_the_order_of_its_calls(
    monkeypatch: pytest.MonkeyPatch, *, copied: bool
) -> None:
    sent: list[str] = []
    times = itertools.chain([0.2], itertools.repeat(0.0))
    monkeypatch.setattr("openai._base_client.get_platform", lambda: time.sleep(next(times)))

    class Answering:
        async def ask(self, request: Request) -> Completion:
            sent.append(request.messages[-1].content)
            return Completion("fine", usage=Usage(1, 10, 5))

    async def main() -> None:
        asker: Any = Answering()
        client = CaseModel(asker, "m").openai()
        client = client.with_options(timeout=60.0) if copied else client
        await asyncio.gather(
            *(client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}]) for text in "123")
        )

    asyncio.run(main())
    assert sent == ["1", "2", "3"]
