"""Prices, estimates, and the ledger that keeps to a limit."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import SettingsError, SpendLimitReached
from evalsuite.core.types import Message, Request, ToolCall, Usage
from evalsuite.gateway.spend import (
    UNBOUNDED_ANSWER,
    Ledger,
    Price,
    bound_completion_tokens,
    bound_prompt_tokens,
    estimate_prompt_tokens,
    find_price,
    limit_completion_tokens,
    read_price_file,
    read_prices,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.gateway.conftest import Virtual


def asked(text: str = "hello", **more: Any) -> Request:
    return Request("m", (Message("user", text),), **more)


def test_a_price_is_in_dollars_a_million_tokens() -> None:
    assert Price(30, 60).compute_cost(1_000_000, 0) == 30
    assert Price(30, 60).compute_cost(1000, 500) == pytest.approx(0.06)


def test_a_dated_version_has_the_price_of_its_model_unless_it_has_its_own() -> None:
    prices = read_prices()
    assert find_price("gpt-4o-2024-08-06", prices) == prices["gpt-4o"]
    assert find_price("gpt-4o-2024-05-13", prices) == Price(5, 15)
    assert find_price("gpt-4o-mini-2024-07-18", prices) == prices["gpt-4o-mini"]


@pytest.mark.parametrize("model", ["gpt-4-vision-preview", "gpt-4x", "my-gpt-4", "litellm:openai/gpt-4", ""])
def test_a_model_of_another_name_has_no_price(model: str) -> None:
    assert find_price(model, read_prices()) is None


def test_a_users_price_goes_before_the_shipped_one() -> None:
    prices = read_prices(["gpt-4=1/2", "litellm:azure/x=y=0.5/0"])
    assert prices["gpt-4"] == Price(1, 2)
    assert prices["litellm:azure/x=y"] == Price(0.5, 0)
    assert prices["gpt-4o"] == read_prices()["gpt-4o"]


@pytest.mark.parametrize(
    "text", ["gpt-4", "gpt-4=", "gpt-4=3", "gpt-4=a/b", "=1/2", "gpt-4=1/2/3/4/5", "gpt-4=-1/2", "x=nan/1", "x=1/inf"]
)
def test_a_malformed_price_is_told_with_the_right_form(text: str) -> None:
    with pytest.raises(SettingsError, match="not a price; write MODEL=PROMPT/COMPLETION"):
        read_prices([text])


def test_a_long_prompt_has_its_own_price() -> None:
    price = Price(2, 10, 272_000, 4, 15)
    assert price.compute_cost(272_000, 1_000_000) == pytest.approx(10.544)
    assert price.compute_cost(272_001, 1_000_000) == pytest.approx(15 + 4 * 0.272001)
    assert price.multiply_prices(0.5).compute_cost(1_000_000, 0) == 2


@pytest.mark.parametrize("provider", ["gpt-6", "claude-", "gemini-", "mistral-", "deepseek-"])
def test_the_shipped_table_covers_a_provider(provider: str) -> None:
    assert any(model.startswith(provider) for model in read_prices())


def test_prices_are_read_from_a_users_file(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('"gpt-6.9" = [1, 2.5]\n')
    assert read_prices(read_price_file(file))["gpt-6.9"] == Price(1, 2.5)


@pytest.mark.parametrize("text", ["gpt-4 = 3", "gpt-4 = [1]", 'gpt-4 = ["1", 2]', "gpt-4 = [true, 1]", "=", "[a"])
def test_a_file_that_is_not_of_prices_is_refused_with_the_right_form(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match="write a line per model"):
        read_price_file(file)


@given(st.text(), st.text(max_size=20))
@settings(max_examples=50, deadline=None)
def test_an_estimate_is_no_less_than_a_token_for_three_characters(first: str, second: str) -> None:
    messages = (Message("system", first), Message("user", second))
    estimate = estimate_prompt_tokens(Request("m", messages))
    assert estimate >= (len(first) + len(second)) // 3
    assert estimate <= 60 + 2 * 6 * (len(first) + len(second))


def test_chinese_counts_a_token_and_a_half_a_character() -> None:
    more, less = asked("一" * 1000), asked("")
    assert estimate_prompt_tokens(more) - estimate_prompt_tokens(less) == pytest.approx(1500, abs=20)


def test_tools_and_their_calls_count_as_text() -> None:
    call = Message("assistant", "", (ToolCall("1", "f", '{"x": "' + "y" * 600 + '"}'),))
    assert estimate_prompt_tokens(Request("m", (call,))) > 200
    assert estimate_prompt_tokens(asked(tools=({"name": "f", "description": "y" * 600},))) > 200


@pytest.mark.parametrize(
    ("params", "bound"),
    [
        ({}, UNBOUNDED_ANSWER),
        ({"max_tokens": None}, UNBOUNDED_ANSWER),
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 8}, 8),
        ({"max_tokens": 7, "n": 3}, 21),
        ({"max_tokens": "many"}, UNBOUNDED_ANSWER),
        ({"max_tokens": -1}, UNBOUNDED_ANSWER),
    ],
)
def test_an_answer_is_bounded_by_what_the_request_says(params: dict[str, Any], bound: int) -> None:
    assert bound_completion_tokens(asked(params=params)) == bound


@pytest.mark.parametrize(
    ("params", "bounded"),
    [
        ({"max_tokens": 20_000, "n_predict": -1}, {"max_tokens": 20_000}),
        ({"max_tokens": 7, "extra_body": {"max_tokens": -1}}, {"max_tokens": 7, "extra_body": {}}),
        ({"max_tokens": 7, "options": {"num_predict": -2, "seed": 1}}, {"max_tokens": 7, "options": {"seed": 1}}),
        ({"max_tokens": -1, "n_predict": 9}, {"max_tokens": UNBOUNDED_ANSWER, "n_predict": 9}),
        ({"api": "responses", "max_tokens": 9, "max_completion_tokens": -1}, {"api": "responses", "max_tokens": 9}),
    ],
)
def test_a_limit_that_the_user_set_stays_beside_a_field_without_one(
    params: dict[str, Any], bounded: dict[str, Any]
) -> None:
    assert limit_completion_tokens(asked(params=params)).params == bounded


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "max_tokens"),
        ("gpt-35-turbo", "max_tokens"),
        ("local:model", "max_tokens"),
        ("o3", "max_completion_tokens"),
        ("gpt-5-mini", "max_completion_tokens"),
        ("gpt-6-sol", "max_completion_tokens"),
        ("litellm:azure/gpt-10", "max_completion_tokens"),
    ],
)
def test_a_limit_is_added_by_the_name_that_the_model_takes(model: str, name: str) -> None:
    assert limit_completion_tokens(Request(model, (Message("user", "x"),))).params == {name: UNBOUNDED_ANSWER}


@pytest.mark.parametrize(
    "request_",
    [
        asked(params={"api": "responses", "previous_response_id": "resp_1"}),
        asked(params={"api": "responses", "extra_body": {"conversation": {"id": "conv_1"}}}),
        Request("m", (Message("user", parts=({"type": "file", "file": {"file_id": "file-1"}},)),)),
    ],
)
def test_what_the_server_has_stored_is_reserved_as_the_longest_prompt(request_: Request) -> None:
    assert bound_prompt_tokens(request_) > 1_000_000


def test_without_a_limit_everything_is_paid_and_counted(virtual: Virtual) -> None:
    async def main() -> Usage:
        ledger = Ledger()
        for _ in range(3):
            await ledger.reserve_cost(1e9)
        for _ in range(2):
            ledger.book_cost(1e9, Usage(1, 2, 3, 0.5))
        ledger.book_cost(1e9, None)
        return ledger.paid

    assert virtual(main()) == Usage(2, 4, 6, 1.0)


@given(
    limit=st.integers(0, 60),
    calls=st.lists(st.tuples(st.integers(0, 20), st.floats(0, 1), st.booleans(), st.floats(0, 2)), max_size=25),
)
@settings(max_examples=60, deadline=None)
def test_the_limit_is_never_passed_and_nobody_waits_for_ever(
    virtual: Virtual, limit: int, calls: list[tuple[int, float, bool, float]]
) -> None:
    async def main() -> tuple[Ledger, int]:
        # In cents, so that the sums are as inexact as sums of money in floats are.
        ledger, refused = Ledger(limit / 100), 0

        async def one(cents: int, share: float, lasts: float, *, fails: bool) -> None:
            nonlocal refused
            try:
                await ledger.reserve_cost(cents / 100)
            except SpendLimitReached:
                refused += 1
                # It is not refused as long as it may yet fit.
                assert ledger.paid.cost + cents / 100 > limit / 100
                return
            await asyncio.sleep(lasts)
            ledger.book_cost(cents / 100, None if fails else Usage(1, 0, 0, share * cents / 100))
            assert ledger.paid.cost <= limit / 100 + 1e-9

        await asyncio.gather(*(one(cents, share, lasts, fails=fails) for cents, share, fails, lasts in calls))
        return ledger, refused

    ledger, refused = virtual(main())
    assert refused or ledger.paid.calls == len(calls) - sum(fails for _, _, fails, _ in calls)
    assert not ledger._reserved


def test_a_call_waits_while_those_under_way_may_turn_out_cheaper(virtual: Virtual) -> None:
    async def main() -> float:
        ledger, loop = Ledger(1.0), asyncio.get_running_loop()
        await ledger.reserve_cost(0.8)
        loop.call_later(5, ledger.book_cost, 0.8, Usage(1, 0, 0, 0.1))
        await ledger.reserve_cost(0.8)
        return loop.time()

    assert virtual(main()) == 5.0


def test_a_call_is_refused_once_those_under_way_have_cost_too_much(virtual: Virtual) -> None:
    async def main() -> None:
        ledger, loop = Ledger(1.0), asyncio.get_running_loop()
        await ledger.reserve_cost(0.8)
        loop.call_later(5, ledger.book_cost, 0.8, Usage(1, 0, 0, 0.5))
        with pytest.raises(SpendLimitReached, match=r"\$0.5000 of --max-cost \$1 is spent.*\$0.8000.*--resume last"):
            await ledger.reserve_cost(0.8)
        assert loop.time() == 5.0

    virtual(main())


def test_the_limit_tells_what_the_judge_cost_apart_from_the_model(virtual: Virtual) -> None:
    async def main() -> None:
        ledger = Ledger(1.0)
        for model, cost in (("gpt-4", 0.3), ("judge", 0.25), ("gpt-4", 0.2)):
            await ledger.reserve_cost(cost)
            ledger.book_cost(cost, Usage(1, 0, 0, cost), model)
        with pytest.raises(SpendLimitReached, match=r"is spent \(\$0.5000 by gpt-4, \$0.2500 by judge\) and"):
            await ledger.reserve_cost(0.5)

    virtual(main())


def test_a_call_that_could_never_fit_is_refused_at_once(virtual: Virtual) -> None:
    async def main() -> float:
        ledger = Ledger(1.0)
        await ledger.reserve_cost(0.5)
        with pytest.raises(SpendLimitReached):
            await ledger.reserve_cost(1.01)
        return asyncio.get_running_loop().time()

    assert virtual(main()) == 0.0


def test_a_limit_may_be_spent_to_the_last_cent(virtual: Virtual) -> None:
    async def main() -> float:
        ledger = Ledger(0.3)
        # In floats, three times 0.1 is more than 0.3.
        for _ in range(3):
            await ledger.reserve_cost(0.1)
        for _ in range(3):
            ledger.book_cost(0.1, Usage(1, 0, 0, 0.1))
        with pytest.raises(SpendLimitReached):
            await ledger.reserve_cost(0.001)
        return ledger.paid.cost

    assert math.isclose(virtual(main()), 0.3)


def test_what_costs_nothing_is_never_held_back(virtual: Virtual) -> None:
    async def main() -> None:
        ledger = Ledger(0.0)
        await ledger.reserve_cost(0.0)
        ledger.book_cost(0.0, Usage(1, 5, 5))
        with pytest.raises(SpendLimitReached):
            await ledger.reserve_cost(1e-6)

    virtual(main())


def test_tokens_from_and_to_the_cache_have_prices_of_their_own() -> None:
    price = read_prices(["m=2/10/0.5/4"])["m"]
    assert price.compute_cost(1_000_000, 100_000, cached=400_000, cache_writes=100_000) == pytest.approx(
        0.5 * 2 + 0.4 * 0.5 + 0.1 * 4 + 0.1 * 10
    )
    assert price.bound_cost(1_000_000, 0) == pytest.approx(4.0)
    assert price.multiply_prices(0.5).compute_cost(1_000_000, 0, cached=1_000_000) == pytest.approx(0.25)


def test_cached_tokens_without_a_price_of_their_own_cost_what_the_prompt_costs() -> None:
    assert Price(2, 10).compute_cost(1_000_000, 0, cached=900_000, cache_writes=100_000) == pytest.approx(2.0)
