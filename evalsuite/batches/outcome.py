"""What became of the requests of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import RequestRefused
from evalsuite.models.protocol import Hopeless, LostAnswer, RateLimited, Transient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.batches.server import BatchState
    from evalsuite.core.types import Completion, Request
    from evalsuite.models.openai import OpenAIBackend

BUSY = {"token_limit_exceeded", "rate_limit_exceeded"}
"""Codes of a batch that was refused because too much is waiting already."""

AGAIN = 60.0
"""Seconds until such a batch is tried again."""

WORDS = 500
"""Characters of a server's words that a message repeats."""

OF_THE_MODEL = {"code": "model_not_found", "param": "body.model"}
"""Fields of an error that is not about its line alone: all lines of a batch name the same model."""


class Gone(RequestRefused):
    """A batch, or a file with its answers, is no longer at the server."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: it was deleted, or sent with another key; the next --resume sends its requests again"
        )


def copied(error: Exception) -> Exception:
    """A copy for each who waits: an exception that is raised in many places gathers all their frames."""
    if isinstance(error, Gone):
        return RequestRefused(*error.args)
    made = type(error)(*error.args)
    if isinstance(error, RateLimited) and isinstance(made, RateLimited):
        made.retry_after = error.retry_after
    return made


def completion_of(backend: OpenAIBackend, request: Request, line: Mapping[str, Any]) -> Completion:
    """What a line of a batch's output says.

    Raises:
        Exception: as `Backend.complete`.
    """
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and isinstance(response.get("status_code"), int):
        return backend.read_line(request, response["status_code"], response.get("body"))
    words = error.get("message") or error.get("code") if isinstance(error, dict) else error
    if words:
        raise Transient(f"the batch gave no answer: {str(words)[:WORDS]}")
    raise LostAnswer(f"a line of the batch's output holds neither answer nor error: {str(line)[:WORDS]}")


def missing(keys: Sequence[str], state: BatchState) -> tuple[set[str], str, Exception]:
    """What becomes of requests that a finished batch left without an answer.

    Args:
        keys: of these requests, in the order of the batch's lines.
        state: of the batch.

    Returns:
        The requests that the server named as the fault, a line for the user, and what the others fail with;
        it is `Transient` or `RateLimited` where they are sent again.
    """
    refused = _refused(keys, state)
    about = f"{state.batch} {_ended(state)}"
    reason = _reason(state, about)
    if isinstance(reason, Transient | RateLimited):
        about += "; requests without an answer will be sent again"
    elif state.status == "cancelled" and keys:
        about += "; requests without an answer will not be sent again"
    return refused, about, reason


def _ended(state: BatchState) -> str:
    words = "; ".join(str(error.get("message") or error.get("code")) for error in state.errors[:3])
    ends = {"cancelled": "was cancelled", "completed": "was completed without all answers"}
    return ends.get(state.status, state.status) + (f": {words.rstrip('.')}" if words else "")


def _refused(keys: Sequence[str], state: BatchState) -> set[str]:
    """The requests for whose sake the server took nothing of a batch, as it counts its lines."""
    if _is_about_the_model(state):
        return set()
    numbers = {error.get("line") for error in state.errors}
    return {key for number, key in enumerate(keys, 1) if number in numbers}


def _is_about_the_model(state: BatchState) -> bool:
    return any(error.get(field) == value for error in state.errors for field, value in OF_THE_MODEL.items())


def _reason(state: BatchState, about: str) -> Exception:
    """Why a request has no answer that was refused by nobody."""
    if state.status == "cancelled":
        return RequestRefused(about)
    if state.status == "failed" and any(error.get("code") in BUSY for error in state.errors):
        return RateLimited(about, AGAIN)
    hopeless = _is_about_the_model(state) or not any(error.get("line") for error in state.errors)
    if state.status == "failed" and hopeless:
        return Hopeless(about)
    # What was not answered was not billed.
    return Transient(about)
