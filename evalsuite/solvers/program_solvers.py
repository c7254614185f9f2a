"""Program of thought: the model writes one Python program over the tables; what it prints is the answer.

After Chen et al., "Program of Thoughts Prompting" (arXiv 2211.12588), in the form of TReB's PoT mode
(arXiv 2506.18421).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.core.keywords import generation_params
from evalsuite.core.phrases import both_ends
from evalsuite.core.threads import in_thread
from evalsuite.core.types import Completion, Message, Sample, Transcript
from evalsuite.sandbox import Execution, Sandbox
from evalsuite.solvers import programs
from evalsuite.solvers.boxed import last_boxed_answer
from evalsuite.solvers.program_text import find_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.core.protocols import Model

PROGRAM_PROMPT = """\
Answer the question about the data by writing one Python program.

{tables}

Question: {input}

The data is loaded already, in pandas DataFrames under the names given above; do not read any file. Think \
first if you like, then write the complete program in one block that starts with ```python and ends with \
```. Whatever the program prints is taken as your answer, so print the answer and nothing else."""


@dataclass(frozen=True, slots=True)
class ProgramOfThought:
    """Asks for a program, runs it, and answers with what it prints; made by `program_of_thought`."""

    sandbox: Sandbox
    owns_sandbox: bool
    prompt: programs.Prompt = PROGRAM_PROMPT
    tables: programs.Tables = programs.metadata_tables
    describe: programs.Describe | None = programs.describe_tables
    timeout: float = 10.0
    params: Mapping[str, Any] = field(default_factory=dict)

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Ask once and runs what comes."""
        # They may be large files, which are read once for description and programs.
        tables = await in_thread(programs.read_tables, self.tables, sample)
        described = await programs.description(self.sandbox, tables, self.describe)
        messages = programs.make_messages(self.prompt, sample, described)
        completion = await model.chat(messages, **self.params)
        answer, ended = "", {"program": "missing"}
        events: tuple[Mapping[str, Any], ...] = ()
        found = find_program(completion.text)
        if found is not None:
            execution = await self.sandbox.run(found.code, tables, self.timeout)
            ended = {**programs.ending(execution), **programs.named_environment(self.sandbox), "form": found.form}
            events = (programs.event(found.code, execution),)
            answer = execution.stdout.strip() if ended["program"] == "ok" else ""
        return Transcript(
            answer=answer,
            messages=(*messages, Message("assistant", completion.text)),
            reasoning=completion.reasoning,
            events=events,
            facts={**ended, "finish": completion.finish_reason},
        )

    def sandbox_for(self, _sample: Sample) -> Sandbox:
        """Return the sandbox of the sample's program."""
        return self.sandbox

    async def aclose(self) -> None:
        """End the sandbox, if it was made for this solver."""
        if self.owns_sandbox:
            await self.sandbox.aclose()


def program_of_thought(
    *,
    prompt: programs.Prompt = PROGRAM_PROMPT,
    tables: programs.Tables = programs.metadata_tables,
    describe: programs.Describe | None = programs.describe_tables,
    sandbox: Sandbox | None = None,
    timeout: float = 10.0,
    **params: Any,
) -> ProgramOfThought:
    """Ask for one program and run it in the sandbox.

    The program in the answer runs: its last Python block, or what `find_program` reads more leniently (the fact
    `form`). What it prints, without white space around it, is the answer; where a block is missing, or the program
    fails or takes too long, the answer is empty. The transcript's fact `program` says which: `ok`, `missing`,
    `printed nothing`, `failed`, `package missing` (with its name as the fact `package`) or `timed out`; the fact
    `sandbox` says which tier held it, the fact `files` what it wrote.
    Its event of the kind `program` holds `code`, `stdout`, `error`, `timed_out` and `seconds`, and where it wrote any,
    `figures` and `files` (see `Execution.files`).

    Args:
        prompt: a template with `{input}` and `{tables}`, or a function of (sample, description of the
            tables) that returns the user's message or a whole conversation.
        tables: the tables of a sample, by the names of the variables that hold them in the program; by
            default what the sample's metadata have under `tables`.
        describe: makes, from those names, the program whose output is the description; None: none is made.
        sandbox: shared with others; by default one of its own, which `aclose` ends.
        timeout: seconds for one program.
        params: generation parameters by their OpenAI names.

    Raises, when it is called with a sample:
        SandboxUnavailable: no sandbox is to be had on this machine.
        SandboxError: a table cannot be loaded.
        ModelError: the call failed for good.
    """
    checked = generation_params(program_of_thought, params)
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

# What the model is told of a round, given its execution and how many rounds of code are left.
ShowResult = Callable[[Execution, int], str]


