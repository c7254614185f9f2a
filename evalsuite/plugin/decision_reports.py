"""Reports each gate, and each comparison with the baseline, to pytest's other plugins as a test of its own.

CI's test tabs, junit and pytest-html thus turn red in the line of the gate. A missed gate also counts on
pytest's last line, and `--lf` then runs the cases behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.core.errors import for_terminal
from evalsuite.output.reports.case_block import blocks, cases_behind
from evalsuite.output.reports.markdown import measured_line
from evalsuite.plugin.pytest_internals import remember_failures
from evalsuite.results.run_folders import interruption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.decisions.baseline_result import Against
    from evalsuite.decisions.gates import GateDecision
    from evalsuite.engine.open_run import OpenRun
    from evalsuite.output.reports.write import RunReport

# Plugins that count reports for their own purposes: pytest's session, the terminal's dots, `--lf`, ourselves, xdist.
UNINFORMED = ("session", "terminalreporter", "lfplugin", "stepwiseplugin", "evalsuite-listener", "dsession")


def report_decisions(config: pytest.Config, run: OpenRun) -> None:
    """Report every decision to pytest's other plugins, and the red ones to the terminal.

    A run that was cut short has decided nothing, so nothing of it is reported as missed.
    """
    report = run.report
    if report is None:
        return
    if not interruption(report.run.info):
        _report_all(config, report)
    # The cases below their threshold in every benchmark with a missed gate.
    missed = [decision.gate for decision in report.verdict.decisions if decision.verdict == "missed"]
    for benchmark, cases in run.below.items():
        if any(gate.covers(benchmark) for gate in missed):
            remember_failures(config, cases)
    _drop_empty_reports(config)


def _report_all(config: pytest.Config, report: RunReport) -> None:
    others = [plugin for name in UNINFORMED if (plugin := config.pluginmanager.get_plugin(name)) is not None]
    report_to_others = config.pluginmanager.subset_hook_caller("pytest_runtest_logreport", others)
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    for decided in _make_reports(report):
        report_to_others(report=decided)
        if decided.failed and terminal is not None:
            terminal.stats.setdefault("failed", []).append(decided)


def _make_reports(report: RunReport) -> Iterator[pytest.TestReport]:
    verdict = report.verdict
    for decision in verdict.decisions:
        red = decision.verdict != "met"
        # The gate is the test's name, which pytest puts before this line.
        line = f"{decision.verdict}: {measured_line(decision)}"
        text = "\n\n".join([line, *(_behind(decision, report) if red else ())])
        yield _make_report(f"gates::{decision.gate.text}", text, red=red)
    for against in verdict.against:
        yield from _comparisons(against, f" against {against.name}" if len(verdict.against) > 1 else "")


def _comparisons(against: Against, which: str) -> Iterator[pytest.TestReport]:
    worse = {line.partition(" is ")[0]: line for line in against.regressions()}
    for subject, *_ in against.found:
        name = str(subject)
        yield _make_report(f"baseline::{name}{which}", worse.get(name, ""), red=name in worse)
    for line in against.lacking():
        yield _make_report(f"baseline::{line.partition(' is ')[0]}{which}", line, red=True)


def _behind(decision: GateDecision, report: RunReport) -> Iterator[str]:
    # The worst cases under a gate, each with its block.
    for title, block in blocks(cases_behind(decision, report.run), report.run, report.baseline):
        yield f"{for_terminal(title)}\n{block}"


def _make_report(nodeid: str, line: str, *, red: bool) -> pytest.TestReport:
    file, _, name = nodeid.partition("::")
    return pytest.TestReport(
        nodeid=nodeid,
        location=(file, None, name),
        keywords={},
        outcome="failed" if red else "passed",
        longrepr=line if red else None,
        when="call",
    )


def _drop_empty_reports(config: pytest.Config) -> None:
    """Drop empty reports of setup and teardown, because pytest searches all of them for each failure."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        terminal.stats[""] = [
            report for report in terminal.stats.get("", []) if getattr(report, "sections", True)
        ]
