"""Keys of requests, and errors between processes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalsuite.core import errors
from evalsuite.core.json_codec import decode_request, dumps, encode_request
from evalsuite.core.types import Message, Request
from evalsuite.gateway.channel import decode_error, encode_error
from evalsuite.gateway.concealment import make_request_keys

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)


def request_key(identity: str, request: Request) -> str:
    return make_request_keys(identity, request)[0]


messages = st.builds(Message, st.sampled_from(["system", "user", "assistant", "tool"]), text)
requests = st.builds(
    Request,
    model=text,
    messages=st.lists(messages, min_size=1, max_size=3).map(tuple),
    params=st.dictionaries(text, values, max_size=4),
    tools=st.lists(st.dictionaries(text, values, max_size=2), max_size=2).map(tuple),
    epoch=st.integers(1, 3),
)
modest = settings(max_examples=60, deadline=None)


def reordered(value: Any) -> Any:
    """The same data, with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: reordered(inner) for key, inner in reversed(value.items())}
    return [reordered(inner) for inner in value] if isinstance(value, list) else value


@given(requests)
@modest
def test_equal_requests_have_one_key_whatever_the_order_of_their_parameters(request: Request) -> None:
    turned = replace(request, params=reordered(request.params), tools=tuple(map(reordered, request.tools)))
    over_the_wire = decode_request(json.loads(dumps(encode_request(request))))
    assert request_key("a", request) == request_key("a", turned) == request_key("a", over_the_wire)


@given(requests, requests)
@modest
def test_different_requests_have_different_keys(one: Request, other: Request) -> None:
    assume(one != other)
    # Equal to Python, but not the same request: 1 and 1.0, True and 1.
    assume(dumps(encode_request(one)) != dumps(encode_request(other)))
    assert request_key("a", one) != request_key("a", other)


BASE = Request("m", (Message("user", "hello"),), {"temperature": 0.5, "stop": ["a"]}, ({"name": "f"},))


@pytest.mark.parametrize(
    "change",
    [
        {"model": "M"},
        {"messages": (Message("user", "hello "),)},
        {"messages": (Message("system", "hello"),)},
        {"messages": (Message("user", "hello"), Message("user", ""))},
        {"params": {"temperature": 0.5, "stop": ["b"]}},
        {"params": {"temperature": 0.5}},
        {"params": {"temperature": 0.5, "stop": ["a"], "seed": None}},
        {"params": {"temperature": "0.5", "stop": ["a"]}},
        {"tools": ({"name": "g"},)},
        {"tools": ()},
        {"epoch": 2},
    ],
)
def test_any_change_makes_another_key(change: dict[str, Any]) -> None:
    assert request_key("a", replace(BASE, **change)) != request_key("a", BASE)


def test_another_backend_makes_another_key_and_the_address_counts_by_its_identity_alone() -> None:
    assert request_key("a", BASE) != request_key("b", BASE)
    assert request_key("a", BASE) == request_key("a", replace(BASE, base_url="http://user:secret@host/v1"))


def test_half_a_surrogate_pair_counts_as_the_question_mark_that_is_sent() -> None:
    halves = [replace(BASE, messages=(Message("user", said),)) for said in ("a\ud800b", "a\udfffb", "a?b")]
    assert len({request_key("a", one) for one in halves}) == 1
    assert request_key("a", replace(BASE, messages=(Message("user", "a\U0001f600b"),))) != request_key("a", halves[0])


def test_the_key_of_a_request_stays_what_it_is() -> None:
    # Stores of earlier runs are found by it; a change needs another KEY_VERSION and a word in the changelog.
    text = (
        '"epoch":1,"messages":[{"content":"hello","role":"user"}],"model":"m",'
        '"params":{"stop":["a"],"temperature":0.5},"tools":[{"name":"f"}],"version":'
    )
    shared, drawn, older = (
        hashlib.sha256(whole.encode()).hexdigest()
        for whole in (
            f'{{"base_url":"openai http://host/v1",{text}2}}',
            f'{{"base_url":"openai http://host/v1","draw":"case #2",{text}2}}',
            f'{{"base_url":"openai http://host/v1",{text}1}}',
        )
    )
    draw = replace(BASE, draw="case #2")
    assert request_key("openai http://host/v1", BASE) == f"2-{shared[2:]}"
    assert request_key("openai http://host/v1", draw) == f"2-{drawn[2:]}"
    for request in (BASE, draw):
        assert make_request_keys("openai http://host/v1", request, with_older_keys=True)[1:] == (older,)


@pytest.mark.parametrize(
    "error",
    [
        errors.CallFailed("gave up"),
        errors.RequestRefused("no"),
        errors.BackendUnavailable("not there"),
        errors.SpendLimitReached("spent"),
        errors.ReplayMiss("missing"),
        errors.SettingsError("nonsense"),
        errors.RunError("damaged"),
        errors.EvalsuiteError("something"),
    ],
)
def test_an_error_keeps_kind_and_words_on_its_way(error: errors.EvalsuiteError) -> None:
    back = decode_error(json.loads(dumps(encode_error(error))))
    assert (type(back), str(back)) == (type(error), str(error))


@pytest.mark.parametrize("kind", ["Exception", "KeyboardInterrupt", "TYPE_CHECKING", "annotations", "", "NoSuch"])
def test_an_unknown_kind_of_error_is_a_plain_one_with_the_same_words(kind: str) -> None:
    back = decode_error({"kind": kind, "message": "words"})
    assert (type(back), str(back)) == (errors.EvalsuiteError, "words")


def test_an_error_that_takes_more_than_a_message_keeps_its_words() -> None:
    error = errors.DatasetError("f.json", "line 3", "a list", "an object")
    assert str(decode_error(encode_error(error))) == str(error)
