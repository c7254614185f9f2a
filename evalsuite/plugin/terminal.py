"""Writes the output at the end of a session: verdict, plan, annotations for GitHub, and each decision as a test.

Each gate and each comparison with the baseline is reported to pytest's other plugins as a separate test. JUnit reports
and CI therefore show a missed gate as a failed test. A missed gate also counts in pytest's last line, and `--lf` then
runs the gate's failed cases.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.errors import EvalsuiteError, RunError, describe_exception, escape_for_terminal, write_count
from evalsuite.core.types import Usage
from evalsuite.decisions.gates import parse_gates
from evalsuite.decisions.verdict import Status, Verdict
from evalsuite.engine.preparation import format_options_to_repeat
from evalsuite.models.choice import needs_outside_code, open_backend
from evalsuite.output.page.write import PAGE
from evalsuite.output.reports.case_block import format_case_blocks, list_worst_cases
from evalsuite.output.reports.markdown import format_decision_line, format_measured_line, render_terminal_table
from evalsuite.output.reports.section import Cell, Table, convert_cell, parse_columns
from evalsuite.plugin.items import list_cases
from evalsuite.plugin.outcomes import get_case_block
from evalsuite.plugin.pytest_internals import add_to_last_failed, make_failure_repr
from evalsuite.results.run_folders import REPORT, RunFolder, explain_interruption, find_run_folder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from evalsuite.core.settings import Settings
    from evalsuite.decisions.planning import DetectableLoss, ExpectedCost, PlannedBenchmark
    from evalsuite.engine.open_run import ActiveRun
    from evalsuite.output.reports.write import RunReport
    from evalsuite.plugin.process import CaseProcess

MOST_ANNOTATIONS = 10  # The maximum number of annotations that GitHub shows per step.
OUTCOMES = (("failed", "below threshold"), ("error", "error"), ("xfailed", "below threshold"))
"""pytest's names of outcomes and their descriptions; cases that a gate excuses come last."""

MOST_REASONS = 5  # Maximum annotations for the verdict's reasons, which come before those for cases.


def show_why_report_is_missing(terminal: pytest.TerminalReporter, reason: str) -> None:
    """Show why the session has no report, and how to continue."""
    terminal.section("evalsuite", sep="=", red=True)
    terminal.write_line(escape_for_terminal(reason), red=True)
    terminal.write_line("nothing kept so far is lost: fix this, then continue with --resume last")
    terminal.write_line(f"{Status.INCOMPLETE.name.lower()}: no decision (exit status {Status.INCOMPLETE:d})")


def show_verdict(terminal: pytest.TerminalReporter, run: ActiveRun, verdict: Verdict, status: int) -> None:
    """Show the verdict, and the session's exit status, which may be pytest's own."""
    folder = run.folder
    if status == Status.DETACHED:
        # Do not print in red while no gate is decided.
        terminal.section("evalsuite", sep="=", yellow=True)
        terminal.write_line(escape_for_terminal(explain_interruption(folder.info()) or "not finished yet"))
        terminal.write_line(f"nothing is decided yet (exit status {Status.DETACHED:d})", bold=True)
        _show_resume_command(terminal, folder)
        return
    good = verdict.status is Status.GOOD
    terminal.section("evalsuite", sep="=", **{"green" if good else "red": True})
    for line in verdict.faults:
        terminal.write_line(escape_for_terminal(line), red=True)
    for decision in verdict.decisions:
        terminal.write_line(format_decision_line(decision), **{"green" if decision.verdict == "met" else "red": True})
    for line in (*verdict.reasons_beyond_gates[len(verdict.faults) :], *verdict.remarks):
        terminal.write_line(escape_for_terminal(line))
    colour = {} if status == 0 else {"red": True}
    terminal.write_line(f"{verdict.headline} (exit status {status})", bold=True, **colour)
    terminal.write_line(f"report: {_make_relative_path(folder.path / REPORT, terminal.config)}")
    page = folder.path / PAGE
    if page.is_file():
        shown = str(_make_relative_path(page, terminal.config))
        # In a terminal with colours, the page is a link (OSC 8).
        link = f"\x1b]8;;{page.resolve().as_uri()}\x1b\\{shown}\x1b]8;;\x1b\\"
        terminal.write_line(f"page: {link if terminal.hasmarkup else shown}")
    _show_resume_command(terminal, folder)
    _print_annotations(terminal, verdict)
    if run.aside:
        terminal.write_line(run.aside)


