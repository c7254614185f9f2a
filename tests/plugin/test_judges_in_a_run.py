"""Judges in a real run: as scorers of any case, and judged themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

JUDGES = """
import json

def judge(messages):
    asked = messages[-1]["content"]
    if "number alone" in asked:
        return "1"
    if "Verdict" in asked:
        return "Verdict: 1"
    if "Score of answer" in asked:
        return "Score of answer 1: 7\\nScore of answer 2: 6"
    if "It is your turn to talk" in asked or "minutes" in messages[0]["content"]:
        return "Both have something."
    return "naturalness: 2, coherence: 3, engagingness: 1, groundedness: 1\\nclarity: 8"

def broken(messages):
    raise ValueError("this judge is broken")

def mute(messages):
    return "no comment"

def breathless(messages):
    if any("Is it short" in message["content"] for message in messages) and len(messages) > 2:
        return {"content": "Verdict: yes", "finish_reason": "stop"}
    return {"content": "Verdict: yes, as", "finish_reason": "length"}
"""
POEMS = """
from evalsuite import Sample, benchmark, generate
from evalsuite.judges import pairwise, panel

POEMS = [Sample(id="rain", input="Two lines about rain.", metadata={"old": "Rain, rain, go away."})]

@benchmark("poems", POEMS, solver=generate(), scorers=[
    panel(roles=["critic", "scientist"], strategy="one_by_one", turns=2, criteria=["clarity"]),
    pairwise("old").given(prefix="pair_"),
])
def test_poems(scores):
    assert scores["clarity"] == 8
    assert scores["pair_preference"] == 0.5
"""
CHAT_EVAL = """
from evalsuite import benchmark
from evalsuite.benchmarks.chat_eval import CHAT_EVAL

@benchmark(CHAT_EVAL)
def test_chat_eval(scores):
    assert scores["parsed"] == 1.0
"""
MODES = (
    "single",
    "mec",
    "weighted",
    "paper:single",
    "paper:one_by_one",
    "paper:simultaneous",
    "paper:simultaneous_summarizer",
)


@pytest.fixture
def judges(suite: Suite) -> Suite:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(judges=JUDGES)
    return suite


def test_a_panel_and_a_pair_judge_one_case_whatever_the_workers(judges: Suite, workers: tuple[str, ...]) -> None:
    judges.pytester.makepyfile(test_poems=POEMS)
    result = judges.run("--judge-model=function:judges:judge", *workers)
    result.assert_outcomes(passed=1)
    (record,) = judges.records()
    assert record["scores"] == {"clarity": 8.0, "pair_preference": 0.5}
    assert record["facts"]["calls"] == 2 * (1 + 1)
    assert record["facts"]["pair_"]["calls"] == 2
    assert record["usage"]["calls"] == 1 + 4 + 2
    assert record["judge_usage"]["calls"] == 4 + 2
    said = [entry["content"] for entry in record["logs"]["clarity"] if entry["role"] == "assistant"]
    assert said[:2] == ["Both have something."] * 2
    report = judges.report()
    assert "[critic, turn 1, order as given, function:judges:judge]" in report
    assert "Biases of function:judges:judge, pair" in report


def test_what_a_judge_used_is_told_apart_even_where_it_is_the_model_itself(judges: Suite) -> None:
    judges.pytester.makepyfile(test_poems=POEMS)
    judge = "function:judges:judge"
    judges.run(f"--model={judge}", f"--judge-model={judge}", model=False).assert_outcomes(passed=1)
    (record,) = judges.records()
    assert (record["usage"]["calls"], record["judge_usage"]["calls"]) == (1 + 4 + 2, 4 + 2)


def test_a_judge_that_cannot_be_read_is_an_error_and_never_a_score(judges: Suite) -> None:
    judges.pytester.makepyfile(test_poems=POEMS)
    result = judges.run("--judge-model=function:judges:mute")
    result.assert_outcomes(errors=1)
    (record,) = judges.records()
    assert (record["outcome"], record["cause"], record["scores"]) == ("error", "JudgeError", {})
    said = [entry["content"] for log in record["logs"].values() for entry in log]
    assert "no comment" in said, "what was paid for is kept"


HALF = """
from evalsuite import Sample, benchmark, exact_match, generate
from evalsuite.judges import pairwise, single

