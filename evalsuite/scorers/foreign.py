"""Scores with metrics from autoevals, DeepEval, Inspect and Ragas; the run's judge answers their model calls."""

import asyncio
import copy
import inspect
import json
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

from evalsuite.applications.case_model import BlockingModel, CaseModel
from evalsuite.core.errors import EvalsuiteError, ScoringError, SettingsError, describe_error
from evalsuite.core.threads import run_in_thread
from evalsuite.core.types import Message, Sample, Score, Transcript
from evalsuite.scorers.trajectories import tool_uses

Scores = Mapping[str, float | Score]
Documents = Callable[[Sample, Transcript], Sequence[str]]
ForeignMeasure = Callable[[Any, "ForeignCase"], Coroutine[Any, Any, Scores]]

NO_JUDGE = "this metric asks a model: leave out judge=False, and name a judge with --judge-model"


def find_documents(sample: Sample, transcript: Transcript) -> Sequence[str]:
    """List the retrieved documents: those of spans, or else `documents` in the facts or in the sample's metadata."""
    found = [text for event in transcript.events for text in event.get("documents", ())]
    return found or transcript.facts.get("documents") or sample.metadata.get("documents") or ()


@dataclass
class ForeignCase:
    """The case that another package's metric scores: its data, and the model that the metric may call."""

    sample: Sample
    transcript: Transcript
    find_documents: Documents
    model: BlockingModel | None

    @property
    def question(self) -> str:
        """The input as text; if it is a conversation, the last message."""
        said = self.sample.input
        return said if isinstance(said, str) else said[-1].content if said else ""

    @property
    def messages(self) -> Sequence[Message]:
        """The transcript's messages; if it has none, the question and the answer."""
        return self.transcript.messages or (
            Message("user", self.question),
            Message("assistant", self.transcript.answer),
        )

    @property
    def targets(self) -> list[str]:
        """The target answers as texts."""
        target = self.sample.target
        if target is None:
            return []
        return list(target) if isinstance(target, Sequence) and not isinstance(target, str) else [str(target)]

    @cached_property
    def documents(self) -> list[str]:
        """The retrieved documents as texts."""
        return list(self.find_documents(self.sample, self.transcript))

    @property
    def judge(self) -> BlockingModel:
        """The run's judge; raises ScoringError if the scorer was made with `judge=False`."""
        if self.model is None:
            raise ScoringError(NO_JUDGE)
        return self.model


@dataclass(frozen=True, slots=True)
class PlainForeignScorer:
    """Scores with a metric that calls no model; made by functions such as `from_deepeval` with `judge=False`."""

    package: str
    metric: Any = field(repr=False)
    measure: ForeignMeasure = field(repr=False)
    find_documents: Documents
    version: str  # The package's version.
    arguments: str  # Text that identifies the metric and its arguments, for fingerprints.

    async def __call__(self, sample: Sample, transcript: Transcript) -> Scores:
        return await self.score_case(ForeignCase(sample, transcript, self.find_documents, None))

    async def score_case(self, case: ForeignCase) -> Scores:
        """Run the metric in a thread with its own event loop, because some metrics block their event loop."""
        try:
            return await run_in_thread(lambda: asyncio.run(self.measure(self.metric, case)))
        except EvalsuiteError:
            raise
        except Exception as error:
            raise ScoringError(f"{self.package}: the metric raised {describe_error(error)}"[:2000]) from error


@dataclass(frozen=True, slots=True)
class ForeignScorer:
    """Scores with a metric whose model is the run's judge; made by functions such as `from_deepeval`."""

    plain: PlainForeignScorer

    async def judged(self, sample: Sample, transcript: Transcript, judge: CaseModel) -> Scores:
        """Score one transcript; if the judge could not be reached, raise the error of its call."""
        access = BlockingModel(judge, asyncio.get_running_loop())
        try:
            return await self.plain.score_case(ForeignCase(sample, transcript, self.plain.find_documents, access))
        except ScoringError as error:
            if judge.log.failure is not None:
                raise judge.log.failure from error
            raise
        finally:
            judge.close_endpoints()


AnyForeignScorer = PlainForeignScorer | ForeignScorer


def make_foreign_scorer(
    package: str, metric: Any, measure: ForeignMeasure, documents: Documents | None, *, judge: bool
) -> AnyForeignScorer:
    """Make a scorer that runs a metric by `measure`; raise SettingsError if the metric's package is not installed."""
    try:
        installed = version(package)
    except PackageNotFoundError as error:
        raise SettingsError(f"{package} is not installed here: pip install {package}") from error
    scorer = PlainForeignScorer(
        package, metric, measure, documents or find_documents, installed, _describe_metric(metric)
    )
    return ForeignScorer(scorer) if judge else scorer


def _describe_metric(metric: Any) -> str:
    if isinstance(metric, partial):
        kind, given = _describe_metric(metric.func), metric.keywords
    elif hasattr(metric, "__qualname__"):
        kind, given = metric.__qualname__, {}
    else:
        kind, given = type(metric).__qualname__, getattr(metric, "__dict__", {})
    plain = sorted(f"{name}={value!r}" for name, value in given.items() if isinstance(value, str | int | float))
    return f"{kind}({', '.join(plain)})"


def convert_to_snake_case(name: str) -> str:
    """Convert a metric's name to a score's name: `Answer Relevancy [GEval]` becomes `answer_relevancy_geval`."""
    return "_".join("".join(letter.lower() if letter.isalnum() else " " for letter in name).split())


def make_score(value: Any, note: object = None) -> Score:
    """Convert the value of another package's metric to a score; raise ScoringError if it is not a number."""
    try:
        return Score(float(value), str(note or "")[:2000])
    except (TypeError, ValueError) as error:
        raise ScoringError(f"the metric gave {value!r:.200} in place of a number; {str(note or '')[:200]}") from error


