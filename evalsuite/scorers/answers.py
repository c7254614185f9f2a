"""Scores answers: by a target, by their form (a pattern, a label, JSON), or by similarity of meaning."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.json_codec import is_equal_json, parse_json, refuse_nan_or_infinity
from evalsuite.core.protocols import Model
from evalsuite.core.threads import run_in_thread
from evalsuite.core.types import SHARE, Metric, Sample, Score, Transcript
from evalsuite.metrics import numbers, text
from evalsuite.metrics.text import exact_match as same_text

_Comparison = Callable[[str, text.Targets], float]


@dataclass(frozen=True, slots=True)
class TargetScorer:
    """Scores an answer by one function that compares the answer with the targets."""

    name: str
    metric: _Comparison  # Function that compares the answer with the targets, and returns a number in [0, 1].

    @property
    def metrics(self) -> dict[str, Metric]:
        """The declaration of the score."""
        return {self.name: SHARE}

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        return {self.name: self.metric(transcript.answer, _get_required_target(sample, self.name))}


def _get_required_target(sample: Sample, scorer_name: str) -> text.Targets:
    if sample.target is None or not text.list_targets(sample.target):
        raise ScoringError(f"{scorer_name} compares with a target, but sample {sample.id!r} has no target; add one")
    return sample.target


def _list_target_texts(targets: text.Targets) -> list[str]:
    return list(map(str, text.list_targets(targets)))


def exact_match() -> TargetScorer:
    """Score `exact_match`: 1.0 if the answer equals a target, ignoring case, punctuation and articles."""
    return TargetScorer("exact_match", text.exact_match)


def contains() -> TargetScorer:
    """Score `contains`: 1.0 if the answer contains a target as whole words."""
    return TargetScorer("contains", text.contains)


def token_f1() -> TargetScorer:
    """Score `token_f1`: the F1 score of the answer's words against a target's words; the best target counts."""
    return TargetScorer("token_f1", text.token_f1)


def rouge_l() -> TargetScorer:
    """Score `rouge_l`: the longest common subsequence of stemmed words in answer and target; the best target counts."""
    return TargetScorer("rouge_l", text.rouge_l)


def bleu() -> TargetScorer:
    """Score `bleu`: sentence BLEU of the answer against a target; the best target counts."""
    return TargetScorer("bleu", text.bleu)


def numeric_match() -> TargetScorer:
    """Score `numeric_match`: 1.0 if the answer is a number equal to a target."""
    return TargetScorer("numeric_match", _match_any_number)


def _match_any_number(answer: str, targets: text.Targets) -> float:
    return max(numbers.numeric_match(answer, target) for target in _list_target_texts(targets))


def denotation(*, ordered: bool = False, distinct: bool = False) -> TargetScorer:
    """Score `denotation`: 1.0 if the answer gives the same values as the target; see `evalsuite.metrics.denotation`.

    If the target is a list of texts, the answer must give all of them.

    Args:
        ordered: whether the answer must give the values in the target's order.
        distinct: whether a repeated value counts only once, as in the evaluator of WikiTableQuestions.
    """
    return TargetScorer("denotation", partial(_match_denotation, ordered=ordered, distinct=distinct))


def _match_denotation(answer: str, targets: text.Targets, **how: bool) -> float:
    from evalsuite.metrics.denotation import denotation_match

    return denotation_match(answer, _list_target_texts(targets), **how)


LOCAL_ENCODER = "local:all-minilm-l6-v2"


@dataclass(frozen=True, slots=True)
class Matches:
    """Scores whether an answer matches a pattern; the function `matches` makes it."""

    pattern: re.Pattern[str]

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:  # noqa: ARG002 - a scorer's signature
        return {"matches": float(self.pattern.search(transcript.answer) is not None)}


def matches(pattern: str | re.Pattern[str]) -> Matches:
    """Score `matches`: 1.0 if the pattern matches anywhere in the answer; use `^` and `$` to match the whole answer.

    Raises:
        SettingsError: the pattern is not a regular expression.
    """
    try:
        return Matches(re.compile(pattern))
    except re.error as error:
        raise SettingsError(f"matches({str(pattern)!r}): not a regular expression: {error}") from error


@dataclass(frozen=True, slots=True)
class OneOf:
    """Scores an answer that must be one of several labels; the function `one_of` makes it."""

    labels: tuple[str, ...]

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, Score]:
        label = self.find_label(transcript.answer)
        facts = {"label": label or "", "target_label": ""}
        scores = {"labelled": Score(float(label is not None), facts=facts)}
        if sample.target is not None:
            target = self._find_equal_label(str(sample.target))
            if target is None:
                raise ScoringError(
                    f"one_of: the target {sample.target!r} of sample {sample.id!r} is not one of the labels "
                    f"{', '.join(self.labels)}"
                )
            facts["target_label"] = target
            scores["accuracy"] = Score(float(label == target))
        return scores

    def find_label(self, answer: str) -> str | None:
        """Return the label that equals the answer or, if none does, the only label among the answer's words."""
        whole = self._find_equal_label(answer)
        if whole is not None:
            return whole
        # Of labels that begin at one place, the longest counts: "not spam" does not name "spam".
        labels = sorted(self.labels, key=len, reverse=True)
        either = "|".join(f"({re.escape(label.translate(numbers.SIGNS))})" for label in labels)
        words = rf"(?<!\w)(?<!\d[.,])(?:{either})(?!\w|[.,]\d)"
        found = re.finditer(words, answer.translate(numbers.SIGNS), re.IGNORECASE)
        named = {labels[match.lastindex - 1] for match in found if match.lastindex}
        return named.pop() if len(named) == 1 else None

    def _find_equal_label(self, text: str) -> str | None:
        """Return the label that equals a text except for case or, if none does, the only one for `exact_match`."""
        folded = text.translate(numbers.SIGNS).strip().casefold()
        # Punctuation decides first, because it is all that tells -1 from 1 or C++ from C.
        equal = [label for label in self.labels if label.translate(numbers.SIGNS).strip().casefold() == folded] or [
            label for label in self.labels if same_text(text, label)
        ]
        return equal[0] if len(equal) == 1 else None


