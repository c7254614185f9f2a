"""`evalsuite judge rank`: let a judge compare the answers of each pair of runs, and rate three or more runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.builders.model_session import add_options
from evalsuite.commands import judge as judging
from evalsuite.commands.judged_again import AnswersToJudge
from evalsuite.commands.report import AGAIN
from evalsuite.core.errors import RunError, SettingsError, escape_for_terminal, write_count
from evalsuite.core.option_values import declare_arguments
from evalsuite.core.types import Record, Sample
from evalsuite.decisions.gates import parse_gates
from evalsuite.judges.rubrics import rubric
from evalsuite.output.reports.judges.ballots import tabulate_biases
from evalsuite.output.reports.judges.estimates import JudgedRunPair, make_win_rates_section
from evalsuite.output.reports.markdown import convert_for_terminal, format_decision_line, render_sections
from evalsuite.output.reports.section import Section
from evalsuite.results.run_folders import find_run_folder
from evalsuite.results.runs import load_run
from evalsuite.results.tally import Row, Tally

if TYPE_CHECKING:
    from evalsuite.output.reports.judges.certificate import JudgeResults

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

    def list_common_cases(self, other: _RunAnswers) -> list[str]:
        """List the cases that both runs answered."""
        return [case for case in self.records if case in other.records]

    def list_changed_cases(self, other: _RunAnswers) -> list[str]:
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
        (pair, results)
        for pair in combinations(runs, 2)
        for judge in options.judge
        for results in _compare_runs(*pair, judge, options, target / "store.sqlite")
    ]
    judges = [results for _, results in found]
    comparisons = [_make_judged_run_pair(first, second, results) for (first, second), results in found]
    biases = tabulate_biases("Biases", [(results.judge, results.tally) for results in judges])
    text = render_sections([make_win_rates_section(comparisons), Section("What sways the judge", (biases,))], ())
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


def _make_judged_run_pair(first: _RunAnswers, second: _RunAnswers, results: JudgeResults) -> JudgedRunPair:
    judged = [row for row in results.tally if row.case in results.scores]
    lengths = [tuple(row.facts["lengths"]) for row in judged]
    return JudgedRunPair(
        first=first.run,
        second=second.run,
        judge=results.judge.partition(": ")[0],
        outcomes=[results.scores[row.case] for row in judged],
        lengths=lengths,
        clusters=[row.cluster for row in judged],
        asked=results.asked,
    )
