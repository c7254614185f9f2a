"""Ask judges: repeat after unreadable answers, use JSON schemas if the server supports them, ask several at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from evalsuite.core.errors import JudgeError, RequestRefused
from evalsuite.core.types import Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Completion, TokenLogprob

T = TypeVar("T")

AGAIN = "That answer cannot be used: {problem} Please answer again, in the form asked for."
CUT_OFF = "it was cut off at the limit on tokens (max_tokens). Be shorter."


@dataclass(frozen=True, slots=True)
class Judgement(Generic[T]):
    """A judgement that could be read."""

    value: T  # The parser's result.
    text: str  # The answer that was parsed.
    log: tuple[Mapping[str, Any], ...]  # The messages exchanged, as plain data for `Score.log`.
    # Log-probabilities of the answer, if they were requested and the backend returns them.
    logprobs: tuple[TokenLogprob, ...] | None = None


async def ask_until_parsed(
    judge: Model,
    prompt: str | Sequence[Message],
    parse: Callable[[str], T],
    *,
    attempts: int = 3,
    read_cut_off: bool = False,
    **params: Any,
) -> Judgement[T]:
    """Ask a judge; after a malformed answer ask again and say what was wrong."""
    messages = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
    log: list[Mapping[str, Any]] = [{"role": message.role, "content": message.content} for message in messages]
    problem = ""
    for _ in range(attempts):
        completion = await judge.chat(messages, **params)
        log.append(_log_entry(completion))
        try:
            if completion.finish_reason == "length" and not read_cut_off:
                raise ValueError(CUT_OFF)
            return Judgement(parse(completion.text), completion.text, tuple(log), completion.logprobs)
        except ValueError as error:
            problem = str(error)
        again = AGAIN.format(problem=problem)
        messages += [Message("assistant", completion.text), Message("user", again)]
        log.append({"role": "user", "content": again})
    raise JudgeError(
        f"judge {judge.name} gave no usable answer in {attempts} attempts; the last problem: {problem}", tuple(log)
    )


def _log_entry(completion: Completion) -> dict[str, Any]:
    entry = {"role": "assistant", "content": completion.text, "reasoning": completion.reasoning}
    return {**entry, "cut_off": True} if completion.finish_reason == "length" else entry


def read_speech(text: str) -> str:
    """Return a text that holds no verdict, without spaces at its ends."""
    if not text.strip():
        raise ValueError("it is empty.")
    return text.strip()


@dataclass(frozen=True, slots=True)
class StructuredAnswers:
    """Sends a JSON schema with every question, and remembers which servers refused it."""

    # models whose server refused a schema; later questions to them are sent without one
    refused: set[str] = field(default_factory=set)

    async def ask(
        self,
        model: Model,
        prompt: Sequence[Message],
        parse: Callable[[str], T],
        schema: Mapping[str, Any],
        **options: Any,
    ) -> Judgement[T]:
        """Ask until the answer can be read; for the errors see `ask_until_parsed`.

        If the options contain the user's own `response_format`, it is kept.
        """
        if model.name not in self.refused and "response_format" not in options:
            form = {"name": "judgement", "schema": schema, "strict": True}
            wanted = {"type": "json_schema", "json_schema": form}
            try:
                return await ask_until_parsed(model, prompt, parse, response_format=wanted, **options)
            except RequestRefused:
                # If the server refused for another reason, it also refuses the request without a schema.
                self.refused.add(model.name)
        return await ask_until_parsed(model, prompt, parse, **options)


def object_schema(**properties: Any) -> dict[str, Any]:
    """Make the schema of an object that has exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def whole_number(low: int, high: int) -> dict[str, Any]:
    """Make the schema of a whole number, both ends included."""
    return {"type": "integer", "minimum": low, "maximum": high}


class HasLog(Protocol):
    """A judgement with the messages exchanged for it."""

    @property
    def log(self) -> Sequence[Mapping[str, Any]]:
        """The messages, as plain data."""
        ...


L = TypeVar("L", bound=HasLog)


@dataclass(frozen=True, slots=True)
class Readable(Generic[L]):
    """The judgements that could be read, and the messages of all judgements."""

    judgements: Sequence[L]
    log: tuple[Mapping[str, Any], ...]


async def wait_for_all(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all calls; if any failed, raise the error of the first failed call in the given order.

    A task group would cancel the other calls at the earliest failure. Here every call ends, so neither the
    reported error nor the cost depends on which server answered fastest.
    """
    results = await asyncio.gather(*calls, return_exceptions=True)
    return [_or_raise(result) for result in results]


async def gather_readable(calls: Iterable[Awaitable[L]], quorum: int | None = None) -> Readable[L]:
    """Wait for all calls and keep the judgements that can be read.

    Args:
        quorum: the minimum number of readable judgements; None requires all.
    """
    results = await asyncio.gather(*calls, return_exceptions=True)
    outcomes = [result if isinstance(result, JudgeError) else _or_raise(result) for result in results]
    judgements = [outcome for outcome in outcomes if not isinstance(outcome, JudgeError)]
    unread = [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]
    log = tuple(entry for outcome in outcomes for entry in outcome.log)
    needed = len(outcomes) if quorum is None else min(quorum, len(outcomes))
    if len(judgements) < needed:
        count = f" ({len(judgements)} of {len(outcomes)} answers could be read; {needed} are needed)"
        raise JudgeError(f"{unread[0]}{count if len(outcomes) > 1 else ''}", log) from unread[0]
    return Readable(judgements, log)


def _or_raise(result: T | BaseException) -> T:
    if isinstance(result, BaseException):
        raise result
    return result
