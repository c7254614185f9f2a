"""Reads ToolEyes' published files: the queries and the documents of the tool library."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import expect, read_json, take
from evalsuite.core.errors import DatasetError
from evalsuite.tools.documents import ASK_TO_USER, FINISH, ToolDocument

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCENARIOS = {
    "TG": "text generation",
    "DU": "data understanding",
    "RS": "real-time search",
    "PL": "personal life",
    "IR": "information retrieval",
    "AM": "application manipulation",
    "FT": "financial transactions",
}
LIBRARY = "Tool_Library"
DOCUMENTS = "config_gpt4.json"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what function calling takes
_TYPES = {"string", "integer", "number", "boolean", "array", "object", "null"}


@dataclass(frozen=True, slots=True)
class Query:
    """One query as the file has it.

    Attributes:
        id: unique within the file.
        text: what the user asks for.
        scenario: one of `SCENARIOS`.
        subject: category and subcategory of its tools, joined with a slash.
        user: what a scripted user replies when asked; only in the shipped file.
        reference: the right answer, to be read by people; only in the shipped file.
    """

    id: str
    text: str
    scenario: str
    subject: str
    user: tuple[str, ...] = ()
    reference: str | None = None


def read_queries(path: Path) -> list[Query]:
    """The queries of a file: a JSON list of objects with `query`, `path` and `scenario`.

    An object may also have an `id` (else queries are numbered within their scenario), a list `user` of
    replies, and a `reference`.

    Raises:
        DatasetError: the file is not of this form.
    """
    counts: dict[str, int] = {}
    queries: dict[str, Query] = {}
    for number, record in enumerate(read_json(path, list), 1):
        query = _query(expect(record, dict, path, f"record {number}"), path, f"record {number}", counts)
        if query.id in queries:
            raise DatasetError(path, f"record {number}, field 'id'", repr(query.id), "an id of its own")
        queries[query.id] = query
    if not queries:
        raise DatasetError(path, "", "an empty list", "at least one query")
    return list(queries.values())


def _query(record: Mapping[str, Any], path: Path, where: str, counts: dict[str, int]) -> Query:
    text, scenario = (take(record, name, str, path, where) for name in ("query", "scenario"))
    if not text.strip():
        raise DatasetError(path, f"{where}, field 'query'", repr(text), "what the user asks for")
    if scenario not in SCENARIOS:
        raise DatasetError(
            path, f"{where}, field 'scenario'", repr(scenario), f"one of {', '.join(SCENARIOS)}"
        )
    counts[scenario] = counts.get(scenario, 0) + 1
    numbered = f"{scenario.lower()}-{counts[scenario]}"
    replies = take(record, "user", list, path, where) if "user" in record else []
    return Query(
        id=take(record, "id", str, path, where) if "id" in record else numbered,
        text=text,
        scenario=scenario,
        subject=_subject(take(record, "path", str, path, where), path, f"{where}, field 'path'"),
        user=tuple(expect(reply, str, path, f"{where}, field 'user'") for reply in replies),
        reference=take(record, "reference", str, path, where) if "reference" in record else None,
    )


def _subject(written: str, path: Path, where: str) -> str:
    parts = PurePosixPath(written).parts
    if len(parts) < 3 or parts[-3] != LIBRARY or ".." in parts[-2:]:
        raise DatasetError(
            path, where, repr(written), f"a path that ends in {LIBRARY}/<category>/<subcategory>"
        )
    return "/".join(parts[-2:])


@dataclass(frozen=True, slots=True)
class Library:
    """The documents of a tool library.

    Attributes:
        subjects: by category and subcategory, the documents of its file in their order, `ask_to_user` and
            `finish` included. Names may repeat within a file, as they do in three published ones.
    """

    subjects: Mapping[str, tuple[ToolDocument, ...]]

    @property
    def categories(self) -> set[str]:
        """The names of the categories."""
        return {subject.split("/")[0] for subject in self.subjects}

    @property
    def tools(self) -> list[ToolDocument]:
        """All tools but `ask_to_user` and `finish`."""
        controls = {ASK_TO_USER.name, FINISH.name}
        return [
            document
            for subject in self.subjects.values()
            for document in subject
            if document.name not in controls
        ]


def read_library(folder: Path) -> Library:
    """The documents below a folder, from its files `<category>/<subcategory>/config_gpt4.json`.

    Raises:
        DatasetError: there are none, or one is not of the published form.
    """
    paths = sorted(folder.glob(f"*/*/{DOCUMENTS}"))
    if not paths:
        raise DatasetError(folder, "", "no tools", f"files <category>/<subcategory>/{DOCUMENTS}")
    return Library({"/".join(path.parts[-3:-1]): _documents(path) for path in paths})


def _documents(path: Path) -> tuple[ToolDocument, ...]:
    origin = "/".join(path.parts[-3:-1])
    documents = tuple(
        _document(expect(record, dict, path, f"tool {number}"), origin, path, f"tool {number}")
        for number, record in enumerate(read_json(path, list), 1)
    )
    if not documents:
        raise DatasetError(path, "", "an empty list", "at least one tool")
    return documents


def _document(record: Mapping[str, Any], origin: str, path: Path, where: str) -> ToolDocument:
    name = take(record, "name", str, path, where)
    if not _NAME.fullmatch(name):
        raise DatasetError(
            path, f"{where}, field 'name'", repr(name[:80]), "1 to 64 letters, digits, _ and -"
        )
    where = f"{where} ({name})"
    schema = take(record, "parameters", dict, path, where)
    properties = take(schema, "properties", dict, path, where)
    for parameter, about in properties.items():
        place = f"{where}, parameter {parameter!r}"
        kind = take(expect(about, dict, path, place), "type", str, path, place)
        if kind not in _TYPES:
            raise DatasetError(path, place, f"the type {kind!r}", f"one of {', '.join(sorted(_TYPES))}")
    for parameter in take(schema, "required", list, path, where):
        if expect(parameter, str, path, f"{where}, field 'required'") not in properties:
            raise DatasetError(path, where, f"the required parameter {parameter!r}", "one of its properties")
    if any(set(about) - {"type", "description"} for about in properties.values()):
        _check_schema(schema, path, where)
    return ToolDocument(name, take(record, "description", str, path, where), schema, origin)


def _check_schema(schema: Mapping[str, Any], path: Path, where: str) -> None:
    """Refuses what would break on the first call: a malformed schema, or one that refers to another."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if '"$ref"' in json.dumps(schema):
        raise DatasetError(path, where, "a reference ($ref)", "a document that stands alone")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise DatasetError(path, f"{where}, {error.json_path}", error.message, "a JSON schema") from error
