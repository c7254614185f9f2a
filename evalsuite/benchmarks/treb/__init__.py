"""TReB: 26 subtasks of table reasoning in three modes (arXiv 2506.18421); see docs/treb.md."""

from evalsuite.benchmarks.treb.dataset import DEFAULT_MODES, MODES, load_dataset
from evalsuite.benchmarks.treb.report import OVERALLS, make_report
from evalsuite.benchmarks.treb.scoring import make_scorers
from evalsuite.benchmarks.treb.solving import make_solver
from evalsuite.core.protocols import Benchmark
from evalsuite.core.types import SHARE

TREB = Benchmark(
    name="treb",
    title="TReB: table reasoning",
    primary="rouge_l",
    metrics={"*": SHARE},
    load=load_dataset,
    solver=make_solver,
    scorers=make_scorers,
    modes=MODES,
    default_modes=DEFAULT_MODES,
    report=make_report,
    derived=OVERALLS,
)

__all__ = ["TREB"]
