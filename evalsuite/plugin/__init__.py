"""The hooks by which pytest calls evalsuite; each delegates.

A suite opts in with one line in the conftest.py of its root directory:

    pytest_plugins = ["evalsuite.plugin"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.plugin.collection.parameters import carry_parameters
from evalsuite.plugin.collection.preflight import check_asked, check_judge, check_others
from evalsuite.plugin.collection.programs_here import check_sandboxes
from evalsuite.plugin.collection.selection import choose_items
from evalsuite.plugin.run.fixtures import endpoint, evalsuite_case, judge, model, sample, scores, transcript
from evalsuite.plugin.run.item_stages import begin_item, lend_to_debugger, make_report, note_running
from evalsuite.plugin.session.plan import note_deselected, send_plan
from evalsuite.plugin.session.session_finish import conclude, show_summary, stop
from evalsuite.plugin.session.session_start import announce, check_hosts, start, start_node, watch
from evalsuite.plugin.terminal.plan_tables import show_plan

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["endpoint", "evalsuite_case", "judge", "model", "sample", "scores", "transcript"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and ini keys."""
    from evalsuite.plugin.options import add_options

    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """The hooks that other plugins and conftests may implement."""
    from evalsuite.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Sets how -n distributes cases, and makes --plan run none."""
    from evalsuite.plugin.session.session_start import only_plan, prefer_worksteal

    only_plan(config)
    prefer_worksteal(config)


def pytest_configure(config: pytest.Config) -> None:
    """Reads the settings, and sets this process up as the controlling one or as a worker."""
    start(config)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Starts the live line."""
    watch(session.config)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Names the model under test."""
    return announce(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Refuses workers that would be reached in plain text over a network, unless allowed."""
    check_hosts(config, specs)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Gives a worker its connection to the gateway."""
    start_node(node)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,  # noqa: ARG001 - the hook's signature
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Shows a wrong declaration as one message."""
    report = yield
    if report.failed:
        from evalsuite.plugin.collection.declared_wrongly import tell_plainly

        tell_plainly(report)
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Turns a benchmark's function into its cases."""
    from evalsuite.plugin.run.item_stages import make_items

    make_items(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Refuses modes and gates that apply to no case, before any case runs."""
    carry_parameters(items)
    check_asked(session, items)


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def pytest_choose_items(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Chooses this machine's shard and the run's order, after -k and -m.

    pytest passes over functions whose name does not begin with its own, whatever they implement.
    """
    choose_items(config, items)
    check_others(session, items)
    check_judge(session, items)
    check_sandboxes(session, items)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Notes cases that a resumed run leaves out this time but that still belong to its suite."""
    note_deselected(items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Has one worker tell the controlling process which cases there are."""
    send_plan(session)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Fills the window of cases in flight, as the queue has moved."""
    begin_item(item, nextitem)


@pytest.hookimpl(wrapper=True, specname="pytest_runtest_protocol")
def pytest_item_runs(item: pytest.Item) -> Generator[None, object, object]:
    """Notes which item runs, for the fixtures of a case."""
    return (yield from note_running(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attaches a case's record to its last report."""
    return (yield from make_report(item, call))


@pytest.hookimpl(wrapper=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> Generator[None, object, object]:
    """Lets pdb show the case that failed."""
    return (yield from lend_to_debugger(node))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the report and sets the exit status."""
    conclude(session)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows the verdict and where the report is, or the plan."""
    show_summary(terminalreporter)
    show_plan(terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Closes everything that was opened."""
    stop(config)
