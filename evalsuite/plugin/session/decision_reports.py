"""Each gate, and each comparison with the baseline, as a pytest report of its own.

CI's test tabs, junit and pytest-html thus turn red in the line of the gate. A missed gate also counts on
pytest's last line, and `--lf` then means the cases behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import for_terminal
from evalsuite.output.reports.failed_cases import blocks, cases_behind
from evalsuite.output.reports.markdown import measured_line
from evalsuite.results.run_folders import interruption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.decisions.baseline_result import Against
    from evalsuite.decisions.gates import GateDecision
    from evalsuite.decisions.verdict import Verdict
    from evalsuite.output.reports.write import RunReport

# Plugins that count reports for their own purposes: pytest's session, the terminal's dots, `--lf`, ourselves.
NOT_TOLD = ("session", "terminalreporter", "lfplugin", "stepwiseplugin", "evalsuite-listener", "dsession")


def report_decisions(config: pytest.Config, report: RunReport) -> None:
    """Reports every decision to pytest's other plugins, and the red ones to the terminal.

    A run that was cut short has decided nothing, so nothing of it is reported as missed.
    """
    if interruption(report.run.info):
        return
    others = [plugin for name in NOT_TOLD if (plugin := config.pluginmanager.get_plugin(name)) is not None]
    tell = config.pluginmanager.subset_hook_caller("pytest_runtest_logreport", others)
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    for decided in _reports(report):
        tell(report=decided)
        if decided.failed and terminal is not None:
            terminal.stats.setdefault("failed", []).append(decided)


def _reports(report: RunReport) -> Iterator[pytest.TestReport]:
    verdict = report.verdict
    for decision in verdict.decisions:
        red = decision.verdict != "met"
        # The gate is the test's name, which pytest puts before this line.
        line = f"{decision.verdict}: {measured_line(decision)}"
        text = "\n\n".join([line, *(_behind(decision, report) if red else ())])
        yield _report(f"gates::{decision.gate.text}", text, red=red)
    for against in verdict.against:
        yield from _comparisons(against, f" against {against.name}" if len(verdict.against) > 1 else "")


def _comparisons(against: Against, which: str) -> Iterator[pytest.TestReport]:
    worse = {line.partition(" is ")[0]: line for line in against.regressions()}
    for subject, *_ in against.found:
        name = str(subject)
        yield _report(f"baseline::{name}{which}", worse.get(name, ""), red=name in worse)
    for line in against.lacking():
        yield _report(f"baseline::{line.partition(' is ')[0]}{which}", line, red=True)


def _behind(decision: GateDecision, report: RunReport) -> Iterator[str]:
    """The worst cases under a gate, each with its block."""
    for title, block in blocks(cases_behind(decision, report.run), report.run, report.baseline):
        yield f"{for_terminal(title)}\n{block}"


def _report(nodeid: str, line: str, *, red: bool) -> pytest.TestReport:
    file, _, name = nodeid.partition("::")
    return pytest.TestReport(
        nodeid=nodeid,
        location=(file, None, name),
        keywords={},
        outcome="failed" if red else "passed",
        longrepr=line if red else None,
        when="call",
    )


def remember_cases(config: pytest.Config, verdict: Verdict, below: dict[str, list[str]]) -> None:
    """Makes `--lf` run the cases below their threshold in every benchmark with a missed gate.

    Args:
        config: of the session.
        verdict: on the run.
        below: cases below their threshold that a gate decides about, by benchmark.
    """
    remembered: Any = config.pluginmanager.get_plugin("lfplugin")
    if remembered is None or not hasattr(remembered, "lastfailed"):
        return
    missed = [decision.gate for decision in verdict.decisions if decision.verdict == "missed"]
    for benchmark, cases in below.items():
        if any(gate.covers(benchmark) for gate in missed):
            remembered.lastfailed.update(dict.fromkeys(cases, True))


def spare_the_summary(config: pytest.Config) -> None:
    """Drops empty reports of setup and teardown, since pytest searches all of them for each failure."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        terminal.stats[""] = [
            report for report in terminal.stats.get("", []) if getattr(report, "sections", True)
        ]
