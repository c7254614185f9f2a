"""What a folder of tables gave: records in the published format, and why anything was left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.builders.treb.model_questions import ModelPair
    from evalsuite.builders.treb.pair import TemplatePair
    from evalsuite.builders.treb.sheet import Sheet


@dataclass(frozen=True, slots=True)
class BuiltPairs:
    """What a folder of tables gave.

    Attributes:
        records: in the published format, with the program that verified each under `program`.
        tables: the CSV text of the tables used, by file name.
        renamed: likewise of tables that lost the name of a column.
        skipped: why a file was not used, by file name.
        refuted: what the program of a pair said instead, by the pair's id.
    """

    records: list[Mapping[str, Any]] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    refuted: dict[str, str] = field(default_factory=dict)


def record(name: str, pair: TemplatePair | ModelPair, sheet: Sheet) -> dict[str, Any]:
    """A pair in the published format, with its program beside it."""
    return {
        "id": name,
        "file_path": [f"csv/{sheet.name}.csv"],
        "instruction": "",
        "question": pair.question,
        "answer": pair.answer,
        "title": [""],
        "columnslable": [1],
        "Table_markdown": [sheet.table.markdown()],
        "Table_html": [sheet.table.html()],
        "number_answer": "" if pair.number is None else pair.number,
        "program": pair.program,
    }
