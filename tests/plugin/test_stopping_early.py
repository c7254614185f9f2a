"""Runs that end once their gates are decided, and runs that go on until they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main
from tests.plugin.forty_numbers import CASES, GATE, NUMBERS, first_screen, model

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite


@pytest.mark.parametrize(
    ("name", "status", "verdict"), [("good", 0, "met"), ("all_wrong", 10, "missed")], ids=["met", "missed"]
)
def test_a_run_stops_as_soon_as_its_gates_are_decided_and_says_so_everywhere(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch, parallel: tuple[str, ...], name: str, status: int, verdict: str
) -> None:
    monkeypatch.setenv("LAST", "400")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(numbers.path / "step.md"))
    result = numbers.run(*parallel, model(name), GATE, "--until-decided")
    assert result.ret == status
    said = re.compile(r"stopped early, as every gate was decided: (\d+) of 400 cases ran, (\d+)% of them were saved")
    found = said.search(result.stdout.str())
    assert found
    assert 8 <= int(found[1]) < 200
    folder = numbers.runs()[-1]
    assert said.search(first_screen(numbers.rendered()))
    assert said.search(numbers.summary()["shortened"])
    assert said.search((folder / "comment.md").read_text("utf-8"))
    assert said.search((numbers.path / "step.md").read_text("utf-8"))
    assert len(numbers.records()) == int(found[1])
    gates = numbers.summary()["gates"]
    assert [(one["verdict"], one["reason"]) for one in gates] == [(verdict, "decided early")]
    assert main(["gate", str(folder)]) == status


def test_where_no_gate_is_ever_decided_all_cases_run(numbers: Suite, parallel: tuple[str, ...]) -> None:
    gate = "--gate=numbers.exact_match >= 0.9"
    result = numbers.run(*parallel, model("two_wrong"), gate, "--until-decided")
    assert result.ret == 0
    assert len(numbers.records()) == CASES
    assert not numbers.summary()["shortened"]


def test_scores_whose_declared_range_goes_beyond_one_decide_nothing_early(numbers: Suite) -> None:
    numbers.pytester.makepyfile(
        test_violations="""
        from evalsuite import Metric, Sample, benchmark, generate

        def violations(sample, transcript):
            return {"violations": 0.0}

        violations.metrics = {"violations": Metric(range=(0, 10), better="lower")}

        @benchmark("rules", [Sample(f"s{n}", f"{n}") for n in range(60)], solver=generate(), scorers=[violations])
        def test_rules(scores):
            pass
        """
    )
    gate = ("--only-gate=rules.violations <= 0.2", "--until-decided")
    assert numbers.run("test_violations.py", model("good"), *gate).ret == 0
    assert len(numbers.records()) == 60


def test_a_run_stops_only_when_all_its_gates_are_decided(numbers: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAST", "60")
    gates = (GATE, "--gate=numbers[high].exact_match >= 0.99")
    result = numbers.run(model("good"), *gates, "--until-decided")
    assert result.ret == 0
    assert len(numbers.records()) == 60


def test_a_run_that_may_stop_early_needs_a_gate_and_all_its_cases(numbers: Suite) -> None:
    for more, words in (
        ((), "*--until-decided needs a gate*"),
        ((GATE, "--shard=1/2"), "*--shard excludes --until-decided*"),
    ):
        result = numbers.run(model("good"), "--until-decided", *more)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([words])


def test_an_early_stop_passes_no_plain_test_over(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch, parallel: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LAST", "400")
    numbers.pytester.makepyfile(
        test_plain="import pytest\n@pytest.mark.parametrize('n', range(60))\ndef test_plain(n):\n    assert n < 59\n"
    )
    result = numbers.run(*parallel, model("good"), GATE, "--until-decided")
    assert result.ret == 1
    assert result.parseoutcomes()["failed"] == 1
    assert result.parseoutcomes()["passed"] == 59 + len(numbers.records())
    assert "of 400 cases ran" in numbers.summary()["shortened"]


def test_an_early_stop_hears_no_fast_answers_before_slow_ones(numbers: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAST", "160")
    numbers.pytester.makepyfile(
        models="""
import asyncio
async def fast_where_right(messages):
    text = messages[-1]["content"]
    right = int(text) * 7919 % 100 < 45
    await asyncio.sleep(0.0 if right else 0.1)
    return text if right else "no"
