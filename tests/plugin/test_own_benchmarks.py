"""A benchmark of the user's own: its report, derived metrics and title count wherever its records go."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.conftest import Suite

OWN = """
from evalsuite import Benchmark, Dataset, Sample, benchmark, exact_match, generate
from evalsuite.reports import Column, Section, Table
from evalsuite.results import Estimate

SAMPLES = [Sample(id=str(n), input=word, target="yes") for n, word in enumerate(["yes", "yes", "no"])]

def report(views):
    rows = [[view.label, view.tally.estimate("exact_match"), spread(view.tally)] for view in views]
    columns = [Column("model"), Column("right", "number", 3), Column("spread", "number", 3)]
    return Section("Yes or no, in our own words", [Table("Everything at once", columns, rows)])

def spread(tally):
    values = tally.values("exact_match")
    return Estimate(max(values) - min(values), n=len(values))

OWN = Benchmark(
    name="yes_no",
    title="Yes or no",
    load=lambda setup: Dataset(SAMPLES, "three words"),
    solver=lambda setup: generate(),
    scorers=lambda setup: [exact_match(), lambda sample, transcript: {"length": float(len(transcript.answer))}],
    report=report,
    derived={"spread": spread},
    primary="length",
)

@benchmark(OWN)
def test_yes_no(scores):
    pass
