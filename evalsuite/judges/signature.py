"""A judge's signature: one line that says how a score was made, printed beside it as sacrebleu does."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalsuite.core.json_codec import digest
from evalsuite.core.redaction import show_params
from evalsuite.core.types import Score
from evalsuite.judges.marks import marked
from evalsuite.judges.parse_retry import AGAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.judges.opinions import Judge

VERSION = 1
"""Counts changes in how answers are read and joined, which no prompt shows."""

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
UNDER_TEST = "the model under test"


def signature(kind: str, models: Sequence[Model], *content: Any) -> str:
    """`rubric|judge:gpt-4|version:1|hash:5f0c2a71d3b49e08`; equal where the same model is asked the same.

    The hash covers the models with the parameters that the user set for the whole run, the content, and the words
    that all judges share. Keys and other secrets among the parameters are left out.

    Args:
        kind: of judge.
        models: that judge; none where judging is what the model under test does.
        content: prompts, scales and parameters, as plain data.
    """
    names = [model.name for model in models]
    overrides = [show_params(model.overrides) for model in models]
    shared = [VERSION, AGAIN, marked([("section", "")])]
    hashed = digest([kind, names, overrides, shared, content])
    return f"{kind}|judge:{'+'.join(names) or UNDER_TEST}|version:{VERSION}|hash:{hashed}"


def judge_signature(judge: Judge, models: Sequence[Model], shown: Any = None) -> str:
    """The signature of a judge that is a way of judging.

    Args:
        judge: with its form, its parameters and, of a panel, its seats.
        models: see `signature`.
        shown: what else decides what the judge is shown, as plain data.
    """
    return signature(type(judge).__name__.lower(), models, judge.prompts(), described(judge), shown)


def described(settings: Any) -> str:
    """How something is set, as its repr says, without where it lies in memory: that differs in every process."""
    return ADDRESS.sub("", repr(settings))


def signed(scores: Mapping[str, float | Score], written: str) -> dict[str, float | Score]:
    """The same scores, each with this signature."""
    return {
        name: replace(score if isinstance(score, Score) else Score(score), signature=written)
        for name, score in scores.items()
    }
