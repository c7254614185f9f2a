"""`evalsuite runs verify RUN`, or a bundle: proves a report from its journal: checksums, records, every number."""

from __future__ import annotations

import json
import sys
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from evalsuite.commands.arguments import add_reports_folder, own_declarations
from evalsuite.core.phrases import number_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from evalsuite.journal.journal import Journal
    from evalsuite.results.run_folders import RunFolder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run."""
    add_reports_folder(parser)
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, `last`, or a bundle's file")


def run(options: argparse.Namespace) -> int:
    """Print what was checked; 1 where something is not what the journal says, else 0."""
    from evalsuite.commands.bundle import unpack
    from evalsuite.results.run_folders import RunFolder, find_folder

    bundle = Path(options.name)
    if bundle.suffix != ".zip" or not bundle.is_file():
        return _verify(find_folder(options.reports, options.name))
    with TemporaryDirectory() as unpacked:
        folder = Path(unpacked) / bundle.stem
        unpack(bundle, folder)
        return _verify(RunFolder(folder))


def _verify(folder: RunFolder) -> int:
    from evalsuite.journal.journal import Journal
    from evalsuite.results.record_file import JOURNAL

    journal = Journal(folder.path / JOURNAL, read_only=True)
    try:
        checks = [*check_journal(journal), *check_records(journal, folder), *check_report(folder)]
    finally:
        journal.close()
    for subject, fault in checks:
        sys.stdout.write(f"{'WRONG' if fault else 'ok':<6} {subject}{f': {fault}' if fault else ''}\n")
    return int(any(fault for _, fault in checks))


def check_journal(journal: Journal) -> Iterator[tuple[str, str]]:
    """Check the file as a whole and each answer in it, and say what is wrong, if anything is."""
    state = str(journal.database.one("PRAGMA quick_check(1)")[0])
    yield "the journal's file", "" if state == "ok" else state
    damaged = journal.answers.check()
    yield (
        number_of(len(journal.answers), "answer"),
        f"{len(damaged)} are damaged, among them {damaged[0]}" if damaged else "",
    )
    open_calls = journal.database.one("SELECT count(*) FROM attempts WHERE state = 'sent'")[0]
    yield f"sessions: {len(journal.sessions())}; calls that were sent and never ended: {open_calls}", ""


def check_records(journal: Journal, folder: RunFolder) -> Iterator[tuple[str, str]]:
    """`records.jsonl` against the records in the journal."""
    from evalsuite.results.record_file import RECORDS

    counted = journal.find_counted()
    fault = f"{len(counted.damaged)} are damaged in the journal" if counted.damaged else ""
    kept = (f"{line}\n".encode("utf-8", "replace") for line in journal.lines())
    with (folder.path / RECORDS).open("rb") as written:
        if any(line != record for line, record in zip_longest(written, kept)):
            fault = fault or f"{RECORDS} holds other records than the journal"
    records, left_out = number_of(counted.cases, "record"), number_of(len(counted.left_out), "case")
    yield f"{records}, {left_out} of earlier sessions left out", fault


def check_report(folder: RunFolder) -> Iterator[tuple[str, str]]:
    """`summary.json` and the report's text against what the records come to now."""
    from evalsuite.output.reports.write import heading, make_report, summarise
    from evalsuite.results.run_folders import REPORT, SUMMARY
    from evalsuite.results.runs import load_run

    report = make_report(load_run(folder, own_declarations()))
    summary = summarise(report.run, report.verdict, report.measured, report.sections)
    fault = _difference(folder.path / SUMMARY, json.loads(json.dumps(summary)))
    yield f"every number of {SUMMARY}", fault
    text = (folder.path / REPORT).read_text("utf-8", "replace")
    begins = text.startswith(heading(report.verdict, report.run.info.get("model")))
    yield "the verdict on report.md", "" if begins else "it begins with another verdict"


def _difference(file: Path, computed: dict[str, Any]) -> str:
    """Find what in a file of JSON differs from what was computed; empty where all of it is."""
    try:
        kept = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return f"it cannot be read ({error})"
    if not isinstance(kept, dict):
        return f"it holds {type(kept).__name__}, no object"
    differing = sorted(name for name in {*kept, *computed} if kept.get(name) != computed.get(name))
    return f"{', '.join(differing)} differ" if differing else ""
