"""Makes and checks a benchmark's samples, solver and scorers under a run's settings, once per process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.declarations import format_declaration_place, is_demonstration
from evalsuite.core.errors import EvalsuiteError, SettingsError, describe_error
from evalsuite.core.json_codec import find_declared_range
from evalsuite.core.protocols import AGREEMENT, AnySolver, Benchmark, Dataset, JudgedScorer, ModelScorer, Scorer, Setup
from evalsuite.core.types import Metric, Sample
from evalsuite.engine.scoring import ScorerGroups, check_benchmark_parts, group_scorers, hash_scorers
from evalsuite.gateway.faults import FaultInjector
from evalsuite.samples.lazy import LazySamples, SampleStream

if TYPE_CHECKING:
    from evalsuite.core.settings import Settings
    from evalsuite.engine.declaration import Declaration


@dataclass(frozen=True, eq=False)
class BoundBenchmark:
    """A benchmark in a run: its samples, solver and scorers, made under the run's settings.

    Samples, solver and scorers are made in advance, because two threads use them: the event loop's thread solves, and
    the test's thread scores.
    """

    declaration: Declaration  # The arguments of `@benchmark`.
    setup: Setup  # The part of the run's settings that the benchmark may use.
    epochs: int  # The number of repetitions of each sample.
    nodeid: str  # Node id of the decorated test function.
    place: str  # The location of the benchmark's code, as records store it.
    dataset: Dataset  # The checked samples.
    solver: AnySolver | None  # The solver; None if the test itself calls the model.
    scorers: Sequence[Scorer | JudgedScorer | ModelScorer]  # The scorers, in the order of their declaration.
    sorted_scorers: ScorerGroups  # The same scorers, grouped by how they run.
    declared_metrics: Mapping[str, dict[str, Any]]  # Metrics that scorers and benchmark declare, as plain data.
    faults: FaultInjector  # Faults to inject into the model's calls.

    @property
    def name(self) -> str:
        return self.declaration.benchmark.name

    @property
    def metric_names(self) -> frozenset[str] | None:
        """Names of all metrics that scorers and benchmark declare; None if a scorer does not declare its scores."""
        if not self.scorers or not all(getattr(scorer, "metrics", None) for scorer in self.scorers):
            return None
        return frozenset(self.declared_metrics)

    def find_range(self, metric: str) -> tuple[float, float] | None:
        return find_declared_range(self.declared_metrics, metric)


def bind_benchmark(declaration: Declaration, settings: Settings, model: str, root: Path, nodeid: str) -> BoundBenchmark:
    """Make a declared benchmark's samples, solver and scorers under a run's settings."""
    from evalsuite.results.built_in import DeclaredAndBuiltInMetrics
    from evalsuite.solvers.single_call import make_answers_solver

    benchmark = declaration.benchmark
    setup = _make_benchmark_setup(declaration, settings, model, root)
    epochs = settings.epochs or declaration.epochs or 1
    if epochs < (declaration.at_least or 1):
        raise SettingsError(
            f"--epochs {epochs}: a sample of {benchmark.name} holds if at least {declaration.at_least} of its epochs do"
        )
    with _name_benchmark_in_errors(benchmark.name, "dataset"):
        dataset = benchmark.load(setup)
        if settings.answers:
            dataset = _replace_samples_by_traces(dataset, settings.answers, benchmark.name)
        if not dataset.samples:
            raise SettingsError(
                f"benchmark {benchmark.name} has no samples ({dataset.source}); without a case, every model would pass"
            )
        if not isinstance(dataset.samples, SampleStream):
            check_samples(benchmark.name, dataset.samples)
    with _name_benchmark_in_errors(benchmark.name, "solver"):
        answers = settings.answers
        solver = make_answers_solver(answers, benchmark.name) if answers else benchmark.solver(setup)
    with _name_benchmark_in_errors(benchmark.name, "scorers"):
        scorers = benchmark.scorers(setup)
    check_benchmark_parts(benchmark.name, solver, scorers)
    sorted_scorers = group_scorers(scorers)
    of_scorers = {name: metric for scorer in scorers for name, metric in getattr(scorer, "metrics", {}).items()}
    if taken := sorted(of_scorers.keys() & benchmark.derived.keys()):
        raise SettingsError(f"benchmark {benchmark.name}: a scorer and a metric over all cases give {taken[0]!r}")
    declared = DeclaredAndBuiltInMetrics(of_scorers | dict(benchmark.metrics), ())
    metrics = {name: declared.get(name, Metric()) for name in benchmark.derived} | declared
    return BoundBenchmark(
        declaration,
        setup,
        epochs,
        nodeid,
        format_declaration_place(benchmark, nodeid),
        _add_checker_agreement(dataset, setup.data, sorted_scorers),
        solver,
        scorers,
        sorted_scorers,
        {name: asdict(metric) for name, metric in metrics.items()},
        FaultInjector.from_texts([*settings.inject, *declaration.faults], settings.seed),
    )


def _make_benchmark_setup(declaration: Declaration, settings: Settings, model: str, root: Path) -> Setup:
    from evalsuite.gateway.concealment import make_public_settings

    declared = declaration.benchmark
    folder = (root / settings.data).resolve() / declared.name if settings.data else None
    data, modes = folder if folder and folder.is_dir() else None, choose_modes(declared, settings.mode)
    shortened = declaration.shipped if is_demonstration(declared, model, data, modes) else {}
    return Setup(
        model=model,
        judge=settings.judge_model,
        # Remove the login from the address, because a traceback with --showlocals would show the login.
        judge_base_url=make_public_settings(settings).judge_base_url,
        reports=root / settings.reports,
        data=data,
        modes=modes,
        seed=settings.seed,
        args={**declaration.args, **shortened},
    )


@contextmanager
def _name_benchmark_in_errors(benchmark: str, part: str) -> Iterator[None]:
    """Convert any exception to an error that names the benchmark and the part (such as its solver) being made."""
    try:
        yield
    except EvalsuiteError:
        raise
    except Exception as error:
        raise SettingsError(f"benchmark {benchmark}: its {part} cannot be made: {describe_error(error)}") from error


def _add_checker_agreement(dataset: Dataset, folder: Path | None, scorers: ScorerGroups) -> Dataset:
    """Add the scorers' measured agreement with the benchmark's own checker, if any, to a dataset's description."""
    if folder is None or not (folder / AGREEMENT).is_file():
        return dataset
    from evalsuite.benchmarks.checkers import Agreement

    measured = Agreement.read_agreement(folder)
    now = hash_scorers([*scorers.rules, *scorers.asynchronous])
    earlier = "" if measured.scorers == now else " (with other scorers or arguments)"
    return replace(dataset, source=f"{dataset.source}; scoring {measured.describe_agreement()}{earlier}")


