"""Collection: turns a benchmark's function into cases, and applies the command line's selection."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from evalsuite.core.declarations import DECLARATION, FIXTURE
from evalsuite.core.errors import EvalsuiteError, SettingsError
from evalsuite.engine.checks import explain_missing_judge, explain_missing_sandbox, explain_unmet_option
from evalsuite.plugin.items import LEFT_OUT, MARK, get_case, is_skipped_benchmark, list_cases
from evalsuite.plugin.listener import LISTENER
from evalsuite.plugin.options import is_only_listing, is_requesting_cases, read_command_line_gates
from evalsuite.plugin.process import PROCESS
from evalsuite.plugin.pytest_internals import compile_keywords, has_parameters
from evalsuite.plugin.xdist import get_worker_data

PACKAGE = Path(__file__).parents[1]

NAMING = ("pytest_generate_tests", "pytest_itemcollected", "pytest_pycollect_makeitem", "pytest_collection_modifyitems")
"""Hooks with which a suite can add names to items before `-k` selects items."""


def _mark_function(function: object) -> None:
    """Mark a benchmark's function for pytest, and refuse benchmarks that are methods of a `unittest.TestCase`."""
    if isinstance(function, type) and hasattr(function, "assertEqual"):  # A `unittest.TestCase`.
        for name, method in vars(function).items():
            if hasattr(method, DECLARATION):
                raise pytest.Collector.CollectError(
                    f"@benchmark on {function.__name__}.{name}: unittest runs this method, which can have no cases; "
                    "write a function, or a class that does not inherit from TestCase"
                )
    plain = getattr(function, "__func__", function)
    declaration = plain.__dict__.get(DECLARATION) if isinstance(plain, FunctionType) else None
    marks = getattr(plain, "pytestmark", ())
    if declaration is not None and not any(mark.name == MARK for mark in marks):
        pytest.mark.usefixtures(FIXTURE)(plain)
        getattr(pytest.mark, MARK)(declaration)(plain)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the cases of a benchmark's function on this machine.

    If no model can be called and the command does not request cases, make one skipped item instead of the cases.
    """
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None:
        return
    from evalsuite.engine.bound import bind_benchmark
    from evalsuite.engine.cases import make_cases
    from evalsuite.engine.declaration import can_test_fail

    config = metafunc.config
    declaration = replace(mark.args[0], asserts=can_test_fail(metafunc.function))
    process, listener = config.stash[PROCESS], config.stash.get(LISTENER, None)
    settings, name = process.settings, process.model_name
    try:
        reason = _explain_uncallable_model(config)
        if reason and not is_requesting_cases(config):
            skipped = pytest.param(None, marks=pytest.mark.skip(reason), id=LEFT_OUT)
            metafunc.parametrize(FIXTURE, [skipped], indirect=True)
            return
        if reason:
            raise pytest.Collector.CollectError(reason)
        declared, nodeid = declaration.benchmark.name, metafunc.definition.nodeid
        first, pools = process.declaring_functions.setdefault(declared, (nodeid, declaration.pool))
        if nodeid != first and not (pools and declaration.pool):
            raise SettingsError(
                f"benchmark {declared} is declared in {first} and in {nodeid}, so their cases would be counted as one "
                "benchmark's: rename one of them, or write pool=True in both if that is meant"
            )
        bound = bind_benchmark(declaration, settings, name or "", config.rootpath, nodeid)
        process.functions.add(nodeid)
        may_be_selected = None if process.lists_all else _make_keyword_filter(metafunc)
        cases = make_cases(bound, settings, process.shard_assigner, may_be_selected)
    except EvalsuiteError as error:
        raise pytest.Collector.CollectError(str(error)) from error
    metafunc.parametrize(FIXTURE, cases, ids=[case.short_id for case in cases], indirect=True)
    if listener is not None:
        listener.live[nodeid] = declaration.benchmark


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> Generator[None, Any, Any]:
    """Mark a benchmark's function before pytest makes its items; afterwards, count its cases.

    The counts are of the cases that pytest made, and of those that `-k` excluded before.
    """
    _mark_function(obj)
    made = yield
    if cases := list_cases(made) if isinstance(made, list) else []:
        choice, collected = cases[0].choice, collector.config.stash[PROCESS].collected
        entry = collected.setdefault(cases[0].bound.name, {"cases": 0, "samples": 0, "of": 0})
        variants = len(cases) // len(set(map(id, cases)))  # Items per case; more than one if the test has parameters.
        entry["cases"] = (entry["cases"] or 0) + len(cases) + choice.left_out * variants
        entry["samples"] = (entry["samples"] or 0) + choice.samples
        entry["of"] = None if choice.of is None or entry["of"] is None else entry["of"] + choice.of
    return made


def _explain_uncallable_model(config: pytest.Config) -> str:
    """Explain why the model cannot be called; empty if it can be called, or if the session makes no calls."""
    if is_only_listing(config):
        return ""
    if LISTENER not in config.stash:
        # Use the reason that the controlling process sent, because workers have no API keys.
        return str(get_worker_data(config)[0]["unaskable"])
    return config.stash[LISTENER].explain_uncallable_model()


def _make_keyword_filter(metafunc: pytest.Metafunc) -> Callable[[str], bool] | None:
    """Return a function that tells whether `-k` may select a sample id; pytest makes the final selection.

    Return None, which stands for every id, if `-k` was not given or if items may have further names. Further names come
    from the test's parameters other than the case, or from hooks of the suite.
    """
    text = metafunc.config.option.keyword.strip()
    renaming = [each.plugin for hook in NAMING for each in getattr(metafunc.config.hook, hook).get_hookimpls()]
    is_renamed = any(str(getattr(plugin, "__file__", "")).endswith("conftest.py") for plugin in renaming)
    if not text or is_renamed or has_parameters(metafunc):
        return None
    matches, name = compile_keywords(text, metafunc.definition), metafunc.definition.name
    if matches is None:
        return None
    return lambda id_: matches(f"{name}[{id_}]")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Show file, line and message, not a traceback, if a test file's import raised one of evalsuite's errors."""
    report = yield
    # pytest stores the exception in this attribute for hooks such as `pytest_exception_interact`.
    call: pytest.CallInfo[None] | None = getattr(report, "call", None) if report.failed else None
    if call is not None and call.excinfo is not None and isinstance(call.excinfo.value, EvalsuiteError):
        # Leave out code without a file, such as the `__init__` that Python generates for a dataclass.
        files = ((entry, Path(entry.path)) for entry in call.excinfo.traceback)
        places = [entry for entry, file in files if file.is_file() and not file.is_relative_to(PACKAGE)]
        place = f"{Path(places[-1].path).name}:{places[-1].lineno + 1}: " if places else ""
        report.longrepr = f"{place}{call.excinfo.value}"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Refuse gates and `--mode` options that apply to none of the collected cases, before any case runs."""
    for item in items:
        # Add the values of `pytest.mark.parametrize`, if the benchmark's function has this mark, to the case's sample.
        case = get_case(item)
        parameters: dict[str, object] = getattr(item, "callspec").params if case is not None else {}  # noqa: B009
        own = {name: value for name, value in parameters.items() if name != FIXTURE}
        if case is not None and own:
            parameters[FIXTURE] = case.add_parameters(own, item.nodeid)
    config = session.config
    process = config.stash[PROCESS]
    settings = process.settings
    gates: Sequence[str] = read_command_line_gates(config)
    if is_only_listing(config):
        settings, gates = replace(settings, gate=()), ()
    if not (settings.mode or settings.gate):
        return
    from evalsuite.engine.cases import MOST_CASES

    is_whole = process.part is None or process.shard_assigner.counted <= MOST_CASES
    _exit_for_problem(session, items, explain_unmet_option(list_cases(items), settings, gates, is_whole=is_whole))


def _exit_for_problem(session: pytest.Session, items: list[pytest.Item], problem: str) -> None:
    if not problem:
        return
    if LISTENER in session.config.stash:
        raise pytest.UsageError(problem)
    items.clear()
    session.ihook.pytest_collectreport(report=pytest.CollectReport("", "failed", problem, []))


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def pytest_choose_items(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select this machine's shard and set the run's order, after -k and -m have selected items.

    Then check that the judge and the sandboxes for the selected cases are available.
    """
    process = config.stash[PROCESS]
    settings = process.settings
    if settings.shard or process.part is not None:
        # Plain tests run in the first part only.
        others = [
            item
            for item, case in zip(items, map(get_case, items), strict=True)
            if (case.placeholder if case is not None else (process.part or 1) > 1)
        ]
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=others)
    if settings.can_end_early:
        from evalsuite.engine.cases import order_items

        items[:] = order_items(items, get_case, settings, process.workers)
    if items and all(map(is_skipped_benchmark, items)):
        _exit_for_problem(session, items, str(next(items[0].iter_markers("skip")).args[0]))
    if (cases := list_cases(items)) and not is_only_listing(config):
        problem = explain_missing_judge(cases, settings) or explain_missing_sandbox(cases, settings)
        _exit_for_problem(session, items, problem)


def read_selection(config: pytest.Config) -> dict[str, Any]:
    """Return the command line's selection of tests."""
    by_path = config.args_source is pytest.Config.ArgsSource.ARGS
    args = list(config.args) if by_path else []
    return {"args": args, "keyword": config.option.keyword, "markexpr": config.option.markexpr}


def apply_selection(config: pytest.Config, selection: Mapping[str, Any]) -> None:
    """Make a session collect the same tests as an earlier session, or as the controlling process does."""
    if selection["args"]:
        config.args = selection["args"]
        config.args_source = pytest.Config.ArgsSource.ARGS
    config.option.keyword = selection["keyword"]
    config.option.markexpr = selection["markexpr"]
