"""Questions that models make: an author writes one, programs of several models vote on its answer, a judge decides.

After the construction of arXiv 2506.18421 for advanced data analysis: a chain of steps, a long question that spells it
out, a short one, a discriminator. An answer is never taken from a model where a program can find it: it is what the
author's program prints in the sandbox, and it stays only if most of the voters' programs print the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.treb.solving import json_objects
from evalsuite.builders.treb.model_briefs import AUTHOR, DISCRIMINATOR, PROGRAM, STEPS, VOTER
from evalsuite.builders.treb.pair import same_answer
from evalsuite.metrics.numbers import parse_number
from evalsuite.sandbox import TableFile
from evalsuite.solvers.programs import python_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.builders.treb.model_briefs import Brief
    from evalsuite.builders.treb.sheet import Sheet
    from evalsuite.core.protocols import Model
    from evalsuite.sandbox import Sandbox

LONGEST_ANSWER = 400
SHOWN_ROWS = 60
TOKENS = 1500


class Dropped(Exception):  # noqa: N818 - no error: most drafts of small models end so
    """A draft is not kept; the message says why."""


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A question that models made, with its answer.

    Attributes:
        question: the short one.
        long_question: the same, with its steps spelt out.
        chain: the steps.
        answer: what the program printed; where there is none, the author's words.
        program: on `df`; empty where no program can find the answer.
        votes: how many of the voters' programs print the answer, and how many voted.
    """

    question: str
    long_question: str
    chain: Sequence[str]
    answer: str
    program: str
    votes: tuple[int, int]

    @property
    def number(self) -> float | None:
        """The answer as a number, where it is one."""
        parsed = parse_number(self.answer)
        return None if parsed is None or parsed.unit else float(parsed.value)


@dataclass(frozen=True, slots=True)
class QuestionPanel:
    """Who makes questions.

    Attributes:
        author: writes them.
        voters: write programs for them.
        judge: the discriminator; None where all that programs agree on is kept.
        sandbox: runs the programs.
    """

    author: Model
    voters: Sequence[Model]
    judge: Model | None
    sandbox: Sandbox

    async def question(self, sheet: Sheet, brief: Brief) -> ModelPair:
        """One question about a table.

        Raises:
            Dropped: what the author wrote is not kept.
            ModelError: a call failed for good.
            SandboxError: a program could not be run.
        """
        table = shown(sheet)
        draft = await self._draft(sheet, brief, table)
        pair = draft
        if brief.proven:
            pair = await self._voted(sheet, draft, table)
        if self.judge is not None:
            await self._judged(self.judge, pair, brief, table)
        return pair

    async def _draft(self, sheet: Sheet, brief: Brief, table: str) -> ModelPair:
        words = AUTHOR.format(
            task=brief.task,
            steps=STEPS,
            ending="a program in Python that prints the answer and nothing else."
            if brief.proven
            else "nothing else.",
            answer="" if brief.proven else ', "answer": "..."',
            program=PROGRAM if brief.proven else "",
            table=table,
        )
        text = (await self.author.chat(words, max_tokens=TOKENS)).text
        draft = last_object(text, "question")
        question, chain = text_of(draft, "question"), draft.get("chain")
        if not isinstance(chain, list) or len(chain) < (STEPS if brief.proven else 1):
            raise Dropped(f"its chain has fewer than {STEPS} steps")
        code = (python_block(text) or "") if brief.proven else ""
        answer = await self._printed(sheet, code) if brief.proven else text_of(draft, "answer")
        steps = [str(step) for step in chain]
        return ModelPair(question, str(draft.get("long_question") or question), steps, answer, code, (0, 0))

    async def _printed(self, sheet: Sheet, code: str) -> str:
        if not code.strip():
            raise Dropped("its author wrote no program")
        execution = await self.sandbox.run(code, {"df": TableFile(sheet.table.csv().encode())})
        answer = execution.stdout.strip()
        if execution.error is not None:
            raise Dropped(f"its program fails: {execution.error.splitlines()[-1][:200]}")
        if not answer or answer.lower() in {"nan", "none", "[]", "inf"}:
            raise Dropped(f"its program prints {answer!r}")
        if len(answer) > LONGEST_ANSWER:
            raise Dropped(f"its program prints {len(answer)} characters, more than {LONGEST_ANSWER}")
        return answer

    async def _voted(self, sheet: Sheet, draft: ModelPair, table: str) -> ModelPair:
        words = VOTER.format(table=table, question=draft.question)
        agreeing = 0
        for voter in self.voters:
            code = python_block((await voter.chat(words, max_tokens=TOKENS)).text) or ""
            try:
                agreeing += same_answer(await self._printed(sheet, code), draft.answer)
            except Dropped:
                continue  # a vote for nothing
        if 2 * agreeing <= len(self.voters):
            raise Dropped(
                f"{agreeing} of {len(self.voters)} programs come to its answer {draft.answer[:60]!r}"
            )
        return ModelPair(
            draft.question,
            draft.long_question,
            draft.chain,
            draft.answer,
            draft.program,
            (agreeing, len(self.voters)),
        )

    async def _judged(self, judge: Model, pair: ModelPair, brief: Brief, table: str) -> None:
        last = "every step is needed" if brief.proven else "the answer is right and complete"
        words = DISCRIMINATOR.format(
            task=brief.task,
            last=last,
            table=table,
            question=pair.question,
            answer=pair.answer,
            chain=json.dumps(pair.chain, ensure_ascii=False),
        )
        verdict = last_object((await judge.chat(words, max_tokens=TOKENS, temperature=0.0)).text, "keep")
        if verdict["keep"] is not True:
            raise Dropped(f"the judge drops it: {str(verdict.get('reason'))[:200]}")


def shown(sheet: Sheet) -> str:
    """A table as models are shown it, with its first rows where it is long."""
    rows = len(sheet.table.rows)
    left_out = f"\n(the first {SHOWN_ROWS} of {rows} rows)" if rows > SHOWN_ROWS else ""
    return f"{sheet.table.first(SHOWN_ROWS).markdown()}{left_out}"


def last_object(text: str, key: str) -> dict[str, Any]:
    """The last JSON object with this key.

    Raises:
        Dropped: there is none.
    """
    value: dict[str, Any]
    for value in reversed(json_objects(text)):
        if key in value:
            return value
    raise Dropped(f"there is no JSON object with {key!r} in what its author or its judge wrote")


def text_of(draft: dict[str, Any], key: str) -> str:
    """The text below a key.

    Raises:
        Dropped: it is none, or empty.
    """
    value = draft.get(key)
    if not isinstance(value, str) or not value.strip():
        raise Dropped(f"its {key} is not text")
    return value.strip()
