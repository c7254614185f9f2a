"""Scores that people gave to outputs, and how well each metric agrees with them (the paper's Table 3)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import expect, read_json, take
from evalsuite.errors import DatasetError
from evalsuite.reporting.section import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evalsuite.reporting.section import Cell

FILE = "human_scores.json"
ASPECTS = {"content": "Content", "format": "Format"}
FEWEST = 3


@dataclass(frozen=True, slots=True)
class HumanScores:
    """What people gave one output, on any scale as long as it is the same for all.

    Attributes:
        sample: the id of the item, as in reports (`html-003`), or of its output in a mode
            (`html-003-format_cot`).
        content: for content.
        format: for structure and format.
        model: whose output was rated; empty where the file has ratings of one model only.
    """

    sample: str
    content: float
    format: float
    model: str = ""


def read_human_scores(path: Path) -> list[HumanScores]:
    """Reads a JSON list of `{sample, content, format}`, each with or without `model`.

    Raises:
        DatasetError: it is not of this form.
    """
    found = []
    for place, record in enumerate(read_json(path, list)):
        where = f"item {place}"
        fields = expect(record, dict, path, where)
        content, form = (_rating(fields, aspect, path, where) for aspect in ASPECTS)
        model = expect(fields.get("model", ""), str, path, f"{where}, field 'model'")
        found.append(HumanScores(take(fields, "sample", str, path, where), content, form, model))
    return found


def _rating(fields: Mapping[str, object], aspect: str, path: Path, where: str) -> float:
    given = take(fields, aspect, float, path, where)
    # Python's JSON knows numbers that are none, and whole numbers beyond any float.
    if not abs(given) <= sys.float_info.max:
        raise DatasetError(path, f"{where}, field {aspect!r}", str(given)[:60], "a finite number")
    return float(given)


def of_model(scores: Sequence[HumanScores], model: str) -> dict[str, HumanScores]:
    """The scores of one model's outputs by item; of several people's ratings of one output the mean.

    Ratings without a model's name are for every model, but for the outputs of which this model has its own.
    """
    by_sample: dict[str, list[HumanScores]] = {}
    for one in scores:
        if one.model in ("", model):
            by_sample.setdefault(one.sample, []).append(one)
    return {sample: _mean(ratings, model) for sample, ratings in by_sample.items()}


def _mean(ratings: Sequence[HumanScores], model: str) -> HumanScores:
    own = [one for one in ratings if one.model == model] or ratings
    content, form = (fmean(getattr(one, aspect) for one in own) for aspect in ASPECTS)
    return HumanScores(own[0].sample, content, form, own[0].model)


def agreement_table(
    title: str, metrics: Mapping[str, str], outputs: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]
) -> Table:
    """Instance-level Pearson correlation of each metric with what people gave.

    Args:
        title: heading.
        metrics: their names and headings.
        outputs: for each output its metrics and what people gave it for content and format.
    """
    rows: list[list[Cell]] = []
    for metric, heading in metrics.items():
        rated = [(scores[metric], people) for scores, people in outputs if metric in scores]
        if rated:
            found = [
                _pearson([value for value, _ in rated], [people[aspect] for _, people in rated])
                for aspect in ASPECTS
            ]
            rows.append([heading, len(rated), *found])
    columns = [Column("Metric"), Column("Outputs", "count")]
    columns += [Column(f"{heading}: Pearson", "number", 3) for heading in ASPECTS.values()]
    note = f"Over outputs; not measured below {FEWEST} outputs, or where either side is constant."
    return Table(title, columns, rows, note)


def _pearson(values: Sequence[float], people: Sequence[float]) -> float | None:
    from evalsuite import stats

    if len(values) < FEWEST or len(set(values)) < 2 or len(set(people)) < 2:
        return None
    return stats.pearson(values, people).statistic
