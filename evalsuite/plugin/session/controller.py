"""The controlling process: it hears every report, keeps its record, and decides at the end."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from evalsuite.core.counted_nouns import number_of
from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import NEVER_EXCUSED, RunError, SettingsError, SpendLimitReached
from evalsuite.core.json_codec import decode_record, dumps, encode_record
from evalsuite.core.types import Record
from evalsuite.decisions.conditions import parse_gates
from evalsuite.engine.early_end import EarlyEnd
from evalsuite.engine.open_run import OpenRun, remarks
from evalsuite.engine.run_gateway import RunGateway
from evalsuite.plugin.marks import RECORD
from evalsuite.plugin.session.provenance import versions
from evalsuite.results.run_folders import COMMENT, REPORT, find_folder
from evalsuite.results.tally import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pytest

    from evalsuite.core.errors import EvalsuiteError
    from evalsuite.core.protocols import Benchmark
    from evalsuite.core.settings import Settings
    from evalsuite.decisions.quarantine import Quarantine
    from evalsuite.decisions.verdict import Verdict
    from evalsuite.journal.lease import Lease
    from evalsuite.journal.planned import PlannedCase
    from evalsuite.output.reports.write import RunReport
    from evalsuite.plugin.session.watchers import Watchers
    from evalsuite.results.run_folders import RunFolder
    from evalsuite.results.runs import Run

CRASH = "WorkerDied"

EXCUSED = '"excused":"gate"'
"""Stands in the line of every record of a case below its threshold that a gate decides about."""


class Controller:
    """The controlling process of a session: makes the run's folder, journal, event loop and gateway.

    `Listener.open` makes it, once, before the first case runs.

    Args:
        settings: of the run, with those of a resumed or replayed run taken over.
        model: the model's name, with the default filled in.
        root: what relative paths are relative to.
        command: the command line, for the report.
        selection: which tests it asks for, for a run that goes on with this one.
        narrowed: whether the cases were picked, so that gates of benchmarks left out are not waited for.
        stop: ends the session early, with a reason.
        live: the benchmarks that this process has collected, by the node id of the test function.
        watchers: hear every record and the verdict, and may add to the report.
        cases: those of this session.
        lease: on the run that is resumed; None for a new one.
        quarantine: cases that decide nothing; None where there are none.

    Raises:
        EvalsuiteError: the run cannot be made or opened again.
        OSError: a file of it cannot be written.
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
        self._reports = root / settings.reports
        self._gates = parse_gates(settings.gate)
        self._quarantine, self._watchers = quarantine, watchers
        self._planned = {planned.case: planned for planned in cases}
        self.early = EarlyEnd(settings, self._gates, self._reports, stop)
        self._baseline = self._find_baseline()
        self._stop = stop
        self._clock = time.monotonic()
        self._root, self._live = root, live
        # Why the session ended itself, as no further case could be decided.
        self.hopeless: EvalsuiteError | None = None
        self.verdict: Verdict | None = None
        self.report: RunReport | None = None
        # Why the session no longer waits for its batches, with --detach.
        self.detached = ""
        # What else the terminal says.
        self.aside = ""
        # Failed reports, and those of them that fail no session, by case.
        self._failures: dict[str, tuple[int, int]] = {}
        # Cases below their threshold that a gate decides about, by benchmark.
        self.below: dict[str, list[str]] = {}
        # Benchmarks that have had a scored case, so that the names of their metrics are known.
        self._scored: set[str] = set()
        # Where the workers of this session say that their benchmarks were declared.
        self._places: set[str] = set()
        # What scorers declare of their scores, by benchmark.
        self._metrics: dict[str, dict[str, Any]] = {}
        self._run = OpenRun(
            settings, self._reports, self._info(command, selection, narrowed=narrowed), cases, lease
        )
        try:
            self.asked = RunGateway(settings, self._reports, self._run, self._give_up, self._leave)
        except BaseException:
            self._run.close()
            raise

    def _info(self, command: str, selection: dict[str, Any], *, narrowed: bool) -> dict[str, Any]:
        from evalsuite.gateway.concealment import public_settings

        return {
            "command": command,
            "model": self.model,
            "settings": public_settings(self.settings).plain(),
            "selection": selection,
            "narrowed": narrowed,
            **({"quarantine": self._quarantine.plain()} if self._quarantine else {}),
            "versions": versions(self.settings.program_env),
        }

    @property
    def planned(self) -> list[PlannedCase]:
        """The cases of this session."""
        return list(self._planned.values())

    @property
    def folder(self) -> RunFolder:
        """The run's folder."""
        return self._run.folder

    @property
    def _fault(self) -> str | None:
        """Why nothing more could be kept or asked, where that is the run's own failure."""
        own = type(self.hopeless).__name__ in NEVER_EXCUSED
        return str(self.hopeless) if own else None

    def _leave(self, reason: str) -> None:
        self.detached = reason
        self._stop(reason)

    def _give_up(self, error: EvalsuiteError) -> None:
        self.hopeless = error
        self._stop(str(error))

    def covers(self, benchmark: str) -> bool:
        """Whether a gate decides about a benchmark."""
        return any(gate.covers(benchmark) for gate in self._gates)

    def hear(self, report: pytest.TestReport) -> None:
        """Keeps the record attached to a report, or makes one for a case whose worker died."""
        riding = report.__dict__.pop(RECORD, None)
        if riding is not None:
            line, benchmark, failures, place, metrics, same = riding
            self._metrics.setdefault(benchmark, metrics)
            self._places.add(place)
            self._keep(report.nodeid, benchmark, same, line)
            self._cover(report.nodeid, benchmark, failures)
        elif str(report.when) == "???" and report.nodeid in self._planned:
            from evalsuite.journal.identity import same_ask

            record = self._lost(report, self._planned[report.nodeid])
            self._places.add(record.declared)
            same, line = same_ask(record.fingerprints), dumps(encode_record(record))
            self._keep(report.nodeid, record.benchmark, same, line)
            self._cover(report.nodeid, record.benchmark, 1)

    def _cover(self, case: str, benchmark: str, failures: int) -> None:
        """If a case ran several times, the last time counts."""
        covered = self.covers(benchmark) or self._is_held(case)
        self._failures[case] = (failures, failures if covered else 0)

    def _is_held(self, case: str) -> bool:
        """Whether a case is in quarantine and so decides nothing."""
        planned = self._planned.get(case)
        if planned is None or self._quarantine is None:
            return False
        return self._quarantine.entry_of(planned.benchmark, planned.sample) is not None

    @property
    def covered(self) -> int:
        """Failed reports that do not fail the session: of cases that a gate decides about, or in quarantine."""
        return sum(covered for _, covered in self._failures.values())

    def recall(self, report: pytest.TestReport) -> None:
        """Adds what the baseline answered to a failed case's explanation."""
        from evalsuite.output.reports.case_block import baseline_line
        from evalsuite.plugin.run.explanation import add_baseline

        baseline = self._baseline
        if baseline is not None and report.nodeid in baseline.offsets:
            add_baseline(report, baseline_line(baseline.read(report.nodeid)))

    def _find_baseline(self) -> Run | None:
        from evalsuite.results.runs import load_run

        if not self.settings.baseline:
            return None
        try:
            return load_run(find_folder(self._reports, self.settings.baseline[0]))
        except RunError:
            # The verdict says what is wrong with it.
            return None

    def _keep(self, case: str, benchmark: str, same: str, line: str) -> None:
        self._run.journal.record(case, same, line)
        self._watchers.record(line)
        if not (self._gates or self.early.possible):
            return
        # Most records say nothing new, and to read them takes longer than to see that.
        if not self.early.possible and benchmark in self._scored and EXCUSED not in line:
            return
        record = json.loads(line)
        self._look_at(record)
        if self.early.possible:
            self._count(decode_record(line))

    def _count(self, record: Record) -> None:
        """Counts a record towards ending the session early."""
        # What was skipped, as when there was no money left for it, has no score.
        decides = not self._is_held(record.case) and record.outcome != "skipped"
        if record.cause == SpendLimitReached.__name__:
            self.early.spend()
        self.early.hear(record.case, (record.benchmark, Row.of(record)) if decides else None)

    def _look_at(self, record: Mapping[str, Any]) -> None:
        """Checks that the gates' metrics exist, and notes the cases that `--lf` may mean.

        Args:
            record: as plain data; to decode its transcript takes longer than all that is done here.
        """
        benchmark = record["benchmark"]
        if record["excused"] == "gate":
            self.below.setdefault(benchmark, []).append(record["case"])
        if record["scores"] and record["outcome"] != "error" and benchmark not in self._scored:
            self._scored.add(benchmark)
            from evalsuite.decisions.misspelt import misspelt

            there = {*record["scores"], *self._metrics.get(benchmark, {})}
            problem = next(filter(None, (misspelt(gate, benchmark, there) for gate in self._gates)), "")
            if problem:
                self._give_up(SettingsError(problem))

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

    def conclude(self, interrupted: str | None, planned: int, failed: int = 0) -> None:
        """Writes report and summary, and decides.

        Args:
            interrupted: why the session ended early, if it did.
            planned: how many cases there were to run.
            failed: all failed reports of the session, those of cases included.
        """
        from evalsuite.output.reports.write import append_step_output, append_step_summary, write_run

        usage = self.asked.usage()
        # The wall clock may be set back while the session runs.
        seconds = time.monotonic() - self._clock
        stopped = None if self.early.ended else str(self.hopeless) if self.hopeless else interrupted
        counted = self._run.journal.counted()
        if counted.missing and not (stopped or self.early.ended):
            stopped = (
                f"{number_of(len(counted.missing), 'case')} left no record, among them {counted.missing[0]}"
            )
        facts = {
            "seconds": round(seconds, 1),
            "stopped": stopped,
            "fault": self._fault,
            "usage": usage,
            "early": self.early.facts(planned),
            "metrics": self._metrics,
            "remarks": remarks(self._run.journal, counted),
            "other_failures": max(0, failed - sum(failures for failures, _ in self._failures.values())),
        }
        self._run.end(stopped, facts)
        self.report = write_run(self.folder, self._declarations(), self._watchers.sections)
        self.verdict = self.report.verdict
        self._watchers.verdict(self.verdict, self.folder.path)
        on_github = [append_step_summary(*self._written()), append_step_output(self.verdict)]
        self.aside = "\n".join(filter(None, [*on_github, *self._watchers.faults]))

    def _written(self) -> tuple[str, str]:
        """The report and its first screen, as they were written."""
        return tuple((self.folder.path / name).read_text("utf-8") for name in (REPORT, COMMENT))  # type: ignore[return-value] # two names

    def _declarations(self) -> Declarations:
        return Declarations(self._root, self._live, frozenset(self._places))

    def close(self) -> None:
        """Closes what was opened."""
        self.asked.close()
        self._run.close()
