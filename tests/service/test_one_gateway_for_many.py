"""A gateway in a process of its own: what it answers, whom, and what outlives its death."""

from __future__ import annotations

import json
import random
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.cli import main
from evalsuite.core.errors import RunError
from evalsuite.service.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOKENS = {"ci": "token-of-the-ci-server", "dev": "token-of-a-developer"}


@pytest.fixture
def clients(tmp_path: Path) -> Path:
    """Two clients, one of which may spend a tenth."""
    path = tmp_path / "clients.json"
    shares = {"ci": {"token": TOKENS["ci"]}, "dev": {"token": TOKENS["dev"], "share": 0.1}}
    path.write_text(json.dumps(shares))
    path.chmod(0o600)
    return path


def test_equal_requests_of_many_clients_are_asked_once(start_gateway: Any, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say("there", delay=0.2)
    service = start_gateway(f"--upstream={chat_server.url}")
    together = [threading.Thread(target=service.chat, args=("hello",)) for _ in range(5)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert service.chat("hello") == (200, "there")
    assert len(chat_server.bodies) == 1
    assert service.metric('evalsuite_gateway_answers_total{client="anybody",model="gpt-test"}') == 6
    served = [
        service.metric(f'evalsuite_gateway_requests_total{{served="{how}"}}') for how in ("asked", "joined", "kept")
    ]
    assert served[0] == 1
    assert sum(served) == 6


def test_a_further_repetition_is_asked_again(start_gateway: Any, chat_server: Any) -> None:
    service = start_gateway(f"--upstream={chat_server.url}")
    body = {"model": "gpt-test", "messages": [{"role": "user", "content": "hello"}]}
    for epoch in ("1", "2", "2"):
        assert service.post("/v1/chat/completions", body, **{"x-evalsuite-epoch": epoch})[0] == 200
    assert len(chat_server.bodies) == 2


def test_an_answer_beyond_its_age_is_asked_again(start_gateway: Any, chat_server: Any) -> None:
    service = start_gateway(f"--upstream={chat_server.url}", "--max-age=0")
    chat_server.reply = lambda body: chat_server.say(f"answer {len(chat_server.bodies)}")
    assert [service.chat("hello")[1] for _ in range(3)] == ["answer 1", "answer 2", "answer 3"]


def test_a_stranger_is_refused_and_a_client_spends_its_own_share(
    start_gateway: Any, chat_server: Any, clients: Path
) -> None:
    # Each answer costs 10 + 5 tokens: one and a half thousandths of a dollar.
    service = start_gateway(
        f"--upstream={chat_server.url}", f"--clients={clients}", "--max-cost=1", "--price=gpt-test=100/100"
    )
    assert service.chat("hello")[0] == 401
    assert service.get("/metrics")[0] == 401
    assert service.get("/metrics", Authorization=f"bearer {TOKENS['ci']}")[0] == 200
    assert service.get("/health")[0] == 200
    # An answer of up to 900 tokens may cost more than nine cents, of which the developer has ten.
    assert service.chat("one", TOKENS["dev"], max_tokens=800)[0] == 200
    status, words = service.chat("two", TOKENS["dev"], max_tokens=1000)
    assert status == 402
    assert "'dev' has used up its share" in words
    assert service.chat("two", TOKENS["ci"], max_tokens=1000)[0] == 200
    assert len(chat_server.bodies) == 2
    spent = 'evalsuite_gateway_client_spent_dollars{client="dev"}'
    assert service.metric(spent, TOKENS["ci"]) == pytest.approx(0.0015)
    service.kill()
    again = start_gateway(
        f"--upstream={chat_server.url}", f"--clients={clients}", "--max-cost=1", "--price=gpt-test=100/100"
    )
    assert again.metric(spent, TOKENS["ci"]) == pytest.approx(0.0015)


def test_no_client_can_have_it_ask_elsewhere_or_run_code(start_gateway: Any, chat_server: Any) -> None:
    service = start_gateway(f"--upstream={chat_server.url}")
    elsewhere = {
        "request": {
            "model": "gpt-test",
            "messages": [{"role": "user", "content": "x"}],
            "params": {},
            "tools": [],
            "base_url": "http://127.0.0.1:9/v1",
            "epoch": 1,
        }
    }
    assert "name one of these addresses" in service.post("/evalsuite/ask", elsewhere)[1]
    body = {"model": "function:os:getcwd", "messages": [{"role": "user", "content": "x"}]}
    assert "whoever runs it has to name it" in service.post("/v1/chat/completions", body)[1]
    assert not chat_server.bodies


@pytest.mark.parametrize("params", [{"extra_body": {"model": "dear"}}, {"models": ["dear"]}, {"model": "dear"}])
def test_no_client_can_have_the_server_ask_another_model(
    start_gateway: Any, chat_server: Any, params: dict[str, Any]
) -> None:
    service = start_gateway(f"--upstream={chat_server.url}", "--model=gpt-test")
    messages = [{"role": "user", "content": "x"}]
    plain = {"model": "gpt-test", "messages": messages, "params": params, "tools": [], "base_url": None, "epoch": 1}
    assert "names another model" in service.post("/evalsuite/ask", {"request": plain})[1]
    if "model" not in params:
        status, words = service.post("/v1/chat/completions", {"model": "gpt-test", "messages": messages, **params})
        assert (status, "names another model" in words) == (400, True)
    assert not chat_server.bodies


@pytest.mark.parametrize("name", ["Authorization", "host", "OpenAI-Organization"])
def test_no_client_can_have_it_send_another_key_or_host(start_gateway: Any, chat_server: Any, name: str) -> None:
    service = start_gateway(f"--upstream={chat_server.url}")
    body = {"model": "gpt-test", "messages": [{"role": "user", "content": "x"}]}
    status, words = service.post("/v1/chat/completions", {**body, "extra_headers": {name: "other"}})
    assert status == 400
    assert f"extra_headers: '{name}' would override" in words
    assert service.post("/v1/chat/completions", {**body, "extra_headers": {"x-trace": "1"}})[0] == 200
    assert {name.lower(): value for name, value in chat_server.headers[0].items()}["x-trace"] == "1"


def test_pages_in_a_browser_are_kept_out(start_gateway: Any, chat_server: Any) -> None:
    service = start_gateway(f"--upstream={chat_server.url}")
    body = {"model": "gpt-test", "messages": [{"role": "user", "content": "x"}]}
    assert service.post("/v1/chat/completions", body, **{"Content-Type": "text/plain"})[0] == 415
    assert service.get("/metrics", Host="evil.example:80")[0] == 403
    assert not chat_server.bodies


def test_nonsense_is_one_message(start_gateway: Any, chat_server: Any) -> None:
    service = start_gateway(f"--upstream={chat_server.url}")
    for body in (None, [1, 2], {"request": {"model": 1}}):
        assert "cannot read this request" in service.post("/evalsuite/ask", body)[1]
    assert "model: name one" in service.post("/v1/chat/completions", {"messages": []})[1]
    assert "NaN is not a JSON number" in service.chat("a", temperature=float("nan"))[1]


@pytest.mark.parametrize("kept", [{"store": True}, {"previous_response_id": "resp_1"}])
def test_a_stored_conversation_is_refused_with_advice(
    start_gateway: Any, chat_server: Any, kept: dict[str, Any]
) -> None:
    service = start_gateway(f"--upstream={chat_server.url}")
    body = {"model": "gpt-test", "input": "x", "metadata": {"run": "1"}}
    status, content = service.post("/v1/responses", {**body, **kept})
    assert status == 400
    assert "send all items of the conversation as input" in json.loads(content)["error"]["message"]
    status, content = service.post("/v1/responses", {**body, "store": False})
    assert status == 200
    assert json.loads(content)["metadata"] == {"run": "1"}
    assert len(chat_server.bodies) == 1


def test_models_are_those_of_the_upstream_servers_unless_the_service_names_its_own(
    start_gateway: Any, chat_server: Any
) -> None:
    named = start_gateway(f"--upstream={chat_server.url}", "--model=gpt-one", "--model=gpt-two")
    upstreams = (f"--upstream={named.url}/v1", "--upstream=http://127.0.0.1:9/v1")
    for service in (named, start_gateway(*upstreams, "--store=second.sqlite")):
        models = json.loads(service.get("/v1/models")[1])["data"]
        assert [model["id"] for model in models] == ["gpt-one", "gpt-two"]


def test_each_answer_has_an_id_of_its_own(start_gateway: Any, chat_server: Any) -> None:
    service = start_gateway(f"--upstream={chat_server.url}")
    body = {"model": "gpt-test", "messages": [{"role": "user", "content": "x"}]}
    answers = [json.loads(service.post("/v1/chat/completions", body)[1]) for _ in range(2)]
    assert answers[0]["choices"] == answers[1]["choices"]
    assert answers[0]["id"] != answers[1]["id"]


def test_what_makes_no_sense_is_refused_before_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, mode, text in (
        ("open.json", 0o644, json.dumps({"ci": {"token": TOKENS["ci"]}})),
        ("short.json", 0o600, '{"ci": {"token": "short"}}'),
        ("name.json", 0o600, json.dumps({"c\ni": {"token": TOKENS["ci"]}})),
        ("much.json", 0o600, json.dumps({"ci": {"token": TOKENS["ci"], "share": 2}})),
        ("limit.json", 0o600, json.dumps({"ci": {"token": TOKENS["ci"], "max_rpm": 0.5}})),
        ("share.json", 0o600, json.dumps({"ci": {"token": TOKENS["ci"], "share": 0.5}})),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    refused = {
        "--clients=open.json": "chmod 600",
        "--clients=short.json": "at least 16",
        "--clients=name.json": "not a name of printable characters",
        "--clients=much.json": "expected a number above 0 and at most 1",
        "--clients=limit.json": "max_rpm is 0.5; expected a whole number above 0",
        "--audit=nowhere/audit.jsonl": "No such file",
        "--clients=share.json": "--max-cost, which is not given",
        "--clients=nowhere.json": "No such file",
        "--host=0.0.0.0": "--tls-cert",
        "--upstream=nonsense": "--upstream: base URL 'nonsense': not an address; write http://host:port",
        "--tls-cert=name.json": "expected PEM files",
        "--port=99999": "from 0 (any free port) to 65535",
        "--max-age=-1": "hours of at least 0",
    }
    for option, words in refused.items():
        assert main(["gateway", "--port=0", option]) == 2
        assert words in capsys.readouterr().err


def test_two_gateways_do_not_share_one_file(start_gateway: Any, chat_server: Any, tmp_path: Path) -> None:
    first = start_gateway(f"--upstream={chat_server.url}")
    with pytest.raises(RunError, match="another gateway serves from this file"):
        SqliteStore(tmp_path / "gateway.sqlite", (), None)
    first.kill()
    start_gateway(f"--upstream={chat_server.url}")


def test_no_acknowledged_answer_is_lost_when_it_is_killed_at_any_instant(start_gateway: Any, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say(f"{body['messages'][-1]['content']} at {random.random()}")
    acknowledged: dict[str, str] = {}
    ended = threading.Event()
    service = start_gateway(f"--upstream={chat_server.url}")
    port = int(service.url.rpartition(":")[2])

    def ask(number: int) -> None:
        turn = 0
        while not ended.is_set():
            turn += 1
            text = f"{number}-{turn}"
            try:
                status, words = service.chat(text)
            except (OSError, ValueError, json.JSONDecodeError):
                continue
            if status == 200:
                acknowledged[text] = words

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for kills in range(1, 4):
        _wait_until(partial(_holds, acknowledged, 30 * kills))
        service.kill()
        service = start_gateway(f"--upstream={chat_server.url}", port=port)
    ended.set()
    for thread in threads:
        thread.join()
    chat_server.reply = lambda body: chat_server.say(status=500)
    lost = [text for text, words in acknowledged.items() if service.chat(text) != (200, words)]
    assert not lost
    assert len(acknowledged) >= 90


def _holds(acknowledged: dict[str, str], least: int) -> bool:
    return len(acknowledged) >= least


def _wait_until(true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(6000):
        if true():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come to that")
