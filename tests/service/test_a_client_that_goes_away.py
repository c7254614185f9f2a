"""A gateway service whose client hangs up before its answer is there."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from evalsuite.core.json_codec import encode_request
from evalsuite.core.types import Message, Request
from evalsuite.gateway.gateway import Gateway
from evalsuite.gateway.limiter import Limiter
from evalsuite.gateway.spend import read_prices
from evalsuite.service import server as module
from evalsuite.service.clients import ANYBODY, SharedLedger
from evalsuite.service.server import AllowedUpstreams, GatewayServer
from evalsuite.service.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MODEL = f"function:{__name__}:slow"
MAY_ANSWER = threading.Event()


def slow(messages: Any) -> str:
    """A model that answers when the test lets it."""
    MAY_ANSWER.wait(60)
    return "done"


async def _hang_up_and_come_back(store_file: Path) -> Any:
    upstreams = AllowedUpstreams([MODEL], [])
    store = open_store(str(store_file), (ANYBODY,), None)
    ledger = SharedLedger(None, (ANYBODY,), {})
    gateway = Gateway(upstreams.open_backend, store, Limiter(4), ledger, read_prices(()), lambda _: None)
    service = GatewayServer(gateway, store, [], upstreams, local=True)
    runner = service.make_runner()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/evalsuite/ask"
    body = json.dumps({"request": encode_request(Request(MODEL, (Message("user", "a"),)))}).encode()
    try:
        async with aiohttp.ClientSession(headers={"Content-Type": "application/json"}) as session:
            async with session.post(url, data=body) as response:
                # Signs of life come while the model is silent; then the client goes, and some more are written.
                assert await response.content.readline() == b"\n"
                response.close()
            await asyncio.sleep(0.1)
            MAY_ANSWER.set()
            async with session.post(url, data=body) as response:
                return json.loads(await response.read())
    finally:
        await runner.cleanup()
        await gateway.aclose()


def test_nothing_is_logged_for_it_and_its_answer_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "SIGN_OF_LIFE", 0.01)
    with caplog.at_level(logging.ERROR):
        answer = asyncio.run(_hang_up_and_come_back(tmp_path / "gateway.sqlite"))
    assert answer["completion"]["text"] == "done"
    assert not caplog.records
