"""Cases: the `@benchmark` decorator, and how a test function becomes one item a sample and epoch."""

from __future__ import annotations

import hashlib
import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.declarations import being_imported, place_of
from evalsuite.entry_points import find_target, load, names
from evalsuite.errors import EvalsuiteError, SettingsError
from evalsuite.keywords import refuse_unknown
from evalsuite.plugin.marks import FIXTURE, MARK, started_sessions
from evalsuite.protocols import Benchmark, Dataset, Setup
from evalsuite.results.judge_labels import CANARY
from evalsuite.solvers.fixed_answer import answer_of, fixed_answer
from evalsuite.types import Metric

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from evalsuite.protocols import AnySolver, JudgedScorer, ModelScorer, Scorer
    from evalsuite.reporting.case_metrics import CaseMetric, Measure
    from evalsuite.settings import Settings
    from evalsuite.types import Sample

Test = TypeVar("Test", bound=Callable[..., Any])

LONGEST_ID = 80
_OWN = ("name", "samples", "solver", "scorers", "epochs", "at_least")
FORGOTTEN = (
    'evalsuite\'s plugin is not loaded: add the line  pytest_plugins = ["evalsuite.plugin"]  to the conftest.py '
    "in the root directory (or run pytest with -p evalsuite.plugin)"
)


@dataclass(frozen=True)
class Declaration:
    """What `@benchmark` was given.

    Attributes:
        benchmark: samples, solver and scorers.
        epochs: times each sample is asked where the run does not say; None is once.
        at_least: epochs of a sample that must hold for the sample to hold; None is all.
        args: passed on to the benchmark in its `Setup`.
        shipped: the same, over `args`, in a run on the shipped samples in the default modes.
    """

    benchmark: Benchmark
    epochs: int | None
    at_least: int | None
    args: dict[str, Any]
    shipped: Mapping[str, Any]


def benchmark(  # noqa: PLR0913 - a declaration's parts, given by name
    name: str | Benchmark,
    samples: Sequence[Sample] | None = None,
    *,
    solver: AnySolver | None = None,
    scorers: Sequence[Scorer | JudgedScorer | ModelScorer] = (),
    epochs: int | None = None,
    at_least: int | None = None,
    shipped: Mapping[str, Any] | None = None,
    metrics: Sequence[CaseMetric | Measure] = (),
    canary: bool = False,
    **args: Any,
) -> Callable[[Test], Test]:
    """Makes a test function into a benchmark: one pytest item a sample and epoch.

    The function is an ordinary test. Its fixtures `sample`, `transcript`, `scores`, `model` and `judge`
    are those of its case; what it asserts is its threshold.

    Args:
        name: lower-case identifier of the benchmark, as used in gates; or a `Benchmark` that has all else;
            without samples, the name of a benchmark that comes with evalsuite or with an installed package.
        samples: with ids that are unique within the benchmark.
        solver: makes the transcripts: a ready one, or any plain or async function of (sample, model) that
            returns text or a Transcript; None leaves it to the test, through the fixture `model`.
        scorers: score the transcripts.
        epochs: times each sample is asked, unless `--epochs` says otherwise.
        at_least: the sample holds if so many of its epochs do; without it, each epoch must.
        shipped: arguments, over `args`, for a run on the samples that come with the benchmark, in its default
            modes: what makes a demonstration short. A run on official files (`--data`), or in a mode that was
            chosen (`--mode`), is without them.
        metrics: over all cases at once (`macro_f1()`), or any named function of a `Tally`; gates name them. A
            `Benchmark` has its own, as `derived`.
        canary: the cases watch the judge: each sample's metadata has a fixed `answer` and people's label, `human`;
            no model is asked, `--limit` spares them, and a baseline is compared with by what its judge said of them.
        args: whatever the `Benchmark` takes in `Setup.args`.

    Raises:
        SettingsError: the declaration makes no sense.
    """
    _demand_plugin()
    if canary:
        samples, solver = _canaries(name, samples, solver), fixed_answer
    if isinstance(name, Benchmark):
        declared = name
    elif samples is None:
        declared = _offered(name)
    else:
        refuse_unknown(benchmark, {**args, **(shipped or {})}, _OWN)
        declared = Benchmark(
            name=name,
            title=name,
            load=lambda _: Dataset(_tagged(samples, solver), "samples in the test file"),
            solver=lambda _: solver,  # type: ignore[arg-type, return-value] # None: the test asks by itself
            scorers=lambda _: scorers,
            **_over_all_cases(name, metrics),
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]*", declared.name):
        raise SettingsError(
            f"@benchmark({declared.name!r}): a name is lower-case letters, digits and _, so that gates can use it"
        )
    if at_least is not None and not 1 <= at_least <= (epochs or 1):
        raise SettingsError(
            f"@benchmark({declared.name!r}): at_least={at_least} must be between 1 and epochs={epochs or 1}"
        )
    declaration = Declaration(declared, epochs, at_least, args, shipped or {})

    def mark(test: Test) -> Test:
        import pytest

        pytest.mark.usefixtures(FIXTURE)(test)
        return getattr(pytest.mark, MARK)(declaration)(test)  # type: ignore[no-any-return]

    return mark


