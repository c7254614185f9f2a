"""Faults of a model's server: what the gateway makes of each.

Each fault is met in two ways: by the first attempt of every call, after which the server is well, and by all
attempts. `lost` are calls without an answer (all of them, where the fault never ends, or is final), `wrong` are
answers that the server did not give or that are none, `crashed` are failures other than an error in evalsuite's own
words.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from row import Row

from evalsuite.core.errors import EvalsuiteError
from evalsuite.core.settings import make_settings
from evalsuite.core.types import Completion, Message, Request
from evalsuite.gateway.opening import open_gateway
from evalsuite.journal.answers import Answers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Fault = Callable[["asyncio.StreamWriter", str], Awaitable[None]]

SOUND = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def answer(text: Any, finish: Any = "stop", usage: Any = SOUND, **message: Any) -> dict[str, Any]:
    """A chat completion."""
    spoken = {"role": "assistant", "content": text, **message}
    return {"choices": [{"index": 0, "finish_reason": finish, "message": spoken}], "usage": usage}


def response(body: bytes, status: int = 200, headers: str = "", length: int | None = None) -> bytes:
    """An HTTP response; with another length the body is cut off."""
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n{headers}\r\n"
    return head.encode() + body


def says(plain: Any, status: int = 200, headers: str = "") -> Fault:
    """A whole response of this JSON."""

    async def fault(writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(response(json.dumps(plain).encode(), status, headers))

    return fault


def writes(content: bytes, then: str = "close") -> Fault:
    """These bytes, and then an end, a reset or silence."""

    async def fault(writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(content)
        await writer.drain()
        if then == "silence":
            await asyncio.sleep(60)
        if then == "reset":
            writer.transport.abort()
        writer.close()

    return fault


def with_usage(usage: Any) -> Fault:
    """The right answer with wrong numbers."""

    async def fault(writer: asyncio.StreamWriter, text: str) -> None:
        writer.write(response(json.dumps(answer(text, usage=usage)).encode()))

    return fault


HALF = json.dumps(answer("x" * 100)).encode()[:60]
BOMB = gzip.compress(b'{"choices": "' + b"0" * 60_000_000 + b'"}')
ERROR = {"error": {"message": "the server's words", "type": "t"}}
FAULTS: dict[str, Fault] = {
    **{f"status {status}": says(ERROR, status) for status in (400, 403, 408, 409, 413, 422)},
    **{f"status {status}": says(ERROR, status) for status in (401, 404, 500, 502, 503, 504, 529)},
    "status 429": says(ERROR, 429),
    "429 with a Retry-After that is no time": says(ERROR, 429, "Retry-After: soon\r\n"),
    "a redirect": says({}, 302, "Location: http://127.0.0.1:9/\r\n"),
    "an empty 200": writes(response(b"")),
    "HTML in a 200": writes(response(b"<html>bad gateway</html>")),
    "bytes that are not UTF-8": writes(response(b'{"choices": "\xff\xfe')),
    "JSON that is a list": says([1, 2]),
    "JSON that is null": says(None),
    "deeply nested JSON": writes(response(b"[" * 200_000)),
    "no choices": says({"choices": []}),
    "choices of a wrong type": says({"choices": 7}),
    "a message that is null": says({"choices": [{"message": None}]}),
    "content that is a number": says(answer(7)),
    "content that is null": says(answer(None)),
    "an error in a 200": says(ERROR),
    "finish_reason error": says(answer("half an", "error")),
    "a filter's silence": says(answer("", "content_filter")),
    "a refusal": says(answer(None, refusal="I cannot")),
    "a body cut off": writes(response(HALF, length=500)),
    "a body cut off by a reset": writes(response(HALF, length=500), "reset"),
    "headers cut off": writes(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "what is no HTTP": writes(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "a reset at once": writes(b"", "reset"),
    "a close at once": writes(b""),
    "silence": writes(b"", "silence"),
    "silence within the body": writes(response(HALF, length=500), "silence"),
    "a gzip bomb": writes(response(BOMB, headers="Content-Encoding: gzip\r\n")),
    "gzip that is none": writes(response(b"{}", headers="Content-Encoding: gzip\r\n")),
    "usage as it should be": with_usage(SOUND),
    "negative usage": with_usage({"prompt_tokens": -5, "completion_tokens": -9}),
    "usage in words": with_usage({"prompt_tokens": "many", "completion_tokens": None}),
    "no usage": with_usage(None),
    "usage beyond all bounds": with_usage({"prompt_tokens": 1e300, "completion_tokens": 10**30}),
}
HARMLESS = {name for name in FAULTS if "usage" in name}
"""The answer is right, and the numbers beside it are not."""


EMPTY = "content that is null"
"""What models send who have nothing to say: an answer without text."""


class Server:
    """Answers `/NUMBER-OF-FAULT/once/v1/...` and `/NUMBER-OF-FAULT/always/v1/...`."""

    def __init__(self) -> None:
        self._met: set[tuple[str, str]] = set()
        self._faults = list(FAULTS.values())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The client went away, or the table is complete.
            return
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        path = head.split(" ", 2)[1]
        size = next(
            int(line.partition(":")[2]) for line in head.splitlines() if line.lower().startswith("content-length:")
        )
        text = json.loads(await reader.readexactly(size))["messages"][-1]["content"]
        number, way = path.split("/")[1:3]
        if way == "always" or (path, text) not in self._met:
            self._met.add((path, text))
            await self._faults[int(number)](writer, text)
        else:
            writer.write(response(json.dumps(answer(text)).encode()))
        await writer.drain()
        return not writer.is_closing()


async def meet(name: str, way: str, port: int, calls: int, folder: Path) -> tuple[int, int, int]:
    """Lost, wrong and crashed of so many calls."""
    number = list(FAULTS).index(name)
    address = f"http://127.0.0.1:{port}/{number}/{way}/v1"
    limits = {"patience": 5, "silence_timeout": 1, "call_timeout": 5, "max_answer_mb": 1}
    settings = make_settings({"model": "m", "model_base_url": address, "price": ["m=1/1"], **limits})
    gateway = open_gateway(settings, Answers.open(folder / f"{number}-{way}.sqlite"))
    asks = [gateway.ask(Request("m", (Message("user", f"call {n}"),), base_url=address)) for n in range(calls)]
    results = await asyncio.gather(*asks, return_exceptions=True)
    await gateway.aclose()
    right = way == "once" or name in HARMLESS or name == EMPTY
    wrong = sum(
        isinstance(result, Completion) and not (right and is_right(result, "" if name == EMPTY else f"call {n}"))
        for n, result in enumerate(results)
    )
    lost = sum(isinstance(result, BaseException) for result in results)
    return lost, wrong, sum(isinstance(result, BaseException) and crashed(result) for result in results)


def is_right(completion: Completion, text: str) -> bool:
    """Whether it is what the server says when it is well, counted as something that can be."""
    usage = completion.usage
    counts = 0 <= usage.prompt_tokens < 10**9 and 0 <= usage.completion_tokens < 10**9
    return completion.text == text and counts and 0 <= usage.cost < 1


def crashed(error: BaseException) -> bool:
    """Whether it is anything but an error of ours, or one that stands for something unforeseen."""
    unforeseen = error.__cause__ is not None and not type(error.__cause__).__module__.startswith("evalsuite")
    return not isinstance(error, EvalsuiteError) or unforeseen


async def measure(calls: int) -> list[Row]:
    """All rows, measured at once."""
    server = await asyncio.start_server(Server().serve, "127.0.0.1", 0, limit=2**20)
    port = server.sockets[0].getsockname()[1]
    pairs = [(name, way) for name in FAULTS for way in ("once", "always")]
    with tempfile.TemporaryDirectory() as folder:
        counts = await asyncio.gather(*(meet(*pair, port, calls, Path(folder)) for pair in pairs))
    server.close()
    return [
        Row(
            f"server: {name}, met by {'the first attempt' if way == 'once' else 'all attempts'}",
            calls,
            *count,
            may_lose=name not in HARMLESS,
        )
        for (name, way), count in zip(pairs, counts, strict=True)
    ]


def rows(*, short: bool) -> list[Row]:
    """The part of the table."""
    return asyncio.run(measure(1 if short else 5))
