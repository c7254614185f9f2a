"""Decides the verdict on a run from its gates, comparisons and completeness, and chooses the exit status."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import chain
from typing import Any

from evalsuite.core.errors import NEVER_EXCUSED, write_count
from evalsuite.core.json_codec import dumps
from evalsuite.core.option_values import parse_accepted_changes
from evalsuite.core.types import ASSERTS, PASS_RATE, Outcome
from evalsuite.decisions import early_stops
from evalsuite.decisions.baseline import compare_to_baselines
from evalsuite.decisions.comparison import LOSS, BaselineComparison, ComparisonRules
from evalsuite.decisions.gates import (
    JUDGE,
    Gate,
    GateDecision,
    decide_gates,
    explain_missing_benchmark,
    parse_gates,
    read_gates,
)
from evalsuite.decisions.measured import MeasuredBenchmark, group_repeated_samples, has_sample_passed, select_cases
from evalsuite.decisions.quarantine import drop_quarantined_cases, list_quarantine_remarks, read_run_quarantine
from evalsuite.results.built_in import explain_unknown_amount
from evalsuite.results.judge_labels import JUDGE_METRICS, list_labelled_scores
from evalsuite.results.run_folders import explain_interruption
from evalsuite.results.runs import Run, get_failure
from evalsuite.results.tally import Estimate, Tally


class Status(IntEnum):
    """Exit statuses; 0 to 5 have the same meaning as in pytest."""

    GOOD = 0
    FAILED = 1
    GATE_MISSED = 10
    REGRESSION = 11
    INCOMPLETE = 12
    DETACHED = 13  # A batch is unfinished. A session can end with this status, but a verdict never has this status.


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a run."""

    status: Status
    headline: str
    reasons: tuple[str, ...]  # The reasons for the status, most important first.
    decisions: tuple[GateDecision, ...]
    counts: Mapping[Outcome, int]
    # The run's own errors, which nothing excuses: one line per cause. `reasons` begins with these lines.
    faults: tuple[str, ...] = ()
    # The comparisons with the baselines, in the order in which the user named them.
    against: Sequence[BaselineComparison] = ()
    shortened: str = ""  # The reason why some cases were left out intentionally; empty if none were left out.
    asides: tuple[str, ...] = ()  # Further notes about the comparisons and the run.
    # Hash of 16 hexadecimal digits, which is equal for two verdicts with the same content and cases. The comment,
    # `summary.json`, the page and the step summary show the hash, so that readers can match verdicts.
    id: str = ""

    @property
    def reasons_beyond_gates(self) -> list[str]:
        """The reasons for the verdict, except those that state a gate's decision."""
        stated = tuple(f"gate {decision.gate.text}" for decision in self.decisions)
        return [reason for reason in self.reasons if not reason.startswith(stated)]

    @property
    def remarks(self) -> list[str]:
        """Remarks for readers that do not affect the status."""
        return [*([self.shortened] if self.shortened else []), *self.asides]


UNDECIDED = "undecided against the baseline, with enough cases to decide"
NOT_DECIDED = "not decided: "
RUN_ALL_HINT = "; run them all, or add --partial to let the cases alone decide"


@dataclass(frozen=True, slots=True)
class _VerdictFacts:
    """The facts that determine a run's status."""

    run: Run
    gates: Sequence[Gate]  # The gates that the run can decide.
    decisions: Sequence[GateDecision]
    against: Sequence[BaselineComparison]
    # For each benchmark that was selected only partly: a text with the number of selected cases.
    narrowed: Mapping[str, str] = field(default_factory=dict)


