"""Gateways that share one store in a real PostgreSQL server."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from evalsuite.core.errors import RunError
from evalsuite.core.types import Completion, Message, Request, ToolCall, Usage
from evalsuite.service import store as stores
from evalsuite.service.clients import ANYBODY
from evalsuite.service.store import PostgresStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REQUEST = Request("gpt-test", (Message("user", "hello \ud800 \x00 你好"),))
ANSWER = Completion("text \x00 好", tool_calls=(ToolCall("1", "f", "{}"),), usage=Usage(1, 10, 5, 0.25))


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    """An empty database."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}".encode())
    yield postgres.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def open_store(database: str) -> Iterator[Callable[..., PostgresStore]]:
    opened: list[PostgresStore] = []

    def make(max_age: float | None = None) -> PostgresStore:
        opened.append(PostgresStore(database, (ANYBODY,), max_age))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


def test_an_answer_is_read_by_every_gateway_as_it_was_put(open_store: Callable[..., PostgresStore]) -> None:
    one, other = open_store(), open_store()
    assert other.get("k") is None
    asyncio.run(one.store_completion("k", REQUEST, ANSWER))
    asyncio.run(other.store_completion("k", REQUEST, Completion("a second answer")))
    assert other.get("k") == one.get("k") == ANSWER


def test_another_gateway_lists_the_latest_calls_that_were_not_refused(open_store: Callable[..., PostgresStore]) -> None:
    store = open_store()
    store.record_call_end(store.record_call_start("k"), "answered", ANSWER.usage)
    store.record_call_end(store.record_call_start("l"), "refused")
    store.record_call_start("m")
    latest = open_store().read_latest_calls(ANYBODY.name, 60.0)
    assert [tokens for _, tokens in latest] == [15.0, 0.0]
    assert all(0.0 <= seconds < 60.0 for seconds, _ in latest)
    assert store.read_latest_calls("another", 60.0) == store.read_latest_calls(ANYBODY.name, 0.0) == []


def test_a_damaged_answer_is_not_there(open_store: Callable[..., PostgresStore], database: str) -> None:
    store = open_store()
    asyncio.run(store.store_completion("k", REQUEST, ANSWER))
    with psycopg.connect(database) as db:
        db.execute("UPDATE evalsuite.answers SET completion = replace(completion, 'text', 'other')")
    assert store.get("k") is None


def test_an_answer_beyond_its_age_is_replaced(open_store: Callable[..., PostgresStore]) -> None:
    asyncio.run(open_store().store_completion("k", REQUEST, ANSWER))
    store = open_store(0.0)
    assert store.get("k") is None
    asyncio.run(store.store_completion("k", REQUEST, Completion("newer")))
    kept = open_store().get("k")
    assert kept is not None
    assert kept.text == "newer"


def test_each_gateway_knows_what_all_of_them_spend(open_store: Callable[..., PostgresStore]) -> None:
    one, other = open_store(), open_store()
    # As if it were in a process of its own.
    other._gateway = "elsewhere"
    one.record_call_end(one.record_call_start("a", 0.5), "answered", Usage(1, 10, 5, 0.125))
    one.record_call_end(one.record_call_start("b", 0.5), "failed")
    one.record_call_end(one.record_call_start("c", 0.5), "refused", error="no \x00 \ud800")
    one.record_call_start("d", 0.25)
    assert one.read_paid_amounts() == ({"anybody": 0.625}, {})
    assert other.read_paid_amounts() == ({"anybody": 0.875}, {"anybody": 0.25})


def test_a_connection_that_broke_is_made_anew(open_store: Callable[..., PostgresStore], database: str) -> None:
    store = open_store()
    asyncio.run(store.store_completion("k", REQUEST, ANSWER))
    with psycopg.connect(database, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert store.get("k") == ANSWER


def test_a_database_out_of_reach_is_one_message_without_its_password() -> None:
    with pytest.raises(RunError, match=r"--store postgresql://127\.0\.0\.1:9/x: ") as caught:
        PostgresStore("postgresql://me:hunter2@127.0.0.1:9/x", (ANYBODY,), None)
    assert "hunter2" not in str(caught.value)


def test_two_gateways_answer_from_one_store_and_one_limit(start_gateway: Any, chat_server: Any, database: str) -> None:
    options = (f"--upstream={chat_server.url}", f"--store={database}", "--max-cost=0.2", "--price=gpt-test=100/100")
    one, other = start_gateway(*options), start_gateway(*options)
    assert one.chat("hello", max_tokens=100) == (200, "hello")
    assert other.chat("hello", max_tokens=100) == (200, "hello")
    assert len(chat_server.bodies) == 1
    assert _metric(other, "evalsuite_gateway_spent_dollars", 0.0015)
    one.kill()
    assert other.chat("hello", max_tokens=100) == (200, "hello")
    assert other.get("/health")[0] == 200


@pytest.mark.parametrize("patient", [True, False])
def test_a_restarted_database_serves_the_next_request(
    open_store: Callable[..., PostgresStore], postgres_server: Any, monkeypatch: pytest.MonkeyPatch, *, patient: bool
) -> None:
    store = open_store()
    attempt = store.record_call_start("k", 1.0)
    postgres_server.stop()
    restart = threading.Thread(target=postgres_server.start)
    if patient:
        restart.start()
    else:
        monkeypatch.setattr(stores, "RESTART", 0.0)
        for _ in range(2):
            with pytest.raises(RunError):
                store.get("k")
        restart.start()
        restart.join()
    store.record_call_end(attempt, "answered", ANSWER.usage)
    asyncio.run(store.store_completion("k", REQUEST, ANSWER))
    restart.join()
    assert store.get("k") == ANSWER
    assert store.read_paid_amounts() == ({"anybody": 0.25}, {})


def test_clients_are_answered_again_after_a_long_outage(
    start_gateway: Any, chat_server: Any, database: str, postgres_server: Any
) -> None:
    service = start_gateway(f"--upstream={chat_server.url}", f"--store={database}")
    assert service.chat("one") == (200, "one")
    postgres_server.stop()
    assert service.chat("two")[0] == 502
    assert service.get("/health")[0] == 503
    postgres_server.start()
    assert service.chat("two") == (200, "two")
    assert service.get("/health")[0] == 200


def _metric(service: Any, name: str, expected: float) -> bool:
    """Whether a metric comes to a value, which other gateways' spending does after a second."""
    pause = threading.Event()
    return any(service.metric(name) == expected or pause.wait(0.05) for _ in range(600))
