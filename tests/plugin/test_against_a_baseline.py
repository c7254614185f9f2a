"""A release held against an earlier run: what is worse, what is not, and what cannot be told."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from evalsuite.cli import main
from tests.plugin.forty_numbers import GATE, NUMBERS, first_screen, model

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite


def test_a_run_that_is_no_worse_than_its_baseline_ends_with_status_0(baseline: Suite) -> None:
    result = baseline.run(model("good"), GATE, "--baseline=base", "--gate=* no worse than base by 0.2")
    assert result.ret == 0
    assert "✅ no worse" in baseline.report()
    assert [one["verdict"] for one in baseline.summary()["baselines"][0]["metrics"]] == ["no worse"]


def test_a_regression_ends_with_status_11_and_the_first_screen_says_why(
    baseline: Suite, parallel: tuple[str, ...]
) -> None:
    result = baseline.run(*parallel, model("ten_wrong"), GATE, "--baseline=base")
    assert result.ret == 11
    reason = "numbers.exact_match is worse than in base: 0.75 after 0.95 (p = 0.0078)"
    result.stdout.fnmatch_lines([f"*{reason}*", "*a regression (exit status 11)*"])
    assert reason in first_screen(baseline.rendered())
    assert reason in baseline.summary()["reasons"]


def test_a_run_is_held_against_each_of_several_baselines(baseline: Suite) -> None:
    baseline.run(model("ten_wrong"), GATE, "--run=recent")
    both = ("--baseline=base", "--baseline=recent", "--junitxml=junit.xml")
    result = baseline.run(model("ten_wrong"), GATE, *both)
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*numbers.exact_match is worse than in base*", "*is undecided against recent*"])
    assert [against["baseline"] for against in baseline.summary()["baselines"]] == ["base", "recent"]
    assert all(f"## Against {name}" in baseline.report() for name in ("base", "recent"))
    cases = {case.get("name"): case for case in ET.parse(baseline.path / "junit.xml").iter("testcase")}
    assert cases["numbers.exact_match against base"].find("failure") is not None
    assert cases["numbers.exact_match against recent"].find("failure") is None


def test_an_undecided_comparison_stays_green_and_says_what_could_have_been_shown(baseline: Suite) -> None:
    result = baseline.run(model("two_wrong"), GATE, "--baseline=base")
    assert result.ret == 0
    remark = "numbers.exact_match is undecided against base: 0.95 after 0.95; 40 cases could have shown"
    result.stdout.fnmatch_lines([f"*{remark} a loss of 0.* or more (power 80%)*"])
    assert remark in first_screen(baseline.rendered())
    found = baseline.summary()["baselines"][0]["metrics"][0]
    assert 0.02 < found["detectable"] < 0.3
    assert "equal models fail" in baseline.report()


NO_WORSE = "--gate=exact_match no worse than base by"


def test_a_gate_may_demand_that_a_run_is_no_worse_than_a_baseline(baseline: Suite, parallel: tuple[str, ...]) -> None:
    met = baseline.run(*parallel, model("good"), f"{NO_WORSE} 0.2")
    assert met.ret == 0
    met.stdout.fnmatch_lines(["*passed (exit status 0)*"])
    assert "exact_match no worse than base by 0.2" in baseline.report()
    missed = baseline.run(*parallel, model("all_wrong"), f"{NO_WORSE} 20%")
    assert missed.ret == 10
    missed.stdout.fnmatch_lines(
        ["*missed  exact_match no worse than base by 20%   numbers.exact_match: -0.9500 *after 0.95*"]
    )


def test_a_gate_against_a_baseline_has_no_data_where_too_few_cases_were_asked(baseline: Suite) -> None:
    result = baseline.run(model("two_wrong"), f"{NO_WORSE} 0.02")
    assert result.ret == 12
    result.stdout.re_match_lines([r".*no data  .*too few cases to see a loss of 0\.02 \(they see .*\): \d+ needed"])


def test_a_gate_against_a_baseline_that_nobody_named_is_told(
    baseline: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    result = baseline.run(model("good"), "--gate=exact_match no worse than nowhere by 0.2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*nowhere*"])
    assert baseline.run(model("good"), "--gate=exact_match no worse than baseline").ret == 12
    assert "no --baseline is given" in baseline.report()
    assert main(["gate", str(baseline.runs()[-1]), "--gate", "numbers.exact_match no worse than base by 0.3"]) == 0
    assert "met  numbers.exact_match no worse than base by 0.3" in capsys.readouterr().out
    refused = baseline.run(model("good"), f"{NO_WORSE} 2")
    assert refused.ret == 4
    refused.stderr.fnmatch_lines(["*a loss of 2 is no less than the whole range of exact_match*"])


def test_where_no_loss_could_have_been_shown_the_summary_stays_json(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAST", "3")
    numbers.run(model("good"), GATE, "--run=base")
    result = numbers.run(model("good"), GATE, "--baseline=base")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*3 cases could have shown no loss at all*"])
    text = (numbers.runs()[-1] / "summary.json").read_text("utf-8")
    assert not re.search(r"\b(Infinity|NaN)\b", text)
    assert json.loads(text)["baselines"][0]["metrics"][0]["detectable"] is None


def test_a_lower_is_better_gate_takes_a_rise_for_the_loss(baseline: Suite) -> None:
    gate = "--gate=numbers.exact_match <= 1"
    rise = "--gate=* no worse than base by 0.2"
    assert baseline.run(model("ten_wrong"), gate, "--baseline=base", rise).ret == 0


def test_cases_on_one_side_only_are_listed_and_left_out(numbers: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers.run(model("good"), GATE, "--run=base")
    monkeypatch.setenv("FIRST", "2")
    monkeypatch.setenv("LAST", "43")
    assert numbers.run(model("good"), GATE, "--baseline=base").ret == 0
    case = "test_numbers.py::test_numbers[{}]"
    assert numbers.summary()["baselines"][0]["left_out"] == {
        "only in the baseline": [case.format(name) for name in ("000", "001")],
        "only in this run": [case.format(name) for name in ("040", "041", "042")],
    }
    assert numbers.summary()["baselines"][0]["metrics"][0]["n"] == 38
    assert "Left out: 2 cases only in the baseline" in numbers.report()


def test_cases_that_changed_are_listed_the_greatest_losses_first(numbers: Suite) -> None:
    numbers.pytester.makepyfile(
        models="""
