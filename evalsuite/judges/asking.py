"""Asks judges: repeats requests after unreadable answers, and raises an error if too few are readable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from evalsuite.core.errors import JudgeError, RequestRefused
from evalsuite.core.types import Message, TokenLogprob

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model

T = TypeVar("T")
Log = tuple["Mapping[str, Any]", ...]
AGAIN = "That answer cannot be used: {problem} Please answer again, in the form asked for."
CUT_OFF = "it was cut off at the limit on tokens (max_tokens). Be shorter."


@dataclass(frozen=True, slots=True)
class Judgement(Generic[T]):
    """A judge's answer that could be parsed."""

    value: T  # The parser's result.
    text: str  # The text of the answer.
    log: Log  # The messages exchanged, as plain data for `Score.log`.
    # Log-probabilities of the answer's tokens; None unless requested and returned by the backend.
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
    """Send a prompt to a judge; after an unreadable answer, send it again with a description of the problem."""
    messages = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
    log: list[Mapping[str, Any]] = [{"role": message.role, "content": message.content} for message in messages]
    problem = ""
    for _ in range(attempts):
        completion = await judge.chat(messages, **params)
        entry = {"role": "assistant", "content": completion.text, "reasoning": completion.reasoning}
        log.append({**entry, "cut_off": True} if completion.finish_reason == "length" else entry)
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


def strip_nonempty_text(text: str) -> str:
    """Return a judge's text without surrounding blanks; raise ValueError if the text is empty."""
    if not text.strip():
        raise ValueError("it is empty.")
    return text.strip()


@dataclass(frozen=True, slots=True)
class Vote(Generic[T]):
    """One judge's answer after parsing; if it could not be parsed, a description of the problem instead."""

    judge: str
    model: str
    value: T | None  # The parser's result; None if the answer could not be read.
    problem: str = ""
    text: str = ""
    log: Log = ()


async def get_vote(call: Awaitable[Judgement[T]], judge: str, model: Model, *, skip: int = 0, **facts: Any) -> Vote[T]:
    """Wait for a judge's answer, and convert a failure to a vote that has only a description of the problem.

    Leave the first `skip` messages out of the log, and add `facts`, such as the order of the answers, to the others.
    """
    try:
        judgement = await call
    except JudgeError as error:
        return Vote(judge, model.name, None, str(error), log=label_log(error.log[skip:], judge, model, **facts))
    log = label_log(judgement.log[skip:], judge, model, **facts)
    return Vote(judge, model.name, judgement.value, text=judgement.text, log=log)


def label_log(log: Iterable[Mapping[str, Any]], speaker: str, model: Model, **facts: Any) -> Log:
    """Add the speaker, the model's name and further facts to every message of a log."""
    return tuple({"speaker": speaker, "model": model.name, **facts, **entry} for entry in log)


def join_logs(votes: Iterable[Vote[Any]]) -> Log:
    """Join the logs of votes."""
    return tuple(entry for vote in votes for entry in vote.log)


@dataclass(frozen=True, slots=True)
class SchemaAsker:
    """Asks judges for answers that follow a JSON schema, and remembers which servers refused a schema."""

    # Models whose server refused a schema; later requests to these models have no schema.
    refused: set[str] = field(default_factory=set)

    async def ask_with_schema(
        self,
        model: Model,
        prompt: Sequence[Message],
        parse: Callable[[str], T],
        schema: Mapping[str, Any],
        **options: Any,
    ) -> Judgement[T]:
        """Send the JSON schema with the request, unless the user's options already have a `response_format`."""
        if model.name not in self.refused and "response_format" not in options:
            form = {"name": "judgement", "schema": schema, "strict": True}
            wanted = {"type": "json_schema", "json_schema": form}
            try:
                return await ask_until_parsed(model, prompt, parse, response_format=wanted, **options)
            except RequestRefused:
                # Send the request again without a schema. If the server refused for another reason than the schema, the
                # request without a schema fails in the same way.
                self.refused.add(model.name)
        return await ask_until_parsed(model, prompt, parse, **options)


def make_object_schema(**properties: Any) -> dict[str, Any]:
    """Make the JSON schema of an object that has exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def make_number_schema(low: int, high: int) -> dict[str, Any]:
    """Make the JSON schema of a whole number from `low` to `high`."""
    return {"type": "integer", "minimum": low, "maximum": high}


async def wait_for_all(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all calls and return their results; if calls failed, raise the error of the one that is listed first.

    Do not use a task group, because it would cancel the remaining calls when one call fails. Since all calls end, the
    reported error and the cost do not depend on which server answers first.
    """
    results = await asyncio.gather(*calls, return_exceptions=True)
    return [_return_or_raise(result) for result in results]


async def collect_readable_judgements(
    calls: Iterable[Awaitable[Judgement[T]]], quorum: int | None = None
) -> tuple[list[Judgement[T]], Log]:
    """Return the readable judgements and the log of all calls; raise JudgeError if too few judgements are readable."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    outcomes = [result if isinstance(result, JudgeError) else _return_or_raise(result) for result in results]
    judgements = [outcome for outcome in outcomes if not isinstance(outcome, JudgeError)]
    unread = [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]
    log = tuple(entry for outcome in outcomes for entry in outcome.log)
    require_quorum(len(judgements), unread, len(outcomes) if quorum is None else quorum, "answers", log)
    return judgements, log


def require_quorum(readable: int, problems: Sequence[object], quorum: int | None, noun: str, log: Log) -> None:
    """Raise JudgeError with the first problem if fewer than `quorum` judgements are readable (None: more than half).

    `problems` describes, for each unreadable judgement, why it could not be read.
    """
    total = readable + len(problems)
    needed = total // 2 + 1 if quorum is None else min(quorum, total)
    if readable < needed:
        count = f" ({readable} of {total} {noun} could be read; {needed} are needed)" if total > 1 else ""
        raise JudgeError(f"{problems[0]}{count}", log)


def _return_or_raise(result: T | BaseException) -> T:
    if isinstance(result, BaseException):
        raise result
    return result
