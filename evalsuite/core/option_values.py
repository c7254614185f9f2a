"""Options and commands' arguments, and the syntax of their values on the command line and in ini files."""

import json
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any

from evalsuite.core.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Option:
    """An option, which sets a value on the command line (`--max-rpm`) or in an ini file (`evalsuite_max_rpm`)."""

    help: str  # The help text: one or two lines, with an example unless it is obvious how to write the value.
    metavar: str  # Placeholder for the value in `--help`.
    kind: type[str | int | float | bool] = str  # Type of the value, or of each value if the option may be repeated.
    repeat: bool = False  # Whether the option may be given several times; the values form a tuple.
    least: float = 0  # The smallest number that is allowed.
    per_project: bool = False  # Whether only an ini file, and not the command line, can set the value.
    kept: bool = True  # Whether a resumed or replayed run keeps the earlier run's value.
    now: str = ""  # The option that replaces this deprecated option.
    name: str = ""  # The setting's name, copied from the dataclass field.

    @property
    def flag(self) -> str:
        """The option as it is written on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def shown_name(self) -> str:
        """The setting's name in messages to the user."""
        return self.ini_key if self.per_project else self.flag

    @property
    def ini_key(self) -> str:
        return f"evalsuite_{self.name}"

    def write_argument(self, value: Any) -> str:
        """Write the option with a value as one argument of pytest."""
        return f"{'-o' if self.per_project else ''}{self.shown_name}={value}"


_KINDS: dict[str, type[str | int | float | bool]] = {"int": int, "float": float, "bool": bool}


def split_help_table(table: str) -> Iterator[tuple[str, str]]:
    """Yield each entry's words and help. Two or more spaces separate the two; indented lines continue the help."""
    for entry in re.split(r"\n(?! )", table.strip()):
        words, _, text = entry.partition("  ")
        yield words, " ".join(text.split())


def read_option_table(table: str, types: Mapping[str, str]) -> tuple[Option, ...]:
    """Read options from a table; each entry has the option's name, placeholder, marks (such as `fresh`) and help.

    An option of type bool has no placeholder. The words after the name are marks: `project` sets `per_project`, `fresh`
    clears `kept`, `>=N` sets `least`, and `now=--x` sets `now`.

    Args:
        types: the annotation of each option's field in `Settings`; an option whose type is a tuple may be repeated.
    """
    options = []
    for spec, text in split_help_table(table):
        name, *words = spec.split()
        kind = _KINDS.get(types[name].partition(" ")[0], str)
        metavar = "" if kind is bool else words.pop(0)
        valued = dict(re.findall(r"(>|now)=(\S+)", " ".join(words)))
        options.append(
            Option(
                text,
                metavar,
                kind,
                repeat=types[name].startswith("tuple"),
                least=float(valued.get(">", 0)),
                per_project="project" in words,
                kept="fresh" not in words,
                now=valued.get("now", ""),
                name=name,
            )
        )
    return tuple(options)


def is_given(value: Any) -> bool:
    """Tell whether the user gave a value; None, False and empty sequences count as not given."""
    # Do not test truthiness, because a spend limit of 0 is a value.
    return not (value is None or value is False or value in ((), []))


def parse_value(option: Option, given: Any) -> Any:
    """Convert a value to the option's type."""
    if option.repeat:
        return tuple(map(str, given))
    if option.kind is bool:
        return bool(given)
    try:
        value = option.kind(given)
    except (TypeError, ValueError):
        value = None
    if value is None or (option.kind is not str and not float(value) >= option.least):
        kind = "a whole number" if option.kind is int else "a number"
        raise SettingsError(f"{option.shown_name} {given}: not {kind} of at least {option.least:g}")
    return value


def parse_shard(text: str) -> tuple[int, int]:
    """Read a shard such as 3/8: the part's number, from 1, and the number of parts."""
    part, _, parts = text.partition("/")
    if part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts):
        return int(part), int(parts)
    raise SettingsError(f"--shard {text}: write K/N with K from 1 to N, for example 3/8")


INCOMPARABLE = ("scorers", "prompt", "params", "faults")
"""Fingerprints that a compared run must share with its baseline, unless `evalsuite_accept_changes` names them."""


def parse_accepted_changes(text: str) -> list[str]:
    """Parse comma-separated names of fingerprints that are allowed to differ from the baseline's."""
    names = [name.strip() for name in text.split(",")]
    if not set(names) <= set(INCOMPARABLE):
        raise SettingsError(f"evalsuite_accept_changes {text}: write one or more of {', '.join(INCOMPARABLE)}")
    return names


NO_WORSE_THAN = r"no\s+worse\s+than\s+(?P<than>\S+)"
"""The part of a gate that names a baseline: `accuracy no worse than main by 0.02`."""


def list_named_baselines(gates: Iterable[str]) -> list[str]:
    """List the baselines that gates name; leave out the word `baseline`, which means the values of `--baseline`."""
    found = (re.search(NO_WORSE_THAN, gate) for gate in gates)
    return [match["than"] for match in found if match and match["than"] != "baseline"]


def parse_parameter(flag: str, text: str) -> tuple[str, Any]:
    """Read a generation parameter; numbers, true, false and null are read as JSON, any other value as text."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise SettingsError(f"{flag} {text}: write NAME=VALUE, for example temperature=0.7")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def make_int_parser(least: int) -> Callable[[str], int]:
    """Return a parser for an argument's value, which accepts only whole numbers of at least `least`."""

    def parse_whole_number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return parse_whole_number


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
--any-order          rows may be in any order
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

Command = Callable[[Namespace], int]
AddArguments = Callable[[ArgumentParser], None]
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
        details: maps an argument's name to a default value, a type, a pair (type, default), a list of choices, or
            keywords of argparse.
    """

    def add_arguments(parser: ArgumentParser) -> None:
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
            elif isinstance(detail, list | dict):
                keywords |= detail if isinstance(detail, dict) else {"choices": detail}
            else:
                kind, default = detail if isinstance(detail, tuple) else (detail, None)
                if not callable(kind):
                    kind, default = (None if kind is None else type(kind)), kind
                keywords |= {"metavar": metavar, "type": kind, "default": default}
            if form != metavar:
                repeats = flags and form.endswith("*")
                keywords |= {"action": "append", "default": []} if repeats else {"nargs": form[len(metavar) :]}
            if name in required:
                keywords["required"] = True
            parser.add_argument(*(flags or [name]), help=text, **keywords)
        if extend_parser is not None:
            extend_parser(parser)

    def register_arguments(command: Command) -> Command:
        ARGUMENTS[command] = add_arguments
        return command

    return register_arguments


def declare_subcommands(metavar: str, commands: Mapping[str, tuple[Command, str]], verb: str = "") -> Command:
    """Make a command whose first argument, shown as `metavar`, chooses one of `commands`, which have help texts.

    The help of a chosen command begins with the verb and this text.
    """

    def add_commands(parser: ArgumentParser) -> None:
        choices = parser.add_subparsers(metavar=metavar, required=True)
        for name, (command, text) in commands.items():
            whole = f"{verb}{text}."
            choice = choices.add_parser(name, help=text, description=f"{whole[0].upper()}{whole[1:]}")
            choice.set_defaults(chosen=command)
            ARGUMENTS[command](choice)

    def run_chosen_command(options: Namespace) -> int:
        status: int = options.chosen(options)
        return status

    ARGUMENTS[run_chosen_command] = add_commands
    return run_chosen_command
