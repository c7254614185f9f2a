"""Large parts of messages (pictures, recordings, files), which the journal keeps once, whoever asks with them."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from evalsuite.core.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = 4096
"""Characters of Base64 from which on a text is kept apart."""
# Base64 stands in JSON as it is, and a control character never does: so neither can be taken for anything else.
_MARK = "\x1e"
_WHOLE = re.compile(rf'"((?:data:[\w.+-]+/[\w.+-]+;base64,)?[A-Za-z0-9+/]{{{LARGE},}}={{0,2}})"')
_NAME = re.compile(rf"{_MARK}([0-9a-f]{{64}}){_MARK}")


def taken_apart(text: str) -> tuple[str, list[tuple[str, str]]]:
    """JSON with the names of its large Base64 strings in their place; and names and strings.

    Args:
        text: JSON, as `json_codec.dumps` writes it.
    """
    if len(text) < LARGE:
        return text, []
    parts: dict[str, str] = {}

    def name_of(match: re.Match[str]) -> str:
        name = hashlib.sha256(match[1].encode()).hexdigest()
        parts[name] = match[1]
        return f"{_MARK}{name}{_MARK}"

    return _WHOLE.sub(name_of, text), list(parts.items())


def put_together(text: str, find: Callable[[str], str | None]) -> str:
    """The JSON that was taken apart.

    Args:
        text: with names.
        find: the string of a name.

    Raises:
        RunError: a string is missing or damaged.
    """

    def string_of(match: re.Match[str]) -> str:
        string = find(match[1])
        if string is None or hashlib.sha256(string.encode()).hexdigest() != match[1]:
            raise RunError(f"the journal has lost a part of a message, {match[1][:16]}")
        return f'"{string}"'

    return _NAME.sub(string_of, text) if _MARK in text else text
