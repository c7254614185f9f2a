"""`@tool`: a tool's document made from a typed function's signature and docstring."""

from __future__ import annotations

import inspect
import re
import types
import typing
from typing import TYPE_CHECKING, Any, Literal, Union

from evalsuite.errors import SettingsError
from evalsuite.tools.documents import ToolDocument
from evalsuite.tools.python import PythonFunction
from evalsuite.tools.registry import Tool

if TYPE_CHECKING:
    from collections.abc import Callable

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_SECTION = re.compile(r"^(Args|Arguments|Returns|Yields|Raises|Examples?|Notes?|Attributes|Warnings?):\s*$")
_PARAMETER = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


class DeclaredTool(Tool):
    """A tool made by `@tool`: still callable as the function it was, and bound like a method in a class."""

    __slots__ = ()

    @property
    def function(self) -> Callable[..., Any]:
        """The decorated function."""
        executor = typing.cast("PythonFunction", self.executor)
        return executor.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function directly, as a test of the tool would."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> DeclaredTool:
        if instance is None:
            return self
        return DeclaredTool(self.document, PythonFunction(self.function.__get__(instance, owner)))


def tool(function: Callable[..., Any]) -> DeclaredTool:
    """Declares a Python function, or a method of a class made anew for each episode, to be a tool.

    The tool's name is the function's, its description the docstring up to the first section, its
    parameters those of the signature with the descriptions of the docstring's `Args`. Types may be `str`,
    `int`, `float`, `bool`, `Literal`, `list` and `dict` of these, and unions with None.

    Raises:
        SettingsError: there is no docstring, a parameter is not annotated, has a type that JSON has not, or
            cannot be given by name.
    """
    name = function.__name__
    if not (function.__doc__ or "").strip():
        raise SettingsError(f"tool {name!r} has no docstring; a model knows a tool by it, so write one")
    description, about = _parts(inspect.cleandoc(function.__doc__ or ""))
    document = ToolDocument(name, description, _schema(function, about), function.__module__)
    return DeclaredTool(document, PythonFunction(function))


def _parts(docstring: str) -> tuple[str, dict[str, str]]:
    lines = docstring.splitlines()
    starts = [number for number, line in enumerate(lines) if _SECTION.match(line)] or [len(lines)]
    description = " ".join(" ".join(lines[: starts[0]]).split())
    about: dict[str, str] = {}
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        if start < len(lines) and lines[start].startswith("Arg"):
            about |= _parameters(lines[start + 1 : end])
    return description, about


def _parameters(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    last = ""
    for line in lines:
        named = _PARAMETER.match(line.strip())
        if named and len(line) - len(line.lstrip()) == min(indents):
            last, found[named.group(1)] = named.group(1), named.group(2)
        elif last:
            found[last] = f"{found[last]} {line.strip()}".strip()
    return found


def _schema(function: Callable[..., Any], about: dict[str, str]) -> dict[str, Any]:
    parameters = _named_parameters(function)
    hints = _hints(function)
    properties: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name not in hints:
            raise SettingsError(f"tool {function.__name__!r}: parameter {parameter.name!r} has no type")
        schema = _type_schema(hints[parameter.name], f"tool {function.__name__!r}: {parameter.name!r}")
        if parameter.name in about:
            schema["description"] = about[parameter.name]
        if parameter.default is not parameter.empty and parameter.default is not None:
            schema["default"] = parameter.default
        properties[parameter.name] = schema
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    return {"type": "object", "properties": properties, "required": required}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    # Without the return type, which no document shows and which may be known to type checkers alone.
    annotations = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    bare = types.SimpleNamespace(__annotations__=annotations)
    try:
        return typing.get_type_hints(bare, function.__globals__)
    except NameError as error:
        message = f"tool {function.__name__!r}: {error}; types of tools must be importable at run time"
        raise SettingsError(message) from error


def _named_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].name == "self":
        del parameters[0]
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            message = f"tool {function.__name__!r}: parameter {parameter.name!r} cannot be given by name"
            raise SettingsError(message)
    return parameters


def _type_schema(hint: Any, where: str) -> dict[str, Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin is Literal and all(type(value) in _SIMPLE for value in inner):
        kinds = {_SIMPLE[type(value)] for value in inner}
        return {**({"type": kinds.pop()} if len(kinds) == 1 else {}), "enum": list(inner)}
    if origin in (Union, types.UnionType):
        kept = [_type_schema(option, where) for option in inner if option is not type(None)]
        return kept[0] if len(kept) == 1 else {"anyOf": kept}
    if list in (hint, origin):
        return {"type": "array", **({"items": _type_schema(inner[0], where)} if inner else {})}
    if dict in (hint, origin):
        values = {"additionalProperties": _type_schema(inner[1], where)} if inner else {}
        return {"type": "object", **values}
    raise SettingsError(
        f"{where} has the type {hint!r}, which JSON has not; use str, int, float, bool, "
        "Literal, or list and dict of these"
    )
