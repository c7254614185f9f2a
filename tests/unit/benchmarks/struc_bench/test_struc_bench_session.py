"""Struc-Bench as a user runs it: a real pytest session, functions as model and judge, through to the report."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SUITE = """
from evalsuite import benchmark
from evalsuite.benchmarks.struc_bench import STRUC_BENCH

@benchmark(STRUC_BENCH)
def test_struc_bench(scores):
    assert scores["table_content"] == 1.0
"""
TEAMS = (
    "Team:\n| | Wins | Points |\n| Otters | 3 | 81 |\n| Cranes | 2 | 75 |\n"
    "Player:\n| | Points |\n| Ida Rost | 22 |\n| Bo Lind | 12 |"
)
PRICES = (
    "\\begin{table}\\caption{Prices}\\begin{tabular}{lr}\\hline Fruit & Price \\\\ Apples & 3 \\\\ "
    "Pears & 4 \\\\ \\end{tabular}\\end{table}"
)
HOURS = "<table><tr><th>Day</th><th>Hours</th></tr><tr><td>Monday</td><td>50%</td></tr></table>"
LIST = "<ul><li>milk</li><li>bread</li></ul>"
ITEMS = {
    "table_test.json": [
        (
            "Report the match.",
            "The Otters (3 wins) beat the Cranes (2 wins) 81 to 75; Ida Rost had 22 points, Bo Lind 12.",
            TEAMS,
        )
    ],
    "latex_test.json": [("List the prices.", "Apples cost 3, pears cost 4.", PRICES)],
    "html_test.json": [
        ("List the hours.", "On Monday 50% were full.", HOURS),
        ("Make a list.", "We need milk and bread.", LIST),
    ],
}
# Raw text is answered exactly; LaTeX lacks a row and stands in a fence; HTML has another form.
MODEL = """
import json
TEAMS, PRICES, HOURS, LIST = json.loads({answers!r})

def answer(messages):
    asked = messages[-1]["content"]
    if "Monday" in asked:
        return HOURS.replace("50%", "50 %")
    if "milk" in asked:
        return LIST
    if "Otters" in asked:
        return "Here it is.\\n\\n" + TEAMS + "\\n\\nAnything else?"
    shorter = PRICES.replace("Pears & 4 " + chr(92) * 2, "")
    return shorter if "two columns" in asked else "```latex\\n" + shorter + "\\n```"

def judge(messages):
    first = messages[-1]["content"].split("<first_table ")[1]
    mark = 8 if "Apples" in first else 10
    mark -= "Pears" in first.split("<second_table ")[0]
    return json.dumps({{"reasoning": "Compared.", "content": mark, "structure": 9}})
