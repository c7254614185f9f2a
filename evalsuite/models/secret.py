"""Keys and logins as objects that never print what they hold."""

from __future__ import annotations

import hashlib


class Secret:
    """A key, a token or a login. Only `reveal` gives its text; everything else shows `***`.

    Args:
        text: the secret.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text, for the one place that sends it."""
        return self._text

    def digest(self) -> str:
        """The SHA-256 of its text, in hexadecimal."""
        return hashlib.sha256(self._text.encode("utf-8", "surrogatepass")).hexdigest()

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        raise TypeError("a secret is not sent to other processes")
