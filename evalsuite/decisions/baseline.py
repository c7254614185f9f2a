"""Compare a run with its baselines in each metric, and report further changes, such as changed judges."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalsuite import stats
from evalsuite.core.option_values import INCOMPARABLE
from evalsuite.decisions import comparison
from evalsuite.decisions.comparison import BaselineComparison, ComparedMetric, ComparisonRules, SharedQuestions
from evalsuite.decisions.measured import select_cases
from evalsuite.results.judge_labels import compute_accuracy, is_canary, read_signatures
from evalsuite.results.run_folders import list_changed_files
from evalsuite.results.runs import Run, get_failure
from evalsuite.results.tally import Tally

if TYPE_CHECKING:
    from evalsuite.decisions.gates import Gate


def compare_to_baselines(
    baselines: Sequence[Run], run: Run, gates: Sequence[Gate], rules: ComparisonRules
) -> list[BaselineComparison]:
    """Compare a run with its baselines on the gated metrics, or on the primary metrics if the run has no gates.

    Compare with each baseline separately, because the mean of several baselines would hide part of a gradual decline.
    All verdicts are corrected jointly for multiple testing, because the comparisons share most of their questions.
    """
    undecided = [_compare_without_verdicts(baseline, run, gates, rules) for baseline in baselines]
    results = [result for _, compared in undecided for _, result in compared]
    verdicts = iter(stats.verdicts(results, confidence=rules.confidence) if results else ())
    return [
        replace(against, found=[(subject, result, next(verdicts)) for subject, result in compared])
        for against, compared in undecided
    ]


def _compare_without_verdicts(
    baseline: Run, run: Run, gates: Sequence[Gate], rules: ComparisonRules
) -> tuple[BaselineComparison, list[tuple[ComparedMetric, stats.NonInferiority]]]:
    """Compare each metric with one baseline; the verdicts follow later, for all baselines together."""
    matches = {
        name: comparison.pair_questions(baseline.benchmarks[name].tally, bench.tally)
        for name, bench in run.benchmarks.items()
        if name in baseline.benchmarks
    }
    compared: list[tuple[ComparedMetric, stats.NonInferiority]] = []
    flips: list[comparison.ScoreFlip] = []
    missing = _list_missing_benchmarks(baseline, run, gates)
    not_compared = {ComparedMetric(name, None, None, "*", lower_is_better=False): NO_CASES for name in missing}
    unscored: list[str] = []
    parted: list[tuple[ComparedMetric, SharedQuestions]] = []
    for subject in comparison.list_compared_metrics(run, gates, rules, baseline):
        questions = _pair_questions_of_metric(baseline, run, subject, matches)
        reason = _explain_incomparability(questions, subject, baseline, run, rules)
        outcome = reason or _compare_metric(questions, subject, run, rules)
        if isinstance(outcome, str):
            not_compared[subject] = outcome
        else:
            compared.append((subject, outcome))
            parted.append((subject, questions))
        pairs = [pair for pair in questions.list_pairs(subject.metric) if pair.before != pair.after]
        flips += [comparison.ScoreFlip(subject, pair.before, pair.after, pair.row.case) for pair in pairs]
        unscored += _describe_unscored_questions(questions, subject, baseline.folder.name)
    against = BaselineComparison(
        name=baseline.folder.name,
        rules=rules,
        found=(),
        flips=sorted(flips, key=lambda flip: (-flip.loss, str(flip.subject), flip.case)),
        left_out=_map_runs_to_unmatched_cases(matches.values(), baseline, run),
        not_compared=not_compared,
        remarks=[
            *_describe_baseline(baseline),
            *list_judge_drifts(baseline, run),
            *list_signature_changes(matches, baseline.folder.name),
            *_describe_changed_fingerprints(matches, baseline.folder.name),
            *unscored,
        ],
        expired=_explain_invalid_baseline(baseline, run),
        slices=comparison.list_slices(parted),
    )
    return against, compared


NO_CASES = "this run has no case of it, although both collected the same paths; promote a newer baseline if intended"


def _list_missing_benchmarks(baseline: Run, run: Run, gates: Sequence[Gate]) -> Iterator[str]:
    """Find benchmarks that only the baseline has and some gate covers, if both runs collected the same paths."""
    selection = run.info.get("selection")
    if selection is None or selection != baseline.info.get("selection"):
        return
    for name in baseline.benchmarks.keys() - run.benchmarks.keys():
        if not gates or any(gate.covers_benchmark(name) for gate in gates):
            yield name


def _describe_baseline(baseline: Run) -> Iterator[str]:
    """State who promoted a baseline; if nobody did, state whether the baseline's own verdict was a failure."""
    name, summary = baseline.folder.name, baseline.folder.summary()
    if promoted := baseline.info.get("promoted"):
        yield f"{name} was promoted by {promoted['by']} on {promoted['when'][:10]}: {promoted['why']}"
    elif summary.get("status"):
        yield f"{name} was not green itself: {summary.get('verdict')} (exit status {summary['status']})"


