"""The gateway before servers that fail, in virtual time: what is asked again, and what is given up."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import BackendUnavailable, CallFailed, RequestRefused
from evalsuite.gateway.gateway import NEVER_REACHED, PATIENCE
from evalsuite.gateway.upstream import ATTEMPTS, FIRST_WAIT
from evalsuite.models.protocol import Outage, PermanentFailure, RateLimited, Transient, UnreachableServer
from tests.unit.gateway.scripted_answers import ANSWER, journal_of, script, slow

if TYPE_CHECKING:
    from evalsuite.core.types import Completion, Request
    from tests.unit.gateway.conftest import House, Virtual


def test_what_may_pass_is_tried_again_with_growing_pauses(house: House, virtual: Virtual) -> None:
    random.seed(1)
    backend = house.Backend(script(*[Transient("broken")] * (ATTEMPTS - 1), ANSWER))

    async def main() -> Completion:
        gateway = house.gateway(backend)
        answer = await gateway.ask(house.request())
        await gateway.aclose()
        return answer

    assert virtual(main()) == ANSWER
    waits = [later - earlier for earlier, later in zip(backend.times, backend.times[1:], strict=False)]
    assert len(waits) == ATTEMPTS - 1
    assert all(wait <= FIRST_WAIT * 2**step for step, wait in enumerate(waits))
    assert max(waits[2:]) > FIRST_WAIT


@pytest.mark.parametrize(("metered", "calls"), [(True, ATTEMPTS), (False, 1)])
def test_a_call_of_any_backend_ends_at_the_time_limit_and_only_a_server_is_asked_again(
    house: House, virtual: Virtual, *, metered: bool, calls: int
) -> None:
    backend = house.Backend(slow(10**6), metered=metered)

    async def main() -> None:
        gateway = house.gateway(backend, call_timeout=5.0)
        with pytest.raises(CallFailed, match=r"scripted gave no answer within 5 s \(evalsuite_call_timeout\)"):
            await gateway.ask(house.request())
        await gateway.aclose()

    virtual(main())
    assert len(backend.asked) == calls


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


def test_where_no_call_can_succeed_it_is_told_once_and_the_others_are_not_made(house: House, virtual: Virtual) -> None:
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
    assert [(type(answer), str(answer)) for answer in answers] == [(BackendUnavailable, "401: wrong key")] * 10
    assert [str(error) for error in house.told] == ["401: wrong key"]
    assert len(backend.asked) == 2


def test_a_key_that_is_withdrawn_midway_ends_its_calls_but_not_the_run(house: House, virtual: Virtual) -> None:
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
    backend = house.Backend(script(UnreachableServer("cannot connect to http://host")))

    async def main() -> None:
        gateway = house.gateway(backend)
        for number in range(2):
            with pytest.raises(BackendUnavailable, match="is the server running, is --model-base-url right"):
                await gateway.ask(house.request(str(number)))
        await gateway.aclose()

    virtual(main())
    assert len(backend.asked) == NEVER_REACHED


def test_calls_under_way_when_a_server_goes_down_do_not_delay_the_next_try(virtual: Virtual, house: House) -> None:
    async def down_for_three_seconds(request: Request) -> Completion:
        # Those under way fail one after another, long after the first did.
        await asyncio.sleep(int(request.messages[-1].content.split()[1]) / 20)
        if 1.0 < house.now() < 4.0:
            raise UnreachableServer("refused")
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
        raise UnreachableServer("refused")

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
    backend = house.Backend(script(ANSWER, *[UnreachableServer("cannot connect")] * (ATTEMPTS - 1), ANSWER))

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
    waits = [later - earlier for earlier, later in itertools.pairwise(backend.times)]
    assert waits[0] == 5.0
    assert all(5.0 <= wait <= 5.0 + FIRST_WAIT for wait in waits[1:])


def test_requests_that_are_refused_again_after_the_same_told_wait_do_not_come_back_together(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(script(*[RateLimited("429", 1.0)] * 6, ANSWER))

    async def main() -> None:
        gateway = house.gateway(backend)
        await asyncio.gather(*(gateway.ask(house.request(str(number))) for number in range(3)))
        await gateway.aclose()

    virtual(main())
    assert backend.times[:6] == [0.0] * 3 + [1.0] * 3
    again = backend.times[6:]
    assert len(set(again)) == 3
    assert all(2.0 <= time <= 2.25 for time in again)


def test_a_pause_that_a_server_asks_for_is_told_of_while_it_lasts(house: House, virtual: Virtual) -> None:
    async def main() -> tuple[list[str], list[str], list[str]]:
        gateway = house.gateway(house.Backend(script(*[RateLimited("too many", 30.0)] * 8, ANSWER)))
        before = [upstream.describe_pause() for upstream in gateway.upstreams]
        asking = [asyncio.create_task(gateway.ask(house.request(f"call {number}"))) for number in range(9)]
        await asyncio.sleep(10.0)
        during = [upstream.describe_pause() for upstream in gateway.upstreams]
        await asyncio.gather(*asking)
        return before, during, [upstream.describe_pause() for upstream in gateway.upstreams]

    before, during, after = virtual(main())
    assert (before, after) == ([], [""])
    assert during == ["scripted is at its limit, goes on in 20 s"]


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


def test_a_server_that_wants_to_be_left_alone_for_hours_is_not_waited_for(house: House, virtual: Virtual) -> None:
    backend = house.Backend(script(RateLimited("429: daily limit", 40_000.0)))

    async def main() -> float:
        gateway = house.gateway(backend)
        asks = [gateway.ask(house.request(str(number))) for number in range(5)]
        answers = await asyncio.gather(*asks, return_exceptions=True)
        assert all(isinstance(answer, CallFailed) and "daily limit" in str(answer) for answer in answers)
        await gateway.aclose()
        return house.now()

    assert virtual(main()) == 0.0


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
    assert len(backend.asked) < 51 + 80
    assert [notice.partition(": ")[2][:20] for notice in notices] == ["all calls wait, and ", "the server is back a"]


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
    backend = house.Backend(script(ANSWER, PermanentFailure("no credit left")))

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