@benchmark("half", [Sample(id="rain", input="Rain", target="Rain")], solver=generate(), scorers=[
    single(["clarity"]), single(["depth"]), exact_match()])
def test_half(scores):
    assert scores["clarity"] == 8
"""


def test_a_judge_that_fails_takes_no_other_score_with_it(judges: Suite) -> None:
    judges.pytester.makepyfile(test_half=HALF)
    judges.run("--judge-model=function:judges:judge").assert_outcomes(errors=1)
    (record,) = judges.records()
    assert record["scores"] == {"clarity": 8.0, "exact_match": 1.0}
    assert record["outcome"] == "error"
    assert "depth" in record["error"]


CUT = """
from evalsuite import Sample, benchmark, generate, rubric

@benchmark("cut", [Sample(id="rain", input="Rain")], solver=generate(), scorers=[
    rubric("Is it short?", name="short"), rubric("Is it wet?", name="wet")])
def test_cut(scores):
    assert scores["short"] == 1.0
"""


def test_a_report_says_that_answers_of_the_judge_were_cut_off_read_or_not(judges: Suite) -> None:
    judges.pytester.makepyfile(test_cut=CUT)
    judges.run("--judge-model=function:judges:breathless").assert_outcomes(errors=1)
    (record,) = judges.records()
    assert record["scores"] == {"short": 1.0}
    assert record["facts"]["cut_off"] == 1 + 3
    assert "in 1 of 1 cases an answer of the judge was cut off at the limit on tokens" in judges.rendered()


def test_an_error_says_that_it_was_the_judge_who_could_not_be_asked(judges: Suite) -> None:
    judges.pytester.makepyfile(test_half=HALF)
    judges.run("--judge-model=function:judges:broken")
    (record,) = judges.records()
    assert record["error"].startswith("the judge function:judges:broken: ")
    assert record["cause"] == "RequestRefused" or record["cause"] == "CallFailed"


def test_a_scores_note_stands_in_the_line_that_says_why_a_case_failed(judges: Suite) -> None:
    judges.pytester.makepyfile(
        test_note="""
from evalsuite import Sample, Score, benchmark, generate

def noted(sample, transcript):
    return {"kind": Score(0.0, note="it names\\x1b[31m no source")}

@benchmark("noted", [Sample(id="a", input="x")], solver=generate(), scorers=[noted])
def test_noted(scores):
    assert scores["kind"] == 1.0
"""
    )
    result = judges.run()
    result.stdout.fnmatch_lines(["FAILED *assert 0.0 (it names*no source) == 1.0*"])
    (record,) = judges.records()
    assert "(it names" in record["error"]
    assert record["scores"] == {"kind": 0.0}


def test_every_mode_of_chat_eval_goes_through_to_the_report(judges: Suite) -> None:
    judges.pytester.makepyfile(test_chat_eval=CHAT_EVAL)
    judges.model = ("--model=function:judges:judge",)
    result = judges.run(*(f"--mode=chat_eval={mode}" for mode in MODES), "--gate=chat_eval.kappa <= 0.5")
    result.assert_outcomes(passed=len(MODES) * 12)
    report = judges.report()
    for mode in MODES:
        assert f"function:judges:judge, {mode}".replace("_", "\\_") in report
    assert judges.summary()["benchmarks"]["chat_eval"]["metrics"]["parsed"]["value"] == 1.0


def test_chat_evals_ballots_reach_the_tables_of_biases_and_agreement(judges: Suite) -> None:
    judges.pytester.makepyfile(test_chat_eval=CHAT_EVAL)
    judges.run("test_chat_eval.py", "--model=function:judges:judge", "--mode=chat_eval=paper:one_by_one", model=False)
    lines = judges.report().splitlines()
    (flips,) = (line for line in lines if "changes with the order" in line and line.startswith("|"))
    assert "100.0" in flips, "a judge that always prefers the first place changes each verdict with the order"
    assert any("all 2 judges" in line for line in lines)


TWO_WITHOUT_A_NAME = """
from evalsuite import Sample, benchmark, generate, rubric
from evalsuite.judges import panel

