r"""Reads a call's arguments, written as a JSON value or a Python literal, without evaluating code.

`ast.literal_eval` is unsuitable: it warns about escapes that models often write (`get\_name`), refuses text after the
literal, and can exhaust the stack.
"""

import json
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from evalsuite.core.json_codec import refuse_nan_or_infinity

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
    """Read the JSON value or Python literal at a text's start; return the value and the position after it."""
    try:
        value, end = _JSON.raw_decode(text)
    except (ValueError, RecursionError):
        reader = _PythonLiteralReader(text)
        return reader.read_value(0), reader.at
    if _is_nested_deeper(value, MAX_DEPTH):
        raise ValueError(f"the value is nested more than {MAX_DEPTH} deep")
    return value, end


def _is_nested_deeper(value: Any, depth: int) -> bool:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth < 0 or any(_is_nested_deeper(child, depth - 1) for child in children)


def _parse_number(digits: str) -> float:
    """Parse a number, but refuse one that is too large for a float, to which jsonschema may convert integers, too."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:20]} is too large")
    return number if set(digits) & set(".eE") else int(digits)


_JSON = json.JSONDecoder(
    strict=False, parse_constant=refuse_nan_or_infinity, parse_float=_parse_number, parse_int=_parse_number
)


class _PythonLiteralReader:
    """A recursive-descent reader; `at` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def read_value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            self.raise_error(f"is nested more than {MAX_DEPTH} deep")
        start = self.peek_character()
        if start == "{":
            pairs, _ = self.read_items("}", partial(self.read_pair, depth + 1))
            return dict(pairs)
        if start and start in "[(":
            items, has_comma = self.read_items("]" if start == "[" else ")", partial(self.read_value, depth + 1))
            return items[0] if start == "(" and len(items) == 1 and not has_comma else items
        if start and start in "'\"":
            return self.read_string()
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return _parse_number(number.group())
        word = _WORD.match(self.text, self.at)
        if not word or word.group() not in _WORDS:
            self.raise_error("is neither a JSON value nor a Python literal")
        self.at = word.end()
        return _WORDS[word.group()]

    def read_items(self, close: str, read_item: Callable[[], Any]) -> tuple[list[Any], bool]:
        """Read the items up to a closing bracket; also tell whether there was a comma."""
        items, has_comma = [], False
        self.at += 1
        while self.peek_character() != close:
            items.append(read_item())
            if self.peek_character() != close:
                self.expect_character(",")
                has_comma = True
        self.at += 1
        return items, has_comma

    def read_pair(self, depth: int) -> tuple[str, Any]:
        if self.peek_character() not in {"'", '"'}:
            self.raise_error("is not a quoted name")
        name = self.read_string()
        self.expect_character(":")
        return name, self.read_value(depth)

    def read_string(self) -> str:
        for quote, pattern in _STRINGS.items():
            if self.text.startswith(quote, self.at):
                matched = pattern.match(self.text, self.at)
                if not matched:
                    self.raise_error("begins a string that never ends")
                self.at = matched.end()
                return _ESCAPE.sub(_decode_escape, matched.group(1))
        raise AssertionError(self.at)  # Never reached: the caller has checked that a quote is here.

    def peek_character(self) -> str:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.text[self.at : self.at + 1]

    def expect_character(self, character: str) -> None:
        if self.peek_character() != character:
            self.raise_error(f"stands where {character!r} was expected")
        self.at += 1

    def raise_error(self, why: str) -> NoReturn:
        shown = repr(self.text[self.at : self.at + 20]) if self.at < len(self.text) else "the end of the text"
        raise ValueError(f"{shown} at character {self.at + 1} {why}")


def _decode_escape(escape: re.Match[str]) -> str:
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


def parse_arguments(text: str) -> tuple[dict[str, Any], str]:
    """Parse the arguments at a text's start; return them and the remaining text."""
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
