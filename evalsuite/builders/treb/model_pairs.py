"""The part of `evalsuite build treb` that asks models: options, roles of the models, and the pairs of all tables.

For Column Naming, a column loses its name, which is the answer. No program can find it, so models suggest names first.
The question is kept if more than half of them suggest a name with the same meaning.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from random import Random
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.treb.tables import from_csv
from evalsuite.builders.building import BuildProgress
from evalsuite.builders.model_session import add_model_options, model_settings, session
from evalsuite.builders.treb.lookups import speaks_chinese
from evalsuite.builders.treb.model_questions import (
    BRIEFS,
    TOKENS,
    Dropped,
    ModelPair,
    QuestionPanel,
    describe_table,
    find_last_object,
    read_text,
)
from evalsuite.builders.treb.sheet import NUMBER, Sheet, is_meaningless
from evalsuite.core.errors import SettingsError
from evalsuite.sandbox import Sandbox

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from evalsuite.builders.treb.lookups import TemplatePair
    from evalsuite.core.protocols import Model


COLUMN_NAMING = "Table_Column_Naming"
# Maximum number of columns of a table that are tried until one is kept.
MOST_COLUMNS = 3
ASKED_NAME = 'Column {number} of the table has lost its name and is shown as "{stand_in}". What should it be called?'
ENGLISH = f"{ASKED_NAME} Answer with the name only."
CHINESE = "表格第{number}列的名称丢失了，显示为“{stand_in}”。这一列应当叫什么？只回答名称。"  # noqa: RUF001 - Chinese signs
NAMER = f"""\
{{table}}

{ASKED_NAME} Write in the language of the table. Reply with a JSON object and nothing else: {{{{"name": "..."}}}}"""
NAME_JUDGE = """\
You check questions for a benchmark about tables. In the table below, column {number} has lost its name; it was \
{name}. People who were not told that name have named the column {others}.

{table}

Say of each of their names, in order, whether it means the same as the lost one, so that a reader of the table would \
understand the same. And say whether to keep the question: only if the cells and the other names tell what the column \
is, and the lost name is one that a reader understands.

Reply with a JSON object and nothing else: {{"same": [true or false, ...], "keep": true or false, "reason": "in a few \
words"}}"""

# The file of answers in the output folder, so that a repeated build asks only new questions.
STORE = "answers.sqlite"
VOTES = 3
# The subtasks for which models make questions.
SUBTASKS = (*BRIEFS, COLUMN_NAMING)


def add_panel_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for questions that no template can make."""
    parser.add_argument(
        "--model",
        dest="models",
        action="append",
        default=[],
        metavar="MODEL",
        help="a model that makes questions for the other subtasks, named as for a run; the first one writes them, all "
        "of them vote by programs on the answers; may be repeated",
    )
    parser.add_argument("--judge-model", metavar="MODEL", help="the model that drops unsuitable questions")
    parser.add_argument("--judge-base-url", metavar="URL", help="address of the judge's server")
    parser.add_argument(
        "--votes",
        type=int,
        default=VOTES,
        metavar="N",
        help=f"number of programs that vote on each answer, by the models in turn; more than half must agree (default "
        f"{VOTES})",
    )
    parser.add_argument(
        "--subtask",
        dest="subtasks",
        action="append",
        choices=SUBTASKS,
        metavar="NAME",
        help=f"a subtask for which models make questions ({', '.join(SUBTASKS)}); may be repeated (default: all)",
    )
    add_model_options(parser, without=("model",))


def add_model_pairs(args: argparse.Namespace, built: BuiltPairs) -> None:
    """Add a question for each subtask and table; record what is dropped, and why."""
    if args.votes < 1:
        raise SettingsError(f"--votes is {args.votes}; it must be at least 1")
    settings = model_settings({**vars(args), "model": args.models[0]})
    args.out.mkdir(parents=True, exist_ok=True)
    subtasks = args.subtasks or list(SUBTASKS)
    with (
        session(settings, args.out / STORE) as opened,
        BuildProgress(len(built.tables) * len(subtasks), "question") as progress,
    ):
        opened.do(lambda model: _make_pairs(_make_panel(args, model), built, subtasks, progress))


def _make_panel(args: argparse.Namespace, model: Any) -> QuestionPanel:
    # Repetitions of one model are other epochs, so that each is a new request.
    voters: list[Model] = [
        model.peer(name, None if name == args.models[0] else args.model_base_url, epoch=2 + number)
        for number, name in enumerate(islice(cycle(args.models), args.votes))
    ]
    judge = model.peer(args.judge_model, args.judge_base_url or args.model_base_url) if args.judge_model else None
    return QuestionPanel(model, voters, judge, Sandbox(preload=("numpy", "pandas", "scipy.stats")))


async def _make_pairs(panel: QuestionPanel, built: BuiltPairs, subtasks: list[str], progress: BuildProgress) -> None:
    jobs = [
        _make_record(panel, built, Sheet(name.removesuffix(".csv"), from_csv(text, 1)), subtask, progress)
        for name, text in built.tables.items()
        for subtask in subtasks
    ]
    try:
        # The gateway limits connections; gather keeps the order of the jobs.
        for made in await asyncio.gather(*jobs):
            built.records.extend(made)
    finally:
        await panel.sandbox.aclose()


