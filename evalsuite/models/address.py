"""Addresses without the secrets in them: user names and passwords, and keys among the parameters."""

from __future__ import annotations

import re

LOGIN = re.compile(r"(?<=://)[^/@\s'\"]+@")
KEY = re.compile(
    r"([?&][^=&#\s'\"]*(?:key|token|secret|passw|pwd|auth|sig|credential|code)[^=&#\s'\"]*=)[^&#\s'\"]+",
    re.IGNORECASE,
)
"""A parameter whose name says that its value is nobody's business; `api-version` and the like stay."""


def redact(text: str) -> str:
    """Text without the secrets of the addresses in it: a login is left out, a key becomes `***`."""
    return KEY.sub(r"\1***", LOGIN.sub("", text))
