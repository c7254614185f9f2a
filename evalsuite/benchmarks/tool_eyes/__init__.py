"""ToolEyes: how well does a model use tools, from the form of a call to the answer?

Ye et al., "ToolEyes: Fine-Grained Evaluation for Tool Learning Capabilities of Large Language Models in
Real-world Scenarios", COLING 2025, arXiv 2401.00741. In each episode, the model thinks, calls tools, reads the
results and finishes with an answer. There are seven scenarios, and five capabilities are scored.
"""

from evalsuite.benchmarks.tool_eyes.dataset import OVERALL, load_dataset
from evalsuite.benchmarks.tool_eyes.episodes import ToolEyesSolver
from evalsuite.benchmarks.tool_eyes.report import make_report
from evalsuite.benchmarks.tool_eyes.scoring import make_scorers
from evalsuite.core.protocols import Benchmark
from evalsuite.core.types import SHARE

TOOL_EYES = Benchmark(
    name="tool_eyes",
    title="ToolEyes",
    load=load_dataset,
    solver=ToolEyesSolver,
    scorers=make_scorers,
    metrics={"*": SHARE},
    modes={
        "paper": "the paper's formulas; thoughts and calls as text (ReAct), without examples",
        "paper_5shot": "the same after five worked examples",
        "functions": "the paper's formulas; the function calling of the OpenAI API",
        "released": "the authors' own prompts and the formulas of their released code; needs --data",
        "released_5shot": "the same with the authors' five examples",
    },
    default_modes=("paper",),
    report=make_report,
    primary=OVERALL,
)

__all__ = ["TOOL_EYES"]
