"""`passes_tests`: runs the program that a model wrote against unit tests, in the sandbox."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError
from evalsuite.core.types import Score
from evalsuite.sandbox import Sandbox
from evalsuite.solvers.programs import python_block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Sample, Transcript
    from evalsuite.sandbox import Execution

SHAPES = (
    "HumanEval's (`test` and `entry_point`, with the beginning of the program as `prompt`), MBPP's (`test_list`, "
    "perhaps with `test_setup_code` or `test_imports`), or pairs of standard input and output (`inputs` and "
    "`outputs`, also within `input_output`)"
)
_FEED = """\
import io as _io, sys as _sys
_sys.stdin = _io.TextIOWrapper(_io.BytesIO({stdin!r}), encoding="utf-8")
exec(compile({code!r}, "<program answer>", "exec"), {{"__name__": "__main__"}})
pass
"""


@dataclass(frozen=True, slots=True)
class UnitTests:
    """The tests that a program has to pass.

    Attributes:
        before: code that runs before the answer: imports, the beginning of the program.
        entry_point: the function that the tests call; empty if the tests name it themselves.
        checks: programs that raise if the answer is wrong, each run after the answer.
        pairs: standard input and the expected standard output.
    """

    before: str = ""
    entry_point: str = ""
    checks: Sequence[str] = ()
    pairs: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class PassesTests:
    """Scores code by running unit tests in the sandbox; made by `passes_tests`."""

    sandbox: Sandbox
    owns_sandbox: bool
    timeout: float

    async def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, Score]:
        """Score one answer.

        Raises:
            ScoringError: the sample has no tests.
            SandboxUnavailable: no sandbox can be had on this machine.
        """
        tests = read_tests(sample)
        code = program(transcript.answer, tests)
        failures = [] if code.strip() else ["the answer holds no program"]
        if code.strip():
            failures = await (self._against_pairs(code, tests) if tests.pairs else self._checks(code, tests))
        note = failures[0] if failures else "passes all its tests"
        cause = _cause(note) if failures else "passed"
        return {"passes_tests": Score(float(not failures), note, facts={"program": cause})}

    async def _checks(self, code: str, tests: UnitTests) -> list[str]:
        for check in tests.checks:
            # A random token shows that the check ran to its end: an answer that ends the process, or prints what a
            # passed test would print, has not passed.
            word = secrets.token_hex(16)
            async with self.sandbox.session(timeout=self.timeout) as session:
                execution = await session.run(code)
                if execution.error is None:
                    execution = await session.run(
                        f"{check}\n__import__('os').write(1, {word!r}.encode())\nNone"
                    )
            if execution.error is not None or not execution.stdout.endswith(word):
                return [_why(execution, check)]
        return []

    async def _against_pairs(self, code: str, tests: UnitTests) -> list[str]:
        for stdin, expected in tests.pairs:
            feed = _FEED.format(stdin=stdin.encode(), code=code)
            execution = await self.sandbox.run(feed, timeout=self.timeout)
            if execution.error is not None:
                return [_why(execution, f"input {stdin[:60]!r}")]
            if _lines(execution.stdout) != _lines(expected):
                return [
                    f"for input {stdin[:60]!r} it prints {execution.stdout[:60]!r}, not {expected[:60]!r}"
                ]
        return []

    def sandbox_for(self, _sample: Sample) -> Sandbox:
        """Return the sandbox of the sample's tests."""
        return self.sandbox

    async def aclose(self) -> None:
        """Close the sandbox, if it was made for this scorer."""
        if self.owns_sandbox:
            await self.sandbox.aclose()


def passes_tests(*, timeout: float = 10.0, sandbox: Sandbox | None = None) -> PassesTests:
    """Score `passes_tests`, 1.0 or 0.0: whether the program in the answer passes the sample's unit tests.

    The program is the last Python block of the answer, or the whole answer if it has none. The sample's metadata
    hold the tests, in the shape of HumanEval (Chen et al., arXiv 2107.03374: `test`, `entry_point`,
    `prompt`), of MBPP (Austin et al., arXiv 2108.07732: `test_list`, `test_setup_code`), or as pairs of
    standard input and output (`inputs` and `outputs`, compared line by line without blanks at the ends).
    With several epochs, pass@k and pass^k are computed from this score.

    The fact `program` gives the cause of a zero: `missing`, `wrong`, `failed` or `timed out`.

    Args:
        timeout: seconds for the program, and for each test or pair.
        sandbox: shared with others; by default one of its own.
    """
    return PassesTests(sandbox or Sandbox(preload=()), sandbox is None, timeout)


def read_tests(sample: Sample) -> UnitTests:
    """Read the tests of a sample, in any of the shapes.

    Raises:
        ScoringError: there are none, or they are malformed.
    """
    about: Mapping[str, Any] = sample.metadata
    try:
        if "test" in about and "entry_point" in about:
            name = about["entry_point"]
            return UnitTests(about.get("prompt", ""), name, (f"{about['test']}\ncheck({name})",))
        if "test_list" in about:
            setup = [about.get("test_setup_code") or "", *about.get("test_imports", ())]
            return UnitTests("\n".join(setup), "", tuple(map(str, about["test_list"])))
        pairs = about.get("input_output", about)
        pairs = json.loads(pairs) if isinstance(pairs, str) else pairs
        read = tuple(zip(map(_text, pairs["inputs"]), map(_text, pairs["outputs"]), strict=True))
    except (KeyError, TypeError, ValueError) as error:
        raise ScoringError(
            f"passes_tests: sample {sample.id!r} has no tests in its metadata ({type(error).__name__}: {error}); "
            f"they may be in the shape of {SHAPES}"
        ) from error
    if not read:
        raise ScoringError(f"passes_tests: sample {sample.id!r} has an empty list of inputs")
    return UnitTests(pairs=read)


def program(answer: str, tests: UnitTests) -> str:
    """Make the program to test: the code that precedes the answer, then the answer."""
    block = python_block(answer)
    code = answer if block is None else block
    if not code.strip():
        return ""
    continues = bool(tests.entry_point) and not re.search(
        rf"^(?:async )?def {re.escape(tests.entry_point)}\b", code, re.MULTILINE
    )
    # A completion may continue the prompt in the middle of a function.
    return f"{tests.before}{code}" if continues else f"{tests.before}\n{code}"


def _text(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _why(execution: Execution, test: str) -> str:
    if execution.timed_out:
        return f"{execution.error} ({test.splitlines()[-1][:100]})"
    last = (execution.error or "it ended before its test did").splitlines()[-1]
    return f"{last[:200]} ({test.splitlines()[-1][:100]})"


def _cause(note: str) -> str:
    if note.startswith("stopped after"):
        return "timed out"
    if note.startswith("the answer holds"):
        return "missing"
    return "wrong" if note.startswith(("AssertionError", "for input")) else "failed"
