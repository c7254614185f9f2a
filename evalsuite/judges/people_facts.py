"""People's labels in samples, kept beside the judge's scores so that the two can be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

LABELS: Mapping[str, float] = {
    "yes": 1.0,
    "no": 0.0,
    "true": 1.0,
    "false": 0.0,
    "first": 1.0,
    "tie": 0.5,
    "second": 0.0,
}
"""What words mean as labels, in the metadata of samples and in people's sheets."""


def people_facts(
    sample: Sample,
    names: Sequence[str],
    *,
    scale: tuple[float, float] | None = None,
    passes: float | None = None,
    nominal: bool = False,
) -> dict[str, Any]:
    """The fact `people`, by score: `label`, and how it is compared; empty where nobody has labelled the sample.

    Args:
        sample: its metadata may hold `human`: a label for every score, or a mapping of labels by score.
        names: of the judge's scores.
        scale: lowest and highest score, where they are known.
        passes: the least score that passes, where there are verdicts.
        nominal: whether each score is a verdict by itself.

    Raises:
        ScoringError: a label is neither a number nor a word that means one, or it is off the scale.
    """
    human = sample.metadata.get("human")
    by_score = human if isinstance(human, Mapping) else dict.fromkeys(names, human)
    labels = {name: _label(sample, by_score[name]) for name in names if by_score.get(name) is not None}
    low, high = scale or (-math.inf, math.inf)
    if off := [label for label in labels.values() if not low <= label <= high]:
        raise ScoringError(
            f"sample {sample.id} has the label {off[0]:g} under 'human' in its metadata, off the judge's scale from "
            f"{low:g} to {high:g}"
        )
    compared: dict[str, Any] = {"scale": list(scale)} if scale else {}
    compared |= {"passes": passes} if passes is not None else {}
    compared |= {"nominal": True} if nominal else {}
    return (
        {"people": {name: {"label": label, **compared} for name, label in labels.items()}} if labels else {}
    )


def check_labels(sample: Sample) -> None:
    """Sees that people's labels of a sample can be read, whatever the judge's scores are called.

    Raises:
        ScoringError: there are none, or one is neither a number nor a word that means one.
    """
    human = sample.metadata.get("human")
    labels = list(human.values()) if isinstance(human, Mapping) else [human]
    if not labels or None in labels:
        raise ScoringError(f"sample {sample.id} has no label under 'human' in its metadata")
    for label in labels:
        _label(sample, label)


def _label(sample: Sample, label: Any) -> float:
    value = _read(label.strip().casefold()) if isinstance(label, str) else label
    if not isinstance(value, (bool, int, float)) or not math.isfinite(value):
        raise ScoringError(
            f"sample {sample.id} has the label {label!r:.60} under 'human' in its metadata; a label is a number or one "
            f"of {', '.join(LABELS)}"
        )
    return float(value)


def _read(word: str) -> float | None:
    """What a word or a number in a text means; None for anything else."""
    try:
        return LABELS[word] if word in LABELS else float(word)
    except ValueError:
        return None
