"""The journal of a run: sessions, planned cases and records. For requests and answers, see the module `answers`."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evalsuite.core.errors import RunError
from evalsuite.core.json_codec import dumps
from evalsuite.journal.answers import Answers
from evalsuite.journal.database import Database, join_large_strings, split_large_strings
from evalsuite.journal.planned import PlannedCase, compute_checksum, digest_fingerprints

COUNTED = 'FROM cases c JOIN records r ON r."case" = c."case" AND r.same = c.same WHERE c.session = ?'
"""Joins each case of a session's plan to its records that match the plan."""

CASES_COUNTED = f'SELECT DISTINCT c."case" {COUNTED}'
NEWEST_COUNTED = f'SELECT c."case", r.record, r.checksum, max(r.number) {COUNTED} GROUP BY c."case" ORDER BY c."case"'
ALL = 'SELECT "case", record, checksum, max(number) FROM records GROUP BY "case" ORDER BY "case"'
"""Selects all records, for a run that was killed before it had a plan."""


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """The number of records that count in the run's scores, and the cases whose records are missing or do not count."""

    cases: int  # The number of cases that have a complete record from the current version of the suite.
    left_out: list[str]  # Cases whose record is out of date, because the suite has changed since.
    damaged: list[str]  # Cases whose record is damaged.
    missing: list[str]  # Selected cases without a record.


