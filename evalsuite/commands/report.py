"""`evalsuite report`: print a run's report or one of its cases (`case`), or open its page in a browser (`page`)."""

import argparse
import json
import shlex
import sys
import time
import webbrowser
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from evalsuite.commands import make_declarations, print_at_once, print_lines
from evalsuite.core.declarations import is_run_folder
from evalsuite.core.errors import RunError, SettingsError, describe_estimated_calls, escape_for_terminal, write_count
from evalsuite.core.json_codec import encode_record
from evalsuite.core.option_values import declare_arguments
from evalsuite.core.types import Record
from evalsuite.output.page.view import is_in_progress, list_runs, update_page_until_end, write_index, write_live_page
from evalsuite.output.page.write import PAGE
from evalsuite.output.reports.case_block import format_case_block
from evalsuite.output.reports.markdown import convert_for_terminal
from evalsuite.output.reports.write import RunReport, make_report, write_report, write_run_report
from evalsuite.results.run_folders import COMMENT, REPORT, SUMMARY, find_run_folder
from evalsuite.results.runs import load_run


@declare_arguments("""
    --reports RUN --code --to
""")
def run_report(options: argparse.Namespace) -> int:
    """Print the report as Markdown; leave out Markdown's escapes if the output is a terminal."""
    text = remake_report(options, {}).render_text()
    sys.stdout.write(f"{convert_for_terminal(text)}\n" if sys.stdout.isatty() else text)
    if options.to is not None:
        sys.stdout.write(f"report: {options.to / REPORT}\n")
    return 0


def remake_report(options: argparse.Namespace, new_settings: Mapping[str, Any]) -> RunReport:
    """Make the report of the run that a command names; if `--to` is given, write the report to that folder.

    Args:
        new_settings: values that replace some of the run's settings.
    """
    if options.to is not None:
        if is_run_folder(options.to):
            raise SettingsError(f"--to {options.to}: this folder is a run, which keeps its report; name another folder")
        # Remove an earlier report first, so that CI cannot post an outdated verdict if this command fails.
        for name in (COMMENT, SUMMARY, REPORT, PAGE):
            (options.to / name).unlink(missing_ok=True)
    run = load_run(find_run_folder(options.reports, options.name), make_declarations(options.code))
    settings = {**run.info.get("settings", {}), **new_settings}
    report = make_report(replace(run, info={**run.info, "settings": settings}))
    if options.to is not None:
        write_report(report, options.to)
    return report


MOST = 20  # Maximum cases to list if a part of an id matches several cases.


@declare_arguments(
    """
    --reports
    case=CASE       the case's id as pytest shows it, or a part of the id that no other case has
    name=--run RUN  the run's name or folder (default: the newest run)
    --full          also print the conversation, and shorten nothing
    --json          print the case's record as JSON instead
    """,
    name="last",
)
def run_show(options: argparse.Namespace) -> int:
    """Print one case of a run."""
    loaded = load_run(find_run_folder(options.reports, options.name))
    record = loaded.read(find_case(loaded.offsets, options.case))
    if options.json:
        sys.stdout.write(json.dumps(encode_record(record), indent=1, ensure_ascii=True, default=str) + "\n")
        return 0
    print_lines(_list_case_lines(record, loaded.info.get("settings", {}).get("model_base_url"), full=options.full))
    return 0


def find_case(cases: Iterable[str], part: str) -> str:
    """Return the id equal to `part`, or else the only id that contains `part`; otherwise, raise RunError."""
    names = list(cases)
    if part in names:
        return part
    matching = [name for name in names if part in name]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        example = f", for example {names[0]}" if names else ""
        raise RunError(f"no case of this run has {part!r} in its id; it has {len(names)}{example}")
    more = f"\n  and {len(matching) - MOST} more" if len(matching) > MOST else ""
    raise RunError(f"{part!r} is in the ids of {len(matching)} cases:\n  " + "\n  ".join(matching[:MOST]) + more)


def _list_case_lines(record: Record, base_url: str | None, *, full: bool) -> Iterator[str]:
    yield escape_for_terminal(f"{record.case}: {record.outcome}")
    yield format_case_block(record, max_length=None if full else 1000)
    usage = record.usage
    estimates = describe_estimated_calls(usage.estimated, usage.calls)
    yield (
        f"{'took':10}{record.seconds:.1f} s, {write_count(usage.calls, 'call')}, {usage.prompt_tokens:,} tokens read, "
        f"{usage.completion_tokens:,} written, ${usage.cost:.4f}{f' ({estimates})' if estimates else ''}"
    )
    if full and record.transcript is not None:
        for message in record.transcript.messages:
            calls = "".join(f"\n  calls {call.name}({call.arguments})" for call in message.tool_calls)
            yield escape_for_terminal(f"\n[{message.role}]\n{message.content}{calls}")
        for event in record.transcript.events:
            yield escape_for_terminal(f"\n[{event.get('kind', 'event')}]\n{json.dumps(event, ensure_ascii=False)}")
    options = [record.case, f"--model={record.model}", *([f"--model-base-url={base_url}"] if base_url else [])]
    yield f"{'again':10}pytest {shlex.join(map(escape_for_terminal, options))}"


BETWEEN_LOOKS = 2.0  # Seconds between two updates of the page of a run in progress.


@declare_arguments("""
    --reports
    names=RUN*  names or folders, or `last`: one shows its page, several an index of them (default: an index of all)
    --code
    --no-open   write the page and print its address; open no browser
""")
def run_view(options: argparse.Namespace) -> int:
    """Write the page or the index, open it, and update it while a run is in progress."""
    folders = [find_run_folder(options.reports, name) for name in options.names] or list_runs(options.reports)
    if not folders:
        raise RunError(f"no run in {options.reports}; `pytest cases/` leaves them there")
    going_on = [folder for folder in folders if is_in_progress(folder)]
    if len(options.names) == 1:
        page = folders[0].path / PAGE
        if going_on:
            write_live_page(folders[0], make_declarations(options.code))
        elif not page.is_file():
            write_run_report(folders[0], make_declarations(options.code))
    else:
        page = write_index(folders, options.reports)
    address = page.absolute().as_uri()
    print_at_once(address)
    if not options.no_open:
        webbrowser.open(address)
    if len(going_on) != 1:
        return 0
    try:
        for cases in update_page_until_end(going_on[0], make_declarations(options.code)):
            if cases is not None:
                counted = f"{going_on[0].name}: {write_count(cases, 'case')} so far"
                print_at_once(f"{counted}; its page follows until it ends (Ctrl-C stops)")
            time.sleep(BETWEEN_LOOKS)
    except KeyboardInterrupt:
        sys.stdout.write("\n")
    return 0
