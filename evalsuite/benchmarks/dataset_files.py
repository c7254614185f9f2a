"""Readers of published files; errors state the file, the location, the value found and the value expected."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from evalsuite.core.errors import DatasetError, shorten_to_beginning
from evalsuite.core.json_codec import dumps

T = TypeVar("T")
AGREEMENT = "agreement.json"  # File that states how often evalsuite's scorers agree with the benchmark's checker.
NAMES = {
    dict: "an object", list: "a list", str: "a string",
    int: "a whole number", float: "a finite number", bool: "true or false",
}  # fmt: skip


def read_text(path: Path) -> str:
    """Read a file of UTF-8 text, with or without a byte-order mark."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise DatasetError(path, "", "no such file", "a file in the published format") from None
    except OSError as error:
        raise DatasetError(path, "", error.strerror or str(error), "a readable file") from error
    except UnicodeDecodeError as error:
        place = f"byte {error.start}"
        raise DatasetError(path, place, f"the byte 0x{error.object[error.start]:02x}", "UTF-8 text") from error


def parse_json(text: str, path: Path, where: str = "") -> Any:
    """Parse JSON; error messages give `where` as the location of `text` within the file."""
    try:
        value = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            # Raise an error if a JSON escape is a lone surrogate, because a surrogate cannot be written as UTF-8.
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        place = where or f"line {error.lineno}, column {error.colno}"
        problem = "the end of the text" if error.pos >= len(text.rstrip()) else repr(text[error.pos : error.pos + 20])
        raise DatasetError(path, place, problem, f"JSON ({error.msg})") from error
    except UnicodeEncodeError as error:
        problem = f"half of a surrogate pair after {error.object[max(0, error.start - 30) : error.start]!r}"
        raise DatasetError(path, where, problem, "whole characters") from error
    except RecursionError as error:
        problem = "lists or objects nested too deep to be read"
        raise DatasetError(path, where, problem, "JSON of a few levels") from error
    except ValueError as error:
        raise DatasetError(path, where, "a number of thousands of digits", "numbers of usual size") from error
    return value


def read_json(path: Path, kind: type[T]) -> T:
    """Read a JSON file whose top-level value must have the type `kind`."""
    return require_type(parse_json(read_text(path), path), kind, path, "the top of the file")


def read_json_records(
    path: Path, record_noun: str = "record", *, first_number: int = 1, expected: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the location (`record 3`) and the object for each element of a JSON list.

    If `expected` is not empty, an empty list raises an error that states `expected`.
    """
    values = read_json(path, list)
    if expected and not values:
        raise DatasetError(path, "", "an empty list", expected)
    for number, value in enumerate(values, first_number):
        place = f"{record_noun} {number}"
        yield place, require_type(value, dict, path, place)


def read_json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the location (`line 3`) and the object for each line of a JSON-lines file; skip blank lines."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            place = f"line {number}"
            yield place, require_type(parse_json(line, path, place), dict, path, place)


def require_type(value: Any, kind: type[T], path: Path, where: str) -> T:
    """Return the value; raise DatasetError if it has another type, or is a float that is not finite.

    An int that a float can hold counts as a float, but a bool does not.
    """
    fits = isinstance(value, (int, float) if kind is float else kind)
    # Python's parsers of JSON and YAML accept NaN, infinities, and whole numbers too large for a float.
    fits = fits and not (kind is float and not abs(value) <= sys.float_info.max)
    if not fits or (isinstance(value, bool) and kind is not bool):
        found = shorten_to_beginning(dumps(value), 60)
        raise DatasetError(path, where, found, NAMES.get(kind, kind.__name__))
    return value  # type: ignore[no-any-return]


def read_field(record: Mapping[str, Any], name: str, kind: type[T], path: Path, where: str) -> T:
    """Return one field of a record; raise DatasetError if it is missing or has another type."""
    if name not in record:
        there_is = f"only the fields {', '.join(map(repr, record))}" if record else "an empty object"
        raise DatasetError(path, where, there_is, f"the field {name!r}")
    return require_type(record[name], kind, path, f"{where}, field {name!r}".removeprefix(", "))


def read_optional_field(record: Mapping[str, Any], name: str, kind: type[T], path: Path, where: str) -> T:
    """Return one field of a record, or an empty value of its type if the field is missing or null."""
    return kind() if record.get(name) is None else read_field(record, name, kind, path, where)
