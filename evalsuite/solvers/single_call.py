"""Solvers that make at most one call: they call the model once, or take an existing answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalsuite.core.errors import SettingsError, SolverError
from evalsuite.core.json_codec import dumps, parse_json_as
from evalsuite.core.keywords import select_generation_params
from evalsuite.core.protocols import Model, Solver
from evalsuite.core.types import Message, Sample, Transcript
from evalsuite.models.answers import read_answers_file


@dataclass(frozen=True, slots=True)
class GenerateSolver:
    """Calls the model once and returns its answer; the function `generate` makes it."""

    system: str | None = None
    template: str = "{input}"
    params: Mapping[str, Any] = field(default_factory=dict)

    def make_messages(self, sample: Sample) -> tuple[Message, ...]:
        head = (Message("system", self.system),) if self.system else ()
        if not isinstance(sample.input, str):
            return (*head, *sample.input)
        # Do not use str.format, because inputs and templates may contain braces.
        return (*head, Message("user", self.template.replace("{input}", sample.input)))

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Call the model once; if the model is an application, copy the facts of its answer to the transcript."""
        messages = self.make_messages(sample)
        completion = await model.chat(messages, **self.params)
        return Transcript(
            answer=completion.text,
            messages=(*messages, Message("assistant", completion.text, completion.tool_calls)),
            reasoning=completion.reasoning,
            facts={**completion.facts, "finish": completion.finish_reason},
        )


def generate(*, system: str | None = None, template: str = "{input}", **params: Any) -> GenerateSolver:
    """Make one model call per sample.

    Args:
        system: a system message, which precedes the user's message.
        template: the user's message with `{input}` for the sample's input; not used if this is a conversation.
        params: generation parameters by their OpenAI names (`max_tokens=8`, `temperature=0`). For a server's own
            parameters, use a mapping: `params={"name": value}`.

    Raises:
        SettingsError: a parameter's name is unknown in OpenAI's API.
    """
    if "{input}" not in template:
        raise SettingsError("generate(template=...): without {input}, all samples would be asked the same")
    return GenerateSolver(system, template, select_generation_params(generate, params))


async def return_fixed_answer(sample: Sample, model: Model) -> Transcript:  # noqa: ARG001 - a solver's arguments
    """Return the sample's fixed answer, without calling the model."""
    return Transcript(get_fixed_answer(sample))


def get_fixed_answer(sample: Sample) -> str:
    """Return the fixed answer, `answer` in the sample's metadata; raise SolverError unless it is text."""
    answer = sample.metadata.get("answer")
    if not isinstance(answer, str):
        raise SolverError(f"sample {sample.id} has no text under 'answer' in its metadata")
    return answer


def make_answers_solver(file: str, benchmark: str) -> Solver:
    """Make a solver that reads answers from a file; its lines name samples by the id or by the tag `cluster`."""

    async def answer_from_file(sample: Sample, model: Model) -> Transcript:  # noqa: ARG001 - as every solver
        ids = [sample.id, *([sample.tags["cluster"]] if "cluster" in sample.tags else [])]
        line = read_answers_file(file).find_answer(benchmark, ids)
        if "transcript" in line:
            try:
                return parse_json_as(Transcript, dumps(line["transcript"]))
            except ValueError as error:
                raise SolverError(f"{file}: the transcript of {sample.id} cannot be read: {error}") from error
        return Transcript(line["answer"], (Message("assistant", line["answer"]),))

    return answer_from_file
