"""What one call costs in processor time: the backend of `--model=gpt-4`, the openai package, aiohttp, raw sockets.

    python perf/one_call.py http://127.0.0.1:8199/v1

The address is a server on loopback that answers any chat request (`fake_server.py PORT --latency 0`). Each way makes
1,000 calls, 50 at once; the least of five rounds by turns is shown, in milliseconds of processor time per call.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
import httpx2
from openai import AsyncOpenAI

from evalsuite.core.types import Message, Request
from evalsuite.models.openai import OpenAIBackend

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CALLS, AT_ONCE, ROUNDS = 1000, 50, 5


def body(number: int) -> dict[str, object]:
    """A request for the chat API."""
    return {"model": "fake", "messages": [{"role": "user", "content": f"ITEM {number} answer"}]}


async def cost(call: Callable[[int], Awaitable[object]]) -> float:
    """Milliseconds of processor time per call."""
    numbers = iter(range(CALLS))

    async def worker() -> None:
        for number in numbers:
            await call(number)

    await call(0)
    started = time.process_time()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return (time.process_time() - started) / CALLS * 1000


class RawSockets:
    """HTTP by hand over connections that are kept; what no client can go below."""

    def __init__(self, base: str) -> None:
        self._url = urlsplit(base)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def call(self, number: int) -> object:
        """Posts one request and reads its answer."""
        place = (self._url.hostname, self._url.port)
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection(*place)
        content = json.dumps(body(number)).encode()
        head = f"POST {self._url.path}/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: {len(content)}"
        writer.write(head.encode() + b"\r\n\r\n" + content)
        answered = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answered.partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        self._idle.append((reader, writer))
        return answer


async def main(base: str) -> None:
    """Measures all ways by turns."""
    backend = OpenAIBackend(base)
    client = AsyncOpenAI(api_key="x", base_url=base, max_retries=0)
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def alone(number: int) -> None:
        headers = {"Content-Type": "application/json"}
        async with session.post(f"{base}/chat/completions", data=json.dumps(body(number)), headers=headers) as it:
            json.loads(await it.read())

    ways: dict[str, Callable[[int], Awaitable[object]]] = {
        "evalsuite's backend": lambda n: backend.complete(
            Request("fake", (Message("user", f"ITEM {n} answer"),), {}, (), None, 1)
        ),
        "openai, post(cast_to=Response)": lambda n: client.post(
            "/chat/completions", cast_to=httpx2.Response, body=body(n)
        ),
        "openai, chat.completions.create": lambda n: client.chat.completions.create(**body(n)),  # type: ignore[call-overload] # any
        "aiohttp alone": alone,
        "raw sockets": RawSockets(base).call,
    }
    rounds = [{name: await cost(call) for name, call in ways.items()} for _ in range(ROUNDS)]
    for name in ways:
        print(f"{name:32} {min(each[name] for each in rounds):.2f}")
    await session.close()
    await backend.aclose()
    await client.close()


asyncio.run(main(sys.argv[1].rstrip("/")))
