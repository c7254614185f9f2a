"""Reads the sheets of `evalsuite judge sheet` after people have filled them in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.builders.sheets import parse_csv_sheet
from evalsuite.core.errors import DatasetError, RunError
from evalsuite.core.json_codec import digest
from evalsuite.judges.human_labels import LABELS, parse_label

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.core.types import Record


HASH = re.compile(r"h[0-9a-f]{16}")
"""Matches what `hash_content` returns; a column `content` of other texts is somebody's own."""


@dataclass(frozen=True, slots=True)
class LabelSheet:
    """What one person wrote into a sheet."""

    path: Path
    written: Mapping[str, str]  # The labels as the person wrote them, by case; a row without a label is left out.
    weights: Mapping[str, float]  # How many cases each case represents; empty if the sheet has no weights.
    contents: Mapping[str, str]  # The hash of the question and the answer that the person saw, by case.

    def convert_labels(self) -> dict[str, float]:
        """Convert the labels to numbers."""
        return {case: label for case, text in self.written.items() if (label := parse_label(text)) is not None}

    def require_current_labels(self, records: Sequence[Record]) -> None:
        """Raise RunError if a label belongs to another answer than the run's, or to another question."""
        current = {record.case: hash_content(record) for record in records}
        shown = {
            case: self.contents[case]
            for case in self.written
            if HASH.fullmatch(self.contents[case]) and case in current
        }
        if stale := [case for case, content in shown.items() if content != current[case]]:
            raise RunError(
                f"{self.path}: {len(stale)} of {len(self.written)} labels belong to another answer or question than "
                f"this run's, such as the label of {stale[0]}; judge the run of the sheet, or label a sheet of this run"
            )


def hash_content(record: Record) -> str:
    """Compute a hash of a case's question and answer; it begins with a letter, so that no spreadsheet rounds it."""
    return f"h{digest([record.input, record.transcript.answer if record.transcript else ''])}"


def read_label_sheet(path: Path) -> LabelSheet:
    """Read a sheet; raise DatasetError if a label or a weight is invalid."""
    written: dict[str, str] = {}
    weights: dict[str, float] = {}
    contents: dict[str, str] = {}
    seen: set[str] = set()
    for place, row in parse_csv_sheet(path, ("case", "label"), ("weight", "content")):
        case = row["case"].removeprefix("'")
        # Accept decimal commas, because spreadsheets in many countries use them.
        label, weight = (row[column].strip().replace(",", ".") for column in ("label", "weight"))
        if case and case in seen:
            raise DatasetError(path, place, f"{case} again", "each case once")
        if label and not case:
            raise DatasetError(path, place, f"the label {label[:60]} without a case", "each label beside its case")
        seen.add(case)
        if label and parse_label(label) is None:
            expected = f"a number or one of {', '.join(LABELS)}"
            raise DatasetError(path, f"{place}, column label", repr(row["label"].strip()[:60]), expected)
        if label:
            written[case], contents[case] = label, row["content"]
        if weight and (parse_label(weight) is None or weight.casefold() in LABELS or float(weight) < 1):
            expected = "a number of at least 1, as `evalsuite judge sheet` wrote it"
            raise DatasetError(path, f"{place}, column weight", repr(row["weight"][:60]), expected)
        if weight:
            weights[case] = float(weight)
    return LabelSheet(path, written, weights, contents)
