"""The gateway at servers drawn at random, beside plain back-off; perf/rate_limits.py draws many more."""

from __future__ import annotations

import random

import pytest

from tests.unit.gateway.random_servers import draw, through_gateway, with_plain_back_off

SLOW_ONCE = ["51817 79", "51817 93", "604229 39", "7733101 20", "7733101 188", "9001 187"]
"""Servers that were slower: each request refused once with Retry-After, windows with a pause near the end, and a limit
that rises from 1 to 11 requests per second for 9 seconds."""

SLOWER = 1.3
"""How many times as long as plain back-off a run may take."""


@pytest.mark.parametrize("key", [*(f"tests {number}" for number in range(24)), *SLOW_ONCE])
def test_a_run_is_hardly_slower_than_plain_back_off_and_loses_no_call_that_it_keeps(key: str) -> None:
    drawn = draw(random.Random(key))
    plain = sorted(with_plain_back_off(drawn, seed).seconds for seed in range(3))[1]
    ours = through_gateway(drawn, int(key.split()[1]))
    assert ours.seconds <= SLOWER * plain, str(drawn)
    assert ours.lost == 0
