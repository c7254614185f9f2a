"""A real HTTP server on loopback that speaks the OpenAI chat format and does what a test tells it."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

# Sessions within this process put sys.modules back as it was; what they import late must be there before.
import openai  # noqa: F401
import pytest

from tests.warm_python import WITHOUT, WarmPython

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

# The sessions that tests start load no plugins that come with other packages of the development environment, and
# find modules compiled: either would take longer than a small session runs.
WITHOUT_PLUGINS = "-p no:langsmith_plugin -p no:anyio -p no:hypothesispytest"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A shell starts what it puts in the background with SIGINT ignored, nohup with SIGHUP ignored, and every process that a
# test starts and interrupts would inherit that.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
# pytest reads this file even where it runs no test of ours: for --help, or to --resume a run of the cases with the
# packages that these need alone.
with suppress(ModuleNotFoundError):
    from hypothesis import HealthCheck, settings

    # A shared machine may take a second for what takes a millisecond elsewhere; no test is about time.
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Marks the tests whose sessions have workers, and sets the options of all sessions that tests start."""
    # Earlier, this session's own workers would inherit them and refuse the options of those plugins.
    os.environ["PYTEST_ADDOPTS"] = WITHOUT_PLUGINS
    for item in items:
        if isinstance(item, pytest.Function) and has_workers(item):
            item.add_marker("workers")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Save the coverage of a worker, because xdist kills a worker that takes more than ten seconds to exit."""
    if hasattr(session.config, "workerinput") and os.environ.get("COVERAGE_PROCESS_START"):
        from coverage import Coverage

        if measurement := Coverage.current():
            measurement.save()


def has_workers(item: pytest.Function) -> bool:
    """Whether a test starts a session with `-n` above 0, going by its parameters or else by its code."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    chosen = params.get("workers", params.get("parallel"))
    text = inspect.getsource(item.function) if chosen is None else repr(chosen)
    return re.search(r"""["']-n["', ]*[1-9]""", text) is not None


@dataclass
class Reply:
    """What the server answers.

    Attributes:
        text: of the answer.
        status: HTTP status; another than 200 sends `body` or a plain error.
        headers: further ones.
        body: instead of a chat completion.
        message: further fields of the message.
        delay: seconds before the answer.
        drop: closes the connection instead.
    """

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    message: Mapping[str, Any] = field(default_factory=dict)
    delay: float = 0.0
    drop: bool = False


@dataclass
class ChatServer:
    """A running server.

    Attributes:
        url: base URL for `--model-base-url`.
        reply: what is answered to a request's body.
        bodies: of all requests so far, in order.
        paths: likewise, as the request lines have them.
        most: most requests in flight at once.
    """

    url: str
    reply: Callable[[dict[str, Any]], Reply]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    most: int = 0
    _flying: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            self.bodies.append(body)
            self.headers.append(headers)
            self._flying += 1
            self.most = max(self.most, self._flying)
        reply = self.reply(body)
        time.sleep(reply.delay)
        return reply

    def leave(self) -> None:
        with self._lock:
            self._flying -= 1

    def say(self, text: str = "", **more: Any) -> Reply:
        """A reply, for tests that set `reply`."""
        return Reply(text, **more)

    def asked(self) -> list[str]:
        """The last message of every request."""
        return [body["messages"][-1]["content"] for body in self.bodies]


def completion(reply: Reply) -> dict[str, Any]:
    return {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": reply.text, **reply.message},
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """As where matplotlib is not installed, unless the test has the mark `draws`.

    To draw takes half of a small session's time, and a picture that fails costs a session nothing but itself.
    """
    if not request.node.get_closest_marker("draws"):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        monkeypatch.setenv(WITHOUT, "matplotlib")


@pytest.fixture
def pytester(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, without_pictures: None
) -> pytest.Pytester:
    """The one of pytest, whose sessions load xdist alone of all plugins, and are copies of a warm process.

    To look for plugins among all packages of the environment would take a third of an empty session's time.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # Not by `-p`, for which pytest first reads the entry points of all packages.
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    if hasattr(os, "pidfd_open") and not request.node.get_closest_marker("own_interpreter"):
        python: WarmPython = request.getfixturevalue("warm_python")
        monkeypatch.setattr(pytester, "popen", partial(python.popen, pytester.popen))
    return pytester


@pytest.fixture(scope="session")
def warm_python() -> Iterator[WarmPython]:
    """One for each process of tests."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("copies of a warm process are waited for in Linux's way")
    python = WarmPython()
    yield python
    python.close()


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    """Echoes the last message unless the test sets `reply`."""
    state = ChatServer("", lambda body: Reply(body["messages"][-1]["content"]))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Small answers at once, not after the other side's delayed acknowledgement.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.paths.append(self.path)
            reply = state.enter(body, {name.title(): value for name, value in self.headers.items()})
            state.leave()
            if reply.drop:
                self.close_connection = True
                return
            given = reply.body if reply.body is not None else completion(reply)
            data = given if isinstance(given, bytes) else json.dumps(given).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(data)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_: Any) -> None:
            """Clients that hang up are what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()
