"""The gateway across processes, with both ends in one: joined by a pair of queues, each read by a thread."""

from __future__ import annotations

import asyncio
import gc
import queue
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import CallFailed, InternalError, RequestRefused, SettingsError
from evalsuite.core.types import Completion, Message, Request, TokenLogprob, ToolCall, Usage
from evalsuite.gateway.channel import ChannelServer, GatewayProxy
from evalsuite.gateway.handle import NumberedToolCall
from evalsuite.gateway.loop import BackgroundLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WAIT = 20.0
"""Seconds after which a test has failed rather than hangs."""

FULL = Completion(
    "text – \U0001f600\n\0",
    "thought",
    (ToolCall("1", "f", "{}"),),
    "length",
    Usage(1, 2, 3, 0.25),
    (TokenLogprob("a", -0.5, (("b", -1.5),)),),
)


class End:
    """One end of a channel, as execnet makes them."""

    def __init__(self) -> None:
        self.incoming: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.other: End = self
        self.open = True
        self.listens = threading.Event()
        self.listens.set()
        self.reader: threading.Thread | None = None

    def send(self, item: str) -> None:
        assert isinstance(item, str)
        item.encode()  # execnet carries UTF-8
        # A full pipe: who sends waits until the other side reads.
        self.other.listens.wait(WAIT)
        if not self.open:
            raise OSError("cannot send to a closed channel")
        self.other.incoming.put(item)

    def setcallback(self, callback: Callable[[str | None], None], endmarker: None) -> None:
        def read() -> None:
            while (item := self.incoming.get()) is not None:
                callback(item)
            callback(endmarker)

        self.reader = threading.Thread(target=read)
        self.reader.start()

    def close(self) -> None:
        """What the death of either process does to both ends."""
        for end in (self, self.other):
            end.open = False
            end.listens.set()
            end.incoming.put(None)


class Answers:
    """A gateway's part: answers by a function."""

    def __init__(self, answer: Callable[[Request], Any]) -> None:
        self.answer = answer
        self.heard: list[Request] = []
        self.kept: dict[int, Any] = {}
        self.cancelled: list[tuple[Request, float]] = []

    async def ask(self, request: Request) -> Completion:
        self.heard.append(request)
        said = self.answer(request)
        found: Completion = said if isinstance(said, Completion) else await said
        return found

    async def record_cancellation(self, request: Request, seconds: float) -> None:
        self.cancelled.append((request, seconds))

    async def read_tool_result(self, effect: NumberedToolCall) -> Any:
        return self.kept.get(effect.number)

    async def store_tool_result(self, effect: NumberedToolCall, result: Any) -> None:
        self.kept[effect.number] = {"result": result, **asdict(effect)}


class Wire:
    """Workers and a controlling process, each with a loop of its own."""

    def __init__(self) -> None:
        self.controller, self.ends, self.loops = BackgroundLoop(), list[End](), list[BackgroundLoop]()

    def worker(self, gateway: Answers) -> tuple[GatewayProxy, BackgroundLoop, End]:
        ends: list[Any] = [End(), End()]
        (ours, theirs), loop = ends, BackgroundLoop()
        ours.other, theirs.other = theirs, ours
        server = ChannelServer(ours, self.controller, gateway)
        ours.setcallback(server.receive_request, None)
        asker = GatewayProxy(theirs, loop, lambda _: None)
        self.ends += ends
        self.loops.append(loop)
        return asker, loop, theirs

    def close(self) -> None:
        for end in self.ends:
            end.close()
            if end.reader:
                end.reader.join(WAIT)
        for loop in (*self.loops, self.controller):
            loop.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.close()


def request(text: str = "hello", **more: Any) -> Request:
    return Request("m", (Message("user", text),), **more)


def refuse(error: Exception) -> Callable[[Request], Completion]:
    def answer(_: Request) -> Completion:
        raise error

    return answer


def test_request_and_answer_arrive_whole(wire: Wire) -> None:
    gateway = Answers(lambda _: FULL)
    asker, loop, _ = wire.worker(gateway)
    asked = request(
        "half \U0001f600", params={"stop": ["a"], "seed": 1}, tools=({"name": "f"},), base_url="http://h", epoch=3
    )
    assert loop.submit(asker.ask(asked)).result(WAIT) == FULL
    assert gateway.heard == [asked]


def test_many_requests_at_once_get_each_its_own_answer(wire: Wire) -> None:
    async def answer(asked: Request) -> Completion:
        # The later it was asked, the sooner it is answered.
        await asyncio.sleep(0.03 - 0.0005 * int(asked.messages[0].content))
        return Completion(asked.messages[0].content)

    asker, loop, _ = wire.worker(Answers(answer))

    async def main() -> list[str]:
        answers = await asyncio.gather(*(asker.ask(request(str(number))) for number in range(50)))
        return [answer.text for answer in answers]

    assert loop.submit(main()).result(WAIT) == [str(number) for number in range(50)]


@pytest.mark.parametrize("error", [RequestRefused("400: no"), CallFailed("gave up"), SettingsError("no such kind")])
def test_an_error_arrives_as_what_it_is(wire: Wire, error: Exception) -> None:
    asker, loop, _ = wire.worker(Answers(refuse(error)))
    with pytest.raises(type(error), match=str(error)):
        loop.submit(asker.ask(request())).result(WAIT)


