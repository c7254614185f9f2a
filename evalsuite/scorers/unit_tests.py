"""`passes_tests`: run a program written by a model against unit tests, in the sandbox."""

import ast
import builtins
import json
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from evalsuite.core.errors import ScoringError
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.sandbox import Execution, Limits, ProgramSession, Sandbox
from evalsuite.sandbox.sandbox import SandboxUser
from evalsuite.solvers.program_text import find_program, list_bound_names, list_unbound_names

SHAPES = (
    "HumanEval's (`test` and `entry_point`, with the beginning of the program as `prompt`), MBPP's (`test_list`, "
    "perhaps with `test_setup_code` or `test_imports`), or pairs of standard input and output (`inputs` and "
    "`outputs`, also within `input_output`)"
)
_DRIVER = files(__package__).joinpath("two_processes.py").read_text("utf-8")
# Remove Python's limit on the digits of integers, because integers pass between the processes as text.
_BEGIN = (
    "import sys as _sys, types as _types\n_sys.set_int_max_str_digits(0)\n"
    "_driver = _types.ModuleType('driver')\nexec({driver!r}, vars(_driver))\n"
)
# Rename the module, so that code under `if __name__ == "__main__":` does not run in tests.
_AS_MODULE = "import sys as _sys\n_sys.modules['answer'] = _sys.modules['__main__']\n__name__ = 'answer'"
PASSED, NOT_PLAIN = "passed", "not plain"
# Names that show that a check needs the answer's process. Such a check uses the answer's output, input, files, source
# code, or a shared module's state, such as a seed.
ANSWER_PROCESS_NAMES = frozenset({
    "stdin", "stdout", "stderr", "redirect_stdout", "redirect_stderr", "StringIO", "BytesIO", "argv", "mock", "Mock",
    "MagicMock", "patch", "open", "Path", "tempfile", "inspect", "signature", "issubclass", "os", "shutil", "sqlite3",
    "seed", "warnings", "warns", "logging", "assertLogs", "assertWarns", "vars", "pickle",
})  # fmt: skip
NO_PROGRAM = "the answer contains no program"
CAUSES = {"stopped after": "timed out", "AssertionError": "wrong", "for input": "wrong"}
"""Starts of the descriptions of a program's failures, each with the fact `program` of these failures."""


@dataclass(frozen=True, slots=True)
class UnitTests:
    """All tests of one program."""

    before: str = ""  # Code that runs before the answer: imports, for example, or the beginning of the program.
    entry_point: str = ""  # The name of the function under test; empty if the tests themselves contain the name.
    checks: Sequence[str] = ()  # Programs that run after the answer; they raise an exception if the answer is wrong.
    pairs: Sequence[tuple[str, str]] = ()  # Pairs of standard input and expected standard output.

    def list_undefined_functions(self, check: str) -> list[str]:
        """List the functions that a check calls without a definition in the check or in the code before it."""
        try:
            tree, before = ast.parse(check), _parse_module(self.before)
        except SyntaxError as error:
            raise ScoringError(f"passes_tests: a test is not Python: {check[:100]!r}: {error}") from error
        names = list_unbound_names(tree) - list_bound_names(before) - _list_used_modules(tree)
        # One task of MBPP tests a function that has the name of a built-in: `sum`.
        if not names and not self.entry_point:
            calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
            inner = [call for call in calls if not any(isinstance(part, ast.Call) for part in list(ast.walk(call))[1:])]
            names = _list_used_names(inner[0].func) if inner else set()
        return sorted(names | ({self.entry_point} - {""}))

    def needs_answer_process(self, check: str) -> bool:
        """Tell whether a check must run in the answer's process, for example because it captures printed text."""
        wanted = set(self.list_undefined_functions(check))
        for node in ast.walk(ast.parse(check)):
            name = getattr(node, "attr", getattr(node, "id", getattr(node, "name", None)))
            if name in ANSWER_PROCESS_NAMES or _compares_identity(node):
                return True
            users = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
            users += node.bases if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
                users.append(node.value)
            if any(_list_used_names(user) & wanted for user in users):
                return True
        return False

    def add_imports(self, check: str) -> str:
        """Add imports to a check, for modules of the standard library that it uses without an import."""
        missing = list_unbound_names(ast.parse(check)) & _list_used_modules(ast.parse(check))
        return "".join(f"import {name}\n" for name in sorted(missing)) + check


def _compares_identity(node: ast.AST) -> bool:
    """Tell whether a node compares identities, which differ between the processes, because values are copied."""
    if not isinstance(node, ast.Compare) or not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "id"
    sides = [node.left, *node.comparators]
    return not any(isinstance(side, ast.Constant) or getattr(side, "id", None) in vars(builtins) for side in sides)


def _list_used_names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _parse_module(code: str) -> ast.Module:
    """Parse a program; return an empty module if this fails, as for a prompt that ends inside a function."""
    try:
        return ast.parse(code)
    except SyntaxError:
        return ast.Module([], [])


