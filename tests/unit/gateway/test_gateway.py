"""The gateway, in virtual time: what is asked, how often, and what is kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import CallFailed, RequestRefused, RunError
from evalsuite.core.types import Completion
from evalsuite.gateway.gateway import GRACE
from evalsuite.models.protocol import RateLimited
from tests.unit.gateway.scripted_answers import ANSWER, journal_of, script, slow

if TYPE_CHECKING:
    from evalsuite.core.types import Request
    from tests.unit.gateway.conftest import House, Virtual


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
    "other", [{"text": "hello!"}, {"epoch": 2}, {"params": {"temperature": 1}}, {"tools": ({"name": "f"},)}]
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


def test_an_answer_that_nobody_waits_for_any_more_is_kept_all_the_same(house: House, virtual: Virtual) -> None:
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


@pytest.mark.parametrize("error", [ZeroDivisionError("oops"), KeyError("x"), TimeoutError(), RecursionError("deep")])
def test_a_backends_own_fault_is_a_failed_call_that_names_it(house: House, virtual: Virtual, error: Exception) -> None:
    backend = house.Backend(script(error))

    async def main() -> None:
        gateway = house.gateway(backend)
        asks = [gateway.ask(house.request()) for _ in range(2)]
        for answer in await asyncio.gather(*asks, return_exceptions=True):
            assert isinstance(answer, CallFailed)
            assert str(answer) == f"gpt-test: {type(error).__name__}: {error}".removesuffix(": ")
        assert gateway.limiter.connections.in_flight == 0
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
        assert task.cancelled() or isinstance((await asyncio.gather(task, return_exceptions=True))[0], BaseException)
        return house.now()

    assert virtual(main()) == ends
    assert backend.closed


def test_a_model_that_is_first_asked_while_the_gateway_closes_is_closed_too(house: House, virtual: Virtual) -> None:
    model, judge = house.Backend(slow(GRACE - 1)), house.Backend(house.echo)

    async def main() -> None:
        gateway = house.gateway(model)
        gateway._open_backend = lambda name, _: judge if name == "judge" else model
        tasks = [asyncio.create_task(gateway.ask(house.request()))]
        await asyncio.sleep(0.5)
        closing = asyncio.create_task(gateway.aclose())
        await asyncio.sleep(0.5)
        tasks.append(asyncio.create_task(gateway.ask(replace(house.request(), model="judge"))))
        await closing
        await asyncio.gather(*tasks, return_exceptions=True)

    virtual(main())
    assert model.closed
    assert judge.closed


def test_the_request_is_kept_for_people_without_the_secrets_of_its_address(house: House, virtual: Virtual) -> None:
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


def test_once_an_answer_cannot_be_kept_nobody_else_is_asked_and_the_run_is_told(house: House, virtual: Virtual) -> None:
    backend = house.Backend(house.echo)

    async def main() -> None:
        gateway = house.gateway(backend)
        pages = journal_of(gateway)._database._db.execute("PRAGMA page_count").fetchone()[0]
        journal_of(gateway)._database._db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own full disk
        with pytest.raises(RunError, match="database or disk is full"):
            await gateway.ask(house.request("x" * 100_000))
        with pytest.raises(RunError, match="not sent, because no answer can be stored"):
            await gateway.ask(house.request("another"))
        await gateway.aclose()

    virtual(main())
    assert len(backend.asked) == 1
    assert "database or disk is full" in str(house.told[0])


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
            asyncio.create_task(gateway.ask(replace(house.request(str(number)), model="judge"))) for number in range(20)
        ]
        await asyncio.sleep(1)
        asks = [gateway.ask(replace(house.request(str(number)), model="model")) for number in range(300)]
        await asyncio.gather(*asks)
        took = house.now()
        await asyncio.gather(*slow_ones)
        await gateway.aclose()
        return took

    assert virtual(main()) < 2.0
