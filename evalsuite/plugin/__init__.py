"""The pytest plugin: its hooks, which delegate to the other modules.

A suite uses the plugin if the conftest.py of its root directory has this line:

    pytest_plugins = ["evalsuite.plugin"]
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from evalsuite.core.declarations import is_run_folder
from evalsuite.core.errors import EvalsuiteError
from evalsuite.plugin.collection import (
    add_parameters_to_samples,
    check_gates_and_modes,
    check_judge_and_sandboxes,
    choose_items,
    count_collected_cases,
    make_items,
    mark_function,
    shorten_report,
)
from evalsuite.plugin.fixtures import endpoint, evalsuite_case, judge, model, sample, scores, transcript
from evalsuite.plugin.listener import LISTENER
from evalsuite.plugin.options import describe_former_options, list_models
from evalsuite.plugin.outcomes import advance_to_item, make_report, record_running_item, show_case_in_debugger
from evalsuite.plugin.process import PROCESS, record_deselected_cases
from evalsuite.plugin.pytest_internals import remove_unknown_lines
from evalsuite.plugin.session import (
    find_run_to_continue,
    finish_session,
    make_header,
    restore_status,
    send_plan,
    show_summary,
    start_process,
    stop_process,
    watch_imports,
)
from evalsuite.plugin.xdist import refuse_plain_workers, set_default_distribution

__all__ = ["endpoint", "evalsuite_case", "judge", "model", "sample", "scores", "transcript"]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare options and ini keys, and watch the conftests that pytest imports from now on."""
    from evalsuite.plugin.options import add_options

    add_options(parser)
    watch_imports(pluginmanager)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that other plugins and conftests may implement."""
    from evalsuite.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Set how xdist distributes cases, let `--plan` only collect, and run a session per model if there are several."""
    if config.getoption("evalsuite_plan"):
        config.option.collectonly = True
    set_default_distribution(config)
    models = list_models([str(arg) for arg in config.invocation_params.args])
    if len(models) < 2:
        return None
    from evalsuite.plugin.several_sessions import run_session_per_model

    try:
        return run_session_per_model(config, models)
    except EvalsuiteError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(wrapper=True, specname="pytest_cmdline_main")
def pytest_run_parts(config: pytest.Config) -> Generator[None, Any, Any]:
    """Run the further parts of a large suite in further sessions, and return the last session's exit status."""
    status = yield
    folder = find_run_to_continue(config)
    if folder is None or status:
        return status
    from evalsuite.plugin.several_sessions import run_further_parts

    return run_further_parts(config, folder)


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings, and set this process up as the controlling process or as a worker."""
    start_process(config)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Warn of options that have become project settings, and start the live progress line."""
    listener = session.config.stash.get(LISTENER, None)
    if listener is not None:
        terminal = session.config.pluginmanager.getplugin("terminalreporter")
        for line in describe_former_options(session.config) if terminal else ():
            terminal.write_line(line)
        from evalsuite.plugin.live_line import show_progress

        show_progress(session.config, listener)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return lines for pytest's header: the model under test, and the run that is replayed or resumed, if any."""
    return make_header(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Refuse workers with an unencrypted network connection, unless the user allows these workers."""
    if not config.stash[PROCESS].settings.allow_plain_workers:
        refuse_plain_workers(config, specs)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a worker its connection to the gateway."""
    node.config.stash[LISTENER].connect_node(node)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Do not collect from folders of runs, because a run contains only data and may come from anybody."""
    return is_run_folder(collection_path) or None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,  # noqa: ARG001 - the hook's signature
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Show a message instead of a traceback if a benchmark's declaration is invalid."""
    report = yield
    if report.failed:
        shorten_report(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> Generator[None, Any, Any]:
    """Mark a benchmark's function before pytest makes its items; afterwards, count its cases."""
    mark_function(obj)
    made = yield
    count_collected_cases(collector.config, made)
    return made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one item per case from a benchmark's function."""
    make_items(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Refuse gates and `--mode` options that apply to none of the collected cases, before any case runs."""
    add_parameters_to_samples(items)
    check_gates_and_modes(session, items)


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def pytest_choose_items(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select this machine's shard and set the run's order, after -k and -m have selected items."""
    choose_items(config, items)
    check_judge_and_sandboxes(session, items)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Record the cases that pytest deselects in a resumed run, because they still belong to the suite."""
    record_deselected_cases(items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Let a worker send the number of its cases to the controlling process; one worker also sends the cases."""
    send_plan(session)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Move the queue of cases to this item, and start solving as many later cases as may be in flight."""
    advance_to_item(item, nextitem)


@pytest.hookimpl(wrapper=True, specname="pytest_runtest_protocol")
def pytest_item_runs(item: pytest.Item) -> Generator[None, object, object]:
    """Record which item is running, because a case's fixtures need to know."""
    return (yield from record_running_item(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach a case's record to its last report."""
    return (yield from make_report(item, call))


@pytest.hookimpl(wrapper=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> Generator[None, object, object]:
    """Make the failed case available in the debugger if the user gave --pdb."""
    return (yield from show_case_in_debugger(node))


@pytest.hookimpl(tryfirst=True)
def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Let pytest show where a signal interrupted the code, even if it arrived between two lines."""
    remove_unknown_lines(excinfo)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the report and set the exit status."""
    finish_session(session)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the verdict and the report's path; with --plan, show the plan."""
    show_summary(terminalreporter)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> Generator[None, object, object]:
    """Release all resources, and restore a failing exit status that another plugin's hook has changed."""
    try:
        return (yield)
    finally:
        restore_status(config)
        stop_process(config)
