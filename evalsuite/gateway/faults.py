"""Injects faults into model calls chosen at random, so that an application's reaction to them can be scored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalsuite.core.errors import RequestRefused, SettingsError
from evalsuite.core.json_codec import digest, encode_request

if TYPE_CHECKING:
    from evalsuite.core.types import Completion, Request
    from evalsuite.gateway.handle import CompletionProvider

TAG = "fault"  # A case's tag that lists the kinds of fault injected into the case's requests.
UNHARMED = "none"  # The value of the tag `fault` for a case without injected faults.
KINDS = ("status", "latency", "cut", "malformed_tool_call")
FORM = re.compile(
    r"(?:status=(?P<status>[45]\d\d):|latency=(?P<seconds>\d+(?:\.\d+)?)\s*s:|(?P<kind>cut|malformed_tool_call)=)"
    r"(?P<share>\d+(?:\.\d+)?)\s*%"
)


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """One kind of injected fault and its probability."""

    kind: str  # One of `KINDS`.
    share: float  # The probability that this fault is injected into a request, in (0, 1].
    amount: float = 0.0  # The HTTP status, or the delay in seconds, depending on the kind.

    def __str__(self) -> str:
        return self.kind + {"status": f" {self.amount:.0f}", "latency": f" {self.amount:g} s"}.get(self.kind, "")


class InjectedFault(RequestRefused):
    """A server's refusal that `--inject` simulated; its HTTP status is sent to the application."""

    def __init__(self, status: int) -> None:
        super().__init__(f"--inject played the status {status}, and nothing was sent")
        self.status = status


def parse_fault(text: str) -> FaultSpec:
    """Read a fault such as `status=529:5%`, `latency=10s:1%`, `cut=2%` or `malformed_tool_call=3%`.

    Raises:
        SettingsError: the text has another form than the examples, or the share is 0 or above 100%.
    """
    found = FORM.fullmatch(text.strip())
    share = float(found["share"]) / 100 if found else 0.0
    if found is None or not 0 < share <= 1:
        raise SettingsError(
            f"--inject {text}: write status=529:5%, latency=10s:1%, cut=2% or malformed_tool_call=3%, with a share "
            "above 0% and at most 100%"
        )
    if found["kind"]:
        return FaultSpec(found["kind"], share)
    return FaultSpec("status" if found["status"] else "latency", share, float(found["status"] or found["seconds"]))


@dataclass(frozen=True, slots=True)
class FaultInjector:
    """Selects at random, with a seed, the faults to inject into requests.

    The selection depends on the seed, the request, and the request's number among the case's equal requests. Because
    the order of calls does not matter, a replay injects the same faults.
    """

    faults: tuple[FaultSpec, ...]
    seed: int

    @classmethod
    def from_texts(cls, texts: Iterable[str], seed: int) -> FaultInjector:
        """Make an injector from the texts of its faults; a text that is given twice counts once."""
        return cls(tuple(map(parse_fault, dict.fromkeys(texts))), seed)

    def __bool__(self) -> bool:
        return bool(self.faults)

    async def send_request(self, asker: CompletionProvider, request: Request, injected: list[str]) -> Completion:
        """Send a request with its randomly selected faults, which are appended to the list `injected`.

        Args:
            injected: the list to which this method appends each injected fault.

        Raises:
            InjectedFault: a fault with an HTTP status was selected, so the request was not sent.
        """
        content = digest([encode_request(request), request.draw])
        chances = (int(digest([self.seed, number, content]), 16) / 16**16 for number in range(len(self.faults)))
        drawn = [fault for fault, chance in zip(self.faults, chances, strict=True) if chance < fault.share]
        delay = sum(fault.amount for fault in drawn if fault.kind == "latency")
        injected += [str(fault) for fault in drawn if fault.kind in {"status", "latency"}]
        if delay:
            import asyncio

            await asyncio.sleep(delay)
        refused = next((fault for fault in drawn if fault.kind == "status"), None)
        if refused is not None:
            raise InjectedFault(int(refused.amount))
        completion = await asker.ask(request)
        for fault in drawn:
            damaged = _damage_completion(completion, fault.kind)
            injected += [str(fault)] if damaged != completion else []
            completion = damaged
        return replace(completion, seconds=completion.seconds + delay) if delay else completion


def _damage_completion(completion: Completion, kind: str) -> Completion:
    """Simulate a cut answer, or remove the last character of the first tool call's arguments.

    A cut answer loses half of what came last: its last tool call's arguments or, without calls, its text.
    """
    if kind == "cut" and completion.tool_calls:
        *others, last = completion.tool_calls
        last = replace(last, arguments=last.arguments[: len(last.arguments) // 2])
        return replace(completion, tool_calls=(*others, last), finish_reason="length")
    if kind == "cut":
        return replace(completion, text=completion.text[: len(completion.text) // 2], finish_reason="length")
    if kind == "malformed_tool_call" and completion.tool_calls:
        first, *others = completion.tool_calls
        return replace(completion, tool_calls=(replace(first, arguments=first.arguments[:-1]), *others))
    return completion


def format_fault_tag(injected: Sequence[str]) -> str:
    """Return the value of a case's tag `fault`: the kinds of the injected faults, joined by `+`, or `none`."""
    return "+".join(kind for kind in KINDS if any(fault.partition(" ")[0] == kind for fault in injected)) or UNHARMED
