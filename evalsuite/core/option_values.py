"""Options, and the syntax of their values on the command line and in ini files."""

from __future__ import annotations

import json
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
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
