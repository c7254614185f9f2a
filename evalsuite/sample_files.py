"""Samples from files: JSON Lines, JSON, CSV, TSV, YAML and Parquet, and data sets of the package `datasets`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalsuite.errors import DatasetError, SettingsError
from evalsuite.types import Sample

SourceItem = tuple[str, Mapping[str, Any]]
"""Where an item stands, in words, and the item."""
Field = str | Callable[[Mapping[str, Any]], Any]
"""The name of an item's field, with dots for fields of fields; or a function of the item."""

CSV_LIMIT = 2**31 - 1
"""Characters of one field, at most."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Which fields of an item make a sample; see `load_samples`."""

    input: Field
    target: Field | None
    id: Field | None
    tags: Sequence[str] | Mapping[str, Field]
    metadata: Sequence[str] | Mapping[str, Field] | None

    def sample(self, path: str, where: str, number: int, item: Mapping[str, Any]) -> Sample:
        """One item as a sample; its id is its number where no field is named."""
        identity = number if self.id is None else _value(item, self.id, path, where)
        if not isinstance(identity, str | int) or identity == "":
            raise DatasetError(
                path, where, f"the id {identity!r}", "text or an integer; name its field with id="
            )
        question = _value(item, self.input, path, where)
        if not isinstance(question, str | list) or not question:
            raise DatasetError(
                path,
                where,
                f"the input {question!r:.80}",
                "text or a list of messages; name its field with input=",
            )
        try:
            return Sample(
                identity,
                question,
                None if self.target is None else _value(item, self.target, path, where),
                {name: _value(item, field, path, where) for name, field in _named(self.tags).items()},
                self._metadata(item, path, where),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise DatasetError(
                path, where, f"messages that cannot be read ({error})", "messages in the OpenAI chat format"
            ) from error

    def _metadata(self, item: Mapping[str, Any], path: str, where: str) -> Mapping[str, Any]:
        if self.metadata is None:
            used = {field for field in (self.input, self.target, self.id) if isinstance(field, str)}
            return {name: value for name, value in item.items() if name not in used}
        return {name: _value(item, field, path, where) for name, field in _named(self.metadata).items()}


def _named(fields: Sequence[str] | Mapping[str, Field]) -> Mapping[str, Field]:
    if isinstance(fields, Mapping):
        return fields
    names = (fields,) if isinstance(fields, str) else fields
    return {name: name for name in names}


def _value(item: Mapping[str, Any], field: Field, path: str, where: str) -> Any:
    if callable(field):
        try:
            return field(item)
        except Exception as error:
            raise DatasetError(
                path,
                where,
                f"an item on which {getattr(field, '__name__', field)} raised {error!r}",
                "one it can read",
            ) from error
    if field in item:
        return item[field]
    value: Any = item
    for name in field.split("."):
        if not isinstance(value, Mapping) or name not in value:
            there = ", ".join(map(repr, item)) or "none"
            raise DatasetError(
                path, where, f"the fields {there}", f"the field {field!r}; name fields that are there"
            )
        value = value[name]
    return value


def load_samples(
    path: str | Path,
    *,
    input: Field = "input",  # noqa: A002 - the sample's own word
    target: Field | None = "target",
    id: Field | None = None,  # noqa: A002 - likewise
    tags: Sequence[str] | Mapping[str, Field] = (),
    metadata: Sequence[str] | Mapping[str, Field] | None = None,
    split: str = "test",
) -> list[Sample]:
    """Samples from a file of JSON Lines, JSON, CSV, TSV, YAML or Parquet, told by the end of its name.

    What is no file and has no such ending is a name of the Hugging Face hub, for which the package `datasets` must
    be installed (`org/name`, or `org/name:configuration`).

    Args:
        path: the file; JSON and YAML hold a list of items, or one list within an object.
        input: the field of the question, with dots for fields of fields (`question.text`), or a function of the
            item; text, or a list of messages in the OpenAI format.
        target: the field of the right answer or answers; None where there is none.
        id: the field of the id; None numbers the items from 1.
        tags: fields that become tags; a mapping gives them other names or makes them by functions.
        metadata: fields that become metadata, likewise; None is all that are neither input, target nor id.
        split: of a data set of the hub.

    Raises:
        DatasetError: the file cannot be read as what it should be: a broken line, a missing field, a doubled id.
        SettingsError: the ending is unknown, or a package is missing that says what to install.
    """
    return list(
        iter_samples(path, input=input, target=target, id=id, tags=tags, metadata=metadata, split=split)
    )


def iter_samples(
    path: str | Path,
    *,
    input: Field = "input",  # noqa: A002 - the sample's own word
    target: Field | None = "target",
    id: Field | None = None,  # noqa: A002 - likewise
    tags: Sequence[str] | Mapping[str, Field] = (),
    metadata: Sequence[str] | Mapping[str, Field] | None = None,
    split: str = "test",
) -> Iterator[Sample]:
    """As `load_samples`, one sample after the other: of a large file, `--limit N` then reads the first N items.

    `@benchmark("capitals", iter_samples("capitals.jsonl"))`. JSON Lines and Parquet are read piece by piece, other
    files at once.

    Args:
        path: see `load_samples`, as for all others.
        input: of the question.
        target: of the right answer or answers.
        id: of the id.
        tags: fields that become tags.
        metadata: fields that become metadata.
        split: of a data set of the hub.

    Raises:
        DatasetError: as there, when the item at fault is reached.
        SettingsError: as there.
    """
    fields = Fields(input, target, id, tags, metadata)
    place_of: dict[str, str] = {}
    for number, (where, item) in enumerate(_rows(path, split), 1):
        sample = fields.sample(str(path), where, number, item)
        if sample.id in place_of:
            raise DatasetError(
                str(path),
                where,
                f"the id {sample.id!r} of {place_of[sample.id]} again",
                "ids that are unique",
            )
        place_of[sample.id] = where
        yield sample
    if not place_of:
        raise DatasetError(str(path), "", "no items", "at least one")


def _rows(path: str | Path, split: str) -> Iterator[SourceItem]:
    file = Path(path)
    reader = READERS.get(file.suffix.lower())
    if reader is not None:
        if not file.is_file():
            raise DatasetError(
                str(path), "", "no such file", "a file; relative paths begin where pytest was started"
            )
        return reader(file)
    if file.exists() or not isinstance(path, str) or "/" not in path:
        raise SettingsError(
            f"load_samples({str(path)!r}): not a file of a known kind; there are {', '.join(READERS)}, "
            "and names of the Hugging Face hub as org/name"
        )
    return _hub_rows(path, split)


def _text(file: Path) -> str:
    try:
        # Windows' editors begin a file with a mark.
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(
            str(file), f"byte {error.start}", "bytes that are no UTF-8", "text in UTF-8"
        ) from error
    except OSError as error:
        raise DatasetError(str(file), "", str(error.strerror), "a file that can be read") from error


def _lines(file: Path) -> Iterator[str]:
    """The lines of a text, read one by one; they end at line feeds alone, as JSON allows other ends within a text."""
    before = 0
    try:
        with file.open("rb") as stream:
            for line in stream:
                # Windows' editors begin a file with a mark.
                yield line.decode("utf-8").removeprefix("" if before else "\ufeff")
                before += len(line)
    except UnicodeDecodeError as error:
        raise DatasetError(
            str(file), f"byte {before + error.start}", "bytes that are no UTF-8", "text in UTF-8"
        ) from error
    except OSError as error:
        raise DatasetError(str(file), "", str(error.strerror), "a file that can be read") from error


def _item(value: Any, file: Path, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DatasetError(str(file), where, f"{value!r:.60}", "an object with named fields")
    return value


def _json_lines(file: Path) -> Iterator[SourceItem]:
    for number, line in enumerate(_lines(file), 1):
        if line.strip():
            where = f"line {number}"
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DatasetError(
                    str(file), where, f"what is no JSON ({error})", "one JSON object a line"
                ) from error
            yield where, _item(value, file, where)


def _json(file: Path) -> Iterator[SourceItem]:
    try:
        value = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise DatasetError(str(file), "", f"what is no JSON ({error})", "a list of objects") from error
    return _listed(value, file)


def _yaml(file: Path) -> Iterator[SourceItem]:
    try:
        import yaml
    except ImportError as error:
        raise SettingsError(f"{file}: reading YAML needs the package pyyaml: pip install pyyaml") from error
    try:
        value = yaml.safe_load(_text(file))
    except yaml.YAMLError as error:
        raise DatasetError(str(file), "", f"what is no YAML ({error})", "a list of objects") from error
    return _listed(value, file)


def _listed(value: Any, file: Path) -> Iterator[SourceItem]:
    lists = (
        [inner for inner in value.values() if isinstance(inner, list)]
        if isinstance(value, Mapping)
        else [value]
    )
    if len(lists) != 1 or not isinstance(lists[0], list):
        raise DatasetError(
            str(file),
            "",
            f"{type(value).__name__} with {len(lists)} lists",
            "a list of objects, or an object with one",
        )
    for number, item in enumerate(lists[0], 1):
        yield f"item {number}", _item(item, file, f"item {number}")


def _separated(separator: str) -> Callable[[Path], Iterator[SourceItem]]:
    def read(file: Path) -> Iterator[SourceItem]:
        # A setting of the whole process, which others rely on.
        usual = csv.field_size_limit(CSV_LIMIT)
        reader = csv.reader(io.StringIO(_text(file), newline=""), delimiter=separator, strict=True)
        try:
            names = next(reader, [])
            if len(set(names)) < len(names) or not all(names):
                raise DatasetError(
                    str(file), "line 1", f"the names {names}", "a name of its own for each column"
                )
            for values in reader:
                if len(values) not in {0, len(names)}:
                    raise DatasetError(
                        str(file),
                        f"line {reader.line_num}",
                        f"{len(values)} fields",
                        f"{len(names)}, as in line 1",
                    )
                if values:
                    yield f"line {reader.line_num}", dict(zip(names, values, strict=True))
        except csv.Error as error:
            raise DatasetError(
                str(file), f"line {reader.line_num}", str(error), "separated values with quotes that end"
            ) from error
        finally:
            csv.field_size_limit(usual)

    return read


def _parquet(file: Path) -> Iterator[SourceItem]:
    try:
        import duckdb
    except ImportError as error:
        raise SettingsError(
            f"{file}: reading Parquet needs the extra `build`: pip install 'evalsuite[build]'"
        ) from error
    try:
        result = duckdb.execute("SELECT * FROM read_parquet(?)", [str(file)])
        names = [column[0] for column in result.description]
        number = 0
        while rows := result.fetchmany(1000):
            for values in rows:
                number += 1
                yield f"row {number}", dict(zip(names, values, strict=True))
    except duckdb.Error as error:
        raise DatasetError(
            str(file), "", f"what is no Parquet ({str(error)[:200]})", "a Parquet file"
        ) from error


def _hub_rows(name: str, split: str) -> Iterator[SourceItem]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise SettingsError(
            f"load_samples({name!r}): not a file; if it is a name of the Hugging Face hub: pip install datasets"
        ) from error
    repository, _, configuration = name.partition(":")
    try:
        rows = load_dataset(repository, configuration or None, split=split)
    except Exception as error:
        raise DatasetError(
            name, f"split {split}", str(error)[:300], "a data set that can be loaded"
        ) from error
    return ((f"row {number}", row) for number, row in enumerate(rows, 1))


READERS: Mapping[str, Callable[[Path], Iterator[SourceItem]]] = {
    ".jsonl": _json_lines,
    ".json": _json,
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".yaml": _yaml,
    ".yml": _yaml,
    ".parquet": _parquet,
}
