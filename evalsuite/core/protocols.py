"""Protocols of models, solvers, scorers and benchmarks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from evalsuite.core.types import Completion, Metric, Prompt, Sample, Score, Transcript
    from evalsuite.output.reports.section import Section
    from evalsuite.results.tally import Estimate, RunView, Tally


class Model(Protocol):
    """The interface to a model for solvers and scorers; every call goes through the run's single gateway.

    Each instance belongs to one case and counts the case's usage.
    """

    @property
    def name(self) -> str:
        """The model's name as the user wrote it."""

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Generation parameters that the user set for the whole run; they override a call's own parameters."""

    async def chat(self, prompt: Prompt, *, tools: Sequence[Mapping[str, Any]] = (), **params: Any) -> Completion:
        """Send a request to the model.

        Args:
            prompt: a user's message, or a whole conversation.
            tools: descriptions of the available tools, in the OpenAI format.
            params: generation parameters by their OpenAI names; None leaves a parameter at the server's default.

        Raises:
            ModelError: the call failed permanently.
        """

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Model:
        """Return another model, called through the same gateway on behalf of the same case.

        Args:
            name: the model's name as the user wrote it.
            base_url: the model's address; None means the backend's usual address.
            epoch: the repetition that the requests belong to; None keeps the case's epoch. A simulated tool uses epoch
                1 for every case, so that equal calls of the tool get equal answers.
        """


class Solver(Protocol):
    """Turns a sample into a transcript. Any async function with this signature is a solver.

    A solver may have further attributes, as follows. The method `async def aclose()` is called at the end of the run,
    to close resources. The method `sandbox_for(sample)` returns the `Sandbox` for the sample's programs, or None if
    they need none. A scorer may have a method `sandbox_for`, too. The sandbox is checked before the run's first model
    call. The attribute `tags` is a mapping of tags that the solver adds to every case, for example to mark injected
    faults.
    """

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Solve one sample; any exception becomes the case's error."""


AnySolver = Callable[["Sample", Any], Any]
"""A solver, or any plain or async function of sample and model that returns an answer; see `solvers.applications`."""

NamedScores = Mapping[str, "float | Score"]


class Scorer(Protocol):
    """Turns a sample and its transcript into scores without calling a model.

    Any function with this signature is a scorer; an async function runs concurrently with other cases, as solvers do.
    The function returns scores by name, or a single number, bool or `Score` under the function's name.
    """

    def __call__(self, sample: Sample, transcript: Transcript) -> NamedScores | Score | float:
        """Score one transcript; any exception becomes the case's error."""


@runtime_checkable
class JudgedScorer(Protocol):
    """A scorer that needs a judge; it is recognised by its method `judged`."""

    def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> Awaitable[NamedScores]:
        """Score one transcript with the judge's help."""


@runtime_checkable
class ModelScorer(Protocol):
    """A scorer that calls another model through `model.peer`; it is recognised by its method `scored`."""

    def scored(self, sample: Sample, transcript: Transcript, model: Model) -> Awaitable[NamedScores]:
        """Score one transcript; `model` is the model under test."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The parts of a run's settings that a benchmark may use to make its samples, solver and scorers.

    Attributes:
        model: the model's name as the user wrote it.
        judge: the judge model; None if the run has no judge.
        judge_base_url: the judge's address; None means the backend's usual address.
        reports: the folder of all runs; a benchmark may write files there that outlive a run. None if nothing may be
            written.
        data: the benchmark's own folder below `--data`; None means the shipped samples.
        modes: the modes chosen with `--mode`, or the benchmark's defaults; empty only if the benchmark has no modes.
        seed: the seed of every random choice.
        args: further arguments of the benchmark's declaration.
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
    """Samples, and a description of their origin, which the report quotes."""

    samples: Sequence[Sample]
    source: str


AGREEMENT = "agreement.json"
"""The file beside a benchmark's data that states how often evalsuite's scorers agree with the benchmark's checker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Samples, a solver and scorers, with rules for tallying and showing the scores.

    Attributes:
        name: lower-case identifier, as used in gates and in `--mode`.
        title: the benchmark's name in headings.
        load: function that makes the samples. A benchmark with modes makes one sample per question and mode, whose tag
            `mode` names the mode. If the run has several modes, each sample's id ends in its mode.
        solver: function that makes the solver, called once per process.
        scorers: function that makes the scorers, called once per process.
        modes: names of the modes, each with a description of one line.
        default_modes: modes that run without `--mode`.
        report: function that makes the benchmark's section for one run, or for several runs side by side.
        primary: the main metric for overviews and ranking, where higher is better; None means the score whose name is
            first in the alphabet.
        derived: functions for metrics that are not means over cases (a kappa, a correlation), by name; gates and tables
            may use these metrics.
        metrics: range and direction of scores and derived metrics that the scorers do not declare, by name or
            pattern (`accuracy*`).
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
