"""What calls cost, in virtual time, and the limit that they never pass."""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalsuite.applications.case_api import CaseApi
from evalsuite.applications.case_model import CaseModel
from evalsuite.batches import backend as batches
from evalsuite.batches.backend import BatchBackend, PendingBatches
from evalsuite.batches.server import BatchState
from evalsuite.core.errors import BackendUnavailable, RequestRefused, SpendLimitReached
from evalsuite.core.types import Completion, Message, Request, Usage
from evalsuite.gateway.gateway import Gateway
from evalsuite.gateway.limiter import Limiter
from evalsuite.gateway.spend import UNBOUNDED_ANSWER, Ledger, Price, bound_prompt_tokens
from evalsuite.journal.batches import StoredBatches
from evalsuite.journal.database import Database
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.openai_formats import build_chat_body, build_response_body
from evalsuite.models.protocol import LostAnswer, Transient, WithheldAnswer
from evalsuite.service.clients import ANYBODY, CURRENT_CLIENT, SharedLedger
from evalsuite.service.server import AllowedUpstreams, GatewayServer
from tests.unit.gateway.conftest import ScriptedBackend, now
from tests.unit.gateway.random_servers import MemoryStore
from tests.unit.gateway.scripted_answers import ANSWER, journal_of, script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.unit.gateway.conftest import House, Virtual


def test_the_cost_is_that_of_the_tokens_used_and_is_kept_with_the_answer(house: House, virtual: Virtual) -> None:
    backend = house.Backend(house.echo)

    async def main() -> None:
        gateway = house.gateway(backend, prices={"gpt-test": Price(1000, 2000)})
        first = await gateway.ask(house.request())
        assert first.usage == Usage(1, 10, 5, 0.02)
        assert gateway.ledger.paid == first.usage
        assert (await gateway.ask(house.request())).usage == first.usage
        # Paid once, though used twice.
        assert gateway.ledger.paid == gateway.sum_usage() == first.usage
        await gateway.aclose()

    virtual(main())


def test_a_replay_has_used_what_the_run_used_and_paid_nothing(house: House, virtual: Virtual) -> None:
    backend = house.Backend(house.echo)

    async def main() -> None:
        prices = {"gpt-test": Price(1000, 2000)}
        first = house.gateway(backend, prices=prices)
        for number in range(5):
            await first.ask(house.request(str(number)))
        await first.aclose()
        again = house.gateway(backend, prices=prices)
        for number in (4, 2, 0, 1, 3, 3):
            await again.ask(house.request(str(number)))
        assert again.sum_usage() == first.sum_usage()
        assert again.ledger.paid == Usage()
        await again.aclose()

    virtual(main())


def test_the_call_that_might_pass_the_limit_is_not_made(house: House, virtual: Virtual) -> None:
    backend = house.Backend(house.echo)

    async def main() -> list[Any]:
        # An answer of at most 1000 tokens may cost a dollar; each costs half a cent in fact.
        gateway = house.gateway(backend, ledger=Ledger(1.012), prices={"gpt-test": Price(0, 1000)})
        asks = [gateway.ask(house.request(str(number), params={"max_tokens": 1000})) for number in range(8)]
        answers = await asyncio.gather(*asks, return_exceptions=True)
        await gateway.aclose()
        return answers

    answers = virtual(main())
    assert [isinstance(answer, Completion) for answer in answers] == [True] * 3 + [False] * 5
    assert all(isinstance(answer, SpendLimitReached) for answer in answers[3:])
    assert len(backend.asked) == 3


def test_a_failed_call_gives_back_what_was_set_aside_for_it(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(RequestRefused("no"), ANSWER))

    async def main() -> Completion:
        gateway = house.gateway(backend, ledger=Ledger(1.0), prices={"gpt-test": Price(0, 1000)})
        with pytest.raises(RequestRefused):
            await gateway.ask(house.request("1", params={"max_tokens": 900}))
        answer = await gateway.ask(house.request("2", params={"max_tokens": 900}))
        await gateway.aclose()
        return answer

    assert virtual(main()).text == "fine"


