"""pytest sessions with `--batch`, before a server with OpenAI's batch interface."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.batches.backend import require_batch_interface
from evalsuite.core.errors import BackendUnavailable, SettingsError
from evalsuite.core.settings import make_settings
from evalsuite.models.choice import open_backend

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.batches.conftest import BatchServer

CASES = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=f"s{number}", input=f"word {number}", target=f"word {number}") for number in range(6)]

@benchmark("words", SAMPLES, solver=generate(max_tokens=8), scorers=[exact_match()])
def test_words(scores):
    assert scores["exact_match"] == 1.0
"""

TWO_STEPS = """
from evalsuite import Sample, benchmark, exact_match

async def twice(sample, model):
    first = await model.chat(sample.input)
    return (await model.chat(first.text + " again")).text

SAMPLES = [Sample(id=f"s{number}", input=f"word {number}", target=f"word {number} again") for number in range(3)]

@benchmark("words", SAMPLES, solver=twice, scorers=[exact_match()])
def test_words(scores):
    assert scores["exact_match"] == 1.0
"""

JUDGED = CASES.replace("generate\n", "generate, rubric\n", 1).replace("[exact_match()]", "[rubric('Is it a word?')]")
JUDGED = JUDGED.replace('scores["exact_match"] == 1.0', "all(value == 1.0 for value in scores.values())")

# Tests do not wait as long for further requests as sessions do.
CONFTEST = """
import evalsuite.batches.backend as backend
backend.QUIET, backend.FIRST_LOOK = 0.3, 0.2
pytest_plugins = ["evalsuite.plugin"]
"""


@dataclass
class Suite:
    """A suite of cases before a server."""

    pytester: pytest.Pytester
    url: str

    @property
    def path(self) -> Path:
        return self.pytester.path

    def options(self, *options: str) -> list[str]:
        # One that resumes takes them over.
        resumed = any("--resume" in option for option in options)
        model = () if resumed else ("--model=gpt-test", "--run=run", "--batch")
        fixed = ("-pno:cacheprovider", f"--model-base-url={self.url}", "--price=gpt-test=100/100")
        return ["-q", *fixed, *model, *options]

    def start(self) -> Any:
        """Begins a session that goes on beside the test."""
        command = [sys.executable, "-mpytest", *self.options()]
        return self.pytester.popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, *options: str) -> tuple[int, str]:
        result = self.pytester.runpytest_subprocess(*self.options(*options), timeout=120)
        return int(result.ret), result.stdout.str() + result.stderr.str()

    def records(self) -> list[dict[str, Any]]:
        lines = (self.path / "reports" / "run" / "records.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def usage(self) -> dict[str, Any]:
        info: dict[str, Any] = json.loads((self.path / "reports" / "run" / "run.json").read_text("utf-8"))
        return dict(info["usage"])


@pytest.fixture
def suite(pytester: pytest.Pytester, batch_server: BatchServer) -> Suite:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_words=CASES)
    return Suite(pytester, batch_server.url)


def test_a_suite_is_asked_in_one_batch_at_half_the_price(suite: Suite, batch_server: BatchServer) -> None:
    status, output = suite.run()
    assert status == 0, output
    assert sorted(batch_server.asked()) == [f"word {number}" for number in range(6)]
    assert len(batch_server.batches) == 1
    assert not batch_server.calls
    # 15 tokens at 100 dollars a million are 0.0015 dollars, of which half.
    assert suite.usage()["cost"] == pytest.approx(6 * 0.00075)
    assert "batch_0: 6 requests sent" in output


def test_further_steps_make_further_batches_and_one_that_was_never_heard_of_is_found_again(
    suite: Suite, batch_server: BatchServer
) -> None:
    batch_server.deaf = True
    (suite.path / "test_words.py").write_text(TWO_STEPS)
    status, output = suite.run("-n2")
    assert status == 0, output
    first = sorted(text for text in batch_server.asked() if "again" not in text)
    assert first == ["word 0", "word 1", "word 2"]
    assert len(batch_server.asked()) == 6
    assert len(batch_server.batches) > 1