POEMS = [Sample("rain", "A line.", metadata={"old": "Rain.", "human": {"preference": "first", "clarity": 8}})]

@benchmark("poems", POEMS, solver=generate(), scorers=[rubric(compare="old"), panel(criteria=["clarity"])])
def test_poems(scores):
    pass
"""


def test_two_judges_without_a_name_both_keep_their_ballots_and_labels(
    judges: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    judges.pytester.makepyfile(test_poems=TWO_WITHOUT_A_NAME)
    judges.run("test_poems.py", "--judge-model=function:judges:judge", "--run=two")
    lines = [line for line in judges.report().splitlines() if line.startswith("|")]
    assert any("changes with the order" in line and "100.0" in line for line in lines)
    against_people = [line for line in lines if "function:judges:judge (" in line and "| 1 |" in " ".join(line.split())]
    assert [name for line in against_people for name in ("preference", "clarity") if name in line] == [
        "preference",
        "clarity",
    ]
    monkeypatch.chdir(judges.path)
    monkeypatch.syspath_prepend(judges.path)
    assert main(["judge", "two", "--judge=function:judges:judge", "--probes=0"]) == 0
    certificate = (judges.path / "reports" / "two" / "again" / "judge" / "certificate.md").read_text("utf-8")
    assert any("changes with the order" in line and "100.0" in line for line in certificate.splitlines())


def test_a_limit_takes_the_same_questions_in_every_mode(judges: Suite) -> None:
    judges.pytester.makepyfile(test_chat_eval=CHAT_EVAL)
    judges.model = ("--model=function:judges:judge",)
    modes = ("single", "paper:simultaneous:2roles:1turns", "mec")
    judges.run(*(f"--mode=chat_eval={mode}" for mode in modes), "--limit=8")
    asked: dict[str, list[str]] = {mode: [] for mode in modes}
    for record in judges.records():
        mode = record["tags"]["mode"]
        asked[mode].append(record["sample"].removesuffix(mode.replace(":", "-")))
    assert sorted(map(len, asked.values())) == [2, 3, 3], "eight of twelve questions in three modes"
    most = max(asked.values(), key=len)
    assert all(set(questions) <= set(most) for questions in asked.values())


def test_a_model_that_cannot_judge_has_no_verdict_which_gates_can_see(judges: Suite) -> None:
    judges.pytester.makepyfile(test_chat_eval=CHAT_EVAL)
    judges.model = ("--model=function:judges:mute",)
    assert judges.run("--gate=chat_eval.parsed >= 0.9").ret == 10
    assert {record["outcome"] for record in judges.records()} == {"failed"}
    # What cannot be correlated is no data, and a gate that lacks data is red.
    assert judges.run("--gate=chat_eval.spearman >= -1").ret == 12


def test_a_mode_that_is_none_is_refused_with_those_there_are(judges: Suite) -> None:
    judges.pytester.makepyfile(test_chat_eval=CHAT_EVAL)
    result = judges.run("--mode=chat_eval=paper:shouting", fresh=True)
    assert result.ret not in (0, 1)
    result.stdout.fnmatch_lines_random(["*paper:one_by_one: the paper's debate*"])


LABELLED = """
from evalsuite import Sample, benchmark, generate, rubric

SAMPLES = [
    Sample(f"{at}", f"Question {at}", metadata={"human": "yes" if at % 2 else "no"}) for at in range(6)
] + [Sample("new", "Another question")]

@benchmark("labelled", SAMPLES, solver=lambda sample, model: sample.id, scorers=[rubric("Is it odd?", name="odd")])
def test_labelled(scores):
    assert "odd" in scores
"""
ODD = """
import re

def odd(messages):
    answer = re.search(r'<answer key="\\w+">\\n(.*?)\\n</answer', messages[-1]["content"], re.S)[1]
    return "Verdict: " + ("yes" if answer in "135" else "no")

def stubborn(messages):
    return "Verdict: yes"
