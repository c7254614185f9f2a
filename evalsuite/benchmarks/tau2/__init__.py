"""tau2-bench's tasks: an agent with tools serves a simulated customer by a policy.

Barres et al., "tau2-bench", arXiv 2506.07982. A domain's published files (`tasks.json`, `policy.md`) are read from
`--data`. Its tools are Python code, which is not published as data: give them as a world, a class with `@tool`
methods and a `state()`:

    @benchmark("tau2", world=Airline)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.tau2.dataset import Tau2Options, load, read_policy
from evalsuite.core.protocols import Benchmark
from evalsuite.core.types import SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.protocols import Setup, Solver


def _solver(setup: Setup) -> Solver:
    from evalsuite.solvers.conversation import conversation
    from evalsuite.tools.personas import Persona

    options = Tau2Options.of(setup)
    policy = read_policy(setup)
    return conversation(user=Persona(), world=options.own_world, policy=policy, max_turns=options.max_turns)


def _scorers(setup: Setup) -> Sequence[Any]:
    from evalsuite.benchmarks.tau2.reward import Reward

    return [Reward(Tau2Options.of(setup).own_world)]


TAU2 = Benchmark(
    name="tau2",
    title="tau2-bench",
    load=load,
    solver=_solver,
    scorers=_scorers,
    metrics={"*": SHARE},
    primary="reward",
)

__all__ = ["TAU2"]
