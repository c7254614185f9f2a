"""`evalsuite judge rank`: let a judge compare the answers of each pair of runs, and rate three or more runs."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path

from evalsuite import stats
from evalsuite.builders.model_session import add_options
from evalsuite.commands import AGAIN
from evalsuite.commands import judge as judging
from evalsuite.commands.judged_again import AnswersToJudge
from evalsuite.core.errors import RunError, SettingsError, escape_for_terminal, write_count
from evalsuite.core.option_values import declare_arguments
from evalsuite.core.types import Record, Sample
from evalsuite.decisions.gates import parse_gates
from evalsuite.judges.rubrics import rubric
from evalsuite.output.reports.judges import tabulate_biases
from evalsuite.output.reports.judges.certificate import JudgeResults
from evalsuite.output.reports.judges.estimates import tabulate_ratings
from evalsuite.output.reports.markdown import convert_for_terminal, format_decision_line, render_sections
from evalsuite.output.reports.section import Cell, Section, Table, parse_columns
from evalsuite.results.run_folders import find_run_folder
from evalsuite.results.runs import load_run
from evalsuite.results.tally import Estimate, Row, Tally

RIVAL = "rival"  # The key of the other run's answer in a sample's metadata.
EMPTY = "(The answer is empty.)"


@dataclass(frozen=True, slots=True)
class _RunAnswers:
    """The answers of one run to one benchmark."""

    run: str
    folder: Path
    benchmark: str
    records: Mapping[str, Record]  # The records of cases with an answer, by case.
    failed: Mapping[str, Row]  # The rows of cases that ended in an error before there was an answer, by case.

    def list_common_cases(self, other: "_RunAnswers") -> list[str]:
        """List the cases that both runs answered."""
        return [case for case in self.records if case in other.records]

    def list_changed_cases(self, other: "_RunAnswers") -> list[str]:
        """List the cases that both runs answered, but whose questions differ."""
        cases = self.list_common_cases(other)
        return [case for case in cases if self.records[case].input != other.records[case].input]


@declare_arguments(
    """
    --reports
    names=RUN+           a run's name or folder, or `last`
    --against RUN*       a further run; may be repeated
    --judge MODEL*       a judge; may be repeated
    --criteria QUESTION  what makes an answer better: --criteria 'Is it polite?' (default: the judge decides)
    --benchmark NAME     the benchmark whose answers are compared, if the runs have several
    --gate CONDITION*    a condition for every pair and judge, such as 'qa.preference >= 0.5 @95%%', where 1 means that
        the first run wins; may be repeated. The exit status is 10 if a gate is missed, and 12 if it has no data

    The judge compares both answers to each case twice, once in each order, so each pair of runs costs 2 calls per case
    and judge. `evalsuite judge A --against B` is the same.
    """,
    required=("judge",),
    extend_parser=partial(add_options, names=judging.TAKEN),
)
def run_rank(options: argparse.Namespace) -> int:
    """Print win rates and ratings, write them to the first run's folder, and decide the gates."""
    names = list(dict.fromkeys([*options.names, *options.against]))
    if len(names) < 2:
        raise SettingsError("name at least two runs to compare: evalsuite judge rank A B --judge MODEL")
    gates = parse_gates(options.gate)
    runs = [_read_run_answers(name, options) for name in names]
    if others := {run.benchmark for run in runs} - {runs[0].benchmark}:
        raise RunError(f"the runs have different benchmarks, {runs[0].benchmark} and {min(others)}")
    for first, second in combinations(runs, 2):
        if changed := first.list_changed_cases(second):
            counted = f"{write_count(len(changed), 'case')} left out because the question differs"
            words = f"{counted} between {first.run} and {second.run}: {', '.join(changed[:3])}"
            sys.stdout.write(f"{escape_for_terminal(words)}\n")
    target = runs[0].folder / AGAIN / "judge"
    target.mkdir(parents=True, exist_ok=True)
    found = [
        (*pair, results)
        for pair in combinations(runs, 2)
        for judge in options.judge
        for results in _compare_runs(*pair, judge, options, target / "store.sqlite")
    ]
    judges = [results for *_, results in found]
    biases = tabulate_biases("Biases", [(results.judge, results.tally) for results in judges])
    text = render_sections([make_win_rates_section(found), Section("What sways the judge", (biases,))], ())
    (target / "ranks.md").write_text(text, "utf-8")
    sys.stdout.write(f"{convert_for_terminal(text)}\n{target / 'ranks.md'}\n")
    decisions = judging.decide_judge_gates(gates, judges, {}, runs[0].benchmark)
    sys.stdout.writelines(f"{format_decision_line(decision)}\n" for decision in decisions)
    return int(judging.choose_exit_status(decisions, judges))


