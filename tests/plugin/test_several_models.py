"""`--model a --model b`: one run per model, compared question by question."""

from __future__ import annotations

import json
import os
import shlex
import signal
import time
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.plugin.conftest import APP

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

MORE = (
    APP
    + """
def right(messages):
    return {"Osaka": "Tokyo"}.get(messages[-1]["content"], messages[-1]["content"])

def wrong(messages):
    return "no"

def slow(messages):
    import pathlib, time
    pathlib.Path("asked").touch()
    time.sleep(60)
"""
)
RIGHT, ECHO, WRONG = (f"--model=function:app:{name}" for name in ("right", "echo", "wrong"))


def test_each_model_has_a_run_and_the_highest_status_counts(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.path.joinpath("app.py").write_text(MORE)
    result = suite.run(*workers, RIGHT, WRONG, "--run=r", "--gate=exact_match >= 0.9", model=False, fresh=True)
    assert result.ret == 10
    result.stdout.fnmatch_lines(["*model 1 of 2: function:app:right*", "*model 2 of 2: function:app:wrong*"])
    assert {
        name: suite.records(name)[0]["scores"]["exact_match"]
        for name in ("r-function-app-right", "r-function-app-wrong")
    } == {"r-function-app-right": 1.0, "r-function-app-wrong": 0.0}
    written = json.loads(next(suite.path.glob("reports/compare-*/comparison.json")).read_text())
    assert written["labels"] == ["function:app:right", "function:app:wrong"]


@pytest.mark.parametrize("source", ["PYTEST_ADDOPTS", "addopts", "@file", "PYTEST_ADDOPTS=@file"])
def test_each_model_of_another_source_has_a_run(suite: Suite, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    suite.path.joinpath("app.py").write_text(MORE)
    given = [RIGHT, WRONG, "--gate=exact_match >= 0.9"]
    if source == "PYTEST_ADDOPTS":
        monkeypatch.setenv(source, shlex.join(given))
    elif source == "addopts":
        suite.path.joinpath("pytest.ini").write_text(f"[pytest]\naddopts = {shlex.join(given)}\n")
    else:
        suite.path.joinpath("args.txt").write_text("\n".join(given))
        if source != "@file":
            monkeypatch.setenv("PYTEST_ADDOPTS", "@args.txt")
    result = suite.run(*["@args.txt"] * (source == "@file"), "--run=r", model=False)
    assert result.ret == 10
    assert {path.name for path in suite.path.glob("reports/r-*")} == {"r-function-app-right", "r-function-app-wrong"}


def test_a_model_on_the_command_line_replaces_those_of_addopts(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.path.joinpath("app.py").write_text(MORE)
    monkeypatch.setenv("PYTEST_ADDOPTS", f"{WRONG} {ECHO}")
    assert suite.run(RIGHT, "--run=r", model=False).ret == 0
    assert [path.name for path in suite.path.glob("reports/r*")] == ["r"]
    suite.run("--replay=r", model=False).stdout.no_fnmatch_line("*model 1 of 2*")


def test_each_model_has_a_junit_file(suite: Suite) -> None:
    suite.path.joinpath("app.py").write_text(MORE)
    suite.run(RIGHT, WRONG, "--gate=exact_match >= 0.9", "--junitxml=out/j.xml", model=False)
    files = {path.name: ET.parse(path).iter("testsuite") for path in suite.path.glob("out/*")}
    failures = {name: next(suites).get("failures") for name, suites in files.items()}
    assert failures == {"j.xml": "0", "j-model2.xml": "1"}


def test_three_models_are_ranked(suite: Suite) -> None:
    suite.path.joinpath("app.py").write_text(MORE)
    result = suite.run(WRONG, "--model", "function:app:echo", RIGHT, model=False)
    assert result.ret == 1
    text = next(suite.path.glob("reports/compare-*/comparison.md")).read_text()
    ranks = text.partition("### Ranks by exact")[2].splitlines()[4:7]
    assert [row.split("|")[2].strip() for row in ranks] == [
        f"function:app:{name}" for name in ("right", "echo", "wrong")
    ]


def test_models_with_one_short_name_have_numbered_runs(suite: Suite) -> None:
    suite.path.joinpath("app.py").write_text(APP + "\ndef echo_(messages):\n    return echo(messages)\n")
    assert suite.run(ECHO, "--model=function:app:echo_", "--run=r", model=False).ret == 1
    names = {path.name for path in suite.path.glob("reports/r-*")}
    assert names == {"r-function-app-echo-1", "r-function-app-echo-2"}


@pytest.mark.parametrize("wrong", ["function:app:wrnog", "lokal:smollm2", "litelm:x/y"])
def test_a_mistake_in_the_last_model_is_told_before_the_first_is_asked(suite: Suite, wrong: str) -> None:
    suite.path.joinpath("app.py").write_text(MORE)
    result = suite.run("--model=function:app:slow", f"--model={wrong}", model=False)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *{wrong}*"])
    assert not suite.path.joinpath("asked").exists()


def test_a_terminated_command_ends_its_session_and_asks_no_further_model(suite: Suite) -> None:
    suite.path.joinpath("app.py").write_text(MORE)
    suite.model = ()
    session = suite.start("--model=function:app:slow", ECHO, "--run=r")
    deadline = time.monotonic() + 60
    while not suite.path.joinpath("asked").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(session.pid, signal.SIGTERM)
    assert session.wait(60)
    assert not suite.path.joinpath("reports/r-function-app-echo").exists()