def _explain_incomplete_run(findings: _VerdictFacts) -> Iterator[str]:
    stopped = explain_interruption(findings.run.info)
    # Leave out faults of the run itself, because the verdict's first line already states these faults.
    if stopped and stopped != findings.run.info.get("fault"):
        yield f"the run was stopped: {stopped}"
    settings = findings.run.info.get("settings", {})
    if settings.get("shard") and settings.get("decides"):
        yield f"shard {settings['shard']} alone decides nothing: join all with `evalsuite runs merge` and gate that run"
    if settings.get("partial") and settings.get("decides"):
        yield "it was run with --partial, so its cases alone decide: run all cases of the suite and gate that run"
    if not (findings.gates or settings.get("partial") or settings.get("shard")) and read_gates(findings.run):
        yield f"{NOT_DECIDED}no gate covers a case of this run{RUN_ALL_HINT}"
    for decision in findings.decisions:
        if decision.verdict in {"no data", "too many errors"}:
            yield f"gate {decision.gate.text}: {decision.reason}"
    for against in findings.against:
        yield from against.list_incomparable_metrics()
        if narrowed := _join_descriptions(findings.narrowed, [subject.benchmark for subject, *_ in against.found]):
            yield f"the comparison with {against.name} is not decided: {narrowed}"


def _list_reasons_by_status(findings: _VerdictFacts) -> Iterator[tuple[Status, str, Sequence[str]]]:
    """Yield each status with its headline and its reasons (perhaps none), the most serious status first."""
    run, missed = findings.run, [decision for decision in findings.decisions if decision.verdict == "missed"]
    yield Status.INCOMPLETE, "incomplete: no decision", [*_explain_incomplete_run(findings)]
    headline = "gates are missed" if len(missed) > 1 else "a gate is missed"
    reasons = []
    for each in missed:
        covers_several = "*" in {each.gate.metric, each.gate.benchmark}
        reasons.append(f"gate {each.gate.text} is missed" + (f" by {each.subject}" if covers_several else ""))
    yield Status.GATE_MISSED, headline, reasons
    yield Status.REGRESSION, "a regression", [line for each in findings.against for line in each.list_regressions()]
    undecided = [line for each in findings.against for line in each.list_undecided_metrics(enough=True)]
    yield Status.REGRESSION, UNDECIDED, undecided
    yield Status.FAILED, "cases failed", list_uncovered_failures(run, findings.gates)
    if other := run.info.get("other_failures"):
        yield Status.FAILED, "other tests failed", [f"{write_count(other, 'failure')} other than failed cases"]
    yield Status.FAILED, "a metric failed", [*_explain_failed_metrics(run)]


def _explain_failed_metrics(run: Run) -> Iterator[str]:
    """Report derived metrics whose computation failed; gates on these metrics have no data."""
    for name, bench in run.benchmarks.items():
        for metric, compute in bench.derived.items():
            compute(bench.tally)
            if failure := get_failure(compute):
                yield f"{name}.{metric} could not be computed: {failure}"


def make_verdict(run: Run, *baselines: Run) -> Verdict:
    """Decide on a run by its records and settings, and by its baselines' records."""
    settings, quarantine = run.info.get("settings", {}), read_run_quarantine(run)
    named, earlier = read_gates(run), [drop_quarantined_cases(baseline, quarantine) for baseline in baselines]
    findings = _collect_verdict_facts(drop_quarantined_cases(run, quarantine), earlier, named)
    # With --partial, only the cases determine the status; comparisons are shown but do not affect the status.
    status, headline, reasons = _choose_status(replace(findings, against=()) if settings.get("partial") else findings)
    faults = list_run_errors(run)
    if faults:
        status, headline, reasons = (Status.INCOMPLETE, "the run itself failed: no decision", (*faults, *reasons))
    against = findings.against
    left_open = "; ".join(gate.text for gate in named if gate not in findings.gates)
    lines = (line for each in against for line in each.list_undecided_metrics(decisions=findings.decisions))
    undecided = [line for line in lines if line not in reasons]
    if status in {Status.GOOD, Status.INCOMPLETE} and not faults:
        headline = "; ".join([headline, *_list_headline_additions(findings)])
    verdict = Verdict(
        status,
        headline,
        reasons,
        tuple(findings.decisions),
        Counter(row.outcome for row in run.all_rows()),
        faults,
        against,
        early_stops.explain_left_out_cases(settings.get("shard"), run.info.get("early"), left_open),
        (
            *list_quarantine_remarks(run, quarantine),
            *undecided,
            *(run.info.get("remarks") or ()),
            *(line for each in against for line in each.remarks),
        ),
    )
    return replace(verdict, id=_hash_verdict(verdict, run))


