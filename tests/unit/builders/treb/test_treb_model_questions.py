"""Questions that models make: discriminators give full marks, candidates agree, people decide the rest."""

from __future__ import annotations

import argparse
import csv
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.treb.dataset import load_dataset
from evalsuite.builders.treb import run_build
from evalsuite.core.errors import DatasetError
from evalsuite.core.option_values import ARGUMENTS
from evalsuite.core.protocols import Setup

if TYPE_CHECKING:
    from pathlib import Path

TABLE = "city,people,area\nOslo,700,454\nRome,2800,1285\nParis,2100,105\nLima,10000,2672\nBern,134,52\n"
MODELS = """
import json, re

RIGHT = "print(int(df.people.sum()))"
INVENTED = "shop,sales,visitors\\nNorth,120,31\\nSouth,95,44\\nEast,230,87\\nWest,61,12\\n"

def words(messages):
    return messages[0]["content"]

def draft(messages, code=RIGHT, **changes):
    asked = words(messages)
    made = {"chain": ["select", "add", "round"], "long_question": "First ...",
            "question": "=How many people live in all of the cities? Give a whole number."}
    if '"program"' in asked:
        made["program"] = code
    else:
        made |= {"question": "Give the table a title.", "answer": "Cities"}
    if '"table"' in asked:
        made |= {"table": INVENTED, "question": "What are the sales of all shops?", "program": "print(df.sales.sum())"}
    return json.dumps(made | changes)

def author(messages):
    asked = words(messages)
    if "Write one complete program" in asked:
        return f"```python\\n{RIGHT if 'people' in asked else 'print(df.sales.sum())'}\\n```"
    return "Cities" if "Write the answer and nothing else" in asked else draft(messages)

def other(messages):
    return "```python\\nprint('15734')\\n```"

def contrary(messages):
    return "```python\\nprint(len(df))\\n```"

def wrong(messages):
    return other(messages) if "complete program" in words(messages) else draft(messages, code="print(1)")

def mistaken(messages):
    return draft(messages, answer="Rivers")

def failing(messages):
    return draft(messages, code="print(df.nobody)")

def silent(messages):
    return draft(messages, code="pass")

def lengthy(messages):
    return draft(messages, code="print('a' * 500)")

def blank(messages):
    return draft(messages, code=" ")

def brief(messages):
    return draft(messages, chain=["one"])

def untabled(messages):
    return draft(messages, table="a,b")

NAMES = {"1": "City", "2": "People", "3": "Area (km2)"}

def namer(messages):
    number = re.search(r'shown as "Column (\\d)"', words(messages))[1]
    assert NAMES[number].split()[0].lower() not in words(messages)
    return NAMES[number]

def synonymous(messages):
    return "what it is"

def talkative(messages):
    return "I would rather not."

def judge(messages, mark=5, same=True, all_agree=True, kind=None):
    asked = words(messages)
    if '"kind"' in asked:
        wanted = "Table_Title_Naming" if "a title." in asked else "Table_Column_Naming" if "lost its name" in asked[
            asked.index("Question: "):] else "Table_General_Operations" if "shops" in asked else "Multi-step_Operations"
        return json.dumps({"kind": kind or wanted})
    if '"same"' in asked:
        return json.dumps({"same": [same] * 3, "all_agree": all_agree})
    return json.dumps({name: mark for name in re.findall('"([a-z]+)": 1 to 5', asked)} | {"reason": "nobody would ask"})

def keeps(messages):
    return "Let me see. " + judge(messages)

def drops(messages):
    return judge(messages, mark=4)

def excessive(messages):
    return judge(messages, mark=6)

def differs(messages):
    return judge(messages, same=False)

def doubts(messages):
    return judge(messages, same=False, all_agree=False)

def refiles(messages):
    return judge(messages, kind="Table_Retrieval")

def rejects(messages):
    return judge(messages, kind="Table_Summary")
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
        ARGUMENTS[run_build](parser)
        given = [f"function:panel_models:{word}" if word.isalpha() else word for word in words]
        status = run_build(parser.parse_args(["tables", "--out", "made/treb", "--subtask", subtask, *given]))
        found = [
            record
            for path in sorted((tmp_path / "made" / "treb").glob("*.json"))
            for record in json.loads(path.read_text("utf-8"))
        ]
        said = capsys.readouterr()
        return status, found, said.err + said.out

    return command


def disputes(tmp_path: Path) -> list[dict[str, str]]:
    with (tmp_path / "made" / "treb" / "disputed.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


JUDGES = ("--judge-model", "keeps", "--judge-model", "keeps")


def test_a_question_is_kept_with_the_answer_that_its_program_prints(build: Any, tmp_path: Path) -> None:
    status, (record,), _ = build("--model", "author", "--model", "other", *JUDGES)
    assert status == 0
    assert (record["answer"], record["number_answer"], record["votes"]) == ("15734", 15734.0, "3 of 3")
    assert (record["chain"], record["quality"]) == (["select", "add", "round"], "unanimous")
    assert record["program"].startswith("print(int(df.people")
    samples = load_dataset(Setup("m", data=tmp_path / "made" / "treb", modes=("pot",))).samples
    assert any(sample.id.startswith("Multi-step_Operations|models|cities") for sample in samples)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--model", "failing"), "its program fails: AttributeError"),
        (("--model", "silent"), "its program prints ''"),
        (("--model", "lengthy"), "prints 500 characters, more than 400"),
        (("--model", "blank"), "its author wrote no program"),
        (("--model", "brief"), "$.chain: ['one'] is too short"),
        (("--model", "talkative"), "it has no JSON object with chain"),
        (
            ("--model", "author", "--judge-model", "keeps", "--judge-model", "drops"),
            "panel_models:drops gives it plaus",
        ),
        (("--model", "author", "--judge-model", "excessive"), "6 is greater than the maximum of 5"),
        (("--model", "author", "--judge-model", "rejects"), "it is a question of Table_Summary"),
    ],
)
def test_a_draft_that_is_no_good_is_dropped_with_its_reason(build: Any, words: tuple[str, ...], reason: str) -> None:
    _, records, told = build(*words)
    assert records == []
    assert "Multi-step_Operations|models|cities is left out: " in told
    assert reason in told


def test_a_question_of_another_kind_is_filed_there(build: Any) -> None:
    _, (record,), _ = build("--model", "author", "--judge-model", "refiles")
    assert record["id"] == "Table_Retrieval|models|cities|Multi-step_Operations"


def test_what_all_candidates_agree_on_replaces_the_answer(build: Any) -> None:
    _, (record,), _ = build("--model", "wrong", *JUDGES)
    assert (record["answer"], record["quality"], record["votes"]) == ("15734", "replaced", "0 of 3")
    assert record["program"].strip() == "print('15734')"


def test_words_are_compared_by_the_judge(build: Any, tmp_path: Path) -> None:
    title = {"subtask": "Table_Title_Naming"}
    _, (record,), _ = build("--model", "author", *JUDGES, **title)
    assert (record["answer"], record["program"], record["number_answer"]) == ("Cities", "", "")
    _, (record,), _ = build("--model", "author", "--judge-model", "differs", **title)
    assert (record["quality"], record["votes"]) == ("replaced", "0 of 3")
    (tmp_path / "made" / "treb" / "Table_Title_Naming.json").unlink()
    _, records, told = build("--model", "author", "--judge-model", "doubts", **title)
    assert records == []
    assert "1 pair disputed" in told
    # Without a judge, only equal words agree.
    _, (record,), _ = build("--model", "author", **title)
    assert record["votes"] == "3 of 3"


def test_people_decide_what_the_candidates_dispute(build: Any, tmp_path: Path) -> None:
    given = ("--model", "author", "--model", "contrary", "--judge-model", "keeps")
    status, records, told = build(*given)
    assert (status, records) == (0, [])
    assert "fill in the column accepted of made/treb/disputed.csv, and build again" in told
    (row,) = disputes(tmp_path)
    assert (row["answer"], row["candidates"], row["accepted"]) == ("15734", "15734\n5\n15734", "")
    assert row["table"].startswith("city,people")
    assert row["question"].startswith("'=How many")  # no formula in a spreadsheet
    for accepted, program in (("15,734", True), ("16000", False)):
        path = tmp_path / "made" / "treb" / "disputed.csv"
        with path.open("w", encoding="gbk", newline="") as file:
            writer = csv.DictWriter(file, row)
            writer.writeheader()
            writer.writerow(row | {"accepted": accepted})
        _, (record,), told = build(*given)
        assert (record["answer"], record["quality"], bool(record["program"])) == (accepted, "reviewed", program)
        assert disputes(tmp_path)[0]["accepted"] == accepted
        assert "disputed:" not in told
    path.write_text("id,question\na,b\n", "utf-8")
    with pytest.raises(DatasetError, match="no column answer"):
        build(*given)


def test_a_model_asks_about_tables_that_it_invents(build: Any, tmp_path: Path) -> None:
    title = {"subtask": "Table_Title_Naming"}
    _, records, _ = build("--model", "author", "--zero-shot", "11", "--judge-model", "keeps", **title)
    made = [record for record in records if "invented" in record["id"]]
    assert {record["id"].split("|")[-1] for record in made} >= {"invented_retail", "invented_retail 2"}
    first = next(record for record in made if record["id"] == "Table_General_Operations|models|invented_retail")
    assert (first["answer"], first["program"]) == ("506", "print(df.sales.sum())")
    header = (tmp_path / "made" / "treb" / first["file_path"][0]).read_text("utf-8").splitlines()[0]
    assert header == "shop,sales,visitors"
    _, _, told = build("--model", "untabled", "--zero-shot", "1", "--judge-model", "keeps", **title)
    assert "its invented table is not suitable: it has no rows" in told


@pytest.mark.parametrize("judges", [(), JUDGES])
def test_a_column_that_lost_its_name_is_kept_where_all_models_find_it(
    build: Any, tmp_path: Path, judges: tuple[str, ...]
) -> None:
    _, (record,), _ = build("--model", "namer", *judges, subtask="Table_Column_Naming")
    assert (record["votes"], record["program"]) == ("3 of 3", "")
    assert record["answer"] in {"city", "people", "area"}
    assert "has lost its name" in record["question"]
    header = (tmp_path / "made" / "treb" / record["file_path"][0]).read_text("utf-8").splitlines()[0]
    assert "Column " in header
    assert record["answer"] not in header
    sample = next(
        sample
        for sample in load_dataset(Setup("m", data=tmp_path / "made" / "treb", modes=("tcot",))).samples
        if sample.id.startswith("Table_Column_Naming")
    )
    assert sample.target == record["answer"]


def test_a_column_whose_name_nobody_can_tell_is_for_people_or_dropped(build: Any, tmp_path: Path) -> None:
    naming = {"subtask": "Table_Column_Naming"}
    _, records, _ = build("--model", "synonymous", **naming)
    assert records == []
    assert disputes(tmp_path)[0]["answer"] in {"city", "people", "area"}
    _, records, told = build("--model", "namer", "--judge-model", "drops", **naming)
    assert records == []
    assert "Table_Column_Naming|models|cities is left out: " in told
    assert "panel_models:drops gives it accuracy 4 of 5" in told


def test_every_subtask_about_tables_can_be_built() -> None:
    from evalsuite.benchmarks.treb.dataset import SUBTASKS
    from evalsuite.builders.treb.model_questions import SUBTASKS as BY_MODELS
    from evalsuite.builders.treb.templates import TEMPLATES

    assert {subtask.file for subtask in SUBTASKS if subtask.table} == {*TEMPLATES, *BY_MODELS}
