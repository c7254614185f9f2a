"""Answers that are programs, against unit tests in the published shapes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SandboxUnavailable, ScoringError
from evalsuite.core.types import Sample, Transcript
from evalsuite.scorers.unit_tests import passes_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HUMANEVAL = {
    "prompt": 'import math\n\ndef area(r):\n    """Area of a circle."""\n',
    "test": "def check(candidate):\n    assert candidate(0) == 0\n    assert round(candidate(1), 2) == 3.14",
    "entry_point": "area",
}
MBPP = {"test_setup_code": "ZERO = 0", "test_list": ["assert add(1, 2) == 3", "assert add(ZERO, 0) == 0"]}
PAIRS = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7"]}
ADD = "def add(a, b):\n    return a + b"
SUM = "print(sum(map(int, input().split())))"


@pytest.fixture(scope="module")
def score() -> Iterator[Callable[..., tuple[float, str, str]]]:
    runner, scorer = asyncio.Runner(), passes_tests(timeout=20)

    def one(answer: str, metadata: dict[str, Any]) -> tuple[float, str, str]:
        sample = Sample("s", "?", metadata=metadata)
        try:
            found = runner.run(scorer(sample, Transcript(answer)))["passes_tests"]
        except SandboxUnavailable as error:
            pytest.skip(str(error))
        return found.value, found.facts["program"], found.note

    yield one
    runner.run(scorer.aclose())
    runner.close()


@pytest.mark.parametrize(
    ("answer", "metadata"),
    [
        ("    return math.pi * r * r\n", HUMANEVAL),
        ("    return math.pi * r * r", HUMANEVAL),
        ("```python\n    return math.pi * r * r\n```", HUMANEVAL),
        ("```python\n    def area(r):\n        return math.pi * r ** 2\n```", HUMANEVAL),
        ("```python\ndef area(r):\n    return math.pi * r ** 2\n```", HUMANEVAL),
        (f"Here:\n```python\n{ADD}\n```\nThat adds.", MBPP),
        (ADD, MBPP),
        (SUM, PAIRS),
        (f"```\n{SUM}\n```", {"input_output": '{"inputs": ["1 2"], "outputs": ["3"]}'}),
        ("import sys\nfor line in sys.stdin:\n    print(eval(line.replace(' ', '+')))", PAIRS),
        ('if __name__ == "__main__":\n    ' + SUM, PAIRS),
    ],
)
def test_a_right_program_passes(score: Callable[..., Any], answer: str, metadata: dict[str, Any]) -> None:
    assert score(answer, metadata)[:2] == (1.0, "passed")


@pytest.mark.parametrize(
    ("answer", "metadata", "cause"),
    [
        ("    return r", HUMANEVAL, "wrong"),
        ("def add(a, b):\n    return a - b", MBPP, "wrong"),
        ("def add(a, b)\n    return", MBPP, "failed"),
        ("def other(): pass", MBPP, "failed"),
        ("print(0)", PAIRS, "wrong"),
        ("1 / 0", PAIRS, "failed"),
        ("raise type('the answer contains no program', (Exception,), {'__module__': 'builtins'})", PAIRS, "failed"),
        ("", MBPP, "missing"),
        ("```python\n```", PAIRS, "missing"),
    ],
)
def test_a_wrong_program_does_not_and_its_zero_has_a_cause(
    score: Callable[..., Any], answer: str, metadata: dict[str, Any], cause: str
) -> None:
    assert score(answer, metadata)[:2] == (0.0, cause)


@pytest.mark.parametrize(
    "answer",
    [
        "import os\nos._exit(0)",
        "import sys\nsys.exit(0)",
        "import atexit, os\ndef add(a, b):\n    os._exit(0)",
        "def add(a, b):\n    raise SystemExit(0)",
        "import builtins\nbuiltins.AssertionError = None\ndef add(a, b):\n    return 0",
    ],
)
def test_a_program_that_ends_before_its_tests_has_not_passed(score: Callable[..., Any], answer: str) -> None:
    assert score(answer, MBPP)[0] == 0.0


TOKEN_IN_AN_ERROR = r"""
import json, sys
def add(a, b):
    frame = sys._getframe()
    while "token" not in frame.f_locals: frame = frame.f_back
    token = "".join(rf"\u{ord(each):04x}" for each in frame.f_locals["token"])
    json.dumps = lambda *a: '["raised", ["' + token + '["], [[], {"type": "dict", "value": []}], "", ""]'
