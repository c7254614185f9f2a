"""`evalsuite gate attack`: inject faults into replays of a green run, and list the faults that its gates miss."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.commands import print_at_once, require_suite, run_own_command
from evalsuite.core.declarations import is_suite_file
from evalsuite.core.errors import RunError, escape_for_terminal, write_count
from evalsuite.core.option_values import declare_arguments
from evalsuite.decisions.gates import read_gates, replace_metric_name
from evalsuite.results.run_folders import JOURNAL, RunFolder, find_run_folder

if TYPE_CHECKING:
    import argparse

    from evalsuite.results.runs import Run

PLUGINS = ("-p", "evalsuite.plugin", "-p", "evalsuite.plugin.mutants")
"""Options that load the package before its module; otherwise pytest warns that it cannot rewrite the package."""
ADVICE = {
    "flattered": "compare with a baseline of released answers, and look at cases: no gate can know that a scorer errs",
    "degraded": "the gates are met whatever the model answers: raise their thresholds",
    "killed": "one error among so many cases is within evalsuite_max_error_share, and the gates hold with it at the "
    "worst score",
}


@declare_arguments("""
    --reports RUN
    suite=PATH*  the suite, as for pytest (default: as in the run)

    Each fault runs the suite on the run's own answers, so nothing is asked and nothing is paid; the run and the suite
    do not change. The exit status is 1 if a fault leaves the session green.
""")
def run_attack(options: argparse.Namespace) -> int:
    """Inject each fault into a replay of the suite, and print the exit status of this replay."""
    import pytest

    from evalsuite.plugin.mutants import MUTANTS
    from evalsuite.results.runs import load_run

    require_suite(*options.suite)
    folder = find_run_folder(options.reports, options.name)
    if not (folder.path / JOURNAL).is_file():
        raise RunError(f"{folder.path} has no {JOURNAL}, so its answers cannot be replayed: attack a run made here")
    run = load_run(folder)
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="evalsuite-attack-") as scratch:
        attack = _FaultReplayer(run, options.suite, options.reports, Path(scratch))
        status, verdict = attack.replay_suite("")
        if status:
            remedy = "attack a green run" if options.suite else "attack a green run, or name the suite, as for pytest"
            raise RunError(f"a replay of {folder.name} ends with status {status} ({verdict}): {remedy}")
        for name, mutant in MUTANTS.items():
            if not attack.is_applicable(name):
                sys.stdout.write(f"{name:<10}not possible here: {mutant.summary}\n")
                continue
            status, verdict = attack.replay_suite(name, mutant.options)
            # If pytest itself aborts, the exit status says nothing about the gates, so the fault counts as unnoticed.
            survivors += status in {0, pytest.ExitCode.INTERNAL_ERROR}
            told = {0: "STAYS GREEN", pytest.ExitCode.INTERNAL_ERROR: "NOT TESTED, because the session broke off"}.get(
                status, f"red ({status}): {verdict}"
            )
            advice = f"; {ADVICE[name]}" if not status and name in ADVICE else ""
            print_at_once(f"{name:<10}{mutant.summary}: {escape_for_terminal(told)}{advice}")
    sys.stdout.write(f"{write_count(survivors, 'fault')} unnoticed\n" if survivors else "every fault is noticed\n")
    return int(bool(survivors))


@dataclass(frozen=True)
class _FaultReplayer:
    """Replays a run several times, each time with a different fault."""

    run_: Run
    suite: list[str]
    reports: Path
    scratch: Path

    def is_applicable(self, fault: str) -> bool:
        """Tell whether a fault can be injected; some faults need wrong answers, gates on a metric, or several cases."""
        rows = list(self.run_.all_rows())
        if fault == "mistyped":
            return any(gate.metric != "*" for gate in read_gates(self.run_))
        if fault == "flattered":
            best = self._find_best_scores()
            return any(value != best[metric] for row in rows for metric, value in row.scores.items())
        return len(rows) > 1

    def replay_suite(self, fault: str, options: Sequence[str] = ()) -> tuple[int, str]:
        """Run the suite on the run's stored answers; return the session's exit status and the first reason for it."""
        suite = [self._find_first_case()] if fault == "chosen" else self.suite or self._list_suite_paths()
        if fault == "mistyped":
            options = [f"--only-gate={replace_metric_name(gate.text)}" for gate in read_gates(self.run_)]
        label = fault or "unchanged"
        baselines = self.run_.info.get("settings", {}).get("baseline") or ()
        command = [
            *(sys.executable, "-m", "pytest", "-q", *PLUGINS, "-p", "no:cacheprovider"),
            *(f"--replay={self.run_.folder.path.resolve()}", f"--reports={self.scratch}", f"--run={label}"),
            *(f"--baseline={find_run_folder(self.reports, baseline).path.resolve()}" for baseline in baselines),
            *options,
            *suite,
        ]
        if not self.suite and Path.cwd() in (runs := self.run_.folder.path.resolve().parent).parents:
            # Ignore the folder of runs, because a run may contain test files that the user did not name.
            command.append(f"--ignore={runs}")
        environment = dict(os.environ)
        if fault:
            case = self._find_first_case()
            file = str(Path.cwd() / case.partition("::")[0])
            fault_data = {"mutant": fault, "best": self._find_best_scores(), "file": file, "killed": case}
            environment["EVALSUITE_MUTANT"] = json.dumps(fault_data)
        ended = run_own_command(command, environment)
        if fault == "sharded" and not ended.returncode:
            # The session of one shard is always green, because gates are decided only after the shards are joined.
            gate = [sys.executable, "-m", "evalsuite", "gate", str(self.scratch / label), "--code=."]
            ended = run_own_command(gate, os.environ)
        summary = RunFolder(self.scratch / label).summary()
        errors = [line for line in ended.stdout.splitlines() if line.startswith(("ERROR", "evalsuite:", "shard "))]
        reasons = [*summary.get("reasons", ()), *errors, "no case was collected"]
        return ended.returncode, str(reasons[0])

    def _list_suite_paths(self) -> list[str]:
        """List the test paths that the run stores; refuse paths outside of the suite, because runs may be forged."""
        paths = [str(path) for path in self.run_.info.get("selection", {}).get("args", ())]
        if not all(is_suite_file(Path(path.partition("::")[0]), Path.cwd()) for path in paths):
            raise RunError(f"{self.run_.folder.name} names tests outside of this suite: name the suite, as for pytest")
        return [path for path in paths if not path.startswith("-")]

    def _find_first_case(self) -> str:
        return next(row.case for row in self.run_.all_rows() if not row.case.startswith("-"))

    def _find_best_scores(self) -> dict[str, float]:
        best: dict[str, float] = {}
        for name, bench in self.run_.benchmarks.items():
            for row in bench.tally:
                for metric, value in row.scores.items():
                    choose = min if self.run_.lower_is_better(name, metric) else max
                    best[metric] = choose(best.get(metric, value), value)
        return best
