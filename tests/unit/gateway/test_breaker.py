"""While a server refuses everything, one call at a time tries whether it is back, and the terminal can say when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.gateway.limiter import FIRST_PROBE, LEAST_DRY, CircuitBreaker
from evalsuite.gateway.pacing import LEAST_ROW, Pacing

if TYPE_CHECKING:
    from evalsuite.gateway.pacing import CallInFlight


class Clock:
    """Seconds that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def call_at(seconds: float) -> CallInFlight:
    return Pacing(8).record_sent_call(seconds)


def down(breaker: CircuitBreaker, times: int = LEAST_ROW) -> None:
    for _ in range(times):
        breaker.record_refusal(call_at(99.0), None, LEAST_ROW, "refused", 1.0)


def test_a_server_that_is_up_has_no_outage() -> None:
    breaker = CircuitBreaker(Clock())
    down(breaker, LEAST_ROW - 1)
    assert breaker.seconds_down is None
    assert breaker.compute_delay() == 0


def test_an_outage_is_counted_from_the_first_call_that_failed_to_the_first_answer() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    down(breaker, 1)
    clock.now = 107.0
    down(breaker, LEAST_ROW - 1)
    assert breaker.seconds_down == 7.0
    breaker.record_answer(call_at(107.0))
    assert breaker.seconds_down is None


def test_the_terminal_sees_when_the_next_try_comes_and_nobody_else_goes_during_it() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    down(breaker)
    clock.now += 0.5
    assert (breaker.seconds_down, breaker.seconds_until_probe) == (0.5, 0.5)
    clock.now += 0.5
    assert breaker.compute_delay() == 0
    breaker.probe = call_at(clock.now)
    assert (breaker.seconds_down, breaker.seconds_until_probe) == (1.0, None)
    assert breaker.compute_delay() > 0


def test_an_answer_to_a_call_from_before_the_failures_does_not_end_the_outage() -> None:
    breaker = CircuitBreaker(Clock())
    down(breaker)
    breaker.record_answer(call_at(98.0))
    assert breaker.seconds_down is not None


def test_tries_come_later_the_longer_a_server_refuses_everything_and_at_a_time_that_it_names() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    for _ in range(LEAST_ROW):
        breaker.record_refusal(call_at(100.0), None, LEAST_ROW, "", 0.0)
    assert breaker.seconds_until_probe is None
    clock.now += LEAST_DRY
    breaker.record_refusal(call_at(clock.now), None, LEAST_ROW, "", 0.0)
    assert breaker.seconds_until_probe == pytest.approx(FIRST_PROBE)
    for told, wait in ((None, 10.0), (30.0, 30.0)):
        clock.now = 150.0
        probe = call_at(clock.now)
        breaker.probe = probe
        breaker.record_refusal(probe, told, LEAST_ROW, "", 0.0)
        breaker.probe = None
        assert breaker.seconds_until_probe == pytest.approx(wait)
