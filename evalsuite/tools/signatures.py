"""The parameters of a typed function: their JSON schema, and the conversion of JSON arguments to their types."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Union

from evalsuite.core.errors import SettingsError
from evalsuite.tools.execution import ToolFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function.

    Attributes:
        schema: a JSON schema of type `object`.
        adapters: pydantic's type adapters of the parameters whose values JSON cannot express (a date, a dataclass).
    """

    schema: Mapping[str, Any]
    adapters: Mapping[str, Any]

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments in the types of the function's parameters.

        Raises:
            ToolFailure: a value fits the schema but not the type.
        """
        values = dict(arguments)
        for name in values.keys() & self.adapters.keys():
            try:
                values[name] = self.adapters[name].validate_python(values[name])
            except ValueError as error:
                raise ToolFailure(f"parameter {name!r}: {error}") from error
        return values


def read_signature(function: Callable[..., Any], about: Mapping[str, str]) -> Signature:
    """The parameters of a function.

    Args:
        function: the function whose annotations are read.
        about: the description of each parameter.

    Raises:
        SettingsError: a parameter has no type, a type that no JSON schema describes, or cannot be passed by name.
    """
    hints, adapters, definitions = _hints(function), dict[str, Any](), dict[str, Any]()
    properties: dict[str, Any] = {}
    parameters = _named_parameters(function)
    for parameter in parameters:
        where = f"tool {function.__name__!r}: {parameter.name!r}"
        if parameter.name not in hints:
            raise SettingsError(f"tool {function.__name__!r}: parameter {parameter.name!r} has no type")
        schema = _simple_schema(hints[parameter.name])
        if schema is None:
            adapter = adapters[parameter.name] = _adapter(hints[parameter.name], where)
            schema = _schema_of(adapter, hints[parameter.name], where)
            definitions |= schema.pop("$defs", {})
        if parameter.name in about:
            schema["description"] = about[parameter.name]
        if parameter.default is not parameter.empty and parameter.default is not None:
            schema["default"] = _plain(parameter.default, adapters.get(parameter.name))
        properties[parameter.name] = schema
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    schema = {"type": "object", "properties": properties, "required": required}
    return Signature({**schema, **({"$defs": definitions} if definitions else {})}, adapters)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    # Without the return type, which no document shows and which may be known to type checkers alone.
    annotations = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    bare = types.SimpleNamespace(__annotations__=annotations)
    try:
        return typing.get_type_hints(bare, function.__globals__, include_extras=True)
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


def _simple_schema(hint: Any) -> dict[str, Any] | None:
    """The schema of a type whose values are JSON as they are; None for any other."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return {}
    if isinstance(hint, type) and hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin is Literal and all(type(value) in _SIMPLE for value in inner):
        kinds = {_SIMPLE[type(value)] for value in inner}
        return {**({"type": kinds.pop()} if len(kinds) == 1 else {}), "enum": list(inner)}
    if origin in (Union, types.UnionType):
        return _any_of([_simple_schema(option) for option in inner if option is not type(None)])
    return _container(hint, origin, inner)


def _any_of(options: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    schemas = [option for option in options if option is not None]
    if len(schemas) < len(options):
        return None
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _container(hint: Any, origin: Any, inner: tuple[Any, ...]) -> dict[str, Any] | None:
    if list in (hint, origin):
        return _around("array", "items", inner[0] if inner else Any)
    if dict in (hint, origin):
        return _around("object", "additionalProperties", inner[1] if inner else Any)
    return None


def _around(kind: str, key: str, inner: Any) -> dict[str, Any] | None:
    schema = _simple_schema(inner)
    return None if schema is None else {"type": kind, **({key: schema} if schema else {})}


def _adapter(hint: Any, where: str) -> Any:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    from evalsuite.tools.typed_dicts import portable

    try:
        return TypeAdapter(portable(hint) if sys.version_info < (3, 12) else hint)
    except (PydanticUserError, TypeError, NameError) as error:
        raise _no_json(hint, where) from error


def _schema_of(adapter: Any, hint: Any, where: str) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError

    try:
        schema: dict[str, Any] = adapter.json_schema()
    except PydanticUserError as error:
        raise _no_json(hint, where) from error
    if schema.get("format") == "binary":
        raise _no_json(hint, where)
    return schema


def _no_json(hint: Any, where: str) -> SettingsError:
    return SettingsError(
        f"{where} has the type {hint!r}, which JSON has not; use str, int, float, bool, Literal, list and dict of "
        "these, an Enum, a date, a dataclass, a TypedDict or a pydantic model"
    )


def _plain(value: Any, adapter: Any) -> Any:
    return value if adapter is None else adapter.dump_python(value, mode="json")
