"""Faults in a replayed session, which a suite's gates notice or not."""

from __future__ import annotations

import subprocess
from functools import partial
from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main
from evalsuite.commands.attack import PLUGINS, _FaultReplayer
from evalsuite.plugin import mutants
from evalsuite.plugin.mutants import MUTANTS
from tests.plugin.forty_numbers import model
from tests.warm_python import run_as_copy

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite
    from tests.warm_python import WarmPython


@pytest.fixture(autouse=True)
def sessions_are_copies(monkeypatch: pytest.MonkeyPatch, warm_python: WarmPython) -> None:
    monkeypatch.setattr(subprocess, "run", partial(run_as_copy, subprocess.run, warm_python.open()))


def attack(suite: Suite, capsys: pytest.CaptureFixture[str], threshold: float, *options: str) -> dict[str, str]:
    """What is told of each fault of a run with two wrong answers in forty."""
    assert suite.run(model("two_wrong"), "--run=r", f"--gate=numbers.exact_match >= {threshold}", *options).ret == 0
    capsys.readouterr()
    status = main(["attack-gate", "r"])
    out, err = capsys.readouterr()
    assert not err
    *lines, last = out.splitlines()
    told = {line.split()[0]: line for line in lines}
    assert told.keys() == MUTANTS.keys()
    assert status == int(last != "every fault is noticed")
    return told


def find_green(told: dict[str, str]) -> set[str]:
    return {name for name, line in told.items() if "STAYS GREEN" in line}


def test_a_strict_gate_and_a_baseline_notice_every_fault(baseline: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    told = attack(baseline, capsys, 0.9, "--baseline=base")
    assert not find_green(told)
    assert "red (12): numbers.exact_match is not compared with base: scorers of 40" in told["flattered"]
    assert "red (12): gate numbers.exact_match >= 0.9: not decided: 20 of 40 cases" in told["marked"]
    assert "not decided: 20 of 40 cases" in told["excluded"]
    assert "1/2 alone decides nothing" in told["sharded"]


def test_a_lax_gate_is_told(numbers: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    told = attack(numbers, capsys, 0.05)
    assert {"degraded", "flattered"} <= find_green(told)
    assert "raise their thresholds" in told["degraded"]
    assert not {"marked", "chosen", "excluded", "sharded", "moved", "mistyped", "killed"} & find_green(told)


def test_a_named_suite_is_attacked_even_if_its_folder_holds_the_runs(
    numbers: Suite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants, "MUTANTS", {})
    (numbers.path / "evals").mkdir()
    (numbers.path / "test_numbers.py").rename(numbers.path / "evals" / "test_numbers.py")
    assert numbers.run(model("good"), "--gate=numbers.exact_match >= 0.9", "--reports=evals", "--run=r").ret == 0
    assert main(["gate", "attack", "r", "--reports=evals"]) == 2
    assert "name the suite, as for pytest" in capsys.readouterr().err
    assert main(["gate", "attack", "r", ".", "--reports=evals"]) == 0


def test_a_fault_whose_session_breaks_off_does_not_count_as_noticed(
    numbers: Suite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants, "MUTANTS", {"degraded": MUTANTS["degraded"]})
    monkeypatch.setattr(_FaultReplayer, "replay_suite", lambda _self, name, *_options: (3 if name else 0, ""))
    assert numbers.run(model("good"), "--gate=numbers.exact_match >= 0.9", "--run=r").ret == 0
    capsys.readouterr()
    assert main(["gate", "attack", "r"]) == 1
    assert "NOT TESTED, because the session broke off" in capsys.readouterr().out


@pytest.mark.own_interpreter
def test_the_faults_load_without_a_warning_where_warnings_are_errors(numbers: Suite) -> None:
    assert numbers.run(model("good"), *PLUGINS, "--gate=numbers.exact_match >= 0.9", fresh=True).ret == 0


def test_a_red_run_and_a_run_without_answers_are_refused(numbers: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    numbers.run(model("ten_wrong"), "--run=red", "--gate=numbers.exact_match >= 0.9")
    assert main(["gate", "attack", "red"]) == 2
    assert "attack a green run" in capsys.readouterr().err
    (numbers.path / "reports" / "red" / "journal.sqlite").unlink()
    assert main(["gate", "attack", "red"]) == 2
    assert "its answers cannot be replayed" in capsys.readouterr().err