def from_autoevals(scorer: Any, *, documents: Documents | None = None, judge: bool = True) -> AnyForeignScorer:
    """Score with a scorer of autoevals; the score is named like the scorer, in snake_case.

    Args:
        scorer: a scorer or its class, such as `Factuality()`. If the scorer has its own client, it keeps this client.
        documents: a function of sample and transcript that returns the retrieved documents; by default, the documents
            of spans, or else `documents` in the facts or in the sample's metadata.
        judge: whether the scorer needs a model, which is then the run's judge. False for scorers such as `Levenshtein`.

    Raises:
        SettingsError: autoevals is not installed.
    """
    return make_foreign_scorer("autoevals", scorer, _score_with_autoevals, documents, judge=judge)


async def _score_with_autoevals(scorer: Any, case: ForeignCase) -> dict[str, Score]:
    import autoevals

    if case.model is not None:
        # autoevals stores its client per thread context; cases do not share clients, because each case runs in its own
        # thread.
        autoevals.init(client=case.model.openai(), is_async=True)
    made = scorer() if isinstance(scorer, type) else scorer
    more = {"context": case.documents} if case.documents else {}
    expected = case.targets[0] if len(case.targets) == 1 else case.targets or None
    score = await made.eval_async(case.transcript.answer, expected, input=case.question, **more)
    return {convert_to_snake_case(score.name): make_score(score.score, (score.metadata or {}).get("rationale"))}


def from_deepeval(metric: Any, *, documents: Documents | None = None, judge: bool = True) -> AnyForeignScorer:
    """Score with a metric of DeepEval; the score is named like the metric, in snake_case.

    Args:
        metric: a metric, or a function such as `AnswerRelevancyMetric` or `functools.partial(GEval, name=...,
            criteria=..., evaluation_params=[...])`. The function is called with `model=` and returns the metric, so it
            needs no OpenAI key.
        documents: a function that returns the retrieved documents; `from_autoevals` describes it.
        judge: whether the metric needs a model; the run's judge then takes the place of the metric's own model.

    Raises:
        SettingsError: DeepEval is not installed.
    """
    return make_foreign_scorer("deepeval", metric, _score_with_deepeval, documents, judge=judge)


async def _score_with_deepeval(metric: Any, case: ForeignCase) -> dict[str, Score]:
    os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "1")
    from deepeval.metrics import BaseMetric
    from deepeval.models import DeepEvalBaseLLM
    from deepeval.test_case import LLMTestCase, ToolCall

    class DeepEvalJudge(DeepEvalBaseLLM):  # type: ignore[misc]
        """Answers the metric's requests with the run's judge."""

        def load_model(self) -> Self:
            return self

        def generate(self, prompt: Any) -> str:
            return case.judge.chat(str(prompt)).text

        async def a_generate(self, prompt: Any) -> str:
            return self.generate(prompt)

        def get_model_name(self) -> str:
            return case.judge.name

    if isinstance(metric, BaseMetric):
        made = copy.copy(metric)  # Copy the metric: it stores the score of its last case, which cases must not share.
        if case.model is not None:
            made.model, made.using_native_model = DeepEvalJudge(), False
    else:
        made = metric(model=DeepEvalJudge()) if case.model is not None else metric()
    calls = [
        ToolCall(name=use.tool, input_parameters=json.loads(json.dumps(use.arguments)))
        for use in tool_uses(case.transcript)
    ]
    tested = LLMTestCase(
        input=case.question,
        actual_output=case.transcript.answer,
        expected_output="\n".join(case.targets) or None,
        retrieval_context=case.documents or None,
        context=case.documents or None,
        tools_called=calls,
    )
    await made.a_measure(tested, _show_indicator=False)
    return {convert_to_snake_case(made.__name__): make_score(made.score, made.reason)}


def from_inspect(scorer: Any, *, judge: bool = True) -> AnyForeignScorer:
    """Score with a scorer of Inspect; the score is named like the scorer. A dictionary becomes one score per key.

    Args:
        scorer: a scorer such as `model_graded_qa()`; if it has a `model=` of its own, it keeps that model.
        judge: whether the scorer needs a model, which is then the run's judge, also in the role `grader`. False for
            scorers such as `includes()`.

    Raises:
        SettingsError: Inspect is not installed.
    """
    return make_foreign_scorer("inspect-ai", scorer, _score_with_inspect, None, judge=judge)


async def _score_with_inspect(scorer: Any, case: ForeignCase) -> dict[str, Score]:
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
    return {
        convert_to_snake_case(name): make_score(to_float(value), score.explanation) for name, value in values.items()
    }


def from_ragas(metric: Any, *, documents: Documents | None = None, judge: bool = True) -> AnyForeignScorer:
    """Score with a metric of `ragas.metrics.collections`; the score is named like the metric.

    Args:
        metric: a metric, or a class or function that makes one, such as `Faithfulness`. With a judge, it gets the
            arguments `llm` and `embeddings` if its signature has them.
        documents: a function that returns the retrieved contexts; `from_autoevals` describes it.
        judge: whether the metric needs a model; the run's judge then takes the place of the metric's own model.

    Raises:
        SettingsError: Ragas is not installed.
    """
    return make_foreign_scorer("ragas", metric, _score_with_ragas, documents, judge=judge)


async def _score_with_ragas(metric: Any, case: ForeignCase) -> dict[str, Score]:
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
    made = _make_ragas_metric(metric, case)
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
    return {convert_to_snake_case(made.name): make_score(result.value, result.reason)}


def _make_ragas_metric(metric: Any, case: ForeignCase) -> Any:
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
