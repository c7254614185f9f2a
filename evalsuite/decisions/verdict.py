"""The verdict on a run: what its gates say, whether it is complete, and the exit status that follows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from evalsuite.decisions.baseline import Against, compare_to_baseline
from evalsuite.decisions.gates import Gate, GateDecision, Measured, decide, parse_gate, select
from evalsuite.results.runs import interruption

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Tally
    from evalsuite.types import Outcome


class Status(IntEnum):
    """Exit statuses; pytest's own are 0 to 5."""

    GOOD = 0
    FAILED = 1
    GATE_MISSED = 10
    REGRESSION = 11
    INCOMPLETE = 12


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run comes to.

    Attributes:
        status: the exit status.
        headline: a few words.
        reasons: what made it so, most important first.
        decisions: of every gate.
        counts: cases by outcome.
        against: the comparison with the baseline, if there is one.
        shortened: why not all cases ran, where that was meant; empty otherwise.
    """

    status: Status
    headline: str
    reasons: tuple[str, ...]
    decisions: tuple[GateDecision, ...]
    counts: Mapping[Outcome, int]
    against: Against | None = None
    shortened: str = ""

    @property
    def remarks(self) -> list[str]:
        """What does not decide, but must be known to whoever does."""
        shortened = [self.shortened] if self.shortened else []
        return shortened + (self.against.undecided() if self.against else [])


def judge_run(run: Run, baseline: Run | None = None) -> Verdict:
    """The verdict on a run, from its records and settings, and its baseline's records."""
    settings = run.info.get("settings", {})
    named = [parse_gate(text) for text in settings.get("gate", ())]
    gates = [gate for gate in named if not run.info.get("narrowed") or _has_cases(gate, run)]
    shard, early = settings.get("shard"), run.info.get("early")
    # A part of the cases decides nothing; the gates wait for all of them to be joined.
    decisions = () if shard else tuple(_decide(run, gates))
    margin = settings.get("max_regression", 0.02)
    against = compare_to_baseline(baseline, run, gates, margin) if baseline and not shard else None
    counts = Counter(row.outcome for row in run.all_rows())
    stopped = interruption(run.info)
    lacking = [one for one in decisions if one.verdict in {"no data", "too many errors"}]
    missed = [one for one in decisions if one.verdict == "missed"]
    failed = ungated_failures(run, gates)
    regressions = against.regressions() if against else []
    reasons = (
        *([f"the run was stopped: {stopped}"] if stopped else []),
        *(f"gate {one.gate.text}: {one.reason}" for one in lacking),
        *(f"gate {one.gate.text} is missed{_by(one)}" for one in missed),
        *regressions,
        *failed,
    )
    if stopped or lacking:
        status, headline = Status.INCOMPLETE, "incomplete: no decision"
    elif missed:
        status, headline = Status.GATE_MISSED, "a gate is missed" if len(missed) == 1 else "gates are missed"
    elif regressions:
        status, headline = Status.REGRESSION, "a regression"
    elif failed:
        status, headline = Status.FAILED, "cases failed"
    else:
        status, headline = Status.GOOD, "passed"
    aside = "; ".join(gate.text for gate in named if gate not in gates)
    return Verdict(status, headline, reasons, decisions, counts, against, _shortened(shard, early, aside))


def _by(decision: GateDecision) -> str:
    """Which metric missed it, where the gate is about several."""
    wide = "*" in {decision.gate.metric, decision.gate.benchmark}
    return f" by {decision.subject}" if wide else ""


def _has_cases(gate: Gate, run: Run) -> bool:
    """Whether any case stands behind a gate; in a run of chosen cases alone, others are not asked for."""
    return any(
        gate.covers(name) and len(select(bench.tally, gate.tag, gate.value))
        for name, bench in run.benchmarks.items()
    )


def _decide(run: Run, gates: Sequence[Gate]) -> list[GateDecision]:
    share = run.info.get("settings", {}).get("max_error_share", 0.01)
    decisions = decide(gates, measure(run), share)
    early = run.info.get("early")
    if not early:
        return decisions
    # What the sequences decided stands: a look at the plain interval now would be one look too many.
    said = {one["gate"]: one["verdict"] for one in early["gates"]}
    return [
        replace(one, verdict=said[one.gate.text], reason="decided early")
        if one.verdict in {"met", "missed"} and said.get(one.gate.text) in {"met", "missed"}
        else one
        for one in decisions
    ]


def _shortened(shard: str | None, early: Mapping[str, Any] | None, aside: str) -> str:
    if shard:
        return f"shard {shard}: gates are decided when `evalsuite merge` has joined all shards"
    if early:
        saved = 1 - early["cases"] / early["planned"] if early["planned"] else 0.0
        return (
            f"stopped early, as every gate was decided: {early['cases']} of {early['planned']} cases ran, "
            f"{saved:.0%} of them were saved"
        )
    return f"a run of chosen cases, which leaves undecided: {aside}" if aside else ""


def measure(run: Run) -> dict[str, Measured]:
    """Every benchmark's cases with its derived metrics."""
    return {name: Measured(bench.tally, bench.derived) for name, bench in run.benchmarks.items()}


def ungated_failures(run: Run, gates: Iterable[Gate]) -> list[str]:
    """Failures and errors that no gate covers, a line a benchmark."""
    lines = []
    for name, bench in run.benchmarks.items():
        if any(gate.covers(name) for gate in gates):
            continue
        counts = Counter[str](row.outcome for row in bench.tally if row.excused is None)
        short = short_samples(bench.tally)
        counts["samples"] = len(short)
        parts = [
            f"{counts[outcome]} {words}"
            for outcome, words in (
                ("failed", "below their threshold"),
                ("samples", f"samples that hold in too few epochs ({', '.join(short[:5])})"),
                ("error", "errors"),
            )
            if counts[outcome]
        ]
        if parts:
            lines.append(
                f"{name}, which no gate covers: {' and '.join(parts)} among {len(bench.tally)} cases"
            )
    return lines


def short_samples(tally: Tally) -> list[str]:
    """Samples that hold in fewer epochs than their benchmark's `at_least` asks for."""
    needed: dict[str, int] = {}
    passed = Counter[str]()
    for row in tally:
        if "at_least" in row.facts:
            needed[row.sample] = row.facts["at_least"]
            passed[row.sample] += row.outcome == "passed"
    return sorted(sample for sample, least in needed.items() if passed[sample] < least)
