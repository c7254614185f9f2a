"""The run that this session writes: its folder with a lease on it, and its journal."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evalsuite.core.counted_nouns import number_of
from evalsuite.results.record_file import JOURNAL, RECORDS, export_records, take_in
from evalsuite.results.run_folders import find_folder, make_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from evalsuite.core.settings import Settings
    from evalsuite.journal.journal import Counted, Journal
    from evalsuite.journal.lease import Lease
    from evalsuite.journal.planned import PlannedCase


class OpenRun:
    """The run being written: makes, or opens again, its folder and its journal.

    Args:
        settings: the run's.
        reports: the folder of all runs.
        info: the content of `run.json`, apart from the time when the run began.
        cases: those of this session.
        lease: the lease on the run that is resumed; None for a new run.

    Attributes:
        folder: the run's folder.
        journal: the run's journal; any thread may use it.

    Raises:
        EvalsuiteError: the folder cannot be made or found, or its journal cannot be opened.
        OSError: a file cannot be written.
    """

    def __init__(
        self,
        settings: Settings,
        reports: Path,
        info: Mapping[str, Any],
        cases: Iterable[PlannedCase],
        lease: Lease | None,
    ) -> None:
        from evalsuite.journal.lease import Lease

        self._info, self._started = info, datetime.now(UTC)
        if settings.resume:
            self.folder = find_folder(reports, settings.resume)
        else:
            self.folder = make_folder(reports, settings.run, info["model"] or "", self._started)
        self._lease = lease or Lease(self.folder.path)
        try:
            self._lease.sign(platform.node(), to_seconds(self._started))
            self._write_info()
            self.journal = self._open_journal(cases)
        except BaseException:
            self._lease.release()
            raise

    def _open_journal(self, cases: Iterable[PlannedCase]) -> Journal:
        from evalsuite.journal.journal import Journal

        folder = self.folder.path
        # A run of which only the records were copied.
        only_records = not (folder / JOURNAL).is_file() and (folder / RECORDS).is_file()
        journal = Journal(folder / JOURNAL)
        try:
            if only_records:
                take_in(journal, folder / RECORDS)
            journal.begin(to_seconds(self._started), self._info["command"])
            journal.plan(cases)
        except BaseException:
            journal.close()
            raise
        return journal

    def end(self, stopped: str | None, facts: Mapping[str, Any]) -> None:
        """Ends the session in the journal, writes the records, and adds what is now known to the run's info.

        Args:
            stopped: why the session ended early, if it did.
            facts: by name.
        """
        self.journal.end(to_seconds(datetime.now(UTC)), stopped)
        export_records(self.journal, self.folder.path)
        self._write_info(facts)

    def _write_info(self, facts: Mapping[str, Any] | None = None) -> None:
        self.folder.write_info({"started": to_seconds(self._started), **self._info, **(facts or {})})

    def close(self) -> None:
        """Closes the journal and releases the lease."""
        self.journal.close()
        self._lease.release()


def to_seconds(moment: datetime) -> str:
    """A moment as ISO 8601 in whole seconds, as files have it."""
    return moment.isoformat(timespec="seconds")


NOTABLE = 0.03
"""The share of refused requests from which the report speaks of them."""


def remarks(journal: Journal, counted: Counted) -> list[str]:
    """What a reader of the report must know about the run's journal.

    Args:
        journal: after the last case.
        counted: what it counts.
    """
    lines = []
    if counted.left_out:
        lines.append(
            f"left out: {number_of(len(counted.left_out), 'case')} of earlier sessions, no longer asked for in this "
            f"way by this suite: {', '.join(counted.left_out[:3])}{' ...' if len(counted.left_out) > 3 else ''}"
        )
    if counted.damaged:
        lines.append(
            f"left out, as their records are damaged: {number_of(len(counted.damaged), 'case')}, "
            f"among them {counted.damaged[0]}"
        )
    requests, refused = journal.answers.refused()
    if refused > NOTABLE * requests:
        lines.append(f"{refused:,} of {requests:,} requests were refused by the server (429)")
    if journal.lost:
        lines.append(
            f"the journal was damaged and lost {number_of(journal.lost, 'row')}; what was in them was asked again"
        )
    if journal.answers.damaged:
        lines.append(f"asked again, as it was damaged: {number_of(journal.answers.damaged, 'stored answer')}")
    return lines
