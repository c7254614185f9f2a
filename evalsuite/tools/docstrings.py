"""Reads descriptions of a function and its parameters from a docstring in Google, NumPy or Sphinx style."""

from __future__ import annotations

import inspect
import re

_GOOGLE = re.compile(
    r"^(Args|Arguments|Parameters|Returns|Yields|Raises|Examples?|Notes?|Attributes|Warnings?):\s*$"
)
_NUMPY = re.compile(
    r"^(Parameters|Other Parameters|Returns|Yields|Raises|Examples?|Notes?|See Also|Warnings?)\s*$"
)
_FIELD = re.compile(r"^:(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)$")
_ANY_FIELD = re.compile(r"^:\w+[^:]*:")
_GOOGLE_PARAMETER = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_NUMPY_PARAMETER = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_ABOUT_PARAMETERS = ("Args", "Arguments", "Parameters", "Other Parameters")


def read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the description of each parameter."""
    lines = inspect.cleandoc(docstring).splitlines()
    starts = [number for number in range(len(lines)) if _starts_section(lines, number)]
    bounds = [*starts, len(lines)]
    description = " ".join(" ".join(lines[: bounds[0]]).split())
    parameters: dict[str, str] = {}
    for start, end in zip(starts, bounds[1:], strict=True):
        parameters |= _section(lines[start:end])
    return description, parameters


def _starts_section(lines: list[str], number: int) -> bool:
    line = lines[number]
    underlined = number + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[number + 1])
    return bool(_GOOGLE.match(line) or (underlined and _NUMPY.match(line)) or _ANY_FIELD.match(line))


def _section(lines: list[str]) -> dict[str, str]:
    if field := _FIELD.match(lines[0]):
        return {field[1]: " ".join(" ".join([field[2], *lines[1:]]).split())}
    if lines[0].rstrip().rstrip(":") not in _ABOUT_PARAMETERS:
        return {}
    numpy = not lines[0].rstrip().endswith(":")
    return _entries(lines[2:] if numpy else lines[1:], _NUMPY_PARAMETER if numpy else _GOOGLE_PARAMETER)


def _entries(lines: list[str], pattern: re.Pattern[str]) -> dict[str, str]:
    parameters: dict[str, str] = {}
    outermost = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    names: list[str] = []
    for line in lines:
        entry = pattern.match(line.strip()) if len(line) - len(line.lstrip()) == outermost else None
        if entry:
            names = [name.strip() for name in entry[1].split(",")]
            parameters |= dict.fromkeys(names, entry[2] if pattern.groups > 1 else "")
        else:
            for name in names:
                parameters[name] = f"{parameters[name]} {line.strip()}".strip()
    return parameters
