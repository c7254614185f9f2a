"""Runs that share what they know about a server's rate."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.gateway import common_rate
from evalsuite.gateway.common_rate import CommonRate, decode, encode
from evalsuite.gateway.gateway import Gateway
from evalsuite.gateway.limiter import Limiter
from evalsuite.gateway.neighbours import Neighbours
from evalsuite.gateway.rate_finder import RateFinder
from evalsuite.journal.answers import Answers
from evalsuite.models.access import Access
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.protocol import RateLimited
from evalsuite.models.secret import Secret
from tests.unit.gateway.rate_world import Client, World, bucket

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.core.types import Completion, Request
    from tests.unit.gateway.conftest import House, Virtual


class Time:
    """A clock that a test turns."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Neighbours(tmp_path / "paces").file("openai http://127.0.0.1/v1", "m")


def run(file: Path, time: Time) -> CommonRate:
    return CommonRate(RateFinder(32), file, time)


def refuse_many(rate: CommonRate, now: float = 100.0) -> None:
    for _ in range(8):
        rate.refused(now - 0.05, 7.0, now)


def share_of_each(file: Path, rate: float, burst: float, *, lateness: tuple[float, float]) -> list[Client]:
    """Two busy runs at one server for forty seconds, each with timers that are so late on average."""
    clients = [Client(None, [(number, 0) for number in range(5000)], lateness=late) for late in lateness]
    world = World(bucket(rate, burst), clients)
    for client in clients:
        client.finder = CommonRate(RateFinder(32), file, lambda: world.now)
    world.run(40)
    return clients


@pytest.mark.parametrize("burst", [1, 50], ids=["leaky", "with a burst"])
def test_two_runs_share_a_bucket_evenly_even_if_one_of_them_is_late(file: Path, burst: float) -> None:
    random.seed(1)
    clients = share_of_each(file, 50, burst, lateness=(0.0005, 0.002))
    late = [sum(10 < at <= 40 for at in client.answers) for client in clients]
    assert max(late) <= 1.2 * min(late)
    assert sum(late) >= (0.75 if burst == 1 else 0.95) * 50 * 30
    assert sum(client.refused for client in clients) <= 0.15 * sum(late)


def test_a_pause_that_one_run_is_told_of_is_everybodys(file: Path, time: Time) -> None:
    one, other = run(file, time), run(file, time)
    refuse_many(one)
    assert other.book(100.0) == pytest.approx(107.0)
    assert other.rate == one.rate


def test_an_instant_that_was_booked_before_a_pause_is_void(file: Path, time: Time) -> None:
    one, other = run(file, time), run(file, time)
    other.book(100.0)
    refuse_many(one)
    assert not other.send(100.0)


def test_runs_take_turns(file: Path, time: Time) -> None:
    one, other = run(file, time), run(file, time)
    refuse_many(one)
    instants = [rate.book(100.0) for rate in (one, other, one, other)]
    assert instants == sorted(instants)
    assert len(set(instants)) == 4


def test_nothing_is_written_before_a_server_refuses(file: Path, time: Time) -> None:
    rate = run(file, time)
    rate.book(100.0)
    rate.send(100.0)
    rate.accepted(100.1)
    assert not file.exists()


def test_what_a_run_left_long_ago_is_not_believed(file: Path, time: Time) -> None:
    refuse_many(run(file, time))
    time.now += 10.0
    soon = run(file, time)
    soon.book(time.now)
    assert soon.rate is not None
    time.now += 100.0
    late = run(file, time)
    assert late.book(time.now) == time.now
    assert late.rate is None


@given(data=st.binary(max_size=1000), cut=st.integers(0, 900), bit=st.integers(0, 7000))
def test_a_damaged_file_is_not_believed(data: bytes, cut: int, bit: int) -> None:
    good = encode(7, 1.0, RateFinder(32))
    flipped = bytearray(good)
    flipped[bit // 8 % len(good)] ^= 1 << bit % 8
    for damaged in (data, good[: cut % len(good)], bytes(flipped)):
        with pytest.raises(ValueError, match=r"damaged|short"):
            decode(damaged)


def test_a_damaged_file_is_written_anew(file: Path, time: Time) -> None:
    file.write_bytes(b"\xff" * 500)
    one, other = run(file, time), run(file, time)
    refuse_many(one)
    assert other.book(100.0) == pytest.approx(107.0)


def test_numbers_bring_everything_that_a_finder_knows() -> None:
    random.seed(2)
    client = Client(RateFinder(32), [(number, 0) for number in range(400)])
    World(bucket(50, 50), [client]).run(4)
    assert isinstance(client.finder, RateFinder)
    copy = RateFinder(32)
    copy.adopt(client.finder.numbers())
    assert vars(copy) == vars(client.finder)


def test_a_run_goes_on_by_itself_while_a_stopped_one_holds_the_file(
    file: Path, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common_rate, "LOCK_TRIES", 1)
    one, other = run(file, time), run(file, time)
    refuse_many(one)
    holder = os.open(file, os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert other.book(100.0) == 100.0
    os.close(holder)
    time.now += 2.0
    assert other.book(102.0) == pytest.approx(107.0)


def test_runs_of_another_model_or_key_have_a_file_of_their_own_that_does_not_name_it(tmp_path: Path) -> None:
    neighbours = Neighbours(tmp_path / "paces")
    backends = [OpenAIBackend("http://127.0.0.1:1/v1", Access(Secret(key))) for key in ("sk-aaaa", "sk-bbbb")]
    names = {
        neighbours.file(backend.identity, model, backend.account).name
        for backend in backends
        for model in ("m", "n")
    }
    assert len(names) == 4
    assert not any("sk-" in name or len(name) != 32 for name in names)
    assert not any("sk-" in backend.account for backend in backends)


def test_a_folder_that_others_may_use_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "paces").mkdir(mode=0o755)
    (tmp_path / "paces").chmod(0o777)
    with pytest.raises(PermissionError):
        Neighbours(tmp_path / "paces").file("address")


def test_the_folder_and_its_files_are_the_users_alone(file: Path, time: Time) -> None:
    refuse_many(run(file, time))
    assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_files_of_earlier_days_are_removed(file: Path, time: Time) -> None:
    refuse_many(run(file, time))
    os.utime(file, (0, 0))
    Neighbours(file.parent).file("another")
    assert not file.exists()


def test_a_link_in_place_of_the_file_is_not_followed(file: Path, time: Time, tmp_path: Path) -> None:
    file.symlink_to(tmp_path / "precious")
    refuse_many(run(file, time))
    assert not (tmp_path / "precious").exists()


@pytest.mark.parametrize("metered", [True, False])
def test_a_gateway_hears_what_its_neighbour_was_told_about_a_metered_model(
    virtual: Virtual, house: House, tmp_path: Path, *, metered: bool
) -> None:
    def refuse(_: Request) -> Completion:
        raise RateLimited("too many", 0.5)

    async def main() -> float | None:
        neighbours, rates = Neighbours(tmp_path / "paces"), []
        for answer in (refuse, house.echo):
            backend = house.Backend(answer, metered=metered)
            store = Answers.open(tmp_path / f"{answer.__name__}.sqlite")
            gateway = Gateway(
                lambda *_, backend=backend: backend, store, Limiter(32, clock=house.now), clock=house.now,
                patience=1.0, neighbours=neighbours,
            )  # fmt: skip
            calls = (gateway.ask(house.request(f"call {number}")) for number in range(32))
            await asyncio.gather(*calls, return_exceptions=True)
            rates.append(gateway.limiter.rate)
            await gateway.aclose()
        return rates[1]

    assert (virtual(main()) is not None) == metered
