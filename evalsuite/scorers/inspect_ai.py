"""Adapts scorers of Inspect to evalsuite."""

from __future__ import annotations

from contextlib import AsyncExitStack
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


def from_inspect(scorer: Any, *, judge: bool = True) -> ForeignScorer | PlainForeignScorer:
    """Score with a scorer of Inspect; the score has the scorer's name; a dictionary gives several scores by its keys.

    Args:
        scorer: a scorer such as `model_graded_qa()`; its own `model=` is kept.
        judge: whether the scorer needs a model, which is then the run's judge, also in the role `grader`; False for
            scorers such as `includes()`.

    Raises:
        SettingsError: Inspect is not installed.
    """
    return make_scorer("inspect-ai", scorer, _measure, None, judge=judge)


async def _measure(scorer: Any, case: ForeignCase) -> dict[str, Score]:
    from inspect_ai._util.registry import registry_unqualified_name
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        GenerateConfig,
        ModelName,
        ModelOutput,
        get_model,
    )
    from inspect_ai.model._model import init_active_model, init_model_roles
    from inspect_ai.scorer import Target, value_to_float
    from inspect_ai.solver import TaskState

    kinds = {"user": ChatMessageUser, "assistant": ChatMessageAssistant, "system": ChatMessageSystem}
    state = TaskState(
        ModelName("evalsuite/model"),
        case.sample.id,
        1,
        case.question,
        [kinds[each.role](content=each.content) for each in case.messages if each.role in kinds],
        Target(case.targets),
        output=ModelOutput.from_content("model", case.transcript.answer),
        metadata=dict(case.sample.metadata),
        completed=True,
    )
    async with AsyncExitStack() as opened:
        if case.model is not None:
            at = case.model.endpoint()
            served = {"base_url": at.base_url, "api_key": at.api_key, "memoize": False, "responses_api": False}
            model = await opened.enter_async_context(get_model("openai/judge", **served))
            init_active_model(model, GenerateConfig())
            init_model_roles({"grader": model})
        score = await scorer(state, Target(case.targets))
    values = score.value if isinstance(score.value, dict) else {registry_unqualified_name(scorer): score.value}
    to_float = value_to_float()
    return {snake_case(name): read_number(to_float(value), score.explanation) for name, value in values.items()}
