"""Cases as planned, before they run, and when two of them are the same. Light to import, as workers do."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.json_codec import digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A row of the table `cases`.

    Attributes:
        case: pytest's node id.
        declared: where the benchmark's code is, see `declarations`.
        selected: False if the command line left it out, although it belongs to the suite.
        fingerprints: those named in `BEFOREHAND`.
        beyond: whether `--limit` leaves it out, so that it runs only while a verdict is open.
    """

    case: str
    benchmark: str
    sample: str
    epoch: int
    tags: Mapping[str, str]
    source: str
    declared: str
    selected: bool
    fingerprints: Mapping[str, str]
    beyond: bool = False


def encode_plan(plan: Sequence[PlannedCase]) -> list[Any]:
    """Converts a plan to JSON data."""
    return [astuple(planned) for planned in plan]


def decode_plan(plain: Sequence[Any]) -> list[PlannedCase]:
    """Reverses `encode_plan`."""
    return [PlannedCase(*row) for row in plain]


BEFOREHAND = ("input", "target", "scorers", "model", "judge", "user", "programs")
"""Fingerprints known before a case runs."""


def same_ask(fingerprints: Mapping[str, str]) -> str:
    """Digests the fingerprints known beforehand: equal only for equal sample, models, parameters and scorers."""
    return digest({name: fingerprints[name] for name in BEFOREHAND if name in fingerprints})


def checksum(*texts: str) -> str:
    """Computes 32 hexadecimal digits of a SHA-256 over texts and their lengths."""
    whole = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        whole.update(b"%d:" % len(data))
        whole.update(data)
    return whole.hexdigest()[:32]