def _list_headline_additions(findings: _VerdictFacts) -> Iterator[str]:
    """Yield additions to the headline of a good or incomplete run, such as a shortage of cases."""
    if findings.run.info.get("settings", {}).get("partial"):
        yield "with --partial the cases alone decide, no gate"
    else:
        shortage = next(filter(None, (each.describe_case_shortage() for each in findings.against)), "")
        if shortage and not any(shortage in decision.reason for decision in findings.decisions):
            yield shortage
    free = {
        name: "its test asserts nothing" if len(bench.tally) else "all its cases are in quarantine"
        for name, bench in findings.run.benchmarks.items()
        if not any(gate.covers_benchmark(name) for gate in findings.gates)
        and not any(row.facts.get(ASSERTS, True) for row in bench.tally)
        and not any(subject.benchmark == name for each in findings.against for subject, *_ in each.found)
    }
    for why in dict.fromkeys(free.values()):
        names = ", ".join(name for name, reason in free.items() if reason == why)
        yield f"nothing decides {names}: no gate covers it, and {why}"


def _hash_verdict(verdict: Verdict, run: Run) -> str:
    said = [int(verdict.status), verdict.headline, verdict.reasons, verdict.remarks]
    gates = [[one.gate.text, one.subject, one.verdict, one.reason, repr(one.estimate)] for one in verdict.decisions]
    compared = [
        [against.name, [[str(subject), repr(one), found] for subject, one, found in against.found]]
        for against in verdict.against
    ]
    cases = [(row.case, row.outcome) for row in run.all_rows()]
    return hashlib.sha256(dumps([said, gates, compared, cases]).encode("utf-8", "replace")).hexdigest()[:16]


def list_run_errors(run: Run) -> tuple[str, ...]:
    """List errors of the run itself, one line per cause; no error share, quarantine or shard excuses these errors."""
    if fault := run.info.get("fault"):
        return (f"the run itself failed: {fault}",)
    cases: dict[str, list[str]] = {}
    for row in run.all_rows():
        if row.cause in NEVER_EXCUSED:
            cases.setdefault(row.cause or "", []).append(row.case)
    return tuple(
        f"the run itself failed in {write_count(len(those), 'case')} ({cause}), among them {min(those)}: "
        f"{run.read(min(those)).error}"
        for cause, those in sorted(cases.items())
    )


def _collect_verdict_facts(run: Run, baselines: Sequence[Run], all_gates: Sequence[Gate]) -> _VerdictFacts:
    """Decide the gates that the run can decide, and compare the run with its baselines; do neither for a shard."""
    settings, early = run.info.get("settings", {}), run.info.get("early")
    narrowed = {} if settings.get("partial") else _describe_partial_selection(run)
    gates = [gate for gate in all_gates if gate.benchmark in narrowed or not _is_uncollected(gate, run)]
    if settings.get("shard"):
        # The gates of a shard are decided after all shards have been merged.
        return _VerdictFacts(run, gates, (), ())
    against = compare_to_baselines(baselines, run, gates, read_comparison_rules(settings))
    if early:
        against = [early_stops.prefer_early_verdicts(early, each) for each in against]
    decided = [_decide_baseline_gate(gate, run, against) for gate in gates if gate.than]
    own = _decide_run_gates(run, [gate for gate in gates if not gate.than])
    decisions = [_add_selection_note(decision, run, narrowed) for decision in [*own, *chain(*decided)]]
    return _VerdictFacts(run, gates, decisions, against, narrowed)


def _decide_baseline_gate(gate: Gate, run: Run, comparisons: Sequence[BaselineComparison]) -> list[GateDecision]:
    """Decide a gate against its baseline; the name `baseline` means every baseline of the run."""
    if reason := explain_missing_benchmark(gate, run.benchmarks):
        return [GateDecision(gate, gate.metric, "no data", reason=reason)]
    named = zip(run.baselines, comparisons, strict=False)
    decisions = [one for name, each in named if gate.than in {"baseline", name} for one in each.decide_gate(gate)]
    reason = f"{gate.than} has no such metric to compare with" if run.baselines else "no --baseline is given"
    if run.baselines and gate.than not in {"baseline", *run.baselines}:
        reason = f"{gate.than} is not among the baselines {', '.join(run.baselines)}: name it as --baseline does"
    return decisions or [GateDecision(gate, f"{gate.benchmark}.{gate.metric}", "no data", reason=reason)]


