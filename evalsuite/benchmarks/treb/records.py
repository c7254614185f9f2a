"""Define the 26 subtasks of TReB (arXiv 2506.18421, Table 1), and read their files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path, PurePosixPath
from typing import Any, TextIO

from evalsuite.benchmarks.dataset_files import parse_json, read_field, read_json_records, read_text, require_type
from evalsuite.benchmarks.treb.rules import list_broken_rules
from evalsuite.core.errors import DatasetError, ScoringError
from evalsuite.metrics.numbers import numeric_match, parse_number

# The skills in the order of the columns in the paper's Tables 2, 3 and 5.
SKILLS = {
    "NLU": "Natural Language Understanding",
    "TU": "Table Understanding",
    "TBO": "Table Basic Operation",
    "TCO": "Table Computational Operation",
    "DA": "Data Analysis",
    "ADA": "Advanced Data Analysis",
}
TCOT, POT, ICOT = "TCoT", "PoT", "ICoT"
# Maps each value of the tag `mode` to a column of the paper's tables. Questions without a table have the mode `tcot`,
# because their prompts contain neither Markdown nor HTML.
COLUMN_OF = {"tcot": TCOT, "tcot_markdown": TCOT, "tcot_html": TCOT, "pot": POT, "icot": ICOT}
TABLE_MODES = ("tcot_markdown", "tcot_html", "pot", "icot")
TEXT_MODES = ("tcot_markdown", "tcot_html")


@dataclass(frozen=True, slots=True)
class Subtask:
    """A subtask of TReB."""

    file: str  # The stem of the official file, which is also the first part of record ids.
    skill: str
    table: bool = True
    programs: bool = True  # Whether the subtask also runs in PoT and ICoT, where the model writes programs.
    titled: bool = False  # Whether the prompt shows the table's title.

    @property
    def name(self) -> str:
        """The displayed name, such as `Table Fact Checking`."""
        return self.file.replace("_", " ")

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes in which the subtask runs, as values of the tag `mode`."""
        if not self.table:
            return ("tcot",)
        return TABLE_MODES if self.programs else TEXT_MODES


_LANGUAGE = (
    *("Understanding", "Instruction_Following", "Hallucination_Evaluation", "Robustness_Evaluation"),
    *("Code_Generation", "Mathematical_Reasoning"),
)
SUBTASKS = (
    *(Subtask(file, "NLU", table=False, programs=False) for file in _LANGUAGE),
    Subtask("Table_Retrieval", "TU", titled=True),
    Subtask("Table_Summary", "TU", programs=False, titled=True),
    Subtask("Table_Column_Naming", "TU", programs=False),
    Subtask("Table_Title_Naming", "TU", programs=False),
    Subtask("Table_Fact_Checking", "TU", titled=True),
    Subtask("Table_Plausibility_Verification", "TU", programs=False, titled=True),
    Subtask("Table_Query", "TBO"),
    Subtask("Table_Selection", "TBO"),
    Subtask("Table_General_Operations", "TCO"),
    Subtask("Table_Domain-specific_Operations", "TCO", titled=True),
    Subtask("Table_Outlier_Detection", "DA"),
    Subtask("Table_Correlation_Analysis", "DA"),
    Subtask("Table_Hypothesis_Testing", "DA"),
    Subtask("Table_Distribution_Testing", "DA"),
    Subtask("Multi-step_Retrieval", "ADA"),
    Subtask("Multi-step_Fact_Checking", "ADA"),
    Subtask("Multi-step_Operations", "ADA"),
    Subtask("Multi-step_Correlation_Analysis", "ADA"),
    Subtask("Multi-step_Hypothesis_Testing", "ADA"),
    Subtask("Multi-step_Conditional_Calculation", "ADA"),
)


def find_subtask(name: str) -> Subtask | None:
    """Find a subtask by file stem or a record id's first part, ignoring case, dashes and plural s; None if unknown."""
    return _BY_LETTERS.get(_normalise_subtask_name(name))


def _normalise_subtask_name(name: str) -> str:
    # Ignore plural forms, in which the paper and the files differ ("Operation", "Operations").
    return re.sub(r"[^a-z]", "", name.lower()).rstrip("s")


