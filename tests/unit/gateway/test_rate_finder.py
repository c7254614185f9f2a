"""The rate finder against simulated servers, in virtual time: none of these takes a second."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from evalsuite.gateway.rate_finder import ROW, RateFinder
from tests.unit.gateway.rate_world import Ask, Client, World, at_random, bucket, each_once, lifted

if TYPE_CHECKING:
    from collections.abc import Callable


def ask_all(
    server: Ask, count: int, *, paced: bool = True, until: float = 600.0, seed: int = 1, work: float = 0.0
) -> Client:
    random.seed(seed)
    client = Client(RateFinder(32) if paced else None, [(number, 0) for number in range(count)])
    World(server, [client], work).run(until)
    assert len(client.answers) == count or until < 600
    return client


TABLE: dict[str, tuple[Callable[[], Ask], int]] = {
    "each refused once, Retry-After 0": (lambda: each_once(0.0), 32),
    "a tenth refused at random": (lambda: at_random(0.1), 300),
    "a tenth refused at random, for long": (lambda: at_random(0.1), 3000),
    "a tenth refused at random, Retry-After 1": (lambda: at_random(0.1, 1.0), 300),
    "a tenth refused at random, Retry-After 1, for long": (lambda: at_random(0.1, 1.0), 3000),
    "leaky bucket of 50/s": (lambda: bucket(50, 1), 1000),
    "leaky bucket of 50/s, Retry-After 0": (lambda: bucket(50, 1, 0.0), 1000),
    "leaky bucket of 50/s, Retry-After 1": (lambda: bucket(50, 1, 1.0), 1000),
    "burst bucket of 50/s": (lambda: bucket(50, 50), 1000),
    "burst bucket of 2/s": (lambda: bucket(2, 2), 60),
}


@pytest.mark.parametrize("name", TABLE)
def test_no_server_is_slower_than_under_plain_exponential_back_off(name: str) -> None:
    make, count = TABLE[name]
    ours = [ask_all(make(), count, seed=seed).answers[-1] for seed in range(11)]
    plain = [ask_all(make(), count, paced=False, seed=seed).answers[-1] for seed in range(11)]
    assert sorted(ours)[5] <= sorted(plain)[5]


@pytest.mark.parametrize("retry_after", [-1.0, 1.0])
def test_random_refusals_do_not_slow_down_a_client_that_is_busy(retry_after: float) -> None:
    # Its own computing makes it so slow that the rates it has seen hardly differ.
    ours, plain = (
        sorted(
            ask_all(at_random(0.1, retry_after), 3000, paced=paced, seed=seed, work=0.003).answers[-1]
            for seed in range(3)
        )
        for paced in (True, False)
    )
    assert ours[1] <= 1.05 * plain[1]


@pytest.mark.parametrize("retry_after", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("rate", [50, 500])
def test_a_bucket_is_used_up_and_refuses_few(rate: int, retry_after: float) -> None:
    clients = [ask_all(bucket(rate, rate, retry_after), 20 * rate, seed=seed) for seed in range(5)]
    # The burst comes for nothing; the rest takes its time. What is refused at the very end waits as it is told to.
    count = int(0.99 * 20 * rate)
    seconds = sorted(client.answers[count - 1] for client in clients)
    assert seconds[2] <= (count - rate) / rate / 0.95
    assert all(client.share <= 0.1 for client in clients)


@pytest.mark.parametrize(("retry_after", "share"), [(-1.0, 0.1), (0.0, 0.15), (1.0, 0.1)])
def test_a_short_run_at_a_bucket_has_few_refused(retry_after: float, share: float) -> None:
    clients = [ask_all(bucket(50, 50, retry_after), 300, seed=seed) for seed in range(3)]
    assert all(client.share <= share for client in clients)


@pytest.mark.parametrize("retry_after", [-1.0, 1.0])
def test_answers_that_take_much_longer_than_refusals_do_not_hide_the_rate(retry_after: float) -> None:
    clients = []
    for seed in range(3):
        random.seed(seed)
        clients.append(Client(RateFinder(300), [(number, 0) for number in range(1000)], connections=300))
        World(bucket(50, 50, retry_after), clients[-1:], answering=2.0).run(60)
    # The last answer takes its two seconds, too.
    assert sorted(client.answers[-1] for client in clients)[1] <= 950 / 50 / 0.95 + 2.6
    assert all(client.share <= 0.15 for client in clients)


@pytest.mark.parametrize(("rate", "share"), [(50, 0.9), (500, 0.9)])
def test_a_leaky_bucket_gives_nearly_what_it_gives_to_the_best_constant_rate(rate: int, share: float) -> None:
    class Constant(RateFinder):
        def __init__(self, rate: float) -> None:
            super().__init__(32)
            self.rate = self.constant = rate

        def book(self, now: float) -> float:
            instant = super().book(now)
            self.rate = self.constant
            return instant

        def accepted(self, now: float) -> None: ...

        def refused(self, sent: float, retry_after: float | None, now: float) -> None: ...

    def seconds(finder: RateFinder) -> float:
        random.seed(3)
        client = Client(finder, [(number, 0) for number in range(40 * rate if rate < 100 else 16 * rate)])
        World(bucket(rate, 1), [client]).run(600)
        return client.answers[-1]

    best = min(seconds(Constant(rate * part)) for part in (0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 0.95))
    assert seconds(RateFinder(32)) <= best / share


@pytest.mark.parametrize("rate", [2, 10, 50])
def test_a_limit_that_was_lifted_is_found_within_15_seconds(rate: int) -> None:
    client = ask_all(lifted(rate, 20.0), rate * 21 + 20_000, until=35.0)
    # At 20 s it was lifted, and 15 s later hundreds go in a second.
    assert sum(34.0 < at <= 35.0 for at in client.answers) > 300


def test_two_runs_share_a_server_within_a_factor_of_one_and_a_half() -> None:
    ratios = []
    for seed in range(1, 10):
        random.seed(seed)
        pair = [Client(RateFinder(32), [(number, 0) for number in range(5000)]) for _ in range(2)]
        World(bucket(50, 50), pair).run(60)
        late = [sum(at > 20 for at in client.answers) for client in pair]
        ratios.append(max(late) / min(late))
        assert sum(late) > 0.95 * 50 * 40
    assert sorted(ratios)[7] <= 1.5


def test_the_first_requests_leave_within_a_fifth_of_a_second_but_not_all_at_once() -> None:
    finder = RateFinder(32)
    instants = [finder.book(0.0) for _ in range(32)]
    assert instants[7] == 0.0 < instants[8]
    assert instants == sorted(instants)
    assert instants[-1] < 0.2


def test_a_row_of_refusals_pauses_everybody_for_as_long_as_the_server_asks() -> None:
    finder = RateFinder(32)
    for _ in range(ROW):
        finder.book(0.0)
        finder.send(0.0)
    for _ in range(ROW):
        finder.refused(0.0, 7.0, 0.1)
    assert finder.book(0.1) == pytest.approx(7.1)


def test_a_refusal_that_was_under_way_lengthens_the_pause_and_is_no_new_one() -> None:
    finder = RateFinder(32)
    for _ in range(ROW):
        finder.refused(0.0, 2.0, 0.1)
    rate = finder.rate
    finder.refused(0.05, 9.0, 0.2)
    assert finder.book(0.2) == pytest.approx(9.2)
    assert finder.rate == rate


def test_a_server_whose_headers_say_that_nothing_is_left_is_waited_for() -> None:
    finder = RateFinder(32)
    finder.wait_for(3.0, 1.0)
    assert finder.book(1.0) == 4.0
    assert finder.rate is None
