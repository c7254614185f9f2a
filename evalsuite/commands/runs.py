"""`evalsuite runs`: list the runs, join shards (`merge`), remove old runs (`prune`), check a run's files (`verify`)."""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evalsuite.commands import make_declarations
from evalsuite.commands.export import unpack_bundle
from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import RunError, write_count
from evalsuite.core.option_values import declare_arguments, make_int_parser
from evalsuite.journal.journal import Journal
from evalsuite.output.page.view import is_in_progress, list_runs
from evalsuite.output.reports.markdown import render_terminal_table
from evalsuite.output.reports.section import Cell, Table, parse_columns
from evalsuite.output.reports.write import format_heading, make_report, summarise_run, write_run_report
from evalsuite.results.merge import merge_runs
from evalsuite.results.run_folders import (
    JOURNAL,
    RECORDS,
    REPORT,
    SUMMARY,
    RunFolder,
    check_run_name,
    find_run_folder,
    read_run_times,
)
from evalsuite.results.runs import load_run

RUN_COLUMNS = parse_columns(
    "run | started | model | passed: count | failed: count | error: count | cost in $: number 4 | verdict"
)


@declare_arguments("""
    --reports
""")
def run_runs(options: argparse.Namespace) -> int:
    """Print a table of the runs."""
    folders = sort_runs_newest_first(list_runs(options.reports))
    if not folders:
        raise RunError(f"no run in {options.reports}; pytest leaves them there")
    rows = [_make_run_row(folder) for folder in folders]
    sys.stdout.write(f"{render_terminal_table(Table('', RUN_COLUMNS, rows))}\n")
    return 0


def sort_runs_newest_first(folders: Sequence[RunFolder]) -> list[RunFolder]:
    """Sort runs by start time, newest first."""
    return sorted(folders, key=lambda folder: read_run_times(folder.path), reverse=True)


def _make_run_row(folder: RunFolder) -> list[Cell]:
    try:
        info = folder.info()
    except RunError:
        info = {}  # Show a damaged run without its data, so that the other runs are still listed.
    summary = folder.summary()
    cases, usage = summary.get("cases") or {}, summary.get("usage") or {}
    return [
        folder.name,
        str(info.get("started", ""))[:19].replace("T", " "),
        info.get("model") or "none",
        *(cases.get(outcome, 0) if summary else None for outcome in ("passed", "failed", "error")),
        None if usage.get("unpriced") else usage.get("cost"),
        str(summary.get("verdict", "not finished")),
    ]


@declare_arguments(
    """
    --reports --code
    names=RUN+  all shards: names or folders
    --to NAME   name of the joined run
    """,
    required=("to",),
)
def run_merge(options: argparse.Namespace) -> int:
    """Join shards and write the joined run's report, without deciding its gates: `evalsuite gate` decides them."""
    check_run_name(options.reports, options.to, advice="choose another --to")
    folders = [find_run_folder(options.reports, name) for name in options.names]
    joined = merge_runs(folders, options.reports / options.to)
    write_run_report(joined, make_declarations(options.code))
    counted = write_count(len(folders), "shard")
    sys.stdout.write(f"joined {counted}; decide with: evalsuite gate {options.to}\nreport: {joined.path / REPORT}\n")
    return 0


@declare_arguments(
    """
    --reports
    --keep N     newest runs to keep (default: 10)
    --also RUN*  also keep this run; may be repeated
    --yes        remove the runs; without --yes they are only listed

    A run is removed with the answers that were paid for. A run in progress is never removed, nor is the baseline of a
    run that stays.
    """,
    keep=(make_int_parser(0), 10),
)
def run_prune(options: argparse.Namespace) -> int:
    """List or remove old runs, except runs named by the user or in progress, links, and baselines of runs that stay."""
    runs = sort_runs_newest_first(list_runs(options.reports))
    # Keep symbolic links, too, because their runs may be in another folder.
    staying = [
        each
        for number, each in enumerate(runs)
        if number < options.keep or each.name in options.also or each.path.is_symlink() or is_in_progress(each)
    ]
    kept = {each.name for each in staying}
    for folder in staying:
        # Keep the baselines of these runs. A baseline is given as a run's name, its folder, or a file in the folder.
        for name in folder.info().get("settings", {}).get("baseline") or ():
            kept.update(Path(name).parts[-2:])
    old = [folder for folder in runs if folder.name not in kept]
    for folder in old:
        if options.yes:
            shutil.rmtree(folder.path)
        sys.stdout.write(f"{'removed' if options.yes else 'would remove'} {folder.path}\n")
    if old and not options.yes:
        sys.stdout.write("nothing is removed yet: add --yes\n")
    elif not old:
        sys.stdout.write("nothing to remove\n")
    return 0