def test_a_fault_of_the_gateway_itself_is_a_failed_call_and_not_a_wait_without_end(wire: Wire) -> None:
    asker, loop, _ = wire.worker(Answers(refuse(ZeroDivisionError("oops"))))
    with pytest.raises(InternalError, match="the gateway failed: ZeroDivisionError: oops"):
        loop.submit(asker.ask(request())).result(WAIT)


def test_half_a_surrogate_pair_passes_as_a_question_mark(wire: Wire) -> None:
    gateway = Answers(lambda _: Completion("a\ud800b"))
    asker, loop, _ = wire.worker(gateway)
    assert loop.submit(asker.ask(request("x\udc00y"))).result(WAIT).text == "a?b"
    assert gateway.heard[0].messages[0].content == "x?y"


def test_when_the_controlling_process_dies_all_who_wait_are_told(wire: Wire) -> None:
    async def never(_: Request) -> Completion:
        await asyncio.sleep(2 * WAIT)
        raise AssertionError

    gateway = Answers(never)
    asker, loop, end = wire.worker(gateway)
    asks = [loop.submit(asker.ask(request(str(number)))) for number in range(3)]
    while len(gateway.heard) < 3:
        threading.Event().wait(0.01)
    end.close()
    for ask in asks:
        with pytest.raises(InternalError, match="the controlling process is gone"):
            ask.result(WAIT)


def test_a_task_left_behind_shows_no_traceback_when_the_controlling_process_dies(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    async def never(_: Request) -> Completion:
        await asyncio.sleep(2 * WAIT)
        raise AssertionError

    gateway = Answers(never)
    asker, loop, end = wire.worker(gateway)

    async def leave_task() -> None:
        left.append(asyncio.create_task(asker.ask(request())))

    left: list[asyncio.Task[Completion]] = []
    loop.submit(leave_task()).result(WAIT)
    while not gateway.heard:
        threading.Event().wait(0.01)
    end.close()
    while not left[0].done():
        threading.Event().wait(0.01)
    left.clear()
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_who_asks_after_the_controlling_process_has_died_is_told_at_once(wire: Wire) -> None:
    asker, loop, end = wire.worker(Answers(lambda _: FULL))
    end.close()
    with pytest.raises(InternalError, match="the controlling process is gone"):
        loop.submit(asker.ask(request())).result(WAIT)


def test_an_asker_that_has_given_up_does_not_disturb_the_others(wire: Wire) -> None:
    go = asyncio.Event()

    async def wait(asked: Request) -> Completion:
        await go.wait()
        return Completion(asked.messages[0].content)

    asker, loop, _ = wire.worker(Answers(wait))

    async def main() -> str:
        impatient = asyncio.create_task(asker.ask(request("impatient")))
        patient = asyncio.create_task(asker.ask(request("patient")))
        await asyncio.sleep(0)
        impatient.cancel()
        wire.controller.schedule_call(go.set)
        return (await patient).text

    assert loop.submit(main()).result(WAIT) == "patient"
    assert not asker._waiting


def test_a_worker_that_does_not_listen_does_not_hold_up_the_others(wire: Wire) -> None:
    gateway = Answers(lambda asked: Completion(asked.messages[0].content))
    deaf, deaf_loop, deaf_end = wire.worker(gateway)
    asker, loop, _ = wire.worker(gateway)
    deaf_end.listens.clear()
    stuck = deaf_loop.submit(deaf.ask(request("stuck")))
    while not gateway.heard:
        threading.Event().wait(0.01)
    for number in range(5):
        assert loop.submit(asker.ask(request(str(number)))).result(WAIT).text == str(number)
    assert not stuck.done()
    deaf_end.listens.set()
    assert stuck.result(WAIT).text == "stuck"


def test_a_worker_that_dies_with_requests_under_way_leaves_the_others_alone(wire: Wire) -> None:
    gateway = Answers(lambda asked: Completion(asked.messages[0].content))
    dying, dying_loop, end = wire.worker(gateway)
    asker, loop, _ = wire.worker(gateway)
    end.other.listens.set()
    ask = dying_loop.submit(dying.ask(request("last words")))
    end.close()
    assert isinstance(ask.exception(WAIT), InternalError) or ask.result(WAIT).text == "last words"
    assert loop.submit(asker.ask(request("alive"))).result(WAIT).text == "alive"


def test_a_worker_reports_the_requests_that_its_case_cancelled(wire: Wire) -> None:
    gateway = Answers(lambda _: FULL)
    asker, loop, _ = wire.worker(gateway)
    loop.submit(asker.record_cancellation(request("slow"), 2.5)).result(WAIT)
    assert gateway.cancelled == [(request("slow"), 2.5)]


def test_a_worker_s_tool_calls_are_kept_and_found_again(wire: Wire) -> None:
    gateway = Answers(lambda _: FULL)
    asker, loop, _ = wire.worker(gateway)
    effect = NumberedToolCall("test_x.py::test_x[1]", 2, 3, "send", {"to": "Ada"})
    assert loop.submit(asker.read_tool_result(effect)).result(WAIT) is None
    loop.submit(asker.store_tool_result(effect, {"text": "sent"})).result(WAIT)
    assert loop.submit(asker.read_tool_result(effect)).result(WAIT) == {
        "result": {"text": "sent"},
        "case": "test_x.py::test_x[1]",
        "epoch": 2,
        "number": 3,
        "name": "send",
        "arguments": {"to": "Ada"},
    }
