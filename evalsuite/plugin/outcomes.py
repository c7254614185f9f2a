"""Makes a case's record from the exceptions of its item's phases, and adapts the reports that pytest shows.

If a case misses its threshold, the report shows a block of text (question, answer and scores) instead of the traceback.
"""

from __future__ import annotations

import builtins
import linecache
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Literal

import pytest

from evalsuite.core.declarations import FIXTURE
from evalsuite.core.errors import EvalsuiteError, SpendLimitReached, escape_for_terminal, get_message
from evalsuite.plugin.items import FINDINGS, RECORD, get_case, get_findings, running_items
from evalsuite.plugin.options import is_only_listing
from evalsuite.plugin.process import PROCESS
from evalsuite.plugin.pytest_internals import escape_traceback, is_traceback, make_failure_repr
from evalsuite.plugin.xdist import is_worker

if TYPE_CHECKING:
    from evalsuite.results.runs import Run

    Raised = pytest.ExceptionInfo[BaseException]

EXCUSES = {
    "gate": "below threshold; the gate decides",
    "epochs": "below threshold; the sample's other epochs decide with it",
    "quarantine": "below threshold; in quarantine, and decides nothing",
}
"""Reasons why a case below its threshold does not fail the session by itself."""

INSPECTING = ("maxfail", "usepdb", "runxfail", "stepwise")
NO_KEYWORDS: dict[str, Literal[1]] = {}
SECTION = "evalsuite"  # Title of the section with a case's scores in pytest's failure report.
NUMBERS_ALONE = re.compile(r"(AssertionError: )?assert [-+.\de]+( \(.*\))? (==|!=|<=?|>=?) [-+.\de]+")
"""Matches a failed comparison of two numbers, which is left out because the block shows the scores."""


@pytest.hookimpl(wrapper=True, specname="pytest_runtest_protocol")
def pytest_item_runs(item: pytest.Item) -> Generator[None, object, object]:
    """Keep the item in `running_items` while it runs."""
    running_items.append(item)
    try:
        return (yield)
    except pytest.exit.Exception:
        # Send the record now, because the user has quit the debugger, and pytest will make no further report of this
        # case.
        _send_record(item)
        raise
    finally:
        running_items.pop()


def _send_record(item: pytest.Item) -> None:
    listener = item.config.pluginmanager.get_plugin("evalsuite-listener")
    findings = item.stash.get(FINDINGS, None)
    if listener is None or findings is None or findings.outcome not in {"failed", "error"}:
        return
    report = pytest.TestReport(item.nodeid, item.location, {}, "passed", None, "teardown")
    _attach_record_to_report(item, report)
    listener.pytest_runtest_logreport(report)


