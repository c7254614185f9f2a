"""One record of an official file, checked field by field."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import expect, take
from evalsuite.benchmarks.treb.record_stream import raw_records
from evalsuite.benchmarks.treb.rules import broken_rules
from evalsuite.benchmarks.treb.subtasks import Subtask, find_subtask
from evalsuite.core.errors import DatasetError, ScoringError
from evalsuite.metrics.numbers import numeric_match, parse_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PERCENTAGE = re.compile(r"[-+]?\d[\d.,]*\s*[%\uff05]")


@dataclass(frozen=True, slots=True)
class RecordSource:
    """Where a record stands, for messages and for the files that it names.

    Attributes:
        root: the folder of the whole benchmark; no record reads a file outside.
        path: the file of the record.
        where: the place in it.
    """

    root: Path
    path: Path
    where: str

    def fault(self, field: str, found: str, expected: str) -> DatasetError:
        """The error for one field."""
        return DatasetError(self.path, f"{self.where}, field {field!r}", found, expected)


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question with its tables.

    Attributes:
        id: as in the file.
        subtask: one of the 26.
        question: with the tables' titles where the subtask shows them.
        answer: the reference.
        number: the reference as a number, a percentage with its sign; None where it is no number.
        tables: for each table its `csv` (a path, or None), `header_rows`, `markdown` and `html` (or "").
        rules: what an answer is checked for, see `rules`; None where the record brings none.
        cluster: what its modes share with each other and with a translation of it: its id in the file.
    """

    id: str
    subtask: Subtask
    question: str
    answer: str
    number: str | None
    tables: tuple[Mapping[str, Any], ...]
    rules: Sequence[Mapping[str, Any]] | None
    cluster: str = ""


def read_records(path: Path, root: Path, shown: int) -> Iterator[QuestionRecord]:
    """The records of one subtask's file, a JSON list or JSON lines.

    Args:
        path: the file.
        root: the folder of the whole benchmark.
        shown: characters of a table's text that a prompt takes at most; a longer one that is not needed to know
            the table is let go of.

    Raises:
        DatasetError: the file or a record is not as published.
    """
    for where, raw in raw_records(path):
        yield _record(raw, RecordSource(root, path, where), shown)


def _record(raw: Mapping[str, Any], source: RecordSource, shown: int) -> QuestionRecord:
    name = take(raw, "id", str, source.path, source.where)
    subtask = find_subtask(name.split("|")[0]) or find_subtask(source.path.stem)
    if not subtask:
        raise source.fault("id", repr(name), "an id that starts with the name of one of the 26 subtasks")
    question = take(raw, "question", str, source.path, source.where)
    titles = [title for title in _texts(raw, "title", source) if title]
    answer = _answer(raw, source)
    return QuestionRecord(
        id=name,
        subtask=subtask,
        question="\n".join([question, *titles] if subtask.titled else [question]),
        answer=answer,
        number=_number(raw.get("number_answer"), answer, source),
        tables=_tables(raw, source, shown) if subtask.table else (),
        rules=_rules(raw, source),
    )


def _rules(raw: Mapping[str, Any], source: RecordSource) -> Sequence[Mapping[str, Any]] | None:
    if "rules" not in raw:
        return None
    place = f"{source.where}, field 'rules'"
    rules = [
        expect(rule, dict, source.path, place) for rule in expect(raw["rules"], list, source.path, place)
    ]
    try:
        broken_rules("", rules)  # any answer shows whether they can be checked
    except ScoringError as error:
        raise source.fault("rules", str(error), "rules as docs/treb.md has them") from error
    return rules


def _texts(raw: Mapping[str, Any], field: str, source: RecordSource) -> list[str]:
    value = raw.get(field, [])
    several = value if isinstance(value, list) else [value]
    return [expect(text, str, source.path, f"{source.where}, field {field!r}") for text in several]


def _answer(raw: Mapping[str, Any], source: RecordSource) -> str:
    if "answer" not in raw:
        # The leaderboard's test set has no references: its questions are answered, and not scored.
        if raw.get("number_answer") in {None, ""}:
            return ""
        return take(raw, "answer", str, source.path, source.where)
    value = raw["answer"]
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, (str, int, float)) for part in parts):
        raise source.fault("answer", repr(value), "a text or a number")
    return ", ".join(map(str, parts))


def _number(value: Any, answer: str, source: RecordSource) -> str | None:
    if value in (None, "") or (isinstance(value, float) and math.isnan(value)):
        return None
    number = parse_number(value) if isinstance(value, (str, int, float)) else None
    if not number:
        raise source.fault("number_answer", repr(value), "a number, or an empty text")
    percentages = map(parse_number, _PERCENTAGE.findall(answer))
    if number.unit != "%" and any(
        each and numeric_match(str(each.value), str(number.value)) for each in percentages
    ):
        return f"{number.value}%"
    return str(value)


def _tables(raw: Mapping[str, Any], source: RecordSource, shown: int) -> tuple[Mapping[str, Any], ...]:
    files, markdown, html = (
        _texts(raw, field, source) for field in ("file_path", "Table_markdown", "Table_html")
    )
    count = max(len(files), len(markdown))
    headers = raw.get("columnslable", [])
    tables = [
        {
            "csv": _csv(_nth(files, index), source),
            "header_rows": _header_rows(headers, index, source),
            "markdown": _nth(markdown, index, shown if _nth(files, index) else None),
            "html": _nth(html, index, shown),
        }
        for index in range(count)
        if _nth(files, index) or _nth(markdown, index)
    ]
    if not tables:
        raise source.fault("file_path", "no table", "a CSV file, or a table in the field 'Table_markdown'")
    return tuple(tables)


def _nth(texts: Sequence[str], index: int, longest: int | None = None) -> str:
    text = texts[index] if index < len(texts) else ""
    return text if longest is None or len(text) <= longest else ""


def _header_rows(headers: Any, index: int, source: RecordSource) -> int:
    several = expect(headers, list, source.path, f"{source.where}, field 'columnslable'")
    if index >= len(several):
        return 1
    rows = expect(several[index], int, source.path, f"{source.where}, field 'columnslable'")
    if rows < 0:
        raise source.fault("columnslable", str(rows), "a number of header rows, 0 for none")
    return rows


def _csv(written: str, source: RecordSource) -> str | None:
    """The CSV file beside the record's file, or at the same place below the benchmark's folder.

    The authors' paths may start at a folder of theirs: leading parts are dropped until a file is found.
    """
    if not written:
        return None
    parts = [part for part in PurePosixPath(written.replace("\\", "/")).parts if part not in ("/", ".")]
    for base in (source.path.parent, source.path.parent.parent, source.root):
        for start in range(len(parts)):
            path = _file_below(source.root, base.joinpath(*parts[start:]))
            if path:
                return str(path)
    raise source.fault("file_path", repr(written), f"a CSV file in {source.root}")


def _file_below(root: Path, written: Path) -> Path | None:
    """The file itself, if it is one below the root, wherever links lead."""
    try:
        path = written.resolve()
        return path if path.is_relative_to(root.resolve()) and path.is_file() else None
    except (OSError, ValueError):  # too long, or with a null character: no file has such a name
        return None
