"""Make questions with models in four roles: author, discriminators (who rate), candidates (who answer) and judge.

The steps follow arXiv 2506.18421, sections 2.3 and 2.4. An author writes a chain of steps, a long and a short question,
and a program. The program's output in the sandbox is the answer; if no program can find the answer, the author writes
it. The author receives a table or, in zero-shot subtasks, invents a table. A question is kept only if every
discriminator gives full marks. Then models in the role of candidates answer the question. If all candidates agree with
the author's answer, this answer is final. If all candidates give the same other answer, this answer replaces the
author's. Otherwise, people decide. Last, a judge classifies the question without knowing the intended subtask. For
Column Naming, one column's name is removed; the removed name is the answer. The prompts' tasks and criteria follow the
paper, too.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from random import Random
from typing import TYPE_CHECKING, Any

import jsonschema

from evalsuite.benchmarks.treb.solving import find_json_objects
from evalsuite.builders.building import BuildProgress, parse_csv_sheet
from evalsuite.builders.model_session import make_model_settings, open_session
from evalsuite.builders.treb.sheet import NUMBER, Sheet, is_meaningless_name, make_sheet
from evalsuite.builders.treb.templates import TemplatePair, has_chinese_names, is_same_answer
from evalsuite.core.errors import JudgeError, escape_formula
from evalsuite.core.types import Message
from evalsuite.judges.asking import SchemaAsker, make_number_schema, make_object_schema
from evalsuite.metrics.numbers import parse_number
from evalsuite.sandbox import Sandbox, TableFile
from evalsuite.solvers.program_text import find_program

if TYPE_CHECKING:
    import argparse

    from evalsuite.core.protocols import Model


# For each subtask (by the stem of its file name), the task about which models write questions. The tasks follow arXiv
# 2506.18421, Table 1 and appendix.
BRIEFS = {
    "Table_General_Operations": "calculate a statistic of a column, perhaps of some rows: a sum, a mean, a share",
    "Table_Retrieval": "find one fact of the table from a description of its row and column",
    "Table_Fact_Checking": "state something about the table that is true or false, and ask whether it is; the "
    "answer is True or False",
    "Table_Summary": "ask for a summary of the table; the answer is one, of at most 100 words",
    "Table_Title_Naming": "ask for a title of the table; the answer is a fitting one",
    "Table_Plausibility_Verification": "ask whether a value, a unit or a relation in the table is plausible, and "
    "why; the answer says so",
    "Table_Domain-specific_Operations": "apply a formula of the table's own field (finance, sport, medicine, ...) "
    "to its cells; the question names it",
    "Table_Outlier_Detection": "find outliers of a column by a rule that the question states",
    "Table_Correlation_Analysis": "measure how two columns go together, by a coefficient that is named",
    "Table_Hypothesis_Testing": "test a hypothesis about columns, by a named test at a named level",
    "Multi-step_Retrieval": "find a cell over several dependent look-ups",
    "Multi-step_Fact_Checking": "check a statement that takes several calculations; the answer is True or False",
    "Multi-step_Operations": "calculate a number over several dependent operations",
    "Multi-step_Correlation_Analysis": "derive two columns and then measure how they go together",
    "Multi-step_Hypothesis_Testing": "select or derive groups, then test a hypothesis by a named test",
    "Multi-step_Conditional_Calculation": "calculate a number whose formula depends on conditions in the data",
}
# The subtasks whose answers the author writes, because no program can compute them.
WRITTEN = {"Table_Summary", "Table_Title_Naming", "Table_Plausibility_Verification"}
STEPS = 3  # Minimum number of steps in the chain that leads to a question's answer.
FULL = 5  # The best mark that a discriminator (a model that rates questions) can give.
COLUMN_NAMING = "Table_Column_Naming"
TASKS = BRIEFS | {
    COLUMN_NAMING: "name a column that has lost its name",
    "Table_Query": "give the cell, row or column at a place that the question names",
    "Table_Selection": "list or count the rows that meet conditions",
    "Table_Distribution_Testing": "test or describe how the values of one column are distributed",
}
# Subtasks for which the author model invents the table (section 2.3 of the paper), and topics for such tables.
ZERO_SHOT = ("Table_General_Operations", "Table_Summary")
TOPICS = (
    *("retail", "weather", "schools", "hospitals", "railways"),
    *("farming", "energy", "football", "libraries", "banking"),
)

AUTHOR = """\
You write questions for a benchmark about tables. {given} Write one question about the table of this kind: {task}.

