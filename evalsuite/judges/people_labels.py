"""Labels that people wrote into the sheets of `evalsuite label`."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING

from evalsuite.core.errors import DatasetError
from evalsuite.judges.people_facts import LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def read_labels(path: Path) -> dict[str, float]:
    """The labels of one sheet, by case; rows without one are left out.

    Raises:
        DatasetError: a column is missing, a case stands there twice, or a label is neither a number nor a word
            that means one.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(path, "", str(error), "a sheet in CSV and UTF-8") from error
    labels: dict[str, float] = {}
    for number, row in enumerate(rows, 2):
        case, label = row.get("case"), row.get("label")
        if case is None or label is None:
            raise DatasetError(path, f"line {number}", ", ".join(map(str, row)), "the columns case and label")
        if case in labels:
            raise DatasetError(path, f"line {number}", f"{case} again", "each case once")
        if label.strip():
            labels[case.removeprefix("'")] = _number(label.strip(), path, number)
    return labels


def joined(sheets: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """One label for each case: the mean of all people's."""
    cases = dict.fromkeys(case for sheet in sheets for case in sheet)
    return {case: _mean([sheet[case] for sheet in sheets if case in sheet]) for case in cases}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _number(label: str, path: Path, number: int) -> float:
    word = label.casefold()
    try:
        value = LABELS[word] if word in LABELS else float(label.replace(",", "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        expected = f"a number or one of {', '.join(LABELS)}"
        raise DatasetError(path, f"line {number}, column label", repr(label[:60]), expected)
    return value