@pytest.hookimpl(wrapper=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> Generator[None, object, object]:
    """Make `pp evalsuite_case` show sample, transcript and scores in every frame, with --pdb."""
    case = get_case(node) if isinstance(node, pytest.Item) else None
    if not isinstance(node, pytest.Item) or case is None or not node.config.getoption("usepdb", default=False):
        return (yield)
    findings = get_findings(node)
    shown = {
        "sample": case.sample,
        "transcript": findings.solved.transcript if findings.solved else None,
        "scores": findings.scores,
        "error": findings.error,
    }
    terminal = node.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        terminal.write_line("evalsuite: pp evalsuite_case shows sample, transcript and scores")
    setattr(builtins, FIXTURE, shown)
    try:
        return (yield)
    finally:
        delattr(builtins, FIXTURE)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Advance the queue of cases to this item, and start solving as many later cases as may be in flight."""
    if is_only_listing(item.config):
        # Do not solve any case, because with `--setup-plan` pytest only lists the fixtures.
        return
    process = item.config.stash[PROCESS]
    process.advance_to_item(item, nextitem)
    if process.stopping and (nextitem is None or get_case(nextitem) is not None):
        item.session.shouldstop = process.stopping


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let pytest report one phase of an item; then add the case's text block and record to the report."""
    case = get_case(item)
    is_suppressed = case is not None and call.when == "call" and _is_traceback_replaced(item.config, call.excinfo)
    with _suppress_traceback(item) if is_suppressed else nullcontext():
        report = yield
    excinfo = call.excinfo  # pytest itself may have replaced the exception, for example `unittest.SkipTest`.
    if excinfo is not None and isinstance(excinfo.value, EvalsuiteError):
        report.longrepr = escape_for_terminal(get_message(excinfo.value))
    if case is None:
        return report
    if is_traceback(report.longrepr):
        escape_traceback(report.longrepr)
    if excinfo is not None:
        _record_failure(item, excinfo, report)
    findings = item.stash.get(FINDINGS, None)
    if report.when == "call" and findings is not None and findings.scores.get("calls") == 0.0:
        lines = [entry["content"] for entry in findings.logs.get("calls", ()) if entry.get("role") == "calls"]
        if lines:  # Another scorer's score named `calls` may lack such a log.
            report.sections.append(("tool calls: - expected, + made", "\n".join(lines)))
    if report.when == "teardown" and not is_only_listing(item.config):
        _attach_record_to_report(item, report)
    return report


def _record_failure(item: pytest.Item, excinfo: Raised, report: pytest.TestReport) -> None:
    """Record the exception of a case's phase, and add the case's question, answer and scores to the report."""
    from evalsuite.output.reports.case_block import format_case_block
    from evalsuite.results.tally import choose_primary

    process, findings, error = item.config.stash[PROCESS], get_findings(item), excinfo.value
    settings, in_test = process.settings, report.when == "call"
    is_missed = findings.record_error(error, get_message(error), settings, process.quarantine, in_test=in_test)
    if isinstance(error, SpendLimitReached) and findings.outcome == "skipped":
        report.outcome = "skipped"
        report.longrepr = (str(report.location[0]), report.location[1] or 0, "Skipped: the money is spent")
        return
    if is_missed and report.outcome != "failed":
        findings.excused = "xfail"
    elif is_missed and any(getattr(item.config.option, name, False) for name in INSPECTING):
        # If the user inspects single failures (`-x`, `--pdb`), each missed threshold fails its case.
        findings.excused = None
    elif is_missed and findings.excused:
        # Show the missed threshold as an expected failure, because a gate or the quarantine covers the case.
        report.outcome = "skipped"
        report.wasxfail = EXCUSES[findings.excused]
    findings.failures += report.failed
    if findings.outcome in {"failed", "error"}:
        record = findings.make_record(item.nodeid, process.model_name or "")
        # Show all scores if the test reads no score by name, because the test may then depend on any score.
        few = findings.read and item.config.getoption("verbose", default=0) <= 0
        main = choose_primary(findings.case.bound.declaration.benchmark.primary, record.scores)
        scores = {main or "", *findings.read} if few else ()
        add_block_to_failure(item, excinfo, report, format_case_block(record, scores=scores))


class ReportTrimmer:
    """Removes those parts of reports that pytest will not show, because pytest keeps every report until the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        result = yield
        # Drop the record from the report, because the worker has already sent the record.
        report.__dict__.pop(RECORD, None)
        if not report.passed or report.sections:
            return result
        report.keywords = NO_KEYWORDS
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        # Without `--durations`, drop passed setups and teardowns. A worker drops all passed reports, because it prints
        # nothing.
        shown = report.when == "call" and not is_worker(self._config)
        if terminal is not None and not shown and self._config.option.durations is None:
            for reports in terminal.stats.values():
                if reports and reports[-1] is report:
                    reports.pop()
        return result


def _attach_record_to_report(item: pytest.Item, report: pytest.TestReport) -> None:
    process, findings = item.config.stash[PROCESS], get_findings(item)
    kept = findings.make_storable_record(item.nodeid, process.settings, process.model_name or "")
    # Send a plain tuple, because execnet does not serialise named tuples.
    setattr(report, RECORD, (*kept, findings.failures))
    # Delete the case's data (such as the transcript) to save memory, because pytest keeps all items until the end.
    del item.stash[FINDINGS]


def add_block_to_failure(item: pytest.Item, excinfo: Raised, report: pytest.TestReport, block: str) -> None:
    """Add the block to a failed case's report; the block replaces the traceback, unless `--tb` requests a traceback.

    A case that failed by an exception, not by its threshold, keeps its traceback. The block is a section of the failure
    itself, because JUnit reports, pytest-html and workers preserve a failure's sections.
    """
    if is_traceback(report.longrepr) and not _is_traceback_replaced(item.config, excinfo):
        report.longrepr.addsection(SECTION, block, "-")  # type: ignore[union-attr] # it is a traceback
        return
    is_ours = isinstance(excinfo.value, EvalsuiteError)  # Leave out the class names of evalsuite's own exceptions.
    # Use the failure's own text for a missing fixture, because no other text lists the existing fixtures.
    shown = getattr(report.longrepr, "errorstring", excinfo.exconly(tryshort=True))
    said = get_message(excinfo.value) if is_ours else shown
    message = escape_for_terminal(said)
    file, line, _ = report.location
    test_file = str(item.path)
    entries = [entry for entry in excinfo.traceback if entry.frame.code.raw.co_filename == test_file]
    if entries:
        number = entries[-1].lineno + 1
        statement = _read_statement_at_line(entries[-1].frame.code.raw, number)
    else:
        # The test itself did not run, for example because its fixture `scores` failed.
        number, statement = (line or 0) + 1, type(excinfo.value).__name__
    lines = [f"{file}:{number}: {statement}\n"]
    if message not in block and not NUMBERS_ALONE.fullmatch(message):
        lines += [f"E   {part}\n" for part in message.splitlines()]
    explained = make_failure_repr(lines, file, number, message)
    explained.addsection(SECTION, block, "-")
    report.longrepr = explained


@contextmanager
def _suppress_traceback(item: pytest.Item) -> Iterator[None]:
    """Keep pytest from formatting a traceback that will be replaced, because formatting is slower than the case."""
    item.repr_failure = lambda excinfo, style=None: ""  # type: ignore[method-assign] # noqa: ARG005 - as pytest calls it
    try:
        yield
    finally:
        # Restore the method `repr_failure`, because the item may run again and fail in another way.
        del item.repr_failure


def _is_traceback_replaced(config: pytest.Config, excinfo: Raised | None) -> bool:
    """Tell whether the block replaces the traceback, as for assertions and evalsuite's errors; false with `--tb`."""
    replaced = (AssertionError, EvalsuiteError, pytest.fail.Exception)
    is_default = config.getoption("tbstyle", default="auto") == "auto"
    return is_default and excinfo is not None and isinstance(excinfo.value, replaced)


@lru_cache(maxsize=256)
def _read_statement_at_line(code: CodeType, number: int) -> str:
    # Cache the statements, because each search parses the file, and a benchmark's cases fail at the same few lines.
    from evalsuite.engine.case_record import get_statement_source

    return escape_for_terminal(get_statement_source(linecache.getlines(code.co_filename), number))


def get_case_block(report: pytest.TestReport) -> str:
    """Return the text block of a case in a report; empty if the report has no such block."""
    sections = getattr(report.longrepr, "sections", [])
    return next((str(block) for name, block, _ in sections if name == SECTION), "")


def add_baseline_answer_to_report(report: pytest.TestReport, baseline: Run | None) -> None:
    """Add the baseline's answer to a failed case's block, if the baseline has the case."""
    from evalsuite.output.reports.case_block import add_baseline_answer

    if baseline is None or report.nodeid not in baseline.offsets:
        return
    sections = getattr(report.longrepr, "sections", [])
    for at, (name, block, sep) in enumerate(sections):
        if name == SECTION:
            sections[at] = (name, add_baseline_answer(block, baseline.read(report.nodeid)), sep)
