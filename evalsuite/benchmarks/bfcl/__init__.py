"""BFCL: does a model call the right functions with the right arguments, in one turn?

Patil et al., "The Berkeley Function Calling Leaderboard", ICML 2025. Its published files are read from `--data`:
the single-turn categories whose functions are Python's; none is shipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.bfcl.dataset import BfclOptions, load
from evalsuite.core.protocols import Benchmark
from evalsuite.core.types import SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.protocols import Scorer, Setup, Solver


def _solver(setup: Setup) -> Solver:
    from evalsuite.benchmarks.bfcl.one_turn import OneTurn

    return OneTurn(BfclOptions.of(setup).max_tokens)


def _scorers(setup: Setup) -> Sequence[Scorer]:  # noqa: ARG001 - as of every benchmark
    from evalsuite.benchmarks.bfcl.matching import Correct

    return [Correct()]


BFCL = Benchmark(
    name="bfcl",
    title="BFCL",
    load=load,
    solver=_solver,
    scorers=_scorers,
    metrics={"*": SHARE},
    primary="correct",
)

__all__ = ["BFCL"]