def _show_resume_command(terminal: pytest.TerminalReporter, folder: RunFolder) -> None:
    info = folder.info()
    if explain_interruption(info):
        again = f"--resume {folder.name}{format_options_to_repeat(info.get('settings', {}))}"
        terminal.write_line(f"go on with it: {again}   (what was answered is not asked again)")


def _print_annotations(terminal: pytest.TerminalReporter, verdict: Verdict) -> None:
    """Print one workflow command per reason and per failed case; GitHub shows these annotations beside the code."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    reasons = [_format_github_annotation(f"evalsuite - {verdict.headline}", reason) for reason in verdict.reasons]
    cases = []
    for outcome, words in OUTCOMES if verdict.status is not Status.GOOD else ():
        for report in terminal.stats.get(outcome, ()):
            # Annotate the line at which the case's test failed with its block of question, answer and scores.
            if block := get_case_block(report):
                file, line, name = report.location
                place = {"file": file, "line": (line or 0) + 1}
                cases.append(_format_github_annotation(f"{name} - {words}", block, **place))
    for annotation in (*reasons[:MOST_REASONS], *cases, *reasons[MOST_REASONS:])[:MOST_ANNOTATIONS]:
        terminal.write_line(annotation)


def _format_github_annotation(title: str, text: str, **place: object) -> str:
    """Write an annotation, in which % and line ends must be escaped; in properties, also colons and commas."""

    def escape(shown: object, further: str = "") -> str:
        return "".join(f"%{ord(sign):02X}" if sign in f"%\r\n{further}" else sign for sign in str(shown))

    properties = ",".join(f"{name}={escape(value, ':,')}" for name, value in {**place, "title": title}.items())
    return f"::error {properties}::{escape(text)}"


def _make_relative_path(path: Path, config: pytest.Config) -> Path:
    """Make a path relative to the folder in which pytest was started; leave a path outside of the folder unchanged."""
    start = config.invocation_params.dir
    return path.relative_to(start) if path.is_relative_to(start) else path


# Plugins that do not get the reports of decisions, because they would count each decision as a test.
NOT_TOLD = ("session", "terminalreporter", "lfplugin", "stepwiseplugin", "evalsuite-listener", "dsession")


def report_decisions(config: pytest.Config, run: ActiveRun) -> None:
    """Report every decision to pytest's other plugins as a test; show missed gates and comparisons on the terminal.

    If the run was interrupted, no gate is reported as missed, because the run's gates are not decided.
    """
    report = run.report
    if report is None:
        return
    plugins = config.pluginmanager
    others = [plugin for name in NOT_TOLD if (plugin := plugins.get_plugin(name)) is not None]
    report_to_others = plugins.subset_hook_caller("pytest_runtest_logreport", others)
    terminal, every_score = plugins.get_plugin("terminalreporter"), config.getoption("verbose", default=0) > 0
    if not explain_interruption(report.run.info):
        for decided in _make_decision_test_reports(report, every_score=every_score):
            report_to_others(report=decided)
            if decided.failed and terminal is not None:
                terminal.stats.setdefault("failed", []).append(decided)
    # Make `--lf` rerun the cases that are below their threshold in benchmarks with a missed gate.
    missed = [decision.gate for decision in report.verdict.decisions if decision.verdict == "missed"]
    for benchmark, cases in run.below.items():
        if any(gate.covers_benchmark(benchmark) for gate in missed):
            add_to_last_failed(config, cases)


def _make_decision_test_reports(report: RunReport, *, every_score: bool) -> Iterator[pytest.TestReport]:
    verdict = report.verdict
    for decision in verdict.decisions:
        is_unmet = decision.verdict != "met"
        # Leave the gate's text out of the line, because pytest prints this text before the line, as the test's name.
        line = f"{decision.verdict}: {format_measured_line(decision)}"
        metrics = None if every_score else (decision.gate.metric,)
        worst = list_worst_cases(decision, report.run) if is_unmet else []
        shown = format_case_blocks(worst, report.run, report.baseline, metrics)
        blocks = [f"{escape_for_terminal(title)}\n{block}" for title, block in shown]
        # Put brackets around a text with a bracket: pytest treats text after the first bracket as a test's parameters,
        # which pytest does not change.
        name = f"[{decision.gate.text}]" if "[" in decision.gate.text else decision.gate.text
        yield _make_test_report(f"gates::{name}", line, blocks, failed=is_unmet)
    for comparison in verdict.against:
        against = f" against {comparison.name}" if len(verdict.against) > 1 else ""
        worse = {line.partition(" is ")[0]: line for line in comparison.list_regressions()}
        for subject, *_ in comparison.found:
            name = str(subject)
            yield _make_test_report(f"baseline::{name}{against}", worse.get(name, ""), failed=name in worse)
        for line in comparison.list_incomparable_metrics():
            yield _make_test_report(f"baseline::{line.partition(' is ')[0]}{against}", line, failed=True)


def _make_test_report(nodeid: str, line: str, case_blocks: Sequence[str] = (), *, failed: bool) -> pytest.TestReport:
    """Make a test report from a decision; pytest's short summary shows only `line`."""
    file, _, name = nodeid.partition("::")
    return pytest.TestReport(
        nodeid=nodeid,
        location=(file, None, name),
        keywords={},
        outcome="failed" if failed else "passed",
        longrepr=make_failure_repr(["\n\n".join([line, *case_blocks]), "\n"], file, 0, line) if failed else None,
        when="call",
    )


