"""Prints the tables of `--plan` when all cases have been collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.plugin.items import cases_of
from evalsuite.plugin.pytest_internals import session_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from evalsuite.core.settings import Settings
    from evalsuite.decisions.planning import PlannedBenchmark
    from evalsuite.plugin.process import Process
    from evalsuite.results.runs import Run


def show_plan(terminal: pytest.TerminalReporter, process: Process) -> None:
    """Print what the collected cases will take and, with a baseline, which loss they can show."""
    session = session_of(terminal)
    if session is None:
        return
    from evalsuite.core.errors import EvalsuiteError, in_words
    from evalsuite.decisions.planning import count_asked

    cases = cases_of(session.items)
    terminal.section("evalsuite plan")
    if not cases:
        terminal.write_line("no cases were collected")
        return
    counts = count_asked((case.bound.name, case.source.id) for case in cases)
    try:
        lines = _make_lines(process.settings, process.model_name, terminal.config, counts)
    except EvalsuiteError as error:
        lines = [f"evalsuite: {in_words(error)}"]
        session.exitstatus = 4
    for line in lines:
        terminal.write_line(line)


def _make_lines(
    settings: Settings, model: str | None, config: pytest.Config, asked: list[PlannedBenchmark]
) -> list[str]:
    from evalsuite.decisions.conditions import parse_gates
    from evalsuite.decisions.planning import expenses, sights
    from evalsuite.output.reports.markdown import terminal_table
    from evalsuite.output.reports.plan_section import advice, expense_table, sight_table
    from evalsuite.results.run_folders import find_folder
    from evalsuite.results.runs import load_run

    reports = config.rootpath / settings.reports
    baseline = load_run(find_folder(reports, settings.baseline[0])) if settings.baseline else None
    spent = expenses(asked, baseline, _find_price(settings, model))
    lines = [*terminal_table(expense_table(spent)).splitlines(), ""]
    if baseline is None:
        return [
            *lines,
            "calls, tokens, dollars and what can be shown are known from an earlier run: --baseline RUN",
        ]
    lines += [
        f"{expense.asked.benchmark}: nothing is known of it, as {baseline.folder.name} has no case of it"
        for expense in spent
        if expense.usage is None
    ]
    gates = parse_gates(settings.gate)
    seen = sights(asked, baseline, _find_second(baseline, settings, config), gates, settings.detect)
    if seen:
        lines += [
            f"Against {baseline.folder.name}, with a power of 80%, two-sided at 5%:",
            "",
            *terminal_table(sight_table(seen)).splitlines(),
            "",
            *(advice(sight) for sight in seen),
            *(f"{sight.subject}: the variance is that of {sight.source}." for sight in seen),
        ]
    return lines


def _find_second(baseline: Run, settings: Settings, config: pytest.Config) -> Run | None:
    """Find the second baseline, or the first one's own baseline, if it still exists."""
    from evalsuite.core.errors import RunError
    from evalsuite.results.run_folders import find_folder
    from evalsuite.results.runs import load_run

    name = next(iter([*settings.baseline[1:], *baseline.baselines]), None)
    try:
        return load_run(find_folder(config.rootpath / settings.reports, name)) if name else None
    except RunError:
        return None


def _find_price(settings: Settings, model: str | None) -> Callable[[int, int], float] | None:
    from evalsuite.gateway.spend import price_of, read_prices

    price = price_of(model, read_prices(settings.price)) if model else None
    return price.of if price else None