def _read_run_answers(name: str, options: argparse.Namespace) -> _RunAnswers:
    run = load_run(find_run_folder(options.reports, name))
    benchmark = judging.choose_benchmark(run, options.benchmark)
    answered = judging.read_answered_records(run, benchmark)
    failed = {row.case: row for row in judging.list_unanswered_rows(run, benchmark, answered)}
    records = {record.case: record for record in answered}
    return _RunAnswers(run.folder.path.name, run.folder.path, benchmark, records, failed)


def _compare_runs(
    first: _RunAnswers, second: _RunAnswers, judge: str, options: argparse.Namespace, store: Path
) -> list[JudgeResults]:
    changed = set(first.list_changed_cases(second))
    cases = [case for case in first.list_common_cases(second) if case not in changed]
    if not cases:
        raise RunError(f"{first.run} and {second.run} have no question in common that both answered")
    # Count a case as missing if a run failed to answer it, because leaving it out could hide the run's worst cases.
    failed = {
        case: row
        for one, other in ((first, second), (second, first))
        for case, row in one.failed.items()
        if case in other.records or case in other.failed
    }
    # Make each case a separate sample, because a sample's rival answer differs between epochs.
    records = [
        replace(record, sample=case, transcript=replace(record.transcript, answer=_get_answer_or_placeholder(record)))
        for case in cases
        for record in [first.records[case]]
        if record.transcript is not None
    ]
    rivals = {case: _get_answer_or_placeholder(second.records[case]) for case in cases}
    samples = {case: Sample(case, first.records[case].input, metadata={RIVAL: rivals[case]}) for case in cases}
    scorer = rubric(options.criteria or None, compare=RIVAL)
    compared, pair = [], f"{judge}: {first.run} against {second.run}"
    for results in judging.judge_answers(judge, AnswersToJudge(records, [scorer], samples), options, store, {}, 0):
        rows = [replace(row, sample=first.records[row.case].sample) for row in results.tally]
        tally = Tally((*rows, *failed.values()))
        compared.append(replace(results, judge=pair, asked=results.asked + len(failed), tally=tally))
    return compared


def _get_answer_or_placeholder(record: Record) -> str:
    return (record.transcript.answer if record.transcript else "") or EMPTY


def make_win_rates_section(compared: Sequence[tuple[_RunAnswers, _RunAnswers, JudgeResults]]) -> Section:
    """Make a report section about runs compared by judges; if a judge compared three or more runs, add ratings."""
    rows: list[tuple[Cell, ...]] = []
    outcomes: dict[str, list[tuple[str, str, float]]] = {}
    clusters: dict[str, list[str]] = {}
    for first, second, results in compared:
        judge = results.judge.partition(": ")[0]
        judged = [row for row in results.tally if row.case in results.scores]
        # One result per answer of the first run: 1 for a win, 0.5 for a tie, 0 for a loss.
        scores = [results.scores[row.case] for row in judged]
        outcomes.setdefault(judge, []).extend((first.run, second.run, score) for score in scores)
        clusters.setdefault(judge, []).extend(row.cluster for row in judged)
        counts = [scores.count(score) for score in (1.0, 0.5, 0.0)]
        rates = _estimate_win_rates(scores, judged) if scores else (None, None)
        rows.append((first.run, second.run, judge, *counts, *rates, results.asked - len(scores)))
    columns = parse_columns(
        "Run | Against | Judge | Wins: count | Ties: count | Losses: count | Win rate (%): percent | At equal lengths "
        "(%): percent | No verdict: count"
    )
    note = (
        "The judge saw both answers in both orders; orders that contradict each other are a tie, and a tie is half a "
        "win. The win rate at equal lengths is a logistic regression's (length-controlled AlpacaEval, "
        "arXiv 2404.04475, without its term for the difficulty of instructions). Cases of one sample count together. "
        "No verdict: a run has no answer, or the judge's answer could not be read."
    )
    ratings = [tabulate_ratings(f"Ratings by {judge}", outcomes[judge], clusters[judge]) for judge in outcomes]
    return Section("Runs compared", (Table("Win rates", columns, rows, note), *filter(None, ratings)))


def _estimate_win_rates(outcomes: Sequence[float], rows: Sequence[Row]) -> tuple[Estimate, Estimate]:
    """Estimate the first run's win rate, and its win rate if both runs' answers had equal lengths."""
    clusters = [row.cluster for row in rows]
    interval = stats.betting_interval(outcomes, clusters=clusters)
    own, rival = zip(*(row.facts["lengths"] for row in rows), strict=True)
    controlled = stats.controlled_win_rate(outcomes, own, rival, clusters=clusters)
    return (
        Estimate(sum(outcomes) / len(outcomes), interval.low, interval.high, len(outcomes)),
        Estimate(controlled.share, controlled.low, controlled.high, len(outcomes)),
    )