"""
ATTACKS = {
    "an object that equals everything": "class All:\n    def __eq__(self, other): return True\n"
    "def add(a, b):\n    return All()",
    "a number that equals everything": "class All(int):\n    def __eq__(self, other): return True\n"
    "    __hash__ = int.__hash__\ndef add(a, b):\n    return All(0)",
    "a patched parser": "import ast\nparse = ast.parse\n"
    "ast.parse = lambda *a, **k: parse('pass')\ndef add(a, b):\n    return 0",
    "a patched compiler": "import builtins\nbuiltins.compile = lambda *a, **k: 'pass'\n"
    "builtins.exec = lambda *a, **k: None\ndef add(a, b):\n    return 0",
    "a forged verdict": "import os\ndef add(a, b):\n    os.write(1, b'[\"passed\"]')\n    return 0",
    "a forged verdict of every token": "import os, sys\n"
    "def add(a, b):\n    frame = sys._getframe()\n    while frame:\n"
    "        token = frame.f_locals.get('token')\n"
    "        if token: os.write(1, ('\\n' + token + '[\"passed\"]').encode()); os._exit(0)\n"
    "        frame = frame.f_back\n    return 0",
    "a token in the name of an error": TOKEN_IN_AN_ERROR,
    "a patched encoder": "import json\njson.dumps = lambda *a, **k: '[\"passed\"]'\ndef add(a, b):\n    return 0",
    "an assertion that never fails": "import builtins\nbuiltins.AssertionError = Warning\ndef add(a, b):\n    return 0",
    "an error that names the way out": "class All(int):\n    def __eq__(self, other): return True\n"
    "    __hash__ = int.__hash__\nif __name__ == 'answer':\n    raise Exception('x\\nnot plain')\n"
    "def add(a, b):\n    return All(0)",
    "a call that ends the loop over the tests": "def add(a, b):\n    raise StopIteration",
    "an exception that skips the test": "import unittest\ndef add(a, b):\n    raise unittest.SkipTest",
    "a list that equals everything": "class All(list):\n    def __eq__(self, other): return True\n"
    "def add(a, b):\n    return All()",
    "an exception whose class has no name": "def add(a, b):\n    raise type('', (Exception,), {})()",
    "an exception whose class has a blank for a name": "def add(a, b):\n    raise type(' :', (Exception,), {})(' ')",
    "methods that all agree": "class All:\n    def __getattr__(self, name): return lambda *a: True\n"
    "def add(a, b):\n    return All()",
    "a thread that prints verdicts": "import os, threading\n"
    "threading.Thread(target=lambda: [os.write(1, b'[\"passed\"]') for _ in range(99)]).start()\n"
    "def add(a, b):\n    return 0",
    "a tracer": "import sys\nsys.settrace(lambda frame, event, arg: frame.f_locals.clear())\n"
    "def add(a, b):\n    return 0",
    "objects of the collector": "import gc\ndef add(a, b):\n"
    "    for each in gc.get_objects():\n"
    "        if type(each) is dict and '_requests' in each: each['_requests'].put(['passed'])\n    return 0",
    "a fork that ends well": "import os\nos.fork() or os._exit(0)\ndef add(a, b):\n    return 0",
    "a type of data that does not exist": "import json\njson.dumps = lambda *a, **k: "
    '\'["result", {"type": "os", "value": 1}, [null, null]]\'\ndef add(a, b):\n    return 0',
}


@pytest.mark.parametrize("answer", ATTACKS.values(), ids=ATTACKS)
def test_an_answer_cannot_change_how_it_is_compared(score: Callable[..., Any], answer: str) -> None:
    assert score(answer, MBPP)[0] == 0.0


def test_an_answers_object_does_not_decide_what_it_contains(score: Callable[..., Any]) -> None:
    answer = "class All:\n    def __contains__(self, item): return True\ndef f():\n    return All()"
    assert score(answer, {"test_list": ["assert 3 in f()"]})[0] == 0.0


IN_UNITTEST = """
import unittest
def check(candidate):
    class Added(unittest.TestCase):
        def test(self):
            self.assertEqual(candidate(1, 2), 3)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Added).run(result)
    assert result.wasSuccessful()
