"""Make samples from files (JSON Lines, JSON, CSV, TSV, YAML, Parquet), the hub or published data sets; read SQLite."""

import csv
import glob
import io
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.types import TARGET_KINDS, Sample, is_valid_target
from evalsuite.samples.items import SourceItem, parse_json, read_json_lines, read_text, require_item

Field = str | Callable[[Mapping[str, Any]], Any]
"""The name of an item's field, with dots for nested fields; or a function of the item."""


def load_samples(
    path: str | Path,
    *,
    input: Field = "input",  # noqa: A002 - named like the attribute of Sample
    target: Field | None = "target",
    id: Field | None = None,  # noqa: A002 - named like the attribute of Sample
    tags: Sequence[str] | Mapping[str, Field] = (),
    metadata: Sequence[str] | Mapping[str, Field] | None = None,
    split: str = "test",
) -> list[Sample]:
    """Read samples from a file of JSON Lines, JSON, CSV, TSV, YAML or Parquet, according to its extension.

    A path `org/name` or `org/name:configuration` is a data set on the Hugging Face hub, read by the package `datasets`.

    Args:
        path: the file or data set. A JSON or YAML file contains a list of items, or an object with one such list.
        input: the field with the question, or a function of the item. A field name may have dots (`question.text`) for
            nested fields. The value is text, or a list of messages in the OpenAI format.
        target: the field with the correct answer or with a list of correct answers; None if the items have no answers.
        id: the field with the id; with None, ids are the items' numbers from 1.
        tags: names of fields that become tags; or a mapping from tag to field, or to a function of the item.
        metadata: fields that become metadata, in the same form as `tags`; None means all but those of `input`, `target`
            and `id`.
        split: the split (part of a data set on the hub) to read.

    Raises:
        DatasetError: the file has a broken line, a missing field or a duplicate id.
        SettingsError: the extension is unknown, or a required package is missing.
    """
    return list(iter_samples(path, input=input, target=target, id=id, tags=tags, metadata=metadata, split=split))


def iter_samples(
    path: str | Path,
    *,
    input: Field = "input",  # noqa: A002 - named like the attribute of Sample
    target: Field | None = "target",
    id: Field | None = None,  # noqa: A002 - named like the attribute of Sample
    tags: Sequence[str] | Mapping[str, Field] = (),
    metadata: Sequence[str] | Mapping[str, Field] | None = None,
    split: str = "test",
) -> Iterator[Sample]:
    """Read samples one by one, so that `--limit N` reads only the first N items of a large file.

    The arguments and errors are those of `load_samples`; an error is raised only when the faulty item is reached.
    Example: `@benchmark("capitals", iter_samples("capitals.jsonl"))`. JSON Lines and Parquet files are read piece by
    piece, other files as a whole.
    """
    yield from make_samples(SampleFields(input, target, id, tags, metadata), path, _read_items(path, split))


def make_samples(fields: "SampleFields", source: str | Path, items: Iterator[SourceItem]) -> Iterator[Sample]:
    """Make samples from items.

    Raises:
        DatasetError: an item lacks a field, an id is repeated, or there are zero items.
    """
    place_of: dict[str, str] = {}
    for number, item in enumerate(items, 1):
        sample = fields.make_sample(item, number)
        if sample.id in place_of:
            raise item.make_error(f"the id {sample.id!r}, which {place_of[sample.id]} also has", "unique ids")
        place_of[sample.id] = item.where
        yield sample
    if not place_of:
        raise DatasetError(str(source), "", "no items", "at least one")


@dataclass(frozen=True, slots=True)
class SampleFields:
    """The fields of an item that become a sample's id, input, target, tags and metadata; see `load_samples`."""

    input: Field
    target: Field | None
    id: Field | None
    tags: Sequence[str] | Mapping[str, Field]
    metadata: Sequence[str] | Mapping[str, Field] | None

    def make_sample(self, item: SourceItem, number: int) -> Sample:
        """Make a sample from an item; without a field for the id, `number` becomes the id."""
        identity = number if self.id is None else _read_field(item, self.id)
        if not isinstance(identity, str | int) or identity == "":
            raise item.make_error(f"the id {identity!r}", "text or an integer; name its field with id=")
        question = _read_field(item, self.input)
        if not isinstance(question, str | list) or not question:
            raise item.make_error(
                f"the input {question!r:.80}", "text or a list of messages; name its field with input="
            )
        target = None if self.target is None else _read_field(item, self.target)
        if not is_valid_target(target):
            expected = f"{TARGET_KINDS}; target= also takes a function of the item"
            raise item.make_error(f"the target {target!r:.80}", expected)
        used = {field for field in (self.input, self.target, self.id) if isinstance(field, str)}
        metadata = [name for name in item.fields if name not in used] if self.metadata is None else self.metadata
        try:
            return Sample(identity, question, target, _read_fields(item, self.tags), _read_fields(item, metadata))
        except (KeyError, TypeError, AttributeError) as error:
            raise item.make_error(
                f"messages that cannot be read ({error})", "messages in the OpenAI chat format"
            ) from error


