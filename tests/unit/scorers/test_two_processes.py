"""Values and calls between the answer's process and its tests', here within one process."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import fractions
import inspect
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.scorers.two_processes import AnswerProcess, CheckProcess, NotPlainError, decode_value, encode_value

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN = "token of this check"
NOT_PLAIN = "a value of the type object is not plain data"
UNSUPPORTED = "TypeError: unsupported operand type(s) for {}: '{}' and '{}'"
PAIR = """
from dataclasses import dataclass
@dataclass
class Pair:
    a: int
    b: int
    def swap(self): self.a, self.b = self.b, self.a
    def __len__(self): return 2
    def __iter__(self): yield from (self.a, self.b)
    def __getitem__(self, place): return (self.a, self.b)[place]
    def __add__(self, other): return Pair(self.a + other.a, self.b + other.b)
    def __mul__(self, factor): return Pair(self.a * factor, self.b * factor)
    def __neg__(self): return self * -1
    __rmul__ = __mul__
"""
FOOLISH_PAIR = """
class Pair:
    def __init__(self, a): pass
    def run(self): return self
    def __sub__(self, other): return 0
    def __rsub__(self, other): return 0
def f(x): return Pair(x)
"""
OWN = """
class Own(ValueError):
    def __init__(self, code):
        super().__init__(code)
        self.code = code
"""
FOOL = """
class Fool:
    def __eq__(self, other): return True
    def __hash__(self): return 1
    def __sub__(self, other): return 0
    def __contains__(self, other): return True
    def __iter__(self): return iter([0])
    def __lt__(self, other): return True
    def startswith(self, other): return True