"""


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        (ADD, 1.0),
        ("import unittest\ndef add(a, b):\n    raise unittest.SkipTest", 0.0),
        ("import unittest.case\ndef add(a, b):\n    raise unittest.case._ShouldStop", 0.0),
        ("class _ShouldStop(Exception): __module__ = 'unittest.case'\ndef add(a, b):\n    raise _ShouldStop", 0.0),
    ],
)
def test_an_answer_cannot_stop_a_test_by_an_exception_of_the_test_framework(
    score: Callable[..., Any], answer: str, value: float
) -> None:
    assert score(answer, {"test": IN_UNITTEST, "entry_point": "add", "prompt": ""})[0] == value


FORGED_PERIOD = """
import json
class All:
    def __eq__(self, other): return True
usual = json.dumps
def encode(text):
    period = {"type": "table", "value": [1, [None], [0], [[None, "period[M]", ["2020-01"]]]]}
    json.dumps = lambda *a: usual(["result", period, [None, None]])
def decode(text): return All()
"""


def test_an_answer_cannot_move_a_check_into_its_process_by_a_table(score: Callable[..., Any]) -> None:
    assert score(FORGED_PERIOD, {"test_list": ["assert decode(encode('ab')) == 'ab'"]})[0] == 0.0


VALUES = {
    "a tuple": ("(1, 'a')", "(1, 'a')"),
    "a set": ("{1, 2}", "{2, 1}"),
    "a dict of tuples": ("{(1, 2): [3.5, None]}", "{(1, 2): [3.5, None]}"),
    "a float that is not a number": ("float('nan')", "f(0) != f(0) and str(f(0)) == 'nan' and f(0)"),
    "a date": ("__import__('datetime').date(2024, 2, 29)", "__import__('datetime').date(2024, 2, 29)"),
    "a decimal": ("__import__('decimal').Decimal('1.10')", "__import__('decimal').Decimal('1.1')"),
    "a fraction": ("__import__('fractions').Fraction(1, 3)", "__import__('fractions').Fraction(1, 3)"),
    "bytes": ("b'ab'", "b'ab'"),
    "a counter": ("__import__('collections').Counter('aab')", "{'a': 2, 'b': 1}"),
    "a range": ("range(3)", "range(3)"),
    "a complex number": ("1 + 2j", "1 + 2j"),
}


@pytest.mark.parametrize(("value", "expected"), VALUES.values(), ids=VALUES)
def test_plain_values_are_compared_as_in_one_process(score: Callable[..., Any], value: str, expected: str) -> None:
    test = f"result = f(0)\nassert result == {expected} or result != result"
    assert score(f"def f(x):\n    return {value}", {"test_list": [test]})[:2] == (1.0, "passed")


PAIR = """
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
def f(pairs, n):
    return sum(pair.b - pair.a for pair in pairs[:n])
"""
STACK = """
class Stack:
    def __init__(self):
        self.items = []
    def push(self, item):
        self.items.append(item)
    def pop(self):
        return self.items.pop()
"""
WORDS = """
class Words:
    def __init__(self, *words): self.words = set(words)
    def __contains__(self, word): return word in self.words
def f(): return ["a", "b"]
"""
MANAGER = """
class Manager:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.closed = True
"""
CAPTURED = """
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()) as printed:
    f(1)
assert printed.getvalue() == "1\\n"
"""
PATCHED = "from unittest import mock\nwith mock.patch('builtins.input', return_value='3'):\n    assert f() == 3"
FRAME = """
import pandas
pandas.testing.assert_frame_equal(f([2, 1]), pandas.DataFrame({"a": [2, 1]}, index=[2, 1]))
assert f([2]).shape == (1, 1) and f([2]).to_dict() == {"a": {2: 2}}
"""
CACHE = """
from collections import OrderedDict
class Cache(OrderedDict):
    def __init__(self, size):
        super().__init__()
        self.size = size
    def get(self, key):
        return self[key] if key in self else -1
    def put(self, key, value):
        self[key] = value
        if len(self) > self.size:
            self.popitem(last=False)
