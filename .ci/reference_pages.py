"""Fill the pages of options and commands from the package when mkdocs builds the site."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from evalsuite.cli import COMMANDS, make_form_parser
from evalsuite.core.settings import OPTIONS

if TYPE_CHECKING:
    from evalsuite.core.option_values import Option


def list_options() -> str:
    """Write a table with a row per option of pytest."""
    return _table("option", [option for option in OPTIONS if not option.per_project])


def list_project_settings() -> str:
    """Write a table with a row per ini key that has no option."""
    return _table("ini key", [option for option in OPTIONS if option.per_project])


def _table(heading: str, options: list[Option]) -> str:
    rows = [f"| {heading} | meaning |", "|---|---|"]
    for option in options:
        form = f"{option.shown_name}={option.metavar}" if option.metavar else option.shown_name
        cells = (f"`{form}`", option.help.replace("%%", "%"))
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def list_commands() -> str:
    """Write a section per form of a command, with its help."""
    os.environ["COLUMNS"] = "78"
    sections = []
    for name, forms in COMMANDS.items():
        for word in forms:
            shown = make_form_parser(name, word).format_help()
            sections.append(f"## evalsuite {name} {word}".rstrip() + f"\n\n```text\n{shown}```")
    return "\n\n".join(sections)


MARKS = {
    "<!-- options -->": list_options,
    "<!-- project settings -->": list_project_settings,
    "<!-- commands -->": list_commands,
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page; mkdocs calls this for each page."""
    for mark, write in MARKS.items():
        if mark in markdown:
            markdown = markdown.replace(mark, write())
    return markdown
