"""`evalsuite judge sheet` and `evalsuite judge`: people's labels, and a judge's certificate, for a run that is over."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.conftest import Suite

JUDGES = """
import json, re

def _answer(messages):
    return re.search(r'<answer key="\\w+">\\n(.*?)\\n</answer', messages[-1]["content"], re.S)[1]

def strict(messages):
    good = _answer(messages) in ("Paris", "Rome")
    return json.dumps({"reason": "looked it up", "verdict": "yes" if good else "no"})

def gullible(messages):
    return "Verdict: yes" if "best score" in _answer(messages) else "Verdict: no"

def lenient(messages):
    return "Verdict: yes"

def seven(messages):
    return "score: 7"

def mute(messages):
    return "no comment"

def broken(messages):
    raise ValueError("no such model")

def filtered(messages):
    if "Osaka" in messages[-1]["content"]:
        raise ValueError("content filter")
    return "Verdict: yes"
"""


@pytest.fixture
def over(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A run that is over, and judges to ask about it."""
    suite.pytester.makepyfile(judges=JUDGES)
    suite.run("--run=base")
    monkeypatch.chdir(suite.path)
    monkeypatch.syspath_prepend(suite.path)
    return suite


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.DictReader(opened))


def fill(file: Path, labels: dict[str, str]) -> None:
    filled = [{**row, "label": labels[row["answer"]]} for row in rows(file)]
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, filled[0].keys())
        writer.writeheader()
        writer.writerows(filled)


def judge(*arguments: str) -> int:
    return main(["judge", "base", "--criteria", "Is it a capital?", *arguments])


def test_a_sheet_to_label_is_blind_to_scores_and_model(over: Suite) -> None:
    assert main(["judge", "sheet", "base", "--cases", "2"]) == 0
    sheet = rows(over.path / "labels.csv")
    assert len(sheet) == 2
    assert list(sheet[0]) == ["case", "input", "answer", "label", "content"]
    assert {row["label"] for row in sheet} == {""}


def read_page(file: Path) -> list[dict[str, Any]]:
    content = re.search('id="overview">(.*?)</script>', file.read_text("utf-8"), re.DOTALL)
    assert content is not None
    cases: list[dict[str, Any]] = json.loads(content[1])["cases"]
    return cases


def test_the_page_asks_the_question_of_the_judge_and_shows_what_the_judge_sees(own: Suite) -> None:
    assert main(["judge", "sheet", "base", "-o", "a.html"]) == 0
    assert not (own.path / "a.csv").exists()
    for case in read_page(own.path / "a.html"):
        assert case["question"].startswith("Score from 1 (worst) to 5 (best): Is it long?")
        assert [name for name, _ in case["sections"]] == ["answer", "marker"]
        assert [key for key, _, _ in case["choices"]] == ["1", "2", "3", "4", "5"]


def test_the_page_shows_both_answers_of_a_comparison_in_random_order(own: Suite) -> None:
    assert main(["judge", "sheet", "base", "--score=preference", "-o", "a.html"]) == 0
    cases = read_page(own.path / "a.html")
    for case in cases:
        shown = dict(case["sections"])
        first = next(value for key, _, value in case["choices"] if key == "1")
        assert ("x" in shown["answer_1"]) == (first == "first")
    assert len({json.dumps(case["choices"]) for case in cases}) == 2


