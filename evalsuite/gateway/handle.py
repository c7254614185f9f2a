"""A model as one case sees it: bound to the epoch, with the usage counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from evalsuite.core.json_codec import digest, encode_request
from evalsuite.core.types import Message, Request, Usage, as_message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Completion
    from evalsuite.gateway.asker import Asker


class Meter:
    """What one case asked and used, over all models."""

    def __init__(self, whole: Meter | None = None) -> None:
        self.usage = Usage()
        self._whole = whole
        self._first: dict[str, str] = {}
        self._requests: list[str] = []

    def add(self, usage: Usage) -> None:
        """Counts a call, here and in the meter that this one is a part of."""
        self.usage += usage
        if self._whole is not None:
            self._whole.add(usage)

    def note(self, request: Request) -> None:
        """Notes the fingerprints of a request before it is sent."""
        if self._whole is not None:
            self._whole.note(request)
        plain = encode_request(request)
        if not self._requests:
            prompt = {"messages": plain["messages"], "tools": plain["tools"]}
            self._first = {"prompt": digest(prompt), "params": digest(plain["params"])}
        # The address and its login belong to the fingerprint `model`.
        self._requests.append(digest(plain | {"base_url": None}))

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of the first request and of all, whose order is left to chance; empty if nothing was asked."""
        return {**self._first, "requests": digest(sorted(self._requests))} if self._requests else {}


class ModelHandle:
    """The model as solvers and scorers see it: `protocols.Model` over a gateway.

    Args:
        asker: the gateway, or the wire to it.
        name: the model as the user names it.
        base_url: where it is served, if not at the usual place.
        epoch: which repetition of the case asks.
        overrides: generation parameters that the user set for the whole run.
        meter: counts the usage.
    """

    def __init__(
        self,
        asker: Asker,
        name: str,
        base_url: str | None = None,
        epoch: int = 1,
        overrides: Mapping[str, Any] | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._asker, self._name, self._base_url, self._epoch = asker, name, base_url, epoch
        self._overrides = overrides or {}
        self.meter = meter or Meter()
        # What models took that play users and tools for this one's case.
        self.players = Meter(self.meter)

    @property
    def name(self) -> str:
        """The model as the user names it."""
        return self._name

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Generation parameters that the user set for the whole run."""
        return self._overrides

    async def chat(
        self,
        prompt: str | Sequence[Message | Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        **params: Any,
    ) -> Completion:
        """Asks the model; see `protocols.Model.chat`."""
        request = Request(
            model=self._name,
            messages=read_prompt(prompt),
            params={**params, **self._overrides},
            tools=tuple(tools),
            base_url=self._base_url,
            epoch=self._epoch,
        )
        self.meter.note(request)
        completion = await self._asker.ask(request)
        self.meter.add(completion.usage)
        return completion

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Self:
        """Another model for the same case; one of the same name keeps the address."""
        same = name == self._name and base_url is None
        return type(self)(
            self._asker,
            name,
            self._base_url if same else base_url,
            epoch or self._epoch,
            self._overrides if same else {},
            self.meter,
        )

    def player(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Self:
        """As `peer`, for a model that plays a user or a tool: its usage is counted apart."""
        handle = self.peer(name, base_url, epoch=epoch)
        handle.meter = self.players
        return handle


def read_prompt(prompt: str | Sequence[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """A conversation; text becomes one message of the user."""
    if isinstance(prompt, str):
        return (Message("user", prompt),)
    return tuple(map(as_message, prompt))
