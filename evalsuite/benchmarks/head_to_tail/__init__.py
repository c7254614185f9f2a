"""Head-to-Tail: how much does a model know about popular and about less popular things?

Sun et al., "Head-to-Tail: How Knowledgeable are Large Language Models (LLMs)?", NAACL 2024,
arXiv 2308.10168. The benchmark asks short factual questions about head, torso and tail entities. An answer is right,
hallucinated or missing; replying "unsure" is better than hallucinating.
"""

from evalsuite.benchmarks.head_to_tail.dataset import load_dataset
from evalsuite.benchmarks.head_to_tail.prompts import DEFAULT_MODE, MODES, make_solver
from evalsuite.benchmarks.head_to_tail.report import make_report
from evalsuite.benchmarks.head_to_tail.scoring import make_scorers
from evalsuite.core.protocols import Benchmark
from evalsuite.core.types import SHARE, Metric

HEAD_TO_TAIL = Benchmark(
    name="head_to_tail",
    title="Head-to-Tail",
    load=load_dataset,
    solver=make_solver,
    scorers=make_scorers,
    modes=MODES,
    default_modes=(DEFAULT_MODE,),
    report=make_report,
    primary="accuracy",
    metrics={**dict.fromkeys(("hallucination*", "missing"), Metric(range=(0.0, 1.0), better="lower")), "*": SHARE},
)

__all__ = ["HEAD_TO_TAIL"]
