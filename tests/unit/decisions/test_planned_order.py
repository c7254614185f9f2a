"""Results are heard in the planned order, so that what is answered fast decides nothing by being fast."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from evalsuite.decisions.early_stops import EarlyDecider, ResultSequencer, interleave_parts, reorder_for_workers
from evalsuite.decisions.gates import parse_gate
from evalsuite.results.tally import Row


@given(st.lists(st.integers(0, 30), unique=True), st.randoms())
def test_whatever_the_order_of_arrival_results_come_out_as_planned(numbers: list[int], rng: random.Random) -> None:
    ids = [str(number) for number in numbers]
    order: ResultSequencer[str] = ResultSequencer(ids)
    arriving = list(ids)
    rng.shuffle(arriving)
    assert [result for item in arriving for result in order.add_result(item, item)] == ids


@given(st.lists(st.integers(), unique=True), st.integers(1, 9))
def test_workers_with_parts_of_a_spread_list_run_it_about_as_wanted(items: list[int], worker_count: int) -> None:
    assert interleave_parts(reorder_for_workers(items, worker_count), worker_count) == items


def test_an_item_without_a_result_holds_nobody_back_and_a_second_result_is_not_heard() -> None:
    order: ResultSequencer[int] = ResultSequencer(["plain", "a", "b"])
    assert not list(order.add_result("b", 2))
    assert not list(order.add_result("a", 1))
    assert not list(order.add_result("a", 7))
    assert list(order.add_result("plain", None)) == [1, 2]
    assert order.waiting_count == 2


@given(st.integers(0, 50), st.integers(1, 9))
def test_dealt_items_are_all_items_the_first_of_each_part_first(count: int, worker_count: int) -> None:
    ids = [str(number) for number in range(count)]
    order = interleave_parts(ids, worker_count)
    assert sorted(order) == sorted(ids)
    assert interleave_parts(list("abcdef"), 2) == list("adbecf")


def test_fast_right_answers_decide_wrongly_when_heard_as_they_come_and_never_in_planned_order() -> None:
    # 400 cases, 45% right, right ones forty times as fast, eight workers; a gate at 0.5; 5% stated.
    wrong = {"as they come": 0, "as planned": 0}
    for seed in range(60):
        rng = random.Random(seed)
        ids = [str(number) for number in range(400)]
        right = {item: rng.random() < 0.45 for item in ids}
        clocks, arrivals = [0.0] * 8, []
        for position, item in enumerate(ids):
            clocks[position % 8] += rng.expovariate(1) * (1 if right[item] else 40)
            arrivals.append((clocks[position % 8], item))
        for name in wrong:
            order: ResultSequencer[str] = ResultSequencer(
                ids if name == "as planned" else [one for _, one in sorted(arrivals)]
            )
            stop = EarlyDecider([parse_gate("b.right >= 0.5")])
            for _, item in sorted(arrivals):
                for ready in order.add_result(item, item):
                    stop.add_case("b", Row(ready, ready, 1, "passed", {}, {"right": float(right[ready])}))
            wrong[name] += stop.gates[0].verdict == "met"
    assert wrong["as planned"] <= 3, wrong
    assert wrong["as they come"] >= 12, wrong


def test_what_is_awaited_is_the_first_that_has_not_been_heard() -> None:
    order: ResultSequencer[int] = ResultSequencer(["a", "b", "c"])
    awaited = [order.next_item]
    for item in ("b", "a", "c"):
        list(order.add_result(item, 1))
        awaited.append(order.next_item)
    assert awaited == ["a", "a", "c", None]
