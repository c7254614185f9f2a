"""What the model is asked in each mode. The wording is ours; what it must contain is the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.core.shortening import beginning
from evalsuite.core.types import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.benchmarks.treb.tables import SourceTable
    from evalsuite.core.types import Sample

SMALL_ROWS, SMALL_COLUMNS = 50, 20
FIRST_ROWS = 50

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
The data is already in memory, in pandas data frames under the names given: there is no file to read.
Say in one sentence how you go about it. Then write one complete program that prints the final answer, and \
only the answer, in the language of the question. What it prints is your answer. Write it in this form:
```python
print(df["some column"].max())
```"""

ROUNDS = """\
You answer questions about tables by planning, programming in Python and looking at the results.
The data is already in memory, in pandas data frames under the names given: there is no file to read.
In each turn say briefly what comes next and write one block of code that prints what you want to see:
```python
print(df["some column"].max())
```
It is run, you are shown its output, and its variables stay for your next block. Mend what fails. You have \
three such turns at most. As soon as you know the answer, write no more code: give it, in the language of \
the question, as \\boxed{the answer alone}."""

# Small models forget over a long table that they are to program, and answer in words.
WITH_PROGRAM = "Now write the program, in one ```python block."
WITH_ROUNDS = "Now begin: say what comes first and write its ```python block."
COUNTING = "Rows and columns are counted from 1; row 1 is the first row of data, below the names of columns."


def asks_for_json(sample: Sample) -> bool:
    """Whether a TCoT answer should be a JSON object: not without a table, and not for a summary."""
    return sample.tags["mode"] != "tcot" and sample.tags["subtask"] != "Table Summary"


def in_words(sample: Sample, tables: Sequence[str]) -> list[Message]:
    """TCoT: the instructions, the question and the tables as text; without a table just the question."""
    if not tables:
        return [Message("user", str(sample.input))]
    return _asked(IN_WORDS if asks_for_json(sample) else SUMMARY, "", sample, "\n\n".join(tables))


def with_program(sample: Sample, described: str) -> list[Message]:
    """PoT: the instructions, a description of the data frames, and the question."""
    return _asked(PROGRAM, WITH_PROGRAM, sample, described)


def with_rounds(sample: Sample, described: str) -> list[Message]:
    """ICoT, likewise."""
    return _asked(ROUNDS, WITH_ROUNDS, sample, described)


def table_text(table: SourceTable, written: str, mode: str, limit: int) -> str:
    """A table for TCoT: whole if it is small, else its first 50 rows, and as many as the limit allows.

    Args:
        table: its cells.
        written: the text of the record for this mode, used where the whole table is shown; may be empty.
        mode: `tcot_html` or any other, which is Markdown.
        limit: in characters.
    """
    small = len(table.rows) < SMALL_ROWS and table.width < SMALL_COLUMNS
    if small and written and len(written) <= limit:
        return written
    shown = table if small else table.first(FIRST_ROWS)
    text = _written(shown, mode)
    while len(text) > limit and shown.rows:
        # Rows differ in length: aim at the limit, and come down by one row at least.
        aim = len(shown.rows) * limit // len(text)
        shown = shown.first(min(aim, len(shown.rows) - 1))
        text = _written(shown, mode)
    text = beginning(text, limit)
    left_out = len(shown.rows) < len(table.rows)
    return f"{text}\n(the first {len(shown.rows)} of {len(table.rows)} rows)" if left_out else text


def _written(table: SourceTable, mode: str) -> str:
    return table.html() if mode == "tcot_html" else table.markdown()


def _asked(instructions: str, reminder: str, sample: Sample, shown: str) -> list[Message]:
    counting = f"\n{COUNTING}" if sample.tags["subtask"] == "Table Query" else ""
    question = f"{shown}\n\nQuestion: {sample.input}\n\n{reminder}".rstrip()
    return [Message("system", instructions + counting), Message("user", question)]
