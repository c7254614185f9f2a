"""The question to the model: make a table of a text, with or without a description of its format."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalsuite.metrics.tables import describe_form, read_wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.benchmarks.struc_bench.items import TableItem
    from evalsuite.metrics.tables import Format

FORMAT_NAMES: Mapping[Format, str] = {"markdown": "Raw text", "latex": "LaTeX", "html": "HTML"}
"""As in the paper's Table 2, in its order."""

ANSWER: Mapping[Format, str] = {
    "markdown": "Write each table row on its own line, cells between | characters, the column names first. "
    "Above each table put its name and a colon, and leave a cell empty where the text gives no value. An answer on "
    "another text looks like this:\n\n"
    "Team:\n| | Wins | Points |\n| Blue | 12 | 98 |\n| Green | | 87 |\n\n"
    "Player:\n| | Assists |\n| Ann Bell | 4 |\n\n"
    "Reply with the tables alone.",
    "latex": "Reply with the LaTeX code of the table alone.",
    "html": "Reply with the HTML code of the table alone.",
}


TEXT_FOLLOWS = "The text:\n"


def question(item: TableItem, written: Format, mode: str) -> str:
    """The whole question for an item."""
    if mode == "format_facts":
        item = replace(item, format_description=describe_form(read_wanted(item.output, written)))
    parts = [instruction(item, mode), f"{TEXT_FOLLOWS}{item.input}", ANSWER[written]]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def text_of(asked: str, written: Format) -> str:
    """The text that a table was to be made of, out of a whole question."""
    after = asked.partition(TEXT_FOLLOWS)[2] or asked
    return after.removesuffix(ANSWER[written].strip()).strip()


def instruction(item: TableItem, mode: str) -> str:
    """The instruction; in every mode but `direct`, the description of the format follows it."""
    parts = [item.instruction]
    if mode != "direct":
        parts.append(f"The format of the table:\n{item.format_description}")
    return "\n\n".join(part.strip() for part in parts if part.strip())
