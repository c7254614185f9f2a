"""Planned cases, and a digest of fingerprints that tells whether a case has stayed the same.

Workers import this file, so its imports are few.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from evalsuite.core.json_codec import digest
from evalsuite.core.types import Count


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A row of the table `cases`."""

    case: str  # Pytest's node id
    benchmark: str
    sample: str
    epoch: int
    tags: Mapping[str, str]
    source: str
    declared: str  # The location of the benchmark's code, as the module `declarations` writes it.
    selected: bool  # False if the command line left the case out of this run, although it belongs to the suite.
    fingerprints: Mapping[str, str]  # The fingerprints that are known before the case runs (`FINGERPRINTS_BEFORE_RUN`).
    beyond: bool = False  # Whether the case is beyond `--limit`, so that it runs only while the verdict is undecided.


@dataclass(frozen=True, slots=True)
class RunPart:
    """A part of a run with very many cases; one session runs it."""

    number: Count = 1  # The part's number, from 1.
    of: Count = 1  # The number of all parts.
    cases: Count = 0  # The number of cases in all parts; 0 for the first part, whose session counts them.
    planned: Count = 0  # The number of cases in the plans of all earlier parts.
    lists_all: bool = False  # Whether the part's session also makes the cases that `-k` excludes; see `CaseProcess`.


FINGERPRINTS_BEFORE_RUN = ("input", "target", "scorers", "model", "judge", "user", "programs")
"""Fingerprints known before a case runs."""


def digest_fingerprints(fingerprints: Mapping[str, str]) -> str:
    """Hash the fingerprints known before the run; equal hashes mean equal samples, models, parameters and scorers."""
    return digest({name: fingerprints[name] for name in FINGERPRINTS_BEFORE_RUN if name in fingerprints})


def compute_checksum(*texts: str) -> str:
    """Compute the first 32 hexadecimal digits of the SHA-256 of texts and their lengths."""
    whole = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        whole.update(b"%d:" % len(data))
        whole.update(data)
    return whole.hexdigest()[:32]