def _replace_samples_by_traces(dataset: Dataset, file: str, benchmark: str) -> Dataset:
    """Replace samples by traces in a file of answers; a trace gets target and tags of the sample with the same id."""
    from evalsuite.models.answers import read_answers_file

    traces = read_answers_file(file).list_traces(benchmark)
    if not traces:
        return dataset
    sample_of = {sample.id: sample for sample in dataset.samples}
    samples = []
    for line in traces:
        declared = sample_of.get(str(line["id"]), Sample(line["id"], "?"))
        try:
            tags = {**declared.tags, **line.get("tags", {})}
            target = declared.target if line.get("target") is None else line["target"]
            samples.append(Sample(line["id"], line["input"], target, tags, declared.metadata))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise SettingsError(f"--answers {file}: the trace {line['id']!r:.80} cannot be read ({error})") from error
    return replace(dataset, samples=samples, source=f"traces in {file}")


def check_samples(benchmark: str, samples: Sequence[Sample]) -> None:
    """Check that each sample is a `Sample`, and that all ids differ; of lazy samples, check only the ids."""
    ids: Iterable[str]
    if isinstance(samples, LazySamples):
        ids = samples.ids
    else:
        for number, sample in enumerate(samples, 1):
            if not isinstance(sample, Sample):
                raise SettingsError(f"benchmark {benchmark}: sample {number} is {sample!r:.60}, not a Sample")
        ids = [sample.id for sample in samples]
    seen: set[str] = set()
    for id_ in ids:
        if id_ in seen:
            raise SettingsError(f"benchmark {benchmark}: two samples have the id {id_!r}; ids must be unique")
        seen.add(id_)


def choose_modes(declared: Benchmark, wanted: Sequence[str]) -> tuple[str, ...]:
    """Choose a benchmark's modes; `treb=pot` is for one benchmark, `pot` for every benchmark with this mode."""
    chosen = []
    for text in wanted:
        name, equals, mode = text.partition("=")
        if not equals and name in declared.modes:
            chosen.append(name)
        elif equals and name == declared.name:
            if not declared.modes:
                raise SettingsError(f"--mode {text}: {declared.name} has no modes")
            if mode not in declared.modes:
                listed = "\n".join(f"  {mode_name}: {what}" for mode_name, what in declared.modes.items())
                raise SettingsError(f"--mode {text}: {declared.name} has no mode {mode!r}. Its modes are:\n{listed}")
            chosen.append(mode)
    return tuple(dict.fromkeys(chosen)) or declared.default_modes