def _explain_invalid_baseline(baseline: Run, run: Run) -> str:
    """Explain why a baseline is invalid (it was changed, or had expired); return an empty text for a valid baseline."""
    if changed := list_changed_files(baseline.folder.path, baseline.info):
        return (
            f"the baseline {baseline.folder.name} differs from what was promoted, in {', '.join(changed)}: restore it, "
            "or promote a run (evalsuite baseline promote)"
        )
    until = (baseline.info.get("promoted") or {}).get("until")
    if until is None or str(run.info.get("started", ""))[:10] <= until:
        return ""
    return f"the baseline {baseline.folder.name} held until {until}: promote a newer run (evalsuite baseline promote)"


def _pair_questions_of_metric(
    baseline: Run, run: Run, subject: ComparedMetric, matches: Mapping[str, SharedQuestions]
) -> SharedQuestions:
    """Pair the questions of both runs; if the metric has a tag, use only questions with this tag in this run."""
    if subject.value is None and subject.benchmark in matches:
        return matches[subject.benchmark]
    now = select_cases(run.benchmarks[subject.benchmark].tally, subject.tag, subject.value)
    before = baseline.benchmarks.get(subject.benchmark)
    asked = {row.question for row in now}
    old = before.tally.where(lambda row: subject.value is None or row.question in asked) if before else Tally()
    return comparison.pair_questions(old, now)


def _explain_incomparability(
    questions: SharedQuestions, subject: ComparedMetric, baseline: Run, run: Run, rules: ComparisonRules
) -> str:
    name = baseline.folder.name
    if not questions.before:
        available = ", ".join(baseline.benchmarks) or "nothing"
        return f"{name} holds no such case (it holds {available}); make a baseline of this suite"
    share, of = _measure_question_overlap(questions, run, subject.benchmark)
    if share < rules.min_paired:
        replaced = len(questions.replaced)
        changed = f"; {replaced} have another input or target than in {name}" if replaced else ""
        return (
            f"{len(questions.shared)} of {of} questions are the same in both runs, fewer than evalsuite_min_paired "
            f"{rules.min_paired:g}{changed}"
        )
    if altered := [each for each in INCOMPARABLE if each in questions.changed and each not in rules.accepted]:
        counted = " and ".join(f"{each} of {questions.changed[each]}" for each in altered)
        return (
            f"{counted} of {len(questions.shared)} questions have changed, so a difference is not the model's alone; "
            f"make a baseline of this suite, or accept the change: -o evalsuite_accept_changes={','.join(altered)}"
        )
    pairs = questions.list_pairs(subject.metric)
    if subject.metric in run.benchmarks[subject.benchmark].derived or len(pairs) > 1:
        return ""
    return f"{len(pairs)} cases have this score in both runs; a comparison needs at least two"


