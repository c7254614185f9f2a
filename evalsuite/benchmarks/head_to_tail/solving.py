"""One call a question, in the words of its mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.prompts import prompt
from evalsuite.keywords import generation_params
from evalsuite.solvers.generate import Generate, generate

if TYPE_CHECKING:
    from evalsuite.protocols import Model, Setup
    from evalsuite.types import Sample, Transcript

# As the paper has it: greedy, and room for a short answer only.
DEFAULTS = {"temperature": 0, "max_tokens": 32}


@dataclass(frozen=True, slots=True)
class Asks:
    """Puts the sample's question into the prompt of the sample's mode."""

    generate: Generate

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Asks once."""
        asked = prompt(sample.tags["mode"], str(sample.input), sample.tags["domain"])
        return await self.generate(replace(sample, input=asked), model)


def solver(setup: Setup) -> Asks:
    """The solver; the arguments of the benchmark are generation parameters (`max_tokens=256`).

    Raises:
        SettingsError: a parameter is unknown.
    """
    return Asks(generate(params={**DEFAULTS, **generation_params("Head-to-Tail", setup.args)}))
