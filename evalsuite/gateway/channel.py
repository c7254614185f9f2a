"""The gateway across processes: requests and answers as JSON over an execnet channel to each worker.

The gateway's execnet channel is separate from xdist's, and needs no socket, port or secret. A channel closes when its
worker ends. Workers may run on this machine or, over ssh, on other machines.
"""

from __future__ import annotations

import itertools
import json
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evalsuite.core import errors
from evalsuite.core.errors import EvalsuiteError, InternalError
from evalsuite.core.json_codec import Plain, decode_completion, decode_request, dumps, encode_completion, encode_request
from evalsuite.gateway.handle import CaseCallProvider, NumberedToolCall

if TYPE_CHECKING:
    import asyncio

    from execnet import Channel

    from evalsuite.core.types import Completion, Request
    from evalsuite.gateway.loop import BackgroundLoop


class GatewayProxy:
    """Sends a worker's requests to the gateway in the controlling process."""

    def __init__(self, channel: Channel, background: BackgroundLoop, stop: Callable[[str], None]) -> None:
        self._channel, self._background, self._stop = channel, background, stop
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        # execnet calls the function in a thread of its own, and passes None when the channel ends.
        channel.setcallback(lambda text: background.schedule_call(self._receive_answer, text), endmarker=None)

    async def ask(self, request: Request) -> Completion:
        return decode_completion(
            (await self._send_and_await_answer({"request": encode_request(request)}))["completion"]
        )

    async def record_cancellation(self, request: Request, seconds: float) -> None:
        await self._send_and_await_answer({"cancelled": encode_request(request), "seconds": seconds})

    async def read_tool_result(self, effect: NumberedToolCall) -> Any:
        return (await self._send_and_await_answer({"read_tool_result": asdict(effect)}))["result"]

    async def store_tool_result(self, effect: NumberedToolCall, result: Any) -> None:
        await self._send_and_await_answer({"keep": asdict(effect), "result": result})

    async def _send_and_await_answer(self, fields: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        import asyncio

        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._channel.send(dumps({"number": number, **fields}))
            plain = await answer
        except OSError as error:
            raise InternalError(f"the controlling process is gone: {error}") from error
        finally:
            del self._waiting[number]
        if "error" in plain:
            raise decode_error(plain["error"])
        return plain

    def _receive_answer(self, text: str | None) -> None:
        """Pass an answer to the call that waits for it; None means that the controlling process has ended."""
        if text is None:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(InternalError("the controlling process is gone"))
            # Hide exceptions of tasks that applications left running, because the worker's cases have ended.
            self._background.loop.set_exception_handler(lambda _loop, _context: None)
            return
        plain = json.loads(text)
        if "stop" in plain:
            self._stop(plain["stop"])
            return
        number = plain["number"]
        # The future is done already if the caller gave up before the answer arrived.
        if number in self._waiting and not self._waiting[number].done():
            self._waiting[number].set_result(plain)


class ChannelServer:
    """Answers one worker's requests in the controlling process.

    Each worker has its own sending thread, because a worker that is stopped or busy in C code must not delay other
    workers.
    """

    def __init__(self, channel: Channel, background: BackgroundLoop, gateway: CaseCallProvider) -> None:
        self._channel, self._background, self._gateway = channel, background, gateway
        self._tasks: set[asyncio.Task[None]] = set()
        self._outgoing: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._send_answers, daemon=True).start()

    def receive_request(self, text: str | None) -> None:
        """Start to answer a worker's request; if `text` is None, the worker has ended."""
        if text is None:
            self._outgoing.put(None)
        else:
            self._background.schedule_call(self._start_answering, json.loads(text))

    def stop_worker(self, reason: str) -> None:
        """Tell the worker to stop now; xdist alone would let the worker finish all its assigned tests."""
        self._outgoing.put(dumps({"stop": reason}))

    def _start_answering(self, request: dict[str, Any]) -> None:
        import asyncio

        task = asyncio.get_running_loop().create_task(self._answer_request(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer_request(self, request: dict[str, Any]) -> None:
        answer: dict[str, Any] = {}
        try:
            if "request" in request:
                answer = {"completion": encode_completion(await self._gateway.ask(decode_request(request["request"])))}
            elif "cancelled" in request:
                await self._gateway.record_cancellation(decode_request(request["cancelled"]), request["seconds"])
            elif "read_tool_result" in request:
                answer = {
                    "result": await self._gateway.read_tool_result(NumberedToolCall(**request["read_tool_result"]))
                }
            else:
                await self._gateway.store_tool_result(NumberedToolCall(**request["keep"]), request["result"])
        except EvalsuiteError as error:
            answer = {"error": encode_error(error)}
        except Exception as error:  # noqa: BLE001 - the caller receives any error
            answer = {"error": encode_error(InternalError(f"the gateway failed: {type(error).__name__}: {error}"))}
        self._outgoing.put(dumps({"number": request["number"], **answer}))

    def _send_answers(self) -> None:
        while (text := self._outgoing.get()) is not None:
            try:
                self._channel.send(text)
            except OSError:
                # Stop sending, because the worker is dead; xdist reports this.
                return


def refuse_request(channel: Channel, text: str | None, error: EvalsuiteError) -> None:
    """Answer a worker's request with an error, for example because the gateway could not be opened.

    Args:
        text: the request; None means that the worker has ended.
    """
    if text is not None:
        with suppress(OSError):
            channel.send(dumps({"number": json.loads(text)["number"], "error": encode_error(error)}))


def encode_error(error: EvalsuiteError) -> Plain:
    """Encode an evalsuite error by its class and message."""
    return {"kind": type(error).__name__, "message": str(error)}


def decode_error(plain: Mapping[str, Any]) -> EvalsuiteError:
    """Decode an encoded error; if its class needs more than a message, return a plain `EvalsuiteError`."""
    kind = getattr(errors, str(plain["kind"]), None)
    if not (isinstance(kind, type) and issubclass(kind, EvalsuiteError)) or issubclass(kind, errors.DatasetError):
        kind = EvalsuiteError
    return kind(plain["message"])