def _measure_question_overlap(questions: SharedQuestions, run: Run, benchmark: str) -> tuple[float, int]:
    """Return which share of the questions both runs have, and the total number of questions.

    The total is the number of questions in this run if it selected only some cases, otherwise the number in the larger
    run. If `--until-decided` continued this run beyond `--limit`, the total is the smaller run's number of questions.
    """
    settings, sizes = run.info.get("settings", {}), (len(questions.after), len(questions.before))
    collected = run.info.get("collected", {}).get(benchmark)
    selects = collected["selected"] < collected["cases"] if collected else run.info.get("narrowed")
    partly = settings.get("limit") or selects or run.info.get("early")
    goes_on = settings.get("limit") and settings.get("until_decided")
    of = min(sizes) if goes_on else sizes[0] if partly else max(sizes)
    return (len(questions.shared) / of if of else 0.0), of


def _map_runs_to_unmatched_cases(matches: Collection[SharedQuestions], baseline: Run, run: Run) -> dict[str, list[str]]:
    """Map each run to the cases that only it has; leave out benchmarks that this run did not collect."""
    gone = [rows[0].case for match in matches for key, rows in match.before.items() if key not in match.after]
    added = [rows[0].case for match in matches for key, rows in match.after.items() if key not in match.before]
    new = [row.case for name, bench in run.benchmarks.items() if name not in baseline.benchmarks for row in bench.tally]
    return {"only in the baseline": sorted(gone), "only in this run": sorted([*added, *new])}


def _describe_changed_fingerprints(matches: Mapping[str, SharedQuestions], baseline: str) -> Iterator[str]:
    for benchmark, questions in matches.items():
        parts = [f"{change} of {count}" for change, count in questions.changed.items()]
        if questions.replaced:
            parts.insert(0, f"input or target of {len(questions.replaced)} (left out)")
        if parts:
            of = len(questions.shared) + len(questions.replaced)
            yield f"{benchmark}: since {baseline}, of {of} questions have changed: {', '.join(parts)}"


def _describe_unscored_questions(questions: SharedQuestions, subject: ComparedMetric, baseline: str) -> list[str]:
    counts = {
        place: sum(
            comparison.compute_mean_score(run[question], subject.metric) is None
            and any(row.outcome == "error" for row in run[question])
            for question in questions.shared
        )
        for place, run in ((baseline, questions.before), ("this run", questions.after))
    }
    where = [f"{count} in {place}" for place, count in counts.items() if count]
    return [f"{subject}: questions left out because of errors: {', '.join(where)}"] if where else []


def list_signature_changes(matches: Mapping[str, SharedQuestions], baseline: str) -> Iterator[str]:
    """Yield a line for each judge whose signature (model and prompt) differs between runs on their shared questions."""
    for benchmark, questions in matches.items():
        metrics: dict[tuple[str, str], dict[str, None]] = {}  # A judge's scores, by its signature before and now.
        for question in questions.shared:
            before, now = (read_signatures(run[question][0].facts) for run in (questions.before, questions.after))
            for metric in now:
                if before.get(metric, now[metric]) != now[metric]:
                    metrics.setdefault((before[metric], now[metric]), {})[metric] = None
        for (old, new), names in metrics.items():
            yield (
                f"{benchmark}: since {baseline}, the judge of {', '.join(names)} has changed from {old} to {new}: what "
                "the comparison shows of them is not the model's alone"
            )


# If more than this share of canaries (cases with fixed answers) is judged differently, report that the judge changed.
LARGEST_CANARY_CHANGE = 0.05


def list_judge_drifts(baseline: Run, run: Run) -> Iterator[str]:
    """Yield a line for each score that the judge now gives differently on canaries (cases with fixed answers)."""
    for name, bench in run.benchmarks.items():
        if not is_canary(bench.tally) or name not in baseline.benchmarks:
            continue
        before = baseline.benchmarks[name].tally
        common = comparison.pair_questions(before, bench.tally)
        old, new = compute_accuracy(before), compute_accuracy(bench.tally)
        accuracy = f" (agreement with people {new.value:.0%} after {old.value:.0%})" if old and new else ""
        for metric in bench.tally.metrics():
            pairs = common.list_pairs(metric)
            changed = sum(pair.before != pair.after for pair in pairs)
            counted = f"{changed} of {len(pairs)} canaries are judged differently than in {baseline.folder.name}"
            if changed and stats.count_interval(changed, len(pairs)).low > LARGEST_CANARY_CHANGE:
                meaning = ": the judge has changed, so a difference is not the model's alone"
            else:
                meaning = ", which is within what a judge may vary"
            if changed:
                yield f"{name}.{metric}: {counted}{accuracy}{meaning}"


