"""Applications as they are shipped: what they are given, what they return, how they fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

HEAD = """
import sys
from evalsuite import Sample, benchmark
from evalsuite.solvers import application
SAMPLES = [Sample(id=1, input="Paris")]
"""


def write(suite: Suite, solver: str, check: str = "True") -> None:
    (suite.path / "test_capitals.py").write_text(
        HEAD + solver + f"\n@benchmark('own', SAMPLES, solver=solve)\ndef test_own(transcript):\n    assert {check}\n",
        encoding="utf-8",
    )


def test_a_conversation_is_handed_over_in_the_openai_format(suite: Suite) -> None:
    write(
        suite,
        """
SAMPLES = [Sample(id=1, input=[{"role": "user", "content": "Hi"}])]
solve = application(lambda messages, sample, model: f"{messages[0]['content']} {sample.id} {model.name}")
""",
        "transcript.answer == 'Hi 1 function:app:echo'",
    )
    suite.run().assert_outcomes(passed=1)


def test_what_a_function_returns_beside_its_answer_becomes_facts(suite: Suite) -> None:
    write(
        suite,
        "solve = application(lambda question: {'reply': 'x', 'passages': ['p']}, answer='reply')",
        "(transcript.answer, transcript.facts) == ('x', {'passages': ['p']})",
    )
    suite.run().assert_outcomes(passed=1)


def test_a_program_reads_its_question_from_an_argument_or_from_standard_input(suite: Suite) -> None:
    write(
        suite,
        "solve = application([sys.executable, '-c', 'import sys; print(sys.argv[1] + input())', '<{input}>'])",
        "transcript.answer == '<Paris>Paris'",
    )
    suite.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        ("application([sys.executable, '-c', 'raise ValueError(\"no luck\")'])", "ended with status 1: Traceback"),
        (
            "application([sys.executable, '-c', 'import time; time.sleep(600)'], timeout=0.2)",
            "did not end within 0.2 s",
        ),
        ("application('no-such-program --at all')", "no-such-program cannot be started"),
        ("application(lambda question: 42)", "returned 42"),
    ],
)
def test_an_application_that_fails_is_the_cases_error(suite: Suite, solver: str, words: str) -> None:
    write(suite, f"solve = {solver}")
    suite.run().assert_outcomes(errors=1)
    assert words in suite.records()[0]["error"]
