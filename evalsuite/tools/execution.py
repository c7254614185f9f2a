"""Tools: documents, checks of a call's arguments, executors (which run tools), and the registry."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from evalsuite.core.errors import SettingsError, ToolError, describe_error, shorten_line, shorten_to_beginning
from evalsuite.core.protocols import Model

if TYPE_CHECKING:
    from jsonschema import ValidationError


@dataclass(frozen=True, slots=True)
class ToolDocument:
    """What the model reads about a tool: its name, description and parameters.

    Attributes:
        name: the name by which the model must call the tool.
        description: a text that tells the model what the tool does.
        parameters: the JSON schema of the arguments, of type `object`.
        origin: the folder of the tool's library, or the tool's class; tools of two origins may have the same name.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    origin: str = ""

    @property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON schema of each parameter, by name."""
        properties: Mapping[str, Mapping[str, Any]] = self.parameters.get("properties", {})
        return properties

    @property
    def further(self) -> Mapping[str, Any] | None:
        """The schema of parameters that are not listed in the tool's JSON schema; None if these are not allowed.

        JSON Schema allows unlisted parameters unless a schema forbids them. In evalsuite, a schema must explicitly
        allow unlisted parameters, because published documents list all parameters.
        """
        schema = self.parameters.get("additionalProperties", False)
        if schema is False:
            return None
        return {} if schema is True else schema

    def whole(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a parameter's schema together with the shared definitions to which it may refer."""
        shared = {key: self.parameters[key] for key in ("$defs", "definitions") if key in self.parameters}
        return {**shared, **schema}

    def follow_reference(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the definition to which a schema refers, or the schema itself if it is not a reference."""
        for _ in range(8):
            start, _, name = str(schema.get("$ref", "")).rpartition("/")
            if start not in {"#/$defs", "#/definitions"}:
                break
            schema = self.parameters.get(start[2:], {}).get(name, {})
        return schema

    def takes_null(self, name: str) -> bool:
        """Tell whether a parameter may be null."""
        schema = self.properties.get(name, {})
        kinds = [option.get("type", ()) for option in (schema, *schema.get("anyOf", ()))]
        return any("null" in ([kind] if isinstance(kind, str) else kind) for kind in kinds)

    @property
    def required(self) -> tuple[str, ...]:
        """The parameters that every call must contain."""
        return tuple(self.parameters.get("required", ()))

    def plain(self) -> dict[str, Any]:
        """Return the document as JSON data."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}

    def text(self) -> str:
        """Return the document as a few lines for text protocols, because JSON takes twice as many tokens."""
        lines = [f"{self.name}({', '.join(self.properties)}): {self.description}"]
        for name, schema in self.properties.items():
            about = f": {schema['description']}" if schema.get("description") else ""
            lines.append(f"  {name} ({', '.join(self._list_parameter_notes(name, schema))}){about}")
        return "\n".join(lines)

    def _list_parameter_notes(self, name: str, schema: Mapping[str, Any]) -> list[str]:
        """List a parameter's notes, which are written in parentheses: its type, and its default or `optional`."""
        kind = schema.get("type")
        if isinstance(kind, str) and kind not in {"array", "object"} and "enum" not in schema:
            notes = [kind]
        else:
            # The type alone does not tell what arrays, objects and choices contain, so write the whole schema.
            hidden = {"description", "default"}
            notes = [json.dumps({key: schema[key] for key in schema if key not in hidden}, ensure_ascii=False)]
        if "default" in schema:
            notes.append(f"default {json.dumps(schema['default'], ensure_ascii=False)}")
        elif name not in self.required:
            notes.append("optional")
        return notes

    def openai(self) -> dict[str, Any]:
        """Return the document as an entry of a chat request's `tools`."""
        return {"type": "function", "function": self.plain()}


def _make_tool_document(name: str, description: str, parameter: str, parameter_description: str) -> ToolDocument:
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string", "description": parameter_description}},
        "required": [parameter],
    }
    return ToolDocument(name, description, schema)


FINISH = _make_tool_document("finish", "Ends the task with your answer to the user.", "answer", "The whole answer.")
ASK_TO_USER = _make_tool_document(
    "ask_to_user",
    "Asks the user for something that only the user can know. Use it sparingly.",
    "question",
    "One question to the user.",
)

