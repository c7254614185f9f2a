"""One call: the sample's input is the prompt, the model's text is the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.core.keywords import generation_params
from evalsuite.core.types import Message, Transcript

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample


@dataclass(frozen=True, slots=True)
class Generate:
    """Asks once and returns the answer; made by `generate`."""

    system: str | None = None
    template: str = "{input}"
    params: Mapping[str, Any] = field(default_factory=dict)

    def messages(self, sample: Sample) -> tuple[Message, ...]:
        """What the model is asked for this sample."""
        head = (Message("system", self.system),) if self.system else ()
        if not isinstance(sample.input, str):
            return (*head, *sample.input)
        # Not str.format: an input or a template may hold braces of its own.
        return (*head, Message("user", self.template.replace("{input}", sample.input)))

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Asks once; what an application returns beside its answer becomes facts."""
        messages = self.messages(sample)
        completion = await model.chat(messages, **self.params)
        return Transcript(
            answer=completion.text,
            messages=(*messages, Message("assistant", completion.text, completion.tool_calls)),
            reasoning=completion.reasoning,
            facts={**completion.facts, "finish": completion.finish_reason},
        )


def generate(*, system: str | None = None, template: str = "{input}", **params: Any) -> Generate:
    """A solver that makes one call.

    Args:
        system: a system message put before the input.
        template: the user's message, `{input}` standing for the sample's input; unused where the input
            is a conversation.
        params: generation parameters by their OpenAI names (`max_tokens=8`, `temperature=0`); those of a
            server's own go into a mapping, `params={"name": value}`.

    Raises:
        SettingsError: a parameter is unknown.
    """
    return Generate(system, template, generation_params(generate, params))
