"""The decorator `@tool`, which makes a tool from a Python function's signature and docstring."""

import asyncio
import copy
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Annotated, Any, Literal, Union, overload

import typing_extensions

from evalsuite.core.errors import EvalsuiteError, SettingsError, describe_error
from evalsuite.core.protocols import Model
from evalsuite.core.threads import RaisedInThread, call_maybe_async
from evalsuite.tools.execution import Tool, ToolDocument, ToolFailure

_GOOGLE = re.compile(r"^(Args|Arguments|Parameters|Returns|Yields|Raises|Examples?|Notes?|Attributes|Warnings?):\s*$")
_NUMPY = re.compile(r"^(Parameters|Other Parameters|Returns|Yields|Raises|Examples?|Notes?|See Also|Warnings?)\s*$")
_FIELD = re.compile(r"^:(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)$")
_ANY_FIELD = re.compile(r"^:\w+[^:]*:")
_GOOGLE_PARAMETER = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_NUMPY_PARAMETER = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_ABOUT_PARAMETERS = ("Args", "Arguments", "Parameters", "Other Parameters")


def read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return a docstring's text before its first section, and the descriptions of parameters by name."""
    lines = inspect.cleandoc(docstring).splitlines()
    starts = [
        number
        for number, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=False))
        if _GOOGLE.match(line)
        or _ANY_FIELD.match(line)
        or (_NUMPY.match(line) and re.fullmatch(r"-{3,}\s*", following))
    ]
    bounds = [*starts, len(lines)]
    description = " ".join(" ".join(lines[: bounds[0]]).split())
    parameters: dict[str, str] = {}
    for start, end in pairwise(bounds):
        parameters |= _read_docstring_section(lines[start:end])
    return description, parameters


def _read_docstring_section(lines: list[str]) -> dict[str, str]:
    """Return the descriptions of parameters by name; {} if the section is not about parameters."""
    heading = lines[0].rstrip()
    if field := _FIELD.match(lines[0]):
        return {field[1]: " ".join(" ".join([field[2], *lines[1:]]).split())}
    if heading.rstrip(":") not in _ABOUT_PARAMETERS:
        return {}
    first, pattern = (1, _GOOGLE_PARAMETER) if heading.endswith(":") else (2, _NUMPY_PARAMETER)
    parameters: dict[str, str] = {}
    names: list[str] = []
    outermost = min((len(line) - len(line.lstrip()) for line in lines[first:] if line.strip()), default=0)
    for line in lines[first:]:
        entry = pattern.match(line.strip()) if len(line) - len(line.lstrip()) == outermost else None
        if entry:
            names = [name.strip() for name in entry[1].split(",")]
            parameters |= dict.fromkeys(names, entry[2] if pattern.groups > 1 else "")
        else:
            for name in names:
                parameters[name] = f"{parameters[name]} {line.strip()}".strip()
    return parameters


def replace_typed_dicts(hint: Any) -> Any:
    """Replace each TypedDict inside a type by an equal TypedDict of typing_extensions."""
    if typing.is_typeddict(hint):
        fields = {}
        for name, kind in typing.get_type_hints(hint, include_extras=False).items():
            is_required = name in hint.__required_keys__
            qualifier = typing_extensions.Required if is_required else typing_extensions.NotRequired
            fields[name] = qualifier[replace_typed_dicts(kind)]
        return typing_extensions.TypedDict(hint.__name__, fields)  # type: ignore[operator, unused-ignore]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    changed = tuple(map(replace_typed_dicts, inner))
    if changed == inner:
        return hint
    if origin is Annotated:
        return Annotated[changed]
    if origin in (Union, types.UnionType):
        return reduce(or_, changed)
    return origin[changed]