"""
POINT = """
from typing import NamedTuple
class Point(NamedTuple):
    x: int
    y: int
    def norm(self):
        return self.x ** 2 + self.y ** 2
def f():
    return Point(1, 2)
"""
LEVEL = "from enum import Enum\nclass Level(str, Enum):\n    LOW = 'low'\ndef f(): return Level.LOW"
RAISED = "import dataclasses, json\ntry:\n    f('{{')\nexcept {} as error:\n    assert error.{}\nelse:\n    assert 0"
FROZEN = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Pair:
    x: int
def f(x):
    Pair(1).x = x
"""
BITS = """
class Bits:
    def __init__(self, n): self.n = n
    def __and__(self, other): return Bits(self.n & other.n)
    def __invert__(self): return Bits(~self.n)
    def __lshift__(self, by): return Bits(self.n << by)
"""
SEEDED = "import random\nrandom.seed(1)\nfirst = f()\nrandom.seed(1)\nassert f() == first"
SERIES = """
import pandas
frame = pandas.DataFrame({"a": ["x", "y", "x"], "b": [1.5, None, 2]})
pandas.testing.assert_series_equal(f(frame), pandas.Series({"x": 3.5, "y": 0.0}, name="b").rename_axis("a"))
"""


@pytest.mark.parametrize(
    ("answer", "test"),
    [
        ("def f(x):\n    yield from range(x)", "assert list(f(3)) == [0, 1, 2]"),
        ("def f(x):\n    x.sort()", "values = [2, 1]\nf(values)\nassert values == [1, 2]"),
        ("def f(x):\n    x[0][0] = 9", "x = [[1], [2]]\nrow = x[0]\nf(x)\nassert row == [9] and x == [[9], [2]]"),
        ("def f(x):\n    x.reverse()", "x = [[1], [2]]\nrow = x[0]\nf(x)\nassert row == [1] and x == [[2], [1]]"),
        ("def f(x):\n    raise KeyError(x)", "try:\n    f(1)\n    assert False\nexcept KeyError:\n    pass"),
        ("def f(x):\n    return lambda y: x + y", "assert f(1)(2) == 3"),
        ("def f(g, x):\n    return g(x)", "assert f(lambda x: x + 1, 1) == 2"),
        ("def f(x, *, by=1):\n    return x + by", "assert f(1, by=2) == 3"),
        ("def f(x):\n    return sum(x)", "assert f(list(range(100_000))) == 4999950000"),
        ("def f(x):\n    return 10 ** x", "assert f(5000) == 10 ** 5000"),
        ("def f(x):\n    return float(sum(x[0]))", "import numpy\nassert f([numpy.array([1, 2])]) == 3"),
        ("def f(x):\n    return x\nif __name__ == '__main__':\n    1 / 0", "assert f(1) == 1"),
        ("import math\ndef f(x):\n    return math.pi", "assert math.isclose(f(0), 3.14, abs_tol=0.01)"),
        (PAIR, "assert f([Pair(5, 24), Pair(15, 25)], 2) == 29"),
        (STACK, "stack = Stack()\nstack.push(1)\nassert stack.pop() == 1 and stack.items == []"),
        ("async def f(x):\n    return x + 1", "import asyncio\nassert asyncio.run(f(1)) == 2"),
        ("def sum(a, b):\n    return a - b", "assert sum(5, 3) == 2"),
        ("import re\ndef f(x):\n    return re.match('a+', x)", "assert f('aab').group() == 'aa' and not f('b')"),
        ("def f(stream):\n    return stream.read()", "import io\nassert f(io.StringIO('a')) == 'a'"),
        ("def f(x):\n    print(x)", CAPTURED),
        ("def f():\n    return int(input())", PATCHED),
        ("def f(x):\n    return open(x).read()", "open('a', 'w').write('b')\nassert f('a') == 'b'"),
        ("def f(x):\n    'Doubles.'", "assert f.__doc__ == 'Doubles.' and f.__name__ == 'f'"),
        ("class A:\n    def f(self): return self.g()", "class B(A):\n    def g(self): return 1\nassert B().f() == 1"),
        (MANAGER, "with Manager() as manager:\n    pass\nassert manager.closed"),
        (f"{STACK}def f(x):\n    stack = Stack()\n    stack.push(x)\n    return stack", "assert f(1).pop() == 1"),
        ("import pandas\ndef f(x):\n    return pandas.DataFrame({'a': x}, index=x)", FRAME),
        (
            "def f(frame):\n    frame['b'] = 1",
            "import pandas\nt = pandas.DataFrame({'a': [2]})\nf(t)\nassert t.b[0] == 1",
        ),
        (
            "def f(frame):\n    return frame",
            "import pandas\nassert f(pandas.to_datetime(pandas.Series([None]))).isna()[0]",
        ),
        (
            "import pandas\ndef f(x):\n    return pandas.Series(x, dtype='string')",
            "assert f(['NaT', None]).isna().tolist() == [False, True]",
        ),
        ("def f(frame):\n    return frame.groupby('a').b.sum()", SERIES),
        ("def f(g, x):\n    return g(x)\nif __name__ == '__main__':\n    1 / 0", "assert f(lambda x: x + 1, 1) == 2"),
        ("def f(x):\n    x.append(1)\n    return x", "x = []\nassert f(x) is x"),
        (CACHE, "cache = Cache(1)\ncache.put(1, 2)\ncache.put(3, 4)\nassert cache.get(1) == -1 and cache == {3: 4}"),
        (POINT, "assert Point(3, 4).norm() == 25 and Point(3, 4) == (3, 4) and f() == Point(1, 2)"),
        (LEVEL, "assert f() == 'low' == Level.LOW and Level.LOW.name == 'LOW' and Level('low') == Level.LOW"),
        ("LIMIT = 5\nTAGS = ['a']\ndef f(): return LIMIT", "assert LIMIT == 5 == f() == LIMIT and TAGS == ['a']"),
        ("import json\ndef f(x):\n    return json.loads(x)", RAISED.format("json.JSONDecodeError", "pos == 1")),
        (FROZEN, RAISED.format("dataclasses.FrozenInstanceError", "args")),
        (
            "import numpy\ndef f(x):\n    return numpy.zeros((0, x), 'f4')",
            "assert f(3).shape == (0, 3) and f(1).dtype == 'f4'",
        ),
        ("def f(x):\n    x *= 2", "import numpy\nx = numpy.array([1, 2])\nf(x)\nassert x.tolist() == [2, 4]"),
        (BITS, "import copy\na = Bits(6)\ncopy.deepcopy(a).n = 1\nassert (a & Bits(3)).n == 2 and (~a << 1).n == -14"),
        ("import random\ndef f():\n    return random.random()", SEEDED),
        ("import os\ndef f(x):\n    os.mkdir(x)", "import os\nf('a')\nassert os.path.isdir('a')"),
        (WORDS, "words = Words('ab')\nassert 'ab' in words and 'a' not in words and 'b' in f()"),
        ("import sys\nsys.stdout.close()\ndef f(x):\n    return x", "assert f(1) == 1"),
        (STACK, "stack = Stack()\nassert type(stack) is Stack and vars(stack) == Stack().__dict__"),
    ],
)
def test_what_functions_usually_do_passes_from_process_to_process(
    score: Callable[..., Any], answer: str, test: str
) -> None:
    assert score(answer, {"test_list": [test]}) == (1.0, "passed", "passes all its tests")


