"""The gateway, in virtual time: what is asked, how often, and what becomes of failures."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.errors import BackendUnavailable, CallFailed, RequestRefused, RunError, SpendLimitReached
from evalsuite.gateway.effort import ATTEMPTS
from evalsuite.gateway.gateway import GRACE, NEVER_REACHED, PATIENCE
from evalsuite.gateway.spend import UNBOUNDED_ANSWER, Ledger, Price
from evalsuite.journal.answers import Answers
from evalsuite.models.protocol import (
    Hopeless,
    LostAnswer,
    Outage,
    RateLimited,
    Transient,
    Unreachable,
    Withheld,
)
from evalsuite.types import Completion, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.gateway.gateway import Gateway
    from evalsuite.types import Request
    from tests.unit.gateway.conftest import House, Virtual

ANSWER = Completion("fine", usage=Usage(1, 10, 5))


def journal_of(gateway: Gateway) -> Answers:
    assert isinstance(gateway.store, Answers)
    return gateway.store


def script(*said: Completion | Exception) -> Any:
    """Answers in turn, the last one for ever."""
    rest: Iterator[Completion | Exception] = iter(said)
    last: list[Completion | Exception] = []

    def answer(_: Request) -> Completion:
        last[:] = [next(rest, *last)]
        if isinstance(last[0], Exception):
            raise last[0]
        return last[0]

    return answer


def slow(seconds: float, said: Completion = ANSWER) -> Any:
    async def answer(_: Request) -> Completion:
        await asyncio.sleep(seconds)
        return said

    return answer


def test_an_answer_is_kept_and_the_same_request_is_not_asked_again(house: House, virtual: Virtual) -> None:
    backend = house.Backend(house.echo)

    async def main() -> None:
        gateway = house.gateway(backend)
        first = await gateway.ask(house.request())
        assert await gateway.ask(house.request()) == first == house.echo(house.request())
        await gateway.aclose()
        # The next session on the same store.
        again = house.gateway(backend)
        assert await again.ask(house.request()) == first
        await again.aclose()

    virtual(main())
    assert len(backend.asked) == 1


@pytest.mark.parametrize(
    "other",
    [{"text": "hello!"}, {"epoch": 2}, {"params": {"temperature": 1}}, {"tools": ({"name": "f"},)}],
)
def test_another_request_is_asked(house: House, virtual: Virtual, other: dict[str, Any]) -> None:
    backend = house.Backend(house.echo)

    async def main() -> None:
        gateway = house.gateway(backend)
        await gateway.ask(house.request())
        await gateway.ask(house.request(**other))
        await gateway.aclose()

    virtual(main())
    assert len(backend.asked) == 2


def test_identical_requests_join_the_one_under_way(house: House, virtual: Virtual) -> None:
    backend = house.Backend(slow(3.0))

    async def main() -> tuple[Completion, ...]:
        gateway = house.gateway(backend)

        async def late() -> Completion:
            await asyncio.sleep(2.0)
            return await gateway.ask(house.request())

        answers = await asyncio.gather(gateway.ask(house.request()), gateway.ask(house.request()), late())
        assert house.now() == 3.0
        await gateway.aclose()
        return tuple(answers)

    assert virtual(main()) == (ANSWER,) * 3
    assert len(backend.asked) == 1


def test_those_who_joined_hear_of_the_failure_too(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(RequestRefused("no")))

    async def main() -> list[Any]:
        gateway = house.gateway(backend)
        asks = [gateway.ask(house.request()) for _ in range(3)]
        answers = await asyncio.gather(*asks, return_exceptions=True)
        await gateway.aclose()
        return answers

    assert [str(answer) for answer in virtual(main())] == ["no"] * 3
    assert len(backend.asked) == 1


def test_an_asker_that_gives_up_takes_nobody_along(house: House, virtual: Virtual) -> None:
    backend = house.Backend(slow(3.0))

    async def main() -> Completion:
        gateway = house.gateway(backend)
        impatient = asyncio.create_task(gateway.ask(house.request()))
        other = asyncio.create_task(gateway.ask(house.request()))
        await asyncio.sleep(1.0)
        impatient.cancel()
        answer = await other
        await gateway.aclose()
        return answer

    assert virtual(main()) == ANSWER
    assert len(backend.asked) == 1


def test_an_answer_that_nobody_waits_for_any_more_is_kept_all_the_same(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(slow(3.0))

    async def main() -> Completion:
        gateway = house.gateway(backend)
        impatient = asyncio.create_task(gateway.ask(house.request()))
        await asyncio.sleep(1.0)
        impatient.cancel()
        await asyncio.sleep(5.0)
        answer = await gateway.ask(house.request())
        await gateway.aclose()
        return answer

    assert virtual(main()) == ANSWER
    assert len(backend.asked) == 1


def test_no_more_calls_than_connections_are_under_way_over_all_models(house: House, virtual: Virtual) -> None:
    backend = house.Backend(slow(1.0))

    async def main() -> float:
        gateway = house.gateway(backend, connections=3)
        await asyncio.gather(*(gateway.ask(house.request(str(number))) for number in range(9)))
        await gateway.aclose()
        return house.now()

    assert virtual(main()) == 3.0


def test_a_backend_with_few_places_holds_up_itself_alone(house: House, virtual: Virtual) -> None:
    narrow, wide = house.Backend(slow(1.0), "narrow", connections=1), house.Backend(slow(1.0), "wide")

    async def main() -> list[float]:
        gateway = house.gateway(narrow, connections=8)
        gateway._open_backend = lambda model, _: narrow if model == "narrow" else wide

        async def one(model: str, number: int) -> float:
            await gateway.ask(replace(house.request(str(number)), model=model))
            return house.now()

        times = await asyncio.gather(
            *(one("narrow", number) for number in range(4)), *(one("wide", number) for number in range(4))
        )
        await gateway.aclose()
        return times

    assert virtual(main()) == [1.0, 2.0, 3.0, 4.0] + [1.0] * 4


def test_what_may_pass_is_tried_again_with_growing_pauses(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(*[Transient("broken")] * (ATTEMPTS - 1), ANSWER))

    async def main() -> Completion:
        gateway = house.gateway(backend)
        answer = await gateway.ask(house.request())
        await gateway.aclose()
        return answer

    assert virtual(main()) == ANSWER
    waits = [later - earlier for earlier, later in zip(backend.times, backend.times[1:], strict=False)]
    assert len(waits) == ATTEMPTS - 1
    assert all(0.75 * 0.5 * 2**step <= wait <= 1.25 * 0.5 * 2**step for step, wait in enumerate(waits))


def test_what_does_not_pass_fails_after_a_bounded_number_of_attempts(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(Transient("the server stumbles")))

    async def main() -> None:
        gateway = house.gateway(backend)
        with pytest.raises(CallFailed, match=r"the server stumbles \(the last of 6 attempts\)"):
            await gateway.ask(house.request())
        await gateway.aclose()

    virtual(main())
    assert len(backend.asked) == ATTEMPTS
    assert not house.told


def test_a_request_that_the_server_refuses_is_asked_once(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(RequestRefused("400: the context is too long")))

    async def main() -> None:
        gateway = house.gateway(backend)
        with pytest.raises(RequestRefused, match="400: the context is too long"):
            await gateway.ask(house.request())
        # Errors are never kept: who asks again, asks the server.
        with pytest.raises(RequestRefused):
            await gateway.ask(house.request())
        assert len(journal_of(gateway)) == 0
        await gateway.aclose()

    virtual(main())
    assert len(backend.asked) == 2
    assert not house.told


def test_where_no_call_can_succeed_it_is_told_once_and_the_others_are_not_made(
    house: House, virtual: Virtual
) -> None:
    async def refuse(_: Request) -> Completion:
        await asyncio.sleep(0.1)
        raise BackendUnavailable("401: wrong key")

    backend = house.Backend(refuse)

    async def main() -> list[Any]:
        gateway = house.gateway(backend, connections=2)
        asks = [gateway.ask(house.request(str(number))) for number in range(10)]
        answers = await asyncio.gather(*asks, return_exceptions=True)
        await gateway.aclose()
        return answers

    answers = virtual(main())
    assert [(type(answer), str(answer)) for answer in answers] == [
        (BackendUnavailable, "401: wrong key")
    ] * 10
    assert [str(error) for error in house.told] == ["401: wrong key"]
    assert len(backend.asked) == 2


def test_a_key_that_is_withdrawn_midway_ends_its_calls_but_not_the_run(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(script(ANSWER, BackendUnavailable("401"), ANSWER))

    async def main() -> None:
        gateway = house.gateway(backend)
        await gateway.ask(house.request("1"))
        with pytest.raises(BackendUnavailable):
            await gateway.ask(house.request("2"))
        assert await gateway.ask(house.request("3")) == ANSWER
        await gateway.aclose()

    virtual(main())
    assert not house.told


def test_a_server_that_is_not_there_is_given_up_soon(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(Unreachable("cannot connect to http://host")))

    async def main() -> None:
        gateway = house.gateway(backend)
        for number in range(2):
            with pytest.raises(BackendUnavailable, match="is the server running, is --model-base-url right"):
                await gateway.ask(house.request(str(number)))
        await gateway.aclose()

    virtual(main())
    assert len(backend.asked) == NEVER_REACHED


def test_calls_under_way_when_a_server_goes_down_do_not_delay_the_next_try(
    virtual: Virtual, house: House
) -> None:
    async def down_for_three_seconds(request: Request) -> Completion:
        # Those under way fail one after another, long after the first did.
        await asyncio.sleep(int(request.messages[-1].content.split()[1]) / 20)
        if 1.0 < house.now() < 4.0:
            raise Unreachable("refused")
        return house.echo(request)

    backend = house.Backend(down_for_three_seconds)

    async def main() -> float:
        gateway = house.gateway(backend, connections=40)
        calls = (gateway.ask(house.request(f"call {number}")) for number in range(40))
        answers = await asyncio.gather(*calls)
        assert len(answers) == 40
        return house.now()

    # Tries after 1, 2 and 4 seconds, each a quarter longer at most.
    assert virtual(main()) < 13


def test_a_server_that_is_absent_stops_many_requests_as_soon_as_one(virtual: Virtual, house: House) -> None:
    def refuse(_: Request) -> Completion:
        raise Unreachable("refused")

    backend = house.Backend(refuse)

    async def main() -> float:
        gateway = house.gateway(backend, connections=32)
        calls = (gateway.ask(house.request(f"call {number}")) for number in range(100))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(outcome, BackendUnavailable) for outcome in outcomes)
        return house.now()

    assert virtual(main()) < 5
    assert len(backend.asked) <= 32 + NEVER_REACHED
    assert len(house.told) == 1
    assert len(house.told) == 1


def test_a_server_that_goes_away_and_comes_back_is_waited_for(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(ANSWER, *[Unreachable("cannot connect")] * (ATTEMPTS - 1), ANSWER))

    async def main() -> None:
        gateway = house.gateway(backend)
        await gateway.ask(house.request("1"))
        assert await gateway.ask(house.request("2")) == ANSWER
        await gateway.aclose()

    virtual(main())
    assert not house.told


def test_refusals_for_asking_too_often_are_waited_out_and_are_no_failed_attempts(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(script(*[RateLimited("429", 5.0)] * (3 * ATTEMPTS), ANSWER))

    async def main() -> Completion:
        gateway = house.gateway(backend)
        answer = await gateway.ask(house.request())
        await gateway.aclose()
        return answer

    assert virtual(main()) == ANSWER
    assert backend.times[:4] == [0.0, 5.0, 10.0, 15.0]


def test_a_request_that_is_refused_for_too_long_has_failed(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(RateLimited("429: slow down", 100.0)))

    async def main() -> float:
        gateway = house.gateway(backend)
        with pytest.raises(CallFailed, match=r"429: slow down \(not tried any longer than 900 s"):
            await gateway.ask(house.request())
        await gateway.aclose()
        return house.now()

    assert PATIENCE - 100 <= virtual(main()) <= PATIENCE


def test_the_wait_for_ones_turn_does_not_count_as_being_refused(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(*[ANSWER] * 21, RateLimited("429", 1.0), ANSWER))

    async def main() -> float:
        # A request a minute: the last one asks after twenty minutes.
        gateway = house.gateway(backend, connections=30, rpm=1)
        await asyncio.gather(*(gateway.ask(house.request(str(number))) for number in range(22)))
        await gateway.aclose()
        return house.now()

    assert virtual(main()) > PATIENCE


def test_a_server_that_wants_to_be_left_alone_for_hours_is_not_waited_for(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(script(RateLimited("429: daily limit", 40_000.0)))

    async def main() -> float:
        gateway = house.gateway(backend)
        asks = [gateway.ask(house.request(str(number))) for number in range(5)]
        answers = await asyncio.gather(*asks, return_exceptions=True)
        assert all(isinstance(answer, CallFailed) and "daily limit" in str(answer) for answer in answers)
        await gateway.aclose()
        return house.now()

    assert virtual(main()) == 0.0


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("oops"), KeyError("x"), TimeoutError(), RecursionError("deep")]
)
def test_a_backends_own_fault_is_a_failed_call_that_names_it(
    house: House, virtual: Virtual, error: Exception
) -> None:
    backend = house.Backend(script(error))

    async def main() -> None:
        gateway = house.gateway(backend)
        asks = [gateway.ask(house.request()) for _ in range(2)]
        for answer in await asyncio.gather(*asks, return_exceptions=True):
            assert isinstance(answer, CallFailed)
            assert str(answer) == f"gpt-test: {type(error).__name__}: {error}"
        assert gateway.limiter.places.in_flight == 0
        await gateway.aclose()

    virtual(main())


def test_a_store_that_fails_is_told_to_whoever_asks(house: House, virtual: Virtual) -> None:
    backend = house.Backend(house.echo)

    async def main() -> None:
        gateway = house.gateway(backend)
        journal_of(gateway)._database._db.execute("DROP TABLE answers")
        with pytest.raises(RunError, match=r"store\.sqlite: no such table"):
            await gateway.ask(house.request())
        await gateway.aclose()

    virtual(main())


def test_what_is_told_is_what_a_replay_will_tell(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(Completion("a\ud800b")))

    async def main() -> list[str]:
        gateway = house.gateway(backend)
        told = [(await gateway.ask(house.request())).text for _ in range(2)]
        await gateway.aclose()
        return told

    assert virtual(main()) == ["a?b", "a?b"]


def test_the_cost_is_that_of_the_tokens_used_and_is_kept_with_the_answer(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(house.echo)

    async def main() -> None:
        gateway = house.gateway(backend, prices={"gpt-test": Price(1000, 2000)})
        first = await gateway.ask(house.request())
        assert first.usage == Usage(1, 10, 5, 0.02)
        assert gateway.ledger.paid == first.usage
        assert (await gateway.ask(house.request())).usage == first.usage
        # Paid once, though used twice.
        assert gateway.ledger.paid == gateway.used() == first.usage
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
        assert again.used() == first.used()
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
        gateway = house.gateway(backend, ledger=Ledger(0.0), prices={"gpt-test": Price(1, 1)})
        answer = await gateway.ask(house.request())
        await gateway.aclose()
        return answer.usage.cost

    assert virtual(main()) == 0.0


def test_at_the_end_calls_that_cost_money_are_waited_for_and_kept(house: House, virtual: Virtual) -> None:
    backend = house.Backend(slow(GRACE - 1))

    async def main() -> tuple[float, Completion | None]:
        gateway = house.gateway(backend, connections=1)
        tasks = [asyncio.create_task(gateway.ask(house.request(str(number)))) for number in range(3)]
        await asyncio.sleep(0.5)
        await gateway.aclose()
        ended = house.now()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one) for one in outcomes] == [Completion, *[asyncio.CancelledError] * 2]
        again = house.gateway(backend)
        kept = await again.ask(house.request("0"))
        await again.aclose()
        return ended, kept

    assert virtual(main()) == (GRACE - 1, ANSWER)
    # The one under way was finished, those that waited were not begun.
    assert len(backend.asked) == 1
    assert backend.closed


@pytest.mark.parametrize(("metered", "lasts", "ends"), [(True, 100.0, 0.5 + GRACE), (False, 3.0, 0.5)])
def test_the_end_waits_no_longer_than_a_moment_and_not_for_what_is_free(
    house: House, virtual: Virtual, lasts: float, ends: float, *, metered: bool
) -> None:
    backend = house.Backend(slow(lasts), metered=metered)

    async def main() -> float:
        gateway = house.gateway(backend)
        task = asyncio.create_task(gateway.ask(house.request()))
        await asyncio.sleep(0.5)
        await gateway.aclose()
        assert task.cancelled() or isinstance(
            (await asyncio.gather(task, return_exceptions=True))[0], BaseException
        )
        return house.now()

    assert virtual(main()) == ends
    assert backend.closed


def test_the_request_is_kept_for_people_without_the_secrets_of_its_address(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(house.echo, "openai http://host/v1")

    async def main() -> str:
        gateway = house.gateway(backend)
        await gateway.ask(house.request(base_url="http://user:secret@host/v1"))
        rows = journal_of(gateway)._database._db.execute("SELECT request FROM requests").fetchall()
        await gateway.aclose()
        return str(rows)

    kept = virtual(main())
    assert "openai http://host/v1" in kept
    assert "secret" not in kept


def test_once_an_answer_cannot_be_kept_nobody_else_is_asked_and_the_run_is_told(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(house.echo)

    async def main() -> None:
        gateway = house.gateway(backend)
        pages = journal_of(gateway)._database._db.execute("PRAGMA page_count").fetchone()[0]
        journal_of(gateway)._database._db.execute(
            f"PRAGMA max_page_count = {pages}"
        )  # SQLite's own full disk
        with pytest.raises(RunError, match="database or disk is full"):
            await gateway.ask(house.request("x" * 100_000))
        with pytest.raises(CallFailed, match="not asked, as no answer can be kept any more"):
            await gateway.ask(house.request("another"))
        await gateway.aclose()

    virtual(main())
    assert len(backend.asked) == 1
    assert "database or disk is full" in str(house.told[0])


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


def test_what_failed_but_may_be_billed_counts_with_all_that_was_set_aside(
    house: House, virtual: Virtual
) -> None:
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


def test_usage_that_the_server_does_not_count_is_estimated_and_flagged(
    house: House, virtual: Virtual
) -> None:
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


def test_usage_that_no_call_can_have_is_not_believed_and_stops_nothing(
    house: House, virtual: Virtual
) -> None:
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
        gateway = house.gateway(house.Backend(script(Withheld("the model refused: no"))), 8, None, PRICES)
        with pytest.raises(RequestRefused, match="the model refused: no"):
            await gateway.ask(house.request("hello"))
        assert len(journal_of(gateway)) == 0
        await gateway.aclose()
        return gateway.ledger.paid.cost

    assert virtual(main()) > 0


def test_a_slow_judge_holds_up_nobody_but_its_own_askers(house: House, virtual: Virtual) -> None:
    last = -1.0

    def judge(_: Request) -> Completion:
        nonlocal last
        if house.now() - last < 0.5:
            raise RateLimited("429", None)
        last = house.now()
        return ANSWER

    async def main() -> float:
        backends = {"model": house.Backend(house.echo), "judge": house.Backend(judge, identity="judge")}
        gateway = house.gateway(backends["model"])
        gateway._open_backend = lambda name, _: backends[name]
        slow_ones = [
            asyncio.create_task(gateway.ask(replace(house.request(str(number)), model="judge")))
            for number in range(20)
        ]
        await asyncio.sleep(1)
        asks = [gateway.ask(replace(house.request(str(number)), model="model")) for number in range(300)]
        await asyncio.gather(*asks)
        took = house.now()
        await asyncio.gather(*slow_ones)
        await gateway.aclose()
        return took

    assert virtual(main()) < 2.0


def test_no_case_is_lost_in_an_outage_shorter_than_the_patience_and_few_calls_are_made(
    house: House, virtual: Virtual
) -> None:
    def answer(_: Request) -> Completion:
        if 5.0 <= house.now() < 600.0:
            raise Outage("503")
        return ANSWER

    backend = house.Backend(answer)

    async def main() -> list[str]:
        gateway = house.gateway(backend)
        await gateway.ask(house.request("first"))
        await asyncio.sleep(10)
        answers = await asyncio.gather(*(gateway.ask(house.request(str(number))) for number in range(50)))
        assert all(answer.text == "fine" for answer in answers)
        await gateway.aclose()
        return gateway.notices

    notices = virtual(main())
    assert len(backend.asked) < 51 + 60
    assert [notice.partition(": ")[2][:20] for notice in notices] == [
        "all calls wait, and ",
        "the server is back a",
    ]


def test_an_outage_longer_than_the_patience_is_an_error_of_each_case(house: House, virtual: Virtual) -> None:
    async def main() -> float:
        gateway = house.gateway(house.Backend(script(ANSWER, Outage("503"))))
        await gateway.ask(house.request("first"))
        asks = [gateway.ask(house.request(str(number))) for number in range(20)]
        results = await asyncio.gather(*asks, return_exceptions=True)
        assert all(isinstance(result, CallFailed) and "--patience" in str(result) for result in results)
        await gateway.aclose()
        return house.now()

    assert PATIENCE <= virtual(main()) < PATIENCE + 2000


def test_a_quota_that_is_used_up_in_the_middle_stops_the_run_at_once(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(ANSWER, Hopeless("no credit left")))

    async def main() -> None:
        gateway = house.gateway(backend, 1)
        await gateway.ask(house.request("first"))
        asks = [gateway.ask(house.request(str(number))) for number in range(20)]
        results = await asyncio.gather(*asks, return_exceptions=True)
        assert all(isinstance(result, BackendUnavailable) for result in results)
        await gateway.aclose()

    virtual(main())
    assert len(backend.asked) == 2
    assert [str(error) for error in house.told] == ["no credit left"]