def show_plan(terminal: pytest.TerminalReporter, process: CaseProcess) -> None:
    """Print the expected cost of the collected cases and, with a baseline, the smallest loss that is detectable."""
    session: pytest.Session | None = terminal.config.pluginmanager.get_plugin("session")
    if session is None:
        return
    from evalsuite.decisions.planning import count_planned_cases

    cases = list_cases(session.items)
    terminal.section("evalsuite plan")
    if not cases:
        terminal.write_line("no cases were collected")
        return
    counts = count_planned_cases((case.bound.name, case.source.id) for case in cases)
    try:
        lines = _list_plan_lines(process.settings, process.model_name, terminal.config, counts)
    except EvalsuiteError as error:
        lines = [f"evalsuite: {describe_exception(error)}"]
        session.exitstatus = 4
    for line in lines:
        terminal.write_line(line)


def _list_plan_lines(
    settings: Settings, model: str | None, config: pytest.Config, counts: list[PlannedBenchmark]
) -> list[str]:
    from evalsuite.decisions.planning import compute_detectable_losses, estimate_expense
    from evalsuite.gateway.spend import find_price, read_prices

    reports = config.rootpath / settings.reports
    baseline = load_run(find_run_folder(reports, settings.baseline[0])) if settings.baseline else None
    price = find_price(model, read_prices(settings.price)) if model else None
    compute_cost = price.compute_usage_cost if price else None
    if baseline is not None and price is None and model not in (None, baseline.info.get("model")):
        free = not needs_outside_code(model) and not open_backend(model).metered
        compute_cost = lambda usage: 0.0 if free or not usage.calls else math.nan  # noqa: E731
    spent = [estimate_expense(part, baseline, compute_cost) for part in counts]
    lines = [*render_terminal_table(tabulate_expenses(spent)).splitlines(), ""]
    if any(expense.usage and math.isnan(expense.usage.cost) for expense in spent):
        lines += ["dollars are unknown where a model has no price: --price MODEL=PROMPT/COMPLETION", ""]
    if baseline is None:
        return [*lines, "calls, tokens, dollars and what can be shown are known from an earlier run: --baseline RUN"]
    lines += [
        f"{expense.planned.benchmark}: nothing is known of it, as {baseline.folder.name} has no case of it"
        for expense in spent
        if expense.usage is None
    ]
    gates = parse_gates(settings.gate)
    # The second baseline or, without one, the first baseline's own baseline, whose folder may be missing.
    name = next(iter([*settings.baseline[1:], *baseline.baselines]), None)
    earlier = None
    with suppress(RunError):
        earlier = load_run(find_run_folder(reports, name)) if name else None
    if seen := compute_detectable_losses(counts, baseline, earlier, gates, settings.detect):
        lines += [
            f"Against {baseline.folder.name}, with a power of 80%, two-sided at 5%:",
            "",
            *render_terminal_table(tabulate_detectable_losses(seen)).splitlines(),
            "",
            *(advise_on_loss(sight) for sight in seen),
            *(f"{sight.subject}: the variance is that of {sight.source}." for sight in seen),
        ]
    return lines


