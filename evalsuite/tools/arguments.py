"""The arguments of a call: parsed from what the model wrote, and checked against the tool's document."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evalsuite.core.phrases import beginning, ends_of_line
from evalsuite.tools.literals import read_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.tools.documents import ToolDocument

MAX_CHARACTERS = 100_000
# Of names and faults as the model is told them.
LONGEST_NAME = 60
LONGEST_FAULT = 160
FaultKind = Literal[
    "unknown_tool", "unknown_parameter", "missing_parameter", "wrong_type", "escaped_name", "after_finish"
]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a call.

    Attributes:
        kind: to count by.
        words: a sentence for the model.
    """

    kind: FaultKind
    words: str


def parse_arguments(text: str) -> tuple[dict[str, Any], str]:
    """The arguments at the start of a text, and what follows them.

    Args:
        text: what the model wrote.

    Raises:
        ValueError: the text does not start with an object or dict of at most `MAX_CHARACTERS`
            characters, or holds characters that no file can store; the message says what is wrong.
    """
    text = text.strip()
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the arguments are {len(text)} characters long, more than {MAX_CHARACTERS}")
    value, end = read_value(text)
    if not isinstance(value, dict):
        message = f"the arguments are {text[:20]!r}, not an object of names and values"
        raise ValueError(message)  # noqa: TRY004 - the text is wrong, not the caller's type
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("the arguments hold half of a surrogate pair, which is no character") from error
    return value, text[end:].strip()


def check_arguments(
    document: ToolDocument, arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """The arguments in the tool's types, and everything that is wrong with them.

    Values are converted to the documented type if nothing is lost: published documents type every parameter as a
    string while models write numbers, and the other way round. A null for an optional parameter counts as leaving it
    out.
    """
    properties, required = document.properties, document.required
    further = document.further
    unknown = [name for name in arguments if name not in properties and further is None]
    checked = {
        name: fitted(value, document.resolved(properties.get(name, further or {})))
        for name, value in arguments.items()
        if (name in properties or further is not None)
        and not (value is None and name not in required and not document.takes_null(name))
    }
    faults = [
        Fault("unknown_parameter", f"{document.name} has no parameter {beginning(name, LONGEST_NAME)!r}")
        for name in unknown
    ]
    faults += [
        Fault("missing_parameter", f"{document.name} needs the parameter {beginning(name, LONGEST_NAME)!r}")
        for name in required
        if name not in checked
    ]
    faults += [
        fault
        for name in checked
        for fault in _type_faults(name, checked[name], document.whole(properties.get(name, further or {})))
    ]
    if not faults:
        faults += _combination_faults(document, checked)
    if any("\\" in name for name in unknown):
        faults.append(Fault("escaped_name", "names are written without backslashes"))
    return checked, tuple(faults)


def _type_faults(name: str, value: Any, schema: Mapping[str, Any]) -> list[Fault]:
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(schema).iter_errors(value)
    return [
        Fault(
            "wrong_type",
            f"parameter {beginning(name, LONGEST_NAME)!r}: {ends_of_line(error.message, LONGEST_FAULT)}",
        )
        for error in sorted(errors, key=lambda error: (list(map(str, error.absolute_path)), error.message))
    ]


def _combination_faults(document: ToolDocument, arguments: Mapping[str, Any]) -> list[Fault]:
    """Violations of what the schema says about several arguments at once: `oneOf`, `anyOf`, `dependentRequired` ..."""
    from jsonschema import Draft202012Validator

    alone = {"type", "properties", "required", "additionalProperties"}
    together = {key: value for key, value in document.parameters.items() if key not in alone}
    errors = Draft202012Validator(together).iter_errors(dict(arguments))
    return [
        Fault("wrong_type", f"the parameters together: {ends_of_line(error.message, LONGEST_FAULT)}")
        for error in errors
    ]


def fitted(value: Any, schema: Mapping[str, Any]) -> Any:
    """A value converted to the type that the schema demands, or unchanged if that is not obvious.

    If the schema allows several types, the first one counts, unless the value already has one of the others.
    """
    demanded = schema.get("type")
    if isinstance(demanded, (list, tuple)):
        if _has_type(value, demanded):
            return value
        demanded = next((kind for kind in demanded if kind != "null"), "null")
    if demanded == "string" and isinstance(value, (bool, int, float, list, dict)):
        return json.dumps(value, ensure_ascii=False)
    if demanded in {"integer", "number"} and isinstance(value, str):
        value = _as_number(value)
    if demanded == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if demanded == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    if demanded == "array" and isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [fitted(item, schema["items"]) for item in value]
    return value


def _has_type(value: Any, kinds: Sequence[str]) -> bool:
    from jsonschema import Draft202012Validator

    return Draft202012Validator({"type": list(kinds)}).is_valid(value)


def _as_number(text: str) -> Any:
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
