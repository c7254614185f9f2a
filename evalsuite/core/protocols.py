"""Protocols of models, solvers, scorers and benchmarks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.core.types import Completion, Message, Metric, Sample, Score, Transcript
    from evalsuite.output.reports.section import Section
    from evalsuite.results.tally import Estimate, RunView, Tally


class Model(Protocol):
    """A model as solvers and scorers see it: every call goes through the run's one gateway.

    A handle belongs to one case and counts what the case used.
    """

    @property
    def name(self) -> str:
        """The model as the user names it."""
        ...

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Generation parameters that the user set for the whole run; they go before those of a call."""
        ...

    async def chat(
        self,
        prompt: str | Sequence[Message | Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        **params: Any,
    ) -> Completion:
        """Asks the model.

        Args:
            prompt: a user's message, or a conversation.
            tools: documents of the tools on offer, in the OpenAI format.
            params: generation parameters by their OpenAI names; None means the server's own default.

        Raises:
            ModelError: the call failed for good.
        """
        ...

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Model:
        """Another model, asked through the same gateway on behalf of the same case.

        Args:
            name: the model as the user names it.
            base_url: its address, if not the backend's usual one.
            epoch: the repetition that its requests count as; None keeps the case's. A simulated tool
                asks as epoch 1 whatever the case's is, so that the same call gets the same answer.
        """
        ...


class Solver(Protocol):
    """Turns a sample into a transcript. Any async function of this shape is one.

    A solver that holds something open may have an `async def aclose()`, called at the end of the run. One that
    runs programs has a `sandbox_for(sample)`, which gives the `Sandbox` that the sample's programs would run in,
    or None where it needs none; so may a scorer. It is tried before the run's first call. One that changes what
    its cases are (faults that are injected into their world) may have a mapping `tags`, which they all get.
    """

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Solves one sample; whatever it raises becomes the case's error."""
        ...


AnySolver = Callable[["Sample", Any], Any]
"""A solver, or any plain or async function of sample and model that returns an answer: see `solvers.any_function`."""

NamedScores = Mapping[str, "float | Score"]


class Scorer(Protocol):
    """Turns a sample and its transcript into scores without asking anybody.

    Any function of this shape is a scorer; an async one runs beside other cases, as the solver does. It returns scores
    by name, or one number, a bool or a `Score`, which then has the function's name.
    """

    def __call__(self, sample: Sample, transcript: Transcript) -> NamedScores | Score | float:
        """Scores one transcript; whatever it raises becomes the case's error."""
        ...


@runtime_checkable
class JudgedScorer(Protocol):
    """A scorer that asks a judge: known by its `judged` method."""

    def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> Awaitable[NamedScores]:
        """Scores one transcript with the judge's help."""
        ...


@runtime_checkable
class ModelScorer(Protocol):
    """A scorer that asks a model of its own choice, by `model.peer`: known by its `scored` method."""

    def scored(self, sample: Sample, transcript: Transcript, model: Model) -> Awaitable[NamedScores]:
        """Scores one transcript; `model` is the one under test."""
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """What a benchmark may know of the run when it makes its samples, solver and scorers.

    Attributes:
        model: the model as the user names it.
        judge: the judge model, or None where the run has none.
        judge_base_url: where the judge is served, if not at the backend's usual place.
        reports: the folder in which runs land, for what outlives a run; None where nothing may be kept.
        data: the benchmark's own folder below `--data`, or None for the shipped samples.
        modes: the modes chosen with `--mode`, or the benchmark's defaults; never empty where it has modes.
        seed: for every choice that is left to chance.
        args: further arguments given where the benchmark is declared.
    """

    model: str
    judge: str | None = None
    judge_base_url: str | None = None
    reports: Path | None = None
    data: Path | None = None
    modes: tuple[str, ...] = ()
    seed: int = 0
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Samples and where they came from, in words that the report repeats."""

    samples: Sequence[Sample]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Samples, a solver, scorers, and how the scores are tallied and shown.

    Attributes:
        name: lower-case identifier, as used in gates and in `--mode`.
        title: for headings.
        load: the samples. Where a benchmark runs in several modes, one sample for each mode, with the
            mode in its tag `mode` and, if there is more than one, at the end of its id.
        solver: made once per process.
        scorers: made once per process.
        modes: mode names and what each is, in a line.
        default_modes: those that run without `--mode`.
        report: the benchmark's section for one run, or for several side by side.
        primary: the metric that stands in overviews and ranks the cases, more being better; None is the
            first score.
        derived: metrics that are not means over cases (a kappa, a correlation), by name, for gates and tables.
        metrics: range and direction of scores and derived metrics, by name or pattern (`accuracy*`), beside what
            scorers declare.
    """

    name: str
    title: str
    load: Callable[[Setup], Dataset]
    solver: Callable[[Setup], AnySolver]
    scorers: Callable[[Setup], Sequence[Scorer | JudgedScorer | ModelScorer]]
    modes: Mapping[str, str] = field(default_factory=dict)
    default_modes: tuple[str, ...] = ()
    report: Callable[[Sequence[RunView]], Section] | None = None
    derived: Mapping[str, Callable[[Tally], Estimate | None]] = field(default_factory=dict)
    primary: str | None = None
    metrics: Mapping[str, Metric] = field(default_factory=dict)