async def _make_record(
    panel: QuestionPanel, built: BuiltPairs, sheet: Sheet, subtask: str, progress: BuildProgress
) -> list[dict[str, Any]]:
    name = f"{subtask}|models|{sheet.name}"
    try:
        if subtask == COLUMN_NAMING:
            pair, sheet = await _make_naming_question(panel, sheet)
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
    return [make_record(name, pair, sheet) | more]


async def _make_naming_question(panel: QuestionPanel, sheet: Sheet) -> tuple[ModelPair, Sheet]:
    """Make a question for the name of a column, and the table without it; Dropped has the last column's reason."""
    columns = _list_nameable_columns(sheet)
    Random(sheet.name).shuffle(columns)  # noqa: S311 - no secret
    reason = Dropped("no column has a name that could be asked for")
    for column in columns[:MOST_COLUMNS]:
        try:
            return await _ask_for_name(panel, sheet, column)
        except Dropped as why:
            reason = Dropped(f'"{sheet.names[column]}": {why}')
    raise reason


async def _ask_for_name(panel: QuestionPanel, sheet: Sheet, column: int) -> tuple[ModelPair, Sheet]:
    chinese = speaks_chinese(sheet)
    stand_in = f"第{column + 1}列" if chinese else f"Column {column + 1}"
    header = (*sheet.names[:column], stand_in, *sheet.names[column + 1 :])
    hidden = Sheet(f"{sheet.name}_column_{column + 1}", replace(sheet.table, header=(header,)))
    name = sheet.names[column].strip()
    prompt = NAMER.format(table=describe_table(hidden), number=column + 1, stand_in=stand_in)
    names = [await _suggest_name(voter, prompt) for voter in panel.voters]
    agreeing = sum(await _compare_names(panel.judge, hidden, column, name, names))
    if 2 * agreeing <= len(names):
        raise Dropped(
            f"{agreeing} of {len(names)} find a name that means the same: {', '.join(map(repr, names))[:200]}"
        )
    question = (CHINESE if chinese else ENGLISH).format(number=column + 1, stand_in=stand_in)
    return ModelPair(question, question, (), name, "", (agreeing, len(names))), hidden


async def _suggest_name(voter: Model, prompt: str) -> str:
    try:
        return read_text(find_last_object((await voter.chat(prompt, max_tokens=TOKENS)).text, "name"), "name")
    except Dropped:
        return ""


async def _compare_names(
    judge: Model | None, hidden: Sheet, column: int, name: str, names: Sequence[str]
) -> list[bool]:
    """Tell for each name whether it means the same as the lost one, as judged by the judge or else by equal words."""
    if judge is None:
        return [bool(_split_name(other)) and _split_name(other) == _split_name(name) for other in names]
    prompt = NAME_JUDGE.format(
        number=column + 1,
        name=json.dumps(name, ensure_ascii=False),
        others=json.dumps(names, ensure_ascii=False),
        table=describe_table(hidden),
    )
    verdict = find_last_object((await judge.chat(prompt, max_tokens=TOKENS, temperature=0.0)).text, "keep")
    if verdict["keep"] is not True:
        raise Dropped(f"the judge drops it: {str(verdict.get('reason'))[:200]}")
    same = verdict.get("same")
    if not isinstance(same, list) or len(same) != len(names):
        raise Dropped("the judge does not say of each name whether it means the same")
    return [said is True and bool(other) for said, other in zip(same, names, strict=True)]


def _list_nameable_columns(sheet: Sheet) -> list[int]:
    elsewhere = [cell.lower() for row in sheet.table.rows for cell in row]
    return [
        column
        for column, name in enumerate(sheet.names)
        if not is_meaningless(name)
        and not NUMBER.fullmatch(name.strip())
        and sum(name.lower() in other.lower() for other in sheet.names) == 1
        and not any(name.lower() in cell for cell in elsewhere)
    ]


def _split_name(name: str) -> list[str]:
    """Split a name into lower-case words without its unit and plural endings."""
    bare = re.sub(r"[(\[（].*?[)\]）]", " ", name.lower())  # noqa: RUF001 - Chinese brackets
    return [word.removesuffix("s") for word in re.findall(r"\w+", bare.replace("_", " "))]


@dataclass(frozen=True, slots=True)
class BuiltPairs:
    """The pairs of a folder of tables."""

    # records in the published format, with the verifying program under `program`
    records: list[Mapping[str, Any]] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)  # The CSV text of the tables used, by file name.
    # The CSV text of tables with a column's name removed, by file name.
    renamed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)  # The reasons why files were not used, by file name.
    refuted: dict[str, str] = field(default_factory=dict)  # The reasons why pairs were dropped, by the pair's id.


def make_record(name: str, pair: TemplatePair | ModelPair, sheet: Sheet) -> dict[str, Any]:
    """Convert a pair to a record in the published format, with its program."""
    return {
        "id": name,
        "file_path": [f"csv/{sheet.name}.csv"],
        "instruction": "",
        "question": pair.question,
        "answer": pair.answer,
        "title": [""],
        "columnslable": [1],
        "Table_markdown": [sheet.table.markdown()],
        "Table_html": [sheet.table.html()],
        "number_answer": "" if pair.number is None else pair.number,
        "program": pair.program,
    }
