"""Program of thought: the model writes one Python program over the tables; what it prints is the answer.

After Chen et al., "Program of Thoughts Prompting" (arXiv 2211.12588), in the form of TReB's PoT mode
(arXiv 2506.18421).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.core.keywords import generation_params
from evalsuite.core.threads import in_thread
from evalsuite.core.types import Message, Transcript
from evalsuite.sandbox import Sandbox
from evalsuite.solvers import programs
from evalsuite.solvers.program_text import find_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.core.protocols import Model
from evalsuite.core.types import Sample

PROMPT = """\
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
    prompt: programs.Prompt = PROMPT
    tables: programs.Tables = programs.metadata_tables
    describe: programs.Describe | None = programs.describe_tables
    timeout: float = 10.0
    params: Mapping[str, Any] = field(default_factory=dict)

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Asks once and runs what comes."""
        # They may be large files, which are read once for description and programs.
        tables = await in_thread(programs.read_tables, self.tables, sample)
        described = await programs.description(self.sandbox, tables, self.describe)
        messages = programs.conversation(self.prompt, sample, described)
        completion = await model.chat(messages, **self.params)
        answer, ended = "", {"program": "missing"}
        events: tuple[Mapping[str, Any], ...] = ()
        found = find_program(completion.text)
        if found is not None:
            execution = await self.sandbox.run(found.code, tables, self.timeout)
            ended = {**programs.ending(execution), "form": found.form}
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
        """Where the sample's program would run."""
        return self.sandbox

    async def aclose(self) -> None:
        """Ends the sandbox, if it was made for this solver."""
        if self.owns_sandbox:
            await self.sandbox.aclose()


def program_of_thought(
    *,
    prompt: programs.Prompt = PROMPT,
    tables: programs.Tables = programs.metadata_tables,
    describe: programs.Describe | None = programs.describe_tables,
    sandbox: Sandbox | None = None,
    timeout: float = 10.0,
    **params: Any,
) -> ProgramOfThought:
    """A solver that asks for one program and runs it in the sandbox.

    The program in the answer runs: its last Python block, or what `find_program` reads more leniently (the fact
    `form`). What it prints, without white space around it, is the answer;
    where there is no block, or the program fails or takes too long, the answer is empty. The transcript's
    fact `program` says which: `ok`, `missing`, `printed nothing`, `failed`, `package missing` (with its name as
    the fact `package`) or `timed out`; the fact `sandbox` says which tier held it, the fact `files` what it wrote.
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