def test_a_limit_that_cannot_be_kept_for_want_of_a_price_is_an_error_before_any_call(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(house.echo)

    async def main() -> None:
        gateway = house.gateway(backend, ledger=Ledger(1.0))
        with pytest.raises(BackendUnavailable, match="no price of gpt-test is known: name it with --price"):
            await gateway.ask(house.request())
        await gateway.aclose()

    virtual(main())
    assert not backend.asked
    assert len(house.told) == 1


def test_what_is_free_needs_no_price(house: House, virtual: Virtual) -> None:
    backend = house.Backend(house.echo, metered=False)

    async def main() -> float:
        gateway = house.gateway(backend, ledger=Ledger(0.0))
        answer = await gateway.ask(house.request())
        await gateway.aclose()
        return answer.usage.cost

    assert virtual(main()) == 0.0


PRICES = {"gpt-test": Price(30.0, 60.0)}


def writes_as_long_as_it_may(asked: Request) -> Completion:
    """A server that keeps to the bound it was sent, and uses all of it."""
    bound = asked.params.get("max_tokens", 100_000)
    return Completion("x" * 8, usage=Usage(1, 5, bound))


@pytest.mark.parametrize("params", [{}, {"max_tokens": 500}])
def test_a_hundred_calls_in_flight_do_not_pass_the_spend_limit(
    house: House, virtual: Virtual, params: dict[str, Any]
) -> None:
    async def answer(asked: Request) -> Completion:
        await asyncio.sleep(1)
        return writes_as_long_as_it_may(asked)

    async def main() -> Ledger:
        gateway = house.gateway(house.Backend(answer), 100, Ledger(5.0), PRICES)
        asks = [gateway.ask(house.request(str(number), params=params)) for number in range(500)]
        results = await asyncio.gather(*asks, return_exceptions=True)
        assert any(isinstance(result, SpendLimitReached) for result in results)
        await gateway.aclose()
        return gateway.ledger

    ledger = virtual(main())
    assert 4.0 < ledger.paid.cost <= 5.0


def test_where_money_is_limited_an_answer_without_a_bound_gets_one_and_is_kept_under_what_was_asked(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(writes_as_long_as_it_may)

    async def main() -> None:
        gateway = house.gateway(backend, 8, Ledger(5.0), PRICES)
        await gateway.ask(house.request("hello"))
        await gateway.ask(house.request("hello"))
        await gateway.aclose()

    virtual(main())
    assert [asked.params for asked in backend.asked] == [{"max_tokens": UNBOUNDED_ANSWER}]


def test_what_failed_but_may_be_billed_counts_with_all_that_was_set_aside(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(LostAnswer("cut off"), Transient("500"), ANSWER))

    async def main() -> Ledger:
        gateway = house.gateway(backend, 8, Ledger(5.0), PRICES)
        await gateway.ask(house.request("hello", params={"max_tokens": 100}))
        await gateway.aclose()
        return gateway.ledger

    ledger = virtual(main())
    assert ledger.uncertain > 100 * 60 / 1e6
    assert len(backend.asked) == 3
    assert ledger.paid.cost == pytest.approx(ledger.uncertain + (10 * 30 + 5 * 60) / 1e6)


def test_usage_that_the_server_does_not_count_is_estimated_and_flagged(house: House, virtual: Virtual) -> None:
    async def main() -> Usage:
        silent = Completion("a long answer " * 20, usage=Usage(1, 0, 0))
        gateway = house.gateway(house.Backend(script(silent)), 8, Ledger(5.0), PRICES)
        answer = await gateway.ask(house.request("hello"))
        await gateway.aclose()
        assert gateway.ledger.paid == answer.usage
        return answer.usage

    usage = virtual(main())
    assert usage.estimated == 1
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 20
    assert usage.cost > 0


def test_usage_that_no_call_can_have_is_not_believed_and_stops_nothing(house: House, virtual: Virtual) -> None:
    async def main() -> Usage:
        boastful = Completion("an answer", usage=Usage(1, 10, 10**30))
        gateway = house.gateway(house.Backend(script(boastful)), 8, Ledger(5.0), PRICES)
        answer = await gateway.ask(house.request("hello"))
        await gateway.aclose()
        return answer.usage

    usage = virtual(main())
    assert usage.estimated == 1
    assert usage.completion_tokens < 100


def test_a_ledger_goes_on_where_an_earlier_session_ended(house: House, virtual: Virtual) -> None:
    async def main() -> None:
        spent = Usage(10, 0, 0, 4.99)
        gateway = house.gateway(house.Backend(house.echo), 8, Ledger(5.0, spent), PRICES)
        with pytest.raises(SpendLimitReached, match=r"\$4.9900 of --max-cost \$5"):
            await gateway.ask(house.request("hello"))
        await gateway.aclose()

    virtual(main())


def test_a_refusal_by_the_model_is_paid_and_is_no_answer(house: House, virtual: Virtual) -> None:
    async def main() -> float:
        gateway = house.gateway(house.Backend(script(WithheldAnswer("the model refused: no"))), 8, None, PRICES)
        with pytest.raises(RequestRefused, match="the model refused: no"):
            await gateway.ask(house.request("hello"))
        assert len(journal_of(gateway)) == 0
        await gateway.aclose()
        return gateway.ledger.paid.cost

    assert virtual(main()) > 0


@pytest.mark.parametrize(("stated", "cost"), [(Usage(1, 10, 5), 10 * 30e-6 + 5 * 60e-6), (Usage(1), None)])
def test_a_refusal_costs_the_tokens_that_the_server_states_and_else_the_reserve(
    house: House, virtual: Virtual, stated: Usage, cost: float | None
) -> None:
    async def main() -> tuple[float, float]:
        ledger = Ledger(5.0)
        gateway = house.gateway(house.Backend(script(WithheldAnswer("no", stated))), 8, ledger, PRICES)
        with pytest.raises(RequestRefused, match="no"):
            await gateway.ask(house.request("hello"))
        await gateway.aclose()
        return ledger.paid.cost, ledger.uncertain

    paid, uncertain = virtual(main())
    if cost is None:
        assert paid == uncertain > 0.1
    else:
        assert paid == pytest.approx(cost)
        assert uncertain == 0


NUMBERS = st.sampled_from([None, 0, -1, 1, 7, 500, 20_000, "900", 12.5, "many", True])
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
NESTED = {
    "reasoning": ("max_tokens",),
    "thinking": ("budget_tokens",),
    "chat_template_kwargs": ("thinking_budget",),
    "generationConfig": ("maxOutputTokens", "candidateCount"),
    "options": ("num_predict", "max_tokens", "budget_tokens"),
}
REPEATS = ("n", "best_of", "num_choices", "candidateCount")
FIELDS = st.dictionaries(
    st.sampled_from([*LIMITS, *REPEATS, "n_predict", "thinking_budget"]), NUMBERS, max_size=4
).flatmap(
    lambda plain: st.fixed_dictionaries(
        {},
        optional={
            "stream": st.booleans(),
            **{
                name: NUMBERS | st.dictionaries(st.sampled_from(inner), NUMBERS, max_size=2)
                for name, inner in NESTED.items()
            },
        },
    ).map(lambda nested: {**nested, **plain})
)


def largest_answer(body: dict[str, Any], *, responses: bool) -> int:
    """What a server may write that reads every bound leniently, and the largest of several.

    It writes the reasoning that it is granted beside the answer, and as many answers as any field names.
    """

    def number(value: Any) -> float:
        try:
            return 0.0 if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            return 0.0

    def listed(*places: str) -> list[float]:
        groups = {place: body.get(place.partition(".")[0]) if "." in place else body for place in places}
        found = [(group, place.rpartition(".")[2]) for place, group in groups.items() if isinstance(group, dict)]
        return [number(group[name]) for group, name in found if group.get(name) is not None]

    limits = ("max_output_tokens",) if responses else ("max_tokens", "max_completion_tokens")
    named = listed(*limits, "n_predict", "options.num_predict", "generationConfig.maxOutputTokens")
    budgets = listed(
        *("reasoning.max_tokens", "thinking.budget_tokens", "thinking_budget", "chat_template_kwargs.thinking_budget"),
        "options.budget_tokens",
    )
    endless = any(bound < 0 for bound in (*named, *budgets)) or not any(number(body.get(name)) > 0 for name in limits)
    answers = max(1.0, *listed(*REPEATS, "generationConfig.candidateCount"), 1.0)
    return 10**7 if endless else int((max(named) + max(0.0, *budgets, 0.0)) * answers)


QUESTIONS: dict[str, dict[str, Any]] = {
    "/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
    "/responses": {"input": "x"},
    "/messages": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 9},
    "/models/gpt-test:generateContent": {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
}


def write_body(path: str, params: dict[str, Any]) -> bytes:
    gemini = {"maxOutputTokens": params.get("max_tokens"), "candidateCount": params.get("n")}
    config = {name: value for name, value in gemini.items() if value is not None}
    further = {"generationConfig": config} if "contents" in QUESTIONS[path] else {"model": "gpt-test"} | params
    return json.dumps(QUESTIONS[path] | further).encode()


class ServerOfBatches:
    """Completes each batch with answers that are as long as the bodies of the uploaded lines allow."""

    def __init__(self, write: Callable[[dict[str, Any], bool], int]) -> None:
        self._write = write
        self._files: dict[str, bytes] = {}

    async def upload_file(self, name: str, content: bytes) -> str:
        self._files[name] = content
        return name

    async def create_batch(self, file: str, path: str, _mark: str) -> BatchState:
        self._files["answers"] = b"".join(map(self._answer_line, self._files[file].splitlines()))
        return BatchState("batch", "completed", 1, 1, ("answers",), ())

    def _answer_line(self, line: bytes) -> bytes:
        sent = json.loads(line)
        responses = sent["url"].endswith("/responses")
        written = self._write(sent["body"], responses)
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
        said: dict[str, Any] = {"status": "completed", "output": [message], "choices": [{"message": {"content": "x"}}]}
        usage = {"prompt_tokens": 5, "completion_tokens": written, "input_tokens": 5, "output_tokens": written}
        response = {"status_code": 200, "body": said | {"usage": usage}}
        return json.dumps({"custom_id": sent["custom_id"], "response": response}).encode() + b"\n"

    async def download_file(self, file: str) -> bytes:
        return self._files[file]

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("path", ["", *QUESTIONS])
@pytest.mark.parametrize("way", ["direct", "service", "batch"])
def test_no_body_makes_a_server_that_keeps_to_its_bounds_pass_the_limit(
    virtual: Virtual, path: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []

    def write(body: dict[str, Any], responses: bool) -> int:  # noqa: FBT001 - a callback
        sent.append(body)
        return largest_answer(body, responses=responses)

    def answer(asked: Request) -> Completion:
        responses = asked.params.get("api") == "responses"
        body = (build_response_body if responses else build_chat_body)(asked, "m")
        return Completion("x", usage=Usage(1, 5, write(body, responses)))

    monkeypatch.setattr(batches, "BatchServer", lambda _: ServerOfBatches(write))
    numbers = itertools.count()

    @contextmanager
    def open_backend() -> Iterator[Any]:
        if way != "batch":
            yield ScriptedBackend(answer)
            return
        with closing(Database(tmp_path / str(next(numbers)))) as database:
            server = OpenAIBackend("http://127.0.0.1:1/v1")
            yield BatchBackend(server, "gpt-test", StoredBatches(database), PendingBatches())

    @given(params=FIELDS, extra=FIELDS, api=st.sampled_from([None, "responses"]))
    @example(params={"thinking_budget": 20_000}, extra={"options": {"num_predict": 20_000}}, api=None)
    @settings(max_examples=60, deadline=None)
    def check(params: dict[str, Any], extra: dict[str, Any], api: str | None) -> None:
        async def main(backend: Any) -> float:
            store: Any = MemoryStore()  # It has no tool calls.
            service = way == "service"
            ledger = SharedLedger(2.0, (ANYBODY,), {}) if service else Ledger(2.0)
            gateway = Gateway(lambda *_: backend, store, Limiter(8, clock=now), ledger, PRICES, clock=now)
            CURRENT_CLIENT.set(ANYBODY)
            upstreams = AllowedUpstreams(["gpt-test"], [])
            asker = GatewayServer(gateway, store, [], upstreams, local=True) if service else gateway
            request = Request("gpt-test", (Message("user", "x"),), {**params, "extra_body": extra, "api": api})
            for epoch in range(3):
                with suppress(SpendLimitReached):
                    if path:
                        door = CaseApi(CaseModel(asker, "gpt-test", None, epoch))
                        await door.answer_request("POST", path, write_body(path, params | extra))
                    else:
                        await asker.ask(replace(request, epoch=epoch))
            await gateway.aclose()
            return ledger.paid.cost

        with open_backend() as backend:
            assert virtual(main(backend)) <= 2.0

    check()
    assert sent


def test_text_is_reserved_by_its_bytes_in_every_part_that_is_not_a_picture() -> None:
    text = "word " * 10_000
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": text}, {"type": "file", "file": {"file_data": text}}]
    for part in parts:
        assert bound_prompt_tokens(Request("gpt-test", (Message("user", parts=(part,)),))) >= len(text)


@pytest.mark.parametrize("params", [{"extra_body": {"model": "dear"}}, {"model": "dear"}, {"models": ["dear"]}])
def test_a_body_that_names_another_model_is_refused_where_money_is_limited(
    house: House, virtual: Virtual, params: dict[str, Any]
) -> None:
    backend = house.Backend(house.echo)

    async def main() -> None:
        gateway = house.gateway(backend, ledger=Ledger(1.0), prices=PRICES)
        with pytest.raises(RequestRefused, match="names another model"):
            await gateway.ask(house.request(params=params))
        await gateway.aclose()

    virtual(main())
    assert not backend.asked
