"""Questions that models make: each answer is what programs print, most voters must agree, and a judge may refuse."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.treb.dataset import load
from evalsuite.builders.treb import add_arguments, run
from evalsuite.core.protocols import Setup

if TYPE_CHECKING:
    from pathlib import Path

TABLE = "city,people,area\nOslo,700,454\nRome,2800,1285\nParis,2100,105\nLima,10000,2672\nBern,134,52\n"
MODELS = """
import json, re

ASKED = []
RIGHT = "print(int(df.people.sum()))"

def reply(code, question="How many people live in the cities of more than 100 people? Give a whole number."):
    draft = {"chain": ["select", "add", "round"], "long_question": "First ...", "question": question}
    return f"```json\\n{json.dumps(draft)}\\n```\\n```python\\n{code}\\n```"

def author(messages):
    words = messages[-1]["content"]
    ASKED.append(words)
    if "How many people" in words:
        return f"```python\\n{RIGHT}\\n```"
    if "a title of the table" in words:
        return json.dumps({"chain": ["read"], "question": "Give the table a title.", "answer": "Cities"})
    return reply(RIGHT)

def other(messages):
    return "```python\\nprint('15734')\\n```"

def contrary(messages):
    return "```python\\nprint(len(df))\\n```"

def failing(messages):
    return reply("print(df.nobody)")

def brief(messages):
    return json.dumps({"chain": ["one"], "question": "How many?"})

NAMES = {"1": "City", "2": "People", "3": "Area (km2)"}

def namer(messages):
    number = re.search(r'shown as "Column (\\d)"', messages[-1]["content"])[1]
    assert NAMES[number].split()[0].lower() not in messages[-1]["content"]
    return json.dumps({"name": NAMES[number]})

def synonymous(messages):
    return '{"name": "what it is"}'

def equates(messages):
    return '{"same": [true, true, false], "keep": true}'

def miscounts(messages):
    return '{"same": true, "keep": true}'

def talkative(messages):
    return "I would rather not."

def keeps(messages):
    return '{"keep": true, "reason": "fine"}'

def drops(messages):
    return 'Let me see. {"keep": false, "reason": "nobody would ask it"}'
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command over one table; returns its exit status, the records of a subtask, and what it said."""
    # Questions from templates are tested apart; each would have its program run.
    monkeypatch.setattr("evalsuite.builders.treb.TEMPLATES", {})
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "cities.csv").write_text(TABLE)
    (tmp_path / "panel_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def command(*words: str, subtask: str = "Multi-step_Operations") -> tuple[int, list[dict[str, Any]], str]:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        given = [f"function:panel_models:{word}" if word.isalpha() else word for word in words]
        status = run(parser.parse_args(["tables", "--out", "made/treb", "--subtask", subtask, *given]))
        path = tmp_path / "made" / "treb" / f"{subtask}.json"
        return status, json.loads(path.read_text()) if path.exists() else [], capsys.readouterr().err

    return command


def test_a_question_is_kept_with_the_answer_that_its_program_prints(build: Any, tmp_path: Path) -> None:
    status, (record,), _ = build("--model", "author", "--model", "other", "--judge-model", "keeps")
    assert status == 0
    assert (record["answer"], record["number_answer"], record["votes"]) == ("15734", 15734.0, "3 of 3")
    assert record["chain"] == ["select", "add", "round"]
    assert record["program"].startswith("print(int(df.people")
    samples = load(Setup("m", data=tmp_path / "made" / "treb", modes=("pot",))).samples
    assert any(sample.id.startswith("Multi-step_Operations|models|cities") for sample in samples)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--model", "author", "--model", "contrary", "--model", "contrary"), "1 of 3 programs come to its answer"),
        (("--model", "failing"), "its program fails: AttributeError"),
        (("--model", "brief"), "fewer than 3 steps"),
        (("--model", "talkative"), "no JSON object"),
        (("--model", "author", "--judge-model", "drops"), "the judge drops it: nobody would ask it"),
    ],
)
def test_a_draft_that_is_no_good_is_dropped_with_its_reason(build: Any, words: tuple[str, ...], reason: str) -> None:
    _, records, told = build(*words)
    assert records == []
    assert "Multi-step_Operations|models|cities is left out: " in told
    assert reason in told


def test_what_no_program_can_answer_is_the_judges_business_alone(build: Any) -> None:
    _, (record,), _ = build("--model", "author", "--judge-model", "keeps", subtask="Table_Title_Naming")
    assert (record["answer"], record["program"], record["number_answer"]) == ("Cities", "", "")


@pytest.mark.parametrize(
    ("words", "votes"),
    [
        (("--model", "namer"), "3 of 3"),
        (("--model", "namer", "--model", "namer", "--model", "synonymous"), "2 of 3"),
        (("--model", "synonymous", "--judge-model", "equates"), "2 of 3"),
    ],
)
def test_a_column_that_lost_its_name_is_kept_where_most_models_find_it(
    build: Any, tmp_path: Path, words: tuple[str, ...], votes: str
) -> None:
    _, (record,), _ = build(*words, subtask="Table_Column_Naming")
    assert (record["votes"], record["program"]) == (votes, "")
    assert record["answer"] in {"city", "people", "area"}
    assert "has lost its name" in record["question"]
    header = (tmp_path / "made" / "treb" / record["file_path"][0]).read_text("utf-8").splitlines()[0]
    assert "Column " in header
    assert record["answer"] not in header
    sample = next(
        sample
        for sample in load(Setup("m", data=tmp_path / "made" / "treb", modes=("tcot",))).samples
        if sample.id.startswith("Table_Column_Naming")
    )
    assert sample.target == record["answer"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--model", "synonymous"), "0 of 3 find a name that means the same: 'what it is'"),
        (("--model", "talkative"), "0 of 3 find a name"),
        (("--model", "namer", "--judge-model", "drops"), "the judge drops it: nobody would ask it"),
        (("--model", "namer", "--judge-model", "miscounts"), "does not say of each name"),
    ],
)
def test_a_column_whose_name_nobody_can_tell_is_dropped(build: Any, words: tuple[str, ...], reason: str) -> None:
    _, records, told = build(*words, subtask="Table_Column_Naming")
    assert records == []
    assert "Table_Column_Naming|models|cities is left out: " in told
    assert reason in told


def test_every_subtask_about_tables_can_be_built() -> None:
    from evalsuite.benchmarks.treb.records import SUBTASKS
    from evalsuite.builders.treb import TEMPLATES
    from evalsuite.builders.treb.model_questions import SUBTASKS as BY_MODELS

    assert {subtask.file for subtask in SUBTASKS if subtask.table} == {*TEMPLATES, *BY_MODELS}