def before(messages):
    return {"0": "no", "1": "1", "2": "2 3"}.get(messages[-1]["content"], "no")
def after(messages):
    return {"0": "0", "1": "1 3", "2": "no"}.get(messages[-1]["content"], "no")
""",
        test_numbers=NUMBERS.replace("exact_match, generate", "generate, scorers")
        .replace("exact_match()", "scorers.token_f1()")
        .replace("exact_match", "token_f1")
        .replace('"LAST", 40', '"LAST", 3'),
    )
    numbers.run(model("before"), "--run=base", "--gate=numbers.token_f1 >= 0")
    numbers.run(model("after"), "--baseline=base", "--gate=numbers.token_f1 >= 0")
    listed = numbers.report().split("### Cases that changed, the greatest losses first")[1].split("##")[0]
    assert re.findall(r"\\\[(\d+)\\\]", listed) == ["002", "001", "000"]


def test_without_gates_the_first_metric_is_compared(baseline: Suite) -> None:
    assert baseline.run(model("ten_wrong"), "--baseline=base").ret == 11


def test_a_missed_gate_outranks_a_regression(baseline: Suite) -> None:
    gate = "--gate=numbers.exact_match >= 0.9"
    assert baseline.run(model("ten_wrong"), gate, "--baseline=base").ret == 10
    assert "is worse than in base" in first_screen(baseline.rendered())


def test_a_baseline_may_be_a_folder_with_little_more_than_its_records(baseline: Suite) -> None:
    kept = baseline.path / "kept"
    kept.mkdir()
    for name in ("records.jsonl", "run.json", "summary.json"):
        (baseline.path / "reports" / "base" / name).rename(kept / name)
    for name in ("kept", "kept/summary.json"):
        assert baseline.run(model("ten_wrong"), GATE, f"--baseline={name}").ret == 11


@pytest.mark.parametrize(
    ("breaking", "words"),
    [
        (lambda folder: None, "no run 'lost' in *; the newest there: base"),
        (lambda folder: (folder / "run.json").write_text('{"version": 1}'), "records.jsonl cannot be read"),
        (lambda folder: (folder / "records.jsonl").write_text("{}\n"), "line 1: not a record"),
    ],
    ids=["missing", "without records", "damaged"],
)
def test_a_baseline_that_cannot_be_read_is_one_message_before_anything_is_asked(
    baseline: Suite, breaking: object, words: str
) -> None:
    assert callable(breaking)
    folder = baseline.path / "reports" / "lost"
    if "newest" not in words:
        folder.mkdir()
        breaking(folder)
    before = baseline.runs()
    result = baseline.run(model("good"), GATE, "--baseline=lost")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{words}*"])
    assert baseline.runs() == before


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("-oevalsuite_max_error_share=1.5", "evalsuite_max_error_share 1.5: "),
        ("--gate=* no worse than base by 2", "for all metrics the loss is a share of their ranges"),
        ("-oevalsuite_max_regression=0.1", "evalsuite_max_regression is gone: write the gate '[*] no worse than"),
        ("--on-undecided=fail", "evalsuite_on_undecided is gone: write the gate '[*] no worse than baseline'"),
        ("-oevalsuite_margins=quality=0.1", "evalsuite_margin is gone: write the gate 'quality no worse than"),
    ],
)
def test_a_loss_or_share_that_makes_no_sense_stops_the_session_before_it_begins(
    numbers: Suite, option: str, words: str
) -> None:
    result = numbers.run(model("good"), option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{words}*"])


def test_a_former_setting_in_the_ini_file_is_refused_with_the_gate_in_its_place(numbers: Suite) -> None:
    numbers.pytester.makepyprojecttoml('[tool.pytest]\nevalsuite_on_undecided = "fail"\n')
    result = numbers.run(model("good"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*evalsuite_on_undecided is gone: write the gate '[*] no worse than baseline'*"])


def test_a_scorer_in_place_of_another_is_not_compared_unless_it_was_accepted(
    baseline: Suite, parallel: tuple[str, ...]
) -> None:
    always = """
def always(sample, transcript):
    return {"exact_match": 1.0}
"""
    text = NUMBERS.replace("exact_match()", "always").replace("FIRST,", f"{always}\nFIRST,", 1)
    baseline.pytester.makepyfile(test_numbers=text)
    options = (*parallel, model("all_wrong"), GATE, "--baseline=base")
    result = baseline.run(*options)
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*scorers of 40 of 40 questions have changed*evalsuite_accept_changes=scorers*"])
    assert baseline.run(*options, "-oevalsuite_accept_changes=scorers").ret == 0
    refused = baseline.run(*options, "-oevalsuite_accept_changes=weather")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*evalsuite_accept_changes weather: write one or more of scorers, prompt, params*"])
