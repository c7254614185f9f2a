"""SQL by execution in the sandbox, by the rules of Spider's and BIRD's evaluators."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from itertools import permutations
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SandboxUnavailable, ScoringError
from evalsuite.core.types import Sample, Transcript
from evalsuite.scorers import sql_execution
from evalsuite.scorers.sql import find_sql
from evalsuite.scorers.sql_inside import MOST_ROWS, are_rows_equal, compare_queries, run_query

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT {} FROM n"
CITIES = "SELECT name, people FROM city"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql")
    for name, mode in (("towns", "delete"), ("logged", "wal")):
        with closing(sqlite3.connect(path / f"{name}.sqlite")) as database:
            database.execute(f"PRAGMA journal_mode = {mode}")
            database.execute("CREATE TABLE city (name TEXT, people INTEGER, country TEXT)")
            rows = [("Oslo", 700, "NO"), ("Bergen", 290, "NO"), ("Rome", 2800, "IT"), ("Milan", 1400, "IT")]
            database.executemany("INSERT INTO city VALUES (?, ?, ?)", rows)
            database.execute("CREATE VIEW big AS SELECT name FROM city WHERE people > 1000")
            database.commit()
    (path / "empty.sqlite").touch()
    (path / "text.sqlite").write_text("not a database")
    with (path / "large.sqlite").open("wb") as file:
        file.truncate((1 << 30) + 1)
    return path


class Judge:
    """Scores answers with one sandbox per rule."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.scorers = {match: sql_execution(match=match, timeout=2, root=folder) for match in ("spider", "bird")}

    def __call__(self, gold: Any, answer: str, match: str = "spider", database: Any = "towns.sqlite") -> Any:
        sample = Sample("s", "Which?", gold, metadata={"database": database})
        try:
            return self.loop.run_until_complete(self.scorers[match](sample, Transcript(answer)))["sql_execution"]
        except SandboxUnavailable as error:
            pytest.skip(str(error))

    def close(self) -> None:
        for scorer in self.scorers.values():
            self.loop.run_until_complete(scorer.aclose())
        self.loop.close()


@pytest.fixture(scope="module")
def judge(folder: Path) -> Iterator[Judge]:
    one = Judge(folder)
    yield one
    one.close()


@pytest.mark.parametrize(
    "answer",
    [
        f"```sql\n{CITIES};\n```\nIt returns:\n```\nOslo | 700\n```",
        f"```sqlite\n{CITIES}",
        f"```SQL {CITIES};```",
        f"So: ```sql\n{CITIES}\n``` That is all.",
        f"```\n{CITIES}\n```<|im_end|>",
        f"```python\nprint(1)\n```\n```\n{CITIES}\n```",
        f"The query is: {CITIES};\n\nIt selects two columns.",
        f"SQL:\n{CITIES}\n\nWith it, you get all cities.",
        f"{CITIES.lower()}</s>",
    ],
)
def test_the_query_of_an_answer_is_found_in_any_usual_form(answer: str) -> None:
    assert find_sql(answer).rstrip(";").lower() == CITIES.lower()


