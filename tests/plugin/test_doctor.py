"""`evalsuite doctor` says what works here, and its exit status whether a run could begin."""

from __future__ import annotations

import http.server
import json
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


class Models(http.server.BaseHTTPRequestHandler):
    """A server with one model and one key; without a list where its path says so."""

    def do_GET(self) -> None:
        right = self.headers.get("Authorization") == "Bearer sk-right-key"
        status = 404 if "/bare/" in self.path else 200 if right else 401
        body = json.dumps({"data": [{"id": "tiny"}]} if status == 200 else {"error": {"message": "no"}}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_port}"
    listening.shutdown()
    listening.server_close()


@pytest.fixture
def doctor(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(app="def echo(messages):\n    return ''\n")

    def run(*args: str, **environment: str) -> tuple[int, str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        ended = pytester.run(sys.executable, "-mevalsuite", "doctor", *args)
        return int(ended.ret), ended.stdout.str() + ended.stderr.str()

    return run


def test_where_all_is_there_the_status_is_0_and_the_tier_is_named(doctor: Any) -> None:
    status, text = doctor("--model=function:app:echo", "--without-programs")
    assert (status, text.rstrip().endswith("ready")) == (0, True)
    assert "function:app:echo" in text
    assert "sandbox" in text


def test_its_rows_fit_a_hundred_columns(doctor: Any) -> None:
    _, text = doctor("--model=gpt-4", "--without-programs")
    assert max(map(len, text.splitlines())) <= 100


def test_a_missing_key_is_a_fault_and_the_message_names_it(doctor: Any) -> None:
    status, text = doctor("--model=gpt-4", "--without-programs")
    assert status == 1
    assert "OPENAI_API_KEY" in text
    assert text.rstrip().endswith("not ready: model")


def test_the_ini_file_of_the_suite_counts(doctor: Any, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nevalsuite_model = gpt-4\n")
    status, text = doctor("--without-programs")
    assert (status, "gpt-4" in text) == (1, True)


@pytest.mark.parametrize(
    ("path", "model", "key", "status", "words"),
    [
        ("/v1", "tiny", "sk-right-key", 0, "accepts the key and lists the model"),
        ("/v1", "tiny", "sk-wrong-key", 1, "answered 401"),
        ("/v1", "huge", "sk-right-key", 0, "does not list huge; it lists tiny"),
        ("/bare/v1", "tiny", "sk-right-key", 0, "does not list its models"),
    ],
)
def test_a_server_is_asked_for_its_models_and_for_nothing_else(
    doctor: Any, server: str, path: str, model: str, key: str, status: int, words: str
) -> None:
    given = (f"--model={model}", f"--model-base-url={server}{path}", "--without-programs")
    found, text = doctor(*given, OPENAI_API_KEY=key)
    # A detail may be broken into several lines.
    assert (found, words in " ".join(text.split())) == (status, True), text
    assert key not in text


def test_a_server_that_is_down_is_a_fault(doctor: Any) -> None:
    status, text = doctor("--model=tiny", "--model-base-url=http://127.0.0.1:9/v1", "--without-programs")
    assert (status, "cannot connect" in text) == (1, True)


def test_a_folder_of_data_that_is_not_there_is_a_fault(doctor: Any) -> None:
    status, text = doctor("--model=function:app:echo", "--data=nowhere", "--without-programs")
    assert (status, "--data nowhere: no such folder" in text) == (1, True)


def test_a_missing_sandbox_is_a_fault_with_the_option_for_suites_without_programs(doctor: Any) -> None:
    # Nothing listens there.
    status, text = doctor("--model=function:app:echo", "--sandbox=http://127.0.0.1:9")
    assert status == 1
    assert "not ready: sandbox (if no case runs programs that a model writes, add --without-programs)" in text
    assert doctor("--model=function:app:echo", "--sandbox=http://127.0.0.1:9", "--without-programs")[0] == 0


SUITE = """
from evalsuite import Sample, benchmark, exact_match, generate
{imports}
@benchmark("b", [Sample(id="s", input="?", target="1", metadata={{"inputs": [""], "outputs": ["1"]}})],
           solver=generate(), scorers=[{scorer}])
def test_b(scores): pass
"""


@pytest.mark.parametrize(
    ("imports", "scorer", "conclusion"),
    [
        ("", "exact_match()", "ready"),
        ("from evalsuite.scorers import passes_tests", "passes_tests()", "not ready: sandbox (if no case"),
    ],
)
def test_a_missing_sandbox_is_a_fault_only_if_the_suite_runs_programs(
    doctor: Any, pytester: pytest.Pytester, imports: str, scorer: str, conclusion: str
) -> None:
    pytester.makepyfile(test_suite=SUITE.format(imports=imports, scorer=scorer))
    status, text = doctor("--model=function:app:echo", "--sandbox=http://127.0.0.1:9", "test_suite.py")
    assert "missing" in text
    assert text.splitlines()[-1].startswith(conclusion)
    assert status == int(conclusion != "ready")
    assert "collected" not in text