LONGEST_NAME = 60  # Maximum characters of a name in a message to the model.
LONGEST_FAULT = 160  # Maximum characters of a fault's text.
FaultKind = Literal[
    "unknown_tool", "unknown_parameter", "missing_parameter", "wrong_type", "escaped_name", "after_finish"
]


@dataclass(frozen=True, slots=True)
class CallFault:
    """Something that is wrong with a tool call."""

    kind: FaultKind  # The fault's kind; reports count faults by kind.
    words: str  # A sentence that explains the fault to the model.


CheckedArguments = tuple[dict[str, Any], tuple[CallFault, ...]]  # A call's converted arguments, and their faults.


def convert_arguments(document: ToolDocument, arguments: Mapping[str, Any]) -> CheckedArguments:
    """Convert arguments to the types in the tool's document; return them and their faults.

    Values are converted only if nothing is lost; conversion is needed, because some published documents declare numbers
    as strings or strings as numbers. If the value of an optional parameter is null, treat it as missing.
    """
    required, unlisted = document.required, document.further
    schemas = {**({} if unlisted is None else dict.fromkeys(arguments, unlisted)), **document.properties}
    unknown = [name for name in arguments if name not in schemas]
    checked = {
        name: convert_to_schema_type(value, document.follow_reference(schemas[name]))
        for name, value in arguments.items()
        if name in schemas and not (value is None and name not in required and not document.takes_null(name))
    }
    faults = [CallFault("unknown_parameter", f"{document.name} has no {_name_parameter(name)}") for name in unknown]
    faults += [
        CallFault("missing_parameter", f"{document.name} needs the {_name_parameter(name)}")
        for name in required
        if name not in checked
    ]
    for name, value in checked.items():
        violations = _list_violations(document, value, document.whole(schemas[name]))
        violations.sort(key=lambda error: (list(map(str, error.absolute_path)), error.message))
        faults += [_make_type_fault(_name_parameter(name), error) for error in violations]
    if not faults:
        # Rules about several arguments together, such as `oneOf`, `anyOf` and `dependentRequired`.
        alone = {"type", "properties", "required", "additionalProperties"}
        together = {key: value for key, value in document.parameters.items() if key not in alone}
        violations = _list_violations(document, checked, together)
        faults += [_make_type_fault("the parameters together", error) for error in violations]
    if any("\\" in name for name in unknown):
        faults.append(CallFault("escaped_name", "names are written without backslashes"))
    return checked, tuple(faults)


def _name_parameter(name: str) -> str:
    return f"parameter {shorten_to_beginning(name, LONGEST_NAME)!r}"


def _make_type_fault(label: str, error: "ValidationError") -> CallFault:
    return CallFault("wrong_type", f"{label}: {shorten_line(error.message, LONGEST_FAULT)}")


def _list_violations(document: ToolDocument, value: Any, schema: Mapping[str, Any]) -> "list[ValidationError]":
    from jsonschema import Draft202012Validator
    from referencing import Registry

    try:
        # Without this registry, jsonschema would fetch any file or address that a server's document refers to.
        return list(Draft202012Validator(schema, registry=Registry()).iter_errors(value))
    except Exception as error:
        raise ToolError(f"the schema of tool {document.name!r} cannot be used: {describe_error(error)}") from error


def convert_to_schema_type(value: Any, schema: Mapping[str, Any]) -> Any:
    """Convert a value to the type in its schema; return the value unchanged if this is impossible.

    If the schema lists several types and the value has none of them, convert the value to the first type.
    """
    demanded = schema.get("type")
    if isinstance(demanded, (list, tuple)):
        from jsonschema import Draft202012Validator

        kinds = [kind for kind in demanded if kind != "null"]
        if (value is None or len(kinds) != 1) and Draft202012Validator({"type": list(demanded)}).is_valid(value):
            return value
        demanded = next(iter(kinds), "null")
    if demanded == "string" and isinstance(value, (bool, int, float, list, dict)):
        return json.dumps(value, ensure_ascii=False)
    if demanded in {"integer", "number"} and isinstance(value, str):
        value = _parse_number_or_keep_text(value)
    if demanded == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if demanded == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    if demanded == "array" and isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [convert_to_schema_type(item, schema["items"]) for item in value]
    return value


