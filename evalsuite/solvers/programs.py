"""Solvers that let a model write programs about tables and run the programs in the sandbox.

Program of thought was defined by Chen et al., "Program of Thoughts Prompting" (arXiv 2211.12588); this variant is
TReB's PoT mode (arXiv 2506.18421).
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalsuite.core.errors import SandboxError, shorten_to_ends
from evalsuite.core.keywords import select_generation_params
from evalsuite.core.protocols import Model, Solver
from evalsuite.core.threads import run_in_thread
from evalsuite.core.types import Message, Sample, Transcript
from evalsuite.sandbox import Execution, Sandbox, TableSource
from evalsuite.sandbox.execution import compute_table_key, encode_files
from evalsuite.sandbox.sandbox import TIMEOUT, SandboxUser
from evalsuite.solvers.program_text import FoundProgram, find_last_boxed_answer, find_program

# A template, in which the sample's input replaces `{input}`, and the tables' description `{tables}`; or a function of
# (sample, description of the tables), which returns the user's message or a whole conversation.
ProgramPrompt = str | Callable[[Sample, str], "str | Sequence[Message]"]
# Function that returns a sample's tables; the keys are the names of variables in programs.
Tables = Callable[[Sample], "Mapping[str, TableSource]"]
# Function that gets the names of tables' variables, and returns a program that prints a description of the tables.
Describe = Callable[[Sequence[str]], str]

# Match only top-level packages: if `a.b` is missing although `a` is installed, the model invented `a.b`.
_MISSING_PACKAGE = re.compile(
    r"ModuleNotFoundError: No module named '([^'.]+)'$"
    r"|ImportError: Missing optional dependency '([^'.]+)'|ImportError: `Import ([^`.]+)` failed"
)
_DESCRIBE = """
for _name in {names!r}:
    _table = globals()[_name]
    _small = _table.shape[0] < 50 and _table.shape[1] < 20
    print(f"`{{_name}}` has {{_table.shape[0]}} rows and {{_table.shape[1]}} columns.")
    print("Column names:", list(_table.columns))
    _table.info(memory_usage=False)  # ends without a newline
    print()
    print("The whole table:" if _small else "Its first ten rows:")
    print((_table if _small else _table.head(10)).to_csv(sep="\t", index=False), end="")
"""


def read_metadata_tables(sample: Sample) -> Mapping[str, TableSource]:
    """Return the tables listed in the sample's metadata, such as `{"tables": {"df": "path/to.csv"}}`; read no file."""
    tables: Mapping[str, TableSource] = sample.metadata.get("tables", {})
    return tables


def describe_tables(names: Sequence[str]) -> str:
    """Return a program that prints a description of tables like TReB's (arXiv 2506.18421, section 4)."""
    return _DESCRIBE.format(names=list(names))


def make_messages(prompt: ProgramPrompt, sample: Sample, table_description: str) -> tuple[Message, ...]:
    """Make the messages; if the input is a conversation, the filled template replaces its last message."""
    if callable(prompt):
        request = prompt(sample, table_description)
        return (Message("user", request),) if isinstance(request, str) else tuple(request)
    if isinstance(sample.input, str):
        return (Message("user", _fill_template(prompt, sample.input, table_description)),)
    *before, last = sample.input
    return (*before, Message(last.role, _fill_template(prompt, last.content, table_description)))


def _fill_template(template: str, question: str, table_description: str) -> str:
    # Replace all names in one pass, without str.format, because template, question and tables may contain braces.
    values = {"{input}": question, "{tables}": table_description}
    return re.sub(r"\{(?:input|tables)\}", lambda match: values[match[0]], template)