"""


@pytest.fixture
def own(suite: Suite) -> Suite:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_own=OWN)
    return suite


def evalsuite(suite: Suite, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    with contextlib.chdir(cwd or suite.path):
        result = suite.pytester.run(sys.executable, "-mevalsuite", *args)
    return subprocess.CompletedProcess(args, result.ret, result.stdout.str(), result.stderr.str())


def test_its_own_report_and_derived_metric_are_used_with_and_without_workers(
    own: Suite, workers: tuple[str, ...]
) -> None:
    result = own.run(*workers, "--gate=yes_no.spread >= 0.9", "--run=one")
    assert result.ret == 0, result.stdout.str()
    assert "## Yes or no, in our own words" in own.report("one")
    assert own.summary()["gates"][0]["found"]["value"] == 1.0
    assert {record["declared"] for record in own.records("one")} == {"test_own.py::test_yes_no"}


def test_commands_find_it_again_where_code_names_it(own: Suite) -> None:
    own.run("--run=one")
    own.run("--run=two")
    assert "## Yes or no, in our own words" in evalsuite(own, "report", "one", "--code=test_own.py").stdout
    missed = evalsuite(own, "gate", "one", "--gate", "yes_no.spread <= 0.5", "--code", ".")
    assert missed.returncode == 10, missed.stdout + missed.stderr
    compared = evalsuite(own, "compare", "one", "two", "--to", "both", "--code=.")
    assert compared.returncode == 0, compared.stderr
    text = (own.path / "both" / "comparison.md").read_text("utf-8")
    assert "## Yes or no, in our own words" in text
    assert re.search(r"\| yes\\_no +\| length ↑ +\|", text)


def test_where_the_code_is_gone_the_generic_report_says_so_and_nothing_fails(own: Suite) -> None:
    own.run("--run=one")
    (own.path / "test_own.py").unlink()
    result = evalsuite(own, "report", "one", "--code=.")
    assert result.returncode == 0, result.stderr
    report = result.stdout
    assert "This is the generic report of yes_no" in report
    assert "test_own.py is not in" in report
    assert "exact_match" in report


def test_without_code_the_commands_read_what_the_run_stored(own: Suite) -> None:
    own.run("--run=one")
    (own.path / "test_own.py").write_text("open('sprung', 'w').close()\n" + OWN)
    report = evalsuite(own, "report", "one").stdout
    assert "## Yes or no\n" in report
    assert "--code test_own.py" in report
    assert re.search(r"length +\| .* spread", report)
    for limit, status in (("0.5", 10), ("1", 0)):
        assert evalsuite(own, "gate", "one", f"--gate=yes_no.spread <= {limit}").returncode == status
    of_a_part = evalsuite(own, "gate", "one", "--gate=yes_no.spread <= 1 @95%")
    assert of_a_part.returncode == 12, of_a_part.stdout
    summary = own.path / "reports" / "one" / "summary.json"
    stored = summary.read_text("utf-8")
    summary.unlink()
    without = evalsuite(own, "gate", "one", "--gate=yes_no.spread <= 1")
    assert (without.returncode, "--code test_own.py" in without.stdout) == (12, True), without.stdout
    summary.write_text(stored, "utf-8")
    assert not (own.path / "sprung").exists()
    unproven = evalsuite(own, "runs", "verify", "one")
    assert (unproven.returncode, "WRONG  what yes_no computes with its own code" in unproven.stdout) == (1, True)
    assert evalsuite(own, "runs", "verify", "one", "--code=.").returncode == 0, unproven.stdout


def test_without_code_each_compared_run_shows_the_derived_metric_that_it_stored(own: Suite) -> None:
    own.run("--run=one")
    (own.path / "test_own.py").write_text(OWN.replace('"yes", "no"]', '"yes", "yes"]'), "utf-8")
    own.run("--run=two")
    assert evalsuite(own, "compare", "one", "two", "--to=both").returncode == 0
    text = (own.path / "both" / "comparison.md").read_text("utf-8")
    for run, spread in (("one", "1.000"), ("two", "0.000")):
        assert re.search(rf"\n\| {run} +\| +3 \|.* {spread} \|\n", text), text


def test_a_path_of_code_that_is_not_there_is_refused(own: Suite) -> None:
    own.run("--run=one")
    refused = evalsuite(own, "report", "one", "--code=nowhere")
    assert (refused.returncode, refused.stderr) == (2, "evalsuite: --code nowhere: no such file or folder")
    (own.path / "other").mkdir()
    assert "test_own.py is not in --code other" in evalsuite(own, "report", "one", "--code=other").stdout


def test_a_foreign_run_has_nothing_imported_but_declarations_in_the_user_s_own_test_files(own: Suite) -> None:
    own.run("--run=one")
    (own.path / "test_trap.py").write_text("open('sprung', 'w').close()\ndef test_yes_no(): pass\n")
    (own.path / "trap.py").write_text("open('sprung', 'w').close()\n")
    outside = own.path.parent / "test_outside.py"
    outside.write_text("open('sprung', 'w').close()\n" + OWN)
    file = own.path / "reports" / "one" / "records.jsonl"
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for place in (
        "test_trap.py::test_yes_no",
        "trap.py::test_yes_no",
        "trap:OWN",
        f"../{outside.name}::test_yes_no",
        f"{outside}::test_yes_no",
    ):
        file.write_text("".join(json.dumps(line | {"declared": place}) + "\n" for line in lines))
        result = evalsuite(own, "report", "one", "--code=.")
        assert result.returncode == 0, result.stderr
        assert "This is the generic report of yes_no" in result.stdout
    assert not list(own.path.glob("**/sprung"))
    outside.unlink()


def test_a_report_that_fails_costs_its_own_section_alone(own: Suite) -> None:
    own.pytester.makepyfile(test_own=OWN.replace("    rows = [", "    rows = 1 / 0, ["))
    result = own.run("--run=one")
    assert result.ret == 0
    assert "its own report failed: ZeroDivisionError" in own.report("one")
    assert re.search(r"\| run .* length +\| .* spread", own.report("one"))


def test_what_is_decided_afterwards_changes_nothing_of_the_run(own: Suite) -> None:
    own.run("--run=one", "--gate=yes_no.spread >= 0.9")
    folder = own.path / "reports" / "one"
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert evalsuite(own, "gate", "one", "--gate", "yes_no.spread <= 0.5").returncode == 10
    assert evalsuite(own, "report", "one").returncode == 0
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    saved = evalsuite(own, "gate", "one", "--gate", "yes_no.spread <= 0.5", "--to", "other")
    assert saved.returncode == 10
    assert "other/report.md" in saved.stdout
    assert "a gate is missed" in (own.path / "other" / "report.md").read_text("utf-8")
    assert all(file.read_bytes() == content for file, content in before.items())
    assert evalsuite(own, "gate", "one").returncode == 0


HOOKS = """
from evalsuite.reports import Passage, Section