class Journal:
    """An open journal; `database.SCHEMA` describes its tables.

    Args:
        read_only: whether the file is never written; it must then exist.

    Attributes:
        session: the number of the writing session, from 1; if read-only, the number of the latest session.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.database = Database(path, read_only=read_only)
        self.session = int(self.database.read_row("SELECT coalesce(max(id), 0) FROM sessions")[0])
        self.database.session = self.session
        self.answers = Answers(self.database)

    def begin_session(self, started: str, command: str) -> None:
        """Store that a new session writes to the journal from now on."""
        self.session += 1
        self.database.session = self.session
        statement = "INSERT INTO sessions VALUES (?, ?, NULL, ?, NULL, NULL)"
        self.database.write((statement, (self.session, started, command)))

    def end_session(self, ended: str, stopped: str | None) -> None:
        """Store when the session ended and, if it ended early, why."""
        statement = "UPDATE sessions SET ended = ?, stopped = ? WHERE id = ?"
        self.database.write((statement, (ended, stopped, self.session)))

    def mark_records_exported(self) -> None:
        """Record that `records.jsonl` contains all records."""
        statement = "UPDATE sessions SET exported = (SELECT coalesce(max(number), 0) FROM records) WHERE id = ?"
        self.database.write((statement, (self.session,)))

    @property
    def has_exported_records(self) -> bool:
        """Whether `records.jsonl` contains all records."""
        query = "SELECT exported = (SELECT coalesce(max(number), 0) FROM records) FROM sessions WHERE id = ?"
        row = self.database.read_row(query, self.session)
        return self.session == 0 or bool(row and row[0])

    def store_plan(self, cases: Iterable[PlannedCase], part: int = 1, earlier_count: int = 0) -> None:
        """Store the session's cases; a later part of a run also takes over the plans of the earlier parts.

        Args:
            earlier_count: the number of cases in the plans of the earlier parts.

        Raises:
            RunError: the journal does not contain exactly `earlier_count` cases of the earlier parts.
        """
        start = (part - 1) << 32  # Each part of a run numbers its cases in a range of its own.
        rows = (
            (
                self.session,
                position,
                planned.case,
                planned.benchmark,
                planned.sample,
                planned.epoch,
                dumps(planned.tags),
                planned.source,
                planned.declared,
                planned.selected,
                dumps(planned.fingerprints),
                digest_fingerprints(planned.fingerprints),
            )
            for position, planned in enumerate(cases, start)
        )
        with self.database.transaction() as db:
            if start:
                sql = "UPDATE cases SET session = ? WHERE session = (SELECT max(session) FROM cases) AND position < ?"
                db.execute(sql, (self.session, start))
            db.executemany("INSERT OR REPLACE INTO cases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            count = "SELECT count(*) FROM cases WHERE session = ? AND position < ?"
            if db.execute(count, (self.session, start)).fetchone()[0] != earlier_count:
                raise RunError(
                    "the plan of the run's earlier parts is lost, or the suite lists its cases in another order in "
                    "each process; the next --resume begins with the first part again"
                )

    def count_planned_cases(self) -> int:
        return int(self.database.read_row("SELECT count(*) FROM cases WHERE session = ?", self.session)[0])

    def find_planned_case(self, case: str) -> PlannedCase | None:
        """Read a case of this session's plan; None if the plan does not contain it."""
        return next(self.list_planned_cases('AND "case" = ?', case), None)

    def list_planned_cases(self, where: str = "AND selected", *values: str) -> Iterator[PlannedCase]:
        """Yield those planned cases of this session that fulfil an SQL condition."""
        columns = '"case", benchmark, sample, epoch, tags, source, declared, selected, fingerprints'
        query = f"SELECT {columns} FROM cases WHERE session = ? {where}"  # noqa: S608 - constants
        rows = self.database.iterate_rows(query, self.session, *values)
        for case, benchmark, sample, epoch, tags, *places, selected, fingerprints in rows:
            read = json.loads(tags), *places, bool(selected), json.loads(fingerprints)
            yield PlannedCase(case, benchmark, sample, epoch, *read)

    def store_record(self, case: str, fingerprints_hash: str, line: str) -> None:
        """Store the record of a case, in one transaction with all queued writes."""
        errors: list[RunError | None] = []
        self.database.queue.queue_write(self._make_record_write(case, fingerprints_hash, line), errors.append)
        self.database.queue.flush()
        if errors[0] is not None:
            raise errors[0]

    def store_records(self, records: Iterable[tuple[str, str, str]]) -> None:
        """Store many records in one transaction; each is a tuple of the arguments of `store_record`."""
        with self.database.transaction() as db:
            for record in records:
                self._make_record_write(*record)(db)

    def _make_record_write(self, case: str, fingerprints_hash: str, line: str) -> Callable[[sqlite3.Connection], None]:
        short, parts = split_large_strings(line)
        row = (self.session, case, fingerprints_hash, short, compute_checksum(case, short), time.time())

        def write_record(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR IGNORE INTO parts VALUES (?, ?)", parts)
            db.execute("INSERT INTO records VALUES (NULL, ?, ?, ?, ?, ?, ?)", row)

        return write_record

    def summarise_records(self) -> RecordSummary:
        """Count the records that match the latest session's plan; list cases left out, damaged or missing."""
        cases, damaged = 0, list[str]()
        for case, line in self._iterate_counted_records():
            if line is None:
                damaged.append(case)
            else:
                cases += 1
        # Let SQLite compute the differences, because a Python set of all cases takes much memory in a large run.
        recorded = f'SELECT "case" FROM records EXCEPT {CASES_COUNTED}'  # noqa: S608 - constants
        selected = 'SELECT "case" FROM cases WHERE session = ? AND selected'
        read, session = self.database.iterate_rows, self.session
        left_out = read(recorded, session) if self.count_planned_cases() else ()
        missing = {case for (case,) in read(f"{selected} EXCEPT {CASES_COUNTED}", session, session)}
        missing |= {case for case in damaged if self.database.read_row(f'{selected} AND "case" = ?', session, case)}
        return RecordSummary(cases, sorted(case for (case,) in left_out), sorted(damaged), sorted(missing))

    def count_records(self) -> int:
        """Return the number of records that count, including damaged ones; much faster than `summarise_records`."""
        if self.count_planned_cases():
            count = f"SELECT count(*) FROM ({CASES_COUNTED})"  # noqa: S608 - constants
            return int(self.database.read_row(count, self.session)[0])
        return int(self.database.read_row('SELECT count(DISTINCT "case") FROM records')[0])

    def iterate_record_lines(self) -> Iterator[str]:
        """Yield the records that count, as JSON, sorted by case id."""
        return (line for _, line in self._iterate_counted_records() if line is not None)

    def _iterate_counted_records(self) -> Iterator[tuple[str, str | None]]:
        """Yield each case whose record counts, with the record as JSON, or with None if the record is damaged."""
        iterate = self.database.iterate_rows
        rows = iterate(NEWEST_COUNTED, self.session) if self.count_planned_cases() else iterate(ALL)
        for case, line, kept, _ in rows:
            record = None
            if compute_checksum(case, line) == kept:
                with suppress(RunError):  # A large part of the record is lost.
                    record = join_large_strings(line, self.database.find_large_string)
            yield case, record

    def close(self) -> None:
        self.answers.close()