"""


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    """The items, the suite and both models."""
    data = pytester.path / "data" / "struc_bench"
    data.mkdir(parents=True)
    for name, items in ITEMS.items():
        records = [
            {
                "instruction": instruction,
                "input": text,
                "output": output,
                "format_description": f"It has two columns ({place}).",
            }
            for place, (instruction, text, output) in enumerate(items)
        ]
        (data / name).write_text(json.dumps(records), encoding="utf-8")
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    answers = json.dumps([TEAMS, PRICES, HOURS, LIST])
    pytester.makepyfile(test_struc_bench=SUITE, app=MODEL.format(answers=answers))
    return data


def run(pytester: pytest.Pytester, *arguments: str) -> dict[str, dict[str, Any]]:
    models = ("--model=function:app:answer", "--data=data", "--run=one")
    pytester.runpytest_subprocess(*models, *arguments)
    lines = (pytester.path / "reports" / "one" / "records.jsonl").read_text("utf-8").splitlines()
    return {record["sample"]: record for record in map(json.loads, lines)}


def report(pytester: pytest.Pytester) -> str:
    return (pytester.path / "reports" / "one" / "report.md").read_text("utf-8")


@pytest.mark.own_interpreter
@pytest.mark.usefixtures("folder")
def test_every_format_runs_through_to_its_block_of_the_paper_s_table(pytester: pytest.Pytester) -> None:
    records = run(pytester, "--judge-model=function:app:judge")
    assert {name: record["outcome"] for name, record in records.items()} == {
        "markdown-000": "passed",
        "latex-000": "failed",
        "html-000": "passed",
        "html-001": "passed",
    }
    scores = {name: record["scores"] for name, record in records.items()}
    assert scores["markdown-000"]["table_score"] == 1.0
    assert scores["markdown-000"]["h_content_released"] == 2.0
    assert scores["markdown-000"]["h_format_released"] == 4.0
    assert 0 < scores["latex-000"]["table_content"] < 1.0
    assert scores["html-000"]["element_format_error"] == 1.0
    assert scores["html-000"]["element_error"] == 0.0
    assert "error_free" not in scores["html-001"]
    text = report(pytester)
    blocks = [text.index(f"### {name}\n") for name in ("Raw text", "LaTeX", "HTML")]
    assert blocks == sorted(blocks)
    assert "![Ability map](struc_bench_abilities.svg)" in text
    assert (pytester.path / "reports" / "one" / "struc_bench_errors.svg").is_file()


@pytest.mark.usefixtures("folder")
def test_the_judge_s_marks_in_both_orders_are_averaged(pytester: pytest.Pytester) -> None:
    scores = run(pytester, "--judge-model=function:app:judge")["latex-000"]["scores"]
    # The wanted table alone has pears: 7 with it first, 8 with it second.
    assert scores["p_content"] == 7.5
    assert scores["p_format"] == 9.0


@pytest.mark.usefixtures("folder")
def test_a_judgement_that_cannot_be_read_costs_the_p_score_and_nothing_else(pytester: pytest.Pytester) -> None:
    judge = "\n\ndef moody(messages):\n    return 'Fine.' if 'Pears' in messages[1]['content'] else judge(messages)\n"
    app = pytester.path / "app.py"
    app.write_text(app.read_text("utf-8") + judge, "utf-8")
    records = run(pytester, "--judge-model=function:app:moody")
    unread, read = records["latex-000"], records["markdown-000"]
    assert unread["outcome"] == "failed", "for its table, as the suite asserts, and no error"
    assert unread["scores"]["p_readable"] == 0.0
    assert "p_content" not in unread["scores"]
    assert unread["scores"]["table_score"] > 0.5
    assert (read["scores"]["p_readable"], read["scores"]["p_content"]) == (1.0, 10.0)


@pytest.mark.usefixtures("folder")
def test_without_a_judge_the_p_score_is_a_dash_that_is_explained(pytester: pytest.Pytester) -> None:
    records = run(pytester)
    assert "p_content" not in records["html-000"]["scores"]
    assert "the P-Score needs `--judge-model`" in report(pytester)


@pytest.mark.usefixtures("folder")
def test_all_modes_side_by_side_have_a_row_each_and_one_row_of_wanted_tables(pytester: pytest.Pytester) -> None:
    modes = (f"--mode=struc_bench={mode}" for mode in ("direct", "format_cot", "format_facts"))
    records = run(pytester, *modes)
    assert len(records) == 12
    facts = records["latex-000-format_facts"]["input"]
    assert "The table has 2 columns.\n" in facts
    assert "Its caption is “Prices”.\n" in facts
    assert "two columns (0)" not in facts
    assert "It has two columns (0)." in records["latex-000-format_cot"]["input"]
    assert "two columns" not in records["latex-000-direct"]["input"]
    text = report(pytester)
    # Both questions were asked; the model under test answers only one of them in a fence.
    assert records["latex-000-direct"]["scores"]["pragmatics"] < 1.0
    assert records["latex-000-format_cot"]["scores"]["pragmatics"] == 1.0
    sizes = text[text.index("### The wanted tables") :]
    assert sizes.count("\n| LaTeX ") == 1


def test_format_cot_without_a_description_says_how_to_get_one(folder: Path, pytester: pytest.Pytester) -> None:
    file = folder / "html_test.json"
    items = json.loads(file.read_text("utf-8"))
    del items[1]["format_description"]
    file.write_text(json.dumps(items), encoding="utf-8")
    modes = ("--model=function:app:answer", "--data=data", "--mode=struc_bench=format_cot")
    result = pytester.runpytest_subprocess(*modes)
    result.stdout.fnmatch_lines(["*html_test.json*item 1*format_description*evalsuite build struc-bench*"])
    assert result.ret != 0


def test_scores_of_people_beside_the_items_add_the_paper_s_third_table(folder: Path, pytester: pytest.Pytester) -> None:
    people = [
        {"sample": "markdown-000", "content": 10, "format": 10},
        {"sample": "latex-000", "content": 4, "format": 6},
        {"sample": "html-000", "content": 7, "format": 9},
    ]
    (folder / "human_scores.json").write_text(json.dumps(people), encoding="utf-8")
    run(pytester)
    text = report(pytester)
    table = text[text.index("### Agreement with people") :]
    assert "| Content " in table
    rows = [line for line in table.splitlines() if line.startswith("| Content  ")]
    assert rows[0].split("|")[2].strip() == "3"


def test_an_answer_that_the_released_scripts_cannot_read_is_counted_and_nothing_is_lost(
    folder: Path, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(app="def answer(messages):\n    return '<div>' * 60 + 'x' + '</div>' * 60\n")
    for name in ("table_test.json", "latex_test.json"):
        (folder / name).unlink()
    records = run(pytester)
    assert records["html-000"]["scores"]["table_content"] == 0.0
    assert "h_content_released" not in records["html-000"]["scores"]
    # The paper's rows have both sums, so the columns stay, and this run's row has a dash in each.
    assert re.search(r"^\| HTML +\|[^|]+\| +– \| +– \| +2 \|$", report(pytester), re.MULTILINE)