pytest_plugins = ["evalsuite.plugin"]
seen = []

def pytest_evalsuite_record(record):
    seen.append(record.sample)

def pytest_evalsuite_report(run, verdict):
    return [Section("From our conftest", [Passage("", f"{len(seen)} records, {verdict.headline}")])]

def pytest_evalsuite_verdict(verdict, folder):
    (folder / "told.txt").write_text(f"{int(verdict.status)} {(folder / 'report.md').is_file()}")
"""


def test_a_conftest_hears_of_records_and_verdict_and_adds_to_the_report(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makeconftest(HOOKS)
    suite.run(*workers, "--gate=capitals.exact_match >= 0.5")
    assert "## From our conftest\n\n3 records, passed" in suite.report()
    assert (suite.runs()[-1] / "told.txt").read_text() == "0 True"


def test_a_hook_that_fails_is_told_once_and_changes_nothing(suite: Suite) -> None:
    suite.pytester.makeconftest(HOOKS.replace("seen.append(", "seen.remove("))
    result = suite.run("--gate=capitals.exact_match >= 0.5")
    assert result.ret == 0
    told = [line for line in result.outlines if "pytest_evalsuite_record" in line]
    assert told == ["the hook pytest_evalsuite_record raised ValueError: list.remove(x): x not in list"]


def test_hooks_that_end_python_or_return_what_is_no_section_change_nothing(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
pytest_plugins = ["evalsuite.plugin"]
def pytest_evalsuite_record(record): raise SystemExit(3)
def pytest_evalsuite_report(): return ["words"]
def pytest_evalsuite_verdict(verdict): raise SystemExit(4)
"""
    )
    result = suite.run("--gate=capitals.exact_match >= 0.5")
    assert result.ret == 0
    told = [line for line in result.outlines if line.startswith("the hook ")]
    assert told == [
        "the hook pytest_evalsuite_record raised SystemExit: 3",
        "the hook pytest_evalsuite_report raised TypeError: it returned 'words' in place of a Section",
        "the hook pytest_evalsuite_verdict raised SystemExit: 4",
    ]
    assert (suite.runs()[-1] / "summary.json").is_file()


def test_a_shipped_benchmark_is_declared_by_its_name(suite: Suite) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(
        test_it="from evalsuite import benchmark\n@benchmark('head_to_tail')\ndef test_it(scores): ..."
    )
    result = suite.run("--limit=2")
    assert result.ret == 0, result.stdout.str()
    assert suite.records()[0]["declared"] == "evalsuite.benchmarks.head_to_tail:HEAD_TO_TAIL"
    assert "## Head-to-Tail" in suite.report()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ZeroDivisionError('no cases\\n of that kind')", "raised ZeroDivisionError: no cases of that kind"),
        ("return 0.5", "returned float; it must return an Estimate or None"),
    ],
)
def test_a_derived_metric_that_fails_is_one_line_and_a_gate_on_it_has_no_data(
    own: Suite, body: str, reason: str
) -> None:
    start = OWN.index("    values = tally.values")
    broken = OWN[:start] + f"    {body}\n\n" + OWN[OWN.index("OWN = Benchmark(") :]
    (own.path / "test_own.py").write_text(broken.replace("    report=report,\n", ""))
    result = own.run("--run=one", "--gate=yes_no.spread <= 1")
    assert result.ret == 12
    output = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in output
    assert f"no data  yes_no.spread <= 1   yes_no.spread: its function {reason}" in output
    summary = own.summary()
    assert summary["benchmarks"]["yes_no"]["failed_metrics"] == {"spread": f"its function {reason}"}
    assert f"spread is not measured: its function {reason}." in own.report("one")
