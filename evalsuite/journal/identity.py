"""When two records are of the same thing, and checksums. Light to import, as workers do."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from evalsuite.core.json_codec import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

BEFOREHAND = ("input", "target", "scorers", "model", "judge", "user", "programs")
"""Fingerprints known before a case runs."""


def same_ask(fingerprints: Mapping[str, str]) -> str:
    """Equal for two records of one case only if sample, models, parameters and scorers are the same."""
    return digest({name: fingerprints[name] for name in BEFOREHAND if name in fingerprints})


def checksum(*texts: str) -> str:
    """32 hexadecimal digits of a SHA-256 over texts and their lengths."""
    whole = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        whole.update(b"%d:" % len(data))
        whole.update(data)
    return whole.hexdigest()[:32]
