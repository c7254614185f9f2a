"""The spend limit of gateways that share a store."""

from __future__ import annotations

import asyncio

import pytest

from evalsuite.core.errors import SpendLimitReached
from evalsuite.service.clients import ANYBODY, SharedLedger


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
