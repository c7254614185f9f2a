"""What a model is asked: to make a table of a text, with or without a description of its format."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.benchmarks.struc_bench.items import TableItem
    from evalsuite.metrics.tables import Format

FORMAT_NAMES: Mapping[Format, str] = {"markdown": "Raw text", "latex": "LaTeX", "html": "HTML"}
"""As in the paper's Table 2, in its order."""

ANSWER: Mapping[Format, str] = {
    "markdown": "Write each table row on its own line, cells between | characters, the column names first. "
    "Above each table put its name and a colon. Reply with the tables alone.",
    "latex": "Reply with the LaTeX code of the table alone.",
    "html": "Reply with the HTML code of the table alone.",
}


def question(item: TableItem, written: Format, mode: str) -> str:
    """The whole question for an item."""
    parts = [instruction(item, mode), f"The text:\n{item.input}", ANSWER[written]]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def instruction(item: TableItem, mode: str) -> str:
    """What to do, in the mode `format_cot` with the description of the format."""
    parts = [item.instruction]
    if mode == "format_cot":
        parts.append(f"The format of the table:\n{item.format_description}")
    return "\n\n".join(part.strip() for part in parts if part.strip())
