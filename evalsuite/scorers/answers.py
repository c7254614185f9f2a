"""Scorers of an answer's form and meaning: a pattern, a label, similarity of embeddings."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.threads import in_thread
from evalsuite.core.types import Score
from evalsuite.metrics.text import exact_match as same_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample, Transcript

LOCAL_ENCODER = "local:all-minilm-l6-v2"


@dataclass(frozen=True, slots=True)
class Matches:
    """Scores whether an answer matches a pattern; made by `matches`."""

    pattern: re.Pattern[str]

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:  # noqa: ARG002 - a scorer's signature
        """Scores one answer."""
        return {"matches": float(self.pattern.search(transcript.answer) is not None)}


def matches(pattern: str | re.Pattern[str]) -> Matches:
    """`matches`: 1.0 where the pattern is found anywhere in the answer; `^` and `$` hold it to the whole.

    Raises:
        SettingsError: it is no regular expression.
    """
    try:
        return Matches(re.compile(pattern))
    except re.error as error:
        raise SettingsError(f"matches({str(pattern)!r}): not a regular expression: {error}") from error


@dataclass(frozen=True, slots=True)
class OneOf:
    """Scores an answer that must be one of several labels; made by `one_of`."""

    labels: tuple[str, ...]

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, Score]:
        """Scores one answer.

        Raises:
            ScoringError: the sample's target is not a label.
        """
        label = self.read(transcript.answer)
        facts = {"label": label or "", "target_label": ""}
        scores = {"labelled": Score(float(label is not None), facts=facts)}
        if sample.target is not None:
            facts["target_label"] = target = self._target(sample)
            scores["accuracy"] = Score(float(label == target))
        return scores

    def read(self, answer: str) -> str | None:
        """The label that an answer names: it is the label, or it names exactly one label as a word of its own."""
        whole = [label for label in self.labels if same_text(answer, label)]
        if whole:
            return whole[0]
        named = [label for label in self.labels if _names(answer, label)]
        # "not spam" names "spam", too: the longest of labels that contain each other is meant.
        longest = [
            label for label in named if not any(label != other and _names(other, label) for other in named)
        ]
        return longest[0] if len(longest) == 1 else None

    def _target(self, sample: Sample) -> str:
        target = next((label for label in self.labels if same_text(str(sample.target), label)), None)
        if target is None:
            raise ScoringError(
                f"one_of: the target {sample.target!r} of sample {sample.id!r} is none of the labels "
                f"{', '.join(self.labels)}"
            )
        return target


def _names(text: str, label: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text, re.IGNORECASE) is not None


def one_of(labels: Iterable[str]) -> OneOf:
    """`labelled`: 1.0 where the answer names exactly one of the labels; `accuracy`: 1.0 where it is the target's.

    The facts `label` and `target_label` are what `macro_f1`, `micro_f1` and `confusion_matrix` count.

    Raises:
        SettingsError: there are fewer than two labels, or two are the same text.
    """
    names = tuple(labels)
    if len(names) < 2 or len({label.casefold() for label in names}) < len(names):
        raise SettingsError(f"one_of({names!r}): give at least two labels that differ by more than case")
    return OneOf(names)


@dataclass(frozen=True, slots=True)
class Similar:
    """Scores the cosine similarity of embeddings; made by `similar`."""

    threshold: float
    model: str
    base_url: str | None = None

    async def scored(self, sample: Sample, transcript: Transcript, model: Model) -> dict[str, Score]:
        """Scores one answer with the embeddings of the local encoder, or of a model asked through the gateway.

        Raises:
            ScoringError: the sample has no target.
            ModelError: the embedding model failed.
        """
        targets = _texts(sample)
        texts = [transcript.answer, *targets]
        if self.model == LOCAL_ENCODER:
            vectors = await in_thread(_encoded, texts)
        else:
            asked: Any = model.peer(self.model, self.base_url, epoch=1)
            vectors = await asked.embed(texts)
        closest = max(cosine(vectors[0], vector) for vector in vectors[1:])
        return {
            "similarity": Score(closest),
            "similar": Score(
                float(closest >= self.threshold), f"cosine {closest:.3f}, wanted {self.threshold:g}"
            ),
        }


def _encoded(texts: Sequence[str]) -> list[list[float]]:
    from evalsuite.scorers.encoder import local_encoder

    return local_encoder().encode(texts)


def _texts(sample: Sample) -> list[str]:
    targets = sample.target
    if targets is None or targets in ([], ()):
        raise ScoringError(f"similar needs something to compare with, but sample {sample.id!r} has no target")
    return [str(targets)] if isinstance(targets, str | int | float) else [str(target) for target in targets]


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Cosine of the angle between two vectors, in [-1, 1]; 0 where one of them is zero.

    Raises:
        ScoringError: they are of different lengths.
    """
    if len(a) != len(b):
        raise ScoringError(
            f"vectors of {len(a)} and {len(b)} numbers cannot be compared: are they of one model?"
        )
    norms = math.sqrt(math.fsum(x * x for x in a)) * math.sqrt(math.fsum(y * y for y in b))
    return max(-1.0, min(1.0, math.fsum(x * y for x, y in zip(a, b, strict=True)) / norms)) if norms else 0.0


def similar(threshold: float = 0.8, *, model: str = LOCAL_ENCODER, base_url: str | None = None) -> Similar:
    """`similarity`: cosine of the embeddings of answer and closest target; `similar`: 1.0 from `threshold` on.

    Args:
        threshold: in [-1, 1].
        model: an embedding model as `--model` names models, asked through the gateway; by default the local
            all-MiniLM-L6-v2 (extra `embeddings`), which reads English.
        base_url: where it is served, if not at the usual place.

    Raises:
        SettingsError: the threshold is no cosine.
    """
    if not -1 <= threshold <= 1:
        raise SettingsError(f"similar({threshold}): a cosine lies between -1 and 1")
    return Similar(threshold, model, base_url)
