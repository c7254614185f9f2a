"""Finds modes, gates and margins on the command line that no collected case has, before any case runs."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from evalsuite.plugin.collection.refusal import refuse
from evalsuite.plugin.marks import case_of, is_left_out
from evalsuite.plugin.session.process_state import PROCESS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from evalsuite.decisions.conditions import Gate
    from evalsuite.plugin.collection.cases import Case


def check_asked(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Checks that the modes and gates apply to some of the collected cases.

    Raises:
        pytest.UsageError: one has not (see `refuse`).
    """
    settings = session.config.stash[PROCESS].settings
    bare = [mode for mode in settings.mode if "=" not in mode]
    # Gates of an ini file may be about cases that this command does not collect: they are decided at the end.
    collected_only = session.config.option.collectonly
    gates = () if collected_only else session.config.getoption("evalsuite_gate") or ()
    named = () if collected_only else settings.gate
    margins = () if collected_only else session.config.getoption("evalsuite_margin") or ()
    if not bare and not named and not margins:
        return
    cases = [case for item in items if (case := case_of(item)) is not None]
    problem = cases and (
        _unknown_mode(bare, cases)
        or _baseless_gate(gates, cases)
        or _unknown_metric(named, cases)
        or _margin_of_nothing(margins, cases)
    )
    if problem:
        refuse(session, items, problem)


def check_others(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Checks that a session that skips cases for want of a model has other tests to run.

    Raises:
        pytest.UsageError: it has none (see `refuse`).
    """
    if items and all(map(is_left_out, items)):
        refuse(session, items, str(next(items[0].iter_markers("skip")).args[0]))


def check_judge(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Checks that there is a judge for the cases that will run, if they ask one.

    Raises:
        pytest.UsageError: there is none (see `refuse`).
    """
    from evalsuite.engine.scorer_kinds import asks_the_judge

    settings, options = session.config.stash[PROCESS].settings, session.config.option
    if settings.judge_model or settings.plan or options.collectonly or options.setupplan:
        return
    bounds = {case.bound: None for item in items if (case := case_of(item)) is not None}
    judged = sorted({bound.name for bound in bounds if any(map(asks_the_judge, bound.scorers))})
    if judged:
        refuse(
            session,
            items,
            f"{' and '.join(judged)}: a scorer asks a judge, and this run has none: name one with --judge-model. "
            "Nothing was asked; to run the other cases alone, deselect these with -k",
        )


def _unknown_mode(modes: Sequence[str], cases: Sequence[Case]) -> str:
    benchmarks = {case.bound.name: case.bound.declaration.benchmark for case in cases}
    for mode in modes:
        # A benchmark may accept more modes than it lists, such as those with numbers in them.
        if not any(mode in benchmark.modes for benchmark in benchmarks.values()):
            lines = [
                f"  {name}={listed_mode}: {what}"
                for name, benchmark in benchmarks.items()
                for listed_mode, what in benchmark.modes.items()
            ]
            there_are = "\n".join(lines) or "  none"
            return f"--mode {mode}: no benchmark of this run knows the mode {mode!r}. There are:\n{there_are}"
    return ""


def _baseless_gate(texts: Sequence[str], cases: Sequence[Case]) -> str:
    from evalsuite.decisions.conditions import JUDGE, parse_gates
    from evalsuite.decisions.misspelt import near

    names = {case.bound.name for case in cases}
    for gate in parse_gates(texts):
        if gate.benchmark not in {"*", JUDGE, *names}:
            return f"--gate '{gate.text}': no case of {gate.benchmark} is here{near(gate.benchmark, names)}"
        concerned = [case for case in cases if gate.benchmark == JUDGE or gate.covers(case.bound.name)]
        tags = {pair for case in concerned for pair in case.sample.tags.items()}
        if gate.value and not _has_tag(gate, tags):
            wanted = f"{gate.tag}={gate.value}" if gate.tag else gate.value
            tags_present = {f"{tag}={value}" if gate.tag else value for tag, value in tags}
            return f"--gate '{gate.text}': no case of {gate.benchmark} has the tag {wanted}{near(wanted, tags_present)}"
    return ""


def _unknown_metric(texts: Sequence[str], cases: Sequence[Case]) -> str:
    """A gate on a metric that a collected benchmark does not have, as far as its scorers declare all of theirs."""
    from evalsuite.decisions.conditions import parse_gates
    from evalsuite.decisions.measured import PASS_RATE
    from evalsuite.decisions.misspelt import near
    from evalsuite.results.built_in import built_in

    bounds = {case.bound.name: case.bound for case in cases}
    for gate in parse_gates(texts):
        bound = bounds.get(gate.benchmark)
        if bound is None or gate.metric in {"*", PASS_RATE} or built_in(gate.metric) is not None:
            continue
        metrics = bound.every_metric
        if metrics is not None and not any(fnmatchcase(gate.metric, name) for name in metrics):
            return f"gate '{gate.text}': no such metric{near(gate.metric, {*metrics, PASS_RATE})}"
    return ""


def _margin_of_nothing(texts: Sequence[str], cases: Sequence[Case]) -> str:
    """A margin of a metric that no collected benchmark has, as far as all of their scorers declare theirs."""
    from evalsuite.core.option_values import parse_margin
    from evalsuite.decisions.measured import PASS_RATE
    from evalsuite.decisions.misspelt import near
    from evalsuite.results.built_in import built_in

    metrics = {case.bound.name: case.bound.every_metric for case in cases}
    if any(names is None for names in metrics.values()):
        return ""
    metrics_present = {name for names in metrics.values() for name in names or ()} | {PASS_RATE}
    metrics_present |= {
        f"{benchmark}.{name}" for benchmark, names in metrics.items() for name in (*(names or ()), PASS_RATE)
    }
    for text in texts:
        name, _ = parse_margin(text)
        if name not in metrics_present and built_in(name.rpartition(".")[2]) is None:
            return f"--margin {text}: no such metric{near(name, metrics_present)}"
    return ""


def _has_tag(gate: Gate, tags: set[tuple[str, str]]) -> bool:
    return any(value == gate.value and gate.tag in {None, tag} for tag, value in tags)