@declare_arguments("""
    --reports --code
    name=RUN   a run's name or folder, `last`, or a bundle's file
""")
def run_verify(options: argparse.Namespace) -> int:
    """Print each check and its result; return 1 if a file of the run contradicts the journal, otherwise 0."""
    bundle, declarations = Path(options.name), make_declarations(options.code)
    if bundle.suffix != ".zip" or not bundle.is_file():
        return _print_run_checks(find_run_folder(options.reports, options.name), declarations)
    with TemporaryDirectory() as unpacked:
        folder = Path(unpacked) / bundle.stem
        unpack_bundle(bundle, folder)
        return _print_run_checks(RunFolder(folder), declarations)


def _print_run_checks(folder: RunFolder, declarations: Declarations) -> int:
    """Print each check of a run and its result; return 1 if a check found a fault, otherwise 0."""
    with closing(Journal(folder.path / JOURNAL, read_only=True)) as journal:
        checks = [*check_journal(journal), *check_records(journal, folder), *check_report(folder, declarations)]
    for subject, fault in checks:
        sys.stdout.write(f"{'WRONG' if fault else 'ok':<6} {subject}{f': {fault}' if fault else ''}\n")
    return int(any(fault for _, fault in checks))


def check_journal(journal: Journal) -> Iterator[tuple[str, str]]:
    """Check the journal's file and each stored answer; yield each check with the fault that it found, or ""."""
    state = str(journal.database.read_row("PRAGMA quick_check(1)")[0])
    yield "the journal's file", "" if state == "ok" else state
    damaged = journal.answers.list_damaged_keys()
    fault = f"{len(damaged)} are damaged, among them {damaged[0]}" if damaged else ""
    yield write_count(len(journal.answers), "answer"), fault
    query = "SELECT (SELECT count(*) FROM sessions), count(*) FROM attempts WHERE state = 'sent'"
    sessions, open_calls = journal.database.read_row(query)
    yield f"sessions: {sessions}; calls that were sent and never ended: {open_calls}", ""


def check_records(journal: Journal, folder: RunFolder) -> Iterator[tuple[str, str]]:
    """Compare `records.jsonl` with the records in the journal; yield the check with the fault that it found, or ""."""
    counted = journal.summarise_records()
    fault = f"{len(counted.damaged)} are damaged in the journal" if counted.damaged else ""
    kept = (f"{line}\n".encode("utf-8", "replace") for line in journal.iterate_record_lines())
    with (folder.path / RECORDS).open("rb") as written:
        if any(line != record for line, record in zip_longest(written, kept)):
            fault = fault or f"{RECORDS} holds other records than the journal"
    records, left_out = write_count(counted.cases, "record"), write_count(len(counted.left_out), "case")
    yield f"{records}, {left_out} of earlier sessions left out", fault


def check_report(folder: RunFolder, declarations: Declarations) -> Iterator[tuple[str, str]]:
    """Compare `summary.json` and the headline with a newly made report; yield each check with its fault, or ""."""
    report = make_report(load_run(folder, declarations))
    for name, bench in report.run.benchmarks.items():
        if bench.stored:
            yield f"what {name} computes with its own code", f"not checked: {bench.gone}"
    fault = _describe_difference(folder.path / SUMMARY, json.loads(json.dumps(summarise_run(report))))
    yield f"every number of {SUMMARY}", fault
    text = (folder.path / REPORT).read_text("utf-8", "replace")
    begins = text.startswith(format_heading(report.verdict, report.run.info.get("model")))
    yield "the verdict on report.md", "" if begins else "it begins with another verdict"


def _describe_difference(file: Path, computed: dict[str, Any]) -> str:
    """Name the entries of a JSON file that differ from newly computed entries; the text is empty if all are equal."""
    try:
        kept = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return f"it cannot be read ({error})"
    if not isinstance(kept, dict):
        return f"it holds {type(kept).__name__}, not an object"
    # A run's name is that of its folder or bundle, which may be renamed.
    names = {*kept, *computed} - {"run"}
    differing = sorted(name for name in names if kept.get(name) != computed.get(name))
    return f"{', '.join(differing)} differ" if differing else ""
