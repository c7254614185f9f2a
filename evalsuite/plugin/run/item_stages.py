"""What happens to one item, in the order of its hooks. Light to import, since every session loads it."""

from __future__ import annotations

import builtins
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.errors import EvalsuiteError, SpendLimitReached, for_terminal
from evalsuite.plugin.collection.selection import is_asked_for
from evalsuite.plugin.marks import FINDINGS, FIXTURE, LEFT_OUT, MARK, RECORD, case_of, running_items
from evalsuite.plugin.session.listener import LISTENER
from evalsuite.plugin.session.process_state import PROCESS

if TYPE_CHECKING:
    from collections.abc import Generator

    from evalsuite.plugin.collection.cases import Case
    from evalsuite.plugin.session.process_state import Process


def make_items(metafunc: pytest.Metafunc) -> None:
    """Gives a benchmark's function its cases, provided that a model can be asked.

    Raises:
        pytest.Collector.CollectError: with one clear message.
    """
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None:
        return
    from evalsuite.plugin.collection.cases import generate

    config = metafunc.config
    process = config.stash[PROCESS]
    settings, name = process.settings, process.model_name
    try:
        reason = _why_unaskable(config, process)
        if reason and not is_asked_for(config):
            skipped = pytest.param(None, marks=pytest.mark.skip(reason), id=LEFT_OUT)
            metafunc.parametrize(FIXTURE, [skipped], indirect=True)
            return
        if reason:
            raise pytest.Collector.CollectError(reason)
        generate(metafunc, mark.args[0], settings, name or "", process.deal.is_mine)
        listener = metafunc.config.stash.get(LISTENER, None)
        if listener is not None:
            listener.live[metafunc.definition.nodeid] = mark.args[0].benchmark
    except EvalsuiteError as error:
        raise pytest.Collector.CollectError(str(error)) from error


def _why_unaskable(config: pytest.Config, process: Process) -> str:
    """Why the model cannot be asked; empty if it can, or if nothing will be asked."""
    from evalsuite.engine.model_check import why_unaskable
    from evalsuite.models.choice import runs_other_code

    settings, name = process.settings, process.model_name
    if settings.replay or config.option.collectonly or runs_other_code(name or ""):
        return ""
    # The gateway holds the keys: in the controlling process, which told a worker what is missing, or in a service.
    told = getattr(config, "workerinput", None)
    reason = why_unaskable(replace(settings, model=name), with_key=not (told or settings.gateway))
    return reason or (str(told["evalsuite"]["unaskable"]) if told else "")


def note_running(item: pytest.Item) -> Generator[None, object, object]:
    """Notes which item runs while it does."""
    running_items.append(item)
    try:
        return (yield)
    except pytest.exit.Exception:
        # Whoever quits the debugger has seen the case fail; no further report of it would carry its record.
        _keep_record(item)
        raise
    finally:
        running_items.pop()


def begin_item(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Moves the queue on."""
    if item.config.option.setupplan:
        # The fixtures are listed, not run.
        return
    process = item.config.stash[PROCESS]
    process.item_begins(item, nextitem)
    if process.stopping and (nextitem is None or case_of(nextitem) is not None):
        item.session.shouldstop = process.stopping


def _keep_record(item: pytest.Item) -> None:
    """Keep the record of a case that failed before the session was left."""
    listener, findings = item.config.stash.get(LISTENER, None), item.stash.get(FINDINGS, None)
    if listener is None or findings is None or findings.outcome not in {"failed", "error"}:
        return
    report = pytest.TestReport(item.nodeid, item.location, {}, "passed", None, "teardown")
    close_item(item, report)
    listener.open().hear(report)


def lend_to_debugger(node: pytest.Item | pytest.Collector) -> Generator[None, object, object]:
    """With --pdb, `pp evalsuite_case` shows the sample, the transcript and the scores in every frame."""
    case = case_of(node) if isinstance(node, pytest.Item) else None
    if not isinstance(node, pytest.Item) or case is None or not node.config.option.usepdb:
        return (yield)
    from evalsuite.plugin.run.outcomes import findings_of

    findings = findings_of(node)
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


def make_report(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Has pytest make the report of one phase of an item, and adds what there is to say of a case."""
    if call.excinfo is None or case_of(item) is None:
        report = yield
    else:
        from evalsuite.plugin.run.explanation import sparing_traceback

        with sparing_traceback(item, call):
            report = yield
    note_report(item, call, report)
    close_item(item, report)
    return report


def note_report(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Notes how one phase of an item ended."""
    if isinstance(getattr(call.excinfo, "value", None), EvalsuiteError):
        assert call.excinfo is not None  # noqa: S101 - for the type checker; it has a value
        report.longrepr = for_terminal(str(call.excinfo.value))
    case = case_of(item)
    if case is None:
        return
    if call.excinfo is not None:
        _note_failure(item, case, call, report)
    findings = item.stash.get(FINDINGS, None)
    if report.when == "call" and findings is not None and findings.scores.get("calls") == 0.0:
        lines = "\n".join(entry["content"] for entry in findings.logs["calls"])
        report.sections.append(("tool calls: - expected, + made", lines))


def _note_failure(
    item: pytest.Item, case: Case, call: pytest.CallInfo[None], report: pytest.TestReport
) -> None:
    """Notes what a phase of a case raised, and has the case explain itself."""
    from evalsuite.output.reports.case_block import case_block
    from evalsuite.plugin.run.explanation import explain
    from evalsuite.plugin.run.outcomes import findings_of, note_phase, pass_over

    process, findings = item.config.stash[PROCESS], findings_of(item)
    assert call.excinfo is not None  # noqa: S101 - for the type checker: it failed
    if isinstance(call.excinfo.value, SpendLimitReached) and process.settings.until_decided:
        pass_over(findings, report)
        return
    note_phase(findings, call, report, None if looks_closer(item.config) else process.excuse(case))
    if findings.outcome in {"failed", "error"}:
        explain(item, call, report, case_block(findings.record(item, case, process.model_name or "")))


def looks_closer(config: pytest.Config) -> bool:
    """Whether failures are being looked at one by one (`-x`, `--pdb`): then a missed threshold fails, gated or not."""
    option = config.option
    return any(getattr(option, name, False) for name in ("maxfail", "usepdb", "runxfail", "stepwise"))


def close_item(item: pytest.Item, report: pytest.TestReport) -> None:
    """Puts the finished record on the item's last report."""
    case = case_of(item)
    if case is None or report.when != "teardown" or item.config.option.setupplan:
        return
    from evalsuite.core.json_codec import dumps, encode_record
    from evalsuite.engine.fingerprints import planned_fingerprints
    from evalsuite.journal.identity import same_ask
    from evalsuite.plugin.run.outcomes import findings_of

    findings = findings_of(item)
    process = item.config.stash[PROCESS]
    model = process.model_name or ""
    record = findings.record(item, case, model, planned_fingerprints(case, process.settings, model))
    setattr(
        report,
        RECORD,
        (
            dumps(encode_record(record)),
            record.benchmark,
            findings.failures,
            record.declared,
            case.bound.declared_metrics,
            same_ask(record.fingerprints),
        ),
    )
    # Transcripts are large, and pytest keeps its items until the end. An item that is rerun starts afresh.
    del item.stash[FINDINGS]
