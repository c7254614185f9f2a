"""The controlling process: it holds the gateway and the run's folder, hears every report, and decides."""

from __future__ import annotations

import json
import platform
import threading
import time
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evalsuite.decisions.gates import parse_gates
from evalsuite.decisions.planned_order import PlannedOrder
from evalsuite.declarations import Declarations
from evalsuite.errors import RunError, SettingsError
from evalsuite.json_codec import decode_record, dumps, encode_record, encode_usage
from evalsuite.plugin.marks import RECORD
from evalsuite.plugin.session.provenance import versions
from evalsuite.results.record_file import JOURNAL, RECORDS, export_records, take_in
from evalsuite.results.runs import COMMENT, REPORT, RunFolder, find_folder, make_folder
from evalsuite.results.tally import Row
from evalsuite.types import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pytest

    from evalsuite.batches.desk import BatchDesk
    from evalsuite.decisions.quarantine import Quarantine
    from evalsuite.decisions.sequential_gates import EarlyStop
    from evalsuite.decisions.verdict import Verdict
    from evalsuite.errors import EvalsuiteError
    from evalsuite.gateway.channel import ChannelServer
    from evalsuite.gateway.gateway import Gateway
    from evalsuite.gateway.loop import BackgroundLoop
    from evalsuite.journal.journal import Counted, Journal
    from evalsuite.journal.lease import Lease
    from evalsuite.journal.planned import PlannedCase
    from evalsuite.models.protocol import Backend
    from evalsuite.plugin.session.watchers import Watchers
    from evalsuite.protocols import Benchmark
    from evalsuite.reporting.write import RunReport
    from evalsuite.results.runs import Run
    from evalsuite.settings import Settings

CRASH = "WorkerDied"


