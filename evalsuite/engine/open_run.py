"""A run in progress: opens its folder, journal and gateway, stores records as they arrive, and decides its verdict."""

from __future__ import annotations

import json
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import NEVER_EXCUSED, EvalsuiteError, SettingsError, SpendLimitReached, write_count
from evalsuite.core.json_codec import decode_record, decode_usage, encode_usage, find_declared_range
from evalsuite.core.types import Record, Usage
from evalsuite.decisions.early_stops import EarlyDecider, ResultSequencer
from evalsuite.decisions.gates import explain_misspelling, parse_gates
from evalsuite.decisions.verdict import Status, Verdict, read_comparison_rules
from evalsuite.engine.case_record import StorableRecord
from evalsuite.engine.span_export import RunSpanExporter
from evalsuite.gateway.loop import BackgroundLoop
from evalsuite.journal.batches import StoredBatches
from evalsuite.journal.planned import PlannedCase, RunPart
from evalsuite.results.run_folders import (
    COMMENT,
    JOURNAL,
    RECORDS,
    REPORT,
    RunFolder,
    export_records,
    find_run_folder,
    import_records,
    make_run_folder,
)
from evalsuite.results.runs import Run, load_run
from evalsuite.results.tally import Row

if TYPE_CHECKING:
    from evalsuite.batches.backend import PendingBatches
    from evalsuite.core.protocols import Benchmark
    from evalsuite.core.settings import Settings
    from evalsuite.decisions.early_stops import FindRange
    from evalsuite.decisions.gates import Gate
    from evalsuite.engine.preparation import RunSpec
    from evalsuite.gateway.channel import ChannelServer
    from evalsuite.journal.journal import Journal, RecordSummary
    from evalsuite.models.protocol import Backend
    from evalsuite.output.reports.section import Section
    from evalsuite.output.reports.write import RunReport

CRASH = "WorkerDied"  # The error cause in the record of a case whose process died.
NOTABLE_REFUSALS = 0.03  # Share of refused requests above which the report mentions refusals.
DECIDED = "every gate is decided"  # The only reason for an early end that leaves no gate open.
FIRST = (1, False)  # The first stage; a stage is a pair (epoch, whether the case is beyond `--limit`).


class EarlyStopper:
    """Decides gates on results in the planned order, and ends the session when all gates are decided.

    Results in the order of arrival would bias the decision, because fast answers would count first.
    """

    def __init__(
        self,
        settings: Settings,
        gates: Sequence[Gate],
        reports: Path,
        stop: Callable[[str], None],
        order: Sequence[str],
        cases: Iterable[PlannedCase],
        find_range: FindRange,
    ) -> None:
        self._stop = stop
        self._decider: EarlyDecider | None = None
        if settings.can_end_early:
            baselines = [load_run(find_run_folder(reports, name)) for name in dict.fromkeys(settings.baseline)]
            self._decider = EarlyDecider(gates, baselines, read_comparison_rules(settings.plain()), find_range)
        self._order: ResultSequencer[tuple[str, Row]] = ResultSequencer(order)
        self._goes_on = settings.until_decided
        self._stages = {planned.case: (planned.epoch, planned.beyond) for planned in cases} if self._goes_on else {}
        # The number of cases that run even without `--until-decided`.
        self._at_first = sum(stage == FIRST for stage in self._stages.values())
        self._reason = ""  # Why the session was ended; empty if it was not.

    @property
    def has_ended(self) -> bool:
        """Whether the session was ended early on purpose."""
        return bool(self._reason)

    def _end_session(self, reason: str) -> None:
        if not self.has_ended:
            self._reason = reason
            self._stop(reason)

    def add_result(self, item: str, result: tuple[str, Row] | None, *, is_budget_spent: bool = False) -> None:
        """Add an item's result (benchmark and row); None if neither a gate nor a comparison uses the item."""
        if self._decider is None:
            return
        if is_budget_spent and self._goes_on:
            self._end_session("the money is spent")
        for benchmark, row in self._order.add_result(item, result):
            self._decider.add_case(benchmark, row)
        if self._goes_on and not self._decider.decided:
            # Results count in the planned order, so all stages before that of the next awaited item are complete.
            epoch, beyond = self._stages.get(self._order.next_item or "", FIRST)
            if epoch > 1 and not self._decider.can_use_more_epochs:
                self._end_session("more epochs would decide nothing more")
            elif beyond and not self._decider.can_use_more_samples:
                self._end_session("more samples than --limit would decide nothing more")
        if self._decider.decided:
            self._end_session(DECIDED)

    def encode_early_decisions(self, planned_count: int) -> dict[str, Any] | None:
        """Return the early decisions for `run.json`; None if the session did not end early."""
        if self._decider is None or not self.has_ended:
            return None
        gates = [{"gate": test.gate.text, "verdict": test.verdict} for test in self._decider.gates]
        compared = [
            {"baseline": test.baseline, "subject": str(test.subject), "verdict": test.verdict}
            for test in self._decider.comparisons
        ]
        cases = self._order.waiting_count
        planned_count = self._at_first if self._goes_on else max(planned_count, cases)
        facts = {"cases": cases, "planned": planned_count, "gates": gates, "compared": compared}
        return facts | ({"open": self._reason} if self._reason != DECIDED else {})


