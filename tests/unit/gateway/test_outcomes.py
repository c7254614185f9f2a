"""Outcomes: requests that were refused, failed or cancelled are repeated as such by a replay."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import CallFailed, EvalsuiteError, ReplayMiss, RequestRefused
from evalsuite.gateway.gateway import SLACK, STRETCH, Gateway
from evalsuite.gateway.handle import ModelHandle, UsageMeter
from evalsuite.gateway.limiter import Limiter
from evalsuite.journal.answers import Answers
from evalsuite.journal.journal import Journal
from evalsuite.models.answers import ReplayBackend
from evalsuite.models.protocol import Transient
from tests.unit.gateway.scripted_answers import ANSWER, script, slow

if TYPE_CHECKING:
    from evalsuite.core.types import Completion
    from tests.unit.gateway.conftest import House, ScriptedBackend, Virtual


def replay(house: House, backend: ScriptedBackend) -> Gateway:
    store = Answers.open(house.path / "store.sqlite", read_only=True)
    house.stores.append(store)
    return Gateway(lambda *_: ReplayBackend(backend, "first"), store, Limiter(8, clock=house.now), clock=house.now)


async def outcome(gateway: Gateway, request: Any) -> Completion | tuple[type[Exception], str]:
    try:
        return await gateway.ask(request)
    except EvalsuiteError as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    ("error", "kind"), [(RequestRefused("400: context length"), RequestRefused), (Transient("broken"), CallFailed)]
)
def test_a_replay_repeats_a_failure_in_its_own_words(
    house: House, virtual: Virtual, error: Exception, kind: type[Exception]
) -> None:
    backend = house.Backend(script(error))

    async def main() -> None:
        gateway = house.gateway(backend)
        first = await outcome(gateway, house.request())
        assert first[0] is kind  # type: ignore[index] # it is no completion
        await gateway.aclose()
        again = replay(house, backend)
        assert await outcome(again, house.request()) == first
        assert await outcome(again, house.request("other")) != first
        await again.aclose()

    virtual(main())


RESUMED = [
    (RequestRefused("no"), None, False),
    (RequestRefused("no"), "passed", False),
    (RequestRefused("no"), "failed", False),
    (RequestRefused("no"), "error", True),
    (Transient("broken"), None, True),
]
"""What a request got, how its case ended, and whether a resumed run sends the request again."""


@pytest.mark.parametrize(("error", "ended", "is_sent"), RESUMED)
@pytest.mark.parametrize("case", ["test_x.py::test_x[a]", "test_x.py::test_x[ü b]"])
def test_a_resumed_run_repeats_refusals_except_those_of_cases_that_ended_in_an_error(
    house: House, virtual: Virtual, error: Exception, ended: str | None, case: str, *, is_sent: bool
) -> None:
    refusing, answering = house.Backend(script(error)), house.Backend(script(ANSWER))
    asked = house.request(draw=f"{case} #1")

    async def in_a_session(backend: ScriptedBackend) -> Completion | tuple[type[Exception], str]:
        journal = Journal(house.path / "store.sqlite")
        journal.begin_session("2026-01-01T00:00:00+00:00", "pytest")
        gateway = Gateway(lambda *_: backend, journal.answers, Limiter(8, clock=house.now), clock=house.now)
        got = await outcome(gateway, asked)
        # Within a session, a repeated case sends its failed requests again.
        assert await outcome(gateway, asked) == got
        if ended is not None and backend is refusing:
            journal.store_record(case.encode("unicode_escape").decode("ascii"), "same", json.dumps({"outcome": ended}))
        await gateway.aclose()
        return got

    async def main() -> None:
        failed = await in_a_session(refusing)
        sent_before = len(refusing.asked)
        assert sent_before > 1
        assert await in_a_session(answering) == (ANSWER if is_sent else failed)
        assert len(answering.asked) == is_sent
        again = replay(house, answering)
        assert await outcome(again, asked) == (ANSWER if is_sent else failed)
        await again.aclose()

    virtual(main())


async def hurried(gateway: Gateway, seconds: float) -> tuple[str, UsageMeter]:
    """A case that gives up after some seconds."""
    meter = UsageMeter(scope="case")
    try:
        async with asyncio.timeout(seconds):
            return (await ModelHandle(gateway, "m", meter=meter).chat("slow")).text, meter
    except TimeoutError:
        return "gave up", meter


@pytest.mark.parametrize("by", ["a replay", "a resumed run", "another worker, as the first one died"])
def test_a_request_that_its_case_cancelled_is_cancelled_again(house: House, virtual: Virtual, by: str) -> None:
    backend = house.Backend(slow(3.0))

    async def main() -> None:
        gateway = house.gateway(backend)
        text, meter = await hurried(gateway, 2.0)
        assert text == "gave up"
        # The call goes on and its answer is kept, because it is paid for.
        await asyncio.sleep(5.0)
        for request, _ in meter.cancelled:
            await gateway.record_cancellation(request, 2.0)
        again = gateway
        if by in {"a replay", "a resumed run"}:
            await gateway.aclose()
            again = replay(house, backend) if by == "a replay" else house.gateway(backend)
        assert (await hurried(again, 2.0))[0] == "gave up"
        began = house.now()
        assert (await hurried(again, 60.0))[0] == "fine"
        assert house.now() - began == pytest.approx(2.0 * STRETCH + SLACK)
        await again.aclose()

    virtual(main())
    assert len(backend.asked) == 1


def test_a_run_and_its_replay_count_no_answer_that_came_after_its_case_gave_up(house: House, virtual: Virtual) -> None:
    backend = house.Backend(slow(3.0))

    async def main() -> None:
        gateway = house.gateway(backend)
        received = await gateway.ask(house.request())
        _, meter = await hurried(gateway, 2.0)
        for request, _ in meter.cancelled:
            await gateway.record_cancellation(request, 2.0)
        await asyncio.sleep(5.0)
        assert gateway.sum_usage() == received.usage
        # What was sent is paid for all the same.
        assert gateway.ledger.paid == received.usage + received.usage
        await gateway.aclose()
        again = replay(house, backend)
        await again.ask(house.request())
        assert (await hurried(again, 2.0))[0] == "gave up"
        assert again.sum_usage() == received.usage
        await again.aclose()

    virtual(main())


def test_a_journal_from_before_outcomes_is_replayed_unchanged_and_extended_by_a_resumed_run(
    house: House, virtual: Virtual
) -> None:
    backend = house.Backend(script(ANSWER, RequestRefused("no")))
    path = house.path / "store.sqlite"

    async def main() -> None:
        gateway = house.gateway(backend)
        answered = await gateway.ask(house.request())
        await gateway.aclose()
        with sqlite3.connect(path) as db:
            db.executescript("DROP TABLE outcomes; PRAGMA user_version = 3")
        db.close()
        before = path.read_bytes()
        again = replay(house, backend)
        assert await again.ask(house.request()) == answered
        assert (await outcome(again, house.request("other")))[0] is ReplayMiss  # type: ignore[index] # see above
        await again.aclose()
        assert path.read_bytes() == before
        resumed = house.gateway(backend)
        refused = await outcome(resumed, house.request("other"))
        await resumed.aclose()
        last = replay(house, backend)
        assert await outcome(last, house.request("other")) == refused == (RequestRefused, "no")
        await last.aclose()

    virtual(main())