def one_of(labels: Iterable[str]) -> OneOf:
    """Score `labelled`: 1.0 if the answer names exactly one label.

    Score `accuracy`: 1.0 if the label that the answer names is the target. The metrics `macro_f1`,
    `micro_f1` and `confusion_matrix` read the facts `label` and `target_label`.

    Raises:
        SettingsError: fewer than two labels were given, or two labels have the same text.
    """
    names = tuple(labels)
    if len(names) < 2 or len({label.casefold() for label in names}) < len(names):
        raise SettingsError(f"one_of({names!r}): give at least two labels that differ by more than case")
    return OneOf(names)


@dataclass(frozen=True, slots=True)
class Similar:
    """Scores how similar answer and target are in meaning, by the cosine of their embeddings; made by `similar`."""

    threshold: float
    model: str
    base_url: str | None = None

    async def scored(self, sample: Sample, transcript: Transcript, model: Model) -> dict[str, Score]:
        """Score one answer by embeddings of the local encoder, or of a model that is called through the gateway."""
        from evalsuite.scorers.encoder import load_encoder

        texts = [transcript.answer, *_list_target_texts(_get_required_target(sample, "similar"))]
        if self.model == LOCAL_ENCODER:
            vectors = await run_in_thread(lambda: load_encoder().encode_texts(texts))
        else:
            asked: Any = model.peer(self.model, self.base_url, epoch=1)
            vectors = await asked.embed(texts)
        closest = max(compute_cosine(vectors[0], vector) for vector in vectors[1:])
        return {
            "similarity": Score(closest),
            "similar": Score(float(closest >= self.threshold), f"cosine {closest:.3f}, wanted {self.threshold:g}"),
        }


