"""Runs leave for other tools: each format read back by what reads it."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import jsonschema
import pytest

import evalsuite
from evalsuite.cli import main
from evalsuite.core.errors import escape_formula

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

SCHEMAS = Path(evalsuite.__file__).parent / "schemas"
HOSTILE = "def answer(messages): return '=HYPERLINK(\"http://x\")' if 'Rome' in str(messages) else 'Paris'"


@pytest.fixture
def exported(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.chdir(suite.path)
    suite.pytester.makepyfile(hostile=HOSTILE)
    suite.run("--run", "one", "--model=function:hostile:answer", "--gate", "capitals.exact_match >= 0.1", model=False)
    return suite


def schema(name: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
    return plain


def test_what_a_run_leaves_is_as_its_schemas_say(exported: Suite) -> None:
    for record in exported.records("one"):
        jsonschema.validate(record, schema("record"))
    summary = json.loads((exported.path / "reports" / "one" / "summary.json").read_text("utf-8"))
    jsonschema.validate(summary, schema("summary"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**exported.records("one")[0], "outcome": "good"}, schema("record"))


def test_csv_holds_every_case_and_no_formula(exported: Suite) -> None:
    assert main(["export", "one", "--to", "csv"]) == 0
    with (exported.path / "cases.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["sample"] for row in rows] == ["fr", "it", "jp"]
    assert [float(row["score.exact_match"]) for row in rows] == [1.0, 0.0, 0.0]
    assert rows[1]["answer"] == '\'=HYPERLINK("http://x")'


def test_a_cost_that_nobody_knows_is_empty_and_not_zero(exported: Suite) -> None:
    assert main(["export", "one", "--to", "csv"]) == 0
    with (exported.path / "cases.csv").open(encoding="utf-8", newline="") as stream:
        assert [row["cost"] for row in csv.DictReader(stream)] == ["", "", ""]
    free = ("--model=function:hostile:answer", "--price=function:hostile:answer=0/0")
    exported.run("--run", "free", *free, model=False)
    assert list(evalsuite.load_run("free").frame()["cost"]) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("first", ["\n=", "\uff1d"])
def test_a_formula_behind_a_line_feed_or_of_full_width_is_escaped(first: str) -> None:
    assert escape_formula(f"{first}1+1") == f"'{first}1+1"


def test_parquet_is_read_by_duckdb(exported: Suite) -> None:
    assert main(["export", "one", "--to", "parquet"]) == 0
    file = str(exported.path / "cases.parquet")
    query = """SELECT sample, "score.exact_match", answer FROM read_parquet(?) ORDER BY sample"""
    rows = duckdb.execute(query, [file]).fetchall()
    assert rows[0] == ("fr", 1.0, "Paris")
    assert rows[1][2].startswith("=HYPERLINK")


def test_jsonl_names_the_run_of_each_record(exported: Suite) -> None:
    exported.run("--run", "two")
    assert main(["export", "one", "two", "--to", "jsonl"]) == 0
    lines = (exported.path / "cases.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["one"] * 3 + ["two"] * 3


def test_the_inspect_log_has_samples_and_scores(exported: Suite) -> None:
    assert main(["export", "one", "--to", "inspect", "-o", "logs"]) == 0
    (file,) = (exported.path / "logs").iterdir()
    # The viewer passes over names without the time in front.
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\+00-00_capitals_one\.json", file.name)
    log = json.loads(file.read_text("utf-8"))
    assert log["results"]["scores"][0]["metrics"]["mean"]["value"] == pytest.approx(1 / 3)
    assert [sample["scores"]["exact_match"]["value"] for sample in log["samples"]] == [1.0, 0.0, 0.0]


def test_lm_evals_results_have_value_and_standard_error(exported: Suite) -> None:
    assert main(["export", "one", "--to", "lm-eval"]) == 0
    results = json.loads((exported.path / "results.json").read_text("utf-8"))
    assert results["results"]["capitals"]["exact_match,none"] == pytest.approx(1 / 3)
    assert results["results"]["capitals"]["exact_match_stderr,none"] > 0
    assert results["n-samples"]["capitals"] == {"original": 3, "effective": 3}


def test_a_paper_has_its_tables_and_an_appendix(exported: Suite) -> None:
    exported.run("--run", "two")
    assert main(["export", "paper", "one", "two", "--label", "A_1", "--label", "B"]) == 0
    tables = (exported.path / "paper" / "tables.tex").read_text("utf-8")
    assert r"A\_1" in tables
    assert r"\textbf{0.667 [" in tables
    assert tables.count(r"\begin{table}") == tables.count(r"\end{table}") > 1
    assert "SHA-256" in (exported.path / "paper" / "appendix.tex").read_text("utf-8")


def test_a_difference_that_is_shown_has_stars_and_the_prompt_is_in_the_appendix(exported: Suite) -> None:
    exported.pytester.makepyfile(
        test_many="""
        from evalsuite import Sample, benchmark, exact_match, generate
        SAMPLES = [Sample(id=str(n), input="right_%_" + str(n), target="right_%_" + str(n)) for n in range(20)]
        @benchmark("many", SAMPLES, solver=generate(), scorers=[exact_match()])
        def test_many(scores):
            pass
        """,
        wrong="def answer(messages): return 'no'",
    )
    exported.run("--run", "good", "test_many.py")
    exported.run("--run", "bad", "--model=function:wrong:answer", "test_many.py", model=False)
    assert main(["export", "paper", "good", "bad", "--label", "G", "--label", "B"]) == 0
    tables, appendix = ((exported.path / "paper" / name).read_text("utf-8") for name in ("tables.tex", "appendix.tex"))
    assert r"& 0.000 [0.000, 0.168]$^{***}$ \\" in tables
    assert "Stars: differs from G, paired by question, with Bonferroni's correction for all pairs" in tables
    assert r"[user] right\_\%\_0" in appendix


def test_a_conversation_is_exported_with_its_messages(exported: Suite) -> None:
    exported.pytester.makepyfile(
        test_talk="""
        from evalsuite import Message, Sample, benchmark, exact_match, generate

        TALK = [Message("system", "Be brief."), Message("user", "Capital of France?\\nuser: One word.")]

        SAMPLES = [Sample("a", TALK, "Paris"), Sample("b", "user: hi", "x")]

        @benchmark("talk", SAMPLES, solver=generate(), scorers=[exact_match()])
        def test_talk(scores):
            pass
        """
    )
    exported.run("--run", "talk", "test_talk.py", "--model=function:hostile:answer", model=False)
    assert main(["export", "cases", "talk"]) == 0
    talk, text = evalsuite.load_samples(exported.path / "samples.jsonl", id="id")
    assert talk.input == (
        evalsuite.Message("system", "Be brief."),
        evalsuite.Message("user", "Capital of France?\nuser: One word."),
    )
    assert text.input == "user: hi"


def test_a_run_is_opened_from_python(exported: Suite) -> None:
    run = evalsuite.load_run(exported.path / "reports" / "one")
    frame = run.frame()
    assert list(frame["sample"]) == ["fr", "it", "jp"]
    assert frame["score.exact_match"].mean() == pytest.approx(1 / 3)
    assert run.benchmarks["capitals"].tally.mean("exact_match") == pytest.approx(1 / 3)
    assert [record.sample for record in run.records] == ["fr", "it", "jp"]


def test_latex_compiles(exported: Suite) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed: apt-get install texlive-latex-recommended")
    main(["export", "one", "--to", "latex"])
    exported.run("--run", "two")
    main(["export", "paper", "one", "two", "--label", "A_1", "--label", "B"])
    body = (
        r"\documentclass{article}\usepackage{booktabs,graphicx}\newcommand{\evalsuitefigures}{paper/}"
        r"\begin{document}\input{benchmarks}\input{paper/tables}\input{paper/figures}\input{paper/appendix}"
        r"\end{document}"
    )
    (exported.path / "x.tex").write_text(body)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"]
    subprocess.run(command, check=True, cwd=exported.path, capture_output=True)
