"""A declared benchmark under a run's settings, and what each process makes of it once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evalsuite.core.declarations import place_of
from evalsuite.core.errors import EvalsuiteError, SettingsError
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Metric, Sample
from evalsuite.engine.checked_parts import check_parts
from evalsuite.samples.lazy import LazySamples, SampleStream

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalsuite.core.protocols import AnySolver, Benchmark, Dataset, JudgedScorer, ModelScorer, Scorer
    from evalsuite.core.settings import Settings
    from evalsuite.plugin.collection.decorator import Declaration


@dataclass(frozen=True, eq=False)
class Bound:
    """A benchmark in this run, and what each process makes of it once.

    Attributes:
        declaration: what the test declared.
        setup: what the run says.
        epochs: times each sample is asked.
        nodeid: of the decorated test function.
        answers: a file of ready-made answers that stands in for a model; empty if a model is asked.
    """

    declaration: Declaration
    setup: Setup
    epochs: int
    nodeid: str
    answers: str = ""

    @property
    def name(self) -> str:
        """The benchmark's."""
        return self.declaration.benchmark.name

    @cached_property
    def place(self) -> str:
        """Where the benchmark was declared, as its records say it."""
        return place_of(self.declaration.benchmark, self.nodeid)

    @cached_property
    def dataset(self) -> Dataset:
        """All samples, checked."""
        dataset = self.declaration.benchmark.load(self.setup)
        if not dataset.samples:
            raise SettingsError(
                f"benchmark {self.name} has no samples ({dataset.source}); without a case it would hold for any model"
            )
        if not isinstance(dataset.samples, SampleStream | LazySamples):
            self._check_kinds(dataset.samples)
        if not isinstance(dataset.samples, SampleStream):
            self.check_ids(dataset.samples)
        return dataset

    def _check_kinds(self, samples: Sequence[object]) -> None:
        for number, sample in enumerate(samples, 1):
            if not isinstance(sample, Sample):
                raise SettingsError(f"benchmark {self.name}: sample {number} is {sample!r:.60}, not a Sample")

    def check_ids(self, samples: Sequence[Sample]) -> None:
        """Sees that no two samples have one id.

        Raises:
            SettingsError: two have.
        """
        seen: set[str] = set()
        ids = samples.ids if isinstance(samples, LazySamples) else (sample.id for sample in samples)
        for id_ in ids:
            if id_ in seen:
                raise SettingsError(
                    f"benchmark {self.name}: two samples have the id {id_!r}; ids must be unique"
                )
            seen.add(id_)

    def make(self) -> None:
        """Makes samples, solver and scorers, so that mistakes in them are reported before a case begins.

        Raises:
            EvalsuiteError: a factory of the benchmark failed, or made what is no solver or scorer.
        """
        for part in ("dataset", "solver", "scorers"):
            try:
                getattr(self, part)
            except EvalsuiteError:
                raise
            except Exception as error:
                raise SettingsError(
                    f"benchmark {self.name}: its {part} cannot be made: {type(error).__name__}: {error}"
                ) from error
        check_parts(self)

    @cached_property
    def solver(self) -> AnySolver | None:
        """The solver."""
        if self.answers:
            from evalsuite.solvers.ready_made import ready_made

            return ready_made(self.answers, self.name)
        return self.declaration.benchmark.solver(self.setup)

    @cached_property
    def scorers(self) -> Sequence[Scorer | JudgedScorer | ModelScorer]:
        """The scorers."""
        return self.declaration.benchmark.scorers(self.setup)

    @cached_property
    def declared_metrics(self) -> dict[str, dict[str, Any]]:
        """What the scorers and the benchmark declare of their metrics, as plain data."""
        from evalsuite.core.json_codec import encode_metric

        try:
            scorers = self.scorers
        except EvalsuiteError:
            # Its cases will say why they have no scorers.
            scorers = ()
        declared = {name: one for scorer in scorers for name, one in getattr(scorer, "metrics", {}).items()}
        benchmark = self.declaration.benchmark
        every = dict.fromkeys(benchmark.derived, Metric()) | declared | dict(benchmark.metrics)
        return {name: encode_metric(one) for name, one in every.items()}

    @cached_property
    def every_metric(self) -> frozenset[str] | None:
        """The names of all its metrics, where every scorer declares its scores; None where one does not."""
        try:
            scorers = self.scorers
        except EvalsuiteError:
            return None
        if not scorers or not all(getattr(scorer, "metrics", None) for scorer in scorers):
            return None
        return frozenset(self.declared_metrics)


def bind(declaration: Declaration, settings: Settings, model: str, root: Path, nodeid: str) -> Bound:
    """A declared benchmark under a run's settings.

    Raises:
        SettingsError: a chosen mode is unknown to the benchmark, or there are too few epochs for it.
    """
    from evalsuite.gateway.concealment import public_settings

    declared = declaration.benchmark
    folder = (root / settings.data).resolve() / declared.name if settings.data else None
    data, modes = folder if folder and folder.is_dir() else None, chosen_modes(declared, settings.mode)
    measuring = data is not None or modes != declared.default_modes
    setup = Setup(
        model=model,
        judge=settings.judge_model,
        # Without its login, since a traceback with --showlocals would show it.
        judge_base_url=public_settings(settings).judge_base_url,
        reports=root / settings.reports,
        data=data,
        modes=modes,
        seed=settings.seed,
        args=declaration.args if measuring else {**declaration.args, **declaration.shipped},
    )
    epochs = settings.epochs or declaration.epochs or 1
    if epochs < (declaration.at_least or 1):
        raise SettingsError(
            f"--epochs {epochs}: a sample of {declared.name} holds if at least {declaration.at_least} of its epochs do"
        )
    return Bound(declaration, setup, epochs, nodeid, settings.answers or "")


def chosen_modes(declared: Benchmark, wanted: Sequence[str]) -> tuple[str, ...]:
    """The modes of a benchmark in this run: `name=mode` for it alone, a bare mode where it knows it.

    Raises:
        SettingsError: a mode given for this benchmark is unknown to it.
    """
    chosen = []
    for text in wanted:
        name, equals, mode = text.partition("=")
        if not equals and name in declared.modes:
            chosen.append(name)
        elif equals and name == declared.name:
            if not declared.modes:
                raise SettingsError(f"--mode {text}: {declared.name} has no modes")
            if mode not in declared.modes:
                modes_there = "\n".join(
                    f"  {mode_name}: {what}" for mode_name, what in declared.modes.items()
                )
                raise SettingsError(
                    f"--mode {text}: {declared.name} has no mode {mode!r}. Its modes are:\n{modes_there}"
                )
            chosen.append(mode)
    return tuple(dict.fromkeys(chosen)) or declared.default_modes
