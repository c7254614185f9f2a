"""What in an address or among parameters is a secret, and how either is shown without it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
LOGIN = re.compile(r"(?<=://)[^/@\s'\"]+@")
KEY = re.compile(
    r"([?&][^=&#\s'\"]*(?:key|token|secret|passw|pwd|auth|sig|credential|code)[^=&#\s'\"]*=)[^&#\s'\"]+",
    re.IGNORECASE,
)
"""A parameter in an address whose name says that its value is secret; `api-version` and the like stay."""

SECRET_WORDS = {
    *("key", "keys", "apikey", "token", "secret", "password", "passwd", "pwd", "auth", "authorization"),
    *("bearer", "credential", "credentials", "signature", "sig", "cookie"),
}
"""Text under a name that contains one of these words is a secret; `max_tokens` and `tokenizer` contain none."""

HEADERS = {"headers", "extra_headers", "default_headers"}
"""Parameters all of whose values are secrets."""


def redact(text: str) -> str:
    """Text without the secrets of the addresses in it: a login is left out, a key becomes `***`."""
    return KEY.sub(rf"\1{HIDDEN}", LOGIN.sub("", text))


def mark_secrets(base_url: str) -> str:
    """Write an address with `***` in place of each secret and of a login."""
    return LOGIN.sub(f"{HIDDEN}@", KEY.sub(rf"\1{HIDDEN}", base_url))


def is_secret(name: str) -> bool:
    """Tell whether text under this name is a secret."""
    return not SECRET_WORDS.isdisjoint(re.split(r"[^a-z]+", name.lower()))


def show_address(base_url: str) -> str:
    """Write an address without its login and its query, for a repr."""
    address, question, _ = LOGIN.sub("", base_url).partition("?")
    return f"{address}?{HIDDEN}" if question else address


def show_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters for a repr: `***` for secrets, for headers and for what goes into an address's query."""
    return {name: _shown(name, value) for name, value in params.items()}


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        hidden = name.lower() in HEADERS or name == "extra_query"
        return dict.fromkeys(value, HIDDEN) if hidden else show_params(value)
    return HIDDEN if isinstance(value, str) and is_secret(name) else value
