"""`evaluate`: runs a benchmark from a script or a notebook, without pytest.

The run has the same folder, journal, records and report as a pytest run, so `evaluate` and pytest can resume or replay
each other's runs.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core import errors
from evalsuite.core.declarations import DECLARATION, FIXTURE
from evalsuite.core.errors import RunError, SettingsError
from evalsuite.core.keywords import refuse_unknown_names
from evalsuite.core.protocols import Benchmark
from evalsuite.core.settings import OPTIONS, Settings, make_settings
from evalsuite.engine import checks
from evalsuite.engine.bound import bind_benchmark
from evalsuite.engine.case_record import CaseFindings, describe_assertion, provide_model
from evalsuite.engine.cases import Case, ShardAssigner, make_cases, order_items
from evalsuite.engine.declaration import Declaration, can_test_fail, find_benchmark
from evalsuite.engine.open_run import ActiveRun
from evalsuite.engine.preparation import MODELS, prepare_run
from evalsuite.engine.solving import Prefetcher, RunModels, UpcomingCases, compute_window_size
from evalsuite.gateway.concealment import make_public_settings
from evalsuite.results.run_folders import REPORT
from evalsuite.results.runs import Run

if TYPE_CHECKING:
    from evalsuite.decisions.verdict import Status, Verdict
    from evalsuite.journal.planned import PlannedCase
    from evalsuite.output.reports.write import RunReport

FIXTURES = ("sample", "transcript", "scores", "model", "judge", "endpoint")
"""Fixtures that a test function may take if it runs without pytest."""

PYTEST_MARKS = {"parametrize", "usefixtures", "skip", "skipif", "xfail"}
"""Marks that change which tests run, or how; only pytest applies them."""

COMMAND_LINE_OPTIONS = {"plan", "detect", "allow_plain_workers"}
SHORT_NAMES = {"judge": "judge_model", "user": "user_model"}
SELECTION = {"args": [], "keyword": "", "markexpr": ""}  # The selection of a pytest command that selects all tests.


def evaluate(
    benchmark: str | Benchmark | Callable[..., Any],
    *,
    model: str | Callable[..., Any] | None = None,
    judge: str | Callable[..., Any] | None = None,
    limit: int | None = None,
    epochs: int | None = None,
    gates: Sequence[str] = (),
    **settings: Any,
) -> EvaluatedRun:
    """Run a benchmark and return its run, with records, verdict and report.

    A function decorated with `@benchmark` runs once per case, as under pytest, so the records are the same. The
    function may take `sample`, `transcript`, `scores`, `model`, `judge` and `endpoint`. A function with other fixtures
    or with marks for pytest is refused, because only pytest can provide these. A `Benchmark` or a name has no test
    function, so every scored case passes.

    If an event loop is running (in a notebook or an async function), `evaluate` returns at once and a new thread runs
    the cases. To wait for the end, `await` the returned run or read one of its results. In a script, `evaluate` waits
    for the run's end. An interruption ends the run; received answers are kept, and `resume` continues the run.

    Args:
        benchmark: a decorated function, a `Benchmark`, or the name of a benchmark of evalsuite or an installed package.
        model: the model under test, in the form of `--model`; or a function of messages that returns text.
        judge: the judge, in the same form as `model`.
        limit: number of samples; None means all samples.
        epochs: the number of repetitions of each sample.
        gates: conditions on metrics, in the form of `--gate`.
        settings: other options of pytest by their names, such as `resume`, `replay`, `baseline`, `reports`, `run`,
            `data`, `mode`, `max_connections` and `max_cost`. Repeatable options take a list, and options of the form
            NAME=VALUE take a mapping. Relative paths are relative to the current folder.

    Raises:
        EvalsuiteError: an argument is invalid, the model cannot be called, or the run cannot be stored.
    """
    given = {"model": model, "judge": judge, "limit": limit, "epochs": epochs, "gates": gates, **settings}
    evaluation = _Evaluation(benchmark, _convert_arguments(given))
    run = EvaluatedRun(evaluation)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        evaluation.run_to_verdict()
        run.wait()
    else:
        threading.Thread(target=evaluation.run_to_verdict, name="evalsuite-run").start()
    return run


class EvaluatedRun(Run):
    """A `Run` made by `evaluate`, with its verdict; reading a result waits for the run's end."""

    _evaluation: _Evaluation

    def __init__(self, evaluation: _Evaluation) -> None:
        # Bypass `__setattr__`, because the base class `Run` is frozen.
        object.__setattr__(self, "_evaluation", evaluation)

    def wait(self) -> RunReport:
        """Wait for the run's end."""
        try:
            return self._evaluation.ending.result()
        except KeyboardInterrupt:
            self._evaluation.stop_run("interrupted from the keyboard")
            raise

    def __getattr__(self, name: str) -> Any:
        """Wait for the run's end, and read an attribute of the finished run."""
        if name not in Run.__slots__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.wait().run, name)

    def __await__(self) -> Generator[Any, None, EvaluatedRun]:
        """Wait for the run's end without blocking the event loop."""
        try:
            yield from asyncio.shield(asyncio.wrap_future(self._evaluation.ending)).__await__()
        except asyncio.CancelledError:
            self._evaluation.stop_run("interrupted: nobody awaits it any more")
            raise
        return self

    @property
    def verdict(self) -> Verdict:
        """The verdict of the gates and of the comparison with the baseline."""
        return self.wait().verdict

    @property
    def status(self) -> Status:
        """The exit status that a pytest session with this result would have."""
        self.wait()
        status = self._evaluation.run.status
        assert status is not None  # noqa: S101 - the run has ended
        return status

    @property
    def report(self) -> Path:
        """The path of the report in Markdown; `report.html` is in the same folder."""
        return self.folder.path / REPORT

    def __repr__(self) -> str:
        """Show the run's name and verdict, or its progress if it is not finished."""
        evaluation = self._evaluation
        name = evaluation.run.folder.name
        if not evaluation.ending.done():
            return f"<run {name}, {evaluation.done} of {len(evaluation.cases)} cases so far>"
        return f"<run {name}: {self.verdict.headline}, {len(evaluation.cases)} cases, {self.report}>"

    def _repr_html_(self) -> str:
        from evalsuite.output.reports.write import make_short_html

        return make_short_html(self.wait(), self.report)