def _list_used_modules(tree: ast.Module) -> set[str]:
    """List modules of the standard library from which a program uses attributes."""
    owners = [node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    bases = {owner.id for owner in owners if isinstance(owner, ast.Name)}
    return bases & set(sys.stdlib_module_names)


@dataclass(frozen=True, slots=True)
class PassesTests(SandboxUser):
    """Scores code by running unit tests in the sandbox; the function `passes_tests` makes it."""

    timeout: float

    async def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, Score]:
        tests = read_tests(sample)
        code, form = build_program(transcript.answer, tests)
        failure, cause = NO_PROGRAM, "missing"
        if code.strip():
            describe_failure = self._describe_failed_pair if tests.pairs else self._describe_failed_check
            failure = await describe_failure(code, tests)
            cause = next((cause for start, cause in CAUSES.items() if failure.startswith(start)), "failed")
        facts = {"program": cause if failure else "passed", "form": form}
        return {"passes_tests": Score(float(not failure), failure or "passes all its tests", facts=facts)}

    async def _describe_failed_check(self, code: str, tests: UnitTests) -> str:
        """Describe the first check that fails; return "" if all checks pass."""
        for check in tests.checks:
            verdict = None if tests.needs_answer_process(check) else await self._run_check(code, tests, check)
            if verdict is None:
                verdict = await self._check_in_one_process(code, tests.add_imports(check))
            if verdict:
                return f"{verdict} ({check.splitlines()[-1][:100]})"
        return ""

    async def _run_check(self, code: str, tests: UnitTests, check: str) -> str | None:
        """Run a check in a process that never sees the answer's code; return how it failed, or ""."""
        seconds = self.timeout

        async def run_step(session: ProgramSession, step: str) -> tuple[Execution, str]:
            nonlocal seconds
            execution = await session.run(step, seconds) if seconds > 0 else Execution("", None, True, 0.0)
            if execution.timed_out:  # Name the time limit of all steps instead of what remained for this step.
                execution = replace(execution, error=f"stopped after {self.timeout:g} s")
            seconds -= execution.seconds
            _, found, message = execution.stdout.rpartition(tokens[session])
            goes_on = found and execution.error is None and not execution.variables_lost
            return execution, message if goes_on else ""

        begin = _BEGIN.format(driver=_DRIVER)
        async with self.sandbox.session() as answer, self.sandbox.session() as checker:
            # The answer may read its own token, so the tests, which repeat the answer's texts, have another.
            tokens = {answer: secrets.token_hex(16), checker: secrets.token_hex(16)}
            names = tests.list_undefined_functions(check)
            describe = (
                f"_answer = _driver.AnswerProcess({code!r})\n_answer.send_error_classes({tokens[answer]!r}, {names!r})"
            )
            execution, errors = await run_step(answer, begin + describe)
            if not errors:
                return _get_last_error_line(execution)
            parts = (tokens[checker], tests.before, tests.add_imports(check), names, errors)
            start = f"_tests = _driver.CheckProcess(*{parts!r})\n_tests.start_check()"
            execution, sent = await run_step(checker, begin + start)
            while sent:
                kind, *rest = json.loads(sent)
                if kind != "call":
                    return None if kind == NOT_PLAIN else "" if kind == PASSED else rest[0]
                execution, result = await run_step(answer, f"_answer.perform_request({tokens[answer]!r}, {rest[0]!r})")
                if not result:
                    return _get_last_error_line(execution)
                execution, sent = await run_step(checker, f"_tests.resume_check({result!r})")
            return _get_last_error_line(execution)

    async def _check_in_one_process(self, code: str, check: str) -> str:
        """Run a check in the answer's process, for example because it gives the answer its own functions."""
        # The check prints a random token as its last step. The answer does not know this token, so it cannot pass by an
        # early exit or by printed text.
        word = secrets.token_hex(16)
        async with self.sandbox.session(timeout=self.timeout) as session:
            await session.run(_AS_MODULE)
            execution = await session.run(code)
            if execution.error is None:
                execution = await session.run(f"{check}\n__import__('os').write(1, {word!r}.encode())\nNone")
        has_passed = execution.error is None and execution.stdout.endswith(word)
        return "" if has_passed else _get_last_error_line(execution)

    async def _describe_failed_pair(self, code: str, tests: UnitTests) -> str:
        """Describe the first input for which the program fails or prints wrong output; "" if there is none."""
        for stdin, expected in tests.pairs:
            # Append `pass`; otherwise the session would print the value of an expression in the last line.
            execution = await self.sandbox.run(f"{code}\npass", timeout=self.timeout, stdin=stdin)
            if execution.error is not None:
                return f"{_get_last_error_line(execution)} (input {stdin[:60]!r})"
            if _split_and_strip_lines(execution.stdout) != _split_and_strip_lines(expected):
                return f"for input {stdin[:60]!r} it prints {execution.stdout[:60]!r}, not {expected[:60]!r}"
        return ""


