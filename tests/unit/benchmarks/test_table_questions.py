"""Questions about tables in the published forms of six sets; the questions and tables are our own."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from evalsuite.benchmarks import table_questions
from evalsuite.core.errors import DatasetError, SandboxError, SandboxUnavailable, SettingsError
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Completion

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CITIES: list[list[Any]] = [["city", "people", "note"], ["Oslo", 700, 'the "tiger"'], ["Rome", 2800, "seven | hills"]]
QUESTIONS = {"db_id": "towns", "question": "Which cities, by people?"}
LARGE = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 201) SELECT x FROM n"


def write_text(path: Path, text: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8")


def make_wiki(folder: Path) -> None:
    quoted = "\n".join(",".join('"' + str(cell).replace('"', '\\"') + '"' for cell in row) for row in CITIES)
    write_text(folder / "csv/1-csv/2.csv", quoted)
    rows = ["id\tutterance\tcontext\ttargetValue", 'nu-0\twhich city has "hills\tcsv/1-csv/2.csv\tRome']
    rows.append('nu-1\twhich notes\\nare there\tcsv/1-csv/2.csv\tseven \\p hills|the "tiger"')
    write_text(folder / "data/pristine-unseen-tables.tsv", "\n".join(rows) + "\n")


def make_facts(folder: Path) -> None:
    write_text(folder / "data/all_csv/2-1.html.csv", "\n".join("#".join(map(str, row)) for row in CITIES))
    facts = {"2-1.html.csv": [["rome has 2800 people", "oslo has 2800 people"], [1, 0], "cities"]}
    write_text(folder / "tokenized_data/test_examples.json", facts)


def make_bench(folder: Path) -> None:
    table = {"columns": CITIES[0], "data": CITIES[1:]}
    item = {"id": "a", "qtype": "NumericalReasoning", "qsubtype": "Counting", "question": "How many?", "answer": 2}
    chart = {**item, "id": "c", "qtype": "Visualization", "table": table}
    items = [{**item, "table": table}, {**item, "id": "b", "answer": "1,062, Rome", "table": json.dumps(table)}, chart]
    write_text(folder / "TableBench.jsonl", "\n".join(map(json.dumps, items)))


def make_databench(folder: Path) -> None:
    (folder / "data/001_Towns").mkdir(parents=True)
    answers = [("True", "boolean"), ("['Oslo', 'Rome']", "list[category]"), ("[700, 2800]", "list[number]")]
    answers += [("[]", "list[number]"), ('["Rome\'s"]', "list[category]")]
    rows = ", ".join(f"('Q?', '{answer.replace(chr(39), chr(39) * 2)}', '{kind}', 'towns')" for answer, kind in answers)
    for name, values in (
        ("qa", f"(VALUES {rows}) t(question, answer, type, dataset)"),
        ("all", "(VALUES ('Oslo', 700), ('Rome', 2800)) t(city, people)"),
    ):
        duckdb.sql(f"COPY (FROM {values}) TO '{folder}/data/001_Towns/{name}.parquet'")


def make_database(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE city (city TEXT, people INTEGER, note TEXT)")
        database.executemany("INSERT INTO city VALUES (?, ?, ?)", CITIES[1:])
        for name in ("class", "2 words", "2_words"):
            database.execute(f'CREATE TABLE "{name}" (x)')
        database.commit()


def make_spider(folder: Path) -> None:
    make_database(folder / "database/towns/towns.sqlite")
    queries = ["SELECT city, people FROM city ORDER BY people", "SELECT city FROM city WHERE 0", LARGE]
    write_text(folder / "dev.json", [{**QUESTIONS, "query": query} for query in queries])


def make_bird(folder: Path) -> None:
    make_database(folder / "dev_databases/towns/towns.sqlite")
    item = {**QUESTIONS, "question_id": 7, "evidence": "People are thousands.", "difficulty": "simple"}
    write_text(folder / "mini_dev_sqlite.json", [{**item, "SQL": "SELECT city FROM city ORDER BY people"}])


MAKERS: dict[str, Callable[[Path], None]] = {
    "wikitablequestions": make_wiki,
    "tabfact": make_facts,
    "tablebench": make_bench,
    "databench": make_databench,
    "spider": make_spider,
    "bird": make_bird,
}


class Programmer:
    """Gives the same answer to every question, and remembers what it was asked."""

    name = "scripted"

    def __init__(self, answer: str) -> None:
        self.answer, self.prompts = answer, list[str]()

    async def chat(self, prompt: Any, **_: Any) -> Completion:
        self.prompts.append(prompt[-1].content)
        return Completion(self.answer)


def load(name: str, folder: Path, *modes: str, **args: Any) -> tuple[Any, Setup, list[Any], str]:
    bench: Any = getattr(table_questions, name.upper())
    setup = Setup("scripted", data=folder, modes=modes or bench.default_modes, args=args)
    dataset = bench.load(setup)
    return bench, setup, list(dataset.samples), dataset.source


def run(name: str, folder: Path, answer: str, *modes: str) -> tuple[dict[str, float], Programmer]:
    """Score one answer to every question of a set."""
    bench, setup, samples, _ = load(name, folder, *modes)
    model = Programmer(answer)

    async def play() -> dict[str, float]:
        solver, (scorer,) = bench.solver(setup), bench.scorers(setup)
        scores = {}
        for sample in samples:
            transcript = await solver(sample, model)
            assert (solver.sandbox_for(sample) is None) == (scorer.sandbox_for(sample) is not None)
            ((_, score),) = (await scorer(sample, transcript)).items()
            scores[sample.id] = float(getattr(score, "value", score))
        await solver.aclose()
        await scorer.aclose()
        return scores

    try:
        return asyncio.run(play()), model
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(params=MAKERS)
def name(request: Any) -> str:
    return str(request.param)


PROGRAMS = {
    "wikitablequestions": ("print(*df.note[::-1], sep='\\n')", {"nu-0": 0.0, "nu-1": 1.0}),
    "tabfact": ("print((df.people == 2800)[1])", {"2-1.html.csv-1": 1.0, "2-1.html.csv-2": 0.0}),
    "tablebench": ("print(len(df))", {"a": 1.0, "b": 0.0}),
    "databench": ("print(list(df.people))", {"1": 0.0, "2": 0.0, "3": 1.0, "4": 0.0, "5": 0.0}),
    "spider": ("for row in city.itertuples(): print(row.city, row.people, sep='\\t')", {"1": 1.0, "2": 0.0}),
    "bird": ("print(*city.city[::-1], len(class_), len(_2_words), len(_2_words_0), sep='\\n')", {"7": 0.0}),
}


def test_programs_find_the_tables_and_are_scored_by_what_they_print(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path)
    program, expected = PROGRAMS[name]
    scores, model = run(name, tmp_path, f"```python\n{program}\n```", "pot")
    assert scores == expected
    assert "Oslo" in model.prompts[0], "the tables are described"


def test_queries_are_executed_and_the_prompt_has_the_tables(tmp_path: Path) -> None:
    for name, good, bad in (("spider", 1, 2), ("bird", 7, 8)):
        MAKERS[name](tmp_path / name)
        query = "```sql\nSELECT city, people FROM city ORDER BY people\n```"
        scores, model = run(name, tmp_path / name, query if good == 1 else query.replace(", people F", " F"))
        assert scores[str(good)] == 1.0
        assert not scores.get(str(bad))
        assert "CREATE TABLE city (city TEXT" in model.prompts[0]
    assert "People are thousands." in model.prompts[0]


def test_answers_are_read_as_the_sets_write_them(tmp_path: Path) -> None:
    targets = {}
    for name, make in MAKERS.items():
        make(tmp_path / name)
        targets[name] = [sample.target for sample in load(name, tmp_path / name, "pot")[2]]
    assert targets == {
        "wikitablequestions": [["Rome"], ["seven | hills", 'the "tiger"']],
        "tabfact": ["yes", "no"],
        "tablebench": [["2"], ["1,062", "Rome"]],
        "databench": ["True", ["Oslo", "Rome"], ["700", "2800"], "[]", ["Rome's"]],
        "spider": [["Oslo\t700", "Rome\t2800"], "no rows"],
        "bird": [["Oslo", "Rome"]],
    }


def test_results_with_too_many_rows_are_left_out_of_programs_and_counted(tmp_path: Path) -> None:
    make_spider(tmp_path)
    _, _, samples, source = load("spider", tmp_path, "sql", "pot")
    assert [sample.id for sample in samples] == ["1-sql", "2-sql", "3-sql", "1-pot", "2-pot"]
    assert source == "dev.json; 1 left out in pot (over 200 rows or 64 MiB)"


def test_a_database_too_large_for_programs_is_left_out(tmp_path: Path) -> None:
    make_bird(tmp_path)
    with (tmp_path / "dev_databases/towns/towns.sqlite").open("ab") as file:
        file.truncate((64 << 20) + 1)
    assert load("bird", tmp_path, "pot")[2:] == (
        [],
        "mini_dev_sqlite.json; 1 left out in pot (over 200 rows or 64 MiB)",
    )


def test_another_file_of_questions_can_be_named(tmp_path: Path) -> None:
    make_wiki(tmp_path)
    (tmp_path / "data/pristine-unseen-tables.tsv").rename(tmp_path / "data/training.tsv")
    assert load("wikitablequestions", tmp_path, file="data/training.tsv")[3] == "training.tsv"


def test_a_file_of_questions_about_several_tables_of_databench_names_each_table(tmp_path: Path) -> None:
    make_databench(tmp_path)
    row = {"question": "Q?", "answer": "2", "type": "number", "dataset": "001_Towns"}
    write_text(tmp_path / "train.jsonl", row)
    (sample,) = load("databench", tmp_path, file="train.jsonl")[2]
    assert sample.metadata["table"] == "data/001_Towns/all.parquet"


@pytest.mark.parametrize(
    ("name", "file", "content", "problem"),
    [
        ("wikitablequestions", "data/pristine-unseen-tables.tsv", "id\tutterance\na", "line 2.*1 fields"),
        (
            "wikitablequestions",
            "data/pristine-unseen-tables.tsv",
            "id\tutterance\tcontext\ttargetValue\na\tq\t../x\tb",
            r"the table '\.\./x'",
        ),
        ("tabfact", "tokenized_data/test_examples.json", {"t": [["a"], [1, 0], "c"]}, "longer than"),
        ("tabfact", "tokenized_data/test_examples.json", {"t": [["a"], [2], "c"]}, "'label' is 2"),
        ("tabfact", "tokenized_data/test_examples.json", {"t": [["a"], [1], "c"]}, "the table 'data/all_csv/t'"),
        ("tabfact", "tokenized_data/test_examples.json", {"t": []}, "a label for each"),
        ("tablebench", "TableBench.jsonl", {"id": 1, "table": "[1]"}, "field 'table': found"),
        ("tablebench", "TableBench.jsonl", {"id": 1, "table": {"columns": []}}, "'data'"),
        ("spider", "dev.json", [{**QUESTIONS, "query": "x"}], "the table 'database/towns/towns.sqlite'"),
        ("spider", "dev.txt", "", "no questions"),
    ],
)
def test_files_in_another_form_are_refused_with_their_place(
    tmp_path: Path, name: str, file: str, content: Any, problem: str
) -> None:
    write_text(tmp_path / file, content)
    with pytest.raises(DatasetError, match=problem):
        load(name, tmp_path)


def test_a_right_query_that_fails_is_an_error_of_the_data(tmp_path: Path) -> None:
    make_bird(tmp_path)
    text = (tmp_path / "mini_dev_sqlite.json").read_text()
    (tmp_path / "mini_dev_sqlite.json").write_text(text.replace("SELECT city", "SELECT town"))
    with pytest.raises(DatasetError, match="no such column: town"):
        load("bird", tmp_path, "pot")


def test_a_table_that_cannot_be_read_is_an_error_of_the_case(tmp_path: Path) -> None:
    make_spider(tmp_path)
    (tmp_path / "dev.json").write_text(json.dumps([{**QUESTIONS, "query": "SELECT 1"}]))
    bench, setup, (sample,), _ = load("spider", tmp_path, "sql")
    pot = load("spider", tmp_path, "pot")[2][0]
    (tmp_path / "database/towns/towns.sqlite").write_text("no database")
    for one in (sample, pot):
        with pytest.raises(SandboxError, match="file is not a database"):
            asyncio.run(bench.solver(setup)(one, Programmer("x")))


def test_without_a_folder_the_message_says_how_to_name_one() -> None:
    with pytest.raises(SettingsError, match="DIR/tabfact"):
        table_questions.TABFACT.load(Setup("m", modes=("pot",)))
