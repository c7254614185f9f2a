"""TReB's solvers: TCoT, PoT and ICoT, with their prompts.

The prompts have the paper's content in evalsuite's own wording. A sample's tag `mode` decides which solver is used.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from evalsuite.benchmarks.treb.dataset import TEXT_MODES, TrebOptions
from evalsuite.benchmarks.treb.tables import FIRST_ROWS, SourceTable, is_large_table, read_table
from evalsuite.core.errors import shorten_to_beginning
from evalsuite.core.protocols import Model, Setup, Solver
from evalsuite.core.threads import run_in_thread
from evalsuite.core.types import Message, Sample, Transcript
from evalsuite.judges.parsing import list_json_objects
from evalsuite.sandbox import Sandbox, TableFile
from evalsuite.solvers.program_text import remove_box
from evalsuite.solvers.programs import ModeSolver, interleaved, program_of_thought

ROUNDS = 3
CHARACTERS_PER_TOKEN = 4  # Average number of characters per token in English texts.


async def answer_in_words(sample: Sample, model: Model, *, limit: int, params: Mapping[str, Any]) -> Transcript:
    """Solve a sample in TCoT: by one call, with each table as text of at most `limit` characters.

    If a JSON object is requested, `facts["json"]` in the transcript states whether the answer contains one.
    """

    def format_tables() -> str:
        mode = sample.tags["mode"]
        form = "html" if mode == "tcot_html" else "markdown"
        sources = sample.metadata["tables"]
        return "\n\n".join(format_table(read_table(source), source[form], mode, limit) for source in sources)

    instructions = IN_WORDS if should_be_json(sample) else SUMMARY
    prompt = _build_prompt(instructions, "", sample, await run_in_thread(format_tables))
    if not sample.metadata["tables"]:  # Questions without a table (language understanding) are sent unchanged.
        prompt = [Message("user", str(sample.input))]
    completion = await model.chat(prompt, **params)
    answer, facts = completion.text.strip(), {"finish": completion.finish_reason}
    if should_be_json(sample):
        answer, is_json = read_answer(completion.text)
        facts |= {"json": "found" if is_json else "missing"}
    return Transcript(answer, (*prompt, Message("assistant", completion.text)), completion.reasoning, facts=facts)


def make_solver(setup: Setup) -> ModeSolver:
    """Make the solver of a run."""
    options = TrebOptions.from_setup(setup)
    half = options.context // 2
    params: dict[str, Any] = {"max_tokens": options.max_tokens, "temperature": options.temperature}
    # For the official files, use the paper's package versions, because reports compare the results with the paper's.
    usual = "treb-2025" if setup.data is not None else "own"
    # Preload scipy.stats, because hypothesis tests need it and importing it takes half a second.
    sandbox = Sandbox(preload=("numpy", "pandas", "scipy.stats"), usual=usual)
    shared: dict[str, Any] = {"tables": make_sandbox_tables, "timeout": options.timeout, "sandbox": sandbox, **params}

    def make_prompt_writer(instructions: str) -> Callable[[Sample, str], list[Message]]:
        limit = CHARACTERS_PER_TOKEN * half
        return lambda sample, tables: _build_prompt(instructions, REMINDER, sample, shorten_to_beginning(tables, limit))

    modes: dict[str, Solver] = {
        **dict.fromkeys(("tcot", *TEXT_MODES), partial(answer_in_words, limit=half, params=params)),
        "pot": program_of_thought(prompt=make_prompt_writer(PROGRAM), **shared),
        "icot": interleaved(rounds=ROUNDS, prompt=make_prompt_writer(_ROUNDS_TEXT), **shared),
    }
    return ModeSolver(modes, sandbox)


def make_sandbox_tables(sample: Sample) -> dict[str, TableFile]:
    """Make the tables for the sandbox, called `df`, `df2`, `df3` and so on."""
    return {
        f"df{number}" if number > 1 else "df": TableFile(
            Path(source["csv"]) if is_large_table(source) else read_table(source).format_csv().encode(),
            source["header_rows"],
        )
        for number, source in enumerate(sample.metadata["tables"], 1)
    }


SMALL_ROWS, SMALL_COLUMNS = 50, 20

IN_WORDS = """\
You answer questions about tables by careful reading and reasoning in words.
Finish your reply with one JSON object of this form, in the language of the question:
```json
{"thought": "which cells matter and how they lead to the answer", "answer": "the final answer alone"}
```"""

SUMMARY = """\
You describe tables. Reply with the summary that is asked for and nothing else, in the language of the \
question and in no more than 100 words."""

PROGRAM = """\
You answer questions about tables by programming in Python.
The data is already in memory, in pandas data frames under the names given: there is \
no file to read.
Say in one sentence how you go about it. Then write one complete program that prints the final answer, and \
only the answer, in the language of the question. What it prints is your answer. Write it in this form:
```python
print(df["some column"].max())
```"""

_ROUNDS_TEXT = """\
You answer questions about tables by planning, programming in Python and looking at the results.
The data is already in memory, in pandas data frames under the names given: there is \
no file to read.
In each turn say briefly what comes next and write one block of code that prints what you want to see:
```python
print(df["some column"].max())
```
It is run, you are shown its output, and its variables stay for your next block. Mend what fails. You have \
three such turns at most. As soon as you know the answer, write no more code: give it, in the language of \
the question, as \\boxed{the answer alone}."""

# Repeat the request for a program after the table, because small models forget it after a long table.
REMINDER = "Now begin: say in one sentence what you do, then write the ```python block."
COUNTING_RULE = "Rows and columns are counted from 1; row 1 is the first row of data, below the names of columns."


def should_be_json(sample: Sample) -> bool:
    """Tell whether a TCoT answer must be a JSON object: for all questions about tables except summaries."""
    return sample.tags["mode"] != "tcot" and sample.tags["subtask"] != "Table Summary"


def format_table(table: SourceTable, original_text: str, mode: str, limit: int) -> str:
    """Write a table for TCoT in at most `limit` characters; write at most 50 rows of a large table.

    For a small table, the record's own text (`original_text`) is returned, unless it is empty or too long.
    """
    small = len(table.rows) + table.left_out < SMALL_ROWS and table.width < SMALL_COLUMNS
    if small and original_text and len(original_text) <= limit:
        return original_text
    shown = table if small else table.select_first_rows(FIRST_ROWS)
    write = SourceTable.format_html if mode == "tcot_html" else SourceTable.format_markdown
    text = write(shown)
    while len(text) > limit and shown.rows:
        # Rows differ in length, so estimate the number of rows that fit, and drop at least one row.
        aim = len(shown.rows) * limit // len(text)
        shown = shown.select_first_rows(min(aim, len(shown.rows) - 1))
        text = write(shown)
    text = shorten_to_beginning(text, limit)
    rows = len(table.rows) + table.left_out
    return f"{text}\n(the first {len(shown.rows)} of {rows} rows)" if len(shown.rows) < rows else text


def _build_prompt(instructions: str, reminder: str, sample: Sample, tables: str) -> list[Message]:
    counting = f"\n{COUNTING_RULE}" if sample.tags["subtask"] == "Table Query" else ""
    question = f"{tables}\n\nQuestion: {sample.input}\n\n{reminder}".rstrip()
    return [Message("system", instructions + counting), Message("user", question)]


LONGEST = 100_000  # JSON is searched, in quadratic time, only in this many characters at a reply's end.
_LATEX = re.compile(r'(?<!\\)\\(?!["\\/bfnrtu])')  # A LaTeX backslash that is invalid in JSON: `12.5\%`.
# JSON turns `\b` in `\boxed` and `\t` in `\text` into control characters; these pairs restore the LaTeX commands.
_LATEX_REPAIRS = (("\x08oxed{", "\\boxed{"), ("\text{", "\\text{"))
_JSON = json.JSONDecoder(strict=False)


def read_answer(text: str) -> tuple[str, bool]:
    """Read the answer, and tell whether a JSON object contained it.

    The answer is read from the last JSON object with the key `answer`; without one, the whole text is the answer. The
    items of a list are joined by commas, and a LaTeX box around the whole answer is removed.
    """
    for written in (text, _LATEX.sub(r"\\\\", text)):
        for value in reversed(find_json_objects(written)):
            if "answer" in value:
                with suppress(RecursionError):  # Ignore lists that are nested too deeply to be an answer.
                    return remove_box(_format_answer_value(value["answer"])), True
    return remove_box(text.strip()), False


def find_json_objects(text: str) -> list[dict[str, Any]]:
    """Find the outermost JSON objects in a text's last 100,000 characters."""
    return [value for value, _, _ in list_json_objects(text[-LONGEST:], _JSON, most=LONGEST)]


def _format_answer_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_format_answer_value, value))
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    text: str = value
    for sign, latex in _LATEX_REPAIRS:
        text = text.replace(sign, latex)
    return text.strip()