def _describe_partial_selection(run: Run) -> dict[str, str]:
    """Describe the benchmarks that the command line selects only partly, each with the number of selected cases."""
    found = {}
    for name, entry in run.info.get("collected", {}).items():
        # Also count the cases in the run's records, because a resumed run contains the cases of its earlier sessions.
        there = len(run.benchmarks[name].tally) if name in run.benchmarks else 0
        selected = max(entry["selected"], there)
        if selected < entry["cases"]:
            counted = f"{selected} of {write_count(entry['cases'], 'case')} of {name} selected"
            found[name] = counted if entry["samples"] else f"no case of {name} was collected, but a file declares it"
    return found


def _join_descriptions(descriptions: Mapping[str, str], benchmarks: Iterable[str]) -> str:
    """Join the descriptions of the given benchmarks, each once; leave out benchmarks without a description."""
    return ", ".join(descriptions[name] for name in dict.fromkeys(benchmarks) if name in descriptions)


def _add_selection_note(decision: GateDecision, run: Run, narrowed: Mapping[str, str]) -> GateDecision:
    """Add notes on the selection of cases to a decision; return `no data` for a partial selection or unknown amount."""
    gate = decision.gate
    # A gate on the judge applies to the cases of all benchmarks.
    about = list(narrowed) if gate.benchmark == JUDGE else [name for name in narrowed if gate.covers_benchmark(name)]
    if selected := _join_descriptions(narrowed, about):
        return replace(decision, verdict="no data", reason=f"{NOT_DECIDED}{selected}{RUN_ALL_HINT}")
    name = decision.subject.partition(".")[0].partition("[")[0]
    cases = run.benchmarks[name].tally if name in run.benchmarks else Tally()
    if unknown := explain_unknown_amount(gate.metric, select_cases(cases, gate.tag, gate.value)):
        return replace(decision, verdict="no data", estimate=None, reason=unknown)
    notes, collected = [], run.info.get("collected", {}).get(name)
    if collected and collected["of"] is not None and collected["samples"] < collected["of"]:
        drawn = f"{collected['samples']} of {write_count(collected['of'], 'sample')}"
        notes.append(f"{drawn}, drawn by seed {run.info.get('settings', {}).get('seed', 0)}")
    if held := run.info.get("quarantined", {}).get(name, 0):
        notes.append(f"{write_count(held, 'case')} in quarantine")
    return replace(decision, reason="; ".join(filter(None, [*notes, decision.reason])))


def _choose_status(findings: _VerdictFacts) -> tuple[Status, str, tuple[str, ...]]:
    """Find the most serious status that has reasons; return its headline and the reasons of all statuses."""
    found = [(status, headline, lines) for status, headline, lines in _list_reasons_by_status(findings) if lines]
    if not found:
        return Status.GOOD, "passed" if findings.run.benchmarks else "no cases ran", ()
    status, headline, _ = found[0]
    # If gates are undecided because only some cases were selected, say so in the headline.
    gate_reasons = (decision.reason.partition(";")[0] for decision in findings.decisions)
    undecided = next((reason for reason in gate_reasons if reason.startswith(NOT_DECIDED)), "")
    return status, undecided or headline, tuple(reason for *_, lines in found for reason in lines)


def read_comparison_rules(settings: Mapping[str, Any]) -> ComparisonRules:
    """Read the rules for comparing a run with its baselines from the run's settings."""
    losses = {
        gate.metric if gate.benchmark == "*" else f"{gate.benchmark}.{gate.metric}": gate.threshold
        for gate in parse_gates(settings.get("gate"))
        if gate.than and not math.isnan(gate.threshold)
    }
    final = early_stops.compute_final_confidence(early_stops.CONFIDENCE)
    return ComparisonRules(
        losses.get("*", LOSS),
        losses,
        settings.get("min_paired", 0.9),
        final if _can_end_early(settings) else early_stops.CONFIDENCE,
        frozenset(name for text in settings.get("accept_change", ()) for name in parse_accepted_changes(text)),
    )


