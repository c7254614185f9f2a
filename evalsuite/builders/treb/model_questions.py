"""Questions made by models: an author writes one, programs of several models vote on its answer, a judge decides.

The construction follows arXiv 2506.18421 for advanced data analysis: a chain of steps, a long question that lists the
steps, a short question, a discriminator. If a program can find the answer, the answer is the output of the author's
program in the sandbox, and it is kept only if most of the voters' programs print the same.

For Column Naming, a column loses its name, which is the answer. No program can find it, so models suggest names first.
The question is kept if more than half of them suggest a name with the same meaning.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field, replace
from itertools import chain, count, cycle, islice
from random import Random
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.treb.solving import json_objects
from evalsuite.builders.building import BuildProgress
from evalsuite.builders.model_session import add_model_options, model_settings, session
from evalsuite.builders.treb.lookups import same_answer, speaks_chinese
from evalsuite.builders.treb.sheet import NUMBER, Sheet, is_meaningless
from evalsuite.core.errors import SettingsError
from evalsuite.metrics.numbers import parse_number
from evalsuite.sandbox import Sandbox, TableFile
from evalsuite.solvers.program_text import find_program

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from evalsuite.builders.treb.lookups import TemplatePair
    from evalsuite.core.protocols import Model


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


# By the stem of the subtask's file. The tasks are the paper's (arXiv 2506.18421, Table 1 and appendix).
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
        BuildProgress(len(built.sheets) * len(subtasks), "question") as progress,
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
        _make_record(panel, built, sheet, subtask, progress) for sheet in built.sheets.values() for subtask in subtasks
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
            built.renamed.append(sheet)
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
    sheets: dict[str, Sheet] = field(default_factory=dict)  # The tables used, by name.
    renamed: list[Sheet] = field(default_factory=list)  # Tables with a column's name removed.
    skipped: dict[str, str] = field(default_factory=dict)  # The reasons why files were not used, by file name.
    refuted: dict[str, str] = field(default_factory=dict)  # The reasons why pairs were dropped, by the pair's id.

    def keep(self, sheet: Sheet) -> Sheet:
        """Keep a table, under a name of its own if another file's table has the same name."""
        names = chain([sheet.name], (f"{sheet.name}_{number}" for number in count(2)))
        named = replace(sheet, name=next(name for name in names if name not in self.sheets))
        self.sheets[named.name] = named
        return named


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