@pytest.mark.parametrize(
    ("gold", "answer", "spider", "bird"),
    [
        (CITIES, CITIES, "right", "right"),
        (CITIES, f"So:\n```sql\nSELECT 1\n```\nor better\n```sql\n{CITIES};\n```", "right", "right"),
        (CITIES, f"{CITIES} ORDER BY people", "right", "right"),
        (f"{CITIES} ORDER BY people", CITIES, "wrong", "right"),
        (CITIES, "SELECT people, name FROM city", "right", "wrong"),
        ("SELECT country FROM city", "SELECT DISTINCT country FROM city", "right", "right"),
        ("SELECT country FROM city", "SELECT country FROM city GROUP BY country", "wrong", "right"),
        ("SELECT 'distinct'", "SELECT 'distinct'", "right", "right"),
        ("SELECT name FROM city WHERE people > 1000", "SELECT name FROM big", "right", "right"),
        ("SELECT name FROM city WHERE people > = 1400", "SELECT name FROM big", "right", None),
        ("SELECT name FROM city WHERE people > 9000", "SELECT 1 WHERE 0", "right", "right"),
        (CITIES, "SELECT name FROM city", "wrong", "wrong"),
        (CITIES, "SELECT nome FROM city", "failed", "failed"),
        (CITIES, f"{CITIES}; {CITIES}", "failed", "failed"),
        (CITIES, "DELETE FROM city", "failed", "failed"),
        (CITIES, "ATTACH '/etc/passwd' AS other", "failed", "failed"),
        (CITIES, "PRAGMA table_info(city)", "failed", "failed"),
        (CITIES, ENDLESS.format("x"), "failed", "failed"),
        (CITIES, ENDLESS.format("count(*)"), "timed out", "timed out"),
        (CITIES, "SELECT zeroblob(900000000)", "failed", "failed"),
        (CITIES, "", "missing", "missing"),
    ],
)
def test_a_query_is_right_if_its_rows_are_by_the_rule_of_the_set(
    judge: Judge, gold: str, answer: str, spider: str, bird: str | None
) -> None:
    for match, cause in (("spider", spider), ("bird", bird)):
        if cause:
            score = judge(gold, answer, match)
            assert (score.facts["sql"], score.value) == (cause, float(cause == "right")), (match, score.note)


def test_a_database_with_a_write_ahead_log_is_read_and_stays_as_it_is(judge: Judge, folder: Path) -> None:
    before = (folder / "logged.sqlite").read_bytes()
    assert judge(CITIES, CITIES, database="logged.sqlite").value == 1.0
    assert judge(CITIES, "DROP TABLE city", database="logged.sqlite").value == 0.0
    assert (folder / "logged.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    ("gold", "database", "problem"),
    [
        (CITIES, "empty.sqlite", "the right query of sample 's' fails: no such table: city"),
        ("SELECT nome FROM city", "towns.sqlite", "the right query of sample 's' fails: no such column"),
        (CITIES, "text.sqlite", "file is not a database"),
        (CITIES, "large.sqlite", "more than 1,024 MiB"),
        (CITIES, "none.sqlite", "none.sqlite cannot be read"),
        (CITIES, None, "needs the right query"),
        (None, "towns.sqlite", "needs the right query"),
    ],
)
def test_what_is_not_the_models_fault_is_an_error(judge: Judge, gold: Any, database: Any, problem: str) -> None:
    with pytest.raises(ScoringError, match=problem):
        judge(gold, CITIES, database=database)


def test_more_rows_than_the_limit_are_refused(folder: Path) -> None:
    database = (folder / "towns.sqlite").read_bytes()
    assert len(run_query(database, f"{ENDLESS.format('x')} LIMIT {MOST_ROWS}", 60)) == MOST_ROWS
    with pytest.raises(ValueError, match="more than 100,000 rows"):
        run_query(database, f"{ENDLESS.format('x')} LIMIT {MOST_ROWS + 1}", 60)


def test_results_agree_as_every_order_of_columns_tells() -> None:
    random = Random(20261124)
    verdicts = set()
    for _ in range(500):
        gold, other = (
            [tuple(random.choice("ab") for _ in range(3)) for _ in range(random.randint(0, 3))] for _ in range(2)
        )
        for ordered in (True, False):
            kept = list if ordered else sorted
            told = any(kept(gold) == kept([tuple(row[at] for at in order) for row in other])
                       for order in permutations(range(3)))  # fmt: skip
            assert are_rows_equal(gold, other, ordered=ordered) == told
            verdicts.add(told)
    assert verdicts == {True, False}


def test_the_outcome_of_the_right_query_comes_first(folder: Path) -> None:
    database = (folder / "towns.sqlite").read_bytes()
    assert list(compare_queries(database, CITIES, CITIES, "bird", 5)) == [{}, {"same": True, "rows": [4, 4]}]
    assert list(compare_queries(database, CITIES, "x", "spider", 5)) == [{}, {"failed": 'near "x": syntax error'}]
    assert list(compare_queries(database, "x", CITIES, "spider", 5)) == [{"gold": 'near "x": syntax error'}]
