"""How a sample becomes an answer: one call, with as many tokens as the wanted table may need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.options import StrucBenchOptions
from evalsuite.solvers.generate import generate

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model, Setup, Solver
    from evalsuite.core.types import Sample, Transcript


def solver(setup: Setup) -> Solver:
    """The solver of all modes, which differ only in the question."""
    options = StrucBenchOptions.of(setup)

    async def solve(sample: Sample, model: Model) -> Transcript:
        limit = options.max_tokens or max(options.least_tokens, room_for(str(sample.target)))
        return await generate(max_tokens=limit, temperature=options.temperature)(sample, model)

    return solve


def room_for(table: str) -> int:
    """Tokens for a table: a margin of a half over what it takes at two and a half characters a token."""
    return 32 + int(1.5 * len(table) / 2.5)
