"""Scores of one judged sample; agreement over all samples is measured in `human_scores`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.judges.judgements import sign_scores

if TYPE_CHECKING:
    from evalsuite.core.protocols import NamedScores
    from evalsuite.core.types import Sample, Transcript


def against_people(sample: Sample, transcript: Transcript) -> NamedScores:
    """`parsed`: whether the judge gave a usable judgement at all; and its verdict or scores.

    For pairs `accuracy`: 1.0 where the verdict is people's own, else 0.0, also without a verdict. For
    dialogues the judge's score of each aspect, on people's scale; none without a judgement.
    """
    if sample.tags["task"] == "pairs":
        scores = {"accuracy": float(transcript.facts["verdict"] == sample.metadata["human"])}
    else:
        scores = transcript.facts.get("judged", {})
    parsed = float("unparsed" not in transcript.facts)
    return {"parsed": parsed, **sign_scores(scores, transcript.facts["signature"])}
