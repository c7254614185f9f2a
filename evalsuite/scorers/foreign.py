"""Scores with metrics of other packages; the run's judge answers their model calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from evalsuite.applications.case_model import BlockingModel
from evalsuite.core.errors import EvalsuiteError, ScoringError, SettingsError
from evalsuite.core.threads import in_thread
from evalsuite.core.types import Message, Sample, Score, Transcript

if TYPE_CHECKING:
    from evalsuite.applications.case_model import CaseModel

    Scores = Mapping[str, float | Score]
    Documents = Callable[[Sample, Transcript], Sequence[str]]

NO_JUDGE = "this metric asks a model: leave out judge=False, and name a judge with --judge-model"


def find_documents(sample: Sample, transcript: Transcript) -> Sequence[str]:
    """List the retrieved documents: from the spans, else from the fact `documents`, else from the metadata."""
    found = [text for event in transcript.events for text in event.get("documents", ())]
    return found or transcript.facts.get("documents") or sample.metadata.get("documents") or ()


@dataclass
class ForeignCase:
    """The data that a foreign metric may read, and the model that it may call."""

    sample: Sample
    transcript: Transcript
    find_documents: Documents
    model: BlockingModel | None

    @property
    def question(self) -> str:
        """The input as text; for a conversation, its last message."""
        said = self.sample.input
        return said if isinstance(said, str) else said[-1].content if said else ""

    @property
    def messages(self) -> Sequence[Message]:
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
        return list(self.find_documents(self.sample, self.transcript))

    @property
    def judge(self) -> BlockingModel:
        """The run's judge.

        Raises:
            ScoringError: the scorer was made with `judge=False`.
        """
        if self.model is None:
            raise ScoringError(NO_JUDGE)
        return self.model


@dataclass(frozen=True, slots=True)
class PlainForeignScorer:
    """Scores with a metric that calls no model; made by `from_deepeval` and similar functions with `judge=False`."""

    package: str
    metric: Any = field(repr=False)
    measure: Callable[[Any, ForeignCase], Awaitable[Scores]] = field(repr=False)
    find_documents: Documents
    version: str  # The package's version.
    arguments: str  # The metric's kind and arguments, for fingerprints.

    async def __call__(self, sample: Sample, transcript: Transcript) -> Scores:
        return await self.score(ForeignCase(sample, transcript, self.find_documents, None))

    async def score(self, case: ForeignCase) -> Scores:
        """Run the metric in a thread with its own event loop, because some metrics block their event loop."""
        try:
            return await in_thread(lambda: asyncio.run(self._measure(case)))
        except EvalsuiteError:
            raise
        except Exception as error:
            raise ScoringError(f"{self.package}: the metric raised {type(error).__name__}: {error}"[:2000]) from error

    async def _measure(self, case: ForeignCase) -> Scores:
        return await self.measure(self.metric, case)


@dataclass(frozen=True, slots=True)
class ForeignScorer:
    """Scores with a metric whose model calls the run's judge answers; made by `from_deepeval` and similar functions."""

    plain: PlainForeignScorer

    async def judged(self, sample: Sample, transcript: Transcript, judge: CaseModel) -> Scores:
        """Score one transcript; if a judge's call fails for good, raise its error."""
        access = BlockingModel(judge, asyncio.get_running_loop())
        try:
            return await self.plain.score(ForeignCase(sample, transcript, self.plain.find_documents, access))
        except ScoringError as error:
            if judge.log.failures:
                raise judge.log.failures[0] from error
            raise
        finally:
            judge.close_endpoints()


def make_scorer(
    package: str,
    metric: Any,
    measure: Callable[[Any, ForeignCase], Awaitable[Scores]],
    documents: Documents | None,
    *,
    judge: bool,
) -> PlainForeignScorer | ForeignScorer:
    """Make the scorer of a metric.

    Raises:
        SettingsError: the package is not installed.
    """
    try:
        installed = version(package)
    except PackageNotFoundError as error:
        raise SettingsError(f"{package} is not installed here: pip install {package}") from error
    scorer = PlainForeignScorer(package, metric, measure, documents or find_documents, installed, _describe(metric))
    return ForeignScorer(scorer) if judge else scorer


def _describe(metric: Any) -> str:
    """Describe a metric by its kind and its plain arguments."""
    if isinstance(metric, partial):
        kind, given = _describe(metric.func), metric.keywords
    elif hasattr(metric, "__qualname__"):
        kind, given = metric.__qualname__, {}
    else:
        kind, given = type(metric).__qualname__, getattr(metric, "__dict__", {})
    plain = sorted(f"{name}={value!r}" for name, value in given.items() if isinstance(value, str | int | float))
    return f"{kind}({', '.join(plain)})"


def snake_case(name: str) -> str:
    """Convert a metric's name to a score's name: `Answer Relevancy [GEval]` becomes `answer_relevancy_geval`."""
    words = "".join(letter.lower() if letter.isalnum() else " " for letter in name).split()
    return "_".join(words)


def read_number(value: Any, note: object = None) -> Score:
    """Convert a foreign metric's value to a score.

    Raises:
        ScoringError: the value is not a number, so nothing was measured.
    """
    try:
        return Score(float(value), str(note or "")[:2000])
    except (TypeError, ValueError) as error:
        raise ScoringError(f"the metric gave {value!r:.200} in place of a number; {str(note or '')[:200]}") from error
