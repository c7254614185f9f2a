"""Fill the pages of options and commands from the package when mkdocs builds the site."""

from __future__ import annotations

import os
from typing import Any

from evalsuite.cli import COMMANDS, make_parser
from evalsuite.core.settings import OPTIONS


def list_options() -> str:
    """Write a table with a row per option of pytest."""
    rows = ["| option | meaning |", "|---|---|"]
    for option in OPTIONS:
        form = f"{option.flag}={option.metavar}" if option.metavar else option.flag
        cells = (f"`{form}`", option.help.replace("%%", "%"))
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def list_commands() -> str:
    """Write a section per form of a command, with its help."""
    os.environ["COLUMNS"] = "78"
    sections = []
    for name, forms in COMMANDS.items():
        for word in forms:
            shown = make_parser(name, word).format_help()
            sections.append(f"## evalsuite {name} {word}".rstrip() + f"\n\n```text\n{shown}```")
    return "\n\n".join(sections)


MARKS = {"<!-- options -->": list_options, "<!-- commands -->": list_commands}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page; mkdocs calls this for each page."""
    for mark, write in MARKS.items():
        if mark in markdown:
            markdown = markdown.replace(mark, write())
    return markdown