def _read_fields(item: SourceItem, fields: Sequence[str] | Mapping[str, Field]) -> dict[str, Any]:
    if not isinstance(fields, Mapping):
        fields = {name: name for name in ((fields,) if isinstance(fields, str) else fields)}
    return {name: _read_field(item, field) for name, field in fields.items()}


def _read_field(item: SourceItem, field: Field) -> Any:
    if callable(field):
        try:
            return field(item.fields)
        except Exception as error:
            found = f"an item on which {getattr(field, '__name__', field)} raised {error!r}"
            raise item.make_error(found, "an item that the function can read") from error
    if field in item.fields:
        return item.fields[field]
    value: Any = item.fields
    for name in field.split("."):
        if not isinstance(value, Mapping) or name not in value:
            available = ", ".join(map(repr, item.fields)) or "none"
            expected = f"the field {field!r}; choose one of the item's fields"
            raise item.make_error(f"the fields {available}", expected)
        value = value[name]
    return value


def _read_items(path: str | Path, split: str) -> Iterator[SourceItem]:
    file = Path(path)
    reader = READERS.get(file.suffix.lower())
    if reader is not None:
        if not file.is_file():
            missing = "a folder" if file.is_dir() else "no such file"
            expected = "a file; relative paths start at the directory where pytest was started"
            raise DatasetError(str(path), "", missing, expected)
        return reader(file)
    if file.exists() or not isinstance(path, str) or "/" not in path:
        raise SettingsError(
            f"load_samples({str(path)!r}): not a file with a known extension ({', '.join(READERS)}), nor a data set of "
            "the Hugging Face hub (org/name)"
        )
    return _read_hub_dataset(path, split)


def _read_json_items(file: Path) -> Iterator[SourceItem]:
    content = parse_json(read_text(file), file, expected="a list of objects", refuse_surrogates=False)
    return _iterate_listed_items(content, file)


def parse_yaml(text: str, file: Path) -> Any:
    """Parse YAML with the optional package pyyaml."""
    try:
        import yaml
    except ImportError as error:
        raise SettingsError(f"{file}: reading YAML needs the package pyyaml: pip install pyyaml") from error
    try:
        return yaml.safe_load(text)
    except Exception as error:  # PyYAML raises many kinds of exceptions for wrong tags, dates and numbers.
        raise DatasetError(str(file), "", f"invalid YAML ({error})", "a file of YAML") from error


def _read_yaml_items(file: Path) -> Iterator[SourceItem]:
    return _iterate_listed_items(parse_yaml(read_text(file), file), file)


def _iterate_listed_items(content: Any, file: Path) -> Iterator[SourceItem]:
    """Yield the items of the list that a file contains, either at its top or in its top object."""
    candidates = content.values() if isinstance(content, Mapping) else [content]
    lists = [inner for inner in candidates if isinstance(inner, list)]
    if len(lists) != 1:
        found = f"an object with {len(lists)} lists" if isinstance(content, Mapping) else f"{content!r:.60}"
        raise DatasetError(str(file), "", found, "a list of objects, or an object with one list")
    for number, item in enumerate(lists[0], 1):
        yield require_item(item, file, f"item {number}")


def _read_csv_rows(file: Path, separator: str) -> Iterator[SourceItem]:
    # Restore the field limit afterwards, because the limit applies to the whole process.
    usual = csv.field_size_limit(2**31 - 1)
    # Read with universal line ends: each line end, even inside quotes, becomes a line feed.
    text = io.StringIO(read_text(file), newline=None)
    reader = csv.reader(text, delimiter=separator, strict=True)
    try:
        names = next(reader, [])
        if len(set(names)) < len(names) or not all(names):
            raise DatasetError(str(file), "line 1", f"the names {names}", "a different name for each column")
        for values in reader:
            where = f"line {reader.line_num}"
            if len(values) not in {0, len(names)}:
                raise DatasetError(str(file), where, f"{len(values)} fields", f"{len(names)}, as in line 1")
            if values:
                yield SourceItem(dict(zip(names, values, strict=True)), file, where)
    except csv.Error as error:
        where = f"line {reader.line_num}"
        raise DatasetError(str(file), where, str(error), "separated values whose quotes are closed") from error
    finally:
        csv.field_size_limit(usual)


def _read_parquet(file: Path) -> Iterator[SourceItem]:
    try:
        import duckdb
    except ImportError:
        rows, failure = _open_parquet_by_arrow(file)
    else:
        rows, failure = _read_parquet_by_duckdb(file), duckdb.Error
    try:
        yield from (SourceItem(row, file, f"row {number}") for number, row in enumerate(rows, 1))
    except failure as error:
        raise DatasetError(str(file), "", f"an invalid Parquet file ({str(error)[:200]})", "a Parquet file") from error


