"""Asking a judge until its answer can be parsed: strictly, a bounded number of times, then an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from evalsuite.errors import JudgeError
from evalsuite.types import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.protocols import Model
    from evalsuite.types import TokenLogprob

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Judgement(Generic[T]):
    """A parsed judgement.

    Attributes:
        value: what the parser made of the judge's answer.
        text: the answer that was parsed.
        log: everything said to get it, as plain data for `Score.log`.
        logprobs: of the answer that was parsed, where they were asked for and the backend gives them.
    """

    value: T
    text: str
    log: tuple[Mapping[str, Any], ...]
    logprobs: tuple[TokenLogprob, ...] | None = None


async def ask_until_parsed(
    judge: Model,
    prompt: str | Sequence[Message],
    parse: Callable[[str], T],
    *,
    attempts: int = 3,
    **params: Any,
) -> Judgement[T]:
    """Asks a judge; a malformed answer is asked again, saying what was wrong.

    Args:
        judge: the model asked.
        prompt: the first question.
        parse: strict; raises ValueError with a sentence that the judge can act on.
        attempts: answers asked for at most, at least 1.
        params: generation parameters.

    Raises:
        JudgeError: no answer could be parsed; its log holds what was said.
        ModelError: a call failed for good.
    """
    said = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
    log: list[Mapping[str, Any]] = [{"role": message.role, "content": message.content} for message in said]
    problem = ""
    for _ in range(attempts):
        completion = await judge.chat(said, **params)
        log.append({"role": "assistant", "content": completion.text, "reasoning": completion.reasoning})
        try:
            return Judgement(parse(completion.text), completion.text, tuple(log), completion.logprobs)
        except ValueError as error:
            problem = str(error)
        again = f"That answer cannot be used: {problem} Please answer again, in the form asked for."
        said += [Message("assistant", completion.text), Message("user", again)]
        log.append({"role": "user", "content": again})
    raise JudgeError(
        f"judge {judge.name} gave no usable answer in {attempts} attempts; the last problem: {problem}",
        tuple(log),
    )
