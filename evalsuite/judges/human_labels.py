"""Reads labels that people gave, from the samples' metadata and from the sheets of `evalsuite judge sheet`."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import DatasetError, ScoringError

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
    labels = {
        name: _parse_sample_label(sample, by_score[name]) for name in score_names if by_score.get(name) is not None
    }
    for name in labels:
        if scale and not is_on_scale(by_score[name], scale):
            raise ScoringError(
                f"sample {sample.id} has the label {by_score[name]!r:.60} under 'human' in its metadata; {name} has a "
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


def read_label_sheet(path: Path) -> dict[str, str]:
    """Read the labels in a sheet as people wrote them, keyed by case; a row without a label is ignored."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames or ()
            rows = [(reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(path, "", str(error), "a sheet in CSV and UTF-8") from error
    if not {"case", "label"} <= set(names):
        raise DatasetError(path, "line 1", ", ".join(names) or "no columns", "the columns case and label")
    labels: dict[str, str] = {}
    for number, row in rows:
        case, text = row["case"], row["label"]
        if case is None or text is None:
            raise DatasetError(path, f"line {number}", "fewer cells than columns", "the columns case and label")
        if case in labels:
            raise DatasetError(path, f"line {number}", f"{case} again", "each case once")
        if not text.strip():
            continue
        # Accept decimal commas, because spreadsheets in many countries use them.
        label = text.strip().replace(",", ".")
        if parse_label(label) is None:
            expected = f"a number or one of {', '.join(LABELS)}"
            raise DatasetError(path, f"line {number}, column label", repr(text.strip()[:60]), expected)
        labels[case.removeprefix("'")] = label
    return labels


def convert_labels(written: Mapping[str, str]) -> dict[str, float]:
    """Convert the labels of a sheet to numbers."""
    return {case: label for case, text in written.items() if (label := parse_label(text)) is not None}


def read_weights(path: Path) -> dict[str, float]:
    """Read each case's weight (how many cases it represents) from a sheet; return {} if the sheet has no weights."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row.get("weight") or "").strip()]
    weights: dict[str, float] = {}
    for row in rows:
        weight = parse_label(row["weight"])
        if weight is None or weight < 1:
            expected = "a number of at least 1, as `evalsuite judge sheet` wrote it"
            raise DatasetError(path, f"case {row.get('case')}, column weight", repr(row["weight"][:60]), expected)
        weights[str(row.get("case")).removeprefix("'")] = weight
    return weights
