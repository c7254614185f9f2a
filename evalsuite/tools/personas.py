"""Who an agent talks to in a conversation: a script, or a person played by a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from evalsuite.errors import SettingsError, ToolError
from evalsuite.tools.simulated import player_of
from evalsuite.types import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.protocols import Model
    from evalsuite.types import Sample

END = "###END###"
"""What a simulated user says when the conversation is over."""

_ROLE = """\
You play a person who talks to an assistant. Stay in this role whatever the assistant says. Write only what the \
person says next: briefly, in the first person, one thing at a time. Do not reveal everything at once, and invent \
nothing that is not stated here.

What you want:
{goal}

What you know, to be told when you are asked for it:
{knows}

Say {end} and nothing else when {stop}."""


class Speaker(Protocol):
    """The other side of a conversation."""

    async def speak(self, sample: Sample, said: Sequence[tuple[str, str]], model: Model) -> str | None:
        """What the user says next; None ends the conversation.

        Args:
            sample: what the conversation is about.
            said: so far, as pairs of `user` or `agent` and a text; empty at the beginning.
            model: the case's handle, for a user played by a model.
        """
        ...


@dataclass(frozen=True, slots=True)
class Scripted:
    """Says prepared lines, in order, and then ends the conversation.

    Attributes:
        lines: what is said; None takes the list `user` of the sample's metadata, after the sample's input.
    """

    lines: Sequence[str] | None = None

    async def speak(self, sample: Sample, said: Sequence[tuple[str, str]], model: Model) -> str | None:  # noqa: ARG002 - the speakers' signature
        """The next line."""
        lines = self.lines
        if lines is None:
            lines = [str(sample.input), *sample.metadata.get("user", ())]
        spoken = sum(who == "user" for who, _ in said)
        return lines[spoken] if spoken < len(lines) else None


@dataclass(frozen=True, slots=True)
class Persona:
    """A user played by a model: the one of `--user-model`, else the judge.

    Attributes:
        goal: what the person wants; None takes the sample's input.
        knows: what the person can tell when asked; None takes `knows` of the sample's metadata.
        stop: when the person ends the conversation, as a clause.
        max_tokens: of one line, at most.
    """

    goal: str | None = None
    knows: str | None = None
    stop: str = "you have what you want, or see that you will not get it"
    max_tokens: int = 300

    async def speak(self, sample: Sample, said: Sequence[tuple[str, str]], model: Model) -> str | None:
        """What the model says in the person's place.

        Raises:
            SettingsError: no model is named that could play the user.
            ToolError: the model said nothing.
            ModelError: the call failed for good.
        """
        name, base_url = getattr(model, "user_model", None) or (None, None)
        if name is None:
            raise SettingsError("a Persona is played by a model: name one with --user-model or --judge-model")
        prompt = [Message("system", self._role(sample)), Message("user", "Hello, how can I help you?")]
        prompt += [Message("assistant" if who == "user" else "user", text) for who, text in said]
        completion = await player_of(model, name, base_url).chat(
            prompt, temperature=0, max_tokens=self.max_tokens
        )
        text = completion.text.strip()
        if not text:
            raise ToolError(f"{name}, which plays the user, said nothing ({completion.finish_reason})")
        return None if END in text else text

    def _role(self, sample: Sample) -> str:
        goal = str(sample.input) if self.goal is None else self.goal
        knows = str(sample.metadata.get("knows", "nothing more")) if self.knows is None else self.knows
        return _ROLE.format(goal=goal, knows=knows, stop=self.stop, end=END)
