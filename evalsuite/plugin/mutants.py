"""Errors that `evalsuite gate attack` injects into a replayed session, to test whether the gates notice them."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from evalsuite.plugin.items import get_case
from evalsuite.plugin.xdist import is_worker

if TYPE_CHECKING:
    Scores = Mapping[str, Any]

VARIABLE = "EVALSUITE_MUTANT"  # Environment variable with the fault as JSON, which workers inherit.


class Fault(NamedTuple):
    """The fault that is injected into a session, with the data that it needs."""

    mutant: str  # A name in `MUTANTS`.
    best: dict[str, float]  # The best score of each metric in the attacked run; any other score counts as wrong.
    file: str = ""  # The path of the test file that is replaced by an empty module.
    killed: str = ""  # The node id of the item during which the process ends.


class Mutant(NamedTuple):
    """One kind of fault, and how it is injected."""

    summary: str
    options: tuple[str, ...] = ()  # Additional pytest options for the session with this fault.
    changes_scores: bool = False  # Whether `_apply_mutant_to_scores` changes the scores of every scorer.


def _apply_mutant_to_scores(mutant: str, scores: Scores, best: Mapping[str, float]) -> Scores:
    if mutant == "flattered":
        return {name: best.get(name, value) for name, value in scores.items()}
    is_wrong = any(float(value) != best[name] for name, value in scores.items() if name in best)
    if mutant == "degraded" or not is_wrong:
        return scores
    if mutant == "dropped":
        return {}
    if mutant == "renamed":
        return {f"{name}_other": value for name, value in scores.items()}
    if mutant == "skipped":
        pytest.skip("a mutant skips wrong answers")
    raise RuntimeError("a mutant fails on wrong answers")


MUTANTS: Mapping[str, Mutant] = {
    "degraded": Mutant("nine of ten answers are wrong", changes_scores=True),
    "dropped": Mutant("nine of ten answers are wrong and get no score", changes_scores=True),
    "renamed": Mutant("nine of ten answers are wrong and get a score of another name", changes_scores=True),
    "skipped": Mutant("nine of ten answers are wrong and are skipped by the scorer", changes_scores=True),
    "failing": Mutant("nine of ten answers are wrong, and the scorer fails on them", changes_scores=True),
    "flattered": Mutant("another scorer gives nothing but the best score", changes_scores=True),
    "marked": Mutant('half of the cases are marked slow, and -m "not slow" leaves them out', ("-m", "not slow")),
    "chosen": Mutant("one case is chosen by its node id"),
    "sharded": Mutant("one shard of two decides", ("--shard=1/2",)),
    "excluded": Mutant("a conftest's hook leaves out half of the cases"),
    "emptied": Mutant("a test file is empty"),
    "moved": Mutant("a benchmark has another name"),
    "mistyped": Mutant("the gates name another metric"),
    "killed": Mutant("a worker dies during a case", ("-n", "2")),
    "ended": Mutant("a case ends the process with status 0"),
}


def read_fault() -> Fault | None:
    """Read this session's fault from the environment; None if none is injected."""
    text = os.environ.get(VARIABLE)
    return Fault(**json.loads(text)) if text else None


def pytest_configure(config: pytest.Config) -> None:
    """Patch evalsuite to change the scores that scorers return, if the session's fault requires this."""
    fault = read_fault()
    if fault is None or not MUTANTS[fault.mutant].changes_scores:
        config.addinivalue_line("markers", "slow: cases that a mutant leaves out")
        return
    from evalsuite.engine import case_record, scoring, solving

    counted = itertools.count()
    best = fault.best

    def compute_mutated_scores(compute_scores: Callable[..., Scores], *arguments: Any) -> Scores:
        scores = compute_scores(*arguments)
        if fault.mutant != "flattered" and next(counted) % 10 > 0:
            scores = {name: 0.0 if best.get(name, 1.0) else 1.0 for name in scores}
        return _apply_mutant_to_scores(fault.mutant, scores, best)

    vars(case_record)["run_rule_scorer"] = partial(compute_mutated_scores, scoring.run_rule_scorer)
    vars(solving)["convert_scores"] = partial(compute_mutated_scores, scoring.convert_scores)
    if fault.mutant == "flattered":
        # Change the scorers' version, too, because a real change of a scorer would change its version.
        vars(scoring)["_find_scorer_version"] = lambda *_: "a mutant"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark cases, leave cases out, or rename the first case's benchmark, depending on the session's fault."""
    fault = read_fault()
    cases = [(item, case) for item in items if (case := get_case(item)) is not None]
    if fault and fault.mutant == "excluded":
        excluded = {item for item, _ in cases[::2]}
        items[:] = [item for item in items if item not in excluded]
    if fault and fault.mutant == "marked":
        for item, _ in cases[::2]:
            item.add_marker("slow")
    if fault and fault.mutant == "moved" and cases:
        benchmark = cases[0][1].bound.declaration.benchmark
        object.__setattr__(benchmark, "name", f"{benchmark.name}_moved")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Collect a test file as an empty module, if the session's fault empties this file."""
    fault = read_fault()
    if fault and fault.mutant == "emptied" and str(module_path) == fault.file:
        return _EmptyTestModule.from_parent(parent, path=module_path)
    return None


class _EmptyTestModule(pytest.Module):
    def collect(self) -> list[pytest.Item]:
        return []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """End the process when the chosen case begins, if the session's fault is a crash."""
    fault = read_fault()
    if not fault or item.nodeid != fault.killed:
        return
    if fault.mutant == "ended" or (fault.mutant == "killed" and is_worker(item.config)):
        os._exit(int(fault.mutant == "killed"))
