"""ChatEval: how well does a model, used as a judge, agree with people?

Chan et al., "ChatEval: Towards Better LLM-based Evaluators through Multi-Agent Debate", ICLR 2024, arXiv 2308.07201.
The model under test judges FairEval's comparisons and Topical-Chat's responses, either alone or as a debating panel.
The right answers are people's verdicts (on comparisons) and ratings (of responses).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from evalsuite.benchmarks.chat_eval.agreement import compute_kappa, correlate_ratings, correlate_systems
from evalsuite.benchmarks.chat_eval.dataset import ASPECT_NAMES, OVERALL, load_dataset
from evalsuite.benchmarks.chat_eval.report import COEFFICIENTS, make_report
from evalsuite.benchmarks.chat_eval.solver import ModeDescriptions, against_people, make_solver
from evalsuite.core.protocols import Benchmark
from evalsuite.core.types import SHARE, Metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.results.tally import Estimate

_CORRELATIONS: dict[str, Callable[..., Estimate | None]] = {
    "": correlate_ratings,
    "_overall": partial(correlate_ratings, aspects=(OVERALL,)),
    "_systems": correlate_systems,
}

CHAT_EVAL = Benchmark(
    name="chat_eval",
    title="ChatEval",
    load=load_dataset,
    solver=make_solver,
    scorers=lambda _: [against_people],
    modes=ModeDescriptions(),
    default_modes=("single",),
    primary="accuracy",
    metrics={
        "parsed": SHARE,
        "accuracy": SHARE,
        **dict.fromkeys(("kappa", "pearson*", "spearman*", "kendall*"), Metric(range=(-1.0, 1.0))),
    },
    report=make_report,
    derived={
        "kappa": compute_kappa,
        **{
            f"{sign}{suffix}": partial(measure, coefficient=sign)
            for sign in COEFFICIENTS
            for suffix, measure in _CORRELATIONS.items()
        },
        **{
            f"{sign}_{aspect}": partial(correlate_ratings, coefficient=sign, aspects=(aspect,))
            for aspect in ASPECT_NAMES
            for sign in COEFFICIENTS
        },
    },
)

__all__ = ["CHAT_EVAL"]