_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def read_signature(function: Callable[..., Any], about: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON schema of a function's parameters, and pydantic's adapters of those whose types JSON lacks."""
    # Leave out the return type: the model does not see it, and it may be imported only for type checkers.
    annotations = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    bare = types.SimpleNamespace(__annotations__=annotations)
    try:
        hints = typing.get_type_hints(bare, function.__globals__, include_extras=True)
    except NameError as error:
        message = f"tool {function.__name__!r}: {error}; types of tools must be importable at run time"
        raise SettingsError(message) from error
    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].name == "self":
        del parameters[0]
    adapters, definitions, properties = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for parameter in parameters:
        label = f"tool {function.__name__!r}: parameter {parameter.name!r}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise SettingsError(f"{label} cannot be given by name")
        if parameter.name not in hints:
            raise SettingsError(f"{label} has no type")
        # If a parameter's default is None, its schema does not allow null, because the model may leave it out.
        schema = _make_simple_schema(hints[parameter.name], may_be_null=parameter.default is not None)
        if schema is None:
            adapters[parameter.name], schema = _make_adapter_and_schema(hints[parameter.name], label)
            definitions |= schema.pop("$defs", {})
        if parameter.name in about:
            schema["description"] = about[parameter.name]
        if parameter.default is not parameter.empty and parameter.default is not None:
            given, adapter = parameter.default, adapters.get(parameter.name)
            schema["default"] = given if adapter is None else adapter.dump_python(given, mode="json")
        properties[parameter.name] = schema
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    schema = {"type": "object", "properties": properties, "required": required}
    return {**schema, **({"$defs": definitions} if definitions else {})}, adapters


def _make_simple_schema(hint: Any, *, may_be_null: bool = True) -> dict[str, Any] | None:
    """Return a type's JSON schema if its values need no conversion; otherwise return None."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return {}
    if isinstance(hint, type) and hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin is Literal and all(type(value) in _SIMPLE for value in inner):
        kinds = {_SIMPLE[type(value)] for value in inner}
        return {**({"type": kinds.pop()} if len(kinds) == 1 else {}), "enum": list(inner)}
    if origin in (Union, types.UnionType):
        return _join_simple_schemas([kind for kind in inner if may_be_null or kind is not type(None)])
    for container, kind, key in ((list, "array", "items"), (dict, "object", "additionalProperties")):
        if container in (hint, origin):
            schema = _make_simple_schema(inner[-1] if inner else Any)
            return None if schema is None else {"type": kind, **({key: schema} if schema else {})}
    return None


def _join_simple_schemas(hints: list[Any]) -> dict[str, Any] | None:
    """Return a JSON schema that accepts all of these types; return None if a type's values need conversion."""
    options = [schema for hint in hints if (schema := _make_simple_schema(hint)) is not None]
    if len(options) < len(hints):
        return None
    first = options[0]
    if len(options) == 2 and hints[1] is type(None) and "type" in first and "enum" not in first:
        return {**first, "type": [first["type"], "null"]}
    return first if len(options) == 1 else {"anyOf": options}


def _make_adapter_and_schema(hint: Any, label: str) -> tuple[Any, dict[str, Any]]:
    """Return pydantic's adapter of a type, and the type's JSON schema; raise SettingsError if JSON has no such type."""
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    refusal = SettingsError(
        f"{label} has the type {hint!r}, which JSON has not; use str, int, float, bool, Literal, list and dict of "
        "these, an Enum, a date, a dataclass, a TypedDict or a pydantic model"
    )
    try:
        adapter = TypeAdapter(replace_typed_dicts(hint) if sys.version_info < (3, 12) else hint)
        schema = adapter.json_schema()
    except (PydanticUserError, TypeError, NameError) as error:
        raise refusal from error
    if schema.get("format") == "binary":
        raise refusal
    return adapter, schema


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """Calls a tool's function; a plain (not async) function runs in a thread, so that the event loop is not blocked."""

    function: Callable[..., Any]  # The user's function.
    # Pydantic's type adapters, by name, for parameters of types that JSON lacks (a date, a dataclass).
    adapters: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None  # Time limit of a call in seconds, in addition to the episode's limits.
    kind: str = "python"
    timed: bool = True

    async def run_tool(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:  # noqa: ARG002 - the executors' signature
        """Call the function; an exception becomes a failure, which the model reads."""
        own = copy.deepcopy(dict(arguments))  # The function may change its arguments, but the record must not.
        for name in own.keys() & self.adapters.keys():
            try:
                own[name] = self.adapters[name].validate_python(own[name])
            except ValueError as error:
                raise ToolFailure(f"parameter {name!r}: {error}") from error
        try:
            async with asyncio.timeout(self.seconds) as limit:
                return await call_maybe_async(self.function, **own)
        except (EvalsuiteError, GeneratorExit):
            raise
        except TimeoutError as error:
            if limit.expired():
                raise ToolFailure(f"no answer within {self.seconds:g} s") from None
            raise ToolFailure(describe_error(error)) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise ToolFailure(describe_error(error)) from error
        except RaisedInThread as error:
            raise ToolFailure(str(error)) from error
        except BaseException as error:
            # Catch SystemExit, too, because a tool that calls sys.exit must not end the event loop.
            raise ToolFailure(describe_error(error)) from error


class DeclaredTool(Tool):
    """A tool made by `@tool`, which can also be called as a function, or as a method if it is in a class."""

    __slots__ = ()

    @property
    def function(self) -> Callable[..., Any]:
        return typing.cast("PythonFunction", self.executor).function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> "DeclaredTool":
        if instance is None:
            return self
        mine = typing.cast("PythonFunction", self.executor)
        bound = PythonFunction(self.function.__get__(instance, owner), mine.adapters, mine.seconds)
        return DeclaredTool(self.document, bound)


@overload
def tool(function: Callable[..., Any], /) -> DeclaredTool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, seconds: float | None = None
) -> Callable[[Callable[..., Any]], DeclaredTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    seconds: float | None = None,
) -> DeclaredTool | Callable[[Callable[..., Any]], DeclaredTool]:
    """Make a tool from a function or a method; for a method, each episode makes its own object of the class.

    The tool's parameters come from the function's signature, and their descriptions from its docstring (Google, NumPy
    or Sphinx style). Parameters may have the types `str`, `int`, `float`, `bool`, `Any` and `Literal`; lists, dicts and
    sequences of these types; and unions with None. All types that pydantic supports are possible, too, such as an Enum,
    a date, a dataclass, a TypedDict or a pydantic model. The function gets values of the types in its annotations.

    Args:
        function: the decorated function, when `@tool` is written without parentheses.
        name: the name by which the model calls the tool; by default the function's name.
        description: what the model reads about the tool; by default the docstring's text up to its first section.
        seconds: time limit of a call; a slower call fails, and the model reads that it failed.

    Raises:
        SettingsError: the function has neither docstring nor description, or a parameter lacks a name or a JSON type.
    """
    if function is None:
        return lambda decorated: _declare_tool(decorated, name, description, seconds)
    return _declare_tool(function, name, description, seconds)


def _declare_tool(
    function: Callable[..., Any], name: str | None, description: str | None, seconds: float | None
) -> DeclaredTool:
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise SettingsError(
            f"@tool was given {function!r:.200}, which is not a function; decorate a function, or a method with `self`"
        )
    limit: object = seconds
    if limit is not None and not (isinstance(limit, int | float) and limit > 0):
        raise SettingsError(f"@tool(seconds={seconds!r}): give a number above 0, or None for no limit")
    name = name or function.__name__
    from_docstring, about = read_docstring(function.__doc__ or "")
    if not (description or from_docstring):
        raise SettingsError(
            f"tool {name!r} has no docstring, which is what the model reads about it; write one, or pass description="
        )
    schema, adapters = read_signature(function, about)
    document = ToolDocument(name, description or from_docstring, schema, function.__module__)
    return DeclaredTool(document, PythonFunction(function, adapters, seconds))