def compute_cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Compute the cosine of the angle between two vectors, in [-1, 1]; it is 0 if a vector has length zero."""
    if len(a) != len(b):
        raise ScoringError(f"vectors of {len(a)} and {len(b)} numbers cannot be compared: use one embedding model")
    norms = math.sqrt(math.fsum(x * x for x in a)) * math.sqrt(math.fsum(y * y for y in b))
    if not math.isfinite(norms):
        raise ScoringError("a vector holds NaN or infinity: serve the embedding model in float32 or bfloat16")
    return max(-1.0, min(1.0, math.fsum(x * y for x, y in zip(a, b, strict=True)) / norms)) if norms else 0.0


def similar(threshold: float = 0.8, *, model: str = LOCAL_ENCODER, base_url: str | None = None) -> Similar:
    """Score `similarity`: the cosine to the most similar target.

    Score `similar`: 1.0 if the cosine to the most similar target reaches `threshold`.

    Args:
        threshold: the lowest cosine that counts as similar, from -1 to 1.
        model: an embedding model, named as in `--model` and called through the gateway; by default the local
            all-MiniLM-L6-v2, which is for English (extra `embeddings`).
        base_url: the address of the model, if it is not the usual one of its backend.

    Raises:
        SettingsError: the threshold is outside [-1, 1].
    """
    if not -1 <= threshold <= 1:
        raise SettingsError(f"similar({threshold}): a cosine lies between -1 and 1")
    return Similar(threshold, model, base_url)


FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class JsonSchema:
    """Scores whether an answer fits a JSON Schema; the function `json_schema` makes it."""

    name: str  # The schema's name in requests to a server.
    schema: Mapping[str, Any]  # The JSON Schema.

    @property
    def response_format(self) -> dict[str, Any]:
        """The value of the generation parameter `response_format`, by which a server returns JSON of this schema."""
        return {"type": "json_schema", "json_schema": {"name": self.name, "schema": dict(self.schema)}}

    @cached_property
    def _schema_validator(self) -> Any:
        from jsonschema.validators import validator_for

        return validator_for(self.schema)(self.schema)

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, Score]:
        value, fault = self.parse_answer(transcript.answer)
        scores = {"valid": Score(float(not fault), fault)}
        wanted = parse_json(sample.target) if isinstance(sample.target, str) else sample.metadata.get("fields")
        if isinstance(wanted, Mapping):
            fields = value if isinstance(value, Mapping) else {}
            for name, right in wanted.items():
                same = name in fields and is_equal_json(right, fields[name])
                scores[f"field_{name}"] = Score(float(same), "" if same else f"{fields.get(name)!r}, not {right!r}")
        return scores

    def parse_answer(self, answer: str) -> tuple[Any, str]:
        """Return the JSON value in an answer or its code fence, and the error as text ("" if the value is valid)."""
        fenced = FENCE.match(answer)
        try:
            value = json.loads(fenced[1] if fenced else answer, parse_constant=refuse_nan_or_infinity)
        except (ValueError, RecursionError) as error:
            return None, f"not JSON: {error}"
        from jsonschema.exceptions import best_match

        worst = best_match(self._schema_validator.iter_errors(value))
        return value, f"{worst.json_path}: {worst.message}"[:300] if worst else ""


def json_schema(shape: type[Any] | Mapping[str, Any], *, name: str = "answer") -> JsonSchema:
    """Score `valid`: 1.0 if the answer is JSON of this shape. Score `field_NAME`: 1.0 if the field is as expected.

    The expected fields are those of the target, if it is a JSON object; otherwise, those in the metadata under
    `fields`. `generate(response_format=json_schema(...).response_format)` asks the server for this shape.

    Args:
        shape: the form of the JSON: a pydantic model, or a JSON Schema.
        name: the schema's name in requests to a server.

    Raises:
        SettingsError: the shape is neither a pydantic model nor a JSON Schema, or the schema is invalid.
    """
    make = getattr(shape, "model_json_schema", None)
    schema = make() if callable(make) else shape
    if not isinstance(schema, Mapping):
        raise SettingsError(f"json_schema({shape!r}): give a pydantic model or a JSON Schema as a mapping")
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(dict(schema))
    except SchemaError as error:
        raise SettingsError(f"json_schema: not a valid JSON Schema: {error.message}") from error
    return JsonSchema(name, schema)
