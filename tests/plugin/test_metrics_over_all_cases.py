"""`@benchmark(..., metrics=[...])`: measured over all cases, in the report and in gates."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from evalsuite.case_metrics import auroc, calibration_error, confusion_matrix, macro_f1, micro_f1, spearman

if TYPE_CHECKING:
    from evalsuite.output.reports.generic import CaseMetric
    from tests.conftest import ChatServer
    from tests.plugin.conftest import Suite

CASES = """
from evalsuite import Sample, benchmark
from evalsuite.case_metrics import confusion_matrix, macro_f1, micro_f1
from evalsuite.scorers import one_of

TARGETS = ["cat", "cat", "cat", "dog", "dog", "emu"]
ANSWERS = ["cat", "Cat!", "a dog", "dog", "neither", "cat"]
SAMPLES = [Sample(id=n, input=a, target=t) for n, (t, a) in enumerate(zip(TARGETS, ANSWERS), 1)]

def cases_seen(tally):
    return len(tally)

@benchmark("own", SAMPLES, solver=lambda sample, model: model.chat(sample.input).text,
           scorers=[one_of(["cat", "dog", "emu"])],
           metrics=[macro_f1(), micro_f1(), confusion_matrix(), cases_seen])
def test_own(scores):
    pass
"""
GATES = (
    "--gate=own.macro_f1 >= 0.38",
    "--gate=own.micro_f1 <= 0.55",
    "--gate=own.cases_seen >= 6",
    "--gate=own.labels_confused <= 0.5",
)


@pytest.mark.draws
def test_gates_name_them_and_the_report_draws_the_matrix(suite: Suite, workers: tuple[str, ...]) -> None:
    (suite.path / "test_capitals.py").write_text(CASES, encoding="utf-8")
    result = suite.run(*workers, *GATES)
    assert result.ret == 0
    report = suite.report()
    assert "macro_f1" in report
    assert "Confusion matrix" in report
    assert (suite.runs()[-1] / "own_confusion.svg").is_file()
    matrix = report.split("Confusion matrix")[1].split("Rows are targets")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in matrix.splitlines() if "|" in line]
    assert rows[0] == ["target", "cat", "dog", "emu", "(none)"]
    assert rows[2:] == [["cat", "2", "1", "0", "0"], ["dog", "0", "1", "0", "1"], ["emu", "1", "0", "0", "0"]]


def test_a_gate_that_such_a_metric_misses_is_missed(suite: Suite) -> None:
    (suite.path / "test_capitals.py").write_text(CASES, encoding="utf-8")
    assert suite.run("--gate=own.macro_f1 >= 0.5").ret == 10


def test_a_gate_on_such_a_metric_is_compared_with_a_baseline(suite: Suite) -> None:
    (suite.path / "test_capitals.py").write_text(CASES, encoding="utf-8")
    suite.run("--run=before")
    result = suite.run("--gate=own.macro_f1 >= 0.38", "--baseline=before")
    assert result.ret == 0, result.stdout.str()


@pytest.mark.parametrize(
    "metric",
    [macro_f1(), micro_f1(), confusion_matrix(), calibration_error("a", "b"), auroc("a", "b"), spearman("a", "b")],
)
def test_a_shipped_metric_declares_its_range(metric: CaseMetric) -> None:
    assert metric.range is not None


@pytest.mark.draws
def test_a_comparison_draws_a_named_matrix_for_each_run(suite: Suite) -> None:
    (suite.path / "test_capitals.py").write_text(CASES, encoding="utf-8")
    for name in ("before", "after"):
        suite.run(f"--run={name}")
    suite.pytester.run(
        sys.executable, "-mevalsuite", "compare", "reports/before", "reports/after", "--to=side", "--code=."
    )
    text = (suite.path / "side" / "comparison.md").read_text("utf-8")
    assert "Confusion matrix: before" in text
    assert "Confusion matrix: after" in text


@pytest.mark.parametrize("parameters", ["", "first, second", "*, tally"])
def test_a_metric_that_cannot_be_called_with_a_tally_is_refused_before_anything_is_asked(
    suite: Suite, chat_server: ChatServer, parameters: str
) -> None:
    code = CASES.replace("def cases_seen(tally)", f"def cases_seen({parameters})")
    (suite.path / "test_capitals.py").write_text(code, encoding="utf-8")
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    result = suite.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    message = f"a metric takes one argument, a Tally; cases_seen takes ({parameters})"
    assert re.search(rf"test_capitals\.py:\d+: {re.escape(message)}", result.stdout.str())
    assert not chat_server.bodies


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("contains", "a scorer and a metric over all cases give 'contains'"),
        ("labels_confused", "two metrics have the name 'labels_confused'"),
        ("pass_rate", "every benchmark has a metric 'pass_rate'"),
        ("cost", "every benchmark has a metric 'cost'"),
    ],
)
def test_a_metric_with_the_name_of_another_is_refused_before_anything_is_asked(
    suite: Suite, chat_server: ChatServer, name: str, message: str
) -> None:
    code = CASES.replace("cases_seen", name).replace('one_of(["cat", "dog", "emu"])', "scorers.contains()")
    (suite.path / "test_capitals.py").write_text(f"from evalsuite import scorers{code}", encoding="utf-8")
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    result = suite.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert message in result.stdout.str()
    assert not chat_server.bodies


@pytest.mark.parametrize("name", ["pass_rate", "cases_seen"])
def test_a_score_with_the_name_of_a_metric_over_all_cases_is_an_error(suite: Suite, name: str) -> None:
    scorer = f"def {name}_of_case(sample, transcript):\n    return {{'{name}': 1.0}}\n\n\n@benchmark"
    code = CASES.replace("@benchmark", scorer).replace("scorers=[", f"scorers=[{name}_of_case, ")
    (suite.path / "test_capitals.py").write_text(code, encoding="utf-8")
    result = suite.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"*gives '{name}', the name of a metric over all cases; choose another*"])


@pytest.mark.parametrize("value", ["float('inf')", "'1'", "Estimate('x')"])
def test_a_gate_has_no_data_if_a_metric_over_all_cases_is_not_a_finite_number(suite: Suite, value: str) -> None:
    code = "from evalsuite.results import Estimate" + CASES.replace("return len(tally)", f"return {value}")
    (suite.path / "test_capitals.py").write_text(code, encoding="utf-8")
    result = suite.run("--only-gate=own.cases_seen >= 0")
    assert result.ret == 12
    assert "INTERNALERROR" not in result.stdout.str()
    result.stdout.fnmatch_lines(["*no data*own.cases_seen: its function r*"])
