"""A release decided in CI: over epochs, again by other gates, and as CI shows it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from evalsuite.cli import main
from tests.plugin.forty_numbers import GATE, NUMBERS, REPEATED, first_screen, model

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.conftest import Suite


def test_a_sample_holds_in_at_least_k_of_its_n_epochs(numbers: Suite, parallel: tuple[str, ...]) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    result = numbers.run(*parallel, model("one_slip"), "test_repeated.py")
    result.assert_outcomes(passed=18, xfailed=2)
    assert result.ret == 0


def test_a_sample_that_holds_in_too_few_epochs_fails_the_run(numbers: Suite, parallel: tuple[str, ...]) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    result = numbers.run(*parallel, model("two_slips"), "test_repeated.py")
    result.assert_outcomes(passed=16, xfailed=4)
    assert result.ret == 1
    reason = "repeated, which no gate covers: 2 samples with too few epochs that hold (s101, s103) among 20 cases"
    result.stdout.fnmatch_lines([f"*{reason}*"])
    assert reason in first_screen(numbers.rendered())


def test_fewer_epochs_than_must_hold_are_refused(numbers: Suite) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    result = numbers.run(model("good"), "--epochs=3", "test_repeated.py")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*--epochs 3: a sample of repeated holds if at least 4 of its epochs do*"])


def test_right_answers_in_all_epochs_leave_room_for_doubt(numbers: Suite) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    numbers.run(model("good"), "test_repeated.py")
    found = numbers.summary()["benchmarks"]["repeated"]["metrics"]["exact_match"]
    assert (found["value"], found["high"]) == (1.0, 1.0)
    assert found["low"] < 0.5  # four samples, whatever the number of epochs


def test_gates_are_decided_again_with_the_same_exit_statuses(
    baseline: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline.run(model("ten_wrong"), "--run=now", GATE)
    monkeypatch.chdir(baseline.path)
    capsys.readouterr()
    for more, status in (
        ([], 0),
        (["--gate=numbers.exact_match >= 0.9"], 10),
        (["--gate=numbers.exact_match >= 0.5", "--baseline=base"], 11),
        (["--gate=numbers.exact_macth >= 0.5"], 12),
        (["--gate=numbers.exact_match >= much"], 2),
        (["--baseline=lost", "--gate=numbers.exact_match >= 0"], 2),
    ):
        assert main(["gate", "now", *more]) == status, more
    assert "gate 'numbers.exact_match >= much' cannot be read" in capsys.readouterr().err
    # The baseline that is not there has left no trace: the run can still be reported.
    assert main(["report", "now"]) == 0


def test_deciding_again_says_what_stays_undecided_and_a_gate_can_demand_a_decision(
    baseline: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline.run(model("two_wrong"), "--run=now", GATE)
    monkeypatch.chdir(baseline.path)
    capsys.readouterr()
    assert main(["gate", "now", "--baseline=base", "--baseline=base"]) == 0
    assert capsys.readouterr().out.count("is undecided against base: 0.95 after 0.95") == 1
    wanted = ("--gate=numbers.exact_match >= 0.5", "--gate=* no worse than baseline")
    assert main(["gate", "now", "--baseline=base", *wanted]) == 12


def test_a_run_without_a_gate_fails_by_its_cases_when_decided_again(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert numbers.run(model("two_wrong"), "--run=now").ret == 1
    monkeypatch.chdir(numbers.path)
    assert main(["gate", "now"]) == 1


def folder_of(suite: Suite) -> Path:
    return suite.runs()[-1]


def test_the_comment_stays_within_what_a_forge_takes(numbers: Suite) -> None:
    gates = [f"numbers[no_such_tag_{n}].exact_match >= 0.{n:04}" for n in range(800)]
    numbers.pytester.makepyprojecttoml(f"[tool.pytest]\nevalsuite_gates = {json.dumps(gates)}\n")
    result = numbers.run(model("good"))
    assert result.ret == 12
    assert len(numbers.report()) > 65_536
    comment = (folder_of(numbers) / "comment.md").read_text("utf-8")
    assert len(comment) < 60_000
    assert comment.startswith("# ⚠️ function:models:good: incomplete: no decision")
    assert "no case has the tag" in comment


def test_the_comment_holds_verdict_gates_changes_and_cost(baseline: Suite) -> None:
    baseline.run(model("ten_wrong"), GATE, "--baseline=base")
    comment = (folder_of(baseline) / "comment.md").read_text("utf-8")
    for words in ("# ❌", "a regression", "## This run", "| cost", "## Gates", "## Against base", "changed"):
        assert words in comment
    assert "Lowest scores" not in comment


def test_each_gate_and_comparison_is_a_test_of_its_own_in_junit(baseline: Suite) -> None:
    other = "--gate=numbers.exact_match >= 0.9"
    result = baseline.run(model("ten_wrong"), GATE, other, "--baseline=base", "--junit-xml=junit.xml")
    assert result.ret == 10
    cases = ET.parse(baseline.path / "junit.xml").iter("testcase")
    red = {
        case.get("name"): case.find("failure") is not None for case in cases if case.get("classname") != "test_numbers"
    }
    assert red == {"numbers.exact_match >= 0.5": False, "numbers.exact_match >= 0.9": True, "numbers.exact_match": True}


def test_the_last_line_of_a_red_run_counts_the_missed_gate(numbers: Suite, parallel: tuple[str, ...]) -> None:
    result = numbers.run(*parallel, model("ten_wrong"), "--gate=numbers.exact_match >= 0.9")
    result.stdout.fnmatch_lines(
        [
            "FAILED gates::numbers.exact_match >= 0.9 - missed: numbers.exact_match: 0*",
            "*1 failed, 30 passed, 10 xfailed*",
        ]
    )


def test_a_missed_gate_on_a_tag_is_named_as_it_was_written(numbers: Suite) -> None:
    result = numbers.run(model("ten_wrong"), "--gate=numbers[low].exact_match >= 0.99")
    result.stdout.fnmatch_lines(["FAILED gates::[[]numbers[[]low].exact_match >= 0.99] - missed: *"])


def test_after_a_missed_gate_lf_means_the_cases_behind_it(numbers: Suite) -> None:
    numbers.run(model("ten_wrong"), "--gate=numbers.exact_match >= 0.9")
    numbers.run(model("good"), "--lf")
    assert len(numbers.records()) == 10


def test_github_shows_a_missed_gate_beside_the_change(numbers: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = numbers.run(model("ten_wrong"), "--gate=numbers.exact_match >= 0.9")
    result.stdout.fnmatch_lines(
        ["::error title=evalsuite - a gate is missed::gate numbers.exact_match >= 0.9 is missed*"]
    )


def test_a_gate_on_a_misspelt_metric_ends_the_run_after_its_first_scored_case(
    numbers: Suite, parallel: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAST", "400")
    # A function of the user's declares nothing: what it scores is known when it has scored.
    scorer = "lambda sample, transcript: {'exact_match': float(transcript.answer == sample.target)}"
    numbers.pytester.makepyfile(test_numbers=NUMBERS.replace("exact_match()]", f"{scorer}]"))
    result = numbers.run(*parallel, model("good"), "--gate=numbers.exact_macth >= 0.5")
    assert result.ret == 12
    words = "no such metric; did you mean exact_match?"
    result.stdout.fnmatch_lines([f"*{words}*"])
    assert words in first_screen(numbers.rendered())
    assert len(numbers.records()) < 200


def test_a_misspelt_metric_of_declared_scorers_is_refused_before_anything_is_asked(numbers: Suite) -> None:
    result = numbers.run(model("good"), "-o", "evalsuite_gates=numbers.exact_macth >= 0.5")
    assert result.ret == 4
    assert "no such metric; did you mean exact_match?" in result.stderr.str()
    assert not numbers.runs()


def test_deciding_by_other_gates_leaves_what_the_run_decided(baseline: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = baseline.path / "reports" / "base"
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix in {".md", ".json", ".html"}}
    monkeypatch.chdir(baseline.path)
    assert main(["gate", "base", "--gate=numbers.exact_match >= 0.99"]) == 10
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_latency_cost_tokens_and_repeated_attempts_gate_like_scores(numbers: Suite) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    gates = ("latency_p95 <= 60", "cost <= 0", "tokens <= 1000", "pass_at_1 >= 0.5", "pass_hat_5 >= 0.6")
    free = "--price=function:models:one_slip=0/0"
    result = numbers.run(model("one_slip"), free, "test_repeated.py", *(f"--gate=repeated.{gate}" for gate in gates))
    assert result.ret == 10
    found = {one["subject"]: one["verdict"] for one in numbers.summary()["gates"]}
    assert found.pop("repeated.pass_hat_5") == "missed"
    assert set(found.values()) == {"met"}