class _Evaluation:
    """One call of `evaluate`: prepares a run, runs its cases, and decides the verdict."""

    def __init__(self, given: str | Benchmark | Callable[..., Any], values: Mapping[str, Any]) -> None:
        root = Path.cwd()
        declaration, self._test = _find_declaration(given)
        self._nodeid = _make_node_id(self._test, root) if self._test else declaration.benchmark.name
        settings = make_settings(values)
        call, given_models = _format_call(self._nodeid, settings), settings.given & set(MODELS)
        self._spec = prepare_run(settings, root, call, SELECTION, given_models=given_models)
        self._settings, self._model = self._spec.settings, self._spec.model or ""
        self.ending: Future[RunReport] = Future()  # Receives the run's report.
        self.done = 0  # The number of finished cases.
        self._stopped = ""
        try:
            self.cases = self._make_cases(declaration, root)
        except BaseException:
            if self._spec.lease is not None:
                self._spec.lease.release()
            raise
        self.run = self._open_run(declaration.benchmark)

    def _make_cases(self, declaration: Declaration, root: Path) -> list[Case]:
        settings, assignment = self._settings, ShardAssigner(self._settings.shard)
        checks.check_callability(settings, self._spec.model)
        bound = bind_benchmark(declaration, settings, self._model, root, self._nodeid)
        cases = [case for case in make_cases(bound, settings, assignment) if not case.placeholder]
        if not cases:
            raise SettingsError(f"shard {settings.shard} has no case of {bound.name}")
        problem = (
            checks.explain_unmet_option(cases, settings, settings.gate)
            or checks.explain_missing_judge(cases, settings)
            or checks.explain_missing_sandbox(cases, settings)
        )
        if problem:
            raise SettingsError(problem)
        return order_items(cases, lambda case: case, settings, workers=1)

    def _open_run(self, benchmark: Benchmark) -> ActiveRun:
        settings = self._settings
        plan: Iterable[PlannedCase] = (
            one.make_plan_row(_format_case_name(one), settings, self._model) for one in self.cases
        )
        # Make the plan a list if it is read twice; otherwise, the whole plan need not be in memory.
        plan = list(plan) if settings.can_end_early else plan
        order = [planned.case for planned in plan] if settings.can_end_early else []
        choice, size = self.cases[0].choice, len(self.cases)
        collected = {"cases": size, "selected": size, "samples": choice.samples, "of": choice.of}
        try:
            return ActiveRun(
                self._spec,
                plan,
                order,
                selection={"narrowed": False, "collected": {benchmark.name: collected}},
                live={self._nodeid: benchmark},
                stop=self.stop_run,
            )
        except OSError as error:
            raise RunError(f"the run cannot begin: {errors.describe_exception(error)}") from error

    def stop_run(self, reason: str) -> None:
        """End the run after the current case."""
        self._stopped = self._stopped or reason

    def run_to_verdict(self) -> None:
        """Run all cases and decide the verdict; the future `ending` receives the report or the exception."""
        interruption: BaseException | None = None
        try:
            try:
                self._run_cases()
            except KeyboardInterrupt as error:
                interruption = error
                self.stop_run("interrupted from the keyboard")
            self.run.finish_run(None if self.run.early.has_ended else self._stopped or None, len(self.cases))
        except OSError as error:
            self.ending.set_exception(RunError(f"the run cannot be kept: {errors.describe_exception(error)}"))
        except BaseException as error:  # noqa: BLE001 - whoever waits for the run gets it
            self.ending.set_exception(error)
        else:
            assert self.run.report is not None  # noqa: S101 - it is concluded
            self.ending.set_result(self.run.report)
        finally:
            self.run.close()
        if interruption is not None:
            raise interruption

    def _run_cases(self) -> None:
        background = self.run.background
        models = RunModels(self.run.gateway, self._settings, checks.require_model_name(self._spec.model))
        # Take any case, because all cases have the same benchmark and so the same solver.
        is_solved = self.cases[0].bound.solver is not None
        queue = UpcomingCases({case: case if is_solved else None for case in self.cases})
        prefetcher = Prefetcher(background, models, queue, compute_window_size(self._settings))
        notices, shown = self.run.gateway.notices, 0
        try:
            with _make_progress_bar(self.cases[0].bound.name, len(self.cases)) as bar:
                for case in self.cases:
                    if self._stopped:
                        return
                    queue.move_to(case)
                    prefetcher.begin_case(case if is_solved else None)
                    self._run_case(case, prefetcher, models)
                    self.done += 1
                    if bar is not None:
                        for notice in notices[shown:]:
                            bar.write(notice, file=sys.stderr)
                        shown = len(notices)
                        bar.update()
        finally:
            background.run(prefetcher.aclose())

    def _run_case(self, case: Case, prefetcher: Prefetcher, models: RunModels) -> None:
        findings = CaseFindings(case)
        try:
            self._score_and_test_case(findings, prefetcher, models)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a case's code raises is the case's error
            self._record_error(error, findings)
        name = _format_case_name(case)
        self.run.store_record(name, findings.make_storable_record(name, self._settings, self._model))

    def _score_and_test_case(self, findings: CaseFindings, prefetcher: Prefetcher, models: RunModels) -> None:
        case = findings.case
        if case.bound.solver is not None:
            solved = prefetcher.wait_for_result(case)
            if isinstance(solved.error, errors.BatchNotAwaited):
                # Skip the case, because a later session will collect its answer from a batch.
                findings.outcome = "skipped"
                return
            findings.score_case(solved)
        if self._test is None:
            return
        with ExitStack() as stack:
            names = inspect.signature(self._test).parameters
            values = {name: self._make_fixture_value(name, findings, models, stack) for name in names}
            try:
                self._test(**values)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - pytest.skip() and pytest.fail() raise no Exception
                self._record_error(error, findings, in_test=True)

    def _make_fixture_value(self, name: str, findings: CaseFindings, models: RunModels, stack: ExitStack) -> Any:
        if name == "sample":
            return findings.case.sample
        if name == "transcript":
            return findings.get_transcript()
        if name == "scores":
            return findings.get_scores()
        loop, nodeid = self.run.background.loop, findings.case.id
        asked = stack.enter_context(provide_model(models, loop, nodeid, findings, is_judge=name == "judge"))
        return asked.endpoint() if name == "endpoint" else asked

    def _record_error(self, error: BaseException, findings: CaseFindings, *, in_test: bool = False) -> None:
        message = describe_assertion(error) if isinstance(error, AssertionError) else errors.get_message(error)
        findings.record_error(error, message, self._settings, self._spec.quarantine, in_test=in_test)


