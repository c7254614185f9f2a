"""Reads labels that people gave, from the samples' metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

WINS: Mapping[Any, float] = {"first": 1.0, "tie": 0.5, "second": 0.0}
"""The first answer's score for each verdict on two answers."""

LABELS: Mapping[str, float] = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, **WINS}
"""The words that are labels, each with its number."""


def parse_label(label: Any) -> float | None:
    """Read a number or one of the `LABELS`; return None for any other value."""
    if isinstance(label, str):
        word = label.strip().casefold()
        try:
            label = LABELS[word] if word in LABELS else float(word)
        except ValueError:
            return None
    is_number = isinstance(label, (bool, int, float)) and math.isfinite(label)
    return float(label) if is_number else None


def is_on_scale(label: Any, scale: tuple[float, float]) -> bool:
    """Tell whether a label is on a judge's scale; words and truth values fit only scales whose best mark is 1."""
    value, (low, high) = parse_label(label), scale
    is_word = isinstance(label, bool) or (isinstance(label, str) and label.strip().casefold() in LABELS)
    return value is not None and low <= value <= high and (high == 1 or not is_word)


def make_people_facts(
    sample: Sample,
    score_names: Sequence[str],
    *,
    scale: tuple[float, float] | None = None,
    passing_score: float | None = None,
    nominal: bool = False,
) -> dict[str, Any]:
    """Return the fact `people`: each score's human label and how it is compared with the score; {} without labels.

    If `nominal` is true, the scores are categories, not points on a scale.
    """
    human = sample.metadata.get("human")
    if not nominal and isinstance(human, str) and human.strip().casefold() in WINS:
        # Ignore `first`, `tie` and `second`, because these labels do not say which score an answer deserves.
        return {}
    by_score = human if isinstance(human, Mapping) else dict.fromkeys(score_names, human)
    given = {name: by_score[name] for name in score_names if by_score.get(name) is not None}
    labels = {name: _parse_sample_label(sample, label) for name, label in given.items()}
    for name, label in given.items():
        if scale and not is_on_scale(label, scale):
            raise ScoringError(
                f"sample {sample.id} has the label {label!r:.60} under 'human' in its metadata; {name} has a "
                f"scale from {scale[0]:g} to {scale[1]:g}: give a number on it, or a mapping of labels by score"
            )
    compared: dict[str, Any] = {"scale": list(scale)} if scale else {}
    compared |= {"passes": passing_score} if passing_score is not None else {}
    compared |= {"nominal": True} if nominal else {}
    return {"people": {name: {"label": label, **compared} for name, label in labels.items()}} if labels else {}


def check_labels(sample: Sample) -> None:
    """Raise ScoringError if a label of the sample cannot be read."""
    human = sample.metadata.get("human")
    labels = list(human.values()) if isinstance(human, Mapping) else [human]
    if not labels or None in labels:
        raise ScoringError(f"sample {sample.id} has no label under 'human' in its metadata")
    for label in labels:
        _parse_sample_label(sample, label)


def _parse_sample_label(sample: Sample, label: Any) -> float:
    value = parse_label(label)
    if value is None:
        raise ScoringError(
            f"sample {sample.id} has the label {label!r:.60} under 'human' in its metadata; a label is a number or one "
            f"of {', '.join(LABELS)}"
        )
    return value
