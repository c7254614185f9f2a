"""Values and calls between the answer's process and its tests', here within one process."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import fractions
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.scorers.two_processes import AnswerProcess, CheckProcess, NotPlainError, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

NOT_PLAIN = "a value of the type object is not plain data"
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(plain)
def test_a_plain_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value))))
    assert (back, type(back)) == (value, type(value))


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        frozenset({"a"}),
        collections.deque([1]),
        range(2, 9, 3),
        1 - 2j,
        decimal.Decimal("1.10"),
        fractions.Fraction(1, 3),
        dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC),
        dt.time(1, 2),
        dt.timedelta(days=1, microseconds=5),
        {"a": 1}.keys(),
    ],
)
def test_a_value_of_the_standard_library_comes_back(value: Any) -> None:
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_numbers_and_arrays_of_numpy_and_iterators_come_back() -> None:
    assert encode(np.float64(1.5)) == 1.5
    assert decode(encode(np.array([[1, 2]]))).tolist() == [[1, 2]]
    assert list(decode(encode(n for n in range(3)))) == [0, 1, 2]
    assert list(decode(encode({"a": 1}.items()))) == [("a", 1)]


@pytest.mark.parametrize("value", [object(), len, Exception("x"), type])
def test_anything_else_cannot_pass(value: Any) -> None:
    with pytest.raises(NotPlainError):
        encode(value)


@pytest.fixture
def talk(capfd: pytest.CaptureFixture[str]) -> Callable[[str, str], list[Any]]:
    def run(code: str, check: str) -> list[Any]:
        """Carries calls and results between the two until the check has ended."""
        answer, tests = AnswerProcess(code), CheckProcess("T", "", check, ["f"])
        tests.start()
        while True:
            message: list[Any] = json.loads(capfd.readouterr().out.rpartition("T")[2])
            if message[0] != "call":
                return message
            answer.call("T", message[1])
            tests.go_on(capfd.readouterr().out.rpartition("T")[2])

    return run


@pytest.mark.parametrize(
    ("code", "check", "verdict"),
    [
        ("def f(x): return x + 1", "assert f(1) == 2 and f(x=2) == 3", ["passed"]),
        ("def f(x): return x", "assert f(1) == 2, 'no'", ["failed", "AssertionError: no"]),
        ("def f(x): x.append(1)", "a = []\nf(a)\nassert a == [1]", ["passed"]),
        ("def f(x): x['b'] = 1", "a = {}\nf(a)\nassert a == {'b': 1}", ["passed"]),
        ("def f(x): raise KeyError('k')", "f(1)", ["failed", "KeyError: 'k'"]),
        ("class Own(Exception): pass\ndef f(x): raise Own('x')", "f(1)", ["failed", "Own: x"]),
        ("def f(x): raise AssertionError('x')", "f(1)", ["failed", "AssertionError: x"]),
        ("def f(x): return lambda y: y + x", "assert f(1)(2) == 3", ["passed"]),
        ("def g(x): return x", "f(1)", ["failed", "NameError: name 'f' is not defined"]),
        ("def f(x): return x", "f(object())", ["not plain", NOT_PLAIN]),
        (
            "def f(x): return object()",
            "f(1)",
            ["failed", "NotPlainError: a value of the type object is not plain data"],
        ),
        ("def f(x): return lambda: 1", "f(f(1))", ["failed", NOT_PLAIN.replace("object", "function")]),
    ],
)
def test_a_check_ends_as_it_would_beside_the_answer(
    talk: Callable[[str, str], list[Any]], code: str, check: str, verdict: list[str]
) -> None:
    assert talk(code, check) == verdict
