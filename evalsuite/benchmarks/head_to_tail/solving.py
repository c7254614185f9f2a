"""One call per question, with the prompt of its mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.paper_prompts import PAPER_MODES, PaperPrompts, paper_prompts
from evalsuite.benchmarks.head_to_tail.prompts import Example, prompt
from evalsuite.core.keywords import generation_params
from evalsuite.solvers.generate import Generate, generate

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model, Setup
    from evalsuite.core.types import Message, Sample, Transcript

# As the paper has it: greedy, and room for a short answer only.
DEFAULTS = {"temperature": 0, "max_tokens": 32}


@dataclass(frozen=True, slots=True)
class Asks:
    """Puts the sample's question into the prompt of the sample's mode."""

    generate: Generate
    paper: PaperPrompts | None = None

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Asks once."""
        return await self.generate(replace(sample, input=self._conversation(sample)), model)

    def _conversation(self, sample: Sample) -> str | tuple[Message, ...]:
        mode, question = sample.tags["mode"], str(sample.metadata.get("gap", sample.input))
        example = Example(**sample.metadata["example"]) if "example" in sample.metadata else None
        if self.paper and mode in PAPER_MODES:
            return self.paper.question(mode, question, example)
        return prompt(mode, question, example)


def solver(setup: Setup) -> Asks:
    """The solver; the arguments of the benchmark are generation parameters (`max_tokens=256`).

    Raises:
        SettingsError: a parameter is unknown, or a mode asks in the paper's words and there is no `--data`.
        DatasetError: a file of the paper's prompts is missing or lacks a slot.
    """
    params = {**DEFAULTS, **generation_params("Head-to-Tail", setup.args)}
    paper = paper_prompts(setup.data, setup.modes, judged=setup.judge is not None)
    return Asks(generate(params=params), paper)