TREE = "class Node:\n    def __init__(self, data):\n        self.data, self.left = data, None\n"


@pytest.mark.parametrize(
    ("answer", "metadata"),
    [
        (f"from __future__ import annotations\n{ADD}", MBPP),
        (
            TREE + "def height(node):\n    return 0 if node is None else 1 + height(node.left)",
            {"test_setup_code": "root = Node(1)\nroot.left = Node(2)", "test_list": ["assert height(root) == 2"]},
        ),
    ],
)
def test_setup_code_and_answer_stand_in_the_order_that_python_needs(
    score: Callable[..., Any], answer: str, metadata: dict[str, Any]
) -> None:
    assert score(answer, metadata)[:2] == (1.0, "passed")


@pytest.mark.parametrize(
    "answer",
    [
        f"```python\n{ADD}\n```\nFor example:\n```python\nprint(add(1, 2))\n```",
        f"```python\n{ADD}\n```\nIts tests:\n```python\nassert add(1, 2) == 3\n```",
        f"```python\n{ADD}\n```\nIts use:\n```python\nfrom solution import add\nprint(add(1, 2))\n```",
    ],
)
def test_a_solution_with_examples_after_it_passes(score: Callable[..., Any], answer: str) -> None:
    assert score(answer, MBPP)[:2] == (1.0, "passed")


