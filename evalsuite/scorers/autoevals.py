"""Adapts scorers of autoevals to evalsuite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def from_autoevals(
    scorer: Any, *, documents: Documents | None = None, judge: bool = True
) -> ForeignScorer | PlainForeignScorer:
    """Score with a scorer of autoevals; the score has the scorer's name in lower case with underscores.

    Args:
        scorer: a scorer or its class, such as `Factuality()`; a scorer with its own client keeps the client.
        documents: a function of sample and transcript that returns the retrieved documents; by default the
            spans' documents, else the fact or the metadata `documents`.
        judge: whether the scorer needs a model, which is then the run's judge; False for scorers such as `Levenshtein`.

    Raises:
        SettingsError: autoevals is not installed.
    """
    return make_scorer("autoevals", scorer, _measure, documents, judge=judge)


async def _measure(scorer: Any, case: ForeignCase) -> dict[str, Score]:
    import autoevals

    if case.model is not None:
        # The client is set in this thread's context, so that cases do not share a client.
        autoevals.init(client=case.model.openai(), is_async=True)
    made = scorer() if isinstance(scorer, type) else scorer
    more = {"context": case.documents} if case.documents else {}
    expected = case.targets[0] if len(case.targets) == 1 else case.targets or None
    score = await made.eval_async(case.transcript.answer, expected, input=case.question, **more)
    return {snake_case(score.name): read_number(score.score, (score.metadata or {}).get("rationale"))}