"""
    )
    result = numbers.run("-n", "2", model("fast_where_right"), GATE, "--until-decided")
    assert result.ret == 10
    assert numbers.summary()["gates"][0]["verdict"] == "missed"


def test_an_early_stop_waits_until_the_comparison_with_the_baseline_is_decided(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAST", "400")
    assert numbers.run(model("good"), "--run=base", GATE).ret == 0
    asked = (GATE, "--baseline=base", "--until-decided")
    assert numbers.run(model("good"), *asked).ret == 0
    assert len(numbers.records()) > 150  # the gate alone needs a dozen
    assert [one["verdict"] for one in numbers.summary()["baselines"][0]["metrics"]] == ["no worse"]
    numbers.pytester.makepyfile(
        models="def worse(messages):\n    text = messages[-1]['content']\n    return text if int(text) % 4 else 'no'\n"
    )
    assert numbers.run(model("worse"), *asked).ret == 11
    assert len(numbers.records()) < 300


def test_a_run_goes_on_with_more_epochs_until_its_gate_is_decided(numbers: Suite) -> None:
    # 30 of 40 are right: too few cases for 0.6 as a sequence sees it, but not three times as many.
    options = (model("ten_wrong"), "--until-decided", "--max-cost=1")
    result = numbers.run(*options, "--gate=numbers.exact_match >= 0.6")
    assert result.ret == 0
    epochs = [record["epoch"] for record in numbers.records()]
    assert epochs.count(1) == 40
    assert 0 < epochs.count(2) < 41
    assert max(epochs) <= 5
    assert "went on until every gate was decided: 40 planned cases and" in first_screen(numbers.rendered())


def test_a_run_asks_no_more_epochs_where_these_would_decide_nothing(numbers: Suite, parallel: tuple[str, ...]) -> None:
    # At a confidence only the first epoch of a sample is evidence.
    options = (*parallel, model("ten_wrong"), "--until-decided", "--max-cost=1", "--epochs=9")
    result = numbers.run(*options, "--gate=numbers.exact_match >= 0.6 @95%")
    assert result.ret == 10
    assert 40 <= len(numbers.records()) < 160
    words = first_screen(numbers.rendered())
    assert "stopped, as more epochs would decide nothing more" in words
    assert "decided by these: numbers.exact_match >= 0.6 @95%" in words


def test_a_run_goes_on_beyond_its_limit_and_then_with_epochs_until_its_gate_is_decided(
    numbers: Suite, parallel: tuple[str, ...]
) -> None:
    numbers.run(model("good"), "--limit=10", "--run=few")
    chosen = {record["sample"] for record in numbers.records()}
    options = (*parallel, model("ten_wrong"), "--until-decided", "--max-cost=1", "--limit=10", "--run=more")
    result = numbers.run(*options, "--gate=numbers.exact_match >= 0.6")
    assert result.ret == 0
    records = numbers.records()
    epochs = [record["epoch"] for record in records]
    assert epochs.count(1) == 40
    assert epochs.count(2) > 0
    # The second worker begins in the middle, so how far it comes until then is a matter of its speed.
    assert parallel or max(epochs) < 5
    assert chosen <= {record["sample"] for record in records}
    assert "went on until every gate was decided: 10 planned cases and" in first_screen(numbers.rendered())


def test_a_run_keeps_to_its_limit_where_more_samples_would_decide_nothing(numbers: Suite) -> None:
    # Nothing is certain at every look of scores that nothing bounds.
    scorer = "lambda sample, transcript: {'marks': 7.0 + (transcript.answer == sample.target)}"
    suite = NUMBERS.replace("exact_match()]", f"{scorer}]").replace('"exact_match"] == 1.0', '"marks"] == 8.0')
    numbers.pytester.makepyfile(test_numbers=suite)
    options = (model("ten_wrong"), "--until-decided", "--max-cost=1", "--limit=10", "--max-connections=2")
    result = numbers.run(*options, "--gate=numbers.marks >= 7.2")
    assert 10 <= len(numbers.records()) < 20
    words = first_screen(numbers.rendered())
    assert "stopped, as more samples than --limit would decide nothing more" in words
    assert result.ret in {0, 10}


def test_the_former_option_works_and_names_the_present_one(numbers: Suite) -> None:
    result = numbers.run(model("good"), "--stop-when-decided", GATE)
    assert result.ret == 0
    assert "evalsuite: --stop-when-decided is --until-decided now" in result.stdout.str() + result.stderr.str()
    assert "--stop-when-decided" not in numbers.run("--help").stdout.str()


def test_without_a_spend_limit_no_further_epoch_or_sample_is_asked(numbers: Suite) -> None:
    result = numbers.run(model("ten_wrong"), "--until-decided", "--limit=10", "--gate=numbers.exact_match >= 0.75")
    assert result.ret in {0, 10}
    assert len(numbers.records()) <= 10
