"""Judges' signatures, as records keep them: by score, the line that says how a judge made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SIGNATURES = "judge_signatures"
"""The fact that holds them."""


def signatures_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """The signature of each judged score; empty where no judge was asked."""
    signatures = facts.get(SIGNATURES)
    return dict(signatures) if isinstance(signatures, Mapping) else {}


def scores_by_signature(facts: Mapping[str, Any]) -> dict[str, list[str]]:
    """The scores that stand under each signature."""
    scores: dict[str, list[str]] = {}
    for name, signature in signatures_of(facts).items():
        scores.setdefault(signature, []).append(name)
    return scores
