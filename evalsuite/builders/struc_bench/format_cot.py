"""`evalsuite build struc-bench format-cot`: has a model describe the format of each item's table."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.items import items_json, read_items
from evalsuite.benchmarks.struc_bench.prompts import instruction
from evalsuite.builders.build_progress import BuildProgress
from evalsuite.builders.output_folder import building, ending_cleanly, write
from evalsuite.builders.struc_bench.describing import describe
from evalsuite.builders.struc_bench.naming import must_tell, told
from evalsuite.builders.struc_bench.session import add_model_options, model_settings, session
from evalsuite.errors import EvalsuiteError, JudgeError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.benchmarks.struc_bench.items import TableItem
    from evalsuite.metrics.tables import Format
    from evalsuite.protocols import Model

WHAT = "FormatCoT: a model's description of each table's format, and the instruction set"
ABOUT = """\
Asks a model to describe, never showing the code, how the table of each item is built, and writes the items with
these descriptions for --mode format_cot, and beside them .instructions.jsonl: {instruction, input, output} with the
description in the instruction, a line an item, for fine-tuning. Answers are kept beside the output in .answers.sqlite
as they come: called again after an interrupt, it asks only for what is missing. A description that is empty or holds
the table's code is asked for again, three times in all; items without one are named and left out, and the exit status
is 1."""
PARAMETERS = {"max_tokens": 1024, "temperature": 0.0}
INTERRUPTED = 130
MOST_NAMED = 10
"""Items that are named for one and the same reason."""


def add_arguments(parser: ArgumentParser) -> None:
    """Adds what `run` needs to know."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="items, such as html_test.json; its name tells the format"
    )
    parser.add_argument(
        "--to",
        type=Path,
        required=True,
        metavar="FILE",
        help="the JSON file to write; its name tells the same format",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="the paper's ablation: ask for a plain description, without what to describe and without an example",
    )
    add_model_options(parser)


def run(args: Namespace) -> int:
    """Builds, and says what was built and what failed.

    Returns:
        0; 1 if an item got no description; 130 if it was interrupted.

    Raises:
        DatasetError: the file of items is not as it should be.
        ModelError: the model cannot be spoken to at all.
        SettingsError: an option makes no sense, or the output cannot be written.
    """
    written, settings = told(args.file), model_settings(vars(args))
    must_tell(args.to, written)
    items = read_items(args.file)
    work = Descriptions(items, written, plain=args.plain)
    try:
        with ending_cleanly(), building(args.to) as folder:
            with (
                session(settings, answers_path(args.to)) as opened,
                BuildProgress(len(items), "item") as work.progress,
            ):
                opened.do(work.make)
            described = work.described()
            if described:
                write(items_json(described), args.to, folder)
                write(instruction_set(described), instructions_path(args.to), folder)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"interrupted; what was answered is in {answers_path(args.to)}: the same command goes on from there\n"
        )
        return INTERRUPTED
    return _tell(work, opened.cut_off, args)


class Descriptions:
    """The descriptions of a set of items.

    Args:
        items: all of them.
        written: how their tables are written.
        plain: see `describe`.
    """

    def __init__(self, items: Sequence[TableItem], written: Format, *, plain: bool = False) -> None:
        self.items, self.written, self.plain = items, written, plain
        self.progress: BuildProgress | None = None
        self.texts: dict[int, str] = {}
        self.failures: dict[int, str] = {}

    async def make(self, model: Model) -> None:
        """Asks for all of them at once; how many calls there are at a time is the gateway's business."""
        import asyncio

        await asyncio.gather(*(self._make_one(place, model) for place in range(len(self.items))))

    async def _make_one(self, place: int, model: Model) -> None:
        try:
            self.texts[place] = await describe(
                self.items[place], self.written, model, plain=self.plain, **PARAMETERS
            )
        except JudgeError as error:
            self.failures[place] = f"no description without the code: {str(error).removeprefix('judge ')}"
        except EvalsuiteError as error:
            self.failures[place] = str(error)
        if self.progress:
            self.progress.advance(1)

    def described(self) -> list[TableItem]:
        """The items that have a description, in order."""
        return [
            replace(item, format_description=self.texts[place])
            for place, item in enumerate(self.items)
            if place in self.texts
        ]


def answers_path(target: Path) -> Path:
    """Where the answers are kept."""
    return target.with_suffix(".answers.sqlite")


def instructions_path(target: Path) -> Path:
    """Where the instruction set goes: no `.json`, which would be taken for a second file of items."""
    return target.with_suffix(".instructions.jsonl")


def instruction_set(items: Iterable[TableItem]) -> str:
    """One `{instruction, input, output}` a line, the description in the instruction."""
    lines = (
        {"instruction": instruction(item, "format_cot"), "input": item.input, "output": item.output}
        for item in items
    )
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    return text.encode("utf-8", "replace").decode()


def _tell(work: Descriptions, cut_off: int, args: Namespace) -> int:
    for reason, places in _by_reason(work.failures).items():
        named = ", ".join(map(str, places[:MOST_NAMED]))
        more = f" and {len(places) - MOST_NAMED:,} more" if len(places) > MOST_NAMED else ""
        sys.stderr.write(f"{args.file}, item {named}{more}: {reason}\n")
    if cut_off:
        sys.stderr.write(
            f"{cut_off:,} answers were cut off for their length: give more with --model-param max_tokens=N\n"
        )
    if work.texts:
        sys.stdout.write(f"{len(work.texts):,} of {len(work.items):,} items with descriptions in {args.to}\n")
    else:
        sys.stdout.write(f"no item got a description; {args.to} is not written\n")
    return int(bool(work.failures))


def _by_reason(failures: Mapping[int, str]) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for place in sorted(failures):
        found[failures[place]].append(place)
    return found
