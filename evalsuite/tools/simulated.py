"""The executor `simulated`: a model plays the tool, once for each distinct call."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ToolError
from evalsuite.core.types import Message
from evalsuite.tools.library import ObservationLibrary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalsuite.core.protocols import Model
    from evalsuite.tools.documents import ToolDocument

_ROLE = """\
You take the place of a software tool. You are shown the tool's document and one call of it. Reply with \
exactly what the tool would return for this call and with nothing else: no greeting, no explanation, no code \
fence. Prefer compact JSON. Where the real tool would look something up, make up data that is plausible, \
specific and free of contradictions. If the arguments make no sense for this tool, reply with a short error \
message such as the tool would give."""


def player_of(asker: Model, name: str, base_url: str | None, *, epoch: int | None = None) -> Model:
    """A model that plays a tool or a user for a case. Its usage is counted separately where that is possible."""
    ask: Callable[..., Model] = getattr(asker, "player", asker.peer)
    return ask(name, base_url, epoch=epoch)


@dataclass(frozen=True, slots=True)
class Simulator:
    """The model that plays tools and users.

    Attributes:
        model: its name.
        base_url: where it is served, if not at the backend's usual address.
        library: its earlier answers.
        max_tokens: limit of an answer.
    """

    model: str
    base_url: str | None = None
    library: ObservationLibrary = field(default_factory=ObservationLibrary)
    max_tokens: int = 512

    async def say(self, messages: tuple[Message, ...], asker: Model) -> str:
        """The simulating model's answer, taken from the library if the question was ever asked before.

        Args:
            messages: the question, which must not depend on the case's epoch.
            asker: the case's handle.

        Raises:
            ModelError: the call failed for good.
            ToolError: the answer is empty or cut off, or the library cannot be used.
        """
        plain = [[message.role, message.content] for message in messages]
        question = {"model": self.model, "base_url": self.base_url, "messages": plain}
        kept = self.library.find(question)
        if kept is not None:
            return kept
        peer = player_of(asker, self.model, self.base_url, epoch=1)
        completion = await peer.chat(messages, temperature=0, max_tokens=self.max_tokens)
        if completion.finish_reason == "length" or not completion.text.strip():
            fault = "cut off" if completion.text.strip() else "empty"
            raise ToolError(
                f"the answer of {self.model}, which plays a tool or a user, is {fault} ({completion.finish_reason}, "
                f"max_tokens {self.max_tokens}); nothing is kept of it"
            )
        return self.library.keep(question, completion.text.strip())


@dataclass(frozen=True, slots=True)
class Simulated:
    """Has the simulator answer each call, given the tool's document."""

    simulator: Simulator
    kind: str = "simulated"

    async def run(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> str:
        """What the tool returns, according to the simulator.

        Raises:
            ModelError: the simulating model could not be asked.
            ToolError: the library of observations cannot be used.
        """
        call = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
        document_text = json.dumps(document.plain(), ensure_ascii=False)
        prompt = f"Document:\n{document_text}\n\nCall of {document.name} with these arguments:\n{call}"
        return await self.simulator.say((Message("system", _ROLE), Message("user", prompt)), model)
