"""The `@benchmark` decorator, which stores a benchmark's declaration on a test function."""

from __future__ import annotations

import dis
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.core.declarations import DECLARATION, being_imported, started_sessions
from evalsuite.core.entry_points import find_import_target, list_known_names, load_import_target
from evalsuite.core.errors import EvalsuiteError, SettingsError
from evalsuite.core.keywords import refuse_unknown_names
from evalsuite.core.protocols import AnySolver, Benchmark, Dataset, JudgedScorer, ModelScorer, Scorer, Setup
from evalsuite.core.types import CANARY, PASS_RATE, Metric, Sample
from evalsuite.engine.scoring import check_callable
from evalsuite.samples.lazy import LazySamples, SampleStream
from evalsuite.solvers.single_call import get_fixed_answer, return_fixed_answer

if TYPE_CHECKING:
    from evalsuite.output.reports.generic import CaseMetric, Measure

Test = TypeVar("Test", bound=Callable[..., Any])
PLUGIN_NOT_LOADED = (
    'evalsuite\'s plugin is not loaded: add the line  pytest_plugins = ["evalsuite.plugin"]  to the conftest.py '
    "in the root directory (or run pytest with -p evalsuite.plugin)"
)


@dataclass(frozen=True)
class Declaration:
    """The arguments of `@benchmark`."""

    benchmark: Benchmark  # Samples, solver and scorers.
    epochs: int | None = None  # Repetitions of each sample, unless the run sets the number; None means one.
    at_least: int | None = None  # Minimum number of passed epochs with which a sample passes; None means all epochs.
    args: Mapping[str, Any] = field(default_factory=dict)  # Arguments for the benchmark, passed in its `Setup`.
    # Arguments that replace those in `args` in a demonstration, see `is_demonstration`.
    shipped: Mapping[str, Any] = field(default_factory=dict)
    pool: bool = False  # Whether cases of benchmarks with the same name in several files are counted together.
    faults: Sequence[str] = ()  # Faults to inject, in the form of `--inject`.
    asserts: bool = True  # Whether the test can fail; if it cannot, its benchmark has no pass rate.


HARMLESS = {"print", "len", "str", "repr", "sorted", "round"}  # Built-in functions that are assumed not to raise.


def can_test_fail(test: Callable[..., object]) -> bool:
    """Tell whether a test function can fail, because it asserts, raises, or calls a function that might raise."""
    code = getattr(test, "__code__", None)
    if code is None:
        return True
    own, steps = getattr(test, "__globals__", {}), list(dis.get_instructions(code))
    calls = sum(step.opname.startswith("CALL") and not step.opname.startswith("CALL_INTRINSIC") for step in steps)
    harmless = sum(step.opname == "LOAD_GLOBAL" and step.argval in HARMLESS - own.keys() for step in steps)
    return calls > harmless or any(step.opname == "RAISE_VARARGS" for step in steps)