def _compare_metric(
    questions: SharedQuestions, subject: ComparedMetric, run: Run, rules: ComparisonRules
) -> stats.NonInferiority | str:
    """Compare one metric on the questions of both runs; if no comparison is possible, return the reason as text."""
    if subject.metric in run.benchmarks[subject.benchmark].derived:
        return _compare_derived_metric(questions, subject, run, rules)
    found = questions.list_scores_of_both_runs(subject.metric)
    sized = _find_width_and_margin(subject, run, rules, [score for pair in found for each in pair for score in each])
    if isinstance(sized, str):
        return sized
    width, margin = sized
    scored, lost = sum(bool(old) for old, _ in found), sum(bool(old) and not new for old, new in found)
    # A question without a score in this run may hide a loss as large as the metric's whole range.
    if lost * width > margin * scored:
        return (
            f"{lost} of {scored} questions that the baseline scored have no score in this run, which may hide a loss "
            f"of {lost * width / scored:.3g}; {margin:.3g} matters"
        )
    before, after, clusters = comparison.split_score_pairs(questions.list_pairs(subject.metric))
    return stats.compare_paired(
        before, after, margin=margin, clusters=clusters, scale=width, lower_is_better=subject.lower_is_better
    )


def _compare_derived_metric(
    questions: SharedQuestions, subject: ComparedMetric, run: Run, rules: ComparisonRules
) -> stats.NonInferiority | str:
    """Compare a metric that is not a mean over cases; the jackknife leaves out the same clusters in both runs."""
    compute = run.benchmarks[subject.benchmark].derived[subject.metric]
    whole, clusters = questions.compute_metric_in_both_runs(compute), len(questions.list_clusters())
    if failure := get_failure(compute):
        return failure
    if any(math.isnan(value) for value in whole) or clusters < 2:
        return "it is undefined on the cases of both runs"
    sized = _find_width_and_margin(subject, run, rules, whole)
    if isinstance(sized, str):
        return sized
    width, margin = sized
    without = questions.compute_replicates(compute)
    if any(math.isnan(value) for pair in without for value in pair):
        return "it is undefined without some cases, so its error is unknown"
    return stats.compare_statistic(
        whole,
        without,
        n=len(questions.shared),
        clusters=clusters,
        margin=margin,
        scale=width,
        lower_is_better=subject.lower_is_better,
    )


def _find_width_and_margin(
    subject: ComparedMetric, run: Run, rules: ComparisonRules, values: Sequence[float]
) -> tuple[float, float] | str:
    """Find the width of a metric's range, and the margin; if the width is unknown, return the reason as text."""
    bounds, own = comparison.find_range(run, subject, values), comparison.find_gate_margin(subject, rules)
    if bounds is not None:
        low, high = bounds
        if outside := [value for value in values if not low <= value <= high]:
            return f"{subject.metric} is declared to lie in [{low:g}, {high:g}], and {outside[0]:g} does not"
        width = high - low
    elif own is None:
        return (
            f"{subject.metric} has no declared range, which tells what loss matters: declare Metric(range=(0, 1)), or "
            f"gate {subject.benchmark}.{subject.metric} no worse than baseline by 0.05"
        )
    else:
        width = max(max(values) - min(values), 2 * own)
    if own is not None and own >= width:
        return f"{subject.metric}: a loss of {own:g} is at least as large as the metric's whole range of {width:g}"
    return width, rules.get_margin(subject.benchmark) * width if own is None else own
