"""Errors that `evalsuite gate attack` injects into a replayed session, to test whether the gates notice them."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from evalsuite.plugin.items import get_case
from evalsuite.plugin.xdist import is_worker

if TYPE_CHECKING:
    Scores = Mapping[str, Any]

VARIABLE = "EVALSUITE_MUTANT"  # Environment variable with the fault as JSON, which workers inherit.


class Mutant(NamedTuple):
    """One kind of fault, and how it is injected."""

    summary: str
    options: tuple[str, ...] = ()  # Additional pytest options for the session with this fault.
    changes_scores: bool = False  # Whether `SessionFault.change_scores` changes the scores of every scorer.


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


def pytest_configure(config: pytest.Config) -> None:
    """Inject the fault that the environment names; if it names none, the session is as usual."""
    config.addinivalue_line("markers", "slow: cases that a mutant leaves out")
    if text := os.environ.get(VARIABLE):
        fault = SessionFault(**json.loads(text))
        config.pluginmanager.register(fault)
        if MUTANTS[fault.mutant].changes_scores:
            fault.replace_scoring()


@dataclass(frozen=True, slots=True, eq=False)
class SessionFault:
    """The fault that is injected into a session, with the data that it needs; a plugin of pytest."""

    mutant: str  # A name in `MUTANTS`.
    best: Mapping[str, float]  # The best score of each metric in the attacked run; any other score counts as wrong.
    file: str  # The path of the test file that is replaced by an empty module.
    killed: str  # The node id of the item during which the process ends.
    counted: Iterator[int] = field(default_factory=itertools.count)  # Counts the answers that were scored.

    def replace_scoring(self) -> None:
        """Patch evalsuite to change the scores that scorers return."""
        from evalsuite.engine import case_record, scoring, solving

        vars(case_record)["run_rule_scorer"] = partial(self.change_scores, scoring.run_rule_scorer)
        vars(solving)["convert_scores"] = partial(self.change_scores, scoring.convert_scores)
        if self.mutant == "flattered":
            # Change the scorers' version, too, because a real change of a scorer would change its version.
            vars(scoring)["_find_scorer_version"] = lambda *_: "a mutant"

    def change_scores(self, compute_scores: Callable[..., Scores], *arguments: Any) -> Scores:
        scores = compute_scores(*arguments)
        if self.mutant == "flattered":
            return {name: self.best.get(name, value) for name, value in scores.items()}
        if next(self.counted) % 10 > 0:
            scores = {name: 0.0 if self.best.get(name, 1.0) else 1.0 for name in scores}
        is_wrong = any(float(value) != self.best[name] for name, value in scores.items() if name in self.best)
        if self.mutant == "degraded" or not is_wrong:
            return scores
        if self.mutant == "dropped":
            return {}
        if self.mutant == "renamed":
            return {f"{name}_other": value for name, value in scores.items()}
        if self.mutant == "skipped":
            pytest.skip("a mutant skips wrong answers")
        raise RuntimeError("a mutant fails on wrong answers")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark half of the cases, leave half of them out, or rename the first case's benchmark."""
        cases = [(item, case) for item in items if (case := get_case(item)) is not None]
        if self.mutant == "excluded":
            excluded = {item for item, _ in cases[::2]}
            items[:] = [item for item in items if item not in excluded]
        if self.mutant == "marked":
            for item, _ in cases[::2]:
                item.add_marker("slow")
        if self.mutant == "moved" and cases:
            benchmark = cases[0][1].bound.declaration.benchmark
            object.__setattr__(benchmark, "name", f"{benchmark.name}_moved")

    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
        """Collect the test file as an empty module."""
        if self.mutant == "emptied" and str(module_path) == self.file:
            return _EmptyTestModule.from_parent(parent, path=module_path)
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """End the process when the chosen case begins."""
        is_crash = self.mutant == "ended" or (self.mutant == "killed" and is_worker(item.config))
        if is_crash and item.nodeid == self.killed:
            os._exit(int(self.mutant == "killed"))


class _EmptyTestModule(pytest.Module):
    def collect(self) -> list[pytest.Item]:
        return []
