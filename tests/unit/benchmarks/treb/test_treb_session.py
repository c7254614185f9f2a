"""TReB as a user runs it: a real pytest session, a function as the model, every mode, through to the report."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SUITE = """
from evalsuite import benchmark
from evalsuite.benchmarks.treb import TREB

@benchmark(TREB, timeout=4.0)
def test_treb(scores):
    assert scores["exact_match"] == 1.0
"""

# One model for all cases: the question says how its programs behave, its second turn mends them.
MODEL = """
RIGHT = "```python\\nprint(df['units'].sum())\\n```"
FIRST = {
    "right": RIGHT,
    "wrong": "```python\\nprint(df['units'].max())\\n```",
    "crashing": "```python\\nprint(df['unit'].sum())\\n```",
    "looping": "```python\\nwhile True: pass\\n```",
    "mended": "```python\\ntotal = df['units'].sum()\\nprint(totl)\\n```",
}

def answer(messages):
    asked = messages[1]["content"]
    if "JSON" in messages[0]["content"]:
        return '{"thought": "20 + 15 + 7", "answer": 42}'
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    if not said:
        return next(line for name, line in FIRST.items() if name in asked)
    if "mended" in asked and len(said) == 1:
        return "```python\\nprint(total)\\n```"
    last = messages[-1]["content"]
    return "So \\\\boxed{" + next((word for word in last.split() if word.isdigit()), "nothing") + "}"

def judge(messages):
    right = "\\n42\\n</answer_of_the_student" in messages[1]["content"]
    return "Judged. \\\\boxed{%d}" % (10 if right else 1)
"""
BEHAVIOURS = ("right", "wrong", "crashing", "looping", "mended")


@pytest.fixture
def records(pytester: pytest.Pytester) -> dict[str, dict[str, Any]]:
    """The records of one run, by sample; the report lies in reports/one."""
    data = pytester.path / "data" / "treb"
    (data / "csv").mkdir(parents=True)
    (data / "csv" / "sales.csv").write_text("city,units\nLyon,20\nPorto,15\nGhent,7\n", encoding="utf-8")
    questions = [
        {
            "id": f"Table_General_Operations|t|{behaviour}",
            "file_path": ["csv/sales.csv"],
            "question": f"How many units were sold? ({behaviour})",
            "answer": "42",
            "number_answer": 42,
        }
        for behaviour in BEHAVIOURS
    ]
    (data / "Table_General_Operations.json").write_text(json.dumps(questions), encoding="utf-8")
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(test_treb=SUITE, app=MODEL)
    models = ("--model=function:app:answer", "--judge-model=function:app:judge")
    pytester.runpytest_subprocess(
        *models, "--data=data", "--mode=treb=published", "-oevalsuite_program_env=own", "--run=one"
    )
    lines = (pytester.path / "reports" / "one" / "records.jsonl").read_text("utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return {record["sample"].removeprefix("Table_General_Operations|t|"): record for record in found}


@pytest.mark.draws
def test_every_mode_runs_through_to_the_report(records: dict[str, Any], pytester: pytest.Pytester) -> None:
    assert "rouge_l_released" in records["right|pot"]["scores"]
    scores = {
        name: {metric: value for metric, value in record["scores"].items() if "released" not in metric}
        for name, record in records.items()
    }
    full = {"rouge_l": 1.0, "bleu": 1.0, "exact_match": 1.0, "judge": 1.0}
    assert len(records) == 4 * len(BEHAVIOURS)
    assert {record["error"] for record in records.values() if record["outcome"] == "error"} == set()
    for behaviour in BEHAVIOURS:
        assert scores[f"{behaviour}|tcot_markdown"] == scores[f"{behaviour}|tcot_html"] == full
    assert scores["right|pot"] == scores["right|icot"] == scores["mended|icot"] == full
    assert scores["wrong|pot"] == {"rouge_l": 0.0, "bleu": 0.0, "exact_match": 0.0, "judge": 0.1}
    for behaviour, state in (("crashing", "failed"), ("looping", "timed out"), ("mended", "failed")):
        assert set(scores[f"{behaviour}|pot"].values()) == {0.0}
        assert records[f"{behaviour}|pot"]["facts"]["program"] == state
    assert records["looping|icot"]["transcript"]["events"][0]["timed_out"] is True

    report = read(pytester.path / "reports" / "one")
    # The judge's table, TCO in its three modes: all right; one right and one wrong of five; two and three.
    *columns, overall = table_row(report, "function:app:answer", 2)
    assert columns == ["100.00", "22.00", "46.00"]
    assert overall.startswith("56.00 [")
    assert "QwQ-32B (published)" in report
    assert re.search(r"\| function:app:answer \| PoT +\| \w+ +\| +5 \| +2 \|", report)
    assert (pytester.path / "reports" / "one" / "treb_by_skill_and_mode.svg").is_file()


def read(folder: Path) -> str:
    return (folder / "report.md").read_text("utf-8")


def table_row(report: str, label: str, place: int) -> list[str]:
    """What is measured in the label's row of a table, counted from 0."""
    rows = [line for line in report.splitlines() if line.startswith(f"| {label}")]
    return [cell.strip() for cell in rows[place].split("|")[2:-1] if cell.strip() != "–"]


def test_a_gate_on_an_overall_counts_the_cases_that_should_have_it_and_knows_its_range(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(test_treb=SUITE.replace("assert", "pass #"), app="def answer(messages):\n    return '7'\n")
    run = ("--model=function:app:answer", "--mode=tcot")
    gates = [f"--gate=treb.overall_{metric} >= 0" for metric in ("rouge_l", "bleu", "exact_match")]
    result = pytester.runpytest_subprocess(*run, *gates)
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*without this score*")
    result = pytester.runpytest_subprocess(*run, "--gate=treb.overall_bleu >= 55")
    result.stderr.fnmatch_lines(["*overall_bleu is declared to lie in [[]0, 1]*"])
