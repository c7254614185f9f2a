"""The OpenAI API of a gateway service: any model that it serves, by the name in the request."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from evalsuite.applications.case_api import CaseApi
from evalsuite.applications.case_model import CaseModel
from evalsuite.applications.http_answer import BadRequest, json_answer, read_object

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from evalsuite.applications.http_answer import HttpAnswer
    from evalsuite.gateway.handle import Asker

EPOCH = "x-evalsuite-epoch"
"""The header that tells one repetition of a request from another: equal requests of one epoch get one answer."""


class OpenAIDoor:
    """Answers requests of OpenAI clients, each for the model that it names.

    Args:
        asker: answers.
        offered: names the models that may be asked.
    """

    def __init__(self, asker: Asker, offered: Callable[[], Awaitable[Sequence[str]]]) -> None:
        self._asker, self._offered = asker, offered

    async def answer(self, method: str, path: str, content: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        """Answers one HTTP request.

        Args:
            method: of HTTP.
            path: below `/v1`.
            content: the body.
            headers: of the request; `x-evalsuite-epoch` numbers repetitions from 1.

        Raises:
            BadRequest: the body is no JSON object, names no model, or the epoch is no number.
        """
        if method == "GET" and path.rstrip("/") == "/models":
            return json_answer(
                {"object": "list", "data": [_described(name) for name in await self._offered()]}
            )
        name = "" if method == "GET" else read_object(content).get("model")
        if method != "GET" and not (isinstance(name, str) and name):
            raise BadRequest("model: name one; this gateway serves many")
        # One API a request: nothing of it is remembered, so `previous_response_id` is refused.
        # Clients tell answers apart by their ids, in whichever gateway they were made.
        model = CaseModel(self._asker, str(name), None, _epoch(headers))
        return await CaseApi(model, answers=time.time_ns()).answer(method, path, content)


def _described(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "evalsuite"}


def _epoch(headers: Mapping[str, str]) -> int:
    text = headers.get(EPOCH, "1")
    if not text.isdecimal() or not 1 <= int(text) < 10**9:
        raise BadRequest(f"{EPOCH}: {json.dumps(text)[:100]}; it must be a whole number of at least 1")
    return int(text)
