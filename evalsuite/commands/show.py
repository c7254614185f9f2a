"""`evalsuite report case CASE`: one case of a run, whole."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder
from evalsuite.core.errors import RunError, for_terminal
from evalsuite.core.json_codec import encode_record
from evalsuite.core.phrases import number_of
from evalsuite.output.reports.case_block import case_block
from evalsuite.results.run_folders import find_folder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from evalsuite.core.types import Record

MOST = 20
"""Cases whose names are listed where a part of a name fits several."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the case and its run."""
    add_reports_folder(parser)
    parser.add_argument(
        "case", metavar="CASE", help="its id as pytest shows it, or any part that only it has"
    )
    parser.add_argument("--run", dest="name", default="last", metavar="RUN", help="default: the newest")
    parser.add_argument("--full", action="store_true", help="the conversation too, and nothing shortened")
    parser.add_argument("--json", action="store_true", help="the record as JSON instead")


def run(options: argparse.Namespace) -> int:
    """Print the case."""
    loaded = load_run(find_folder(options.reports, options.name))
    record = loaded.read(find_case(loaded.offsets, options.case))
    if options.json:
        sys.stdout.write(json.dumps(encode_record(record), indent=1, ensure_ascii=True, default=str) + "\n")
        return 0
    base_url = loaded.info.get("settings", {}).get("model_base_url")
    for line in _lines(record, base_url, full=options.full):
        sys.stdout.write(f"{line}\n")
    return 0


def find_case(cases: Iterable[str], part: str) -> str:
    """Find the one case with this id, or with this part in its id.

    Raises:
        RunError: there is none, or there are several; the message names them.
    """
    names = list(cases)
    if part in names:
        return part
    fitting = [name for name in names if part in name]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        example = f", for example {names[0]}" if names else ""
        raise RunError(f"no case of this run has {part!r} in its id; it has {len(names)}{example}")
    more = f"\n  and {len(fitting) - MOST} more" if len(fitting) > MOST else ""
    raise RunError(
        f"{part!r} is in the ids of {len(fitting)} cases:\n  " + "\n  ".join(fitting[:MOST]) + more
    )


def _lines(record: Record, base_url: str | None, *, full: bool) -> Iterator[str]:
    yield for_terminal(f"{record.case}: {record.outcome}")
    yield case_block(record, most=None if full else 1000)
    usage = record.usage
    yield (
        f"{'took':10}{record.seconds:.1f} s, {number_of(usage.calls, 'call')}, {usage.prompt_tokens:,} tokens read, "
        f"{usage.completion_tokens:,} written, ${usage.cost:.4f}"
    )
    if full and record.transcript is not None:
        for message in record.transcript.messages:
            calls = "".join(f"\n  calls {call.name}({call.arguments})" for call in message.tool_calls)
            yield for_terminal(f"\n[{message.role}]\n{message.content}{calls}")
        for event in record.transcript.events:
            yield for_terminal(f"\n[{event.get('kind', 'event')}]\n{json.dumps(event, ensure_ascii=False)}")
    options = [
        record.case,
        f"--model={record.model}",
        *([f"--model-base-url={base_url}"] if base_url else []),
    ]
    yield f"{'again':10}pytest {shlex.join(map(for_terminal, options))}"
