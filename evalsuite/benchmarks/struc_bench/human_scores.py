"""Scores and error labels that people gave to outputs, read from `human_scores.json` beside the items."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import expect, read_json, take
from evalsuite.benchmarks.struc_bench.abilities import ERROR_TYPES
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FILE = "human_scores.json"
ASPECTS = {"content": "Content", "format": "Format"}


@dataclass(frozen=True, slots=True)
class HumanScores:
    """The scores that one person gave to one output, on any scale that is the same for all outputs.

    Attributes:
        sample: the id of the item, as in reports (`html-003`), or of its sample in one mode
            (`html-003-format_cot`).
        content: the score for content.
        format: the score for structure and format.
        model: the model whose output was rated; empty if the file has ratings of one model only.
        rater: the person's name; empty if the file does not give it.
        errors: the types of errors that this person found, see `ERROR_TYPES`; None if the person did not look
            for errors.
    """

    sample: str
    content: float
    format: float
    model: str = ""
    rater: str = ""
    errors: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RatedOutput:
    """The scores that all people together gave to one output.

    Attributes:
        content: the mean score for content.
        format: the mean score for structure and format.
        raters: each person's two scores, by a number that stands for the person.
        errors: for each type of error, the share of people who found it among those who looked for errors;
            empty if nobody looked.
    """

    content: float
    format: float
    raters: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Convert to plain data for a record's facts."""
        raters = {rater: list(scores) for rater, scores in self.raters.items()}
        return {"content": self.content, "format": self.format, "raters": raters, "errors": dict(self.errors)}


def read_human_scores(path: Path) -> list[HumanScores]:
    """Read a JSON list of `{sample, content, format}`, each with or without `model`, `rater` and `errors`.

    Raises:
        DatasetError: the file does not have this form.
    """
    return [_read(record, path, f"item {place}") for place, record in enumerate(read_json(path, list))]


def _read(record: object, path: Path, where: str) -> HumanScores:
    fields = expect(record, dict, path, where)
    content, form = (_score(fields, aspect, path, where) for aspect in ASPECTS)
    model, rater = (
        expect(fields.get(name, ""), str, path, f"{where}, field {name!r}") for name in ("model", "rater")
    )
    sample = take(fields, "sample", str, path, where)
    return HumanScores(sample, content, form, model, rater, _errors(fields.get("errors"), path, where))


def _score(fields: Mapping[str, object], aspect: str, path: Path, where: str) -> float:
    score = take(fields, aspect, float, path, where)
    # Python's JSON parser accepts NaN, infinities, and whole numbers too large for a float.
    if not abs(score) <= sys.float_info.max:
        raise DatasetError(path, f"{where}, field {aspect!r}", str(score)[:60], "a finite number")
    return float(score)


def _errors(labels: object, path: Path, where: str) -> tuple[str, ...] | None:
    if labels is None:
        return None
    names = expect(labels, list, path, f"{where}, field 'errors'")
    if unknown := [name for name in names if name not in ERROR_TYPES]:
        raise DatasetError(
            path, f"{where}, field 'errors'", repr(unknown[0])[:60], f"some of {', '.join(ERROR_TYPES)}"
        )
    return tuple(names)


def of_model(scores: Sequence[HumanScores], model: str) -> dict[str, RatedOutput]:
    """Return the ratings of one model's outputs by item.

    Ratings without a model's name count for every model, except for outputs that have ratings under this
    model's name.
    """
    by_sample: dict[str, list[HumanScores]] = {}
    for score in scores:
        if score.model in ("", model):
            by_sample.setdefault(score.sample, []).append(score)
    # Records must not contain the names of people.
    numbers = {
        rater: f"{place}" for place, rater in enumerate(dict.fromkeys(score.rater for score in scores), 1)
    }
    return {sample: _together(ratings, model, numbers) for sample, ratings in by_sample.items()}


def _together(ratings: Sequence[HumanScores], model: str, numbers: Mapping[str, str]) -> RatedOutput:
    own = [score for score in ratings if score.model == model] or ratings
    content, form = (fmean(getattr(score, aspect) for score in own) for aspect in ASPECTS)
    raters = {numbers[score.rater]: (score.content, score.format) for score in own if score.rater}
    labelled = [score.errors for score in own if score.errors is not None]
    errors = {name: fmean(name in labels for labels in labelled) for name in ERROR_TYPES} if labelled else {}
    return RatedOutput(content, form, raters, errors)
