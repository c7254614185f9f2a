"""Define the 26 subtasks of TReB (arXiv 2506.18421, Table 1) and its options, and load samples from its files.

The official files and the shipped files have the same format.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import cycle, zip_longest
from pathlib import Path, PurePosixPath
from typing import Any, TextIO

from evalsuite.benchmarks.treb.rules import list_broken_rules
from evalsuite.core.errors import DatasetError, ScoringError
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Dataset, Setup
from evalsuite.core.types import Sample
from evalsuite.metrics.numbers import numeric_match, parse_number
from evalsuite.metrics.text import HAN
from evalsuite.samples.items import SourceItem, parse_json, read_json_lines, read_text, require_item, require_type

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


@dataclass(frozen=True, slots=True)
class TrebOptions:
    """The keyword arguments of TReB in `@benchmark`."""

    max_tokens: int = 2048  # Maximum tokens of one model answer.
    # Sampling temperature, by default the paper's; `--model-param temperature=...` overrides it.
    temperature: float | None = 0.2
    # The model's context length in tokens; 8192 in the paper. In TCoT, the limit of a table in characters is half of
    # this number, as in the published code. In PoT and ICoT, the description of the data frames may use about half of
    # the context.
    context: int = 8192
    timeout: float = 10.0  # Time limit in seconds for one program (PoT) or one round of code (ICoT).
    published: bool = False  # Whether the report shows the paper's results; `--mode published` has the same effect.

    @classmethod
    def from_setup(cls, setup: Setup) -> "TrebOptions":
        """Read and check the options of a run."""
        return read_options("TReB", cls, {**setup.args, **({"published": True} if "published" in setup.modes else {})})


SHIPPED = Path(__file__).parent / "data" / "samples"
# Folders with files of subtasks: `English` and `Chinese` in the published archive, `JSON` in the leaderboard's files.
FOLDERS = (".", "English", "Chinese", "JSON")
MODES = {
    "auto": "official files: all modes of each subtask; shipped samples: one per subtask, the modes in turn",
    "tcot": "reasoning in words, the table as Markdown and once more as HTML",
    "tcot_markdown": "reasoning in words, the table as Markdown",
    "tcot_html": "reasoning in words, the table as HTML",
    "pot": "the model writes one program, whose output is the answer",
    "icot": "plan, program and result in up to three rounds, then the answer",
    "published": "adds the paper's results to the report, as rows marked as published",
}
DEFAULT_MODES = ("auto",)


def load_dataset(setup: Setup) -> Dataset:
    """Load one sample per record and mode; for shipped records without requested modes, load one sample per subtask."""
    root = setup.data or SHIPPED
    paths = find_files(root)
    options = TrebOptions.from_setup(setup)
    records: list[Sample] = []
    counts: Counter[str] = Counter()
    for record in (record for path in paths for record in read_records(path, root, options.context // 2)):
        counts[record.id] += 1
        number = counts[record.id]  # English and Chinese files share ids, so make them unique with a suffix.
        records.append(record if number == 1 else replace(record, id=f"{record.id}#{number}"))
    wanted = set(setup.modes) - {"auto", "published"}  # Without a requested mode, each subtask runs in all its modes.
    if "tcot" in wanted:
        wanted.update(TEXT_MODES)
    if wanted.intersection(TEXT_MODES):
        wanted.add("tcot")
    if setup.data is None and not wanted:
        pairs = list(_choose_record_per_subtask(records))
    else:
        pairs = [(each, mode) for each in records for mode in _list_modes(each) if not wanted or mode in wanted]
    # Store the option `published` as a tag of the cases, because the report cannot read the options.
    shown = {"published": "shown"} if options.published else {}
    samples = [replace(each, id=f"{each.id}|{mode}", tags={**each.tags, "mode": mode, **shown}) for each, mode in pairs]
    if setup.data is not None:
        names = ", ".join(path.name for path in paths) if len(paths) <= 3 else f"{len(paths)} files"
        return Dataset(samples, f"{names}, {len(records)} records")
    used = len({record.id for record, _ in pairs})
    return Dataset(samples, "shipped samples" + (f", {used} of {len(records)} records" if used < len(records) else ""))


def find_files(root: Path) -> list[Path]:
    """List the files of the subtasks, in the order of the paper's Table 1 within each folder."""
    ordered = [
        (folder, SUBTASKS.index(subtask), path)
        for folder, name in enumerate(FOLDERS)
        for path in (root / name).glob("*.json*")
        if path.suffix in (".json", ".jsonl") and (subtask := find_subtask(path.stem))
    ]
    if not ordered:
        expected = f"files named after subtasks ({SUBTASKS[6].file}.json, ...), there or in English/ and Chinese/"
        raise DatasetError(root, "", "no file of a subtask", expected)
    return [path for _, _, path in sorted(ordered)]


