"""A suite's shards on a real cluster of two Ray nodes, one of which is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evalsuite.cli import main

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'evalsuite[ray]'")

PATIENCE = 900.0
"""Seconds after which a run on Ray counts as one that hangs: some machines are many times slower than others."""

CASES = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [
    Sample(id=f"s{number}", input=f"word {number}", target=f"word {number % 30}") for number in range(40)
]

@benchmark("words", SAMPLES, solver=generate(max_tokens=8), scorers=[exact_match()])
def test_words(scores):
    assert scores["exact_match"] == 1.0
"""


def test_a_node_that_dies_costs_nothing_and_the_report_is_that_of_one_session(tmp_path: Path, chat_server: Any) -> None:
    def reply(body: Any) -> Any:
        # The kill comes in the middle, and the last cases wait until it has been noticed, however long that takes.
        ends = time.monotonic() + PATIENCE
        while len(chat_server.bodies) > 20 and time.monotonic() < ends:
            if "on 1 node, " in (tmp_path / "output").read_text():
                break
            time.sleep(0.1)
        return chat_server.say(body["messages"][-1]["content"], delay=0.2)

    chat_server.reply = reply
    (tmp_path / "test_words.py").write_text(CASES)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["evalsuite.plugin"]\n')
    asked = ("--model=gpt-test", f"--model-base-url={chat_server.url}", "--gate=words.exact_match >= 0.9")
    # One call at a time, so that they do not all wait.
    options = ("3", "test_words.py", "--shards=4", "--run=joined", "--max-connections=1", *asked)
    status, output = _run(tmp_path, str(Path(__file__).with_name("two_nodes.py")), *options)
    assert status == 10, output
    assert "killed with" in output
    assert "on 1 node, " in output
    assert "missed  words.exact_match >= 0.9" in output
    assert len(chat_server.bodies) == 40
    chat_server.reply = lambda body: chat_server.say(body["messages"][-1]["content"])
    status, output = _run(tmp_path, "-m", "pytest", "-q", "--run=alone", *asked)
    assert status == 10, output
    joined, alone = (_benchmarks(tmp_path, name) for name in ("joined", "alone"))
    assert joined == alone


def _environment() -> dict[str, str]:
    # Ray ends tasks, and tries them again for ever, where other processes of the machine have filled its memory.
    return {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0"}


def _run(folder: Path, *arguments: str) -> tuple[int, str]:
    # A file takes the output, because Ray's own processes hold a pipe open.
    with (folder / "output").open("w+") as output:
        driver = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env=_environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            driver.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"no end within {PATIENCE} s\n{(folder / 'output').read_text()}")
        finally:
            # Its cluster ends with it, also where it hangs.
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    return driver.returncode, (folder / "output").read_text()


def _benchmarks(folder: Path, run: str) -> Any:
    summary = json.loads((folder / "reports" / run / "summary.json").read_text("utf-8"))
    return summary["benchmarks"], summary["gates"]


def test_a_driver_that_is_killed_goes_on_and_asks_nothing_again(tmp_path: Path, chat_server: Any) -> None:
    ten_are_there = threading.Event()

    def reply(body: Any) -> Any:
        if len(chat_server.bodies) >= 10:
            ten_are_there.set()
        return chat_server.say(body["messages"][-1]["content"], delay=0.0 if resumed else 0.3)

    resumed = False
    chat_server.reply = reply
    (tmp_path / "test_words.py").write_text(CASES.replace("% 30", "% 40"))
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["evalsuite.plugin"]\n')
    options = ("ray", "test_words.py", "--shards=2", "--run=joined", "--max-connections=1")
    asked = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    command = [sys.executable, "-m", "evalsuite", *options, *asked]
    with subprocess.Popen(command, cwd=tmp_path, env=_environment(), stdout=subprocess.DEVNULL) as driver:
        are_there = ten_are_there.wait(PATIENCE)
        driver.kill()
    assert are_there
    resumed = True
    status, output = _run(tmp_path, "-m", "evalsuite", *options, *asked)
    assert status == 0, output
    prompts = [body["messages"][-1]["content"] for body in chat_server.bodies]
    assert len(set(prompts)) == 40
    # Two may have been asked again, as the gateway dies with the driver: the one that was under way, and one whose
    # answer had come but was not stored yet.
    assert len(prompts) <= 42
    records = (tmp_path / "reports" / "joined" / "records.jsonl").read_text().splitlines()
    assert len(records) == 40


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--cpus=-1", "--cpus -1: it must be a number of at least 0"),
        ("--address=127.0.0.1:9", "--address 127.0.0.1:9: no cluster can be reached there"),
        ("--address=127.0.0.1:99999", "--address 127.0.0.1:99999: no cluster can be reached there"),
    ],
)
def test_what_makes_no_sense_is_one_message_at_once(
    option: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ray", str(tmp_path), "--shards=2", option]) == 2
    assert words in capsys.readouterr().err
