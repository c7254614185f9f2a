"""A client's limits per minute, the audit log, and requests that never arrive whole."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import SettingsError
from evalsuite.core.types import Usage
from evalsuite.gateway.gateway import Gateway
from evalsuite.gateway.limiter import Limiter
from evalsuite.models.credentials import Secret
from evalsuite.service import server
from evalsuite.service.clients import CURRENT_CLIENT, MINUTE, Client, ClientQuota
from evalsuite.service.server import AllowedUpstreams
from evalsuite.service.store import SqliteStore
from tests.unit.gateway.conftest import ScriptedBackend, echo, request

TOKEN = "token-of-the-ci-server"


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(asyncio, "sleep", self._sleep)

    def __call__(self) -> float:
        return self.now

    async def _sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


@given(
    st.integers(1, 5),
    st.integers(1, 300),
    st.lists(st.tuples(st.floats(0, 40), st.integers(0, 200)), min_size=1, max_size=40),
)
@settings(deadline=None)
def test_no_minute_has_more_requests_or_begins_beyond_the_tokens(
    max_rpm: int, max_tpm: int, requests: list[tuple[float, int]]
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = Clock(monkeypatch)
        quota = ClientQuota(Client("ci", max_rpm=max_rpm, max_tpm=max_tpm), clock)
        sent: list[tuple[float, int]] = []
        for pause, tokens in requests:
            clock.now += pause
            quota.record_tokens(asyncio.run(quota.admit_request()), tokens)
            before = [used for then, used in sent if then + MINUTE > clock.now]
            assert len(before) < max_rpm
            assert sum(before) < max_tpm
            sent.append((clock.now, tokens))


def test_a_client_without_limits_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    quota = ClientQuota(Client("ci"), clock)
    for _ in range(1000):
        quota.record_tokens(asyncio.run(quota.admit_request()), 10**6)
    assert clock.now == 0


class WaitsError(Exception):
    """Raised in place of a wait."""


@pytest.mark.parametrize("limits", [{"max_rpm": 2}, {"max_tpm": 30}])
def test_a_restarted_gateway_counts_the_calls_of_the_last_minute(
    limits: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client("ci", Secret(TOKEN), **limits)

    async def run_gateway(*texts: str) -> None:
        CURRENT_CLIENT.set(client)
        store = SqliteStore(tmp_path / "store.sqlite", [client], None)
        gateway = Gateway(lambda *_: ScriptedBackend(echo), store, Limiter(8))
        try:
            service = server.GatewayServer(gateway, store, [client], AllowedUpstreams(["gpt-test"], []), local=True)
            for text in texts:
                await service.ask(request(text))
        finally:
            await gateway.aclose()

    async def wait(_: float) -> None:
        raise WaitsError

    monkeypatch.setattr(asyncio, "sleep", wait)
    asyncio.run(run_gateway("1"))
    asyncio.run(run_gateway("2"))
    with pytest.raises(WaitsError):
        asyncio.run(run_gateway("3"))
    monkeypatch.setattr(server, "MINUTE", 0.0)
    asyncio.run(run_gateway("3", "4"))


def test_each_request_has_a_line_without_its_text(start_gateway: Any, chat_server: Any, tmp_path: Path) -> None:
    clients = tmp_path / "clients.json"
    clients.write_text(json.dumps({"ci": {"token": TOKEN, "max_rpm": 100, "max_tpm": 10_000}}))
    clients.chmod(0o600)
    log = tmp_path / "audit.jsonl"
    service = start_gateway(
        f"--upstream={chat_server.url}", f"--clients={clients}", f"--audit={log}", "--price=gpt-test=100/100"
    )
    assert service.chat("my secret question", TOKEN)[0] == 200
    chat_server.reply = lambda body: chat_server.say(status=400)
    assert service.chat("another", TOKEN)[0] == 400
    assert service.chat("stranger")[0] == 401
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [(line["client"], line["model"], line["outcome"]) for line in lines] == [
        ("ci", "gpt-test", "answered"),
        ("ci", "gpt-test", "RequestRefused"),
    ]
    assert (lines[0]["prompt_tokens"], lines[0]["completion_tokens"], lines[0]["cost"]) == (10, 5, 0.0015)
    assert "secret" not in log.read_text("utf-8")
    assert TOKEN not in log.read_text("utf-8")
    assert log.stat().st_mode & 0o077 == 0


def test_a_full_disk_is_told_once_and_requests_go_on() -> None:
    told: list[str] = []
    log = server.AuditLog(Path("/dev/full"), lambda error: told.append(str(error)))
    for _ in range(3):
        log.write_entry("ci", "gpt-4", "answered", Usage(prompt_tokens=1), 0.1)
    log.close()
    assert len(told) == 1
    assert "No space left" in told[0]
    with pytest.raises(SettingsError, match="--audit"):
        server.AuditLog(Path("/nowhere/audit"), lambda _: None)


async def send_parts(parts: list[bytes]) -> list[bytes]:
    """Send the part of a request on a connection each, and return what arrives until the gateway closes each."""
    nothing: Any = None
    runner = server.GatewayServer(nothing, nothing, [], nothing, local=True).make_runner()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()

    async def send(part: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        writer.write(part)
        try:
            return await reader.read()
        except ConnectionResetError:  # The gateway closed the connection before it had read the part.
            return b""
        finally:
            writer.close()

    answers = await asyncio.gather(*map(send, parts))
    await runner.cleanup()
    return answers


def test_a_request_that_never_arrives_whole_is_refused_and_its_connection_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "SECONDS_TO_SEND", 0.2)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    (answer,) = asyncio.run(send_parts([head + b'Content-Length: 1000\r\n\r\n{"model": ']))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive whole within 0.2 s" in answer


def test_connections_whose_headers_never_arrive_whole_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SECONDS_IDLE", 0.2)
    assert asyncio.run(send_parts([b"POST /v1/chat/completions HTTP/1.1\r\nHost: local"] * 300)) == [b""] * 300
