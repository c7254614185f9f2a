"""A real HTTP server on loopback with OpenAI's batch interface, which does what a test tells it."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Batch:
    """One batch.

    Attributes:
        lines: its requests, as they were sent.
        plain: as the server shows it.
    """

    lines: list[dict[str, Any]]
    plain: dict[str, Any]


def echo(body: dict[str, Any]) -> tuple[int, Any]:
    """Repeats the last message."""
    message = {"role": "assistant", "content": body["messages"][-1]["content"]}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return 200, {"object": "chat.completion", "choices": [choice], "usage": usage}


@dataclass
class BatchServer:
    """A running server.

    Attributes:
        url: base URL for `--model-base-url`.
        answer: status and body for a request's body.
        fate: what becomes of a batch when it is first looked at: `completed`, `expired`, `cancelled`, `failed`, or
            None, if it is still being worked on.
        batches: all that were made, in order.
        calls: paths of requests that are no part of the batch interface.
        deaf: the next batch is made, and its maker never hears of it.
        hiccups: each is the end of a path whose next GET is answered with 503, as by a server that restarts.
        errors: why a batch fails, if it does.
    """

    url: str = ""
    answer: Callable[[dict[str, Any]], tuple[int, Any]] = echo
    fate: Callable[[Batch], str | None] = lambda batch: "completed"
    echo = staticmethod(echo)
    batches: list[Batch] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    deaf: bool = False
    hiccups: list[str] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(
        default_factory=lambda: [{"code": "invalid", "message": "no such parameter", "line": 1}]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def asked(self) -> list[str]:
        """The last message of every request in every batch."""
        return [line["body"]["messages"][-1]["content"] for batch in self.batches for line in batch.lines]

    def keep(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def make(self, given: dict[str, Any]) -> Batch:
        lines = [json.loads(line) for line in self.files[given["input_file_id"]].splitlines()]
        assert {line["url"] for line in lines} == {given["endpoint"]}
        plain = {
            **given,
            "id": f"batch_{len(self.batches)}",
            "object": "batch",
            "created_at": int(time.time()),
            "status": "in_progress",
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
        }
        self.batches.append(Batch(lines, plain))
        return self.batches[-1]

    def look(self, name: str) -> dict[str, Any] | None:
        batch = next((one for one in self.batches if one.plain["id"] == name), None)
        if batch is None:
            return None
        if batch.plain["status"] == "in_progress" and (fate := self.fate(batch)) is not None:
            batch.plain["status"] = fate
            if fate == "failed":
                batch.plain["errors"] = {"data": self.errors}
            else:
                self._finish(batch, fate)
        return batch.plain

    def _finish(self, batch: Batch, fate: str) -> None:
        good: list[dict[str, Any]] = []
        bad: list[dict[str, Any]] = []
        # Half of an expired or cancelled batch was in time.
        until = len(batch.lines) if fate == "completed" else len(batch.lines) // 2
        for line in reversed(batch.lines[:until]):
            status, body = self.answer(line["body"])
            response = {"status_code": status, "request_id": "r", "body": body}
            made = {"id": "x", "custom_id": line["custom_id"], "response": response, "error": None}
            (good if status == 200 else bad).append(made)
        late = {"code": f"batch_{fate}", "message": "not in time"}
        bad += [
            {"id": "x", "custom_id": line["custom_id"], "response": None, "error": late} for line in batch.lines[until:]
        ]
        for name, lines in (("output_file_id", good), ("error_file_id", bad)):
            if lines:
                batch.plain[name] = self.keep(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        batch.plain["request_counts"] |= {"completed": len(good), "failed": len(bad)}


def hiccup(state: BatchServer, method: str, path: str) -> tuple[int, Any] | None:
    """An answer of a server that restarts, where the test wants one."""
    end = next((end for end in state.hiccups if method == "GET" and path.partition("?")[0].endswith(end)), None)
    if end is None:
        return None
    state.hiccups.remove(end)
    return 503, {"error": {"message": "restarting"}}


def route(state: BatchServer, method: str, path: str, content: bytes) -> tuple[int, Any]:
    """Status and body of one request."""
    path = path.partition("?")[0].removeprefix("/v1")
    if (method, path) == ("POST", "/files"):
        # One part of multipart/form-data holds the lines.
        part = re.search(rb'filename="[^"]*"[^\n]*\r\n(?:[^\r\n]+\r\n)*\r\n(.*?)\r\n--', content, re.DOTALL)
        assert part
        return 200, {"id": state.keep(part[1]), "object": "file", "purpose": "batch", "status": "processed"}
    if (method, path) == ("POST", "/batches"):
        return 200, state.make(json.loads(content)).plain
    if (method, path) == ("GET", "/batches"):
        return 200, {"object": "list", "data": [batch.plain for batch in state.batches], "has_more": False}
    if method == "GET" and path.startswith("/batches/"):
        plain = state.look(path.removeprefix("/batches/"))
        return (404, {"error": {"message": "no such batch"}}) if plain is None else (200, plain)
    if method == "GET" and path.endswith("/content"):
        return 200, state.files[path.split("/")[2]]
    state.calls.append(path)
    return 404, {"error": {"message": f"no {path} here"}}


@pytest.fixture
def batch_server() -> Iterator[BatchServer]:
    """Completes each batch when it is first looked at, unless the test sets `fate`."""
    state = BatchServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def do_GET(self) -> None:
            self._answer(b"")

        def _answer(self, content: bytes) -> None:
            with state._lock:
                status, body = hiccup(state, self.command, self.path) or route(state, self.command, self.path, content)
            if state.deaf and self.command == "POST" and self.path.endswith("/batches"):
                state.deaf = False
                self.close_connection = True
                return
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Clients that are killed are what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()