First think of the chain: at least {steps} steps, each of which needs the one before. Then write the long question, \
which spells the steps out, and the question itself, which asks for the same in one or two sentences and still has \
exactly one answer. It must be a question that somebody with this table would ask. Say in it how the answer is to be \
written: how many decimals, which of several, in which order. Write in the language of the table.{last}

Reply with one JSON object that has the keys {keys}; "chain" is a list of texts, everything else is text.

{table}"""
INVENTION_PROMPT = (
    'Invent a table about {topic} and give it under "table" as comma-separated values: one header row, a column of '
    "names, at least two columns of numbers, 8 to 15 rows, no totals."
)
LAST = {
    "program": ' Under "program", write Python that finds the table as the pandas DataFrame `df`, and prints the '
    "answer and nothing else.",
    "answer": ' Under "answer", write the answer.',
}

PROGRAMMER = """\
Answer a question about a table, which a program finds as the pandas DataFrame `df`. Write one complete program in a \
```python block that prints the answer and nothing else.

{table}

Question: {question}"""
ANSWERER = """\
Answer a question about a table, in the language of the question. Write the answer and nothing else.

{table}

Question: {question}"""

# The paper's names of the criteria for single-step questions and for chains of steps, with evalsuite's own definitions.
MARKS = {
    "accuracy": "the answer is right and complete by the table alone",
    "relevance": "the question has exactly one answer, and somebody with this table would ask it",
    "coverage": "the question is of the kind that was wanted",
}
CHAIN_MARKS = {
    "plausibility": "somebody with this table would ask both the question and the long question",
    "consistency": "both ask for the same, every step is needed, and the steps are of the kind that was wanted",
    "answerability": "both have exactly one answer by the table alone, and the answer given is right",
}
DISCRIMINATOR = """\
You check questions for a benchmark about tables. The kind that was wanted: {task}. Give a mark from 1 to {full} for \
each of these, {full} only if it holds without exception:
{marks}

{table}

Question: {question}
Long question: {long_question}
Answer: {answer}
Steps: {chain}

Reply with a JSON object and nothing else: {{{keys}, "reason": "in a few words"}}"""
COMPARER = """\
Compare answers to a question about a table by what they say, not by their words.

{table}

Question: {question}
Reference: {answer}
Answers: {others}

Reply with a JSON object and nothing else: {{"same": [for each answer in order, true if it says the same as the \
reference, else false], "all_agree": true if all answers say the same as each other, else false}}"""
CLASSIFIER = """\
Which kind of question about a table is this? Kinds whose name begins with "Multi-step" are for questions of at least \
three dependent steps.
{kinds}

Question: {question}
Steps: {chain}

Reply with a JSON object and nothing else: {{"kind": "the name of one kind"}}"""
ENGLISH = (
    'Column {number} of the table has lost its name and is shown as "{stand_in}". What should it be called? Answer '
    "with the name only."
)
CHINESE = "表格第{number}列的名称丢失了，显示为“{stand_in}”。这一列应当叫什么？只回答名称。"  # noqa: RUF001 - Chinese signs

LONGEST_ANSWER = 400
SHOWN_ROWS = 60
TOKENS = 1500
ATTEMPTS = 2  # Maximum requests until a reply has the required form.


class DraftDropped(Exception):  # noqa: N818 - not an error, because most drafts of small models are dropped
    """Raised if a model's draft of a question is unusable; the message states the reason."""


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A question that models made, with its answer."""

    question: str
    long_question: str
    chain: Sequence[str]
    answer: str  # The program's output; without a program, the author's own answer.
    program: str  # Pandas code on `df`; empty if no program can find the answer.
    candidates: Sequence[str] = ()  # The candidates' answers; an empty string is an abstention.
    agreeing: int = 0  # Number of candidates that agree with the answer.
    quality: str = ""  # How the answer was determined: "unanimous", "replaced" or "reviewed"; empty if disputed.

    @property
    def number(self) -> float | None:
        """The answer as a number; None if the answer is not a number."""
        parsed = parse_number(self.answer)
        return None if parsed is None or parsed.unit else float(parsed.value)


@dataclass(frozen=True, slots=True)
class QuestionPanel:
    """The models that make, answer and rate questions; the first judge also compares answers and finds subtasks."""

    author: Model
    candidates: Sequence[Model]
    judges: Sequence[Model]
    sandbox: Sandbox
    asking: SchemaAsker = field(default_factory=SchemaAsker)

    async def write_question(self, sheet: Sheet | None, subtask: str, topic: str = "") -> tuple[ModelPair, Sheet]:
        """Write one question about a table; if no table is given, the author invents a table about the topic."""
        computed, text = subtask not in WRITTEN, {"type": "string", "minLength": 1}
        invented = {} if sheet else {"table": text}
        last = "program" if computed else "answer"
        chain = {"type": "array", "items": {"type": "string"}, "minItems": STEPS if computed else 1}
        prompt = AUTHOR.format(
            given=INVENTION_PROMPT.format(topic=topic) if sheet is None else "Below is a table.",
            task=BRIEFS[subtask],
            steps=STEPS,
            last=LAST[last],
            keys=", ".join(f'"{key}"' for key in (*invented, "chain", "long_question", "question", last)),
            table=format_table_excerpt(sheet) if sheet else "",
        )
        draft = await self._ask_for_json(
            self.author, prompt, **invented, chain=chain, long_question=text, question=text, **{last: text}
        )
        if sheet is None:
            made = make_sheet(f"invented_{subtask}", list(csv.reader(io.StringIO(draft["table"]))), ",")
            if isinstance(made, str):
                raise DraftDropped(f"its invented table is not suitable: {made}")
            sheet = replace(made, name=f"invented_{topic}_{subtask}")
        code = _extract_program(draft["program"]) or draft["program"] if computed else ""
        answer = await self._run_program_or_drop_draft(sheet, code) if computed else draft["answer"].strip()
        return ModelPair(draft["question"], draft["long_question"], draft["chain"], answer, code), sheet

    async def require_full_marks(self, sheet: Sheet, pair: ModelPair, subtask: str) -> None:
        """Request marks for a question from each judge; raise DraftDropped if any mark is below the best mark."""
        marks = CHAIN_MARKS if subtask.startswith("Multi-step") else MARKS
        prompt = DISCRIMINATOR.format(
            task=TASKS[subtask],
            marks="\n".join(f"- {name}: {meaning}" for name, meaning in marks.items()),
            full=FULL,
            table=format_table_excerpt(sheet),
            question=pair.question,
            long_question=pair.long_question,
            answer=pair.answer,
            chain=json.dumps(pair.chain, ensure_ascii=False),
            keys=", ".join(f'"{name}": 1 to {FULL}' for name in marks),
        )
        forms = dict.fromkeys(marks, make_number_schema(1, FULL))
        for judge in self.judges:
            given = await self._ask_for_json(judge, prompt, **forms, reason={"type": "string"})
            if low := {name: given[name] for name in marks if given[name] < FULL}:
                named = ", ".join(f"{name} {mark} of {FULL}" for name, mark in low.items())
                raise DraftDropped(f"{judge.name} gives it {named}: {given['reason'][:200]}")

    async def decide_answer(self, sheet: Sheet, pair: ModelPair) -> ModelPair:
        """Confirm the pair's answer, replace it if all candidates agree on another answer, or leave it disputed."""
        prompt = (PROGRAMMER if pair.program else ANSWERER).format(
            table=format_table_excerpt(sheet), question=pair.question
        )
        replies = [(await each.chat(prompt, max_tokens=TOKENS)).text.strip() for each in self.candidates]
        programs = [_extract_program(reply) for reply in replies] if pair.program else []
        answers = [] if programs else replies
        for code in programs:
            try:
                answers.append(await self._run_program_or_drop_draft(sheet, code))
            except DraftDropped:
                answers.append("")  # The candidate abstains.
        same, agree = await self._compare_answers(pair, answers, sheet)
        pair = replace(pair, candidates=answers, agreeing=sum(same))
        if all(same):
            return replace(pair, quality="unanimous")
        if agree and not any(same) and all(answers):
            return replace(pair, answer=answers[0], program=pair.program and programs[0], quality="replaced")
        return pair

    async def _compare_answers(self, pair: ModelPair, answers: Sequence[str], sheet: Sheet) -> tuple[list[bool], bool]:
        """Tell whether each candidate's answer agrees with the pair's answer, and whether all candidates agree."""
        if pair.program or not self.judges:
            equal = is_same_answer if pair.program else lambda one, other: _split_name(one) == _split_name(other)
            first = [equal(answer, answers[0]) for answer in answers]
            return [bool(answer) and equal(answer, pair.answer) for answer in answers], all(first)
        prompt = COMPARER.format(
            table=format_table_excerpt(sheet),
            question=pair.question,
            answer=pair.answer,
            others=json.dumps(answers, ensure_ascii=False),
        )
        same = {"type": "array", "items": {"type": "boolean"}, "minItems": len(answers), "maxItems": len(answers)}
        told = await self._ask_for_json(self.judges[0], prompt, same=same, all_agree={"type": "boolean"})
        return [said and bool(answer) for said, answer in zip(told["same"], answers, strict=True)], told["all_agree"]

    async def find_judged_subtask(self, pair: ModelPair, intended: str) -> str:
        """Return the subtask that a judge finds for a question; without judges, return `intended`.

        Raises:
            DraftDropped: the question does not suit the subtask that the judge found.
        """
        if not self.judges:
            return intended
        kinds = "\n".join(f"- {name}: {task}" for name, task in TASKS.items())
        prompt = CLASSIFIER.format(
            kinds=kinds, question=pair.question, chain=json.dumps(pair.chain, ensure_ascii=False)
        )
        found: str = (await self._ask_for_json(self.judges[0], prompt, kind={"enum": list(TASKS)}))["kind"]
        if found != intended and (found not in BRIEFS or (found in WRITTEN) == bool(pair.program)):
            raise DraftDropped(f"it is a question of {found}")
        return found

    async def _ask_for_json(self, model: Model, prompt: str, **properties: Any) -> dict[str, Any]:
        """Request a JSON object with the given properties; raise DraftDropped if the model never replies with one."""
        schema = make_object_schema(**properties)

        def parse_object(text: str) -> dict[str, Any]:
            value: dict[str, Any]
            for value in reversed(find_json_objects(text)):
                if properties.keys() <= value.keys():
                    kept = {name: value[name] for name in properties}
                    try:
                        jsonschema.validate(kept, schema)
                    except jsonschema.ValidationError as error:
                        raise ValueError(f"{error.json_path}: {error.message[:200]}") from error
                    return kept
            raise ValueError(f"it has no JSON object with {', '.join(properties)}")

        try:
            answer = await self.asking.ask_with_schema(
                model, [Message("user", prompt)], parse_object, schema, attempts=ATTEMPTS, max_tokens=TOKENS
            )
        except JudgeError as error:
            raise DraftDropped(str(error).removeprefix("judge ")) from error
        return answer.value

    async def _run_program_or_drop_draft(self, sheet: Sheet, code: str) -> str:
        """Return the answer that a program prints; raise DraftDropped if the program or the answer is unusable."""
        if not code.strip():
            raise DraftDropped("its author wrote no program")
        execution = await self.sandbox.run(code, {"df": TableFile(sheet.table.format_csv().encode())})
        answer = execution.stdout.strip()
        if execution.error is not None:
            raise DraftDropped(f"its program fails: {execution.error.splitlines()[-1][:200]}")
        if not answer or answer.lower() in {"nan", "none", "[]", "inf"}:
            raise DraftDropped(f"its program prints {answer!r}")
        if len(answer) > LONGEST_ANSWER:
            raise DraftDropped(f"its program prints {len(answer)} characters, more than {LONGEST_ANSWER}")
        return answer


def _extract_program(text: str) -> str:
    found = find_program(text, allow_unfenced=False)
    return found.code if found else ""


def format_table_excerpt(sheet: Sheet) -> str:
    """Format a table as Markdown for a prompt; of a long table, only the first rows."""
    rows = len(sheet.table.rows)
    left_out = f"\n(the first {SHOWN_ROWS} of {rows} rows)" if rows > SHOWN_ROWS else ""
    return f"{sheet.table.select_first_rows(SHOWN_ROWS).format_markdown()}{left_out}"


MOST_COLUMNS = 3  # Maximum columns of a table that are tried for a question about a column's name.
STORE = "answers.sqlite"  # File of the models' answers in the output folder; a repeated build sends only new requests.
DISPUTED = "disputed.csv"
REVIEW_COLUMNS = ("id", "question", "answer", "candidates", "table", "accepted")
VOTES = 3
# The subtasks for which models make questions.
SUBTASKS = (*(name for name in BRIEFS if name != "Table_General_Operations"), COLUMN_NAMING)


def add_model_pairs(args: argparse.Namespace, built: BuiltPairs) -> None:
    """Have models make a question per subtask and table; record disputed questions, and why others were dropped."""
    settings = make_model_settings({**vars(args), "model": args.models[0]})
    args.out.mkdir(parents=True, exist_ok=True)
    reviewed = args.out / DISPUTED
    for _, row in parse_csv_sheet(reviewed, REVIEW_COLUMNS) if reviewed.exists() else ():
        built.reviews[row["id"], row["question"]] = row["accepted"].strip()
    jobs: list[tuple[Sheet | None, str, str]] = [
        (sheet, subtask, "") for sheet in built.sheets.values() for subtask in args.subtasks or SUBTASKS
    ]
    for number in range(args.zero_shot):
        rounds, place = divmod(number, len(TOPICS))
        topic = f"{TOPICS[place]} {rounds + 1}" if rounds else TOPICS[place]
        jobs += [(None, subtask, topic) for subtask in ZERO_SHOT]
    with open_session(settings, args.out / STORE) as opened, BuildProgress(len(jobs), "question") as progress:
        ask, address = opened.model.peer, args.judge_base_url or args.model_base_url
        # Give each candidate its own epoch, so that two candidates with the same model do not share stored answers.
        candidates = [
            ask(name, None if name == args.models[0] else args.model_base_url, epoch=2 + number)
            for number, name in enumerate(islice(cycle(args.models), args.votes))
        ]
        judges = [ask(name, address, epoch=1 + number) for number, name in enumerate(args.judge_models)]
        sandbox = Sandbox(preload=("numpy", "pandas", "scipy.stats"))
        panel = QuestionPanel(opened.model, candidates, judges, sandbox)
        try:
            for made in opened.run_coroutines(_make_question_records(panel, built, *job, progress) for job in jobs):
                built.records.extend(made)
        finally:
            opened.run_coroutines([sandbox.aclose()])


async def _make_question_records(
    panel: QuestionPanel, built: BuiltPairs, user_sheet: Sheet | None, subtask: str, topic: str, progress: BuildProgress
) -> list[dict[str, Any]]:
    """Make a question and decide its answer; return its record, or no record if it was dropped or is disputed."""
    source = user_sheet.name if user_sheet else f"invented_{topic}"
    name = f"{subtask}|models|{source}"
    try:
        if user_sheet and subtask == COLUMN_NAMING:
            pair, sheet = await _make_naming_question(panel, user_sheet)
        else:
            pair, sheet = await panel.write_question(user_sheet, subtask, topic)
            await panel.require_full_marks(sheet, pair, subtask)
            pair = await panel.decide_answer(sheet, pair)
        found = await panel.find_judged_subtask(pair, subtask)
    except DraftDropped as reason:
        built.refuted[name] = str(reason)
        return []
    finally:
        progress.advance(1)
    # If the judge finds another subtask, the id begins with this subtask and ends with `subtask`, the intended one.
    name = name if found == subtask else f"{found}|models|{source}|{subtask}"
    if not pair.quality:  # Queue a disputed question for people, and take their answer from an earlier build, if any.
        question, candidates = str(escape_formula(pair.question)), "\n".join(pair.candidates)
        accepted = built.reviews.get((name, question), "")
        built.disputed.append((name, question, pair.answer, candidates, sheet.table.format_csv(), accepted))
        if not accepted:
            return []
        program = pair.program if is_same_answer(accepted, pair.answer) else ""
        pair = replace(pair, answer=accepted, program=program, quality="reviewed")
    if sheet is not user_sheet:
        built.further.append(sheet)
    more = {"chain": list(pair.chain), "long_question": pair.long_question, "quality": pair.quality}
    return [make_record(name, pair, sheet) | more | {"votes": f"{pair.agreeing} of {len(pair.candidates)}"}]


async def _make_naming_question(panel: QuestionPanel, sheet: Sheet) -> tuple[ModelPair, Sheet]:
    """Make a question about a column's name, and a table without it; raise DraftDropped if no column is suitable."""
    chinese = has_chinese_names(sheet)
    elsewhere = [cell.lower() for row in sheet.table.rows for cell in row]
    # Ask only for names that have a meaning and occur nowhere else in the table.
    columns = [
        column
        for column, name in enumerate(sheet.column_names)
        if not is_meaningless_name(name)
        and not NUMBER.fullmatch(name.strip())
        and sum(name.lower() in other.lower() for other in sheet.column_names) == 1
        and not any(name.lower() in cell for cell in elsewhere)
    ]
    Random(sheet.name).shuffle(columns)  # noqa: S311 - no secret
    reason = DraftDropped("no column has a name that could be asked for")
    disputed = None
    for column in columns[:MOST_COLUMNS]:
        name = sheet.column_names[column].strip()
        stand_in = f"第{column + 1}列" if chinese else f"Column {column + 1}"
        header = (*sheet.column_names[:column], stand_in, *sheet.column_names[column + 1 :])
        hidden = Sheet(f"{sheet.name}_column_{column + 1}", replace(sheet.table, header=(header,)))
        question = (CHINESE if chinese else ENGLISH).format(number=column + 1, stand_in=stand_in)
        pair = ModelPair(question, question, (), name, "")
        try:
            await panel.require_full_marks(hidden, pair, COLUMN_NAMING)
            pair = await panel.decide_answer(hidden, pair)
        except DraftDropped as why:
            reason = DraftDropped(f'"{sheet.column_names[column]}": {why}')
            continue
        # The column's real name stays the answer, even if the candidates agree on another name.
        if pair.quality == "unanimous":
            return pair, hidden
        disputed = disputed or (replace(pair, answer=name, quality=""), hidden)
    if disputed is None:
        raise reason
    return disputed


def _split_name(name: str) -> list[str]:
    """Split a name into lower-case words without its unit and plural endings."""
    bare = re.sub(r"[(\[（].*?[)\]）]", " ", name.lower())  # noqa: RUF001 - Chinese brackets
    return [word.removesuffix("s") for word in re.findall(r"\w+", bare.replace("_", " "))]


@dataclass(frozen=True, slots=True)
class BuiltPairs:
    """The question-answer pairs made from a folder of tables."""

    # Records in the published format; their field `program` has the program that verifies the answer.
    records: list[Mapping[str, Any]] = field(default_factory=list)
    sheets: dict[str, Sheet] = field(default_factory=dict)  # The user's tables that were used, by name.
    further: list[Sheet] = field(default_factory=list)  # Invented tables, and tables with a column's name removed.
    skipped: dict[str, str] = field(default_factory=dict)  # The reasons why files were not used, by file name.
    refuted: dict[str, str] = field(default_factory=dict)  # The reasons why pairs were dropped, by the pair's id.
    disputed: list[Sequence[str]] = field(default_factory=list)  # Disputed questions, as rows of `REVIEW_COLUMNS`.
    reviews: dict[tuple[str, str], str] = field(default_factory=dict)  # People's answers, by id and question.


def make_record(pair_id: str, pair: TemplatePair | ModelPair, sheet: Sheet) -> dict[str, Any]:
    """Convert a question-answer pair with its program to a record in the published format."""
    return {
        "id": pair_id,
        "file_path": [f"csv/{sheet.name}.csv"],
        "instruction": "",
        "question": pair.question,
        "answer": pair.answer,
        "title": [""],
        "columnslable": [1],
        "Table_markdown": [sheet.table.format_markdown()],
        "Table_html": [sheet.table.format_html()],
        "number_answer": "" if pair.number is None else pair.number,
        "program": pair.program,
    }