def _make_progress_bar(name: str, total: int) -> AbstractContextManager[Any]:
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return nullcontext()
    try:
        with warnings.catch_warnings():
            # Ignore tqdm's warning in a notebook without ipywidgets, where tqdm shows text instead.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return nullcontext()
    bar: AbstractContextManager[Any] = tqdm(total=total, desc=name, unit="case")
    return bar


def _convert_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    options = {option.name: option for option in OPTIONS if option.name not in COMMAND_LINE_OPTIONS}
    plural = {f"{name}s": name for name, option in options.items() if option.repeat}
    values: dict[str, Any] = {}
    for argument, value in given.items():
        name = SHORT_NAMES.get(argument) or plural.get(argument, argument)
        refuse_unknown_names("evaluate()", [name], options)
        if isinstance(value, Mapping):
            pairs = value.items()
            values[name] = [f"{key}={inner if isinstance(inner, str) else json.dumps(inner)}" for key, inner in pairs]
        elif callable(value):
            values[name] = _format_function_as_model(value)
        else:
            values[name] = [value] if options[name].repeat and isinstance(value, str) else value
    return values


def _format_function_as_model(function: Callable[..., Any]) -> str:
    """Return the name `function:MODULE:NAME`, by which `--model` finds a function."""
    module, name = function.__module__, getattr(function, "__qualname__", "<")
    if getattr(sys.modules.get(module), name, None) is not function:
        raise SettingsError(
            f"model={function!r:.80}: a function that is asked as a model must stand at the top level of a module"
        )
    return f"function:{module}:{name}"