class RunHooks(Protocol):
    """Receives a run's records and verdict, and adds sections to its report; no exception leaves its methods.

    Attributes:
        errors: the first exception of each hook's implementations, by the hook's name.
    """

    errors: dict[str, str]

    def receive_record(self, line: str) -> None:
        """Receive a record, as a line of `records.jsonl`, after it was stored in the journal."""

    def make_sections(self, run: Run, verdict: Verdict) -> list[Section]: ...

    def receive_verdict(self, verdict: Verdict, folder: Path) -> None:
        """Receive the verdict after all files were written."""


class ActiveRun:
    """A run from its first case to its verdict.

    Args:
        cases: the run's planned cases, which are iterated only once unless the run may end early.
        order: names of all items of the session, in the order in which their results count for an early end.
        hooks: the receiver of records and the verdict, which may add sections to the report; None if there is none.

    Attributes:
        folder: the run's folder.
        journal: the run's journal; any thread may use it.
        gateway: the gateway through which the run calls its models; only the thread of its event loop may use it.
        background: the event loop of the gateway.
        early: the object that ends the session as soon as all gates and comparisons are decided.
        report: the run's report, with its verdict; None before the run has ended.
        below: the cases of each benchmark that are below their threshold, but excused by a gate.
        detached: why the session stopped waiting for batches (with --detach); empty if the session did not stop
            waiting.
        aside: further lines to show on the terminal at the end.
        continuation: a line that describes the part that ended, if another part follows; otherwise empty.
        places: the locations of the benchmarks' code, as this session's processes reported them.
        hopeless: the error that ended the session because no further case could be decided; None without an error.
    """

    def __init__(
        self,
        spec: RunSpec,
        cases: Iterable[PlannedCase],
        order: Sequence[str],
        *,
        selection: Mapping[str, Any],
        live: Mapping[str, Benchmark],
        stop: Callable[[str], None],
        hooks: RunHooks | None = None,
    ) -> None:
        settings = spec.settings
        self._spec, self._live, self._stop, self._hooks = spec, live, stop, hooks
        self._info = {**spec.make_run_info(), **selection}
        self._gates = parse_gates(settings.gate)
        self.early = EarlyStopper(settings, self._gates, spec.reports_folder, stop, order, cases, self._find_range)
        baseline = next(iter(settings.baseline), None)
        self.baseline = load_run(find_run_folder(spec.reports_folder, baseline)) if baseline else None
        self._clock, self._started = time.monotonic(), datetime.now(UTC)
        self.hopeless: EvalsuiteError | None = None
        # Benchmarks with at least one scored case; the metrics of their gates have been checked.
        self._scored: set[str] = set()
        self.places: set[str] = set()
        self._metrics: dict[str, Mapping[str, dict[str, Any]]] = {}
        self.report: RunReport | None = None
        self.below: dict[str, list[str]] = {}
        self.detached = self.aside = self.continuation = ""
        with ExitStack() as unless_opened:
            self._open_run_files(cases, unless_opened)
            self._spans = RunSpanExporter(self.folder.name) if settings.otel else None
            self._open_gateway()
            self._opened = unless_opened.pop_all()

    def _open_run_files(self, cases: Iterable[PlannedCase], opened: ExitStack) -> None:
        from evalsuite.journal.journal import Journal
        from evalsuite.journal.lease import RunLock

        settings, reports = self._spec.settings, self._spec.reports_folder
        if settings.resume:
            self.folder = find_run_folder(reports, settings.resume)
        else:
            self.folder = make_run_folder(reports, settings.run, self._spec.model or "", self._started)
        lease = self._spec.lease or RunLock(self.folder.path)
        opened.callback(lease.release)
        started, path = _format_timestamp(self._started), self.folder.path
        lease.write_holder(platform.node(), started)
        self._write_run_info()
        # The journal may be missing, because the user may have copied only the records.
        has_only_records = not (path / JOURNAL).is_file() and (path / RECORDS).is_file()
        self.journal = Journal(path / JOURNAL)
        opened.callback(self.journal.close)
        if has_only_records:
            import_records(self.journal, path / RECORDS)
        self.journal.begin_session(started, self._info["command"])
        part = self._spec.part or RunPart()
        self.journal.store_plan(cases, part.number, part.planned)

    def _open_gateway(self) -> None:
        from evalsuite.gateway.opening import open_gateway
        from evalsuite.journal.answers import Answers

        settings, answers = self._spec.settings, self.journal.answers
        self._batches = StoredBatches(self.journal.database)
        self._pending: PendingBatches | None = None
        if settings.replay:
            replayed = find_run_folder(self._spec.reports_folder, settings.replay)
            answers = Answers.open(replayed.path / JOURNAL, read_only=True)
        elif settings.batch:
            self._batches.mark_batched_calls_unbilled()
        self.gateway = open_gateway(settings, answers, self._stop_hopeless, self._choose_backend)
        if settings.batch and not settings.replay:
            from evalsuite.batches.backend import PendingBatches

            tell = self.gateway.notices.append
            self._pending = PendingBatches(detach=settings.detach, tell=tell, on_detached=self._detach_run)
        if self._spans is not None:
            self.gateway.on_answer = self._spans.export_call
        self._servers: dict[Any, ChannelServer] = {}
        # Protects `_servers`, which each worker's thread and the event loop's thread use.
        self._lock = threading.Lock()
        # Start the event loop last, because its thread would keep running if another step raised an error.
        self.background = BackgroundLoop()

    def _choose_backend(self, backend: Backend, model: str) -> Backend:
        """Return the backend to use; a replay, a gateway service or batches replace the given backend."""
        settings = self._spec.settings
        if settings.replay:
            from evalsuite.models.answers import ReplayBackend

            return ReplayBackend(backend, RunFolder(self._spec.reports_folder / settings.replay).name)
        if settings.gateway:
            from evalsuite.service.clients import parse_services
            from evalsuite.service.remote import RemoteBackend

            return RemoteBackend(backend, parse_services(settings.gateway))
        if self._pending is not None:
            from evalsuite.batches.backend import BatchBackend, require_openai_backend

            return BatchBackend(require_openai_backend(model, backend), model, self._batches, self._pending)
        return backend

    def describe_waiting_batches(self) -> list[str]:
        return self._pending.describe_batches() if self._pending is not None else []

    def get_channel_server(self, channel: Any) -> ChannelServer:
        """Return the object that answers a worker's requests; the first call for a channel makes it."""
        from evalsuite.gateway.channel import ChannelServer

        with self._lock:
            if channel not in self._servers:
                self._servers[channel] = ChannelServer(channel, self.background, self.gateway)
            return self._servers[channel]

    def _write_run_info(self, facts: Mapping[str, Any] | None = None) -> None:
        """Write `run.json`; `facts` are known only when the session ends."""
        self.folder.write_info({"started": _format_timestamp(self._started), **self._info, **(facts or {})})

    def _detach_run(self, reason: str) -> None:
        """End the session although batches are unanswered; a later session collects the answers."""
        self.detached = reason
        self._stop(reason)

    def _stop_hopeless(self, error: EvalsuiteError) -> None:
        self.hopeless = error
        self._stop(str(error))

    def is_failure_excused(self, case: str, benchmark: str) -> bool:
        """Tell whether a gate or quarantine excuses a case, so that its missed threshold does not fail the session."""
        return any(gate.covers_benchmark(benchmark) for gate in self._gates) or self._is_quarantined(case)

    def _is_quarantined(self, case: str) -> bool:
        quarantine = self._spec.quarantine
        planned = self.journal.find_planned_case(case) if quarantine is not None else None
        if planned is None or quarantine is None:
            return False
        return quarantine.find_entry(planned.benchmark, planned.sample) is not None

    def store_record(self, case: str, record: StorableRecord) -> None:
        """Store a case's record. If a case ran several times, the last record counts."""
        if record.metrics is not None:
            self._metrics.setdefault(record.benchmark, record.metrics)
        self.places.add(record.declared)
        self.journal.store_record(case, record.same, record.line)
        if self._hooks is not None:
            self._hooks.receive_record(record.line)
        if self._spans is not None:
            self._spans.export_case(record.line)
        if record.excused == "gate":
            self.below.setdefault(record.benchmark, []).append(case)
        if self._gates and record.benchmark not in self._scored:
            self._check_gated_metrics(json.loads(record.line))
        if self._spec.settings.can_end_early:
            # Decode the record only here, because decoding takes long.
            self._add_result_for_early_end(decode_record(record.line))

    def store_crash_record(self, case: str, message: str) -> str | None:
        """Store an error record for a case whose process died; return its benchmark, or None for an unplanned case."""
        planned = self.journal.find_planned_case(case)
        if planned is None:
            return None
        record = Record(
            case=planned.case,
            benchmark=planned.benchmark,
            sample=planned.sample,
            epoch=planned.epoch,
            model=self._spec.model or "",
            outcome="error",
            tags=planned.tags,
            source=planned.source,
            declared=planned.declared,
            error=message,
            cause=CRASH,
            fingerprints=planned.fingerprints,
        )
        self.store_record(case, StorableRecord.from_record(record, None))
        return planned.benchmark

    def _find_range(self, benchmark: str, score: str) -> tuple[float, float] | None:
        return find_declared_range(self._metrics.get(benchmark, {}), score)

    def _add_result_for_early_end(self, record: Record) -> None:
        # Ignore skipped cases, because they have no score (for example after the budget was spent).
        decides = not self._is_quarantined(record.case) and record.outcome != "skipped"
        result = (record.benchmark, Row.of(record)) if decides else None
        self.early.add_result(record.case, result, is_budget_spent=record.cause == SpendLimitReached.__name__)

    def _check_gated_metrics(self, record: Mapping[str, Any]) -> None:
        """End the session if a gate names a metric that the benchmark of its first scored case does not have."""
        benchmark = record["benchmark"]
        if record["scores"] and record["outcome"] != "error":
            self._scored.add(benchmark)
            present = {*record["scores"], *self._metrics.get(benchmark, {})}
            problem = next(filter(None, (explain_misspelling(gate, benchmark, present) for gate in self._gates)), "")
            if problem:
                self._stop_hopeless(SettingsError(problem))

    def finish_part(self, following_part: RunPart, other_failures: int) -> None:
        """End the session without a verdict, because another session runs the following part."""
        size = self.journal.count_planned_cases()
        ended = f"part {following_part.number - 1} of {following_part.of} ended"
        self.continuation = f"{ended}: {size:,} of {following_part.cases:,} cases; the run goes on"
        totals = self._sum_parts(other_failures)
        next_part = asdict(replace(following_part, planned=size))
        self.journal.end_session(_format_timestamp(datetime.now(UTC)), self.continuation)
        self._write_run_info({**totals, "stopped": self.continuation, "next_part": next_part})
        self._write_aside([])

    def _write_aside(self, lines: Iterable[str]) -> None:
        unsent = self._spans.flush_spans() if self._spans is not None else ""
        failed = self._hooks.errors.values() if self._hooks else ()
        self.aside = "\n".join(filter(None, [*lines, *failed, unsent]))

    def _sum_parts(self, other_failures: int) -> dict[str, Any]:
        """Compute the totals in `run.json` over this session and the run's earlier parts."""
        earlier = self._spec.earlier
        own = self.background.run(self._sum_usage())
        usages = [usage for usage in (decode_usage(earlier["usage"]) if earlier.get("usage") else None, own) if usage]
        # Use a monotonic clock, because the wall clock may be set back while the session runs.
        seconds = time.monotonic() - self._clock + earlier.get("seconds", 0.0)
        return {
            "seconds": round(seconds, 1),
            "usage": encode_usage(sum(usages, Usage())) if usages else None,
            "metrics": {**earlier.get("metrics", {}), **self._metrics},
            "other_failures": other_failures + earlier.get("other_failures", 0),
        }

    async def _sum_usage(self) -> Usage | None:
        return self.gateway.sum_usage() if self.gateway.served else None

    def finish_run(self, interruption: str | None, planned_count: int, other_failures: int = 0) -> None:
        """End the run: decide the verdict, and write records, report and summary."""
        from evalsuite.output.reports.write import append_to_github_files, write_run_report

        stopped = None if self.early.has_ended else str(self.hopeless) if self.hopeless else interruption
        counted = self.journal.summarise_records()
        if counted.missing and not (stopped or self.early.has_ended):
            stopped = f"{write_count(len(counted.missing), 'case')} left no record, among them {counted.missing[0]}"
        # Whether the session ended because of the run's files or of evalsuite itself, not because of the model.
        is_own_fault = type(self.hopeless).__name__ in NEVER_EXCUSED
        facts = {
            **self._sum_parts(other_failures),
            "stopped": stopped,
            "fault": str(self.hopeless) if is_own_fault else None,
            "early": self.early.encode_early_decisions(planned_count),
            "remarks": [*_collect_remarks(self.journal, counted), *self._describe_unused_answers()],
        }
        self.journal.end_session(_format_timestamp(datetime.now(UTC)), stopped)
        export_records(self.journal, self.folder.path)
        self._write_run_info(facts)
        declarations = Declarations(self._spec.root, self._live, frozenset(self.places))
        hooks = self._hooks
        self.report = write_run_report(self.folder, declarations, hooks.make_sections if hooks else None)
        verdict = self.report.verdict
        if hooks is not None:
            hooks.receive_verdict(verdict, self.folder.path)
        text, comment = ((self.folder.path / name).read_text("utf-8") for name in (REPORT, COMMENT))
        self._write_aside(append_to_github_files(text, comment, verdict))

    def _describe_unused_answers(self) -> Iterator[str]:
        file = self._spec.settings.answers
        if not file:
            return
        from evalsuite.models.answers import read_answers_file

        asked = {
            (planned.benchmark, name)
            for planned in self.journal.list_planned_cases()
            for name in (planned.sample, planned.tags.get("cluster", planned.sample))
        }
        if unused := read_answers_file(file).list_unused_answers(asked):
            count = write_count(len(unused), "answer")
            yield f"--answers {file}: {count} not scored, because no case asked for them, among them {unused[0]!r}"

    @property
    def status(self) -> Status | None:
        """The run's exit status, regardless of pytest's own status; None before `finish_run`."""
        if self.report is None:
            return None
        if self.detached:
            return Status.DETACHED
        verdict = self.report.verdict
        return Status.INCOMPLETE if self.hopeless is not None or verdict.faults else verdict.status

    def close(self) -> None:
        """Close the gateway and the journal, and release the lock on the run."""
        with self._opened:
            self.background.run(self._close_gateway())
            self.background.close()

    async def _close_gateway(self) -> None:
        if self._pending is not None:
            # End the calls that wait for a batch; the next session collects the answers.
            self._pending.stop_waiting()
            self._batches.delete_answered_results()
        await self.gateway.aclose()


def _format_timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _collect_remarks(journal: Journal, summary: RecordSummary) -> list[str]:
    lines = []
    if summary.left_out:
        lines.append(
            f"left out: {write_count(len(summary.left_out), 'case')} of earlier sessions, no longer asked for in this "
            f"way by this suite: {', '.join(summary.left_out[:3])}{' ...' if len(summary.left_out) > 3 else ''}"
        )
    if summary.damaged:
        lines.append(
            f"left out, as their records are damaged: {write_count(len(summary.damaged), 'case')}, "
            f"among them {summary.damaged[0]}"
        )
    requests, refused, cost = journal.answers.summarise_calls()
    if refused > NOTABLE_REFUSALS * requests:
        lines.append(f"{refused:,} of {requests:,} requests were refused by the server (429)")
    if round(cost, 4):
        lines.append(f"${cost:.4f} more may be billed for calls whose answers were withheld, lost or cancelled")
    if lost := journal.database.lost_rows:
        lines.append(
            f"the journal was damaged and lost at least {write_count(lost, 'row')}; what was in them was asked again"
        )
    if journal.answers.damaged:
        lines.append(f"asked again, as it was damaged: {write_count(journal.answers.damaged, 'stored answer')}")
    return lines