@pytest.mark.parametrize(
    "read",
    [
        "open(0).read()",
        "__import__('os').read(0, 100).decode()",
        "open('/dev/stdin').read()",
        "__import__('pathlib').Path('/dev/stdin').read_text()",
        "open('/proc/self/fd/0').read()",
        "(s := __import__('sys'), setattr(s, 'stdin', type(s.stdin)(s.stdin.buffer)), input())[2]",
        "__import__('sys').stdin.buffer.read().decode()",
        "input()",
    ],
)
def test_standard_input_can_be_read_in_any_way(score: Callable[..., Any], read: str) -> None:
    assert score(f"print(sum(map(int, {read}.split())))", PAIRS)[:2] == (1.0, "passed")


def test_an_answer_that_returns_its_argument_fails_a_test_for_a_copy(score: Callable[..., Any]) -> None:
    """Values are copied between processes, so a test that compares identity runs in the answer's process."""
    for copies in ("f(values) is not values", "id(f(values)) != id(values)"):
        tests = {"test_list": [f"values = [1]\nassert {copies}"]}
        assert score("def f(x):\n    return x", tests)[:2] == (0.0, "wrong")
        assert score("def f(x):\n    return x[:]", tests)[:2] == (1.0, "passed")


def test_a_check_of_many_calls_names_the_time_that_it_had_in_all() -> None:
    """The last call has only the rest of the time, which the note would show."""

    async def run() -> Any:
        scorer = passes_tests(timeout=1.5)
        sample = Sample("s", "?", metadata={"test_list": ["while True: assert f(1) == 1"]})
        try:
            return (await scorer(sample, Transcript("def f(x):\n    return x")))["passes_tests"]
        finally:
            await scorer.aclose()

    try:
        found = asyncio.run(run())
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    assert found.note.startswith("stopped after 1.5 s (")


def test_an_end_before_the_test_is_named(score: Callable[..., Any]) -> None:
    assert score(f"{ADD}\nraise SystemExit", MBPP)[2].startswith("the program ended before its test (")


def test_a_failed_test_is_named(score: Callable[..., Any]) -> None:
    assert "assert add(1, 2) == 3" in score("def add(a, b):\n    return 0", MBPP)[2]
    assert "for input '1 2\\n' it prints '0\\n', not '3\\n'" in score("print(0)", PAIRS)[2]


@pytest.mark.parametrize(
    "metadata", [{}, {"inputs": ["1"], "outputs": []}, {"inputs": [], "outputs": []}, {"test": "x"}]
)
def test_a_sample_without_tests_is_an_error(score: Callable[..., Any], metadata: dict[str, Any]) -> None:
    with pytest.raises(ScoringError, match="sample 's' has"):
        score(ADD, metadata)


def test_a_program_that_runs_for_ever_is_stopped() -> None:
    async def run() -> Any:
        scorer = passes_tests(timeout=0.5)
        try:
            return await scorer(Sample("s", "?", metadata=PAIRS), Transcript("while True: pass"))
        finally:
            await scorer.aclose()

    try:
        found = asyncio.run(run())["passes_tests"]
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    assert (found.value, found.facts["program"]) == (0.0, "timed out")
