"""Whatever an application sends to a case's model, it gets an answer; a malformed request is refused like elsewhere."""

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evalsuite.applications.call_log import CallLog
from evalsuite.applications.case_api import CaseApi
from evalsuite.core.types import Completion

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"name": "f", "parameters": {"type": "object"}}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    (
        "/chat/completions",
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
            ],
            "tools": [{"type": "function", "function": TOOL}],
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    ),
    (
        "/responses",
        {
            "model": "m",
            "instructions": "Be brief.",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
            "tools": [{"type": "function", **TOOL}],
            "tool_choice": {"type": "function", "name": "f"},
            "reasoning": {"effort": "low"},
            "text": {"format": {"type": "text"}},
            "include": ["message.output_text.logprobs"],
            "previous_response_id": None,
        },
    ),
    (
        "/messages",
        {
            "model": "m",
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "any"},
            "output_config": {"effort": "low"},
        },
    ),
    (
        "/models/m:generateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "tools": [{"functionDeclarations": [TOOL]}],
            "generationConfig": {"temperature": 0, "thinkingConfig": {"thinkingBudget": 5}},
        },
    ),
    ("/embeddings", {"model": "m", "input": ["Hi"], "encoding_format": "base64", "dimensions": 2}),
]
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1.5, "", "text", "assistant"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "a", "text"]), inner, max_size=2)
    ),
    max_leaves=4,
)


class Answering:
    """A model that answers everything."""

    name = "m"
    overrides: dict[str, Any] = {}  # noqa: RUF012 - never written to

    def __init__(self) -> None:
        self.log = CallLog()

    def find_model(self, _name: str) -> "Answering":
        return self

    async def chat(self, _messages: Any, **_: Any) -> Completion:
        return Completion("Hello")

    async def request_embeddings(self, texts: Any, **_: Any) -> Completion:
        return Completion("", embeddings=("AACAPwAAAEA=",) * len(texts))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """List the places of a body: each container with the key or index of an element."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from places(inner)


@given(st.data())
def test_a_body_with_any_value_in_any_place_is_answered_or_refused(data: st.DataObject) -> None:
    path, request = data.draw(st.sampled_from(REQUESTS))
    body = copy.deepcopy(request)
    for _ in range(data.draw(st.integers(1, 2))):
        container, key = data.draw(st.sampled_from(list(places(body))))
        container[key] = data.draw(VALUES)
    answer = asyncio.run(CaseApi(Answering()).answer_request("POST", path, json.dumps(body).encode()))  # type: ignore[arg-type]
    assert answer.status in {200, 400}
