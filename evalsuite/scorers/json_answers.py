"""Answers that should be JSON of a given shape: asked for where the server can, validated in any case."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SettingsError
from evalsuite.core.types import Score

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

    from evalsuite.core.types import Sample, Transcript

FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class JsonSchema:
    """Scores how well an answer fits a JSON Schema; made by `json_schema`.

    Attributes:
        name: of the schema, for the server.
        schema: the JSON Schema.
    """

    name: str
    schema: Mapping[str, Any]

    @property
    def response_format(self) -> dict[str, Any]:
        """The generation parameter that asks a server for this shape: `generate(response_format=...)`."""
        return {"type": "json_schema", "json_schema": {"name": self.name, "schema": dict(self.schema)}}

    @cached_property
    def _validator(self) -> Validator:
        from jsonschema.validators import validator_for

        chosen: Validator = validator_for(self.schema)(self.schema)
        return chosen

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, Score]:
        """Scores one answer."""
        value, fault = self.read(transcript.answer)
        scores = {"valid": Score(float(not fault), fault)}
        wanted = _object(sample.target) if isinstance(sample.target, str) else sample.metadata.get("fields")
        if isinstance(wanted, Mapping):
            fields = value if isinstance(value, Mapping) else {}
            for name, right in wanted.items():
                same = name in fields and fields[name] == right
                scores[f"field_{name}"] = Score(
                    float(same), "" if same else f"{fields.get(name)!r}, not {right!r}"
                )
        return scores

    def read(self, answer: str) -> tuple[Any, str]:
        """The answer's value, which may stand in a fence, and what is wrong with it; empty where nothing is."""
        fenced = FENCE.match(answer)
        try:
            value = json.loads(fenced[1] if fenced else answer, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            return None, f"not JSON: {error}"
        from jsonschema.exceptions import best_match

        worst = best_match(self._validator.iter_errors(value))
        return value, f"{worst.json_path}: {worst.message}"[:300] if worst else ""


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def json_schema(shape: type[Any] | Mapping[str, Any], *, name: str = "answer") -> JsonSchema:
    """`valid`: 1.0 where the answer is JSON of this shape; `field_NAME`: 1.0 where a field is the target's.

    The target's fields are those of a target that is a JSON object, or of the sample's `metadata["fields"]`.
    A server that can is asked for the shape with `generate(response_format=json_schema(...).response_format)`.

    Args:
        shape: a pydantic model, or a JSON Schema.
        name: of the schema, for the server.

    Raises:
        SettingsError: it is neither, or no valid schema.
    """
    make = getattr(shape, "model_json_schema", None)
    schema = make() if callable(make) else shape
    if not isinstance(schema, Mapping):
        raise SettingsError(f"json_schema({shape!r}): give a pydantic model or a JSON Schema as a mapping")
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(dict(schema))
    except SchemaError as error:
        raise SettingsError(f"json_schema: not a valid JSON Schema: {error.message}") from error
    return JsonSchema(name, schema)