def _find_declaration(given: str | Benchmark | Callable[..., Any]) -> tuple[Declaration, Callable[..., Any] | None]:
    if isinstance(given, str):
        return Declaration(find_benchmark(given)), None
    if isinstance(given, Benchmark):
        return Declaration(given), None
    declaration = getattr(given, DECLARATION, None)
    if not isinstance(declaration, Declaration):
        raise SettingsError(f"evaluate({given!r:.60}): give a function with @benchmark(...), a Benchmark, or its name")
    if problem := _explain_need_of_pytest(given):
        raise SettingsError(
            f"evaluate({given.__qualname__}): the function {problem}, which needs pytest: run `pytest`, or give its "
            "Benchmark in place of the function to have its cases scored without thresholds"
        )
    return replace(declaration, asserts=can_test_fail(given)), given


def _explain_need_of_pytest(test: Callable[..., Any]) -> str:
    """Explain why only pytest can run a test function; empty if `evaluate` can run it, too."""
    if others := [name for name in inspect.signature(test).parameters if name not in FIXTURES]:
        return f"takes {', '.join(others)}"
    if inspect.iscoroutinefunction(test) or inspect.isgeneratorfunction(test):
        return "is not a plain function"
    # Ignore the fixture mark that the plugin itself adds when it collects the function.
    marks = {mark.name for mark in getattr(test, "pytestmark", ()) if mark.args != (FIXTURE,)} & PYTEST_MARKS
    return f"is marked with {', '.join(sorted(marks))}" if marks else ""


def _make_node_id(test: Callable[..., Any], root: Path) -> str:
    """Return the node id that pytest would give a function; outside of `root`, the id begins with the module's name."""
    plain = inspect.unwrap(test)
    file = Path(plain.__code__.co_filename)
    is_below = file.is_file() and file.resolve().is_relative_to(root.resolve())
    place = file.resolve().relative_to(root.resolve()).as_posix() if is_below else plain.__module__
    return "::".join([place, *plain.__qualname__.split(".")])


def _format_case_name(case: Case) -> str:
    """Return a case's name with non-ASCII characters escaped, as pytest writes it."""
    own = case.id.removeprefix(case.bound.nodeid)
    return case.bound.nodeid + own.encode("unicode_escape").decode("ascii")


def _format_call(name: str, settings: Settings) -> str:
    """Write the call of `evaluate` as Python code for the report, without secrets."""
    plain = make_public_settings(settings).plain()
    arguments: Iterator[str] = (f"{option}={plain[option]!r}" for option in sorted(settings.given))
    return f"evaluate({', '.join([repr(name), *arguments])})"
