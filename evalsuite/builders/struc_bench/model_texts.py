"""Texts that a model writes for items: all requested at once, and kept as they arrive."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.items import items_json, read_items
from evalsuite.builders.building import BuildProgress, building, ending_cleanly, write
from evalsuite.builders.model_session import add_model_options, model_settings, session
from evalsuite.builders.struc_bench.files import format_by_name, must_tell
from evalsuite.core.errors import EvalsuiteError, JudgeError
from evalsuite.core.phrases import number_of

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from evalsuite.benchmarks.struc_bench.items import TableItem
    from evalsuite.core.protocols import Model
    from evalsuite.metrics.tables import Format

    Ask = Callable[[TableItem, Format, Model], Awaitable[str]]
    Put = Callable[[TableItem, str], TableItem]

INTERRUPTED = 130
MOST_NAMED = 10
"""Items that are named for one and the same reason."""


def add_text_arguments(parser: ArgumentParser) -> None:
    """Add the items, the output and the model."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="items, such as html_test.json, whose name stands for the format",
    )
    parser.add_argument(
        "--to",
        type=Path,
        required=True,
        metavar="FILE",
        help="the JSON file to write, named after the same format",
    )
    add_model_options(parser)


def build_texts(
    args: Namespace,
    ask: Ask,
    put: Put,
    *,
    noun: str,
    beside: Callable[[Sequence[TableItem]], Mapping[Path, str]] = lambda _: {},
) -> int:
    """Has a model write a text for each item, writes the items with it, and reports successes and failures.

    Args:
        args: the arguments `file`, `to` and the model's options.
        ask: asks the model for an item's text.
        put: the item with its text.
        noun: what the texts are called, in the plural.
        beside: further files to write, made of the items that have their text.

    Returns:
        0; 1 if an item got no text; 130 if it was interrupted.

    Raises:
        DatasetError: the file of items is not as it should be.
        ModelError: the model cannot be reached at all.
        SettingsError: an option makes no sense, or the output cannot be written.
    """
    written, settings = format_by_name(args.file), model_settings(vars(args))
    must_tell(args.to, written)
    work = ModelTexts(read_items(args.file), written, ask)
    try:
        with ending_cleanly(), building(args.to) as folder:
            with (
                session(settings, answers_path(args.to)) as opened,
                BuildProgress(len(work.items), "item") as work.progress,
            ):
                opened.do(work.make)
            if done := [put(work.items[place], text) for place, text in sorted(work.texts.items())]:
                write(items_json(done), args.to, folder)
                for path, text in beside(done).items():
                    write(text, path, folder)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"interrupted; what was answered is in {answers_path(args.to)}: the same command goes on from there\n"
        )
        return INTERRUPTED
    return _tell(work, opened.cut_off, args, noun)


def answers_path(target: Path) -> Path:
    """Name the file of the answers."""
    return target.with_suffix(".answers.sqlite")


class ModelTexts:
    """The texts of a set of items.

    Args:
        items: all of them.
        written: how their tables are written.
        ask: see `build_texts`.

    Attributes:
        texts: the texts, by the item's place.
        failures: why an item has none, likewise.
    """

    def __init__(self, items: Sequence[TableItem], written: Format, ask: Ask) -> None:
        self.items, self.written = items, written
        self.progress: BuildProgress | None = None
        self.texts: dict[int, str] = {}
        self.failures: dict[int, str] = {}
        self._ask = ask

    async def make(self, model: Model) -> None:
        """Ask for all texts at once; the gateway limits the calls."""
        import asyncio

        await asyncio.gather(*(self._make_one(place, model) for place in range(len(self.items))))

    async def _make_one(self, place: int, model: Model) -> None:
        try:
            self.texts[place] = await self._ask(self.items[place], self.written, model)
        except JudgeError as error:
            self.failures[place] = str(error).removeprefix("judge ")
        except EvalsuiteError as error:
            self.failures[place] = str(error)
        if self.progress:
            self.progress.advance(1)


def _tell(work: ModelTexts, cut_off: int, args: Namespace, noun: str) -> int:
    for reason, places in _by_reason(work.failures).items():
        named = ", ".join(map(str, places[:MOST_NAMED]))
        more = f" and {len(places) - MOST_NAMED:,} more" if len(places) > MOST_NAMED else ""
        sys.stderr.write(f"{args.file}, item {named}{more}: {reason}\n")
    if cut_off:
        sys.stderr.write(
            f"{cut_off:,} answers were cut off for their length: give more with --model-param max_tokens=N\n"
        )
    if work.texts:
        sys.stdout.write(
            f"{len(work.texts):,} of {number_of(len(work.items), 'item')} with {noun} in {args.to}\n"
        )
    else:
        sys.stdout.write(f"no item has {noun}; {args.to} is not written\n")
    return int(bool(work.failures))


def _by_reason(failures: Mapping[int, str]) -> Mapping[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place in sorted(failures):
        places[failures[place]].append(place)
    return places