def show_result(execution: Execution, left: int) -> str:
    """Show what a round printed and how it failed, at most 4,000 characters of each, and what to do next."""
    printed = both_ends(execution.stdout.rstrip(), SHOWN_CHARACTERS)
    parts = [f"The code printed:\n{printed}" if printed else "The code printed nothing."]
    if execution.error is not None:
        parts.append(f"It did not run to its end:\n{both_ends(execution.error, SHOWN_CHARACTERS)}")
    if execution.variables_lost:
        parts.append("Its process is gone, and with it all variables but the tables: define again what you need.")
    if left:
        parts.append("Go on with the next step, or give the final answer as \\boxed{answer}.")
    else:
        parts.append("Write no more code: give the final answer now, as \\boxed{answer}.")
    return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Lets the model write and run code in several rounds; made by `interleaved`."""

    sandbox: Sandbox
    owns_sandbox: bool
    rounds: int = 3
    prompt: programs.Prompt = ROUNDS_PROMPT
    result: ShowResult = show_result
    tables: programs.Tables = programs.metadata_tables
    describe: programs.Describe | None = programs.describe_tables
    timeout: float = 10.0
    params: Mapping[str, Any] = field(default_factory=dict)

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Go back and forth between the model and its session."""
        # They may be large files, which are read once for description and programs.
        tables = await in_thread(programs.read_tables, self.tables, sample)
        described = await programs.description(self.sandbox, tables, self.describe)
        messages = list(programs.make_messages(self.prompt, sample, described))
        events: list[Mapping[str, Any]] = []
        ended: dict[str, Any] = {"program": "missing"}
        async with self.sandbox.session(tables, self.timeout) as session:
            while True:
                completion = await self._ask(model, messages)
                found = find_program(completion.text, bare=False) if len(events) < self.rounds else None
                if found is None:
                    break
                execution = await session.run(found.code)
                ended = {**programs.ending(execution), **programs.named_environment(self.sandbox), "form": found.form}
                events.append(programs.event(found.code, execution))
                messages.append(Message("user", self.result(execution, self.rounds - len(events))))
        boxed = last_boxed_answer(completion.text)
        return Transcript(
            answer=completion.text.strip() if boxed is None else boxed,
            messages=tuple(messages),
            reasoning=completion.reasoning,
            events=tuple(events),
            facts={"rounds": len(events), **ended, "finish": completion.finish_reason},
        )

    async def _ask(self, model: Model, messages: list[Message]) -> Completion:
        completion = await model.chat(tuple(messages), **self.params)
        messages.append(Message("assistant", completion.text))
        return completion

    def sandbox_for(self, _sample: Sample) -> Sandbox:
        """Return the sandbox of the sample's programs."""
        return self.sandbox

    async def aclose(self) -> None:
        """End the sandbox, if it was made for this solver."""
        if self.owns_sandbox:
            await self.sandbox.aclose()


def interleaved(
    *,
    rounds: int = 3,
    prompt: programs.Prompt = ROUNDS_PROMPT,
    result: ShowResult = show_result,
    tables: programs.Tables = programs.metadata_tables,
    describe: programs.Describe | None = programs.describe_tables,
    sandbox: Sandbox | None = None,
    timeout: float = 10.0,
    **params: Any,
) -> Interleaved:
    r"""Let the model run code in up to `rounds` rounds and answer in a last one without code.

    In each round the last Python block of the model's answer runs; an answer without one is the last, and
    after `rounds` rounds one more answer is asked for, whose code is not run. The answer is the content
    of the last `\boxed{...}` after the last result, else the text after the last result.

    The transcript's facts: `rounds`, how many programs ran; `program`, how the last of them ended (`ok`,
    `failed`, `timed out`), or `missing`. Each program is an event of the kind `program` with `code`,
    `stdout`, `error`, `timed_out` and `seconds`, and where it wrote any, `figures` and `files`.

    Args:
        rounds: the maximum number of rounds with code, at least 0.
        prompt: a template with `{input}` and `{tables}`, or a function of (sample, description of the
            tables) that returns the user's message or a whole conversation.
        result: what the model is told of a round, from its `Execution` and the number of rounds left; at 0
            it asks for the final answer.
        tables: the tables of a sample, by the names of the variables that hold them in the program; by
            default what the sample's metadata have under `tables`.
        describe: makes, from those names, the program whose output is the description; None: none is made.
        sandbox: shared with others; by default one of its own, which `aclose` ends.
        timeout: seconds for one round of code.
        params: generation parameters by their OpenAI names.

    Raises, when it is called with a sample:
        SandboxUnavailable: no sandbox is to be had on this machine.
        SandboxError: a table cannot be loaded.
        ModelError: a call failed for good.
    """
    own = sandbox is None
    checked = generation_params(interleaved, params)
    return Interleaved(sandbox or Sandbox(), own, rounds, prompt, result, tables, describe, timeout, checked)