def benchmark(  # noqa: PLR0913 - a declaration's parts, given by name
    name: str | Benchmark,
    samples: Sequence[Sample] | Iterable[Sample] | Callable[[], Iterable[Sample]] | None = None,
    *,
    solver: AnySolver | None = None,
    scorers: Sequence[Scorer | JudgedScorer | ModelScorer] = (),
    epochs: int | None = None,
    at_least: int | None = None,
    shipped: Mapping[str, Any] | None = None,
    metrics: Sequence[CaseMetric | Measure] = (),
    canary: bool = False,
    pool: bool = False,
    cluster: str | Callable[[Sample], object] | None = None,
    faults: Sequence[str] = (),
    **args: Any,
) -> Callable[[Test], Test]:
    """Turn a test function into a benchmark: one pytest item per sample and epoch.

    The function is an ordinary test whose assertions are the threshold. The fixtures `sample`, `transcript`, `scores`,
    `model` and `judge` belong to one case. `evaluate` runs the same function without pytest.

    Args:
        name: lower-case identifier of the benchmark, as gates use it, or a `Benchmark`, which brings its own samples,
            solver and scorers. If `samples` is None, the name of a benchmark of evalsuite or of an installed package.
        samples: a list, `LazySamples`, or a generator or function that yields the samples, whose ids must be unique.
            With `--limit`, only the first samples of a generator are read.
        solver: a solver of evalsuite, or any plain or async function of (sample, model) that returns text or a
            Transcript. With None, the test itself calls the fixture `model`.
        scorers: functions or objects that score the transcripts.
        epochs: the number of repetitions of each sample, unless `--epochs` overrides the number.
        at_least: a sample passes if this many of its epochs pass; by default, all of them must pass.
        shipped: arguments that replace those in `args` if a `local:` model answers the shipped samples in the default
            modes, to keep a demonstration short.
        metrics: metrics over all cases at once, such as `macro_f1()` or any named function of a `Tally`. Gates may use
            these metrics. A `Benchmark` declares its own metrics as `derived`.
        canary: whether the cases test the judge. Each sample's metadata has a fixed `answer` and a human label,
            `human`. The model under test is not called, `--limit` keeps all cases, and the judge is compared with the
            baseline's judge.
        pool: whether cases count together with those of other files that declare the same name with `pool`. Without
            `pool`, evalsuite refuses a name that two files declare.
        cluster: a tag, a metadata entry, or a function of the sample. The value is equal for samples that depend on
            each other, such as questions about one document. Intervals and tests count clusters, not cases.
        faults: faults to inject into the calls of the model under test, in the form of `--inject`, such as
            `["status=529:5%"]`. A case's tag `fault` lists the kinds of its injected faults, or is `none`.
        args: arguments for the `Benchmark`, which finds them in `Setup.args`.

    Raises:
        SettingsError: the declaration is invalid.
    """
    _require_plugin()
    given: object = name
    if not isinstance(given, str | Benchmark):
        raise SettingsError("@benchmark needs arguments: write @benchmark('name', samples, solver=..., scorers=[...])")
    if isinstance(samples, str | Path):
        raise SettingsError(f"@benchmark({name!r}): samples is the path {str(samples)!r}; write load_samples(...)")
    if samples is not None and not isinstance(samples, Sequence):
        samples = SampleStream(samples)
    if canary:
        samples, solver = _check_and_tag_canaries(name, samples, solver), return_fixed_answer
    if isinstance(name, Benchmark):
        declared = name
    elif samples is None:
        declared = find_benchmark(name)
    else:
        own = inspect.signature(benchmark).parameters.keys() - {"args"}
        refuse_unknown_names(benchmark, {**args, **(shipped or {})}, own)
        declared = Benchmark(
            name=name,
            title=name,
            load=lambda _: Dataset(_add_solver_tags(samples, solver), "samples in the test file"),
            solver=lambda _: solver,  # type: ignore[arg-type, return-value] # None: the test asks by itself
            scorers=lambda _: scorers,
            **_make_case_metric_arguments(name, metrics),
        )
    if cluster is not None:
        declared = replace(declared, load=partial(_load_clustered_samples, declared.load, cluster))
    _check_declaration(declared, epochs, at_least)
    listed = (faults,) if isinstance(faults, str) else tuple(faults)
    declaration = Declaration(declared, epochs, at_least, args, shipped or {}, pool, listed)

    def attach_declaration(test: Test) -> Test:
        setattr(_get_undeclared_function(test, declared.name), DECLARATION, declaration)
        return test

    return attach_declaration


def _get_undeclared_function(test: object, name: str) -> object:
    """Return the function of a test (perhaps a static method), and check that it has no declaration yet."""
    function = getattr(test, "__func__", test)
    if not inspect.isfunction(function):
        raise SettingsError(f"@benchmark({name!r}) belongs on a test function, not on {test!r:.80}")
    if DECLARATION in vars(function):
        raise SettingsError(f"@benchmark({name!r}): {function.__name__} has a benchmark already; write two functions")
    return function


def find_benchmark(name: str) -> Benchmark:
    """Find a benchmark of evalsuite or of an installed package by name; raise `SettingsError` if it is unknown."""
    target = find_import_target("evalsuite.benchmarks", name)
    if target is None:
        there_are = ", ".join(list_known_names("evalsuite.benchmarks"))
        raise SettingsError(
            f"@benchmark({name!r}) has no samples, and no installed package offers a benchmark of this name; "
            f"there are {there_are}"
        )
    declared = load_import_target(target)
    if not isinstance(declared, Benchmark) or declared.name != name:
        raise SettingsError(f"@benchmark({name!r}): {target} is not a Benchmark named {name!r}")
    return declared


