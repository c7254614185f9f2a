"""A judge's signature: one line that says how a score was made, printed beside it as sacrebleu does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.json_codec import digest
from evalsuite.judging.repeated_judge import OFFICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.judging.opinions import Judge

VERSION = 1
"""Counts changes of the templates that all judges share."""


def signature(kind: str, models: Sequence[str], content: Any) -> str:
    """`rubric|judge:gpt-4|version:1|hash:5f0c2a71d3b49e08`; equal where the same model is asked the same.

    Args:
        kind: of judge.
        models: that judge.
        content: prompts, scales and parameters, as plain data.
    """
    return f"{kind}|judge:{'+'.join(models)}|version:{VERSION}|hash:{digest([kind, list(models), content, VERSION])}"


def judge_signature(judge: Judge, model: str, shown: Any = None) -> str:
    """The signature of a judge that is a way of judging.

    Args:
        judge: with its form, its parameters and, of a panel, its seats.
        model: that judges.
        shown: what else decides what the judge is shown, as plain data.
    """
    form = getattr(judge, "form", None)
    instructions = form.request() if form else ""
    return signature(type(judge).__name__.lower(), [model], [OFFICE, instructions, repr(judge), shown])