_BY_LETTERS = {_normalise_subtask_name(subtask.file): subtask for subtask in SUBTASKS}
# The columns of the paper's Tables 2 and 3: pairs of a skill and a mode.
COLUMNS = tuple(
    (skill, column)
    for skill in SKILLS
    for column in dict.fromkeys(COLUMN_OF[mode] for each in SUBTASKS if each.skill == skill for mode in each.modes)
)


_PERCENTAGE = re.compile(r"[-+]?\d[\d.,]*\s*[%\uff05]")


@dataclass(frozen=True, slots=True)
class RecordSource:
    """The location of a record, for error messages and to find the files that the record names."""

    root: Path
    path: Path
    where: str

    def make_field_error(self, field: str, found: str, expected: str) -> DatasetError:
        return DatasetError(self.path, f"{self.where}, field {field!r}", found, expected)


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question with its tables."""

    id: str
    subtask: Subtask
    question: str  # The question, with the tables' titles if the subtask shows them.
    answer: str
    number: str | None  # The reference answer if it is a number, such as `12%`; None if it is a text.
    # Per table: `csv` (path or None), `header_rows`, and `markdown` and `html` (each empty if absent).
    tables: tuple[Mapping[str, Any], ...]
    # The rules for answers (see `rules.py`); None if the record has no rules.
    rules: Sequence[Mapping[str, Any]] | None
    cluster: str = ""  # The record's id in the file; all modes of the record and its translation share this id.


def read_records(path: Path, root: Path, limit: int) -> Iterator[QuestionRecord]:
    """Read the records of one subtask's file, a JSON list or JSON lines.

    `limit` is the maximum number of a table's characters in a prompt. A longer table text is dropped if the record
    names a CSV file, because the prompt is then written from the CSV file.
    """
    for where, raw in read_raw_records(path):
        yield _read_question_record(raw, RecordSource(root, path, where), limit)


def _read_question_record(raw: Mapping[str, Any], source: RecordSource, limit: int) -> QuestionRecord:
    name = read_field(raw, "id", str, source.path, source.where)
    subtask = find_subtask(name.split("|")[0]) or find_subtask(source.path.stem)
    if not subtask:
        raise source.make_field_error("id", repr(name), "an id that starts with the name of one of the 26 subtasks")
    question = read_field(raw, "question", str, source.path, source.where)
    titles = filter(None, _read_text_list(raw, "title", source))
    answer = _read_answer_text(raw, source)
    return QuestionRecord(
        id=name,
        subtask=subtask,
        question="\n".join([question, *titles] if subtask.titled else [question]),
        answer=answer,
        number=_read_number_answer(raw.get("number_answer"), answer, source),
        tables=_read_tables(raw, source, limit) if subtask.table else (),
        rules=_read_rules(raw, source),
    )


def _read_rules(raw: Mapping[str, Any], source: RecordSource) -> Sequence[Mapping[str, Any]] | None:
    if "rules" not in raw:
        return None
    place = f"{source.where}, field 'rules'"
    listed = require_type(raw["rules"], list, source.path, place)
    rules = [require_type(rule, dict, source.path, place) for rule in listed]
    try:
        list_broken_rules("", rules)  # Check the rules' form; an empty answer suffices.
    except ScoringError as error:
        raise source.make_field_error("rules", str(error), "rules as docs/treb.md has them") from error
    return rules


def _read_text_list(raw: Mapping[str, Any], field: str, source: RecordSource) -> list[str]:
    value = raw.get(field, [])
    texts = value if isinstance(value, list) else [value]
    return [require_type(text, str, source.path, f"{source.where}, field {field!r}") for text in texts]


def _read_answer_text(raw: Mapping[str, Any], source: RecordSource) -> str:
    if "answer" not in raw:
        # The leaderboard's test set has no references, so answers to its questions are not scored.
        if raw.get("number_answer") in {None, ""}:
            return ""
        return read_field(raw, "answer", str, source.path, source.where)
    value = raw["answer"]
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, (str, int, float)) for part in parts):
        raise source.make_field_error("answer", repr(value), "a text or a number")
    return ", ".join(map(str, parts))


def _read_number_answer(value: Any, answer: str, source: RecordSource) -> str | None:
    """Return the number as text, with `%` if the answer states a percentage; None if the record has no number."""
    if value in (None, "") or (isinstance(value, float) and math.isnan(value)):
        return None
    number = parse_number(value) if isinstance(value, (str, int, float)) else None
    if not number:
        raise source.make_field_error("number_answer", repr(value), "a number, or an empty text")
    percentages = map(parse_number, _PERCENTAGE.findall(answer))
    if number.unit != "%" and any(each and numeric_match(str(each.value), str(number.value)) for each in percentages):
        return f"{number.value}%"
    return str(value)


def _read_tables(raw: Mapping[str, Any], source: RecordSource, limit: int) -> tuple[Mapping[str, Any], ...]:
    texts = (_read_text_list(raw, field, source) for field in ("file_path", "Table_markdown", "Table_html"))
    tables = [
        {
            "csv": _find_csv_file(file, source) if file else None,
            "header_rows": _read_header_row_count(raw.get("columnslable", []), index, source),
            "markdown": markdown if not file or len(markdown) <= limit else "",
            "html": html if len(html) <= limit else "",
        }
        for index, (file, markdown, html) in enumerate(zip_longest(*texts, fillvalue=""))
        if file or markdown
    ]
    if not tables:
        raise source.make_field_error("file_path", "no table", "a CSV file, or a table in the field 'Table_markdown'")
    return tuple(tables)


def _read_header_row_count(headers: Any, index: int, source: RecordSource) -> int:
    place = f"{source.where}, field 'columnslable'"
    of_tables = require_type(headers, list, source.path, place)
    rows = require_type(of_tables[index], int, source.path, place) if index < len(of_tables) else 1
    if rows < 0:
        raise source.make_field_error("columnslable", str(rows), "a number of header rows, 0 for none")
    return rows


def _find_csv_file(name: str, source: RecordSource) -> str:
    """Find a record's CSV file, whose path is relative to the record's file or to the benchmark's folder.

    Drop leading folders of the path until a file is found, because the user may lack some of the authors' folders.
    """
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", ".")]
    for base in (source.path.parent, source.path.parent.parent, source.root):
        for start in range(len(parts)):
            # Resolve links, because the file must be below the root.
            with suppress(OSError, ValueError):  # The system refuses a path that is too long or has a null character.
                path = base.joinpath(*parts[start:]).resolve()
                if path.is_relative_to(source.root.resolve()) and path.is_file():
                    return str(path)
    raise source.make_field_error("file_path", repr(name), f"a CSV file in {source.root}")


PIECE = 1 << 20  # Number of characters that are read from a file at a time.
_COMMA = re.compile(r"\s*,\s*")
_DECODER = json.JSONDecoder()


def read_raw_records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the location (`record 3`, `line 3`) and the object for each record of a JSON list or of JSON lines.

    Files may be large, so only one record is in memory at a time.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            beginning = file.read(PIECE).lstrip()
            if not beginning:
                raise DatasetError(path, "", "nothing", "a JSON list of records, or JSON lines")
            if beginning.startswith("["):
                yield from _stream_json_list(path, beginning, file)
                return
            file.seek(0)
            for number, line in enumerate(file, 1):
                if line.strip():
                    place = f"line {number}"
                    yield place, require_type(parse_json(line, path, place), dict, path, place)
    except (OSError, UnicodeDecodeError):
        read_text(path)  # Raises an error that explains why the file cannot be read.
        raise


def _stream_json_list(path: Path, beginning: str, file: TextIO) -> Iterator[tuple[str, Mapping[str, Any]]]:
    # The bracket becomes a comma, so that a comma precedes each record.
    text, number, at = f",{beginning[1:]}", 0, 0
    while True:
        while comma := _COMMA.match(text, at):
            try:
                _, end = _DECODER.raw_decode(text, comma.end())
            except (ValueError, RecursionError):
                break
            number, place = number + 1, f"record {number + 1}"
            yield place, require_type(parse_json(text[comma.end() : end], path, place), dict, path, place)
            at = end
        # Read twice as much each time, because each attempt parses a long record again from its beginning.
        piece = file.read(max(PIECE, len(text) - at))
        if not piece:
            break
        text, at = text[at:] + piece, 0
    if text[at:].strip() != "]":
        # The list is empty or faulty. Reading the file as a whole raises an error with line and column.
        yield from islice(read_json_records(path), number, None)
