"""Answers that samples bring along, for cases that watch the judge and ask no model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.core.errors import SolverError
from evalsuite.core.types import Transcript

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample


async def fixed_answer(sample: Sample, model: Model) -> Transcript:  # noqa: ARG001 - a solver's arguments
    """The text under `answer` in the sample's metadata."""
    return Transcript(answer_of(sample))


def answer_of(sample: Sample) -> str:
    """The fixed answer of a sample.

    Raises:
        SolverError: there is none.
    """
    answer = sample.metadata.get("answer")
    if not isinstance(answer, str):
        raise SolverError(f"sample {sample.id} has no text under 'answer' in its metadata")
    return answer
