"""The plugin that `evalsuite doctor` loads into pytest: it prints a table instead of running a session."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.errors import EvalsuiteError

if TYPE_CHECKING:
    from evalsuite.core.settings import Settings


WIDTH = 100  # columns of the table


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the command's own option."""
    parser.getgroup("evalsuite").addoption("--doctor-without-programs", action="store_true")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int:
    """Print the table; no session begins."""
    from evalsuite.plugin.options import settings_of

    try:
        settings = settings_of(config)
    except EvalsuiteError as error:
        raise pytest.UsageError(str(error)) from error
    return _examine(settings, config, programs=not config.getoption("doctor_without_programs"))


def _examine(settings: Settings, config: pytest.Config, *, programs: bool) -> int:
    from evalsuite.engine.machine_check import SANDBOX, examine
    from evalsuite.engine.preparation import make_importable
    from evalsuite.output.reports.markdown import terminal_table
    from evalsuite.output.reports.section import Column, Table

    make_importable(settings, config.rootpath)
    findings = examine(settings, config.rootpath, programs=programs)
    if any(finding.subject == SANDBOX and finding.fault for finding in findings) and _needs_none(config):
        findings = [replace(each, fault=each.fault and each.subject != SANDBOX) for each in findings]
    # Columns are separated by two spaces.
    width = WIDTH - 4 - max(len(each.subject) for each in findings) - max(len(each.state) for each in findings)
    rows = []
    for finding in findings:
        first, *further = textwrap.wrap(finding.detail, width) or [""]
        rows += [[finding.subject, finding.state, first], *(["", "", line] for line in further)]
    table = Table("", (Column("What"), Column("State"), Column("Detail")), rows)
    faults = [finding.subject for finding in findings if finding.fault]
    conclusion = f"not ready: {', '.join(faults)}" if faults else "ready"
    if SANDBOX in faults:
        conclusion += " (if no case runs programs that a model writes, add --without-programs)"
    sys.stdout.write(f"{terminal_table(table)}\n\n{conclusion}\n")
    return int(bool(faults))


def _needs_none(config: pytest.Config) -> bool:
    """Tell whether the suite has cases but no case that runs programs written by a model."""
    from evalsuite.plugin.items import cases_of
    from evalsuite.plugin.pytest_internals import collect_items

    cases = cases_of(collect_items(config))
    return bool(cases) and not any(True for case in cases for _ in case.sandboxes())