def _read_parquet_by_duckdb(file: Path) -> Iterator[Mapping[str, Any]]:
    import duckdb

    # A connection of its own, because a second query on the shared one would replace this query's rows.
    with duckdb.connect() as connection:
        result = connection.execute("SELECT * FROM read_parquet(?)", [glob.escape(str(file))])
        names = [column[0] for column in result.description]
        while rows := result.fetchmany(1000):
            yield from (dict(zip(names, values, strict=True)) for values in rows)


def _open_parquet_by_arrow(file: Path) -> tuple[Iterator[Mapping[str, Any]], type[Exception]]:
    """Return an iterator that reads rows with pyarrow, and the exception class that it raises for an invalid file."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise SettingsError(
            f"{file}: reading Parquet needs duckdb or pyarrow: pip install 'evalsuite[build]', or pip install pyarrow"
        ) from error

    def read_batches() -> Iterator[Mapping[str, Any]]:
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=1000):
                yield from batch.to_pylist()

    return read_batches(), ArrowException


def _read_hub_dataset(name: str, split: str) -> Iterator[SourceItem]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise SettingsError(
            f"load_samples({name!r}): no such file; to load a data set of the Hugging Face hub: pip install datasets"
        ) from error
    repository, _, configuration = name.partition(":")
    try:
        rows = load_dataset(repository, configuration or None, split=split)
    except Exception as error:
        raise DatasetError(name, f"split {split}", str(error)[:300], "a data set that can be loaded") from error
    return (SourceItem(row, Path(name), f"row {number}") for number, row in enumerate(rows, 1))


READERS: Mapping[str, Callable[[Path], Iterator[SourceItem]]] = {
    ".jsonl": partial(read_json_lines, refuse_surrogates=False),
    ".json": _read_json_items,
    ".csv": partial(_read_csv_rows, separator=","),
    ".tsv": partial(_read_csv_rows, separator="\t"),
    ".yaml": _read_yaml_items,
    ".yml": _read_yaml_items,
    ".parquet": _read_parquet,
}


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading; bytes of a text that are not UTF-8 are dropped.

    Raises:
        sqlite3.Error: the file cannot be opened.
    """
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1 << 20)
        connection.text_factory = lambda text: text.decode(errors="ignore")
        yield connection
    finally:
        connection.close()


def read_table_sql(database: sqlite3.Connection) -> dict[str, str]:
    """Map each table's name to the SQL statement that created it."""
    statement = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    return dict(database.execute(f"{statement} ORDER BY name"))


def read_rows(database: sqlite3.Connection, table: str) -> Iterator[Sequence[Any]]:
    """Yield the names of a table's columns, then its rows.

    Raises:
        sqlite3.Error: the table cannot be read.
    """
    quoted = '"' + table.replace('"', '""') + '"'
    cursor = database.execute(f"SELECT * FROM {quoted}")  # noqa: S608 - an identifier, quoted
    return chain([[column[0] for column in cursor.description]], cursor)


FILE = "file"  # Name of a field that is added to each item: the path of the item's file in the data set's folder.


@dataclass(frozen=True, slots=True)
class PublishedDataset:
    """A data set in its published form."""

    # Glob patterns in the data set's folder; only the first pattern that matches any file is used.
    files: tuple[str, ...]
    fields: SampleFields
    # Function that reads the items of a file; None selects a reader by the file's extension.
    read: Callable[[Path], Iterator[SourceItem]] | None = None

    def find_files(self, folder: Path) -> list[Path]:
        """List the data set's files, sorted by name."""
        matches = (
            sorted(path for path in folder.glob(pattern) if path.suffix.lower() in READERS) for pattern in self.files
        )
        return next(filter(None, matches), [])

    def iter_samples(self, folder: Path) -> Iterator[Sample]:
        """Read the samples.

        Raises:
            DatasetError: a file is missing or does not have the published form, or there are zero items.
        """
        paths = self.find_files(folder)
        if not paths:
            raise DatasetError(folder, "", "no questions", f"files as published, such as {self.files[0]}")
        items = (
            replace(item, fields={FILE: path.relative_to(folder).as_posix(), **item.fields})
            for path in paths
            for item in (self.read or READERS[path.suffix.lower()])(path)
        )
        return make_samples(self.fields, folder, items)


def make_label_reader(name: str, meanings: Mapping[Any, str]) -> Callable[[Mapping[str, Any]], str]:
    """Make a function that maps a field's value to its text in `meanings`; any other value raises ValueError."""

    def read_label(item: Mapping[str, Any]) -> str:
        if item[name] not in meanings:
            raise ValueError(f"{name!r} is {item[name]!r:.60}, not one of {', '.join(map(repr, meanings))}")
        return meanings[item[name]]

    return read_label


def read_text_field(item: Mapping[str, Any], name: str) -> str:
    """Return an item's field; raise TypeError unless it is text."""
    if not isinstance(item[name], str):
        raise TypeError(f"{name!r} is {item[name]!r:.60}, not text")
    return str(item[name])