@dataclass(frozen=True, slots=True)
class ProgramSolver(SandboxUser):
    """Base of the solvers that run programs; `program_of_thought` describes the fields."""

    prompt: ProgramPrompt
    tables: Tables
    describe: Describe | None
    timeout: float
    params: Mapping[str, Any]
    # Maps an event loop and a set of tables to a lock and a list, which stores their description once it is written.
    descriptions: dict[Any, tuple[asyncio.Lock, list[str]]] = field(default_factory=dict, kw_only=True)

    async def _load_tables_and_messages(self, sample: Sample) -> tuple[Mapping[str, TableSource], tuple[Message, ...]]:
        """Return the sample's tables, and the messages with which the conversation begins."""
        tables = await run_in_thread(self.tables, sample)
        description = await self._describe_packages_and_tables(tables, self.describe) if self.describe else ""
        return tables, make_messages(self.prompt, sample, description)

    async def _describe_packages_and_tables(self, tables: Mapping[str, TableSource], describe: Describe) -> str:
        """Describe the installed packages and the tables; samples with the same tables share one description."""
        installed = f"Programs run in {self.sandbox.environment.description}; nothing can be installed."
        if not tables:
            return installed
        versions = await run_in_thread(lambda: [compute_table_key(source) for source in tables.values()])
        key = (asyncio.get_running_loop(), *tables, *versions)
        lock, written = self.descriptions.setdefault(key, (asyncio.Lock(), []))
        async with lock:
            if not written:
                execution = await self.sandbox.run(describe(list(tables)), tables, max(TIMEOUT, self.timeout))
                if execution.error is not None:
                    raise SandboxError(f"the tables {', '.join(tables)} could not be described: {execution.error}")
                written.append(f"{installed}\n\n" + execution.stdout.rstrip("\n"))
        return written[0]

    def _collect_facts(self, program: FoundProgram, execution: Execution) -> dict[str, Any]:
        """Collect facts about a program: how it ended, how it was found, and the kind of sandbox."""
        environment = self.sandbox.environment
        missing = _MISSING_PACKAGE.match((execution.error or "").strip().rpartition("\n")[2])
        package = next(filter(None, missing.groups())) if missing else ""
        if execution.timed_out:
            ending = "timed out"
        elif execution.error is None:
            ending = "ok" if execution.stdout.strip() else "printed nothing"
        else:
            ending = "package missing" if package else "failed"
        return {
            "program": ending,
            "sandbox": execution.tier,
            **({"package": package} if package else {}),
            **({"files": ", ".join(file.name for file in execution.files)} if execution.files else {}),
            **({} if environment.is_current else {"environment": environment.name}),
            "form": program.form,
        }


def _make_program_event(code: str, execution: Execution) -> Mapping[str, Any]:
    return {
        "kind": "program",
        "code": code,
        "stdout": execution.stdout,
        "error": execution.error,
        "timed_out": execution.timed_out,
        "seconds": execution.seconds,
        "tier": execution.tier,
        **encode_files(execution.files),
    }


PROGRAM_PROMPT = """\
Answer the question about the data by writing one Python program.

{tables}

Question: {input}

The data is loaded already, in pandas DataFrames under the names given above; do not read any file. Think \
first if you like, then write the complete program in one block that starts with ```python and ends with \
```. Whatever the program prints is taken as your answer, so print the answer and nothing else."""


class ProgramOfThought(ProgramSolver):
    """Asks for a program, runs it, and answers with what it prints; made by `program_of_thought`."""

    __slots__ = ()

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        tables, messages = await self._load_tables_and_messages(sample)
        completion = await model.chat(messages, **self.params)
        answer, facts = "", {"program": "missing"}
        events: tuple[Mapping[str, Any], ...] = ()
        if program := find_program(completion.text):
            execution = await self.sandbox.run(program.code, tables, self.timeout)
            facts = self._collect_facts(program, execution)
            events = (_make_program_event(program.code, execution),)
            answer = execution.stdout.strip() if facts["program"] == "ok" else ""
        return Transcript(
            answer=answer,
            messages=(*messages, Message("assistant", completion.text)),
            reasoning=completion.reasoning,
            events=events,
            facts={**facts, "finish": completion.finish_reason},
        )


def program_of_thought(
    *,
    prompt: ProgramPrompt = PROGRAM_PROMPT,
    tables: Tables = read_metadata_tables,
    describe: Describe | None = describe_tables,
    sandbox: Sandbox | None = None,
    timeout: float = 10.0,
    **params: Any,
) -> ProgramOfThought:
    """Ask the model for one program, and run it in the sandbox.

    `find_program` finds the program in the model's answer; `facts["form"]` of the transcript tells how it was found.
    The case's answer is what the program prints, without surrounding blanks. The case's answer is empty if no program
    was found, or if the program fails or takes too long. `facts["program"]` tells how the program ended: `ok`,
    `missing`, `printed nothing`, `failed`, `package missing` (`facts["package"]` names the package) or `timed out`.
    `facts["sandbox"]` names the kind of sandbox, and `facts["files"]` the files that the program wrote. The transcript
    has an event of the kind `program`, with `code`, `stdout`, `error`, `timed_out` and `seconds`. If the program wrote
    files, the event also has `figures` and `files` (see `Execution.files`).

    Args:
        prompt: a template with `{input}` and `{tables}`, or a function of (sample, description of the tables). The
            function returns the user's message or a whole conversation.
        tables: function that returns a sample's tables by variable name; by default, `tables` in the sample's metadata.
        describe: function that gets the tables' variable names and returns a program, which prints a description of the
            tables. None means no description.
        sandbox: a sandbox that is shared with other solvers; by default a new one, which `aclose` ends.
        timeout: time limit of a program in seconds.
        params: generation parameters by their OpenAI names.

    Raises:
        SandboxUnavailable: a call of the solver could not isolate programs on this machine.
        SandboxError: a call of the solver could not load a table.
        ModelError: the call failed permanently.
    """
    checked = select_generation_params(program_of_thought, params)
    return ProgramOfThought(sandbox or Sandbox(), sandbox is None, prompt, tables, describe, timeout, checked)


