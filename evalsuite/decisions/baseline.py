"""Compares a run with its baseline: which cases each metric is compared on, and what prevents a comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalsuite.decisions.baseline_result import Against, ComparedMetric, ComparisonRules, Flip
from evalsuite.decisions.changed_signatures import changed_signatures
from evalsuite.decisions.compared_metrics import is_derived, subjects
from evalsuite.decisions.judge_drift import judge_drift
from evalsuite.decisions.measured import select
from evalsuite.decisions.paired_metrics import ComparedPairs, compare_metric, with_verdicts
from evalsuite.decisions.pairing import Common, common_questions
from evalsuite.decisions.slices import slices
from evalsuite.results.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.decisions.conditions import Gate
    from evalsuite.results.runs import Run


@dataclass(frozen=True, slots=True)
class _Look:
    """All there is of a comparison but the verdicts, which wait for those with other baselines."""

    against: Against
    compared: Sequence[ComparedPairs]


def compare_to_baselines(
    baselines: Sequence[Run], run: Run, gates: Sequence[Gate], rules: ComparisonRules | None = None
) -> list[Against]:
    """Compares a run with each of its baselines, as `compare_to_baseline`.

    Each is compared by itself, since a mean over several would hide half of a fall since the oldest. The verdicts are
    corrected for all comparisons together, whose questions are largely the same.
    """
    rules = rules or ComparisonRules()
    looks = [_look(baseline, run, gates, rules) for baseline in baselines]
    verdicts = iter(with_verdicts([pairs for look in looks for pairs in look.compared], rules.confidence))
    return [replace(look.against, found=[next(verdicts) for _ in look.compared]) for look in looks]


def compare_to_baseline(
    baseline: Run, run: Run, gates: Sequence[Gate], rules: ComparisonRules | None = None
) -> Against:
    """Compares a run with its baseline on the gated metrics, or on the primary ones if there are no gates."""
    return compare_to_baselines([baseline], run, gates, rules)[0]


def _look(baseline: Run, run: Run, gates: Sequence[Gate], rules: ComparisonRules) -> _Look:
    matches = {
        name: common_questions(baseline.benchmarks[name].tally, bench.tally)
        for name, bench in run.benchmarks.items()
        if name in baseline.benchmarks
    }
    compared: list[ComparedPairs] = []
    flips: list[Flip] = []
    not_compared: dict[str, str] = {}
    unscored: list[str] = []
    parted: list[tuple[ComparedMetric, Common]] = []
    for subject in subjects(run, gates, rules):
        common = _selected(baseline, run, subject, matches)
        reason = _obstacle(common, subject, baseline, run, rules)
        outcome = reason or compare_metric(common, subject, run, rules)
        if isinstance(outcome, str):
            not_compared[str(subject)] = outcome
        else:
            compared.append(outcome)
            parted.append((subject, common))
        pairs = common.pairs(subject.metric)
        flips += [
            Flip(subject, pair.row.case, pair.before, pair.after)
            for pair in pairs
            if pair.before != pair.after
        ]
        unscored += _unscored(common, subject, baseline.folder.name)
    against = Against(
        name=baseline.folder.name,
        rules=rules,
        found=(),
        flips=sorted(flips, key=lambda flip: (-flip.loss, str(flip.subject), flip.case)),
        left_out=_one_sided(matches.values(), baseline, run),
        not_compared=not_compared,
        changed=[
            *judge_drift(baseline, run),
            *changed_signatures(matches, baseline.folder.name),
            *_changes(matches, baseline.folder.name),
        ],
        unscored=unscored,
        slices=slices(parted),
    )
    return _Look(against, compared)


def _selected(baseline: Run, run: Run, subject: ComparedMetric, matches: Mapping[str, Common]) -> Common:
    """The questions that a subject covers, selected by this run's tags."""
    if subject.value is None and subject.benchmark in matches:
        return matches[subject.benchmark]
    now = select(run.benchmarks[subject.benchmark].tally, subject.tag, subject.value)
    before = baseline.benchmarks.get(subject.benchmark)
    asked = {row.question for row in now}
    old = (
        before.tally.where(lambda row: subject.value is None or row.question in asked) if before else Tally()
    )
    return common_questions(old, now)


def _obstacle(
    common: Common, subject: ComparedMetric, baseline: Run, run: Run, rules: ComparisonRules
) -> str:
    """The reason why a subject cannot be compared; empty if it can."""
    name = baseline.folder.name
    if not common.before:
        available = ", ".join(baseline.benchmarks) or "nothing"
        return f"{name} holds no such case (it holds {available}); make a baseline of this suite"
    share, of = _paired_share(common, run)
    if share < rules.min_paired:
        replaced = len(common.replaced)
        changed = f"; {replaced} have another input or target than in {name}" if replaced else ""
        return (
            f"{len(common.shared)} of {of} questions are the same in both runs, fewer than --min-paired "
            f"{rules.min_paired:g}{changed}"
        )
    if is_derived(run.benchmarks[subject.benchmark], subject.metric):
        return ""
    pairs = common.pairs(subject.metric)
    if len(pairs) < 2:
        return f"{len(pairs)} cases have it on both sides, and two are the least"
    return ""


def _paired_share(common: Common, run: Run) -> tuple[float, int]:
    """The share of questions that both runs have, and the number that it is a share of.

    A partial run is measured against its own questions; a complete one must not have lost any either. One that goes
    on beyond its limit may ask more than a baseline of that limit has.
    """
    settings, sizes = run.info.get("settings", {}), (len(common.after), len(common.before))
    partly = settings.get("limit") or run.info.get("narrowed") or run.info.get("early")
    goes_on = settings.get("limit") and settings.get("until_decided")
    of = min(sizes) if goes_on else sizes[0] if partly else max(sizes)
    return (len(common.shared) / of if of else 0.0), of


def _one_sided(matches: Iterable[Common], baseline: Run, run: Run) -> dict[str, list[str]]:
    # Benchmarks that this run did not include are not lost cases.
    sides = [match.one_sided() for match in matches]
    new = [
        row.case
        for name, bench in run.benchmarks.items()
        if name not in baseline.benchmarks
        for row in bench.tally
    ]
    return {
        "only in the baseline": sorted(case for before, _ in sides for case in before),
        "only in this run": sorted([*(case for _, after in sides for case in after), *new]),
    }


def _changes(matches: Mapping[str, Common], name: str) -> list[str]:
    lines = []
    for benchmark, common in matches.items():
        parts = [f"{change} of {count}" for change, count in common.changed.items()]
        if common.replaced:
            parts.insert(0, f"input or target of {len(common.replaced)} (left out)")
        if parts:
            of = len(common.shared) + len(common.replaced)
            lines.append(f"{benchmark}: since {name}, of {of} questions have changed: {', '.join(parts)}")
    return lines


def _unscored(common: Common, subject: ComparedMetric, name: str) -> list[str]:
    before, after = common.unscored(subject.metric)
    where = [f"{count} in {place}" for count, place in ((before, name), (after, "this run")) if count]
    return [f"{subject}: questions left out because of errors: {', '.join(where)}"] if where else []
