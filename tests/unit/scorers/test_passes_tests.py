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
