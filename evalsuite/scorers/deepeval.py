"""Adapts metrics of DeepEval to scorers."""

from __future__ import annotations

import copy
import json
import os
from typing import TYPE_CHECKING, Any

from evalsuite.scorers.foreign import (
    ForeignCase,
    ForeignScorer,
    PlainForeignScorer,
    make_scorer,
    read_number,
    snake_case,
)
from evalsuite.scorers.trajectories import tool_uses

if TYPE_CHECKING:
    from evalsuite.core.types import Score
    from evalsuite.scorers.foreign import Documents


def from_deepeval(
    metric: Any, *, documents: Documents | None = None, judge: bool = True
) -> ForeignScorer | PlainForeignScorer:
    """Score with a metric of DeepEval; the score has the metric's name in lower case with underscores.

    Args:
        metric: a metric, or a function that takes `model=` and returns a metric, such as `AnswerRelevancyMetric` or
            `functools.partial(GEval, name=..., criteria=..., evaluation_params=[...])`, which then needs no OpenAI key.
        documents: a function of sample and transcript that returns the retrieved documents; by default the
            spans' documents, else the fact or the metadata `documents`.
        judge: whether the metric needs a model; the run's judge then replaces the metric's own model.

    Raises:
        SettingsError: DeepEval is not installed.
    """
    return make_scorer("deepeval", metric, _measure, documents, judge=judge)


async def _measure(metric: Any, case: ForeignCase) -> dict[str, Score]:
    os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "1")
    from deepeval.metrics import BaseMetric
    from deepeval.models import DeepEvalBaseLLM
    from deepeval.test_case import LLMTestCase, ToolCall

    class Judge(DeepEvalBaseLLM):  # type: ignore[misc]
        def load_model(self) -> Judge:
            return self

        def generate(self, prompt: Any) -> str:
            return case.judge.chat(str(prompt)).text

        async def a_generate(self, prompt: Any) -> str:
            return self.generate(prompt)

        def get_model_name(self) -> str:
            return case.judge.name

    if isinstance(metric, BaseMetric):
        # Copy the metric, because a metric stores the score of its last case.
        made = copy.copy(metric)
        if case.model is not None:
            made.model, made.using_native_model = Judge(), False
    else:
        made = metric(model=Judge()) if case.model is not None else metric()
    calls = [ToolCall(name=use.tool, input_parameters=_read(use.arguments)) for use in tool_uses(case.transcript)]
    tested = LLMTestCase(
        input=case.question,
        actual_output=case.transcript.answer,
        expected_output="\n".join(case.targets) or None,
        retrieval_context=case.documents or None,
        context=case.documents or None,
        tools_called=calls,
    )
    await made.a_measure(tested, _show_indicator=False)
    return {snake_case(made.__name__): read_number(made.score, made.reason)}


def _read(arguments: Any) -> dict[str, Any]:
    return json.loads(json.dumps(arguments)) if isinstance(arguments, dict) else {}