def f(x): return Fool()
"""
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(plain)
def test_a_plain_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    back = decode_value(json.loads(json.dumps(encode_value(value))))
    assert (back, type(back)) == (value, type(value))


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        frozenset({"a"}),
        collections.deque([1]),
        collections.Counter("aab"),
        collections.OrderedDict(a=1),
        collections.defaultdict(int, a=1),
        bytearray(b"ab"),
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
    back = decode_value(json.loads(json.dumps(encode_value(value))))
    assert (back, type(back)) == (value, type(value))


def test_a_named_tuple_keeps_its_fields_and_a_counter_its_methods() -> None:
    back = decode_value(encode_value(inspect.ArgInfo([], None, None, {})))
    assert (back.args, type(back).__name__) == ([], "ArgInfo")
    assert decode_value(encode_value(collections.Counter("aab"))).most_common(1) == [("a", 2)]
    assert decode_value(encode_value(collections.defaultdict(list)))["missing"] == []


def test_numbers_and_arrays_of_numpy_and_iterators_come_back() -> None:
    assert encode_value(np.float64(1.5)) == 1.5
    assert decode_value(encode_value(np.array([[1, 2]]))).tolist() == [[1, 2]]
    assert list(decode_value(encode_value(n for n in range(3)))) == [0, 1, 2]
    assert list(decode_value(encode_value({"a": 1}.items()))) == [("a", 1)]


@pytest.mark.parametrize("value", [object(), len, type])
def test_anything_else_cannot_pass(value: Any) -> None:
    with pytest.raises(NotPlainError):
        encode_value(value)


@pytest.fixture
def talk(capfd: pytest.CaptureFixture[str]) -> Callable[[str, str], list[Any]]:
    def run(code: str, check: str) -> list[Any]:
        """Carries calls and results between the two until the check has ended."""
        names = [name for name in ("f", "Own", "Pair", "Stack", "Color") if name in check]
        answer = AnswerProcess(code)
        answer.send_error_classes(TOKEN, names)
        tests = CheckProcess(TOKEN, "", check, names, capfd.readouterr().out.rpartition(TOKEN)[2])
        tests.start_check()
        while True:
            message: list[Any] = json.loads(capfd.readouterr().out.rpartition(TOKEN)[2])
            if message[0] != "call":
                return message
            answer.perform_request(TOKEN, message[1])
            tests.resume_check(capfd.readouterr().out.rpartition(TOKEN)[2])

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
        ("def f(x): return object()", "f(1)", ["passed"]),
        ("def f(x): return lambda: 1", "f(f(1), object())", ["failed", NOT_PLAIN]),
        (
            "def f(x): raise ValueError",
            "try:\n    f(1)\nexcept ValueError as e:\n    f(e)",
            ["failed", "TypeError: an exception cannot be passed to the answer"],
        ),
        ("def f(*, x): x.append(1)", "a = []\nf(x=a)\nassert a == [1]", ["passed"]),
        (f"{PAIR}def f(x): return max(p.b for p in x)", "assert f([Pair(5, 24), Pair(1, 2)]) == 24", ["passed"]),
        (f"{PAIR}def f(x): return Pair(x, 2)", "assert f(1) == Pair(1, 2) != Pair(2, 1)", ["passed"]),
        (PAIR, "p = Pair(1, 2)\np.swap()\np.b = 7\nassert (p.a, p.b) == (2, 7)", ["passed"]),
        (PAIR, "p = Pair(1, 2)\nassert list(p) == [1, 2] and len(p) == 2 and p[1] == 2 and p", ["passed"]),
        (PAIR, "assert isinstance(Pair(1, 2), Pair) and not isinstance(3, Pair)", ["passed"]),
        (PAIR, "assert repr(Pair(1, 2) + Pair(1, 0)) == 'Pair(a=2, b=2)'", ["passed"]),
        (PAIR, "assert Pair(1, 2) * 3 == 3 * Pair(1, 2) == -Pair(-3, -6) == (Pair(1, 2) * 1) * 3", ["passed"]),
        (PAIR, "Pair(1, 2) - 1", ["failed", UNSUPPORTED.format("-", "Pair", "int")]),
        (
            "import enum\nclass Color(enum.Enum):\n    RED = 1\ndef f(x): return Color.RED",
            "assert f(0) == Color.RED and f(0).value == 1",
            ["passed"],
        ),
        (
            f"{OWN}def f(x): raise Own(x)",
            "try:\n    f(3)\nexcept Own as e:\n    assert (e.code, e.args, str(e)) == (3, (3,), '3')",
            ["passed"],
        ),
        (f"{OWN}def f(x): raise Own(x)", "try:\n    f(3)\nexcept ValueError:\n    pass", ["passed"]),
        (
            "import sys\ndef f(x): sys.exit(x)",
            "try:\n    f(3)\nexcept SystemExit as e:\n    assert e.code == 3",
            ["passed"],
        ),
        (FOOL, "assert f(1) == 3", ["failed", "AssertionError"]),
        ("def f(x): raise type(' ', (Exception,), {})()", "f(1)", ["failed", "an exception"]),
        (FOOL, "assert abs(f(1) - 3) < 1e-6", ["failed", UNSUPPORTED.format("-", "Remote", "int")]),
        (FOOLISH_PAIR, "assert abs(Pair(1).run() - 3) < 1e-6", ["failed", UNSUPPORTED.format("-", "Remote", "int")]),
        (FOOLISH_PAIR, "Pair(1)\nassert abs(3 - f(1)) < 1e-6", ["failed", UNSUPPORTED.format("-", "int", "Remote")]),
        (FOOL, "assert f(1) < 3", ["failed", "TypeError: '<' not supported between instances of 'Remote' and 'int'"]),
        (FOOL, "assert 3 in f(1)", ["failed", "AssertionError"]),
        (
            FOOL,
            "assert f(1).startswith('a')",
            [
                "failed",
                "TypeError: a method that plain values have is called only if the tests name the object's class",
            ],
        ),
    ],
)
def test_a_check_ends_as_it_would_beside_the_answer(
    talk: Callable[[str, str], list[Any]], code: str, check: str, verdict: list[str]
) -> None:
    assert talk(code, check) == verdict
