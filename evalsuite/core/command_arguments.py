"""The arguments of commands, declared by tables of help texts."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Any

from evalsuite.core.option_values import split_help_table

SHARED = """
--reports DIR        folder of the runs (default: reports)
name=RUN             a run's name or folder, or `last`
--code PATH          file or folder of the suite that may be imported, for a benchmark's own report and for derived
    metrics of parts of a run; without --code no test file is imported, because a run may come from anybody
--to FOLDER          also write report.md, report.html, summary.json, comment.md and pictures to this folder; the run's
    own files do not change
--criteria QUESTION  the question about each answer, as in rubric(...); default: the scorers that the cases declare
--scale LOW-HIGH     lowest and highest mark, for example 1-5; without --scale the answer is yes or no
--format MARKUP      markdown, html or latex (default: that of the wanted table)
--any-order          rows may stand in any order
--html FILE          also write the diff as a page
"""
"""Arguments of several commands; a command's table names them without a help text."""


def _parse_argument_table(table: str) -> dict[str, tuple[list[str], str, str]]:
    """Map arguments' names to flags, placeholder and help; a line without help lists names of shared arguments."""
    found = {}
    for words, text in split_help_table(table):
        for spec in [words] if text else words.split():
            named, form = re.fullmatch(r"(?:(\w+)=)?(.*)", spec).groups()  # type: ignore[union-attr] # always matches
            flags = re.findall(r"(?<!\S)-\S+", form)
            name = named or (flags[-1].strip("-").replace("-", "_") if flags else "name")
            found[name] = flags, form.removeprefix(" ".join(flags)).strip(), text
    return found


_SHARED = _parse_argument_table(SHARED)
_SHARED_DETAILS = {"reports": Path("reports"), "code": Path}
PATHS = {"DIR", "FILE", "FOLDER"}  # Placeholders of arguments that are paths.

Command = Callable[[argparse.Namespace], int]
AddArguments = Callable[[argparse.ArgumentParser], None]
ARGUMENTS: dict[Command, AddArguments] = {}
"""For each command's function, the function that adds the command's arguments to a parser."""


def declare_arguments(
    table: str, *, required: Sequence[str] = (), extend_parser: AddArguments | None = None, **details: Any
) -> Callable[[Command], Command]:
    """Declare a command's arguments by a help text; text after an empty line becomes the epilog of the command's help.

    A line consists of an argument's flags and placeholder, at least two spaces, and the help. Help may continue on
    indented lines. A prefix `name=` before the flags sets the name of the parsed attribute. After the placeholder, `?`,
    `*` and `+` mean the same as in argparse; an option with `*` may be repeated. An option without a placeholder is a
    switch.

    Args:
        required: the names of options that must be given.
        extend_parser: a function that adds further arguments to the command's parser.
        details: maps an argument's name to a default value, a type, a pair (type, default) or a list of choices.
    """

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        entries, _, epilog = cleandoc(table).partition("\n\n")
        parser.epilog = " ".join(epilog.split()) or parser.epilog
        for name, entry in _parse_argument_table(entries).items():
            flags, form, text = entry if entry[2] else _SHARED[name]
            metavar = form.rstrip("?*+")
            usual = Path if metavar in PATHS else None
            detail = details.get(name, usual if entry[2] else _SHARED_DETAILS.get(name, usual))
            keywords: dict[str, Any] = {"dest": name} if flags else {}
            if not form:
                keywords["action"] = "store_true"
            elif isinstance(detail, list):
                keywords["choices"] = detail
            else:
                kind, default = detail if isinstance(detail, tuple) else (detail, None)
                if not callable(kind):
                    kind, default = (None if kind is None else type(kind)), kind
                keywords |= {"metavar": metavar, "type": kind, "default": default}
            if form != metavar:
                keywords |= {"action": "append", "default": []} if flags else {"nargs": form[len(metavar) :]}
            if name in required:
                keywords["required"] = True
            parser.add_argument(*(flags or [name]), help=text, **keywords)
        if extend_parser is not None:
            extend_parser(parser)

    def register_arguments(command: Command) -> Command:
        ARGUMENTS[command] = add_arguments
        return command

    return register_arguments