"""


@pytest.mark.parametrize(
    ("judge", "gate", "status"),
    [
        ("odd", "judge.kappa >= 0.9", 0),
        ("odd", "labelled.judge_accuracy >= 0.9", 0),
        ("odd", "judge.kappa >= 0.9 @95%", 10),
        ("stubborn", "judge.kappa >= 0.1", 10),
        ("odd", "labelled.corrected_odd >= 0.1", 12),
    ],
)
def test_a_gate_may_demand_that_the_judge_agrees_with_people(suite: Suite, judge: str, gate: str, status: int) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_labelled=LABELLED, odds=ODD)
    assert suite.run(f"--judge-model=function:odds:{judge}", f"--gate={gate}").ret == status
    assert "Judges against people" in suite.report()


def test_a_gate_on_the_judge_is_red_where_nobody_has_labelled_anything(suite: Suite) -> None:
    ran = suite.run("--gate=judge.kappa >= 0.6")
    assert ran.ret == 12
    assert "no case has both a judge's score and people's label" in ran.stdout.str()


CANARY = """
from pathlib import Path
from evalsuite import benchmark, load_samples, rubric

SAMPLES = load_samples(Path(__file__).with_name("canaries.csv"), id="id", target=None)

@benchmark("canary", SAMPLES, scorers=[rubric("Is it odd?", name="odd")], canary=True)
def test_canary(scores):
    assert "odd" in scores
"""
CANARIES = "id,input,answer,human\n" + "".join(f"{at},A number?,{at},{'yes' if at % 2 else '0'}\n" for at in range(6))


@pytest.fixture
def canaries(suite: Suite) -> Suite:
    suite.pytester.makepyfile(test_canary=CANARY, odds=ODD)
    (suite.path / "canaries.csv").write_text(CANARIES, "utf-8")
    return suite


def test_samples_with_a_tag_of_their_own_named_canary_keep_the_limit_and_are_compared(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_capitals="""
        import os
        from evalsuite import Sample, benchmark, contains
        SAMPLES = [Sample(number, "x", "right", tags={"canary": "guid"}) for number in range(40)]
        @benchmark("own", SAMPLES, solver=lambda sample, model: os.environ["ANSWER"], scorers=[contains()])
        def test_own(scores):
            scores["contains"]
        """
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANSWER", "right")
        suite.run("--run=base", "--limit=30").assert_outcomes(passed=30)
        patch.setenv("ANSWER", "wrong")
        assert suite.run("--limit=30", "--baseline=base").ret == 11


def test_canaries_say_when_the_judge_has_moved_since_the_baseline_whatever_the_workers(
    canaries: Suite, workers: tuple[str, ...]
) -> None:
    canaries.run("--run=base", "--judge-model=function:odds:odd", "--limit=1", *workers)
    assert sum(record["benchmark"] == "canary" for record in canaries.records("base")) == 6
    now = ("--run=now", "--judge-model=function:odds:stubborn", "--baseline=base", "--limit=1", *workers)
    canaries.run(*now, fresh=True)
    report = canaries.report("now")
    assert "canary.odd: 3 of 6 canaries are judged differently than in base" in report
    assert "agreement with people 50% after 100%" in report
    assert "the judge has changed" in report


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (CANARIES.replace(",yes", ",perhaps"), "has the label 'perhaps' under 'human'"),
        ('id,input,answer,human\n1,"A number?', "canaries.csv"),
    ],
    ids=["no label", "cut off"],
)
def test_canaries_in_a_malformed_file_are_refused_before_anything_is_asked(
    canaries: Suite, file: str, problem: str
) -> None:
    (canaries.path / "canaries.csv").write_text(file, "utf-8")
    result = canaries.run("--judge-model=function:odds:odd", fresh=True)
    assert result.ret not in (0, 1)
    shown = result.stdout.str() + result.stderr.str()
    assert problem in shown
    assert "INTERNALERROR" not in shown
    assert "Traceback" not in shown


def test_the_same_judge_moves_no_canary(canaries: Suite) -> None:
    canaries.run("--run=base", "--judge-model=function:odds:odd")
    canaries.run("--run=now", "--judge-model=function:odds:odd", "--baseline=base", fresh=True)
    assert "canaries are judged differently" not in canaries.report("now")
