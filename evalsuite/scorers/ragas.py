"""Adapts metrics of Ragas to scorers."""

from __future__ import annotations

import copy
import inspect
import os
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError
from evalsuite.scorers.foreign import (
    ForeignCase,
    ForeignScorer,
    PlainForeignScorer,
    make_scorer,
    read_number,
    snake_case,
)

if TYPE_CHECKING:
    from evalsuite.core.types import Score
    from evalsuite.scorers.foreign import Documents


def from_ragas(
    metric: Any, *, documents: Documents | None = None, judge: bool = True
) -> ForeignScorer | PlainForeignScorer:
    """Score with a metric of `ragas.metrics.collections`; the score has the metric's name.

    Args:
        metric: a metric, or a function that takes `llm=` (and optionally `embeddings=`) and returns a metric,
            such as `Faithfulness`.
        documents: a function of sample and transcript that returns the retrieved contexts; by default the
            spans' contexts, else the fact or the metadata `documents`.
        judge: whether the metric needs a model; the run's judge then replaces the metric's own model.

    Raises:
        SettingsError: Ragas is not installed.
    """
    return make_scorer("ragas", metric, _measure, documents, judge=judge)


async def _measure(metric: Any, case: ForeignCase) -> dict[str, Score]:
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
    made = _make_metric(metric, case)
    known = {
        "user_input": case.question,
        "response": case.transcript.answer,
        "reference": "\n".join(case.targets),
        "retrieved_contexts": case.documents,
        "reference_contexts": case.documents,
    }
    wanted = inspect.signature(made.ascore).parameters.values()
    missing = [each.name for each in wanted if each.default is each.empty and each.name not in known]
    if missing:
        raise ScoringError(f"ragas: {made.name} needs {', '.join(missing)}, which a case does not have")
    result = await made.ascore(**{each.name: known[each.name] for each in wanted if each.name in known})
    return {snake_case(made.name): read_number(result.value, result.reason)}


def _make_metric(metric: Any, case: ForeignCase) -> Any:
    is_metric = hasattr(metric, "ascore") and not isinstance(metric, type)
    if case.model is None:
        return metric if is_metric else metric()
    from ragas.embeddings.base import embedding_factory
    from ragas.llms import llm_factory

    client = case.model.openai()
    fields = vars(metric) if is_metric else inspect.signature(metric).parameters
    made: dict[str, Any] = {"llm": llm_factory(case.model.name, client=client)} if "llm" in fields else {}
    if "embeddings" in fields:
        made["embeddings"] = embedding_factory("openai", model=case.model.name, client=client, interface="modern")
    if not is_metric:
        return metric(**made)
    copied = copy.copy(metric)
    vars(copied).update(made)
    return copied
