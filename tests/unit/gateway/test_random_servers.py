"""The gateway at servers drawn at random, beside plain back-off; perf/rate_limits.py draws many more."""

from __future__ import annotations

import random

import pytest

from tests.unit.gateway.random_servers import draw, through_gateway, with_plain_back_off

SERVERS = 24

SLOWER = 1.3
"""How many times as long as plain back-off a run may take."""


@pytest.mark.parametrize("number", range(SERVERS))
def test_a_run_is_hardly_slower_than_plain_back_off_and_loses_no_call_that_it_keeps(number: int) -> None:
    drawn = draw(random.Random(f"tests {number}"))
    plain = sorted(with_plain_back_off(drawn, seed).seconds for seed in range(3))[1]
    ours = through_gateway(drawn, number)
    assert ours.seconds <= SLOWER * plain, str(drawn)
    assert ours.lost == 0