ROUNDS_PROMPT = """\
Answer the question about the data step by step, with Python as your tool.

{tables}

Question: {input}

The data is loaded already, in pandas DataFrames under the names given above; do not read any file. In each \
step, say what you plan, then write code in one block that starts with ```python and ends with ```, and stop \
there: you will be shown what it printed, and variables keep their values. Once you know the answer, write \
no more code and give it as \\boxed{answer}."""
SHOWN_CHARACTERS = 4000

# Function of an execution and the number of remaining rounds; returns the next message to the model.
ShowResult = Callable[[Execution, int], str]


def format_result(execution: Execution, rounds_left: int) -> str:
    """Write the message after a round: its output and error (at most 4,000 characters each), and what to do next."""
    printed = shorten_to_ends(execution.stdout.rstrip(), SHOWN_CHARACTERS)
    parts = [f"The code printed:\n{printed}" if printed else "The code printed nothing."]
    if execution.error is not None:
        parts.append(f"It did not run to its end:\n{shorten_to_ends(execution.error, SHOWN_CHARACTERS)}")
    if execution.variables_lost:
        parts.append("Its process is gone, and with it all variables but the tables: define again what you need.")
    if rounds_left:
        parts.append("Go on with the next step, or give the final answer as \\boxed{answer}.")
    else:
        parts.append("Write no more code: give the final answer now, as \\boxed{answer}.")
    return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class InterleavedSolver(ProgramSolver):
    """Lets the model write and run code in several rounds; the function `interleaved` makes it."""

    rounds: int
    result: ShowResult

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        tables, (*messages,) = await self._load_tables_and_messages(sample)
        events: list[Mapping[str, Any]] = []
        facts: dict[str, Any] = {"program": "missing"}
        async with self.sandbox.session(tables, self.timeout) as session:
            while True:
                completion = await model.chat(tuple(messages), **self.params)
                messages.append(Message("assistant", completion.text))
                program = find_program(completion.text, allow_unfenced=False) if len(events) < self.rounds else None
                if program is None:
                    break
                execution = await session.run(program.code)
                facts = self._collect_facts(program, execution)
                events.append(_make_program_event(program.code, execution))
                messages.append(Message("user", self.result(execution, self.rounds - len(events))))
        boxed = find_last_boxed_answer(completion.text)
        return Transcript(
            answer=completion.text.strip() if boxed is None else boxed,
            messages=tuple(messages),
            reasoning=completion.reasoning,
            events=tuple(events),
            facts={"rounds": len(events), **facts, "finish": completion.finish_reason},
        )


def interleaved(
    *,
    rounds: int = 3,
    prompt: ProgramPrompt = ROUNDS_PROMPT,
    result: ShowResult = format_result,
    tables: Tables = read_metadata_tables,
    describe: Describe | None = describe_tables,
    sandbox: Sandbox | None = None,
    timeout: float = 10.0,
    **params: Any,
) -> InterleavedSolver:
    r"""Let the model write code, which is run, in up to `rounds` rounds; then let it answer without code.

    In each round, the last Python block in the model's message is run. A message without a Python block is the model's
    last answer. After `rounds` rounds, the model must answer; code in this last answer is not run. The transcript's
    answer is the content of the last `\boxed{...}` in the model's last answer; without a box, the whole last answer.

    `facts["rounds"]` in the transcript counts the programs that were run. The other `facts` describe the last program.
    `program_of_thought` explains them, the events, the exceptions and the other arguments.

    Args:
        rounds: the maximum number of rounds in which code is run, at least 0.
        result: function that writes the message after each round, from its `Execution` and the number of rounds that
            remain. If none remains, the message should ask for the final answer.
        timeout: time limit of a round's code in seconds.
    """
    own, checked = sandbox is None, select_generation_params(interleaved, params)
    return InterleavedSolver(sandbox or Sandbox(), own, prompt, tables, describe, timeout, checked, rounds, result)


@dataclass(frozen=True, slots=True)
class ModeSolver:
    """Solves each sample with the solver that its tag `mode` names; all solvers that run programs share a sandbox."""

    modes: Mapping[str, Solver]
    sandbox: Sandbox

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        return await self.modes[sample.tags["mode"]](sample, model)

    def sandbox_for(self, sample: Sample) -> Sandbox | None:
        """Return the sandbox for a sample's programs; None if its solver runs no programs."""
        return self.sandbox if isinstance(self.modes[sample.tags["mode"]], ProgramSolver) else None

    async def aclose(self) -> None:
        await self.sandbox.aclose()
