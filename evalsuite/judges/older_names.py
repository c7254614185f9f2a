"""Deprecated functions that make judges; `rubric` makes the same judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from evalsuite.core.keywords import select_generation_params
from evalsuite.judges.forms import QUALITY, Likert, ScoresForm
from evalsuite.judges.g_eval import FIVE_POINTS, MOST_SAMPLES
from evalsuite.judges.rubrics import rubric
from evalsuite.judges.scorers import JudgeScorer, Sampled, read_aspects

if TYPE_CHECKING:
    from collections.abc import Sequence


def single(aspects: Sequence[str | Likert] = (), *, attempts: int = 3, model: str = "", **params: Any) -> JudgeScorer:
    """Let one judge score the answer without reasons; `rubric(scale=(1, 10))` requests reasons before the score."""
    checked = {"temperature": 0.0, **select_generation_params(single, params)}
    return JudgeScorer(Sampled(ScoresForm(read_aspects(aspects)), attempts=attempts, params=checked), model=model)


def pairwise(rival: str = "target", **options: Any) -> JudgeScorer:
    """Let one judge choose the better of two answers; same as `rubric(compare=rival)`."""
    return cast("JudgeScorer", rubric(compare=rival, **options))


def multiple_evidence(
    aspects: Sequence[str | Likert] = (), *, samples: int = 3, rival: str | None = None, **options: Any
) -> JudgeScorer:
    """Let one judge give reasons and scores several times; see `rubric(scale=(1, 10), compare=rival, samples=3)`."""
    return cast("JudgeScorer", rubric(read_aspects(aspects, QUALITY), compare=rival or (), samples=samples, **options))


def weighted(
    aspects: Sequence[str | Likert] = (), *, samples: int = MOST_SAMPLES, rival: str | None = None, **options: Any
) -> JudgeScorer:
    """Compute expected scores: same as `rubric(scale=(1, 5), compare=rival, aggregate="expected")`."""
    return cast(
        "JudgeScorer",
        rubric(
            read_aspects(aspects, FIVE_POINTS), compare=rival or (), samples=samples, aggregate="expected", **options
        ),
    )