def passes_tests(*, timeout: float = 10.0, sandbox: Sandbox | None = None) -> PassesTests:
    """Score `passes_tests`: 1.0 if the program in the answer passes the sample's unit tests, otherwise 0.0.

    The program is the code block in which the functions that the tests call are defined. If no block defines the tested
    functions, the program is all blocks together. If the answer has no block, the program is the whole answer.
    `facts["form"]` tells how the program was found (see `find_program`).

    The sample's metadata contain the tests in one of three forms. HumanEval's form has `test`, `entry_point` and
    `prompt` (Chen et al., arXiv 2107.03374). MBPP's form has `test_list` and `test_setup_code` (Austin et al., arXiv
    2108.07732). The third form has `inputs` and `outputs`: pairs of standard input and expected output; trailing blanks
    of lines are ignored. With several epochs, the metrics pass@k and pass^k use this score.

    Assertions run in a second process, which never sees the answer's code. An answer cannot pass by changing how Python
    compares or parses, because only plain values move between the two processes. A check runs in the answer's process
    if it gives functions or objects of its own to the answer, extends one of the answer's classes, compares objects by
    `is`, or uses the answer's output, input, files, source code, or the state of a module, such as a seed. Only the
    check's own code decides in which process the check runs; the answer has no influence.

    If the score is 0, `facts["program"]` in the record names the reason: `missing`, `wrong`, `failed` or `timed out`.

    Args:
        timeout: time limit in seconds, for the program and for each test or pair of input and output.
        sandbox: a sandbox that is shared with other scorers; by default a new one.
    """
    return PassesTests(sandbox or Sandbox(limits=Limits(output=32 << 20), preload=()), sandbox is None, timeout)


def read_tests(sample: Sample) -> UnitTests:
    """Read a sample's tests, whichever of the three forms they have."""
    about: Mapping[str, Any] = sample.metadata
    try:
        if "test" in about and "entry_point" in about:
            name = about["entry_point"]
            return UnitTests(about.get("prompt", ""), name, (f"{about['test']}\ncheck({name})",))
        if "test_list" in about:
            setup = "\n".join([about.get("test_setup_code") or "", *about.get("test_imports", ())])
            if list_unbound_names(_parse_module(setup)) - set(sys.stdlib_module_names):
                # Run the setup after the answer if it uses the answer's classes.
                return UnitTests("", "", tuple(f"{setup}\n{test}" for test in about["test_list"]))
            return UnitTests(setup, "", tuple(map(str, about["test_list"])))
        pairs = about.get("input_output", about)
        pairs = json.loads(pairs) if isinstance(pairs, str) else pairs
        read = tuple(zip(map(_join_lines, pairs["inputs"]), map(_join_lines, pairs["outputs"]), strict=True))
    except (KeyError, TypeError, ValueError) as error:
        raise ScoringError(
            f"passes_tests: sample {sample.id!r} has no tests in its metadata ({type(error).__name__}: {error}); "
            f"give tests in one of these shapes: {SHAPES}"
        ) from error
    if not read:
        raise ScoringError(f"passes_tests: sample {sample.id!r} has an empty list of inputs")
    return UnitTests(pairs=read)


def build_program(answer: str, tests: UnitTests) -> tuple[str, str]:
    """Return the program to test, including the code that must run before it, and how the program was found."""
    wanted = tests.list_undefined_functions(tests.checks[0]) if tests.checks else ()
    found = find_program(answer, wanted_names=wanted)
    # An answer without a code block may be the rest of a function, or a program that prints nothing.
    code, form = (found.code, found.form) if found else (answer, "bare")
    if not code.strip() or ("```" in answer and not found):
        return "", "missing"
    continues = bool(tests.entry_point) and not re.search(
        rf"^(?:async )?def {re.escape(tests.entry_point)}\b", code, re.MULTILINE
    )
    # Do not add a line end, because a completion may continue the prompt in the middle of a function.
    program = f"{tests.before}{code}" if continues else f"{tests.before}\n{code}"
    # Move imports from `__future__` to the start, where Python requires them.
    lines = program.splitlines(keepends=True)
    imports = [node for node in _parse_module(program).body if isinstance(node, ast.ImportFrom)]
    futures = [node for node in imports if node.module == "__future__"]
    for node in futures:
        lines[node.lineno - 1 : node.end_lineno] = ["\n"] * ((node.end_lineno or 0) - node.lineno + 1)
    return "".join(f"{ast.unparse(node)}\n" for node in futures) + "".join(lines), form


def _join_lines(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _split_and_strip_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _get_last_error_line(execution: Execution) -> str:
    return (execution.error or "the program ended before its test").splitlines()[-1][:200]