def _can_end_early(settings: Mapping[str, Any]) -> bool:
    return bool(settings.get("stop_when_decided") or settings.get("until_decided"))


def _is_uncollected(gate: Gate, run: Run) -> bool:
    """Tell whether a gate lacks cases because this session did not collect the files with the gate's benchmark.

    Return False for a benchmark that no file declares, because its name may be misspelt or outdated.
    """
    for name, bench in run.benchmarks.items():
        if gate.covers_benchmark(name) and len(select_cases(bench.tally, gate.tag, gate.value)):
            return False
    elsewhere = run.info.get("elsewhere")
    if gate.benchmark in (elsewhere or ()):
        return True
    is_here = elsewhere is None or gate.benchmark in {"*", JUDGE}
    return bool(run.info.get("narrowed")) and is_here


def _decide_run_gates(run: Run, gates: Sequence[Gate]) -> list[GateDecision]:
    settings = run.info.get("settings", {})
    share, early_end = settings.get("max_error_share", 0.01), _can_end_early(settings)
    measured, decisions = {name: MeasuredBenchmark.from_run(run, name) for name in run.benchmarks}, []
    with_judge = dict(measured)
    if any(gate.benchmark == JUDGE for gate in gates) and JUDGE not in measured:
        # Gates on the run's judges concern all cases that people labelled.
        labelled = Tally.of(row for row in run.all_rows() if list_labelled_scores(Tally((row,))))
        with_judge |= {JUDGE: MeasuredBenchmark(labelled, JUDGE_METRICS)} if len(labelled) else {}
    for gate in gates:
        last = gate
        if early_end and gate.confidence is not None:
            # Raise the confidence of the final check if early checks were possible, because the checks share one error
            # probability.
            last = replace(gate, confidence=early_stops.compute_final_confidence(gate.confidence))
        decided = decide_gates([last], with_judge if gate.benchmark == JUDGE else measured, share)
        decisions += [replace(decision, gate=gate) for decision in decided]
    return early_stops.prefer_early_decisions(run.info.get("early"), decisions)


def estimate_metric(run: Run, name: str, metric: str | None, cases: Tally | None = None) -> Estimate | None:
    """Estimate a metric of a benchmark, over some or all of its cases; None if the run does not have the metric."""
    if metric is None or name not in run.benchmarks:
        return None
    measured = MeasuredBenchmark.from_run(run, name)
    return measured.estimate_metric(metric, measured.tally if cases is None else cases)


def list_uncovered_failures(run: Run, gates: Sequence[Gate]) -> list[str]:
    """Report failures and errors that no gate covers, one line per benchmark.

    Samples that pass in too few epochs fail the run regardless of its gates, unless a gate is on `pass_rate`.
    """
    lines = []
    for name, bench in run.benchmarks.items():
        own = [gate for gate in gates if gate.covers_benchmark(name)]
        by_samples = any(gate.metric in {PASS_RATE, "*"} for gate in own)
        short = [] if by_samples else list_failed_samples(bench.tally)
        uncovered = () if own else bench.tally
        counts = Counter[str](row.outcome for row in uncovered if row.excused is None)
        some = write_count(len(short), "sample")
        counted = {
            f"{counts['failed']} below threshold": counts["failed"],
            f"{some} with too few epochs that hold ({', '.join(short[:5])})": len(short),
            write_count(counts["error"], "error"): counts["error"],
        }
        parts = [words for words, count in counted.items() if count]
        if parts:
            where = name if own else f"{name}, which no gate covers"
            lines.append(f"{where}: {' and '.join(parts)} among {write_count(len(bench.tally), 'case')}")
    return lines


def list_failed_samples(tally: Tally) -> list[str]:
    """List the samples with fewer passed epochs than `at_least` requires, even if errors and skips were passes."""
    return sorted(sample for sample, rows in group_repeated_samples(tally).items() if has_sample_passed(rows) is False)
