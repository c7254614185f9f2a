"""`evalsuite build struc-bench format-cot`: has a model describe the format of each item's table."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.prompts import instruction
from evalsuite.builders.struc_bench.describing import describe
from evalsuite.builders.struc_bench.model_texts import add_text_arguments, build_texts

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable
    from pathlib import Path

    from evalsuite.benchmarks.struc_bench.items import TableItem
    from evalsuite.core.protocols import Model
    from evalsuite.metrics.tables import Format

WHAT = "FormatCoT: a model's description of each table's format, and the instruction set"
ABOUT = """\
Asks a model to describe how the table of each item is built, without showing the code, and writes the items with these
descriptions for --mode format_cot. Beside them goes .instructions.jsonl for fine-tuning: one line per item,
{instruction, input, output}, with the description in the instruction. Answers are kept in .answers.sqlite beside the
output as they arrive; after an interrupt, the same command asks only for what is missing. A description that is empty
or holds the table's code is requested again, three times in all; items without one are named and left out, and the
exit status is 1."""
PARAMETERS = {"max_tokens": 1024, "temperature": 0.0}


def add_arguments(parser: ArgumentParser) -> None:
    """Adds what `run` needs to know."""
    add_text_arguments(parser)
    parser.add_argument(
        "--plain",
        action="store_true",
        help="the paper's ablation: ask for a plain description, without what to describe and without an example",
    )


def run(args: Namespace) -> int:
    """Builds; see `build_texts`."""

    async def ask(item: TableItem, written: Format, model: Model) -> str:
        return await describe(item, written, model, plain=args.plain, **PARAMETERS)

    return build_texts(
        args,
        ask,
        lambda item, text: replace(item, format_description=text),
        noun="descriptions",
        beside=lambda items: {instructions_path(args.to): instruction_set(items)},
    )


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
