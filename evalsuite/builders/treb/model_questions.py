"""Questions made by models: an author writes one, programs of several models vote on its answer, a judge decides.

The construction follows arXiv 2506.18421 for advanced data analysis: a chain of steps, a long question that lists the
steps, a short question, a discriminator. If a program can find the answer, the answer is the output of the author's
program in the sandbox, and it is kept only if most of the voters' programs print the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.treb.solving import json_objects
from evalsuite.builders.treb.lookups import same_answer
from evalsuite.metrics.numbers import parse_number
from evalsuite.sandbox import TableFile
from evalsuite.solvers.program_text import find_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.builders.treb.sheet import Sheet
    from evalsuite.core.protocols import Model
    from evalsuite.sandbox import Sandbox


LONGEST_ANSWER = 400
SHOWN_ROWS = 60
TOKENS = 1500


class Dropped(Exception):  # noqa: N818 - not an error, because most drafts of small models are dropped
    """Raised to drop a draft, with the reason."""


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A question that models made, with its answer."""

    question: str
    long_question: str
    chain: Sequence[str]
    answer: str  # The program's output; without a program, the author's words.
    program: str  # Pandas code on `df`; empty if no program can find the answer.
    votes: tuple[int, int]  # Number of voters' programs that print the answer, and number of voters.

    @property
    def number(self) -> float | None:
        """The answer as a number; None if it is not a number."""
        parsed = parse_number(self.answer)
        return None if parsed is None or parsed.unit else float(parsed.value)


@dataclass(frozen=True, slots=True)
class QuestionPanel:
    """The models that make questions: the author writes them, voters write programs, the judge drops bad ones."""

    author: Model
    voters: Sequence[Model]
    judge: Model | None
    sandbox: Sandbox

    async def question(self, sheet: Sheet, brief: Brief) -> ModelPair:
        """Make one question about a table; Dropped has the reason why the author's draft is not kept."""
        table = describe_table(sheet)
        pair = await self._make_draft(sheet, brief, table)
        if brief.computed:
            pair = await self._vote(sheet, pair, table)
        if self.judge is not None:
            await self._judge(self.judge, pair, brief, table)
        return pair

    async def _make_draft(self, sheet: Sheet, brief: Brief, table: str) -> ModelPair:
        prompt = AUTHOR.format(
            task=brief.task,
            steps=STEPS,
            ending="a program in Python that prints the answer and nothing else."
            if brief.computed
            else "nothing else.",
            answer="" if brief.computed else ', "answer": "..."',
            program=PROGRAM if brief.computed else "",
            table=table,
        )
        text = (await self.author.chat(prompt, max_tokens=TOKENS)).text
        draft = find_last_object(text, "question")
        question, chain = read_text(draft, "question"), draft.get("chain")
        if not isinstance(chain, list) or len(chain) < (STEPS if brief.computed else 1):
            raise Dropped(f"its chain has fewer than {STEPS} steps")
        code = _find_code(text) if brief.computed else ""
        answer = await self._run_program(sheet, code) if brief.computed else read_text(draft, "answer")
        steps = [str(step) for step in chain]
        return ModelPair(question, str(draft.get("long_question") or question), steps, answer, code, (0, 0))

    async def _run_program(self, sheet: Sheet, code: str) -> str:
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

    async def _vote(self, sheet: Sheet, draft: ModelPair, table: str) -> ModelPair:
        prompt = VOTER.format(table=table, question=draft.question)
        agreeing = 0
        for voter in self.voters:
            code = _find_code((await voter.chat(prompt, max_tokens=TOKENS)).text)
            try:
                agreeing += same_answer(await self._run_program(sheet, code), draft.answer)
            except Dropped:
                continue  # an abstention
        if 2 * agreeing <= len(self.voters):
            raise Dropped(f"{agreeing} of {len(self.voters)} programs come to its answer {draft.answer[:60]!r}")
        return replace(draft, votes=(agreeing, len(self.voters)))

    async def _judge(self, judge: Model, pair: ModelPair, brief: Brief, table: str) -> None:
        last = "every step is needed" if brief.computed else "the answer is right and complete"
        prompt = DISCRIMINATOR.format(
            task=brief.task,
            last=last,
            table=table,
            question=pair.question,
            answer=pair.answer,
            chain=json.dumps(pair.chain, ensure_ascii=False),
        )
        verdict = find_last_object((await judge.chat(prompt, max_tokens=TOKENS, temperature=0.0)).text, "keep")
        if verdict["keep"] is not True:
            raise Dropped(f"the judge drops it: {str(verdict.get('reason'))[:200]}")


