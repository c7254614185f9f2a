"""The users that an agent talks to: a script, or a person played by a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from evalsuite.core.errors import SettingsError, ToolError
from evalsuite.core.types import Message
from evalsuite.tools.simulated import player_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample

END = "###END###"
"""The line by which a simulated user ends the conversation."""

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

    async def speak(self, sample: Sample, spoken: Sequence[tuple[str, str]], model: Model) -> str | None:
        """What the user says next; None ends the conversation.

        Args:
            sample: the sample of the conversation.
            spoken: the conversation so far, as pairs of speaker (`user` or `agent`) and text.
            model: the case's handle, for a user played by a model.
        """
        ...


@dataclass(frozen=True, slots=True)
class Scripted:
    """Says prepared lines in order, then ends the conversation.

    Attributes:
        lines: the lines; None means the sample's input followed by the list `user` of its metadata.
    """

    lines: Sequence[str] | None = None

    async def speak(self, sample: Sample, spoken: Sequence[tuple[str, str]], model: Model) -> str | None:  # noqa: ARG002 - the speakers' signature
        """The next line."""
        lines = self.lines
        if lines is None:
            lines = [str(sample.input), *sample.metadata.get("user", ())]
        turn = sum(who == "user" for who, _ in spoken)
        return lines[turn] if turn < len(lines) else None


@dataclass(frozen=True, slots=True)
class Persona:
    """A user played by a model: that of `--user-model`, or else the judge.

    Attributes:
        goal: what the person wants; None means the sample's input.
        knows: what the person can say when asked; None means `knows` of the sample's metadata.
        stop: when the person ends the conversation, as a clause that follows "when".
        max_tokens: limit of one line.
    """

    goal: str | None = None
    knows: str | None = None
    stop: str = "you have what you want, or see that you will not get it"
    max_tokens: int = 300

    async def speak(self, sample: Sample, spoken: Sequence[tuple[str, str]], model: Model) -> str | None:
        """The person's next line, written by the model.

        Raises:
            SettingsError: no model is named that could play the user.
            ToolError: the model said nothing.
            ModelError: the call failed for good.
        """
        name, base_url = getattr(model, "user_model", None) or (None, None)
        if name is None:
            raise SettingsError("a Persona is played by a model: name one with --user-model or --judge-model")
        prompt = [Message("system", self._role(sample)), Message("user", "Hello, how can I help you?")]
        prompt += [Message("assistant" if who == "user" else "user", text) for who, text in spoken]
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
