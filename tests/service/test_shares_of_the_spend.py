"""The spend limit of gateways that share a store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.errors import SpendLimitReached
from evalsuite.core.types import Usage
from evalsuite.service.clients import ANYBODY, CURRENT_CLIENT, Client, SharedLedger
from evalsuite.service.store import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path


def test_a_call_waits_while_other_gateways_may_give_back_what_they_set_aside() -> None:
    async def reserve() -> SharedLedger:
        ledger = SharedLedger(1.0, (ANYBODY,), {})
        # Another gateway has paid 0.1 and set 0.8 aside; of that its calls turn out to cost 0.2.
        ledger.set_paid_amounts({"anybody": 0.9}, {"anybody": 0.8})
        waiting = asyncio.ensure_future(ledger.reserve_cost(0.5))
        await asyncio.sleep(0)
        assert not waiting.done()
        ledger.set_paid_amounts({"anybody": 0.3}, {})
        await waiting
        return ledger

    assert asyncio.run(reserve()).paid.cost == 0.3


def test_a_call_that_what_is_paid_leaves_no_room_for_is_refused_whatever_others_give_back() -> None:
    async def reserve() -> None:
        ledger = SharedLedger(1.0, (ANYBODY,), {})
        ledger.set_paid_amounts({"anybody": 0.9}, {"anybody": 0.1})
        await ledger.reserve_cost(0.5)

    with pytest.raises(SpendLimitReached, match="the spend limit is reached"):
        asyncio.run(reserve())


def test_a_restarted_gateway_knows_what_each_client_paid_and_may_have_to_pay(tmp_path: Path) -> None:
    clients = Client("ci"), Client("night")

    async def call() -> None:
        store = SqliteStore(tmp_path / "store.sqlite", clients, None)
        for client in clients:
            CURRENT_CLIENT.set(client)
            store.record_call_end(store.record_call_start("a", 0.5), "answered", Usage(cost=0.25))
        store.record_call_start("b", 0.5)
        store.close()

    asyncio.run(call())
    store = SqliteStore(tmp_path / "store.sqlite", clients, None)
    assert store.read_paid_amounts() == ({"ci": 0.25, "night": 0.75}, {})
    store.close()