def test_failed_and_expired_lines_are_sent_again_and_refused_ones_are_not(
    suite: Suite, batch_server: BatchServer
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        text = body["messages"][-1]["content"]
        if text == "word 1":
            return 400, {"error": {"message": "word 1 is not liked"}}
        if text == "word 2" and batch_server.asked().count("word 2") == 1:
            return 500, {"error": {"message": "try again"}}
        return batch_server.echo(body)

    batch_server.answer = answer
    # Half of the first batch is not in time.
    batch_server.fate = lambda batch: "expired" if batch is batch_server.batches[0] else "completed"
    status, output = suite.run()
    assert status == 1
    assert "word 1 is not liked" in output
    assert "batch_0 expired" in output
    first = [line["body"]["messages"][-1]["content"] for line in batch_server.batches[0].lines]
    again = {"word 2", *first[len(first) // 2 :]}
    assert sorted(batch_server.asked()) == sorted([*(f"word {number}" for number in range(6)), *again])
    assert [record["outcome"] for record in suite.records()].count("passed") == 5


def test_a_batch_that_was_refused_for_one_line_is_sent_without_it(suite: Suite, batch_server: BatchServer) -> None:
    batch_server.fate = lambda batch: "failed" if batch is batch_server.batches[0] else "completed"
    status, output = suite.run()
    assert status == 1
    assert "RequestRefused: batch_0 failed: no such parameter\n" in output
    assert len(batch_server.asked()) == 6 + 5
    assert [record["outcome"] for record in suite.records()].count("error") == 1


def test_a_session_that_is_killed_sends_nothing_twice(suite: Suite, batch_server: BatchServer) -> None:
    batch_server.fate = lambda batch: None
    with suite.start() as process:
        _wait_until(lambda: len(batch_server.asked()) == 6)
        process.kill()
    batch_server.fate = lambda batch: "completed"
    # Each may cost up to a cent; what was sent is not counted twice.
    status, output = suite.run("--resume=run", "--max-cost=0.06")
    assert status == 0, output
    assert len(batch_server.asked()) == 6
    assert suite.usage()["cost"] == pytest.approx(6 * 0.00075)


def test_a_detached_session_ends_with_13_until_its_batches_are_finished(
    suite: Suite, batch_server: BatchServer
) -> None:
    batch_server.fate = lambda batch: None
    status, output = suite.run("--detach", "-n2", "--gate=words.exact_match >= 0.9")
    assert status == 13, output
    assert "no data" not in output
    assert "failed" not in output
    assert "not finished yet, batch_0" in output
    assert "--resume run" in output
    assert suite.run("--resume=last", "--detach")[0] == 13
    assert len(batch_server.asked()) == 6
    batch_server.fate = lambda batch: "completed"
    status, output = suite.run("--resume=last")
    assert status == 0, output
    assert len(batch_server.asked()) == 6
    assert len(suite.records()) == 6


def test_a_request_that_only_the_spend_limit_bounds_is_sent_once_with_and_without_it(
    suite: Suite, batch_server: BatchServer
) -> None:
    suite.pytester.makepyfile(test_words=re.sub(r"max_tokens=\d+", "", CASES))
    batch_server.fate = lambda batch: None
    assert suite.run("--detach")[0] == 13
    assert suite.run("--resume=last", "--detach", "--max-cost=5")[0] == 13
    batch_server.fate = lambda batch: "completed"
    status, output = suite.run("--resume=last", "--max-cost=6")
    assert status == 0, output
    assert len(batch_server.asked()) == 6


def test_a_model_without_a_batch_interface_is_one_message(chat_server: Any) -> None:
    with pytest.raises(SettingsError, match="--batch: local:smollm2 has no batch interface"):
        require_batch_interface("local:smollm2", open_backend("local:smollm2"))
    with pytest.raises(BackendUnavailable, match="--batch: gpt-test has no batch interface at its server"):
        require_batch_interface("gpt-test", open_backend("gpt-test", chat_server.url))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch": True, "gateway": "http://127.0.0.1:1"}, "--batch and --gateway exclude each other"),
        ({"detach": True}, "--detach goes with --batch"),
    ],
)
def test_what_makes_no_sense_with_batches_is_said(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        make_settings(given)


def _wait_until(true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(6000):
        if true():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come to that")


def test_judges_are_asked_in_further_batches(suite: Suite, batch_server: BatchServer) -> None:
    batch_server.answer = lambda body: (
        batch_server.echo({"messages": [{"content": "Verdict: yes"}]})
        if body["model"] == "gpt-judge"
        else batch_server.echo(body)
    )
    (suite.path / "test_words.py").write_text(JUDGED)
    status, output = suite.run("--judge-model=gpt-judge", f"--judge-base-url={suite.url}", "--price=gpt-judge=100/100")
    assert status == 0, output
    models = [{line["body"]["model"] for line in batch.lines} for batch in batch_server.batches]
    assert models == [{"gpt-test"}, {"gpt-judge"}]
    assert [len(batch.lines) for batch in batch_server.batches] == [6, 6]
    assert not batch_server.calls
    # 15 tokens a call at 100 dollars a million, of which half, for model and judge.
    assert [record["judge_usage"]["cost"] for record in suite.records()] == [pytest.approx(0.00075)] * 6
    assert suite.usage()["cost"] == pytest.approx(12 * 0.00075)
    # All of it is kept: the run again, without any server.
    status, output = suite.run("--replay=run", "--run=again", "--judge-model=gpt-judge")
    assert status == 0, output
    assert len(batch_server.batches) == 2