def _choose_record_per_subtask(records: Iterable[Sample]) -> Iterator[tuple[Sample, str]]:
    """Pair the first record of each subtask with one of its modes, in rotation, so that every mode occurs."""
    turns = {subtask.modes: cycle(subtask.modes) for subtask in SUBTASKS}
    seen = set()
    for record in records:
        if record.tags["subtask"] not in seen:
            seen.add(record.tags["subtask"])
            yield record, next(turns[_list_modes(record)])


def _list_modes(record: Sample) -> tuple[str, ...]:
    return next(subtask.modes for subtask in SUBTASKS if subtask.name == record.tags["subtask"])


_PERCENTAGE = re.compile(r"[-+]?\d[\d.,]*\s*[%\uff05]")


def read_records(path: Path, root: Path, limit: int) -> Iterator[Sample]:
    """Read the records of one subtask's file, a JSON list or JSON lines, as samples that still lack a mode.

    `limit` is the maximum number of a table's characters in a prompt. A longer table text is dropped if the record
    names a CSV file, because the prompt is then written from the CSV file.
    """
    for item in read_raw_records(path):
        name = item.read("id", str)
        subtask = find_subtask(name.split("|")[0]) or find_subtask(path.stem)
        if not subtask:
            raise item.make_error(repr(name), "an id that starts with the name of one of the 26 subtasks", "id")
        question = item.read("question", str)
        titles = filter(None, _read_text_list(item, "title"))
        text = "\n".join([question, *titles] if subtask.titled else [question])
        answer = _read_answer_text(item)
        tags = {
            "skill": subtask.skill,
            "subtask": subtask.name,
            "mode": "",
            "language": "zh" if HAN.search(text) else "en",
            # A record's cases in all modes and languages form one cluster, because their scores are not independent.
            "cluster": name,
        }
        metadata = {
            # Per table: `csv` (path or None), `header_rows`, and `markdown` and `html` (each empty if absent).
            "tables": _read_tables(item, root, limit) if subtask.table else (),
            # The reference answer if it is a number, such as `12%`; None if it is a text.
            "number": _read_number_answer(item, answer),
            # The rules for answers (see `rules.py`); None if the record has no rules.
            "rules": _read_rules(item),
        }
        yield Sample(name, text, answer, tags, metadata)


def _read_rules(item: SourceItem) -> Sequence[Mapping[str, Any]] | None:
    if "rules" not in item.fields:
        return None
    rules = item.read_list("rules", dict)
    try:
        list_broken_rules("", rules)  # Check the rules' form; an empty answer suffices.
    except ScoringError as error:
        raise item.make_error(str(error), "rules as docs/treb.md has them", "rules") from error
    return rules


def _read_text_list(item: SourceItem, field: str) -> list[str]:
    value = item.fields.get(field, [])
    texts = value if isinstance(value, list) else [value]
    return [require_type(text, str, item.path, item.locate(field)) for text in texts]


def _read_answer_text(item: SourceItem) -> str:
    # The leaderboard's test set has no references, so answers to its questions are not scored.
    if "answer" not in item.fields and item.fields.get("number_answer") in (None, ""):
        return ""
    value = item.fields["answer"] if "answer" in item.fields else item.read("answer", str)
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, (str, int, float)) for part in parts):
        raise item.make_error(repr(value), "a text or a number", "answer")
    return ", ".join(map(str, parts))


def _read_number_answer(item: SourceItem, answer: str) -> str | None:
    """Return the number as text, with `%` if the answer states a percentage; None if the record has no number."""
    value = item.fields.get("number_answer")
    if value in (None, "") or (isinstance(value, float) and math.isnan(value)):
        return None
    number = parse_number(value) if isinstance(value, (str, int, float)) else None
    if not number:
        raise item.make_error(repr(value), "a number, or an empty text", "number_answer")
    percentages = map(parse_number, _PERCENTAGE.findall(answer))
    if number.unit != "%" and any(each and numeric_match(str(each.value), str(number.value)) for each in percentages):
        return f"{number.value}%"
    return str(value)