def _tagged(samples: Sequence[Sample], solver: AnySolver | None) -> Sequence[Sample]:
    """The samples with the tags that their solver gives to all of its cases."""
    tags = getattr(solver, "tags", None)
    if not tags or not isinstance(tags, Mapping):
        return samples
    return [replace(sample, tags={**tags, **sample.tags}) for sample in samples]


def _canaries(
    name: str | Benchmark, samples: Sequence[Sample] | None, solver: AnySolver | None
) -> Sequence[Sample]:
    """The samples with the tag by which they are known."""
    if samples is None or solver is not None:
        raise SettingsError(
            f"@benchmark({name!r:.60}, canary=True) takes samples with fixed answers, and no solver: write answers "
            "into their metadata, under 'answer'"
        )
    from evalsuite.judging.people_facts import check_labels

    for sample in samples:
        try:
            answer_of(sample)
            check_labels(sample)
        except EvalsuiteError as error:
            raise SettingsError(f"@benchmark({name!r}, canary=True): {error}") from error
    return [replace(sample, tags={**sample.tags, CANARY: "judge"}) for sample in samples]


def _over_all_cases(name: str, metrics: Sequence[CaseMetric | Measure]) -> dict[str, Any]:
    """Those parts of a `Benchmark` that metrics over all its cases make."""
    if not metrics:
        return {}
    from evalsuite.reporting.case_metrics import as_case_metric, report_with

    read = list(map(as_case_metric, metrics))
    return {
        "derived": {metric.name: metric for metric in read},
        "report": report_with(read, name, name),
        "metrics": {metric.name: Metric(better="lower") for metric in read if metric.lower_is_better},
    }


def _offered(name: str) -> Benchmark:
    """The benchmark that evalsuite or an installed package offers by this name."""
    target = find_target("evalsuite.benchmarks", name)
    if target is None:
        there_are = ", ".join(names("evalsuite.benchmarks"))
        raise SettingsError(
            f"@benchmark({name!r}) has no samples, and no installed package offers a benchmark of this name; "
            f"there are {there_are}"
        )
    declared = load(target)
    if not isinstance(declared, Benchmark) or declared.name != name:
        raise SettingsError(f"@benchmark({name!r}): {target} is no Benchmark named {name!r}")
    return declared


def _demand_plugin() -> None:
    """Says in one sentence what is missing where pytest runs without the plugin."""
    if "PYTEST_VERSION" in os.environ and not started_sessions and not being_imported:
        import pytest

        raise pytest.Collector.CollectError(FORGOTTEN)


@dataclass(frozen=True, eq=False)
class Bound:
    """A benchmark in this run: with its setup, and what is made of it once a process.

    Attributes:
        declaration: what the test declared.
        setup: what the run says.
        epochs: times each sample is asked.
        nodeid: of the decorated test function.
        answers: a file of ready-made answers in the place of a model; empty where a model is asked.
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
        seen: set[str] = set()
        for sample in dataset.samples:
            if sample.id in seen:
                raise SettingsError(
                    f"benchmark {self.name}: two samples have the id {sample.id!r}; ids must be unique"
                )
            seen.add(sample.id)
        return dataset

    def make(self) -> None:
        """Makes samples, solver and scorers, so that what is wrong with them is told before a case begins.

        Raises:
            EvalsuiteError: a factory of the benchmark failed.
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
        from evalsuite.json_codec import encode_metric

        try:
            scorers = self.scorers
        except EvalsuiteError:
            # Its cases will say why they have no scorers.
            scorers = ()
        declared = {name: one for scorer in scorers for name, one in getattr(scorer, "metrics", {}).items()}
        benchmark = self.declaration.benchmark
        every = dict.fromkeys(benchmark.derived, Metric()) | declared | dict(benchmark.metrics)
        return {name: encode_metric(one) for name, one in every.items()}


