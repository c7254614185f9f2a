"""Column Naming: a column of a table loses its name, and the question asks for it; the name that it had is the answer.

No program can answer that. So models are asked first, each for itself and without the name: a column is kept where more
than half of them find a name that means the same, which shows that the cells and the other names tell it.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from evalsuite.builders.treb import column_kinds as kinds
from evalsuite.builders.treb.chinese import speaks_chinese
from evalsuite.builders.treb.model_questions import TOKENS, Dropped, ModelPair, last_object, shown, text_of
from evalsuite.builders.treb.sheet import Sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.builders.treb.model_questions import QuestionPanel
    from evalsuite.core.protocols import Model

SUBTASK = "Table_Column_Naming"
TRIES = 3
"""Columns of a table that are tried, one after the other, until one is kept."""

QUESTION = (
    'Column {number} of the table has lost its name and is shown as "{stand_in}". What should it be called?'
)
ENGLISH = f"{QUESTION} Answer with the name only."
CHINESE = "表格第{number}列的名称丢失了，显示为“{stand_in}”。这一列应当叫什么？只回答名称。"  # noqa: RUF001 - Chinese signs
NAMER = f"""\
{{table}}

{QUESTION} Write in the language of the table. Reply with a JSON object and nothing else: {{{{"name": "..."}}}}"""
JUDGE = """\
You check questions for a benchmark about tables. In the table below, column {number} has lost its name; it was \
{name}. People who were not told that name have named the column {others}.

{table}

Say of each of their names, in order, whether it means the same as the lost one, so that a reader of the table would \
understand the same. And say whether to keep the question: only if the cells and the other names tell what the column \
is, and the lost name is one that a reader understands.

Reply with a JSON object and nothing else: {{"same": [true or false, ...], "keep": true or false, "reason": "in a few \
words"}}"""


async def name_a_column(panel: QuestionPanel, sheet: Sheet) -> tuple[ModelPair, Sheet]:
    """A question for the name of a column, and the table without it.

    Raises:
        Dropped: no column is kept; the message says why of the last one that was tried.
        ModelError: a call failed for good.
    """
    columns = _candidates(sheet)
    Random(sheet.name).shuffle(columns)  # noqa: S311 - no secret
    reason = Dropped("no column has a name that could be asked for")
    for column in columns[:TRIES]:
        try:
            return await _asked(panel, sheet, column)
        except Dropped as why:
            reason = Dropped(f'"{sheet.names[column]}": {why}')
    raise reason


async def _asked(panel: QuestionPanel, sheet: Sheet, column: int) -> tuple[ModelPair, Sheet]:
    chinese = speaks_chinese(sheet)
    stand_in = f"第{column + 1}列" if chinese else f"Column {column + 1}"
    hidden, name = _without_name(sheet, column, stand_in), sheet.names[column].strip()
    words = NAMER.format(table=shown(hidden), number=column + 1, stand_in=stand_in)
    names = [await _named(voter, words) for voter in panel.voters]
    agreeing = sum(await _same(panel.judge, hidden, column, name, names))
    if 2 * agreeing <= len(names):
        raise Dropped(
            f"{agreeing} of {len(names)} find a name that means the same: {', '.join(map(repr, names))[:200]}"
        )
    question = (CHINESE if chinese else ENGLISH).format(number=column + 1, stand_in=stand_in)
    return ModelPair(question, question, (), name, "", (agreeing, len(names))), hidden


async def _named(voter: Model, words: str) -> str:
    """What a voter calls the column; empty where it names nothing."""
    try:
        return text_of(last_object((await voter.chat(words, max_tokens=TOKENS)).text, "name"), "name")
    except Dropped:
        return ""


async def _same(
    judge: Model | None, hidden: Sheet, column: int, name: str, names: Sequence[str]
) -> list[bool]:
    """Of each name whether it means the same as the lost one: in the judge's opinion, else by its words."""
    if judge is None:
        return [bool(_words(other)) and _words(other) == _words(name) for other in names]
    words = JUDGE.format(
        number=column + 1,
        name=json.dumps(name, ensure_ascii=False),
        others=json.dumps(names, ensure_ascii=False),
        table=shown(hidden),
    )
    verdict = last_object((await judge.chat(words, max_tokens=TOKENS, temperature=0.0)).text, "keep")
    if verdict["keep"] is not True:
        raise Dropped(f"the judge drops it: {str(verdict.get('reason'))[:200]}")
    same = verdict.get("same")
    if not isinstance(same, list) or len(same) != len(names):
        raise Dropped("the judge does not say of each name whether it means the same")
    return [said is True and bool(other) for said, other in zip(same, names, strict=True)]


def _candidates(sheet: Sheet) -> list[int]:
    """The columns whose names are words, and stand nowhere else in the table."""
    elsewhere = [cell.lower() for row in sheet.table.rows for cell in row]
    return [
        column
        for column, name in enumerate(sheet.names)
        if not kinds.says_nothing(name)
        and not kinds.NUMBER.fullmatch(name.strip())
        and sum(name.lower() in other.lower() for other in sheet.names) == 1
        and not any(name.lower() in cell for cell in elsewhere)
    ]


def _without_name(sheet: Sheet, column: int, stand_in: str) -> Sheet:
    names = (*sheet.names[:column], stand_in, *sheet.names[column + 1 :])
    return Sheet(f"{sheet.name}_column_{column + 1}", replace(sheet.table, header=(names,)))


def _words(name: str) -> list[str]:
    """A name without its unit, its capitals and its plurals."""
    bare = re.sub(r"[(\[（].*?[)\]）]", " ", name.lower())  # noqa: RUF001 - Chinese brackets
    return [word.removesuffix("s") for word in re.findall(r"\w+", bare.replace("_", " "))]