EXPENSE_COLUMNS = parse_columns(
    "benchmark | cases: count | calls: count | prompt tokens: count | completion tokens: count | US dollars: number 2 "
    "| minutes: number 1"
)
LOSS_COLUMNS = parse_columns(
    "metric | questions: count | epochs: count | loss shown: number 4 | twice the questions: number 4 | twice the "
    "epochs: number 4 | loss wanted: number 4 | questions for it: count | epochs for it"
)


def tabulate_expenses(expenses: Sequence[ExpectedCost]) -> Table:
    """Tabulate the expected cost of each benchmark, and the sum."""
    rows: list[list[Cell]] = [
        [each.planned.benchmark, each.planned.cases, *_make_usage_cells(each.usage), each.minutes] for each in expenses
    ]
    measured = [expense for expense in expenses if expense.usage is not None]
    if len(expenses) > 1 and measured:
        usage = sum((expense.usage for expense in measured if expense.usage), Usage())
        minutes = [expense.minutes for expense in measured if expense.minutes is not None]
        cases = sum(expense.planned.cases for expense in expenses)
        rows.append(["all", cases, *_make_usage_cells(usage), math.fsum(minutes) if minutes else None])
    return Table("", EXPENSE_COLUMNS, rows)


def _make_usage_cells(usage: Usage | None) -> list[Cell]:
    if usage is None:
        return [None] * 4
    return [usage.calls, usage.prompt_tokens, usage.completion_tokens, convert_cell(usage.cost)]


def tabulate_detectable_losses(losses: Sequence[DetectableLoss]) -> Table:
    """Tabulate each metric's smallest detectable loss (power 80%), and how many questions detect the target loss."""
    return Table("", LOSS_COLUMNS, [_make_loss_row(metric) for metric in losses])


def _make_loss_row(metric: DetectableLoss) -> list[Cell]:
    return [
        str(metric.subject),
        metric.questions,
        metric.after,
        convert_cell(metric.compute_detectable_loss()),
        convert_cell(metric.compute_detectable_loss(question_factor=2)),
        convert_cell(metric.compute_detectable_loss(epoch_factor=2) if metric.noise_known else None),
        metric.loss,
        metric.questions_needed,
        "?" if not metric.noise_known else str(metric.epochs_needed or "none suffice"),
    ]


def advise_on_loss(metric: DetectableLoss) -> str:
    """State whether the target loss is detectable and, if not, whether more questions or epochs would help."""
    name = str(metric.subject)
    drawn = metric.calibration
    fails = (
        f" Drawn {drawn.draws:,} times from earlier answers, equal models fail in {drawn.equal_fails:.1%}, and a loss "
        f"of {metric.loss:.3g} fails in {drawn.loss_fails:.0%}."
        if drawn
        else ""
    )
    detectable = metric.compute_detectable_loss()
    if detectable <= metric.loss:
        return f"{name}: a loss of {metric.loss:.3g} can be shown with what is there.{fails}"
    seen = f"a loss of {detectable:.3g} or more" if math.isfinite(detectable) else "no loss at all"
    words = f"{name}: {seen} can be shown, not {metric.loss:.3g}."
    if metric.questions_needed is not None:
        more = write_count(metric.questions_needed - metric.questions, "more question")
        words += f" {metric.loss:.3g} needs {more} ({metric.questions_needed:,} instead of {metric.questions:,})"
        if metric.epochs_needed:
            words += f", or {metric.epochs_needed} epochs in both runs"
        words += "."
    return f"{words} {_advise_on_epochs(metric)}{fails}"


def _advise_on_epochs(metric: DetectableLoss) -> str:
    if not metric.noise_known:
        return "Whether epochs help is not known: the baseline has one score per question."
    epochs = metric.compute_detectable_loss(epoch_factor=2)
    if not math.isfinite(epochs) or metric.compute_detectable_loss(question_factor=2) < 0.98 * epochs:
        return "For the same number of calls more questions pay more than more epochs."
    return "More epochs pay as much as more questions, call for call, and need no new questions."
