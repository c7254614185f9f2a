"""Files of rated tables: predictions, references and people's ratings."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import DatasetError
from evalsuite.metrics.tables import FORMATS, Format

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

EXPECTED = (
    "objects with `reference`, `prediction` and `human` (a number or a list of numbers), with or without `format` "
    '("html" where it is missing) and further numbers, which are compared as metrics of that name'
)
NOT_METRICS = frozenset({"reference", "prediction", "output", "human", "format", "id"})


@dataclass(frozen=True, slots=True)
class RatedTable:
    """A prediction with the mean of its ratings.

    Attributes:
        prediction: what a model wrote.
        reference: the wanted table.
        format: how the reference is written.
        human: the mean rating, on any scale.
        others: further numbers in the file by name, such as a judge's marks.
        ratings: each person's, where the file gives them.
    """

    prediction: str
    reference: str
    format: Format
    human: float
    others: Mapping[str, float] = field(default_factory=dict)
    ratings: tuple[float, ...] = ()


def read_rated_tables(path: Path) -> list[RatedTable]:
    """Read a JSON list, JSON lines, or `{references, columns, rows}` as table studies publish it.

    Raises:
        DatasetError: it is of none of these forms.
        OSError: it cannot be opened.
    """
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(path, "", f"{type(error).__name__}: {error}", EXPECTED) from error
    tables = [_read(record, path, f"record {place}") for place, record in enumerate(_records(text, path), 1)]
    if not tables:
        raise DatasetError(path, "", "no record", EXPECTED)
    return tables


def _records(text: str, path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        content = json.loads(text)
    except ValueError:
        yield from _lines(text, path)
        return
    if isinstance(content, list):
        yield from content
    elif isinstance(content, dict) and {"references", "columns", "rows"} <= content.keys():
        for row in content["rows"]:
            record = dict(zip(content["columns"], row, strict=False))
            place = record.get("reference")
            if not isinstance(place, int) or not 0 <= place < len(content["references"]):
                raise DatasetError(path, "rows", f"reference {place!r}", "the place of one of the references")
            yield record | {"reference": content["references"][place]}
    else:
        yield content


def _lines(text: str, path: Path) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise DatasetError(path, f"line {number}", f"no JSON ({error})", EXPECTED) from error


def _read(record: Any, path: Path, where: str) -> RatedTable:
    if not isinstance(record, dict):
        raise DatasetError(path, where, type(record).__name__, EXPECTED)
    prediction = record.get("prediction", record.get("output"))
    reference, written = record.get("reference"), record.get("format", "html")
    human = record.get("human")
    ratings: list[Any] = human if isinstance(human, list) else [human]
    if not isinstance(prediction, str) or not isinstance(reference, str):
        raise DatasetError(path, where, f"fields {', '.join(record)}", EXPECTED)
    if written not in FORMATS:
        raise DatasetError(path, f"{where}, field 'format'", repr(written), " or ".join(FORMATS))
    if not ratings or not all(_is_number(rating) for rating in ratings):
        raise DatasetError(path, f"{where}, field 'human'", repr(human)[:60], "a number or a list of numbers")
    others = {
        name: float(value) for name, value in record.items() if name not in NOT_METRICS and _is_number(value)
    }
    return RatedTable(prediction, reference, written, fmean(ratings), others, tuple(map(float, ratings)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