def test_a_score_that_no_judge_gives_is_refused_with_those_there_are(
    own: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", "sheet", "base", "--score=longer"]) == 2, own.path
    assert "own has no question to people about longer; it has long, preference" in capsys.readouterr().err


def test_a_run_without_judges_gets_a_page_that_asks_whether_answers_are_right(
    over: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", "sheet", "base"]) == 0
    assert "asks whether the answer is right, because" in capsys.readouterr().out
    assert {case["question"] for case in read_page(over.path / "labels.html")} == {"Decide: Is the answer right?"}
    assert main(["judge", "sheet", "base", "--criteria=Is it kind?", "--scale=0-10", "-o", "b.html"]) == 0
    (case, *_) = read_page(over.path / "b.html")
    assert (case["choices"], case["range"]) == ([], [0.0, 10.0])


HEAD_TO_TAIL = """
from evalsuite import benchmark
from evalsuite.benchmarks.head_to_tail import HEAD_TO_TAIL

@benchmark(HEAD_TO_TAIL)
def test_head_to_tail(scores):
    pass
"""


def run_head_to_tail(suite: Suite, *, every: int, judge: str, verdict: str) -> None:
    """Run a model that leaves about one question in `every` unanswered, and add a judge with a constant verdict."""
    model = f"def echo(messages):\n    return 'unsure' if len(messages[-1]['content']) % {every} == 0 else 'Mercury'\n"
    suite.pytester.makepyfile(test_h2t=HEAD_TO_TAIL, app=model)
    judges = suite.path / "judges.py"
    judges.write_text(judges.read_text() + f"\ndef {judge}(messages):\n    return '{verdict}'\n")
    suite.run("test_h2t.py", "--run=h2t")


def test_a_benchmark_s_own_judge_is_checked_on_equally_many_answers_of_each_stratum(
    over: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    run_head_to_tail(over, every=3, judge="wrong", verdict="incorrect")
    draw = ["judge", "sheet", "h2t", "--cases=24", "--equally=domain,bucket"]
    assert main(draw) == 0
    assert "24 of 72 cases to label, of 12 strata (domain,bucket)" in capsys.readouterr().out
    cases = read_page(over.path / "labels.html")
    assert {tuple(name for name, _ in case["sections"]) for case in cases} == {("question", "right", "answer")}
    assert {dict(case["sections"])["answer"] for case in cases} == {"Mercury"}
    fill(over.path / "labels.csv", {"Mercury": "no"})
    ask = ["judge", "h2t", "--judge=function:judges:wrong", "--score=correct", "--probes=0", "--passes=1"]
    assert main([*ask, "--people=labels.csv", "--gate=judge.accuracy >= 0.98"]) == 0
    assert main(["judge", "sheet", "h2t", "--equally=colour", "-o", "b.csv"]) == 2
    assert "has no tag 'colour'; it has bucket, cluster" in capsys.readouterr().err
    assert main(["judge", "sheet", "h2t", "--score=correct", "-o", "b.csv"]) == 2
    assert "about correct; it has one question, whether the answer is right; omit --score" in capsys.readouterr().err


def test_answers_that_no_judge_sees_keep_their_score_in_a_corrected_mean(
    over: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    run_head_to_tail(over, every=9, judge="right", verdict="correct")
    missing = sum(record["scores"]["missing"] for record in over.records("h2t"))
    assert missing
    assert main(["judge", "sheet", "h2t", "--cases=32"]) == 0
    fill(over.path / "labels.csv", {"Mercury": "yes"})
    share = 1 - missing / 72
    ask = ["judge", "h2t", "--judge=function:judges:right", "--score=correct", "--probes=0", "--passes=1"]
    gates = [f"--gate=head_to_tail.{metric} >= 0.99" for metric in ("correct", "corrected_correct")]
    assert main([*ask, "--people=labels.csv", *gates]) == 10
    shown = capsys.readouterr().out
    assert f"head_to_tail.correct: {share:.4f}" in shown
    assert f"head_to_tail.corrected_correct: {share:.4f}" in shown
    lines = (over.path / "reports" / "h2t" / "again" / "judge" / "certificate.md").read_text("utf-8").splitlines()
    (means,) = (line for line in lines if line.startswith("| function:judges:right |"))
    assert means.count(f" {share:.3f} ") == 3
    (judged,) = (line for line in lines if line.startswith("| function:judges:right, correct |") and "hash:" in line)
    assert f"| {72 - missing:7.0f} |" in judged
    over.pytester.makepyfile(app="def echo(messages):\n    return 'unsure'\n")
    over.run("test_h2t.py", "--run=unsure")
    assert main(["judge", "unsure", *ask[2:]]) == 2
    assert "has no answer that the judge of head_to_tail is asked about" in capsys.readouterr().err


PICTURED = """
from evalsuite import Message, Sample, benchmark
from evalsuite.judges import single
from evalsuite.judges.forms import Likert

HELD, FAR = (
    {"type": "image_url", "image_url": {"url": url}} for url in ("data:image/png;base64,AAAA", "https://example.org/cat.png")
)

def answer(sample, model):
    return "A cat."

@benchmark("pictured", [Sample("one", [Message("user", "Which?", parts=(HELD, FAR))])], solver=answer,
    scorers=[single([Likert("does it surprise?", 1, 3, name="wit")])])
def test_pictured(scores):
    pass
"""


def test_the_page_shows_pictures_that_it_holds_and_the_address_of_others(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(wits="def judge(messages):\n    return 'wit: 2'\n", test_pictured=PICTURED)
    suite.run("--run=base", "--judge-model=function:wits:judge").assert_outcomes(passed=1)
    monkeypatch.chdir(suite.path)
    monkeypatch.syspath_prepend(suite.path)
    assert main(["judge", "sheet", "base"]) == 0
    (case,) = read_page(suite.path / "labels.html")
    assert case["question"] == "Score the answer on wit (1 to 3: does it surprise?). The highest number is the best."
    assert [key for key, _, _ in case["choices"]] == ["1", "2", "3"]
    assert case["pictures"] == ["data:image/png;base64,AAAA"]
    assert case["sections"][-1] == ["picture", "https://example.org/cat.png"]


MANY = """
from evalsuite import Sample, benchmark

def answer(sample, model):
    return "Paris" if int(sample.id) % 4 else "Osaka"

@benchmark("many", [Sample(f"{at}", "Which city?") for at in range(80)], solver=answer)
def test_many(scores):
    pass
"""


def test_cases_on_which_judges_disagree_are_drawn_more_often_and_weighted(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(judges=JUDGES, test_many=MANY)
    suite.run("--run=base").assert_outcomes(passed=80)
    monkeypatch.chdir(suite.path)
    monkeypatch.syspath_prepend(suite.path)
    disagreeing = ("--judge=function:judges:strict", "--judge=function:judges:lenient", "--probes=0")
    assert judge(*disagreeing) == 0
    ask = ["judge", "sheet", "base", "--criteria", "Is it a capital?", "--cases=40"]
    assert main([*ask, "-o", "drawn.csv"]) == 0
    assert "judges disagree" in capsys.readouterr().out
    drawn = rows(suite.path / "drawn.csv")
    weights = {row["answer"]: float(row["weight"]) for row in drawn}
    assert weights["Osaka"] < 2 < weights["Paris"]
    fill(suite.path / "drawn.csv", {"Paris": "yes", "Osaka": "no"})
    gates = ("--gate=many.corrected_rubric >= 0.5 @95%", "--gate=many.corrected_rubric >= 0.7 @95%")
    assert judge(disagreeing[0], "--probes=0", "--people=drawn.csv", *gates) == 10
    told = capsys.readouterr().out
    assert "the labels are weighted" in told
    assert "met  many.corrected_rubric >= 0.5 @95%" in told
    assert "more labels would meet it" in told
    assert judge(disagreeing[0], "--probes=0", "--people=drawn.csv", "--gate=judge.accuracy >= 0.9 @95%") == 0
    assert judge(disagreeing[0], "--probes=0", "--people=drawn.csv", "--gate=judge.kappa >= 0.9") == 12
    assert main([*ask, "--random", "-o", "alike.csv"]) == 0
    assert "weight" not in rows(suite.path / "alike.csv")[0]
    fill(suite.path / "alike.csv", {"Paris": "yes", "Osaka": "no"})
    assert judge(disagreeing[0], "--people=drawn.csv", "--people=alike.csv") == 2
    assert "give sheets of one draw" in capsys.readouterr().err
    (suite.path / "drawn.csv").write_text(f"case,label,weight\n{drawn[0]['case']},yes,often\n", "utf-8")
    assert judge(disagreeing[0], "--people=drawn.csv") == 2
    assert "column weight" in capsys.readouterr().err
    (suite.path / "reports/base/again/judge/scores.jsonl").write_text("{", "utf-8")
    assert main([*ask, "-o", "c.csv"]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_a_sheet_that_may_hold_labels_is_not_written_over(over: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    (over.path / "labels.csv").write_text("mine", "utf-8")
    assert main(["judge", "sheet", "base"]) == 2
    assert "may hold labels" in capsys.readouterr().err
    assert (over.path / "labels.csv").read_text("utf-8") == "mine"


def test_judges_are_compared_with_people_and_tested_and_the_run_is_left_as_it_is(
    over: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    run = over.path / "reports" / "base"
    before = {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()}
    main(["judge", "sheet", "base"])
    fill(over.path / "labels.csv", {"Paris": "yes", "Rome": "yes", "Osaka": "no"})
    named = ("--judge=function:judges:strict", "--judge=function:judges:gullible")
    assert judge(*named, "--people", "labels.csv") == 0
    told = capsys.readouterr().out
    lines = {line.split("|")[1].strip(): line for line in told.splitlines() if line.startswith("| function")}
    assert set(lines) == {"function:judges:strict", "function:judges:gullible"}
    assert "100.0" in next(
        line for line in told.splitlines() if "strict" in line and " 3 |" in line and "100.0" in line
    )
    assert "100.0" in next(line for line in told.splitlines() if "strict" in line and "judge.detects_names" in line)
    met = "met  judge.kappa >= 0.9   function:judges:strict: judge.kappa: 1.0000"
    assert judge(*named, "--people=labels.csv", "--gate=judge.kappa >= 0.9") == 10
    decided = capsys.readouterr().out
    assert met in decided
    assert "missed  judge.kappa >= 0.9   function:judges:gullible: judge.kappa" in decided
    assert judge(named[0], "--people=labels.csv", "--gate=judge.accuracy >= 0.9") == 0
    assert judge(named[0], "--gate=judge.kappa >= 0.1") == 12, "nobody has labelled anything"
    assert judge(named[0], "--gate=judge.detects_names >= 0.9") == 0
    outcomes = [json.loads(line) for line in (run / "again/judge/mutations.jsonl").read_text("utf-8").splitlines()]
    assert [set(one["cases"].values()) for one in outcomes if one["metric"] == "detects_names"] == [{1.0}]
    assert judge(named[0], "--probes=0", "--gate=judge.detects_names >= 0.9") == 12
    assert {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()} == before
    assert (run / "again" / "judge" / "certificate.md").is_file()


def test_a_judge_that_cannot_be_read_has_no_score_and_its_share_is_told(
    over: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge("--judge=function:judges:mute") == 12, over.path
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| function")]
    assert "100.0" in line


@pytest.mark.parametrize(
    ("sheet", "problem"),
    [
        ("case,label\nx,yes\n", "no label belongs to a case"),
        ("case,label\nx,perhaps\n", "'perhaps'"),
        ("case,label\nx,1\nx,0\n", "each case once"),
        ("name\nx\n", "the columns case, label"),
        ("case,label\ntest_capitals.py::test_capitals[fr],7\n", "off the scale"),
        ("case#label\nx#yes\n", "bad.csv, line 1: found no column case"),
        ('case,label\nx,"yes\ny,no\n', "bad.csv, line 1: found unexpected end of data"),
        ("", "bad.csv, line 1: found no column case"),
        ("case,label,weight\nx,yes,yes\n", "bad.csv, line 2, column weight: found 'yes'"),
        ("case,label\n,yes\n", "bad.csv, line 2: found the label yes without a case"),
        ("case;label\rx;a, b, c, d\r", "'a, b, c, d'"),
        ('case,answer,label\n1,"two\nlines",yes\n1,one,yes\n', "bad.csv, line 4: found 1 again"),
    ],
)
def test_a_sheet_that_is_none_is_refused_with_its_place(
    over: Suite, capsys: pytest.CaptureFixture[str], sheet: str, problem: str
) -> None:
    (over.path / "bad.csv").write_text(sheet, "utf-8")
    assert judge("--judge=function:judges:strict", "--people", "bad.csv") == 2
    assert problem in capsys.readouterr().err


def test_a_refused_call_is_an_error_of_its_case_alone(over: Suite) -> None:
    assert judge("--judge=function:judges:filtered") == 0
    text = (over.path / "reports" / "base" / "again" / "judge" / "certificate.md").read_text("utf-8")
    (line,) = [line for line in text.splitlines() if "filtered" in line and "hash:" in line]
    assert "33.3" in line


def test_a_judge_that_refuses_every_call_is_an_error_with_its_cause(
    over: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge("--judge=function:judges:broken") == 2, over.path
    assert "no such model" in capsys.readouterr().err


OWN = """
from evalsuite import Sample, benchmark, rubric
from evalsuite.judges import pairwise

def answer(sample, model):
    return sample.metadata["says"]

SAMPLES = [
    Sample(f"{at}", "Say it.", metadata={"says": "x" * (at + 1), "old": "y" * (5 - at), "marker": f"known {at}"})
    for at in range(5)
]

@benchmark("own", SAMPLES, solver=answer, scorers=[
    rubric("Is it long?", name="long", fields=["answer", "marker"], anchors={1: "no", 5: "yes"}, passes=3),
    pairwise("old"),
])
def test_own(scores):
    pass
"""
LEANING = """
import re

def _section(name, text):
    found = re.search(rf'<{name} key="\\w+">\\n(.*?)\\n</{name}', text, re.S)
    return found and found[1]

def leaning(messages):
    asked = messages[-1]["content"]
    if "in other words" in asked:
        return _section("answer", asked) + "!"
    if "Verdict: tie" in asked:
        return "Verdict: 1"
    assert "known" in asked
    return '{"reason": "by its length", "score": %d}' % min(5, len(_section("answer", asked)))
"""


@pytest.fixture
def own(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A run whose cases declare judges of their own, and a judge that likes the first place and length."""
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_own=OWN, leanings=LEANING)
    suite.run("--run=base", "--judge-model=function:leanings:leaning")
    monkeypatch.chdir(suite.path)
    monkeypatch.syspath_prepend(suite.path)
    return suite


def certificate(suite: Suite, *arguments: str) -> list[str]:
    assert main(["judge", "base", "--judge=function:leanings:leaning", *arguments]) == 0
    return (suite.path / "reports" / "base" / "again" / "judge" / "certificate.md").read_text("utf-8").splitlines()


def test_without_criteria_the_judges_that_the_cases_declare_are_asked_again(
    own: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = certificate(own)
    means = [line for line in lines if "leaning, long" in line and "hash:" in line]
    assert len(means) == 1
    assert "3.000" in means[0]
    assert any("leaning, preference" in line for line in lines)
    assert not any("leaning, preference" in line for line in certificate(own, "--score=long"))
    assert main(["judge", "base", "--judge=function:leanings:leaning", "--score=longer"]) == 2
    assert "no judge gave the score longer; the judges gave long, preference" in capsys.readouterr().err


def test_answers_are_not_judged_against_questions_that_have_changed_since_the_run(
    own: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = own.path / "test_own.py"
    question = next(record["input"] for record in own.records("base"))
    cases.write_text(cases.read_text("utf-8").replace(question, "Something else?"), "utf-8")
    assert main(["judge", "base", "--judge=function:leanings:leaning"]) == 2
    assert "cases of own have changed since the run, such as that of test_own.py" in capsys.readouterr().err


def test_cases_without_an_answer_are_missing_for_the_gates_of_a_judge(
    own: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = own.path / "test_own.py"
    failing = 'assert sample.id != "0"; return sample'
    cases.write_text(cases.read_text("utf-8").replace("return sample", failing), "utf-8")
    own.run("--run=failing", "--judge-model=function:leanings:leaning", "test_own.py")
    gate = "--gate=own.long >= 1"
    assert main(["judge", "failing", "--judge=function:leanings:leaning", "--probes=0", "--score=long", gate]) == 12
    assert "errors in " in capsys.readouterr().out


def test_the_answers_of_traces_are_judged_again(own: Suite) -> None:
    sample = next(record["sample"] for record in own.records("base"))
    trace = {"id": sample, "benchmark": "own", "input": "Another question?", "answer": "An answer"}
    (own.path / "traces.jsonl").write_text(json.dumps(trace) + "\n", "utf-8")
    own.run("--run=traced", "--answers=traces.jsonl", "--judge-model=function:leanings:leaning", "test_own.py")
    assert main(["judge", "traced", "--judge=function:leanings:leaning", "--probes=0", "--score=long"]) == 0


def test_a_passing_score_off_the_scale_is_refused(own: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    judging = ["judge", "base", "--judge=function:leanings:leaning", "--probes=0", "--score=long", "--passes=40"]
    assert main(judging) == 2
    assert "passes=40 is off the scale from 1 to 5" in capsys.readouterr().err
    assert not (own.path / "reports/base/again/judge/store.sqlite").exists(), "the judge was paid before the refusal"
    assert main([*judging[:4], "--passes=4"]) == 0, "a preference between two answers has no passing score"


def test_a_judge_that_likes_the_first_place_is_seen_by_its_flips(own: Suite) -> None:
    (flips,) = [line for line in certificate(own) if "changes with the order" in line and line.startswith("|")]
    assert "100.0" in flips


def test_a_judge_that_likes_length_is_seen_beside_people(own: Suite) -> None:
    lines = certificate(own)
    (heading,) = [at for at, line in enumerate(lines) if "Longer answers" in line]
    assert any("leaning, long" in line and " 1.00 [" in line for line in lines[heading:])


def test_several_sheets_give_the_agreement_of_people_among_themselves(over: Suite) -> None:
    main(["judge", "sheet", "base"])
    fill(over.path / "labels.csv", {"Paris": "yes", "Rome": "yes", "Osaka": "no"})
    (over.path / "other.csv").write_text((over.path / "labels.csv").read_text("utf-8"), "utf-8")
    assert judge("--judge=function:judges:strict", "--people=labels.csv", "--people=other.csv") == 0
    text = (over.path / "reports" / "base" / "again" / "judge" / "certificate.md").read_text("utf-8")
    assert "People among themselves" in text
    assert any("sheet 1, sheet 2" in line and "1.00" in line for line in text.splitlines())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_sheet_is_read_as_a_spreadsheet_of_another_country_saves_it(
    over: Suite, encoding: str, delimiter: str
) -> None:
    main(["judge", "sheet", "base"])
    fill(over.path / "labels.csv", {"Paris": "1,0", "Rome": "1,0", "Osaka": "0"})
    with (over.path / "saved.csv").open("w", encoding=encoding, newline="") as file:
        table = [[*row.values(), "très bon"] for row in rows(over.path / "labels.csv")]
        csv.writer(file, delimiter=delimiter).writerows(
            [["case", "input", "answer", "label", "content", "note"], *table]
        )
    asked = ("--judge=function:judges:strict", "--people=saved.csv", "--probes=0")
    assert judge(*asked, "--gate=judge.accuracy >= 1") == 0


def test_a_sheet_of_answers_that_fit_no_cell_is_read_again(over: Suite) -> None:
    over.pytester.makepyfile(odd="def answer(messages): return '\\0\\ud800' + 'long ' * 50_000")
    over.run("--model=function:odd:answer", "--run=odd", model=False)
    assert main(["judge", "sheet", "odd", "-o", "odd.csv"]) == 0
    assert {len(row["answer"]) for row in rows(over.path / "odd.csv")} == {32_000}
    fill(over.path / "odd.csv", {row["answer"]: "no" for row in rows(over.path / "odd.csv")})
    asked = ["--judge=function:judges:lenient", "--criteria=Is it a capital?", "--probes=0", "--people=odd.csv"]
    assert main(["judge", "odd", *asked, "--gate=judge.accuracy <= 0"]) == 0


def test_labels_of_other_answers_than_the_run_s_are_refused(over: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    main(["judge", "sheet", "base"])
    fill(over.path / "labels.csv", {"Paris": "yes", "Rome": "yes", "Osaka": "no"})
    over.pytester.makepyfile(other="def answer(messages): return 'Rome'")
    over.run("--model=function:other:answer", "--run=later", model=False)
    asked = ["--judge=function:judges:strict", "--criteria=Is it a capital?", "--probes=0", "--people=labels.csv"]
    assert main(["judge", "base", *asked]) == 0
    assert main(["judge", "later", *asked]) == 2
    assert "2 of 3 labels belong to another answer" in capsys.readouterr().err


WITH_ARGUMENTS = """
from evalsuite import benchmark, rubric
from evalsuite.core.protocols import Benchmark, Dataset
from evalsuite.core.types import Sample

def answer(sample, model):
    return "x" * 4

OF_LENGTH = Benchmark(
    name="lengthy",
    title="Lengthy",
    load=lambda setup: Dataset([Sample("one", "Say it.")], "made here"),
    solver=lambda setup: answer,
    scorers=lambda setup: [rubric(setup.args["question"], name="long", scale=(1, 5))] if setup.judge else [],
)

@benchmark(OF_LENGTH, question="Is it wordy?")
def test_lengthy(scores):
    pass
"""


def test_the_arguments_of_a_declaration_hold_when_its_answers_are_judged_again(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    (suite.path / "test_capitals.py").unlink()
    asking = LEANING.replace("assert", 'assert "in other words" in asked or "Is it wordy?" in asked; assert').replace(
        '"known" in asked', "True"
    )
    suite.pytester.makepyfile(test_lengthy=WITH_ARGUMENTS, leanings=asking)
    suite.run("--run=base").assert_outcomes(passed=1)
    monkeypatch.chdir(suite.path)
    monkeypatch.syspath_prepend(suite.path)
    assert any("leaning, long" in line and "4.000" in line for line in certificate(suite))


def test_a_run_without_judges_of_its_own_needs_criteria(over: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "base", "--judge=function:judges:strict"]) == 2, over.path
    assert "declares no scorer that asks a judge; name the question with --criteria" in capsys.readouterr().err


UNSURE = """
def leaning(messages):
    return "Verdict: cannot tell" if "xxxx" in str(messages) else "Verdict: yes"
"""


def test_the_certificate_counts_cases_of_which_a_judge_cannot_tell_apart_from_unread_ones(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    (suite.path / "test_capitals.py").unlink()
    scorers = 'scorers=[rubric("Is it short?", name="short", fields=["answer"], cannot_tell=True)])\n'
    declared = OWN[: OWN.index("scorers=[")] + scorers + OWN[OWN.index("def test_own") :]
    suite.pytester.makepyfile(test_own=declared, leanings=UNSURE)
    suite.run("--run=base", "--judge-model=function:leanings:leaning").assert_outcomes(passed=5)
    monkeypatch.chdir(suite.path)
    monkeypatch.syspath_prepend(suite.path)
    (line,) = [line for line in certificate(suite) if "leaning" in line and "hash:" in line]
    assert [cell.strip() for cell in line.split("|")[2:6]] == ["1.000 [0.292, 1.000]", "0.0", "40.0", "5"]


ONE_SOURCE = """
from evalsuite import Sample, benchmark

SAMPLES = [Sample(str(at), "Capital?", metadata={"answer": "Paris", "map": "Europe"}) for at in range(20)]

def answer(sample, model):
    return "Paris"

@benchmark("mapped", SAMPLES, solver=answer, cluster="map")
def test_mapped(scores):
    pass
"""


def test_a_gate_on_the_judge_has_no_bound_if_all_cases_share_a_source(
    over: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    (over.path / "test_capitals.py").unlink()
    over.pytester.makepyfile(test_mapped=ONE_SOURCE)
    over.run("--run=mapped")
    main(["judge", "sheet", "mapped", "--criteria", "Is it a capital?"])
    fill(over.path / "labels.csv", {"Paris": "yes"})
    arguments = ["mapped", "--judge=function:judges:strict", "--criteria", "Is it a capital?", "--people=labels.csv"]
    assert main(["judge", *arguments, "--probes=0", "--gate=judge.accuracy >= 0.5 @95%"]) == 12
    assert "judge.accuracy: 1.0000" in capsys.readouterr().out


def test_a_word_in_a_sheet_is_not_a_mark_on_a_scale(over: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    (over.path / "words.csv").write_text("case,label\ntest_capitals.py::test_capitals[fr],yes\n", "utf-8")
    assert judge("--judge=function:judges:seven", "--people=words.csv", "--scale=0-10", "--probes=0") == 2
    assert "the label yes of test_capitals.py::test_capitals[fr] is off the scale" in capsys.readouterr().err
