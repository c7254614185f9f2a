"""The part of `evalsuite build treb` that asks models: options, who does what, and the pairs of all tables."""

from __future__ import annotations

import asyncio
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.treb.tables import from_csv
from evalsuite.builders.build_progress import BuildProgress
from evalsuite.builders.model_session import add_model_options, model_settings, session
from evalsuite.builders.treb import column_naming
from evalsuite.builders.treb.built import record
from evalsuite.builders.treb.model_briefs import BRIEFS
from evalsuite.builders.treb.model_questions import Dropped, QuestionPanel
from evalsuite.builders.treb.sheet import Sheet
from evalsuite.core.errors import SettingsError
from evalsuite.sandbox import Sandbox

if TYPE_CHECKING:
    import argparse

    from evalsuite.builders.treb.built import BuiltPairs
    from evalsuite.core.protocols import Model

STORE = "answers.sqlite"
"""In the output folder: a build that is repeated asks only what is new."""
VOTES = 3
SUBTASKS = (*BRIEFS, column_naming.SUBTASK)
"""Those whose questions models make."""


def add_panel_options(parser: argparse.ArgumentParser) -> None:
    """Adds who makes the questions that no template can make."""
    parser.add_argument(
        "--model",
        dest="models",
        action="append",
        default=[],
        metavar="MODEL",
        help="a model that makes questions for the other subtasks, named as for a run; the first one writes them, all "
        "of them vote by programs on the answers; may be repeated",
    )
    parser.add_argument(
        "--judge-model", metavar="MODEL", help="the model that drops questions that are no good"
    )
    parser.add_argument("--judge-base-url", metavar="URL", help="where the judge is served")
    parser.add_argument(
        "--votes",
        type=int,
        default=VOTES,
        metavar="N",
        help=f"programs that vote on each answer, by the models in turn; more than half must agree (default {VOTES})",
    )
    parser.add_argument(
        "--subtask",
        dest="subtasks",
        action="append",
        choices=SUBTASKS,
        metavar="NAME",
        help=f"of those that models make ({', '.join(SUBTASKS)}); may be repeated (default: all)",
    )
    add_model_options(parser, without=("model",))


def add_model_pairs(args: argparse.Namespace, built: BuiltPairs) -> None:
    """Adds a question for each subtask and table; what is dropped, and why, is noted.

    Raises:
        SettingsError: less than one vote is asked for, or an option is malformed.
        ModelError: a model cannot be spoken to at all.
        SandboxUnavailable: no sandbox is to be had on this machine.
    """
    if args.votes < 1:
        raise SettingsError(f"--votes is {args.votes}; it must be at least 1")
    settings = model_settings({**vars(args), "model": args.models[0]})
    args.out.mkdir(parents=True, exist_ok=True)
    subtasks = args.subtasks or list(SUBTASKS)
    with (
        session(settings, args.out / STORE) as opened,
        BuildProgress(len(built.tables) * len(subtasks), "question") as progress,
    ):
        opened.do(lambda model: _make(_panel(args, model), built, subtasks, progress))


def _panel(args: argparse.Namespace, model: Any) -> QuestionPanel:
    # Repetitions of one model are other epochs, so that each is asked anew.
    voters: list[Model] = [
        model.peer(name, None if name == args.models[0] else args.model_base_url, epoch=2 + number)
        for number, name in enumerate(islice(cycle(args.models), args.votes))
    ]
    judge = (
        model.peer(args.judge_model, args.judge_base_url or args.model_base_url) if args.judge_model else None
    )
    return QuestionPanel(model, voters, judge, Sandbox(preload=("numpy", "pandas", "scipy.stats")))


async def _make(
    panel: QuestionPanel, built: BuiltPairs, subtasks: list[str], progress: BuildProgress
) -> None:
    jobs = [
        _add(panel, built, Sheet(name.removesuffix(".csv"), from_csv(text, 1)), subtask, progress)
        for name, text in built.tables.items()
        for subtask in subtasks
    ]
    try:
        # The gateway keeps calls within --max-connections, and the order of the results is that of the jobs.
        for made in await asyncio.gather(*jobs):
            built.records.extend(made)
    finally:
        await panel.sandbox.aclose()


async def _add(
    panel: QuestionPanel, built: BuiltPairs, sheet: Sheet, subtask: str, progress: BuildProgress
) -> list[dict[str, Any]]:
    name = f"{subtask}|models|{sheet.name}"
    try:
        if subtask == column_naming.SUBTASK:
            pair, sheet = await column_naming.name_a_column(panel, sheet)
            built.renamed[f"{sheet.name}.csv"] = sheet.table.csv()
        else:
            pair = await panel.question(sheet, BRIEFS[subtask])
    except Dropped as reason:
        built.refuted[name] = str(reason)
        return []
    finally:
        progress.advance(1)
    agreeing, votes = pair.votes
    more = {"chain": list(pair.chain), "long_question": pair.long_question, "votes": f"{agreeing} of {votes}"}
    return [record(name, pair, sheet) | more]