def _parse_number_or_keep_text(text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    try:
        return int(text)
    except ValueError:
        return number


class ToolFailure(Exception):  # noqa: N818 - an observation, not an error of the run
    """The tool was run, but it failed. The model reads the message and may call the tool again."""


class Executor(Protocol):
    """Runs the calls of a tool."""

    @property
    def kind(self) -> str:
        """The kind of executor, as named in records and reports: `python`, `simulated`, `recorded`, `live` or `mcp`."""
        ...

    # If an executor has a true attribute `timed`, the time limits of tools apply to it, and its own limit, `seconds`.
    # If it has an async context manager `lock`, an episode enters it before a call's limits begin, so that no limit
    # covers the wait for other calls, or for a world to be made.

    async def run_tool(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:
        """Run one call; return the tool's result as text or JSON data."""
        ...


def convert_to_text(result: Any) -> str:
    """Convert a tool's result to text for the model: text is not changed, any other value becomes JSON."""
    try:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=_make_plain)
    except Exception as error:
        # A tool may return an object whose `__str__` raises any exception.
        raise ToolFailure(f"the result cannot be written as JSON: {describe_error(error)}") from error
    # Replace unpaired surrogates, because writing them to a file would fail.
    return text.encode("utf-8", "replace").decode()


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+[>;]")  # An address in the text of an object: `<Ticket object at 0x7f1c>`.


def _make_plain(value: Any) -> Any:
    """Convert a set to a sorted list and another object to text, so that equal values are equal in every process."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if _ADDRESS.search(text := str(value)):
        raise TypeError(f"a {type(value).__name__} is not plain data: its text contains an address; give its vars()")
    return text


def convert_to_json(value: Any, subject: str = "a world's state()") -> Any:
    """Convert a state to JSON data, as `convert_to_text` does; if it fails, raise SettingsError about `subject`."""
    try:
        return json.loads(convert_to_text(value)) if not isinstance(value, str) else value
    except ToolFailure as failure:
        raise SettingsError(f"{subject}: {failure}") from failure


@dataclass(frozen=True)
class Tool:
    """A tool: its document, and the executor that runs it."""

    document: ToolDocument
    executor: Executor


class Registry:
    """Tools by name. If two tools have the same name, as in some published folders, use the first."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self._tools.setdefault(tool.document.name, tool)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    @property
    def documents(self) -> tuple[ToolDocument, ...]:
        """The documents of all tools, in the order in which the tools were given."""
        return tuple(tool.document for tool in self._tools.values())

    def convert_call_arguments(self, name: str, arguments: Mapping[str, Any]) -> CheckedArguments:
        """Convert a call's arguments to the types in the tool's document; also return the call's faults."""
        if name in self._tools:
            return convert_arguments(self._tools[name].document, arguments)
        message = f"no tool is named {shorten_to_beginning(name, LONGEST_NAME)!r}; there are {', '.join(self._tools)}"
        faults = [CallFault("unknown_tool", message)]
        if "\\" in name:
            faults.append(CallFault("escaped_name", "names are written without backslashes"))
        return dict(arguments), tuple(faults)


def tools_of(made: object) -> list[Tool]:
    """List the tools in what a source returned: a list of tools, or an object with `@tool` methods.

    Raises:
        SettingsError: the source did not return any tools.
    """
    listed = made if isinstance(made, Sequence) else [getattr(made, name) for name in find_tool_methods(type(made))]
    if not listed or not all(isinstance(tool, Tool) for tool in listed):
        raise SettingsError(f"{made!r} holds no tools; decorate its functions or methods with @tool")
    return list(listed)


def list_tool_documents(tool_class: type) -> list[ToolDocument]:
    """List the documents of a class's `@tool` methods, inherited methods first, without making an object."""
    return [method.document for method in find_tool_methods(tool_class).values()]


def find_tool_methods(tool_class: type) -> dict[str, Tool]:
    """Return a class's `@tool` methods by name, inherited methods first."""
    # Look at the classes instead of the object, because reading all attributes of the object would run its properties.
    members = {name: member for base in reversed(tool_class.__mro__) for name, member in vars(base).items()}
    return {name: member for name, member in members.items() if isinstance(member, Tool)}
