"""Asking a judge until its answer can be read: a bounded number of times, then an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from evalsuite.core.errors import JudgeError
from evalsuite.core.types import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Completion, TokenLogprob

T = TypeVar("T")

AGAIN = "That answer cannot be used: {problem} Please answer again, in the form asked for."


@dataclass(frozen=True, slots=True)
class Judgement(Generic[T]):
    """A parsed judgement.

    Attributes:
        value: what the parser made of the judge's answer.
        text: the answer that was parsed.
        log: the messages that it took, as plain data for `Score.log`.
        logprobs: of the answer that was parsed, where they were asked for and the backend gives them.
    """

    value: T
    text: str
    log: tuple[Mapping[str, Any], ...]
    logprobs: tuple[TokenLogprob, ...] | None = None


def finished_lines(completion: Completion) -> str:
    """The answer; of one that was cut off at the limit on tokens, without the line that was cut.

    `quality: 1` at the end of such an answer may have been about to become a 10.
    """
    if completion.finish_reason != "length":
        return completion.text
    return completion.text.rpartition("\n")[0]


def everything(completion: Completion) -> str:
    """The whole answer, cut off or not: for speeches, from which no verdict is read."""
    return completion.text


async def ask_until_parsed(
    judge: Model,
    prompt: str | Sequence[Message],
    parse: Callable[[str], T],
    *,
    attempts: int = 3,
    read: Callable[[Completion], str] = finished_lines,
    **params: Any,
) -> Judgement[T]:
    """Asks a judge; after a malformed answer it is asked again and told what was wrong.

    Args:
        judge: the model asked.
        prompt: the first question.
        parse: raises ValueError with a sentence that the judge can act on.
        attempts: answers asked for at most, at least 1.
        read: what of a completion is parsed.
        params: generation parameters.

    Raises:
        JudgeError: no answer could be parsed; its log holds what was said.
        ModelError: a call failed for good.
    """
    messages = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
    log: list[Mapping[str, Any]] = [
        {"role": message.role, "content": message.content} for message in messages
    ]
    problem = ""
    for _ in range(attempts):
        completion = await judge.chat(messages, **params)
        log.append(_entry(completion))
        try:
            return Judgement(parse(read(completion)), completion.text, tuple(log), completion.logprobs)
        except ValueError as error:
            problem = _problem(error, completion)
        again = AGAIN.format(problem=problem)
        messages += [Message("assistant", completion.text), Message("user", again)]
        log.append({"role": "user", "content": again})
    raise JudgeError(
        f"judge {judge.name} gave no usable answer in {attempts} attempts; the last problem: {problem}",
        tuple(log),
    )


def _entry(completion: Completion) -> dict[str, Any]:
    entry = {"role": "assistant", "content": completion.text, "reasoning": completion.reasoning}
    return {**entry, "cut_off": True} if completion.finish_reason == "length" else entry


def _problem(error: ValueError, completion: Completion) -> str:
    if completion.finish_reason != "length":
        return str(error)
    return f"it was cut off at the limit on tokens (max_tokens), and before that {error} Be shorter."