def _find_code(text: str) -> str:
    found = find_program(text, bare=False)
    return found.code if found else ""


def describe_table(sheet: Sheet) -> str:
    """Write a table for a prompt, with only the first rows of a long one."""
    rows = len(sheet.table.rows)
    left_out = f"\n(the first {SHOWN_ROWS} of {rows} rows)" if rows > SHOWN_ROWS else ""
    return f"{sheet.table.first(SHOWN_ROWS).markdown()}{left_out}"


def find_last_object(text: str, key: str) -> dict[str, Any]:
    """Find the last JSON object with this key, or raise Dropped."""
    value: dict[str, Any]
    for value in reversed(json_objects(text)):
        if key in value:
            return value
    raise Dropped(f"the author or the judge wrote no JSON object with {key!r}")


def read_text(draft: dict[str, Any], key: str) -> str:
    """Return the text under a key, or raise Dropped if it is not a text or empty."""
    value = draft.get(key)
    if not isinstance(value, str) or not value.strip():
        raise Dropped(f"its {key} is not text")
    return value.strip()


@dataclass(frozen=True, slots=True)
class Brief:
    """A subtask for which no template exists; `computed` tells whether a program can find the answer."""

    task: str
    computed: bool = True


# By the stem of the subtask's file. The tasks are the paper's (arXiv 2506.18421, Table 1 and appendix); for Column
# Naming see `model_pairs`.
BRIEFS = {
    "Table_Retrieval": Brief("find one fact of the table from a description of its row and column"),
    "Table_Fact_Checking": Brief(
        "state something about the table that is true or false, and ask whether it is; the answer is True or False"
    ),
    "Table_Summary": Brief("ask for a summary of the table; the answer is one, of at most 100 words", computed=False),
    "Table_Title_Naming": Brief("ask for a title of the table; the answer is a fitting one", computed=False),
    "Table_Plausibility_Verification": Brief(
        "ask whether a value, a unit or a relation in the table is plausible, and why; the answer says so",
        computed=False,
    ),
    "Table_Domain-specific_Operations": Brief(
        "apply a formula of the table's own field (finance, sport, medicine, ...) to its cells; the question names it"
    ),
    "Table_Outlier_Detection": Brief("find outliers of a column by a rule that the question states"),
    "Table_Correlation_Analysis": Brief("measure how two columns go together, by a coefficient that is named"),
    "Table_Hypothesis_Testing": Brief("test a hypothesis about columns, by a named test at a named level"),
    "Multi-step_Retrieval": Brief("find a cell over several dependent look-ups"),
    "Multi-step_Fact_Checking": Brief("check a statement that takes several calculations; the answer is True or False"),
    "Multi-step_Operations": Brief("calculate a number over several dependent operations"),
    "Multi-step_Correlation_Analysis": Brief("derive two columns and then measure how they go together"),
    "Multi-step_Hypothesis_Testing": Brief("select or derive groups, then test a hypothesis by a named test"),
    "Multi-step_Conditional_Calculation": Brief("calculate a number whose formula depends on conditions in the data"),
}
STEPS = 3

AUTHOR = """\
You write questions for a benchmark about tables. Below is a table, which a program finds as the pandas DataFrame \
`df`. Write one question of this kind: {task}.

First think of the chain: at least {steps} steps, each of which needs the one before. Then write the long question, \
which spells the steps out, and the question itself, which asks for the same in one or two sentences and still has \
exactly one answer. It must be a question that somebody with this table would ask. Say in it how the answer is to be \
written: how many decimals, which of several, in which order. Write in the language of the table.

Reply with a JSON object and {ending}
```json
{{"chain": ["...", "..."], "long_question": "...", "question": "..."{answer}}}
```{program}

{table}"""
PROGRAM = """
```python
print(...)
```"""

VOTER = """\
Answer a question about a table, which a program finds as the pandas DataFrame `df`. Write one complete program in a \
```python block that prints the answer and nothing else.

{table}

Question: {question}"""

DISCRIMINATOR = """\
You check questions for a benchmark about tables. Keep a question only if all of this is true: it can be answered \
from the table alone; it has exactly one right answer, and says how that is to be written; somebody with this table \
would ask it; it is of this kind: {task}; {last}.

{table}

Question: {question}
Answer: {answer}
Steps: {chain}

Reply with a JSON object and nothing else: {{"keep": true or false, "reason": "in a few words"}}"""
