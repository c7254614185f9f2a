"""Checks of the chosen cases before the first call: modes, gates, margins, a judge, a sandbox.

Each function returns what the user has to change, and an empty text if nothing has to be changed.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from evalsuite.core.errors import SandboxUnavailable
from evalsuite.core.phrases import number_of
from evalsuite.engine.scoring import asks_the_judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.settings import Settings
    from evalsuite.decisions.conditions import Gate
    from evalsuite.engine.cases import Case
    from evalsuite.sandbox import Sandbox


def find_unmet_option(
    cases: Sequence[Case], settings: Settings, gates: Sequence[str] = (), margins: Sequence[str] = ()
) -> str:
    """Find a mode, gate or margin that applies to no case.

    Args:
        cases: those that were collected.
        settings: the run's. Its gates are checked for metrics alone, because those of an ini file may be about cases
            that a command does not collect.
        gates: those of this command.
        margins: those of this command.
    """
    bare = [mode for mode in settings.mode if "=" not in mode]
    return (
        _unknown_mode(bare, cases)
        or _gate_without_cases(gates, cases)
        or _unknown_metric(settings.gate, cases)
        or _margin_without_metric(margins, cases)
        if cases
        else ""
    )


def find_missing_judge(cases: Sequence[Case], settings: Settings) -> str:
    """Find cases that ask a judge in a run that has none."""
    if settings.judge_model or settings.plan:
        return ""
    bounds = {case.bound: None for case in cases}
    names = sorted({bound.name for bound in bounds if any(map(asks_the_judge, bound.scorers))})
    if not names:
        return ""
    return (
        f"{' and '.join(names)}: a scorer asks a judge, and this run has none: name one with --judge-model. "
        "Nothing was asked; to run the other cases alone, deselect these with -k"
    )


def find_missing_sandbox(cases: Sequence[Case], settings: Settings) -> str:
    """Try each kind of sandbox that the cases need, and find one that does not work on this machine."""
    needing: dict[Sandbox, list[Case]] = {}
    for case in cases:
        for sandbox in case.sandboxes():
            needing.setdefault(sandbox, []).append(case)
    if not needing:
        return ""
    import asyncio

    from evalsuite.sandbox.environments import environment
    from evalsuite.sandbox.tiers import TIERS, read_tiers

    tried = set()
    for sandbox, affected in needing.items():
        try:
            sandbox.prefer(environment(settings.program_env), read_tiers(settings.sandbox))
            # Each sandbox must find out what is installed on a remote machine.
            is_remote = not set(sandbox.tiers) & set(TIERS)
            if is_remote or (sandbox.tiers, sandbox.environment.packages) not in tried:
                asyncio.run(sandbox.probe())
        except SandboxUnavailable as error:
            names = ", ".join(sorted({case.bound.name for case in affected}))
            return (
                f"programs that a model writes run in {number_of(len(affected), 'case')} of {names}: {error}\n"
                "Nothing was asked and nothing was paid. `evalsuite doctor` says what works here; to run the other "
                "cases alone, deselect these with -k, or choose a mode without programs (--mode treb=tcot)."
            )
        tried.add((sandbox.tiers, sandbox.environment.packages))
    return ""


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


def _gate_without_cases(texts: Sequence[str], cases: Sequence[Case]) -> str:
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


def _has_tag(gate: Gate, tags: set[tuple[str, str]]) -> bool:
    return any(value == gate.value and gate.tag in {None, tag} for tag, value in tags)


def _unknown_metric(texts: Sequence[str], cases: Sequence[Case]) -> str:
    """Find a gate on a metric that its benchmark lacks, if all scorers of the benchmark declare theirs."""
    from evalsuite.decisions.conditions import parse_gates
    from evalsuite.decisions.measured import PASS_RATE
    from evalsuite.decisions.misspelt import near
    from evalsuite.results.built_in import built_in

    bounds = {case.bound.name: case.bound for case in cases}
    for gate in parse_gates(texts):
        bound = bounds.get(gate.benchmark)
        if bound is None or gate.metric in {"*", PASS_RATE} or built_in(gate.metric) is not None:
            continue
        metrics = bound.metric_names
        if metrics is not None and not any(fnmatchcase(gate.metric, name) for name in metrics):
            return f"gate '{gate.text}': no such metric{near(gate.metric, {*metrics, PASS_RATE})}"
    return ""


def _margin_without_metric(texts: Sequence[str], cases: Sequence[Case]) -> str:
    """Find a margin of a metric that no benchmark has, if all their scorers declare theirs."""
    from evalsuite.core.option_values import parse_margin
    from evalsuite.decisions.measured import PASS_RATE
    from evalsuite.decisions.misspelt import near
    from evalsuite.results.built_in import built_in

    metrics = {case.bound.name: case.bound.metric_names for case in cases}
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