def _check_declaration(declared: Benchmark, epochs: int | None, at_least: int | None) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", declared.name):
        raise SettingsError(
            f"@benchmark({declared.name!r}): a name is lower-case letters, digits and _, so that gates can use it"
        )
    for name, count in (("epochs", epochs), ("at_least", at_least)):
        if not isinstance(count, int | None):
            raise SettingsError(f"@benchmark({declared.name!r}): {name}={count!r} is not a whole number")
    if epochs is not None and epochs < 1:
        raise SettingsError(f"@benchmark({declared.name!r}): epochs={epochs} must be at least 1")
    if at_least is not None and not 1 <= at_least <= (epochs or 1):
        raise SettingsError(
            f"@benchmark({declared.name!r}): at_least={at_least} must be between 1 and epochs={epochs or 1}"
        )
    for name, metric in declared.derived.items():
        check_callable(getattr(metric, "measure", metric), "a metric takes one argument, a Tally", 1)
        from evalsuite.results.built_in import find_built_in_metric

        if name == PASS_RATE or find_built_in_metric(name) is not None:
            raise SettingsError(f"@benchmark({declared.name!r}): every benchmark has a metric {name!r}; rename it")


def _add_solver_tags(samples: Sequence[Sample], solver: AnySolver | None) -> Sequence[Sample]:
    """Add the tags of a solver, if it has any, to samples, whose own tags take precedence."""
    tags: Any = getattr(solver, "tags", None)
    is_tagged = tags and isinstance(tags, Mapping)
    return _replace_tags(samples, lambda sample: {**tags, **sample.tags}) if is_tagged else samples


def _load_clustered_samples(
    load_dataset: Callable[[Setup], Dataset], cluster: str | Callable[[Sample], object], setup: Setup
) -> Dataset:
    def add_cluster_tag(sample: Sample) -> dict[str, str]:
        value = cluster(sample) if callable(cluster) else sample.tags.get(cluster, sample.metadata.get(cluster))
        if value is None or str(value) == "":
            named = f"no {cluster!r} among its tags and metadata" if isinstance(cluster, str) else "no cluster"
            raise SettingsError(f"sample {sample.id} has {named}, which @benchmark(cluster=...) asks for")
        return {**sample.tags, "cluster": str(value)}

    dataset = load_dataset(setup)
    return replace(dataset, samples=_replace_tags(dataset.samples, add_cluster_tag))


def _replace_tags(samples: Sequence[Sample], make_tags: Callable[[Sample], Mapping[str, str]]) -> Sequence[Sample]:
    if isinstance(samples, LazySamples):
        return samples.tagged(make_tags)
    tagged = (replace(sample, tags=make_tags(sample)) for sample in samples)
    return SampleStream(tagged) if isinstance(samples, SampleStream) else list(tagged)


def _check_and_tag_canaries(
    name: str | Benchmark, samples: Sequence[Sample] | None, solver: AnySolver | None
) -> Sequence[Sample]:
    """Check the samples of cases that test the judge (canaries), and return them with a tag."""
    if samples is None or solver is not None:
        raise SettingsError(
            f"@benchmark({name!r:.60}, canary=True) takes samples with fixed answers, and no solver: write answers "
            "into their metadata, under 'answer'"
        )
    from evalsuite.judges.judgements import check_labels

    for sample in samples:
        try:
            get_fixed_answer(sample)
            check_labels(sample)
        except EvalsuiteError as error:
            raise SettingsError(f"@benchmark({name!r}, canary=True): {error}") from error
    return [replace(sample, tags={**sample.tags, CANARY: "judge"}) for sample in samples]


def _make_case_metric_arguments(name: str, metrics: Sequence[CaseMetric | Measure]) -> dict[str, Any]:
    """Make the arguments `derived`, `report` and `metrics` of a `Benchmark` from its metrics over all cases."""
    if not metrics:
        return {}
    from evalsuite.output.reports.generic import make_case_metric, make_report_function

    read = list(map(make_case_metric, metrics))
    derived = {metric.name: metric for metric in read}
    if len(derived) < len(read):
        names = [metric.name for metric in read]
        twice = next(each for each in names if names.count(each) > 1)
        raise SettingsError(f"@benchmark({name!r}): two metrics have the name {twice!r}; give one of them another name")
    return {
        "derived": derived,
        "report": make_report_function(read, name),
        "metrics": {one.name: Metric(one.range, "lower" if one.lower_is_better else "higher") for one in read},
    }


def _require_plugin() -> None:
    """Raise a short error when pytest collects the decorated function although evalsuite's plugin is not loaded."""
    pytest: Any = sys.modules.get("pytest")
    if pytest and "PYTEST_VERSION" in os.environ and not started_sessions and not being_imported:
        raise pytest.Collector.CollectError(PLUGIN_NOT_LOADED)
