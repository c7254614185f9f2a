"""Read items from a file (JSON Lines, JSON, CSV, TSV, YAML, Parquet) or from a data set of the package `datasets`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evalsuite.core.errors import DatasetError, SettingsError

SourceItem = tuple[str, Mapping[str, Any]]
"""A description of the item's position, and the item."""

CSV_LIMIT = 2**31 - 1
"""Maximum characters of one field."""


def source_items(path: str | Path, split: str) -> Iterator[SourceItem]:
    """Read the items of a file, or of a data set that is not a file.

    Args:
        path: the file, or the name of a data set on the hub.
        split: the split of a data set from the hub.

    Raises:
        DatasetError: the file does not exist or cannot be read; a faulty item raises this error when it is
            reached.
        SettingsError: the extension is unknown, or a required package is missing; the message says how to
            install it.
    """
    file = Path(path)
    reader = READERS.get(file.suffix.lower())
    if reader is not None:
        if not file.is_file():
            missing = "a folder" if file.is_dir() else "no such file"
            raise DatasetError(str(path), "", missing, "a file; relative paths begin where pytest was started")
        return reader(file)
    if file.exists() or not isinstance(path, str) or "/" not in path:
        raise SettingsError(
            f"load_samples({str(path)!r}): not a file of a known kind; there are {', '.join(READERS)}, "
            "and names of the Hugging Face hub as org/name"
        )
    return _hub_rows(path, split)


def _text(file: Path) -> str:
    try:
        # Editors on Windows begin a file with a byte order mark.
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(str(file), f"byte {error.start}", "bytes that are not UTF-8", "text in UTF-8") from error
    except OSError as error:
        raise DatasetError(str(file), "", str(error.strerror), "a file that can be read") from error


def _lines(file: Path) -> Iterator[str]:
    """Lines are read one by one and end only at line feeds, because JSON allows other line ends within a text."""
    before = 0
    try:
        with file.open("rb") as stream:
            for line in stream:
                # Editors on Windows begin a file with a byte order mark.
                yield line.decode("utf-8").removeprefix("" if before else "\ufeff")
                before += len(line)
    except UnicodeDecodeError as error:
        raise DatasetError(
            str(file), f"byte {before + error.start}", "bytes that are not UTF-8", "text in UTF-8"
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
                raise DatasetError(str(file), where, f"invalid JSON ({error})", "one JSON object a line") from error
            yield where, _item(value, file, where)


def _json(file: Path) -> Iterator[SourceItem]:
    try:
        value = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise DatasetError(str(file), "", f"invalid JSON ({error})", "a list of objects") from error
    return _read_list(value, file)


def _yaml(file: Path) -> Iterator[SourceItem]:
    try:
        import yaml
    except ImportError as error:
        raise SettingsError(f"{file}: reading YAML needs the package pyyaml: pip install pyyaml") from error
    try:
        value = yaml.safe_load(_text(file))
    except yaml.YAMLError as error:
        raise DatasetError(str(file), "", f"invalid YAML ({error})", "a list of objects") from error
    return _read_list(value, file)


def _read_list(value: Any, file: Path) -> Iterator[SourceItem]:
    lists = [inner for inner in value.values() if isinstance(inner, list)] if isinstance(value, Mapping) else [value]
    if len(lists) != 1 or not isinstance(lists[0], list):
        raise DatasetError(
            str(file), "", f"{type(value).__name__} with {len(lists)} lists", "a list of objects, or an object with one"
        )
    for number, item in enumerate(lists[0], 1):
        yield f"item {number}", _item(item, file, f"item {number}")


def _read_separated(separator: str) -> Callable[[Path], Iterator[SourceItem]]:
    def read(file: Path) -> Iterator[SourceItem]:
        # The limit applies to the whole process, so restore it for other code.
        usual = csv.field_size_limit(CSV_LIMIT)
        reader = csv.reader(io.StringIO(_text(file), newline=""), delimiter=separator, strict=True)
        try:
            names = next(reader, [])
            if len(set(names)) < len(names) or not all(names):
                raise DatasetError(str(file), "line 1", f"the names {names}", "a name of its own for each column")
            for values in reader:
                if len(values) not in {0, len(names)}:
                    raise DatasetError(
                        str(file), f"line {reader.line_num}", f"{len(values)} fields", f"{len(names)}, as in line 1"
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


def _parquet_by_arrow(file: Path) -> Iterator[SourceItem]:
    """Read Parquet with pyarrow, which many environments have, if duckdb is not installed."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise SettingsError(
            f"{file}: reading Parquet needs duckdb or pyarrow: pip install 'evalsuite[build]', or pip install pyarrow"
        ) from error
    try:
        number = 0
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=1000):
                for item in batch.to_pylist():
                    number += 1
                    yield f"row {number}", item
    except ArrowException as error:
        raise DatasetError(str(file), "", f"an invalid Parquet file ({str(error)[:200]})", "a Parquet file") from error


def _parquet(file: Path) -> Iterator[SourceItem]:
    try:
        import duckdb
    except ImportError:
        yield from _parquet_by_arrow(file)
        return
    try:
        result = duckdb.execute("SELECT * FROM read_parquet(?)", [str(file)])
        names = [column[0] for column in result.description]
        number = 0
        while rows := result.fetchmany(1000):
            for values in rows:
                number += 1
                yield f"row {number}", dict(zip(names, values, strict=True))
    except duckdb.Error as error:
        raise DatasetError(str(file), "", f"an invalid Parquet file ({str(error)[:200]})", "a Parquet file") from error


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
        raise DatasetError(name, f"split {split}", str(error)[:300], "a data set that can be loaded") from error
    return ((f"row {number}", row) for number, row in enumerate(rows, 1))


READERS: Mapping[str, Callable[[Path], Iterator[SourceItem]]] = {
    ".jsonl": _json_lines,
    ".json": _json,
    ".csv": _read_separated(","),
    ".tsv": _read_separated("\t"),
    ".yaml": _yaml,
    ".yml": _yaml,
    ".parquet": _parquet,
}