def _read_tables(item: SourceItem, root: Path, limit: int) -> tuple[Mapping[str, Any], ...]:
    header_rows = item.read("columnslable", list, [])
    tables = []
    texts = (_read_text_list(item, field) for field in ("file_path", "Table_markdown", "Table_html"))
    for index, (file, markdown, html) in enumerate(zip_longest(*texts, fillvalue="")):
        if file or markdown:
            place = item.locate("columnslable")
            count = require_type(header_rows[index], int, item.path, place) if index < len(header_rows) else 1
            if count < 0:
                raise item.make_error(str(count), "a number of header rows, 0 for none", "columnslable")
            csv_file = _find_csv_file(file, item.path, root) if file else None
            if file and csv_file is None:
                raise item.make_error(repr(file), f"a CSV file in {root}", "file_path")
            kept = markdown if not file or len(markdown) <= limit else ""
            shown = html if len(html) <= limit else ""
            tables.append({"csv": csv_file, "header_rows": count, "markdown": kept, "html": shown})
    if not tables:
        raise item.make_error("no table", "a CSV file, or a table in the field 'Table_markdown'", "file_path")
    return tuple(tables)


def _find_csv_file(name: str, path: Path, root: Path) -> str | None:
    """Find a record's CSV file, whose path is relative to the record's file or to the benchmark's folder; None if none.

    Drop leading folders of the path until a file is found, because the user may lack some of the authors' folders.
    """
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", ".")]
    for base in (path.parent, path.parent.parent, root):
        for start in range(len(parts)):
            # Resolve links, because the file must be below the root.
            with suppress(OSError, ValueError):  # The system refuses a path that is too long or has a null character.
                found = base.joinpath(*parts[start:]).resolve()
                if found.is_relative_to(root.resolve()) and found.is_file():
                    return str(found)
    return None


PIECE = 1 << 20  # Number of characters that are read from a file at a time.
# A comma that precedes a record, and what may follow the last record (with a comma if the list is empty, see below).
_COMMA = re.compile(r"\s*,\s*+(?!\])")
_END = re.compile(r"\s*(?:,?\s*\]\s*)?")
_DECODER = json.JSONDecoder()
_LONGEST_TOKEN = 16  # A literal or an escape that the end of the text cuts off has fewer characters.


def read_raw_records(path: Path) -> Iterator[SourceItem]:
    """Yield the records of a JSON list or of JSON lines one at a time, because files may be large."""
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            beginning = file.read(PIECE)
            if not beginning.strip():
                raise DatasetError(path, "", "nothing", "a JSON list of records, or JSON lines")
            is_list = beginning.lstrip().startswith("[")
            yield from _stream_json_list(path, beginning, file) if is_list else read_json_lines(path)
    except (OSError, UnicodeDecodeError):
        read_text(path)  # Raises an error that explains why the file cannot be read.
        raise


def _stream_json_list(path: Path, beginning: str, file: TextIO) -> Iterator[SourceItem]:
    # The bracket becomes a comma, so that a comma precedes each record.
    text, number, at, is_beginning = beginning.replace("[", ",", 1), 0, 0, True
    while True:
        while comma := _COMMA.match(text, at):
            place = f"record {number + 1}"
            if text.startswith("[", comma.end()):
                raise DatasetError(path, place, "a list", "an object")
            end, is_cut = _find_end_of_value(text, comma.end())
            if end is None:
                break
            yield require_item(parse_json(text[comma.end() : end], path, place), path, place)
            number, at = number + 1, end
        else:
            place, is_cut = f"the place after record {number}", bool(_END.fullmatch(text, at))
        # After a fault, read no more, because the file may be large. Otherwise, read twice as much each time, because
        # each attempt parses a long record again from its beginning.
        piece = file.read(max(PIECE, len(text) - at)) if is_cut else ""
        if not piece:
            break
        text, at, is_beginning = text[at:] + piece, 0, is_beginning and not at
    # Unless the remaining text is the end of the list, parsing raises an error. The error states the line and the
    # column if `text` is still the beginning of the file, and otherwise the record.
    if is_beginning:
        parse_json(text.replace(",", "[", 1), path)
    else:
        parse_json(f"[{{}}{text[at:]}", path, place)


def _find_end_of_value(text: str, start: int) -> tuple[int | None, bool]:
    """Find the position after the JSON value at `start`; None if the value is faulty or cut off by the text's end.

    Returns:
        The position, and whether the value is cut off.
    """
    try:
        return _DECODER.raw_decode(text, start)[1], False
    except json.JSONDecodeError as error:
        return None, error.msg.startswith("Unterminated string") or error.pos > len(text) - _LONGEST_TOKEN
    except (ValueError, RecursionError):
        return None, False
