"""A release decided in CI: against a baseline, over epochs, before all cases ran, and over several machines."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from evalsuite.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.conftest import Suite

CASES = 40
NUMBERS = """
import os
from evalsuite import Sample, benchmark, exact_match, generate

FIRST, LAST = int(os.environ.get("FIRST", 0)), int(os.environ.get("LAST", 40))
SAMPLES = [
    Sample(id=f"{n:03}", input=str(n), target=str(n), tags={"half": "low" if n < 20 else "high"})
    for n in range(FIRST, LAST)
]

@benchmark("numbers", SAMPLES, solver=generate(), scorers=[exact_match()])
def test_numbers(scores):
    assert scores["exact_match"] == 1.0
"""
MODELS = """
from collections import Counter

asked = Counter()

def answer(messages):
    return messages[-1]["content"]

def wrong_below(limit):
    return lambda messages: "no" if int(answer(messages)) < limit else answer(messages)

def wrong_at_first(times):
    def model(messages):
        text = answer(messages)
        asked[text] += 1
        return "no" if asked[text] <= times and int(text) % 2 else text
    return model

good, two_wrong, ten_wrong, all_wrong = map(wrong_below, (0, 2, 10, 1000))
one_slip, two_slips = map(wrong_at_first, (1, 2))
"""
REPEATED = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=f"s{n}", input=str(n), target=str(n)) for n in range(100, 104)]

@benchmark("repeated", SAMPLES, solver=generate(), scorers=[exact_match()], epochs=5, at_least=4)
def test_repeated(scores):
    assert scores["exact_match"] == 1.0
"""
GATE = "--gate=numbers.exact_match >= 0.5"


