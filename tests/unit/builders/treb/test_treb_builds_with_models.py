"""Whole builds by the command: with the embedded model and a person, and with a server on loopback."""

from __future__ import annotations

import csv
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.treb.dataset import load_dataset
from evalsuite.cli import main
from evalsuite.core.protocols import Setup
from tests.conftest import Reply

if TYPE_CHECKING:
    from tests.conftest import ChatServer

TABLE = "city;people;area\nOslo;700;454\nRome;2.800;1285,5\nParis;2.100;105\nLima;10.000;2672\nBern;134;52\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalsuite.builders.treb.TEMPLATES", {})  # they are tested apart
    monkeypatch.chdir(tmp_path)
    Path("tables").mkdir()
    Path("tables", "cities.csv").write_text(TABLE, "utf-16")


def build(subtask: str, *more: str) -> list[dict[str, Any]]:
    """The records of a subtask that the command builds, which the benchmark can load."""
    assert main(["build", "treb", "tables", "--out", "treb", "--subtask", subtask, *more]) == 0
    path = Path("treb", f"{subtask}.json")
    if not path.exists():
        return []
    assert load_dataset(Setup("m", data=Path("treb"))).samples
    records: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return records


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="pip install 'evalsuite[local]'")
def test_the_embedded_model_and_a_person_build_a_question() -> None:
    model = "local:smollm2?context=512&slots=1"
    given = ("--model", model, "--votes", "1", "--model-param", "max_tokens=12", "--model-param", "temperature=0")
    build("Table_Column_Naming", *given)
    disputed = Path("treb", "disputed.csv")
    with disputed.open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["candidates"]
    with disputed.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row | {"accepted": row["answer"]})
    (record,) = build("Table_Column_Naming", *given)
    assert record["answer"] in {"city", "people", "area"}
    assert (record["quality"], record["votes"]) == ("reviewed", "0 of 1")


def test_a_server_writes_marks_answers_and_classifies_a_question(chat_server: ChatServer) -> None:
    def reply(body: dict[str, Any]) -> Reply:
        asked, code = body["messages"][0]["content"], "print(df.area.sum())"
        if marks := re.findall('"([a-z]+)": 1 to 5', asked):
            return Reply(json.dumps(dict.fromkeys(marks, 5) | {"reason": "fine"}))
        if '"kind"' in asked:
            return Reply(json.dumps({"kind": "Multi-step_Operations"}))
        if "Write one complete program" in asked:
            return Reply(f"```python\n{code}\n```")
        chain = {"chain": ["select", "add", "round"], "long_question": "First ..."}
        return Reply(json.dumps(chain | {"question": "What is the area of all cities?", "program": code}))

    chat_server.reply = reply
    models = ("--model", "gpt-4", "--judge-model", "gpt-4", "--judge-model", "gpt-4o", "--model-base-url")
    (record,) = build("Multi-step_Operations", *models, chat_server.url)
    assert (record["answer"], record["number_answer"], record["quality"]) == ("4568.5", 4568.5, "unanimous")
    # The author, two discriminators and the classifier are asked for a schema; three candidates write programs.
    schemas = [
        body["response_format"]["json_schema"]["schema"] for body in chat_server.bodies if "response_format" in body
    ]
    assert (len(schemas), len(chat_server.bodies)) == (4, 7)
    assert schemas[1]["properties"]["answerability"] == {"type": "integer", "minimum": 1, "maximum": 5}
    chat_server.bodies.clear()
    assert build("Multi-step_Operations", *models, chat_server.url) == [record]
    assert chat_server.bodies == []


def test_a_build_without_a_folder_asks_about_tables_that_the_model_invents(
    chat_server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {
        '"same"': json.dumps({"same": [True], "all_agree": True}),
        "Write one complete program": "```python\nprint(df.sold.sum())\n```",
        "Write the answer and nothing else": "Eight shops sold goods.",
    }

    def reply(body: dict[str, Any]) -> Reply:
        asked = body["messages"][0]["content"]
        if marks := re.findall('"([a-z]+)": 1 to 5', asked):
            return Reply(json.dumps(dict.fromkeys(marks, 5) | {"reason": "fine"}))
        if fixed := next((text for words, text in answers.items() if words in asked), ""):
            return Reply(fixed)
        if '"kind"' in asked:
            summary = "A summary" in asked.partition("Question:")[2]
            return Reply(json.dumps({"kind": "Table_Summary" if summary else "Table_General_Operations"}))
        rows = "".join(f"Shop {letter},{7 * n % 13 + 3},{n * 1.5 + 2}\n" for n, letter in enumerate("ABCDEFGH"))
        draft = {"table": f"shop,sold,price\n{rows}", "chain": ["take", "add", "write"], "long_question": "First ..."}
        if '"program"' in asked:
            return Reply(json.dumps(draft | {"question": "How many were sold?", "program": "print(df.sold.sum())"}))
        return Reply(json.dumps(draft | {"question": "A summary, please.", "answer": "Eight shops sold goods."}))

    chat_server.reply = reply
    models = ("--model", "gpt-4", "--judge-model", "gpt-4", "--votes", "1", "--model-base-url", chat_server.url)
    assert main(["build", "treb", "--out", "treb", "--zero-shot", "2", *models]) == 0, capsys.readouterr().err
    counts = {path.stem: len(json.loads(path.read_text("utf-8"))) for path in Path("treb").glob("*.json")}
    assert counts == {"Table_General_Operations": 2, "Table_Summary": 2}
    assert len(list(Path("treb", "csv").iterdir())) == 4
    assert len(load_dataset(Setup("m", data=Path("treb"))).samples) > 0
    assert main(["build", "treb", "--out", "other"]) != 0
    assert "--zero-shot" in capsys.readouterr().err
