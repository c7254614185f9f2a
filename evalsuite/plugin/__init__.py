"""The pytest plugin: its hooks and fixtures, which pytest finds here by their names.

A suite uses the plugin if the conftest.py of its root directory has this line:

    pytest_plugins = ["evalsuite.plugin"]
"""

# ruff: noqa: F401 - pytest finds imported hooks and fixtures by their names
from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from evalsuite.core.declarations import is_run_folder
from evalsuite.core.errors import EvalsuiteError
from evalsuite.plugin import session
from evalsuite.plugin.collection import (
    pytest_choose_items,
    pytest_collection_modifyitems,
    pytest_generate_tests,
    pytest_make_collect_report,
    pytest_pycollect_makeitem,
)
from evalsuite.plugin.fixtures import endpoint, evalsuite_case, judge, model, sample, scores, transcript
from evalsuite.plugin.listener import LISTENER
from evalsuite.plugin.options import add_options, describe_former_options, list_models
from evalsuite.plugin.outcomes import (
    pytest_exception_interact,
    pytest_item_runs,
    pytest_runtest_makereport,
    pytest_runtest_protocol,
)
from evalsuite.plugin.process import PROCESS, pytest_deselected
from evalsuite.plugin.pytest_internals import remove_unknown_lines
from evalsuite.plugin.session import (
    pytest_collection_finish,
    pytest_configure,
    pytest_report_header,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_unconfigure,
)
from evalsuite.plugin.xdist import refuse_plain_workers, set_default_distribution


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare options and ini keys; guard the import of further conftests."""
    add_options(parser)
    session.guard_imports(pluginmanager)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that other plugins and conftests may implement."""
    from evalsuite.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Set how xdist distributes cases; with `--plan`, only collect; with several models, run a session per model."""
    if config.getoption("evalsuite_plan"):
        config.option.collectonly = True
    set_default_distribution(config)
    models = list_models(config)
    if len(models) < 2:
        return None
    from evalsuite.plugin.several_sessions import run_session_per_model

    try:
        return run_session_per_model(config, models)
    except EvalsuiteError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(wrapper=True, specname="pytest_cmdline_main")
def pytest_run_parts(config: pytest.Config) -> Generator[None, Any, Any]:
    """Run the remaining parts of a large suite, each in a new session; return the last session's exit status."""
    status = yield
    folder = session.find_run_to_continue(config)
    if folder is None or status:
        return status
    from evalsuite.plugin.several_sessions import run_further_parts

    return run_further_parts(config, folder)


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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Refuse workers with an unencrypted network connection, unless the user allows these workers."""
    if not config.stash[PROCESS].settings.allow_plain_workers:
        refuse_plain_workers(config, specs)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Do not collect from folders of runs, because a run contains only data and may come from anybody."""
    return is_run_folder(collection_path) or None


@pytest.hookimpl(tryfirst=True)
def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Let pytest show where a signal interrupted the code, even if it arrived between two lines."""
    remove_unknown_lines(excinfo)
