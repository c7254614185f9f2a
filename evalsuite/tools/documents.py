"""Descriptions of tools for models, in the form of OpenAI's function definitions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ToolDocument:
    """A tool's name, what it does, and its parameters.

    Attributes:
        name: as the model must write it.
        description: what the tool does, for the model to read.
        parameters: a JSON schema of type `object`.
        origin: the library folder or class that the tool comes from; names are unique only within one.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    origin: str = ""

    @property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """The schema of each parameter, by name."""
        properties: Mapping[str, Mapping[str, Any]] = self.parameters.get("properties", {})
        return properties

    @property
    def further(self) -> Mapping[str, Any] | None:
        """The schema of parameters that are not named; None where there may be none.

        JSON Schema allows further parameters by default. Here a document must allow them, because published documents
        mean exactly the parameters they list.
        """
        further = self.parameters.get("additionalProperties", False)
        if further is False:
            return None
        return {} if further is True else further

    def whole(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a parameter's schema with the definitions that it may refer to."""
        shared = {key: self.parameters[key] for key in ("$defs", "definitions") if key in self.parameters}
        return {**shared, **schema} if shared else schema

    def follow_reference(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Follow a schema's reference into the document's own definitions."""
        for _ in range(8):
            start, _, name = str(schema.get("$ref", "")).rpartition("/")
            if start not in {"#/$defs", "#/definitions"}:
                break
            schema = self.parameters.get(start[2:], {}).get(name, {})
        return schema

    def takes_null(self, name: str) -> bool:
        """Return whether null is a valid value of a parameter."""
        kinds = self.properties.get(name, {}).get("type", ())
        return "null" in ([kinds] if isinstance(kinds, str) else kinds)

    @property
    def required(self) -> tuple[str, ...]:
        """The parameters that every call must give."""
        return tuple(self.parameters.get("required", ()))

    def plain(self) -> dict[str, Any]:
        """Return the document as JSON data."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}

    def text(self) -> str:
        """Write the document in a few lines, half the tokens of its JSON, for text protocols."""
        lines = [f"{self.name}({', '.join(self.properties)}): {self.description}"]
        for name, schema in self.properties.items():
            about = f": {schema['description']}" if schema.get("description") else ""
            lines.append(f"  {name} ({', '.join(self._list_notes(name, schema))}){about}")
        return "\n".join(lines)

    def _list_notes(self, name: str, schema: Mapping[str, Any]) -> list[str]:
        kind = schema.get("type")
        if isinstance(kind, str) and kind not in {"array", "object"} and "enum" not in schema:
            notes = [kind]
        else:
            # Only the schema itself says what an array, an object or a choice may hold.
            hidden = {"description", "default"}
            notes = [json.dumps({key: schema[key] for key in schema if key not in hidden}, ensure_ascii=False)]
        if "default" in schema:
            notes.append(f"default {json.dumps(schema['default'], ensure_ascii=False)}")
        elif name not in self.required:
            notes.append("optional")
        return notes

    def openai(self) -> dict[str, Any]:
        """Return the document as an entry of the `tools` of a chat request."""
        return {"type": "function", "function": self.plain()}


def _make_one_text(name: str, description: str, parameter: str, about: str) -> ToolDocument:
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string", "description": about}},
        "required": [parameter],
    }
    return ToolDocument(name, description, schema)


FINISH = _make_one_text("finish", "Ends the task with your answer to the user.", "answer", "The whole answer.")
ASK_TO_USER = _make_one_text(
    "ask_to_user",
    "Asks the user for something that only the user can know. Use it sparingly.",
    "question",
    "One question to the user.",
)
