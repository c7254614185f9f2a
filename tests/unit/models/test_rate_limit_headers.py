"""Headers in which servers say that nothing is left, and until when."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.models.protocol import read_quota_wait, read_retry_after


def openai(kind: str, remaining: str, reset: str, limit: str = "") -> dict[str, str]:
    words = {"remaining": remaining, "reset": reset, "limit": limit}
    return {f"x-ratelimit-{word}-{kind}": text for word, text in words.items() if text}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (openai("requests", "0", "6m0s", "60"), 6.0),
        (openai("requests", "0", "120ms"), 0.12),
        (openai("requests", "1", "6m0s", "60"), 0.0),
        (openai("requests", "0", "-5s"), 0.0),
        # A thousand of thirty thousand tokens come back in two seconds.
        (openai("tokens", "0", "1m0s", "30000"), 2.0),
        (openai("tokens", "12", "1m0s", "30000"), 0.0),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "3"}, 3.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "7"}, 7.0),
        ({"ratelimit": "limit=10, remaining=0, reset=4"}, 4.0),
        ({"ratelimit": '"default";r=0;t=5'}, 5.0),
        ({"ratelimit": '"default";r=3;t=5'}, 0.0),
    ],
)
def test_a_server_that_says_that_nothing_is_left_is_believed(headers: dict[str, str], seconds: float) -> None:
    assert read_quota_wait(headers) == pytest.approx(seconds)


@pytest.mark.parametrize("unit", [1, 1000])
def test_the_end_of_a_window_may_be_a_time_since_1970_in_seconds_or_milliseconds(unit: int) -> None:
    end = str(round((time.time() + 100) * unit))
    assert 90 < read_quota_wait({"x-ratelimit-remaining": "0", "x-ratelimit-reset": end}) <= 100.5


@given(st.text(max_size=30) | st.floats().map(str) | st.integers().map(str))
def test_whatever_a_header_says_the_wait_is_a_finite_number_of_seconds(text: str) -> None:
    for headers in (
        openai("requests", "0", text, text),
        openai("tokens", "0", text, text),
        {"ratelimit-remaining": "0", "ratelimit-reset": text},
        {"ratelimit": f"r=0;t={text}"},
    ):
        assert 0.0 <= read_quota_wait(headers) < float("inf")
    for name in ("retry-after", "retry-after-ms"):
        wait = read_retry_after({name: text})
        assert wait is None or 0.0 <= wait < float("inf")