@pytest.fixture
def numbers(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Forty numbers, which models say after us more or less well."""
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_numbers=NUMBERS, models=MODELS)
    suite.model = ()
    for name in ("FIRST", "LAST"):
        monkeypatch.delenv(name, raising=False)
    return suite


@pytest.fixture(params=[(), ("-n", "2")], ids=["plain", "n2"])
def parallel(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """In one process, and with two workers."""
    chosen: tuple[str, ...] = request.param
    return chosen


def model(name: str) -> str:
    return f"--model=function:models:{name}"


def first_screen(text: str) -> str:
    return text.split("## This run", maxsplit=1)[0]


# Against a baseline.


@pytest.fixture
def baseline(numbers: Suite) -> Suite:
    """The same with a run named `base` in which two answers are wrong."""
    assert numbers.run(model("two_wrong"), "--run=base", GATE).ret == 0
    return numbers


def test_a_run_that_is_no_worse_than_its_baseline_ends_with_status_0(baseline: Suite) -> None:
    result = baseline.run(model("good"), GATE, "--baseline=base", "--max-regression=0.2")
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
    result.stdout.fnmatch_lines(
        ["*numbers.exact_match is worse than in base*", "*is undecided against recent*"]
    )
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
    assert baseline.run(model("ten_wrong"), gate, "--baseline=base", "--max-regression=0.2").ret == 0


def test_cases_on_one_side_only_are_listed_and_left_out(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        test_numbers=NUMBERS.replace("exact_match", "token_f1").replace('"LAST", 40', '"LAST", 3'),
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


@pytest.mark.parametrize("option", ["--max-regression=0", "--max-regression=1", "--max-error-share=1.5"])
def test_a_margin_or_share_out_of_range_stops_the_session_before_it_begins(
    numbers: Suite, option: str
) -> None:
    result = numbers.run(model("good"), option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{option.split('=', maxsplit=1)[0]} *"])


def test_a_margin_of_a_metric_that_nothing_has_is_refused_before_a_case_is_paid(numbers: Suite) -> None:
    result = numbers.run(model("good"), "--margin=exact_macth=0.1")
    assert result.ret != 0
    result.stderr.fnmatch_lines(["*--margin exact_macth=0.1: no such metric; did you mean exact_match*"])


# Epochs.


def test_a_sample_holds_in_at_least_k_of_its_n_epochs(numbers: Suite, parallel: tuple[str, ...]) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    result = numbers.run(*parallel, model("one_slip"), "test_repeated.py")
    result.assert_outcomes(passed=18, xfailed=2)
    assert result.ret == 0


def test_a_sample_that_holds_in_too_few_epochs_fails_the_run(
    numbers: Suite, parallel: tuple[str, ...]
) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    result = numbers.run(*parallel, model("two_slips"), "test_repeated.py")
    result.assert_outcomes(passed=16, xfailed=4)
    assert result.ret == 1
    reason = (
        "repeated, which no gate covers: 2 samples with too few epochs that hold (s101, s103) among 20 cases"
    )
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


# Stopping early.


@pytest.mark.parametrize(
    ("name", "status", "verdict"), [("good", 0, "met"), ("all_wrong", 10, "missed")], ids=["met", "missed"]
)
def test_a_run_stops_as_soon_as_its_gates_are_decided_and_says_so_everywhere(
    numbers: Suite,
    monkeypatch: pytest.MonkeyPatch,
    parallel: tuple[str, ...],
    name: str,
    status: int,
    verdict: str,
) -> None:
    monkeypatch.setenv("LAST", "400")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(numbers.path / "step.md"))
    result = numbers.run(*parallel, model(name), GATE, "--stop-when-decided")
    assert result.ret == status
    said = re.compile(
        r"stopped early, as every gate was decided: (\d+) of 400 cases ran, (\d+)% of them were saved"
    )
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
    result = numbers.run(*parallel, model("two_wrong"), gate, "--stop-when-decided")
    assert result.ret == 0
    assert len(numbers.records()) == CASES
    assert not numbers.summary()["shortened"]


def test_a_run_stops_only_when_all_its_gates_are_decided(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAST", "60")
    gates = (GATE, "--gate=numbers[high].exact_match >= 0.99")
    result = numbers.run(model("good"), *gates, "--stop-when-decided")
    assert result.ret == 0
    assert len(numbers.records()) == 60


def test_a_run_that_may_stop_early_needs_a_gate_and_all_its_cases(numbers: Suite) -> None:
    for more, words in (
        ((), "*--stop-when-decided needs a gate*"),
        ((GATE, "--shard=1/2"), "*--shard excludes --stop-when-decided*"),
    ):
        result = numbers.run(model("good"), "--stop-when-decided", *more)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([words])


def test_an_early_stop_passes_no_plain_test_over(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch, parallel: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LAST", "400")
    numbers.pytester.makepyfile(
        test_plain="import pytest\n@pytest.mark.parametrize('n', range(60))\ndef test_plain(n):\n    assert n < 59\n"
    )
    result = numbers.run(*parallel, model("good"), GATE, "--stop-when-decided")
    assert result.ret == 1
    assert result.parseoutcomes()["failed"] == 1
    assert result.parseoutcomes()["passed"] == 59 + len(numbers.records())
    assert "of 400 cases ran" in numbers.summary()["shortened"]


def test_an_early_stop_hears_no_fast_answers_before_slow_ones(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    result = numbers.run("-n", "2", model("fast_where_right"), GATE, "--stop-when-decided")
    assert result.ret == 10
    assert numbers.summary()["gates"][0]["verdict"] == "missed"


def test_an_early_stop_waits_until_the_comparison_with_the_baseline_is_decided(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAST", "400")
    assert numbers.run(model("good"), "--run=base", GATE).ret == 0
    asked = (GATE, "--baseline=base", "--stop-when-decided")
    assert numbers.run(model("good"), *asked).ret == 0
    assert len(numbers.records()) > 150  # the gate alone needs a dozen
    assert [one["verdict"] for one in numbers.summary()["baselines"][0]["metrics"]] == ["no worse"]
    numbers.pytester.makepyfile(
        models="def worse(messages):\n    text = messages[-1]['content']\n    return text if int(text) % 4 else 'no'\n"
    )
    assert numbers.run(model("worse"), *asked).ret == 11
    assert len(numbers.records()) < 300


# Shards.


def same_but_for_time_and_name(report: str) -> list[str]:
    passing = r"^(\| date|\| wall time|`pytest|Made with)|^\|[- ]+\|"
    return [line for line in report.splitlines() if not re.search(passing, line)]


def shard(suite: Suite, part: int, of: int, *args: str) -> str:
    name = f"part{part}"
    suite.run(*args, f"--shard={part}/{of}", f"--run={name}")
    return name


def test_the_joined_report_of_shards_is_that_of_the_whole_run(
    numbers: Suite, parallel: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    asked = (model("ten_wrong"), GATE, "--gate=numbers[low].exact_match >= 0.9")
    assert numbers.run(*parallel, *asked, "--run=whole").ret == 10
    parts = [shard(numbers, part, 3, *asked) for part in (1, 2, 3)]
    monkeypatch.chdir(numbers.path)
    assert main(["merge", *parts, "--to=joined"]) == 0
    assert same_but_for_time_and_name(numbers.report("joined")) == same_but_for_time_and_name(
        numbers.report("whole")
    )
    cases = [record["case"] for part in parts for record in numbers.records(part)]
    assert len(cases) == len(set(cases)) == CASES + 20
    assert main(["gate", "joined"]) == 10


def test_a_shard_decides_no_gate_and_says_so(numbers: Suite) -> None:
    result = numbers.run(model("all_wrong"), GATE, "--shard=1/2")
    assert result.ret == 0
    words = "shard 1/2: gates are decided when `evalsuite merge` has joined all shards"
    result.stdout.fnmatch_lines([f"*{words}*"])
    assert words in first_screen(numbers.rendered())
    assert not numbers.summary()["gates"]


def test_the_epochs_of_a_sample_stay_in_one_shard(numbers: Suite) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    for part in (1, 2):
        result = numbers.run(model("one_slip"), f"--shard={part}/2", "test_repeated.py")
        assert result.ret == 0
        assert len(numbers.records()) == 10
        assert len({record["sample"] for record in numbers.records()}) == 2


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (["part1"], "shard 2/2 is missing"),
        (["part1", "part1"], "shard 2/2 is missing"),
        (["part1", "whole"], "is no shard"),
        (["part1", "other"], "was run with another model than"),
    ],
)
def test_what_is_not_one_run_is_not_merged(
    numbers: Suite,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    parts: list[str],
    words: str,
) -> None:
    shard(numbers, 1, 2, model("good"))
    numbers.run(model("good"), "--run=whole")
    numbers.run(model("two_wrong"), "--shard=2/2", "--run=other")
    monkeypatch.chdir(numbers.path)
    capsys.readouterr()
    assert main(["merge", *parts, "--to=joined"]) == 2
    assert words in capsys.readouterr().err
    assert not (numbers.path / "reports" / "joined").exists()


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b"])
def test_a_shard_that_is_none_is_refused(numbers: Suite, text: str) -> None:
    result = numbers.run(model("good"), f"--shard={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--shard {text}: write K/N*"])


# Deciding again, and what is posted.


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


def test_deciding_again_says_what_stays_undecided_and_can_be_told_to_fail_on_it(
    baseline: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline.run(model("two_wrong"), "--run=now", GATE)
    monkeypatch.chdir(baseline.path)
    capsys.readouterr()
    assert main(["gate", "now", "--baseline=base", "--baseline=base"]) == 0
    assert capsys.readouterr().out.count("is undecided against base: 0.95 after 0.95") == 1
    assert main(["gate", "now", "--baseline=base", "--on-undecided=fail"]) == 11


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


# As CI shows it.


def test_each_gate_and_comparison_is_a_test_of_its_own_in_junit(baseline: Suite) -> None:
    other = "--gate=numbers.exact_match >= 0.9"
    result = baseline.run(model("ten_wrong"), GATE, other, "--baseline=base", "--junit-xml=junit.xml")
    assert result.ret == 10
    cases = ET.parse(baseline.path / "junit.xml").iter("testcase")
    red = {
        case.get("name"): case.find("failure") is not None
        for case in cases
        if case.get("classname") != "test_numbers"
    }
    assert red == {
        "numbers.exact_match >= 0.5": False,
        "numbers.exact_match >= 0.9": True,
        "numbers.exact_match": True,
    }


def test_the_last_line_of_a_red_run_counts_the_missed_gate(numbers: Suite, parallel: tuple[str, ...]) -> None:
    result = numbers.run(*parallel, model("ten_wrong"), "--gate=numbers.exact_match >= 0.9")
    result.stdout.fnmatch_lines(
        [
            "FAILED gates::numbers.exact_match >= 0.9 - missed: numbers.exact_match: 0*",
            "*1 failed, 30 passed, 10 xfailed*",
        ]
    )


def test_after_a_missed_gate_lf_means_the_cases_behind_it(numbers: Suite) -> None:
    numbers.run(model("ten_wrong"), "--gate=numbers.exact_match >= 0.9")
    numbers.run(model("good"), "--lf")
    assert len(numbers.records()) == 10


def test_github_shows_a_missed_gate_beside_the_change(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_run_asks_no_more_epochs_where_these_would_decide_nothing(
    numbers: Suite, parallel: tuple[str, ...]
) -> None:
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
    suite = NUMBERS.replace("exact_match()]", f"{scorer}]").replace(
        '"exact_match"] == 1.0', '"marks"] == 8.0'
    )
    numbers.pytester.makepyfile(test_numbers=suite)
    options = (model("ten_wrong"), "--until-decided", "--max-cost=1", "--limit=10", "--max-connections=2")
    result = numbers.run(*options, "--gate=numbers.marks >= 7.2")
    assert 10 <= len(numbers.records()) < 20
    words = first_screen(numbers.rendered())
    assert "stopped, as more samples than --limit would decide nothing more" in words
    assert result.ret in {0, 10}


def test_going_on_needs_a_bound_on_the_money(numbers: Suite) -> None:
    result = numbers.run(model("good"), "--until-decided", GATE)
    assert result.ret == 4
    assert "--until-decided needs --max-cost" in result.stderr.str()


def test_deciding_by_other_gates_leaves_what_the_run_decided(
    baseline: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = baseline.path / "reports" / "base"
    before = {
        file.name: file.read_bytes() for file in folder.iterdir() if file.suffix in {".md", ".json", ".html"}
    }
    monkeypatch.chdir(baseline.path)
    assert main(["gate", "base", "--gate=numbers.exact_match >= 0.99"]) == 10
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_latency_cost_tokens_and_repeated_attempts_gate_like_scores(numbers: Suite) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    gates = ("latency_p95 <= 60", "cost <= 0", "tokens <= 1000", "pass_at_1 >= 0.5", "pass_hat_5 >= 0.6")
    result = numbers.run(
        model("one_slip"), "test_repeated.py", *(f"--gate=repeated.{gate}" for gate in gates)
    )
    assert result.ret == 10
    found = {one["subject"]: one["verdict"] for one in numbers.summary()["gates"]}
    assert found.pop("repeated.pass_hat_5") == "missed"
    assert set(found.values()) == {"met"}
