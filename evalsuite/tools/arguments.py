r"""Reads one JSON value or Python literal from the start of a text, without ever evaluating anything.

`ast.literal_eval` is not used: it warns about escapes that models like to write (`get\_name`), cannot say
where a literal ends when more text follows, and can be made to exhaust the stack.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from evalsuite.core.phrases import beginning, ends_of_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.tools.documents import ToolDocument

MAX_DEPTH = 40
_WORDS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_WORD = re.compile(r"[A-Za-z]+")
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9_]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPACE = re.compile(r"\s*")
_STRINGS = {
    quote: re.compile(rf"{quote}((?:(?!{quote})[^\\]|\\.)*+){quote}", re.DOTALL) for quote in ("'''", '"""', "'", '"')
}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {
    "\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b",
    "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip


def read_value(text: str) -> tuple[Any, int]:
    """Read the value at the start of a text; return it and where it ends.

    JSON is tried first; line breaks inside its strings are let pass, as models write them. Then Python's
    literals: dicts with string keys, lists, tuples (read as lists), strings, numbers, `True`, `False` and
    `None`.
    """
    try:
        value, end = _JSON.raw_decode(text)
    except (ValueError, RecursionError):
        reader = _PythonReader(text)
        return reader.value(0), reader.at
    if _is_deeper(value, MAX_DEPTH):
        raise ValueError(f"the value is nested more than {MAX_DEPTH} deep")
    return value, end


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth + 1):
        level = [
            child
            for inner in level
            if isinstance(inner, (dict, list))
            for child in (inner.values() if isinstance(inner, dict) else inner)
        ]
        if not level:
            return False
    return True


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:20]} is too large")
    return number


_JSON = json.JSONDecoder(strict=False, parse_constant=_no_constant, parse_float=_finite)


class _PythonReader:
    """A recursive-descent reader; `at` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            self.fail(f"is nested more than {MAX_DEPTH} deep")
        start = self.peek()
        if start == "{":
            return self.mapping(depth)
        if start and start in "[(":
            return self.sequence(depth)
        if start and start in "'\"":
            return self.string()
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return self.number(number.group())
        return self.word()

    def mapping(self, depth: int) -> dict[str, Any]:
        pairs: dict[str, Any] = {}
        self.at += 1
        while self.peek() != "}":
            if self.peek() not in {"'", '"'}:
                self.fail("is not a quoted name")
            name = self.string()
            self.expect(":")
            pairs[name] = self.value(depth + 1)
            if self.peek() != "}":
                self.expect(",")
        self.at += 1
        return pairs

    def sequence(self, depth: int) -> Any:
        items, close, commas = [], {"[": "]", "(": ")"}[self.text[self.at]], 0
        self.at += 1
        while self.peek() != close:
            items.append(self.value(depth + 1))
            if self.peek() != close:
                self.expect(",")
                commas += 1
        self.at += 1
        return items[0] if close == ")" and len(items) == 1 and not commas else items

    def string(self) -> str:
        for quote, pattern in _STRINGS.items():
            if self.text.startswith(quote, self.at):
                matched = pattern.match(self.text, self.at)
                if not matched:
                    self.fail("begins a string that never ends")
                self.at = matched.end()
                return _ESCAPE.sub(_unescape, matched.group(1))
        raise AssertionError(self.at)  # the caller has seen a quote

    def number(self, digits: str) -> int | float:
        return _finite(digits) if set(digits) & set(".eE") else int(digits)

    def word(self) -> bool | None:
        word = _WORD.match(self.text, self.at)
        if not word or word.group() not in _WORDS:
            self.fail("is neither a JSON value nor a Python literal")
        self.at = word.end()
        return _WORDS[word.group()]

    def peek(self) -> str:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.text[self.at : self.at + 1]

    def expect(self, sign: str) -> None:
        if self.peek() != sign:
            self.fail(f"stands where {sign!r} was expected")
        self.at += 1

    def fail(self, why: str) -> NoReturn:
        shown = repr(self.text[self.at : self.at + 20]) if self.at < len(self.text) else "the end of the text"
        raise ValueError(f"{shown} at character {self.at + 1} {why}")


def _unescape(escape: re.Match[str]) -> str:
    code = escape.group(1)
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        if number > 0x10FFFF:
            raise ValueError(f"\\{code} is not a character")
        return chr(number)
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPED.get(code, escape.group())


MAX_CHARACTERS = 100_000
# Of names and faults as the model is told them.
LONGEST_NAME = 60
LONGEST_FAULT = 160
FaultKind = Literal[
    "unknown_tool", "unknown_parameter", "missing_parameter", "wrong_type", "escaped_name", "after_finish"
]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a call."""

    kind: FaultKind  # To count by.
    words: str  # A sentence for the model.


