"""A model's server in a process of its own: it repeats the last message, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


class EchoServer:
    """The server's process, as a context.

    Args:
        delay: seconds before each answer.
    """

    def __init__(self, delay: float = 0.0) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_serve, args=(delay, theirs), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self.address = f"http://127.0.0.1:{self._ours.recv()}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()

    def asked(self) -> Counter[str]:
        """How often each text was asked since the last look."""
        self._ours.send("asked")
        texts: Counter[str] = self._ours.recv()
        return texts


def _serve(delay: float, pipe: Connection) -> None:
    asked: Counter[str] = Counter()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                text = await _read_question(reader)
                asked[text] += 1
                await asyncio.sleep(delay)
                writer.write(_answer(text))
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        while True:
            await asyncio.to_thread(pipe.recv)
            pipe.send(asked.copy())
            asked.clear()

    asyncio.run(main())


async def _read_question(reader: asyncio.StreamReader) -> str:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    size = int(head.partition("content-length:")[2].partition("\r\n")[0])
    text: str = json.loads(await reader.readexactly(size))["messages"][-1]["content"]
    return text


def _answer(text: str) -> bytes:
    plain: Any = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": USAGE}
    body = json.dumps(plain).encode()
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
