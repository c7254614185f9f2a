"""Read items from files of text and JSON; errors state the file, the place, the value found and what was expected."""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evalsuite.core.errors import DatasetError, shorten_to_beginning
from evalsuite.core.json_codec import dumps

T = TypeVar("T")
NAMES = {
    dict: "an object", list: "a list", str: "a string",
    int: "a whole number", float: "a finite number", bool: "true or false",
}  # fmt: skip
_REQUIRED: Any = object()  # The default of a field that must not be missing.


@dataclass(frozen=True, slots=True)
class SourceItem:
    """An object of a file, with the file and the location (`line 3`) that error messages state."""

    fields: Mapping[str, Any]
    path: Path
    where: str

    def read(self, name: str, kind: type[T], default: Any = _REQUIRED) -> T:
        """Return a field; raise DatasetError if it has another type, or if it is missing and has no default."""
        if name in self.fields:
            return require_type(self.fields[name], kind, self.path, self.locate(name))
        if default is not _REQUIRED:
            return default  # type: ignore[no-any-return]
        there_is = f"only the fields {', '.join(map(repr, self.fields))}" if self.fields else "an empty object"
        raise self.make_error(there_is, f"the field {name!r}")

    def read_optional(self, name: str, kind: type[T]) -> T:
        """Return a field, or an empty value of its type if the field is missing or null."""
        return kind() if self.fields.get(name) is None else self.read(name, kind)

    def read_list(self, name: str, kind: type[T], *, optional: bool = False) -> list[T]:
        """Return a list whose elements must have the type `kind`; an optional list may be missing or null."""
        return [
            require_type(element, kind, self.path, where)
            for where, element in self._locate_elements(name, optional=optional)
        ]

    def read_items(self, name: str, *, optional: bool = False) -> list["SourceItem"]:
        """Return the objects of a list; an optional list may be missing or null."""
        return [
            require_item(element, self.path, where) for where, element in self._locate_elements(name, optional=optional)
        ]

    def _locate_elements(self, name: str, *, optional: bool) -> Iterator[tuple[str, Any]]:
        elements = self.read_optional(name, list) if optional else self.read(name, list)
        field = self.locate(name)
        return ((f"{field}, element {number}", element) for number, element in enumerate(elements, 1))

    def read_item(self, name: str, *, optional: bool = False) -> "SourceItem":
        """Return an object within this one; an optional object may be missing or null."""
        fields = self.read_optional(name, dict) if optional else self.read(name, dict)
        return SourceItem(fields, self.path, self.locate(name))

    @property
    def place(self) -> str:
        """The file and the location in it."""
        return f"{self.path}, {self.where}"

    def locate(self, name: str) -> str:
        """Return the location of a field within the file."""
        return f"{self.where}, field {name!r}".removeprefix(", ")

    def make_error(self, found: str, expected: str, name: str = "") -> DatasetError:
        """Make an error about the field `name`, or about the whole object."""
        return DatasetError(self.path, self.locate(name) if name else self.where, found, expected)


PUBLISHED = "a file in the published format"


def read_text(path: Path, expected: str = PUBLISHED) -> str:
    """Read a file of UTF-8 text, with or without a byte-order mark; if it is missing, state what was expected."""
    return "".join(read_lines(path, expected, at_once=True))


def read_lines(path: Path, expected: str = PUBLISHED, *, at_once: bool = False) -> Iterator[str]:
    """Yield a file's lines one by one, or its whole text `at_once`.

    Only a line feed ends a line, because JSON strings may have other line ends. The file is read only once, because it
    may be a pipe.
    """
    before = 0
    try:
        with path.open("rb") as stream:
            for line in [stream.read()] if at_once else stream:
                # Files from Windows editors may begin with a byte-order mark.
                yield line.decode("utf-8").removeprefix("" if before else "\ufeff")
                before += len(line)
    except FileNotFoundError:
        raise DatasetError(path, "", "no such file", expected) from None
    except OSError as error:
        raise DatasetError(path, "", error.strerror or str(error), "a readable file") from error
    except UnicodeDecodeError as error:
        place = f"byte {before + error.start}"
        raise DatasetError(path, place, f"the byte 0x{error.object[error.start]:02x}", "UTF-8 text") from error


def parse_json(
    text: str, path: Path, where: str = "", *, expected: str = "JSON", refuse_surrogates: bool = True
) -> Any:
    """Parse JSON; raise DatasetError if it is malformed or nested too deep, or has a number of thousands of digits.

    Args:
        where: the location of `text` within the file; empty if `text` is the whole file.
        expected: what error messages expect in place of a text that is not JSON.
        refuse_surrogates: whether an escape of a lone surrogate, which cannot be written as UTF-8, is an error.
    """
    try:
        value = json.loads(text)
        if refuse_surrogates and ("\\ud" in text or "\\uD" in text):
            json.dumps(value, ensure_ascii=False).encode()  # Encoding raises an error for a lone surrogate.
    except json.JSONDecodeError as error:
        place = where or f"line {error.lineno}, column {error.colno}"
        problem = "the end of the text" if error.pos >= len(text.rstrip()) else repr(text[error.pos : error.pos + 20])
        raise DatasetError(path, place, problem, f"{expected} ({error.msg})") from error
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
) -> Iterator[SourceItem]:
    """Yield the objects of a JSON list with their locations (`record 3`).

    If `expected` is not empty, an empty list raises an error that states `expected`.
    """
    values = read_json(path, list)
    if expected and not values:
        raise DatasetError(path, "", "an empty list", expected)
    for number, value in enumerate(values, first_number):
        yield require_item(value, path, f"{record_noun} {number}")


def read_json_lines(path: Path, expected: str = PUBLISHED, *, refuse_surrogates: bool = True) -> Iterator[SourceItem]:
    """Yield the object of each line of a JSON-lines file with its location (`line 3`); skip blank lines."""
    for number, line in enumerate(read_lines(path, expected), 1):
        if line.strip():
            place = f"line {number}"
            value = parse_json(
                line, path, place, expected="one JSON object per line", refuse_surrogates=refuse_surrogates
            )
            yield require_item(value, path, place)


def require_item(value: Any, path: Path, where: str) -> SourceItem:
    """Return an object as an item; raise DatasetError if the value is not an object."""
    return SourceItem(require_type(value, dict, path, where), path, where)


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