@dataclass(frozen=True, eq=False)
class Case:
    """One pytest item: sample, benchmark and epoch."""

    bound: Bound
    sample: Sample
    epoch: int

    @property
    def id(self) -> str:
        """The node id of its pytest item, where nothing else parametrizes the test."""
        epoch = self.epoch if self.bound.epochs > 1 else None
        return f"{self.bound.nodeid}[{case_id(self.sample.id, epoch)}]"


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
        # Without its login: a traceback with --showlocals shows it.
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


def chosen_modes(declared: Benchmark, given: Sequence[str]) -> tuple[str, ...]:
    """The modes of a benchmark in this run: `name=mode` for it alone, a bare mode where it knows it.

    Raises:
        SettingsError: a mode given for this benchmark is unknown to it.
    """
    chosen = []
    for text in given:
        name, equals, mode = text.partition("=")
        if not equals and name in declared.modes:
            chosen.append(name)
        elif equals and name == declared.name:
            if mode not in declared.modes:
                known = "\n".join(f"  {one}: {what}" for one, what in declared.modes.items()) or "  none"
                raise SettingsError(
                    f"--mode {text}: {declared.name} has no mode {mode!r}. Its modes are:\n{known}"
                )
            chosen.append(mode)
    return tuple(dict.fromkeys(chosen)) or declared.default_modes


def make_cases(bound: Bound, limit: int | None) -> tuple[list[Case], list[str]]:
    """The cases of a benchmark in this run, in the dataset's order, with their ids."""
    every = bound.dataset.samples
    # A part of the canaries would say less of the judge, and they cost no call of the model.
    limit = None if every and all(CANARY in sample.tags for sample in every) else limit
    samples = choose(every, limit, f"{bound.setup.seed} {bound.name}")
    cases = [Case(bound, sample, epoch) for sample in samples for epoch in range(1, bound.epochs + 1)]
    ids = [case_id(case.sample.id, case.epoch if bound.epochs > 1 else None) for case in cases]
    return cases, ids


def choose(samples: Sequence[Sample], limit: int | None, seed: str) -> Sequence[Sample]:
    """At most `limit` samples, in their order; a larger limit keeps what a smaller one chose.

    Of several modes the same questions are chosen, as far as the limit goes: modes are compared on them.
    """
    if limit is None or limit >= len(samples):
        return samples
    questions: dict[str, list[int]] = {}
    for index, sample in enumerate(samples):
        questions.setdefault(_whatever_the_mode(sample), []).append(index)
    shuffled = random.Random(seed).sample(list(questions.values()), len(questions))  # noqa: S311 - a choice, no secret
    chosen = [index for question in shuffled for index in question][:limit]
    return [samples[index] for index in sorted(chosen)]


def _whatever_the_mode(sample: Sample) -> str:
    """The sample's id without the mode, which stands at its end where a benchmark runs in several."""
    return sample.id.removesuffix(sample.tags.get("mode", "").replace(":", "-"))


def case_id(sample: str, epoch: int | None) -> str:
    """Short, stable, and free of what pytest or a shell would read otherwise."""
    text = re.sub(r"[^\w.,+=@%|-]+", "-", sample)
    if len(text) > LONGEST_ID or text != sample:
        # What was cut or replaced must not make two ids one.
        digest = hashlib.sha256(sample.encode("utf-8", "replace")).hexdigest()[:6]
        text = f"{text[: LONGEST_ID - 7]}-{digest}"
    return text if epoch is None else f"{text}-e{epoch}"


def generate(metafunc: pytest.Metafunc, declaration: Declaration, settings: Settings, model: str) -> None:
    """Gives a benchmark's function its cases.

    Raises:
        EvalsuiteError: samples or modes cannot be had.
    """
    bound = bind(declaration, settings, model, metafunc.config.rootpath, metafunc.definition.nodeid)
    bound.make()
    cases, ids = make_cases(bound, settings.limit)
    metafunc.parametrize(FIXTURE, cases, ids=ids, indirect=True)
