"""Judgements as JSON, from servers that can hold a model to a schema; lines of text from all others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.core.errors import RequestRefused
from evalsuite.judges.parse_retry import ask_until_parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Message
    from evalsuite.judges.parse_retry import Judgement

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StructuredAnswers:
    """Offers a JSON schema with every question, and remembers which servers refused one.

    Attributes:
        refused: models whose server has refused a schema; they are not offered another.
    """

    refused: set[str] = field(default_factory=set)

    async def ask(
        self,
        model: Model,
        prompt: Sequence[Message],
        parse: Callable[[str], T],
        schema: Mapping[str, Any],
        **options: Any,
    ) -> Judgement[T]:
        """Asks until the answer can be read; see `ask_until_parsed`, which also says what is raised.

        A `response_format` among the options is the user's own and stays.
        """
        if model.name not in self.refused and "response_format" not in options:
            form = {"name": "judgement", "schema": schema, "strict": True}
            wanted = {"type": "json_schema", "json_schema": form}
            try:
                return await ask_until_parsed(model, prompt, parse, response_format=wanted, **options)
            except RequestRefused:
                # If the server refused something else, it will refuse this as well.
                self.refused.add(model.name)
        return await ask_until_parsed(model, prompt, parse, **options)


def object_schema(**properties: Any) -> dict[str, Any]:
    """The schema of an object that has all of these properties and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def whole_number(low: int, high: int) -> dict[str, Any]:
    """The schema of a whole number, both ends included."""
    return {"type": "integer", "minimum": low, "maximum": high}
