"""Recognise and hide the secrets in addresses and parameters."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
LOGIN = re.compile(r"(?<=://)[^/@\s'\"]+@")
KEY = re.compile(
    r"([?&][^=&#\s'\"]*(?:key|token|secret|passw|pwd|auth|sig|credential|code)[^=&#\s'\"]*=)[^&#\s'\"]+", re.IGNORECASE
)
"""Matches a parameter of an address if its name marks the value as secret; `api-version` and the like do not match."""

SECRET_WORDS = {
    *("key", "keys", "apikey", "token", "secret", "password", "passwd", "pwd", "auth", "authorization"),
    *("bearer", "credential", "credentials", "signature", "sig", "cookie"),
}
"""Text is secret if its name contains one of these words; `max_tokens` and `tokenizer` contain no such word."""

HEADERS = {"headers", "extra_headers", "default_headers"}  # Names of parameters whose entries are all secret.


def redact(text: str) -> str:
    """Remove the secrets from addresses in a text: logins are deleted, keys become `***`."""
    return KEY.sub(rf"\1{HIDDEN}", LOGIN.sub("", text))


def mask_secrets(base_url: str) -> str:
    """Write an address with `***` in place of each secret and of the login."""
    return LOGIN.sub(f"{HIDDEN}@", KEY.sub(rf"\1{HIDDEN}", base_url))


def is_secret_name(name: str) -> bool:
    """Tell whether the value of a parameter with this name is a secret."""
    return not SECRET_WORDS.isdisjoint(re.split(r"[^a-z]+", name.lower()))


def format_public_address(base_url: str) -> str:
    """Write an address without login and query, for a repr."""
    address, question, _ = LOGIN.sub("", base_url).partition("?")
    return f"{address}?{HIDDEN}" if question else address


def mask_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Copy parameters for a repr, with `***` for secrets, headers and the query of an address."""
    return {name: _redact_parameter(name, value) for name, value in params.items()}


def _redact_parameter(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        hidden = name.lower() in HEADERS or name == "extra_query"
        return dict.fromkeys(value, HIDDEN) if hidden else mask_params(value)
    return HIDDEN if isinstance(value, str) and is_secret_name(name) else value
