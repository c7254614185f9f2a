"""ToolEyes: how well does a model use tools, from the form of a call to the answer?

Ye et al., "ToolEyes: Fine-Grained Evaluation for Tool Learning Capabilities of Large Language Models in
Real-world Scenarios", COLING 2025, arXiv 2401.00741. In each episode, the model thinks, calls tools, reads the
results and finishes with an answer. There are seven scenarios, and five capabilities are scored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.dataset import OVERALL, RELEASED_MODES, load
from evalsuite.core.protocols import Benchmark
from evalsuite.core.types import SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.protocols import JudgedScorer, Scorer, Setup, Solver
    from evalsuite.output.reports.section import Section
    from evalsuite.results.tally import RunView


def _make_solver(setup: Setup) -> Solver:
    from evalsuite.benchmarks.tool_eyes.episodes import ToolEyesSolver

    return ToolEyesSolver(setup)


def _list_scorers(setup: Setup) -> Sequence[Scorer | JudgedScorer]:
    from evalsuite.benchmarks.tool_eyes.released import read_prompts
    from evalsuite.benchmarks.tool_eyes.scoring import JudgedCapabilities, RuleScores

    if not setup.judge:
        return [RuleScores()]
    prompts = read_prompts(setup.data) if set(RELEASED_MODES) & set(setup.modes) else None
    return [RuleScores(), JudgedCapabilities(prompts)]


def _report(views: Sequence[RunView]) -> Section:
    from evalsuite.benchmarks.tool_eyes.report import report

    return report(views)


TOOL_EYES = Benchmark(
    name="tool_eyes",
    title="ToolEyes",
    load=load,
    solver=_make_solver,
    scorers=_list_scorers,
    metrics={"*": SHARE},
    modes={
        "paper": "the paper's formulas; thoughts and calls as text (ReAct), without examples",
        "paper_5shot": "the same after five worked examples",
        "functions": "the paper's formulas; the function calling of the OpenAI API",
        "released": "the authors' own prompts and the formulas of their released code; needs --data",
        "released_5shot": "the same with the authors' five examples",
    },
    default_modes=("paper",),
    report=_report,
    primary=OVERALL,
)

__all__ = ["TOOL_EYES"]
