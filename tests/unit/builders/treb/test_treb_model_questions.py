"""Questions that models make: each answer is what programs print, most voters must agree, and a judge may refuse."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.treb.dataset import load
from evalsuite.builders.treb.command import add_arguments, run
from evalsuite.builders.treb.model_briefs import BRIEFS
from evalsuite.protocols import Setup

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
        (
            ("--model", "author", "--model", "contrary", "--model", "contrary"),
            "1 of 3 programs come to its answer",
        ),
        (("--model", "failing"), "its program fails: AttributeError"),
        (("--model", "brief"), "fewer than 3 steps"),
        (("--model", "talkative"), "no JSON object"),
        (("--model", "author", "--judge-model", "drops"), "the judge drops it: nobody would ask it"),
    ],
)
def test_a_draft_that_is_no_good_is_dropped_with_its_reason(
    build: Any, words: tuple[str, ...], reason: str
) -> None:
    _, records, told = build(*words)
    assert records == []
    assert "Multi-step_Operations|models|cities is left out: " in told
    assert reason in told


def test_what_no_program_can_answer_is_the_judges_business_alone(build: Any) -> None:
    _, (record,), _ = build("--model", "author", "--judge-model", "keeps", subtask="Table_Title_Naming")
    assert (record["answer"], record["program"], record["number_answer"]) == ("Cities", "", "")


def test_every_subtask_has_templates_or_a_brief_but_for_language_and_column_naming() -> None:
    from evalsuite.benchmarks.treb.subtasks import SUBTASKS
    from evalsuite.builders.treb.command import TEMPLATES

    about_tables = {subtask.file for subtask in SUBTASKS if subtask.table}
    assert about_tables - {*TEMPLATES, *BRIEFS} == {"Table_Column_Naming"}