def parse_arguments(text: str) -> tuple[dict[str, Any], str]:
    """Parse the arguments at the start of a text; return them and what follows."""
    text = text.strip()
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the arguments are {len(text)} characters long, more than {MAX_CHARACTERS}")
    value, end = read_value(text)
    if not isinstance(value, dict):
        message = f"the arguments are {text[:20]!r}, not an object of names and values"
        raise ValueError(message)  # noqa: TRY004 - the text is wrong, not the caller's type
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("the arguments hold half of a surrogate pair, which is not a character") from error
    return value, text[end:].strip()


def check_arguments(document: ToolDocument, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Convert arguments to the tool's types; return them and everything that is wrong with them.

    Values are converted to the documented type if nothing is lost: published documents type every parameter as a
    string while models write numbers, and the other way round. A null for an optional parameter counts as leaving it
    out.
    """
    properties, required = document.properties, document.required
    further = document.further
    unknown = [name for name in arguments if name not in properties and further is None]
    checked = {
        name: fit_value(value, document.follow_reference(properties.get(name, further or {})))
        for name, value in arguments.items()
        if (name in properties or further is not None)
        and not (value is None and name not in required and not document.takes_null(name))
    }
    faults = [
        Fault("unknown_parameter", f"{document.name} has no parameter {beginning(name, LONGEST_NAME)!r}")
        for name in unknown
    ]
    faults += [
        Fault("missing_parameter", f"{document.name} needs the parameter {beginning(name, LONGEST_NAME)!r}")
        for name in required
        if name not in checked
    ]
    faults += [
        fault
        for name in checked
        for fault in _type_faults(name, checked[name], document.whole(properties.get(name, further or {})))
    ]
    if not faults:
        faults += _combination_faults(document, checked)
    if any("\\" in name for name in unknown):
        faults.append(Fault("escaped_name", "names are written without backslashes"))
    return checked, tuple(faults)


def _type_faults(name: str, value: Any, schema: Mapping[str, Any]) -> list[Fault]:
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(schema).iter_errors(value)
    return [
        Fault(
            "wrong_type", f"parameter {beginning(name, LONGEST_NAME)!r}: {ends_of_line(error.message, LONGEST_FAULT)}"
        )
        for error in sorted(errors, key=lambda error: (list(map(str, error.absolute_path)), error.message))
    ]


def _combination_faults(document: ToolDocument, arguments: Mapping[str, Any]) -> list[Fault]:
    """Violations of what the schema says about several arguments at once: `oneOf`, `anyOf`, `dependentRequired` ..."""
    from jsonschema import Draft202012Validator

    alone = {"type", "properties", "required", "additionalProperties"}
    together = {key: value for key, value in document.parameters.items() if key not in alone}
    errors = Draft202012Validator(together).iter_errors(dict(arguments))
    return [
        Fault("wrong_type", f"the parameters together: {ends_of_line(error.message, LONGEST_FAULT)}")
        for error in errors
    ]


def fit_value(value: Any, schema: Mapping[str, Any]) -> Any:
    """Convert a value to the type that the schema demands, or return it unchanged if that is not obvious.

    If the schema allows several types, the first one counts, unless the value already has one of the others.
    """
    demanded = schema.get("type")
    if isinstance(demanded, (list, tuple)):
        if _has_type(value, demanded):
            return value
        demanded = next((kind for kind in demanded if kind != "null"), "null")
    if demanded == "string" and isinstance(value, (bool, int, float, list, dict)):
        return json.dumps(value, ensure_ascii=False)
    if demanded in {"integer", "number"} and isinstance(value, str):
        value = _as_number(value)
    if demanded == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if demanded == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    if demanded == "array" and isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [fit_value(item, schema["items"]) for item in value]
    return value


def _has_type(value: Any, kinds: Sequence[str]) -> bool:
    from jsonschema import Draft202012Validator

    return Draft202012Validator({"type": list(kinds)}).is_valid(value)


def _as_number(text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    try:
        return int(text)
    except ValueError:
        return number
