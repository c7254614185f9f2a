"""The users who answer calls of `ask_to_user`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from evalsuite.core.types import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample
    from evalsuite.tools.simulated import Simulator

NOTHING_TO_ADD = "I have nothing to add; please go on with what I told you."
_ROLE = """\
You are the person who wrote the request below to an assistant. The assistant asks you something. \
Answer as that person would: briefly, in the first person, with one definite choice or fact that fits the \
request, made up where the request leaves it open. Do not solve the task yourself and do not thank."""


class User(Protocol):
    """Answers the model's questions in place of the person who wrote the request."""

    @property
    def kind(self) -> str:
        """The name in records and reports: `scripted`, `simulated` or `recorded`."""
        ...

    async def reply(
        self, sample: Sample, question: str, before: Sequence[tuple[str, str]], model: Model
    ) -> str:
        """The user's answer.

        Args:
            sample: whose input is the user's request.
            question: what the model asks.
            before: earlier questions and answers of this episode.
            model: the case's handle, for a user played by a model.

        Raises:
            ModelError: the model that plays the user could not be asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScriptedUser:
    """Replies with the list `user` of the sample's metadata, in order, and then has nothing to add."""

    kind: str = "scripted"

    async def reply(
        self,
        sample: Sample,
        question: str,  # noqa: ARG002 - the users' signature
        before: Sequence[tuple[str, str]],
        model: Model,  # noqa: ARG002 - likewise
    ) -> str:
        """The next of the sample's replies."""
        replies: Sequence[str] = sample.metadata.get("user", ())
        return replies[len(before)] if len(before) < len(replies) else NOTHING_TO_ADD


@dataclass(frozen=True, slots=True)
class SimulatedUser:
    """A user played by a model, which is shown the request and the earlier questions."""

    simulator: Simulator
    kind: str = "simulated"

    async def reply(
        self, sample: Sample, question: str, before: Sequence[tuple[str, str]], model: Model
    ) -> str:
        """The user's reply, according to the simulator."""
        request = sample.input if isinstance(sample.input, str) else sample.input[-1].content
        earlier = "".join(f"The assistant asked: {past}\nYou answered: {answer}\n" for past, answer in before)
        prompt = f"Your request:\n{request}\n\n{earlier}The assistant asks: {question}\nYour answer:"
        return await self.simulator.say((Message("system", _ROLE), Message("user", prompt)), model)