class Controller:
    """The controlling process of a session. It opens, starts and writes nothing before a case needs it.

    Args:
        settings: of the run, with those of a resumed or replayed run taken over.
        model: the model's name, with the default filled in.
        root: what relative paths are relative to.
        command: the command line, for the report.
        selection: which tests it asks for, for a run that goes on with this one.
        narrowed: whether these are chosen cases, so that gates of other benchmarks do not wait for theirs.
        stop: ends the session early, with a reason.
        live: the benchmarks that this process has collected, by the node id of the test function.
        watchers: hear of every record and of the verdict, and add to the report.
        cases: those of this session.
        lease: on the run that is resumed; None for a new one.
        quarantine: cases that decide nothing; None where there are none.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - all that one session is
        self,
        settings: Settings,
        model: str | None,
        root: Path,
        command: str,
        selection: dict[str, Any],
        narrowed: bool,  # noqa: FBT001 - a fact, given by name
        stop: Callable[[str], None],
        live: Mapping[str, Benchmark],
        watchers: Watchers,
        cases: Sequence[PlannedCase],
        lease: Lease | None,
        quarantine: Quarantine | None,
    ) -> None:
        self.settings, self.model = settings, model
        self.reports = root / settings.reports
        self.gates = parse_gates(settings.gate)
        self._quarantine = quarantine
        self.started = datetime.now(UTC)
        self.hopeless: EvalsuiteError | None = None
        self.verdict: Verdict | None = None
        self.report: RunReport | None = None
        # What is waited for by nobody any more, with --detach.
        self.detached = ""
        # What the terminal says besides.
        self.aside = ""
        self._planned = {planned.case: planned for planned in cases}
        self.lease = lease
        self._opening = threading.RLock()
        self._clock = time.monotonic()
        self._failures: dict[str, int] = {}
        self.decided_early = False
        # Cases below their threshold that a gate decides about, by benchmark.
        self.below: dict[str, list[str]] = {}
        # Benchmarks of which a scored case was there, so that the names of its metrics are known.
        self._known: set[str] = set()
        self._servers: dict[Any, ChannelServer] = {}
        self._early = self._make_early() if settings.stop_when_decided else None
        self._order: PlannedOrder[tuple[str, Row]] = PlannedOrder(())
        self._command, self._selection, self._stop = command, selection, stop
        self._narrowed = narrowed
        self._root, self._live, self._watchers = root, live, watchers
        # Where the workers of this session say that their benchmarks were declared.
        self._places: set[str] = set()
        # What scorers declare of their scores, by benchmark.
        self._metrics: dict[str, dict[str, Any]] = {}

    def _make_early(self) -> EarlyStop:
        from evalsuite.decisions.early_comparisons import early_comparisons
        from evalsuite.decisions.sequential_gates import EarlyStop
        from evalsuite.decisions.verdict import comparison_rules
        from evalsuite.results.runs import load_run

        settings = self.settings
        if not settings.baseline:
            return EarlyStop(self.gates)
        baseline = load_run(find_folder(self.reports, settings.baseline))
        return EarlyStop(
            self.gates, early_comparisons(baseline, self.gates, comparison_rules(settings.plain()))
        )

    def plan(self, items: Sequence[str]) -> None:
        """Takes note of the order in which results are to be heard, by node id."""
        self._order = PlannedOrder(items)

    def pass_over(self, item: str) -> None:
        """An item that is no case has come to its end."""
        self._hear_early(item, None)

    @cached_property
    def background(self) -> BackgroundLoop:
        """The event loop of the gateway."""
        from evalsuite.gateway.loop import BackgroundLoop

        return BackgroundLoop()

    @cached_property
    def folder(self) -> RunFolder:
        """The run's folder, made on first use."""
        if self.settings.resume:
            folder = find_folder(self.reports, self.settings.resume)
        else:
            folder = make_folder(self.reports, self.settings.run, self.model or "", self.started)
        if self.lease is None:
            from evalsuite.journal.lease import Lease

            self.lease = Lease(folder.path)
        self.lease.sign(platform.node(), self.started.isoformat(timespec="seconds"))
        folder.write_info(self._info())
        return folder

    @property
    def journal(self) -> Journal:
        """The run's journal, made on first use; from any thread."""
        with self._opening:
            return self._journal

    @cached_property
    def _journal(self) -> Journal:
        from evalsuite.journal.journal import Journal

        folder = self.folder.path
        alone = not (folder / JOURNAL).is_file() and (folder / RECORDS).is_file()
        journal = Journal(folder / JOURNAL)
        if alone:
            take_in(journal, folder / RECORDS)
        journal.begin(self.started.isoformat(timespec="seconds"), self._command)
        journal.plan(self._planned.values())
        return journal

    def _info(self, **more: Any) -> dict[str, Any]:
        from evalsuite.gateway.concealment import public_settings

        settings = public_settings(self.settings).plain()
        return {
            "started": self.started.isoformat(timespec="seconds"),
            "command": self._command,
            "model": self.model,
            "settings": settings,
            "selection": self._selection,
            "narrowed": self._narrowed,
            **({"quarantine": self._quarantine.plain()} if self._quarantine else {}),
            "versions": versions(self.settings.program_env),
            **more,
        }

    @cached_property
    def gateway(self) -> Gateway:
        """The run's gateway; to be had in the loop's thread only."""
        from evalsuite.gateway.opening import open_gateway
        from evalsuite.journal.answers import Answers

        replayed = self.settings.replay
        if replayed:
            answers = Answers.open(find_folder(self.reports, replayed).path / JOURNAL, read_only=True)
        else:
            answers = self.journal.answers
            if self.settings.batch:
                from evalsuite.journal.batches import Batches

                Batches(self.journal.database).carry_over()
        return open_gateway(self.settings, answers, self._give_up, self._in_place)

    @property
    def asking(self) -> bool:
        """Whether any case has asked a model."""
        return "gateway" in self.__dict__

    def _in_place(self, backend: Backend, model: str) -> Backend:
        """The backend itself, or what stands in its place: a replay, a gateway service, batches."""
        if self.settings.replay:
            from evalsuite.models.replay import ReplayBackend

            return ReplayBackend(backend, RunFolder(self.reports / self.settings.replay).name)
        if self.settings.gateway:
            from evalsuite.service.address import parse_services
            from evalsuite.service.remote import RemoteBackend

            return RemoteBackend(backend, parse_services(self.settings.gateway))
        if self.settings.batch:
            from evalsuite.batches.choice import in_batches
            from evalsuite.journal.batches import Batches

            return in_batches(backend, model, Batches(self.journal.database), self.desk)
        return backend

    @cached_property
    def desk(self) -> BatchDesk:
        """The batches of this session."""
        from evalsuite.batches.desk import BatchDesk

        def leave(reason: str) -> None:
            self.detached = reason
            self._stop(reason)

        return BatchDesk(
            detach=self.settings.detach,
            tell=self.gateway.notices.append,
            on_detached=leave,
        )

    def _give_up(self, error: EvalsuiteError) -> None:
        self.hopeless = error
        self._stop(str(error))

    def hear_worker(self, channel: Any, text: str | None) -> None:
        """Has a worker's request answered; without text, the worker is gone."""
        self._server(channel).hear(text)

    def stop_worker(self, channel: Any, reason: str) -> None:
        """Has a worker end early, whether or not it has asked for anything."""
        self._server(channel).stop(reason)

    def _server(self, channel: Any) -> ChannelServer:
        if channel not in self._servers:
            from evalsuite.gateway.channel import ChannelServer

            self._servers[channel] = ChannelServer(channel, self.background, lambda: self.gateway)
        return self._servers[channel]

    def covers(self, benchmark: str) -> bool:
        """Whether a gate decides about a benchmark."""
        return any(gate.covers(benchmark) for gate in self.gates)

    def hear(self, report: pytest.TestReport) -> None:
        """Keeps the record that rides on a report, or makes one for a case whose worker died."""
        riding = report.__dict__.pop(RECORD, None)
        if riding is not None:
            line, benchmark, failures, place, metrics, same = riding
            self._metrics.setdefault(benchmark, metrics)
            self._places.add(place)
            self._keep(report.nodeid, same, line)
            self._cover(report.nodeid, benchmark, failures)
        elif str(report.when) == "???" and report.nodeid in self._planned:
            from evalsuite.journal.identity import same_ask

            record = self._lost(report, self._planned[report.nodeid])
            self._places.add(record.declared)
            self._keep(report.nodeid, same_ask(record.fingerprints), dumps(encode_record(record)))
            self._cover(report.nodeid, record.benchmark, 1)

    def _cover(self, case: str, benchmark: str, failures: int) -> None:
        """Of a case that ran several times, its last time counts."""
        self._failures[case] = failures if self.covers(benchmark) or self._is_held(case) else 0

    def _is_held(self, case: str) -> bool:
        """Whether a case is in quarantine, and decides nothing."""
        planned = self._planned.get(case)
        if planned is None or self._quarantine is None:
            return False
        return self._quarantine.entry_of(planned.benchmark, planned.sample) is not None

    @property
    def covered(self) -> int:
        """Failed reports that fail no session: errors of cases that a gate decides about, or in quarantine."""
        return sum(self._failures.values())

    def recall(self, report: pytest.TestReport) -> None:
        """Adds what the baseline answered to a failed case's explanation."""
        from evalsuite.plugin.run.explanation import add_baseline
        from evalsuite.reporting.case_block import baseline_line

        baseline = self._baseline
        if baseline is not None and report.nodeid in baseline.offsets:
            add_baseline(report, baseline_line(baseline.read(report.nodeid)))

    @cached_property
    def _baseline(self) -> Run | None:
        from evalsuite.results.runs import load_run

        try:
            return load_run(find_folder(self.reports, self.settings.baseline or ""))
        except RunError:
            # The verdict says what is wrong with it.
            return None

    def _keep(self, case: str, same: str, line: str) -> None:
        self.journal.record(case, same, line)
        self._watchers.record(line)
        if self.gates:
            self._look_at(decode_record(json.loads(line)))
        if self._early is not None:
            record = decode_record(json.loads(line))
            heard = None if self._is_held(record.case) else (record.benchmark, Row.of(record))
            self._hear_early(record.case, heard)

    def _look_at(self, record: Record) -> None:
        """Sees that gates speak of metrics that there are, and takes note of what `--lf` may mean."""
        if record.excused == "gate":
            self.below.setdefault(record.benchmark, []).append(record.case)
        if record.scores and record.outcome != "error" and record.benchmark not in self._known:
            self._known.add(record.benchmark)
            from evalsuite.decisions.gates import misspelt

            there = {*record.scores, *self._metrics.get(record.benchmark, {})}
            problem = next(filter(None, (misspelt(gate, record.benchmark, there) for gate in self.gates)), "")
            if problem:
                self._give_up(SettingsError(problem))

    def _hear_early(self, item: str, result: tuple[str, Row] | None) -> None:
        if self._early is None:
            return
        for benchmark, row in self._order.arrive(item, result):
            self._early.hear(benchmark, row)
        if self._early.decided and not self.decided_early:
            self.decided_early = True
            self._stop("every gate is decided")

    def _lost(self, report: pytest.TestReport, planned: PlannedCase) -> Record:
        """The record of a case that ended its worker."""
        return Record(
            case=planned.case,
            benchmark=planned.benchmark,
            sample=planned.sample,
            epoch=planned.epoch,
            model=self.model or "",
            outcome="error",
            tags=planned.tags,
            source=planned.source,
            declared=planned.declared,
            error=str(report.longrepr),
            cause=CRASH,
            fingerprints=planned.fingerprints,
        )

    def conclude(self, interrupted: str | None, planned: int) -> None:
        """Writes report and summary, and decides.

        Args:
            interrupted: why the session ended early, if it did.
            planned: how many cases there were to run.
        """
        from evalsuite.reporting.write import append_step_summary, write_run

        usage = self.background.run(self._usage()) if self.asking else None
        # Not by the clock on the wall, which somebody may set back.
        seconds = time.monotonic() - self._clock
        stopped = None if self.decided_early else str(self.hopeless) if self.hopeless else interrupted
        counted = self.journal.counted()
        if counted.missing and not (stopped or self.decided_early):
            stopped = f"{len(counted.missing)} cases left no record, among them {counted.missing[0]}"
        self.journal.end(datetime.now(UTC).isoformat(timespec="seconds"), stopped)
        export_records(self.journal, self.folder.path)
        told = {
            "seconds": round(seconds, 1),
            "stopped": stopped,
            "usage": usage,
            "early": self._told_early(planned),
            "metrics": self._metrics,
            "remarks": remarks(counted, self.journal.lost, self.journal.answers.damaged),
        }
        self.folder.write_info(self._info(**told))
        self.report = write_run(self.folder, self._declarations(), self._watchers.sections)
        self.verdict = self.report.verdict
        self._watchers.verdict(self.verdict, self.folder.path)
        self.aside = "\n".join(filter(None, [append_step_summary(*self._written()), *self._watchers.faults]))

    def _written(self) -> tuple[str, str]:
        """The report and its first screen, as they were written."""
        return tuple((self.folder.path / name).read_text("utf-8") for name in (REPORT, COMMENT))  # type: ignore[return-value] # two names

    def _declarations(self) -> Declarations:
        return Declarations(self._root, self._live, frozenset(self._places))

    def _told_early(self, planned: int) -> dict[str, Any] | None:
        if self._early is None or not self.decided_early:
            return None
        gates = [{"gate": one.gate.text, "verdict": one.verdict} for one in self._early.gates]
        compared = [{"subject": str(one.subject), "verdict": one.verdict} for one in self._early.comparisons]
        cases = self._order.arrived
        return {"cases": cases, "planned": max(planned, cases), "gates": gates, "compared": compared}

    async def _usage(self) -> dict[str, Any]:
        return encode_usage(self.gateway.used())

    def waits(self) -> list[str]:
        """A few words on each batch that is waited for."""
        return self.desk.waits() if "desk" in self.__dict__ else []

    async def _let_batches_go(self) -> None:
        """What waits for a batch would hold up the end of the session; the next one collects it."""
        from evalsuite.journal.batches import Batches

        self.desk.release()
        Batches(self.journal.database).tidy()

    def close(self) -> None:
        """Closes the gateway and the loop, as far as they were made."""
        if self.asking and self.settings.batch and not self.settings.replay:
            self.background.run(self._let_batches_go())
        if self.asking:
            self.background.run(self.gateway.aclose())
        if "background" in self.__dict__:
            self.background.close()
        if "_journal" in self.__dict__:
            self.journal.close()
        if self.lease is not None:
            self.lease.release()


def remarks(counted: Counted, lost: int, damaged: int) -> list[str]:
    """What a reader of the report must know of the run's journal."""
    lines = []
    if counted.left_out:
        lines.append(
            f"{len(counted.left_out)} cases of earlier sessions are left out, as this suite does not ask for them, "
            f"or not so: {', '.join(counted.left_out[:3])}{' ...' if len(counted.left_out) > 3 else ''}"
        )
    if counted.damaged:
        lines.append(
            f"the records of {len(counted.damaged)} cases are damaged and left out: {counted.damaged[0]} ..."
        )
    if lost:
        lines.append(
            f"the journal was damaged: {lost} of its rows were lost, and what was in them was asked again"
        )
    if damaged:
        lines.append(f"{damaged} kept answers were damaged and asked again")
    return lines
