"""An answer of the OpenAI API over HTTP: JSON, an event stream, or an error in the API's own shape."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from evalsuite.core.errors import (
    BackendUnavailable,
    EvalsuiteError,
    ReplayMiss,
    RequestRefused,
    SettingsError,
    SpendLimitReached,
)
from evalsuite.core.json_codec import dumps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

JSON = "application/json"
EVENTS = "text/event-stream"

STATUS_OF: Mapping[type[EvalsuiteError], int] = {
    RequestRefused: 400,
    SettingsError: 400,
    SpendLimitReached: 402,
    ReplayMiss: 424,
    BackendUnavailable: 503,
}


class BadRequest(Exception):  # noqa: N818 - becomes an answer, never an error of the run
    """An application's request that makes no sense; the message is for its author."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What goes back to a client.

    Attributes:
        status: HTTP status.
        chunks: the body, in the pieces in which it is sent.
        content_type: of the body.
    """

    status: int
    chunks: tuple[bytes, ...]
    content_type: str = JSON

    @property
    def headers(self) -> dict[str, str]:
        """The gateway has tried often enough: clients that know this header do not ask again."""
        return {"Content-Type": self.content_type, "x-should-retry": "false"}


def json_answer(value: Any, status: int = 200) -> HttpAnswer:
    """One JSON value."""
    return HttpAnswer(status, (dumps(value).encode(),))


def chat_stream(chunks: Iterable[Mapping[str, Any]]) -> HttpAnswer:
    """Server-sent events as chat completions have them: data alone, and `[DONE]` at the end."""
    events = [f"data: {dumps(chunk)}\n\n".encode() for chunk in chunks]
    return HttpAnswer(200, (*events, b"data: [DONE]\n\n"), EVENTS)


def response_stream(events: Iterable[Mapping[str, Any]]) -> HttpAnswer:
    """Server-sent events as the Responses API has them: each with its type as name, numbered."""
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return HttpAnswer(
        200, tuple(f"event: {event['type']}\ndata: {dumps(event)}\n\n".encode() for event in numbered), EVENTS
    )


def error_answer(status: int, message: str, kind: str = "invalid_request_error") -> HttpAnswer:
    """An error in the shape that clients of the API read."""
    return json_answer({"error": {"message": message, "type": kind, "param": None, "code": None}}, status)


def failed_call(error: EvalsuiteError) -> HttpAnswer:
    """A model call that failed for good."""
    return error_answer(STATUS_OF.get(type(error), 502), str(error), type(error).__name__)


def read_object(content: bytes) -> dict[str, Any]:
    """A request's body.

    Raises:
        BadRequest: it is no JSON object.
    """
    try:
        value = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadRequest(f"the body is {type(value).__name__}, not a JSON object")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")
