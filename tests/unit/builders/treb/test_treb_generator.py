"""The generator's answers against pandas, worked out from the words of each question alone."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import re
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evalsuite.benchmarks.treb.dataset import SHIPPED, load_dataset
from evalsuite.benchmarks.treb.tables import SourceTable, read_csv
from evalsuite.builders.treb import _add_question_pairs, _make_template_pairs, build_pairs, run_build, templates
from evalsuite.builders.treb.model_questions import BuiltPairs
from evalsuite.builders.treb.sheet import Sheet, find_defect
from evalsuite.builders.treb.templates import TEMPLATES, translate_pair
from evalsuite.core.errors import SettingsError
from evalsuite.core.option_values import ARGUMENTS
from evalsuite.core.protocols import Setup
from evalsuite.metrics.numbers import numeric_match
from evalsuite.sandbox import Sandbox, TableFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

NAMES = ("employees", "tea_sales_zh")
Q = r'"([^"]+)"'
STATISTICS: dict[str, Callable[[Any], float]] = {
    "sum": lambda column: column.sum(),
    "mean": lambda column: column.mean(),
    "median": lambda column: column.median(),
    "greatest value": lambda column: column.max(),
    "smallest value": lambda column: column.min(),
    "sample standard deviation": lambda column: np.std(column, ddof=1),
}
SIGNS: dict[str, Callable[[Any, float], Any]] = {
    "greater than": lambda column, bound: column > bound,
    "less than": lambda column, bound: column < bound,
    "at least": lambda column, bound: column >= bound,
    "at most": lambda column, bound: column <= bound,
}


def parse_csv(text: str, header_rows: int) -> SourceTable:
    return read_csv(io.StringIO(text, newline=""), header_rows)


def mask(df: Any, words: str) -> Any:
    """The rows that a condition in words names."""
    for word, join in ((" and ", np.logical_and), (" or ", np.logical_or)):
        if word in words:
            return join(*(mask(df, part) for part in words.split(word)))
    if found := re.fullmatch(rf"{Q} is ({'|'.join(SIGNS)}) (\S+)", words):
        return SIGNS[found[2]](df[found[1]], float(found[3]))
    found = re.fullmatch(rf"{Q} is {Q}", words)
    assert found, words
    return df[found[1]] == found[2]


def place(df: Any, text: str, step: int) -> Any:
    rows, columns = np.where(df.astype(str) == text)
    assert len(rows) == 1
    return df.iloc[rows[0] + step, columns[0]]


def uniform(column: Any) -> float:
    scaled = (column - column.min()) / (column.max() - column.min())
    return float(stats.kstest(scaled, "uniform").pvalue)


def verdict(pvalue: float) -> str:
    return "No" if pvalue < 0.05 else "Yes"


def key(df: Any, name: str, rows: Any) -> str:
    return ", ".join(df.loc[rows, name])


def the(df: Any, name: str, column: str, best: str) -> Any:
    return df.sort_values(column, ascending=best == "smallest")[name].iloc[0]


# What each question asks for, by its words, in pandas.
MEANINGS: dict[str, Callable[..., Any]] = {
    r"What is in row (\d+) of the data, column (\d+)\?": lambda df, r, c: df.iloc[int(r) - 1, int(c) - 1],
    rf"What is in row (\d+) of the data in the column {Q}\?": lambda df, r, c: df[c].tolist()[int(r) - 1],
    rf"What is in the cell directly below {Q}\?": lambda df, text: place(df, text, 1),
    rf"What is in the cell directly above {Q}\?": lambda df, text: place(df, text, -1),
    rf"What is in the column {Q} where {Q} is {Q}\?": lambda df, c, k, v: df.set_index(k)[c].to_dict()[v],
    rf"In which row of the data is {Q} in the column {Q}\?": lambda df, v, k: df[k].tolist().index(v) + 1,
    rf"Which column is called {Q}, counted from the left\?": lambda df, c: df.columns.get_loc(c) + 1,
    rf"What is the name of the column directly to the right of {Q}\?": lambda df, c: df.columns[
        df.columns.get_loc(c) + 1
    ],
    rf"Which values has the column {Q} where (.*)\?": lambda df, k, words: key(df, k, mask(df, words)),
    r"In how many rows of the data is it so that (.*)\?": lambda df, words: mask(df, words).sum(),
    rf"What is the ({'|'.join(STATISTICS)}) of the column {Q}, rounded to 2 decimals\?": lambda df, s, c: round(
        STATISTICS[s](df[c]), 2
    ),
    rf"What is the ({'|'.join(STATISTICS)}) of the column {Q} over the rows where (.*), rounded to 2 decimals\?": (
        lambda df, s, c, words: round(STATISTICS[s](df[mask(df, words)][c]), 2)
    ),
    rf"What percentage of the sum of {Q} is in the rows where (.*), rounded to 2 decimals\?": (
        lambda df, c, words: round(100 * np.average(mask(df, words), weights=df[c]), 2)
    ),
    rf"Which value has the column {Q} in the row with the (greatest|smallest) value of {Q}\?": (
        lambda df, k, best, c: the(df, k, c, best)
    ),
    rf"How many different values are in the column {Q}, empty cells aside\?": lambda df, c: len(df[c].value_counts()),
    rf"What is the rank of the row where {Q} is {Q} by {Q}, that is, one more than the number of rows with a "
    r"greater value\?": lambda df, k, v, c: 1 + (df[c] > df.set_index(k)[c].to_dict()[v]).sum(),
    rf"For which value of the column {Q} is the mean of {Q} greatest\?": lambda df, g, c: df.pivot_table(c, g)[
        c
    ].idxmax(),
    rf"What is Pearson's correlation of the columns {Q} and {Q}, rounded to 2 decimals\?": lambda df, a, b: round(
        np.corrcoef(df[a], df[b])[0, 1], 2
    ),
    rf"Is the column {Q} compatible with a normal distribution \(Shapiro-Wilk test, 5% level\)\?": (
        lambda df, c: verdict(stats.shapiro(df[c]).pvalue)
    ),
    rf"What is the statistic W of the Shapiro-Wilk test for the column {Q}, rounded to 3 decimals\?": (
        lambda df, c: round(stats.shapiro(df[c]).statistic, 3)
    ),
    rf"Is the column {Q} compatible with a uniform distribution between its smallest and its greatest value "
    r"\(Kolmogorov-Smirnov test, 5% level\)\?": lambda df, c: verdict(uniform(df[c])),
    rf"What is the skewness of the column {Q} \(adjusted Fisher-Pearson\), rounded to 2 decimals\?": (
        lambda df, c: round(float(stats.skew(df[c], bias=False)), 2)
    ),
    rf"Are the values of the column {Q} equally frequent \(chi-square test, 5% level\)\?": lambda df, c: verdict(
        stats.chisquare(np.unique(df[c], return_counts=True)[1]).pvalue
    ),
}
LISTED = "them only, in the order of the table, separated by commas"
FORMS = ("the number only", "that only", LISTED, f"{LISTED}, those that have commas in quotation marks")
ENDING = rf" (Yes or No\? )?Answer with ({'|'.join(sorted(FORMS, reverse=True))})\."


def expected(record: Mapping[str, Any]) -> str:
    frame = pd.read_csv(SHIPPED / record["file_path"][0])
    question = record.get("question_en", record["question"])
    for words, meaning in MEANINGS.items():
        if found := re.fullmatch(words + ENDING, question):
            expected = str(meaning(frame, *found.groups()[:-2]))
            return {"Yes": "是", "No": "否"}.get(expected, expected) if "question_en" in record else expected
    raise AssertionError(question)


@pytest.fixture(scope="module")
def built() -> BuiltPairs:
    return asyncio.run(build_pairs([SHIPPED / "csv" / f"{name}.csv" for name in NAMES], limit=2))


def test_every_answer_is_what_pandas_makes_of_the_question(built: BuiltPairs) -> None:
    wrong = [
        (record["question"], record["answer"], expected(record))
        for record in built.records
        if expected(record) != record["answer"] and not numeric_match(expected(record), record["answer"])
    ]
    assert wrong == []


def test_every_template_has_made_a_pair_and_every_meaning_is_used(built: BuiltPairs) -> None:
    made = {record["id"].split("|")[-1].rsplit("_", 1)[0] for record in built.records}
    assert made == {
        template.__name__.removeprefix("_ask_") for templates in TEMPLATES.values() for template in templates
    }
    used = {
        words
        for words in MEANINGS
        for record in built.records
        if re.fullmatch(words + ENDING, record.get("question_en", record["question"]))
    }
    assert used == set(MEANINGS)


def test_no_program_contradicts_its_pair(built: BuiltPairs) -> None:
    assert built.refuted == {}
    assert built.skipped == {}


def test_the_number_is_given_where_the_answer_is_one(built: BuiltPairs) -> None:
    for record in built.records:
        if record["number_answer"] == "":
            assert "Answer with the number only" not in record["question"]
            assert "只回答数字" not in record["question"]
        else:
            assert numeric_match(record["answer"], record["number_answer"]) == 1.0


def test_a_table_with_chinese_names_has_its_questions_in_chinese(built: BuiltPairs) -> None:
    ours = [record for record in built.records if "tea_sales_zh" in record["id"]]
    assert len(ours) > 20
    for record in ours:
        assert re.search(r"[？。]$", record["question"])
        assert "Answer" not in record["question"]
        # Names, cells and numbers are those of the English question.
        kept = {*re.findall(Q, record["question_en"]), *re.findall(r"(?<![\d.])\d+\.\d+", record["question_en"])}
        assert all(part in record["question"] for part in kept)
    assert not any("question_en" in record for record in built.records if "employees" in record["id"])


def test_a_name_with_quotation_marks_is_asked_for_in_chinese() -> None:
    sheet = Sheet("t", parse_csv('name,"5"" pipes",votes\na,4,7\nb,9,3\nc,2,5\n', 1))
    (pair, *_) = (pair for _, pair in _make_template_pairs(sheet, Random(3), 1) if '5" pipes' in pair.question)
    assert '5" pipes' in translate_pair(pair).question
    assert translate_pair(pair).question.endswith(("只回答该内容。", "只回答数字。"))


def test_a_column_called_yes_or_no_is_asked_for_in_chinese() -> None:
    sheet = Sheet("t", parse_csv("姓名,城市,Yes or No?,票数\na,北,ja,3\nb,南,nein,8\nc,东,ja,4\nd,西,nein,1\n", 1))
    pairs = [pair for _, pair in _make_template_pairs(sheet, Random(0), 3) if "Yes or No?" in pair.question]
    assert pairs
    assert all((made := translate_pair(pair)).question == pair.chinese and made.answer == pair.answer for pair in pairs)


def test_what_does_not_add_up_is_never_summed() -> None:
    names = ["price", "Unit_price", "rating", "score (%)", "people", "sales", "单价", "销量"]
    rows = "\n".join(f"row{n}," + ",".join(str(n * k + 0.5) for k in range(1, 9)) for n in range(3))
    sheet = Sheet("t", parse_csv(f"name,{','.join(names)}\n{rows}\n", 1))
    assert sheet.summable_columns == ["people", "sales", "销量"]
    assert set(sheet.arithmetic_columns) == set(names)


def pairs(seed: int, name: str = "employees") -> list[tuple[str, templates.TemplatePair]]:
    table = parse_csv((SHIPPED / "csv" / f"{name}.csv").read_text("utf-8"), 1)
    return list(_make_template_pairs(Sheet(name, table), Random(seed), 2))


def test_the_same_seed_makes_the_same_pairs_and_another_makes_others() -> None:
    assert pairs(1) == pairs(1)
    assert pairs(1) != pairs(2)


def test_no_question_is_asked_twice() -> None:
    questions = [each.question for _, each in pairs(3)]
    assert len(set(questions)) == len(questions)


def test_a_pair_whose_program_says_something_else_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def lying(sheet: Sheet, random: Random) -> templates.TemplatePair:
        return templates.make_number_pair(("How many rows?", ""), [], len(sheet.table.rows) + 1, "print(len(df))")

    def failing(sheet: Sheet, random: Random) -> templates.TemplatePair:
        return templates.make_number_pair(("How many?", ""), [], 1, "print(df.nothing)")

    async def alone() -> BuiltPairs:
        built, sandbox = BuiltPairs(), Sandbox()
        await _add_question_pairs(Sheet("t", parse_csv("name,votes\na,1\nb,2\nc,4\n", 1)), built, sandbox, Random(0), 1)
        await sandbox.aclose()
        return built

    monkeypatch.setattr("evalsuite.builders.treb.TEMPLATES", {"Table_Query": (lying, failing)})
    built = asyncio.run(alone())
    assert built.records == []
    assert built.refuted["Table_Query|generated|t|lying_1"] == "its program prints '3' instead of '4'"
    assert "AttributeError" in built.refuted["Table_Query|generated|t|failing_1"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name,n\n", "no rows"),
        ("name,n\n,1\n,\n,\n,\n", "7 of its 8 cells are empty"),
        ("name,name\na,1\nb,2\n", "does not name every column"),
        ("name,\na,1\nb,2\n", "does not name every column"),
        ("08:00,14.2\n09:00,15.1\n10:00,16.0\n", "first row looks like data"),
        ("name,n\n,kg\na,1\nb,2\n", "more than one header row"),
        ("name,n\na,1\nb,2\nTotal:,3\n", "totals or averages"),
        ("名称,数量\n甲,1\n乙,2\n合计,3\n", "totals or averages"),
        ("name,n\na,x\nb,y\n", "no column of numbers"),
        (f"name,n\n{'a' * 30_000},1\nb,2\n", "characters of content, more than 30000"),
    ],
)
def test_a_table_that_does_not_qualify_is_refused_for_its_reason(text: str, reason: str) -> None:
    assert reason in str(find_defect(parse_csv(text, 1)))


@pytest.mark.parametrize(
    "text", ["name,votes\na,1\nb,2\nc,4\n", "name,2010,2020\na,1,5\nb,2,6\nc,4,8\n", "name,votes\na,\nb,2\nc,3\nd,5\n"]
)
def test_an_ordinary_table_qualifies(text: str) -> None:
    assert find_defect(parse_csv(text, 1)) is None


@pytest.mark.parametrize(
    "text",
    [
        "votes,goals\n1,4\n1,5\n2,6\n4,6\n",
        "name,votes\na,1\na,2\na,4\n",
        "name,votes,goals\na,1,\nb,2,5\nc,,\nd,,5\ne,4,7\n",
        "votes\n3\n8\n4\n",
        "code,votes\nNA,1\nx,2\ny,4\n",
    ],
)
def test_poor_tables_break_no_template(text: str) -> None:
    assert find_defect(parse_csv(text, 1)) is None
    for seed in range(20):
        list(_make_template_pairs(Sheet("poor", parse_csv(text, 1)), Random(seed), 2))


def arguments(*written: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    ARGUMENTS[run_build](parser)
    return parser.parse_args(written)


def test_the_command_writes_files_that_the_loader_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "good.csv").write_text((SHIPPED / "csv" / "planets.csv").read_text("utf-8"), encoding="utf-8")
    (tables / "bad.csv").write_bytes(b"\xff\xfe")
    (tables / "enormous.csv").write_text("name,n\n" + "a,1\n" * 50_000, encoding="utf-8")
    out = tmp_path / "data" / "treb"
    assert run_build(arguments(str(tables), "--out", str(out), "--seed", "4")) == 0
    said = capsys.readouterr()
    assert "bad.csv is left out" in said.err
    assert "enormous.csv is left out: it has more than 30000 characters" in said.err
    assert "from 1 table in" in said.out
    records = [record for path in out.glob("*.json") for record in json.loads(path.read_text("utf-8"))]
    assert len(load_dataset(Setup("m", data=out, modes=("pot",))).samples) == len(records) > 10


def test_a_folder_without_a_qualified_table_fails_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "words.csv").write_text("a,b\nx,y\n", encoding="utf-8")
    assert run_build(arguments(str(tmp_path), "--out", str(tmp_path / "out"))) == 1
    assert "no column of numbers" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "planets.csv").write_text((SHIPPED / "csv" / "planets.csv").read_text("utf-8"), "utf-8")
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"--out .*file/treb cannot be written: Not a directory"):
        run_build(arguments(str(tmp_path), "--out", str(tmp_path / "file" / "treb")))


@pytest.mark.parametrize("option", ["--each", "--votes", "--zero-shot"])
def test_fewer_than_one_cannot_be_asked_for(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments("tables", "--out", "out", option, "0")
    assert f"{option}: '0' is not a whole number of at least 1" in capsys.readouterr().err


def test_years_ranks_and_codes_are_not_reckoned_with() -> None:
    header = "club,season,rank,shirt id,played in,no. of goals"
    rows = "".join(f"c{n},{1990 + n},{n},{n * 7},{1990 + n},{n * n}\n" for n in range(1, 7))
    sheet = Sheet("t", parse_csv(f"{header}\n{rows}".replace("no. of ", ""), 1))
    assert list(sheet.arithmetic_columns) == ["goals"]
    assert find_defect(parse_csv("club,season\na,1990\nb,1991\n", 1)) is not None


def test_numbers_with_more_digits_than_python_converts_are_codes() -> None:
    sheet = Sheet("t", parse_csv(f"club,goals\na,{'1' * 5000}\nb,{'2' * 5000}\n", 1))
    assert list(sheet.numeric_columns) == ["goals"]
    assert list(sheet.comparable_columns) == []


def test_rows_of_counted_things_are_added_and_all_else_is_not() -> None:
    columns = {
        "Season": "1990 1991 1993 1995 1996 1998",
        "赛季": "1 3 4 5 7 9",
        "Rank": "2 1 4 3 6 5",
        "Grid": "7 3 9 12 4 1",
        "No": "44 6 9 3 20 77",
        "gameno": "4 9 2 8 5 3",
        "学号": "3 8 4 1 9 5",
        "Phone": "5551234 5559876 5550000 5551111 5552222 5553333",
        "code": "007 012 008 101 099 100",
        "serials": "8812345 8812999 8800001 8843210 8811111 8822222",
        "herd": "1 1 2 3 4 4",
        "ANSI.digits": "12 9 31 60 44 2",
        "APOE.a1": "3 3 4 2 3 4",
        "idno": "12 9 31 60 44 2",
        "reply_to_user_id_str": "12 9 31 60 44 2",
        "MOSTYPE": "33 9 31 36 10 22",
        "city": "12 9 31 60 44 2",
        "Ketchup.hid": "12 9 31 60 44 2",
        "x025cswvs": "840001 840007 840012 840003 840009 840001",
        "trt": "100 111 113 122 131 303",
        "tweet": "8123456789012345678 71 64 80 58 90",
        "Virtual channel": "6.1 9.1 11.3 4.1 3.1 57.1",
        "Z": "15 27 78 28 83 12",
        "Kick-off time": "16.00 12.30 18.00 21.30 20.45 15.15",
        "Born in": "71 64 80 58 90 77",
        "atoms": "11 12 13 14 15 16",
        "answer": "1 2 2 1 2 1",
        "dose": "0.5 0.5 1.0 1.0 2.0 2.0",
        "vote": "0 1 1 0 0 1",
        "15": "3 8 1 5 9 2",
        "Var1": "3 8 1 5 9 2",
        "second": "5 5 5 3 3 3",
        "product": "298 493 649 298 649 493",
        "mon": "11 12 1 2 3 4",
        "startpage": "11 412 51 72 33 114",
        "limit of 55": "0 0 0.5 1 1 0",
        "length": "9.8 9.9 10 10.1 9.6 9.7",
    }
    means = {
        "Rate (%)": "1.5 2.5 7 3 2.2 9",
        "yield": "27.5 31.2 28.4 40.1 33.3 29.9",
        "points per game": "9.1 3.6 7 5.5 2 8",
        "Days": "0 4 7 7 18 24",
        "平均年龄": "31 24 28 44 35 21",
    }
    sums = {"Votes": "4 9 1 7 3 5", "Number of seats": "2 7 1 1 9 3", "销量": "15 3 8 1 6 9"}
    every = columns | means | sums
    rows = zip(*(cells.split() for cells in every.values()), strict=True)
    lines = [",".join(("name", *every)), *(",".join((f"row {n}", *row)) for n, row in enumerate(rows))]
    sheet = Sheet("t", parse_csv("\n".join(lines), 1))
    assert set(sheet.arithmetic_columns) == {*means, *sums}
    assert set(sheet.summable_columns) == set(sums)
    for name in (
        "No",
        "gameno",
        "学号",
        "Phone",
        "code",
        "serials",
        "herd",
        "ANSI.digits",
        "APOE.a1",
        "idno",
        "reply_to_user_id_str",
        "MOSTYPE",
        "city",
        "Ketchup.hid",
        "x025cswvs",
        "trt",
        "tweet",
        "Virtual channel",
        "15",
        "answer",
        "Var1",
        "second",
        "product",
        "limit of 55",
    ):
        assert name not in sheet.comparable_columns
    assert {"Season", "Rank", "赛季"} <= set(sheet.comparable_columns)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("Result", "0-1 2-2 3-1 1-1"),
        ("Time", "+2 Laps,1:30:01,+19.5,+3 Laps"),
        ("Notes", f"{'a' * 61} b c d"),
        ("15", "AUS BRA FRA GER"),
        ("Contested", "TRUE FALSE TRUE FALSE"),
    ],
)
def test_rows_and_groups_are_spoken_of_by_names_alone(name: str, cells: str) -> None:
    values = cells.split("," if "," in cells else " ")
    text = f"{name},votes\n" + "".join(f"{value},{number * number}\n" for number, value in enumerate(values))
    assert Sheet("t", parse_csv(text, 1)).naming_columns == {}


def test_a_table_of_correlations_and_one_that_repeats_its_header_are_left_out() -> None:
    mirrored = "of,height,span,weight\nheight,1,0.5,0.3\nspan,0.5,1,0.2\nweight,0.3,0.2,1\n"
    assert "correlations" in str(find_defect(parse_csv(mirrored, 1)))
    beside = "".join(f"{line},{mean}\n" for line, mean in zip(mirrored.split(), ("mean", 5, 7, 9), strict=True))
    assert "correlations" in str(find_defect(parse_csv(beside, 1)))
    assert "repeats its header" in str(find_defect(parse_csv("name,votes\na,1\nname,votes\nb,2\n", 1)))


def questions(text: str, template: str, tries: int = 200) -> list[templates.TemplatePair]:
    """All that a template asks about a table, with its programs checked."""
    sheet = Sheet("t", parse_csv(text, 1))
    make = next(
        each
        for templates in TEMPLATES.values()
        for each in templates
        if each.__name__.removeprefix("_ask_") == template
    )
    found = {pair.question: pair for seed in range(tries) if (pair := make(sheet, Random(seed)))}

    async def check() -> None:
        sandbox = Sandbox()
        for pair in found.values():
            execution = await sandbox.run(pair.program, {"df": TableFile(text.encode())})
            assert templates.is_same_answer(execution.stdout, pair.answer), execution
        await sandbox.aclose()

    asyncio.run(check())
    return list(found.values())


def test_the_rank_of_equal_values_is_decided_by_the_question() -> None:
    tied = "city,votes\nOslo,4\nRome,9\nBern,9\nParis,2\n"
    found = {pair.question.split('"')[3]: pair for pair in questions(tied, "rank")}
    assert {name: pair.answer for name, pair in found.items()} == {"Oslo": "3", "Rome": "1", "Bern": "1", "Paris": "4"}
    assert all("one more than the number of rows with a greater value?" in pair.question for pair in found.values())


def test_listed_values_with_commas_are_quoted_and_the_question_says_so() -> None:
    text = 'name,votes\n"Ames, Jo",4\n"Li，Wei",9\nBo,15\n'
    found = questions(text, "list_one")
    assert '"Ames, Jo", "Li，Wei"' in {pair.answer for pair in found}
    assert all("those that have commas in quotation marks." in pair.question for pair in found)
    assert not any("quotation" in pair.question for pair in questions("name,votes\nA,4\nB,9\nC,15\n", "list_one"))
    chinese = translate_pair(found[0])
    assert "含逗号的值加双引号" in chinese.question


@pytest.mark.parametrize(
    ("template", "text"),
    [
        # The mean of 2.25 and 2 is 2.125, which some round to 2.12 and others to 2.13; nothing is left of 0.004.
        ("statistic_where", "name,kind,price\na,x,2.25\nb,x,2\nc,y,0.004\nd,y,0.003\n"),
        ("best_group", "name,kind,votes\na,x,0.1\nb,x,0.2\nc,y,0.3\nd,y,0\n"),
        ("choose_name", 'kind,votes\nYes,1\nyes,2\nno,4\nno,9\n"5"" pipe",12\n'),
        ("distinct", "name,votes\na,1\nb,2\nc,4\n"),
    ],
)
def test_a_question_whose_answer_depends_on_the_reader_is_not_asked(template: str, text: str) -> None:
    if template == "choose_name":
        assert Sheet("t", parse_csv(text, 1)).naming_columns == {}
    else:
        asked = [pair.question for pair in questions(text, template)]
        assert not [each for each in asked if template != "statistic_where" or re.search("mean|median", each)], asked


def test_a_p_value_at_the_level_is_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "name,votes\n" + "".join(f"n{n},{n * n % 37}\n" for n in range(12))
    assert questions(text, "normal", 3)
    monkeypatch.setattr("evalsuite.builders.treb.templates.CLOSE", 1.0)
    assert not questions(text, "normal", 3)


def test_bounds_of_many_digits_are_rounded() -> None:
    text = "name,price\n" + "".join(f"n{n},{712.101174262357 * n}\n" for n in range(1, 6))
    bounds = {re.findall(r"([\d.]+)\?", pair.question)[0] for pair in questions(text, "count_one")}
    assert bounds == {"1424", "2136", "2848"}
