"""What a process will run next is given once, in order, whatever is taken and whenever."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.core.declarations import FIXTURE
from evalsuite.engine.solving import UpcomingCases
from evalsuite.plugin.xdist import WorkerQueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ITEMS = 40
# How many items begin, and how many cases are then taken.
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30)


class Item:
    """An item as pytest has them: equal to itself alone."""

    def __init__(self, at: int) -> None:
        case = SimpleNamespace(at=at, bound=SimpleNamespace(solver=print))
        self.callspec = SimpleNamespace(params={FIXTURE: case})


class Torun:
    """xdist's queue on a worker, as far as anybody looks into it."""

    def __init__(self) -> None:
        self.queue: deque[Any] = deque([*range(ITEMS), "the end"])

    @contextmanager
    def lock(self) -> Iterator[deque[Any]]:
        yield self.queue

    def replace(self, left: Iterable[Any]) -> None:
        self.queue = deque(left)


def session_queue(items: list[Any]) -> UpcomingCases:
    return UpcomingCases({item: item.callspec.params[FIXTURE] for item in items})


def next_cases(upcoming: Iterator[Any], most: int) -> list[int]:
    cases: list[int] = []
    while len(cases) < most and (case := next(upcoming, None)) is not None:
        cases.append(case.at)
    return cases


@given(STEPS, st.integers(1, 50))
def test_a_session_gives_each_coming_case_once_and_none_too_far_ahead(steps: list[tuple[int, int]], ahead: int) -> None:
    every: Any = [Item(at) for at in range(ITEMS)]
    queue, position, seen = session_queue(every), 0, []
    for begun, taken in steps:
        position = min(position + begun, ITEMS - 1)
        queue.move_to(every[position], None)
        fresh = next_cases(queue(ahead), taken)
        assert all(position < at <= position + ahead for at in fresh)
        seen += fresh
    assert seen == sorted(set(seen))


@given(STEPS, st.integers(1, 50))
def test_a_worker_gives_each_coming_case_once_and_in_order(steps: list[tuple[int, int]], ahead: int) -> None:
    every: Any = [Item(at) for at in range(ITEMS)]
    torun, seen, position = Torun(), [], -1
    queue = WorkerQueue(every, torun)
    for begun, taken in steps:
        for _ in range(begun):
            if torun.queue and isinstance(torun.queue[0], int):
                position = torun.queue.popleft()
        fresh = next_cases(queue(ahead), taken)
        assert all(position < at <= position + ahead for at in fresh)
        seen += fresh
    assert seen == sorted(set(seen))


def test_all_that_is_left_is_given_when_all_is_taken() -> None:
    every: Any = [Item(at) for at in range(ITEMS)]
    assert next_cases(session_queue(every)(ITEMS), ITEMS) == list(range(1, ITEMS))
    assert next_cases(WorkerQueue(every, Torun())(ITEMS + 5), ITEMS + 5) == list(range(ITEMS))


def test_what_another_worker_took_over_is_not_given() -> None:
    every: Any = [Item(at) for at in range(ITEMS)]
    torun = Torun()
    queue = WorkerQueue(every, torun)
    assert next_cases(queue(ITEMS), 3) == [0, 1, 2]
    torun.queue = deque([5, 6, "the end"])
    assert next_cases(queue(ITEMS), ITEMS) == [5, 6]


@pytest.mark.parametrize("begun", [0, 1])
def test_the_next_item_is_given_though_it_has_left_the_queue(begun: int) -> None:
    every: Any = [Item(at) for at in range(ITEMS)]
    torun = Torun()
    queue = WorkerQueue(every, torun)
    torun.queue.popleft()
    queue.move_to(every[0], every[torun.queue.popleft()] if begun else None)
    assert next_cases(queue(ITEMS), 2) == [1, 2]


def keep_answer(answers: list[list[int]], indices: list[int]) -> None:
    answers.append(indices)


def test_a_worker_gives_back_what_has_not_begun() -> None:
    every: Any = [Item(at) for at in range(ITEMS)]
    torun = Torun()
    answers: list[list[int]] = []
    queue = WorkerQueue(every, torun, partial(keep_answer, answers))
    next_cases(queue(ITEMS), 30)
    queue.steal(range(20, ITEMS))
    assert answers == [list(range(30, ITEMS))]
    assert list(torun.queue) == [*range(30), "the end"]


def test_a_worker_whose_cases_have_all_begun_answers_once_when_its_queue_is_empty() -> None:
    every: Any = [Item(at) for at in range(ITEMS)]
    torun = Torun()
    answers: list[list[int]] = []
    queue = WorkerQueue(every, torun, partial(keep_answer, answers))
    next_cases(queue(ITEMS), ITEMS)
    queue.steal(range(20, ITEMS))
    while isinstance(torun.queue[0], int):
        assert answers == []
        queue.move_to(every[torun.queue.popleft()], None)
    queue.move_to(every[0], None)
    assert answers == [[]]
