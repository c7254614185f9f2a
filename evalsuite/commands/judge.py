"""`evalsuite judge`: judge a run's answers again, or make a `sheet` on which people label answers."""

import json
import math
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from evalsuite.builders.building import parse_csv_sheet
from evalsuite.builders.model_session import add_options
from evalsuite.commands import AGAIN, make_declarations
from evalsuite.commands.judged_again import AnswersToJudge, rejudge_answers
from evalsuite.core.declarations import is_demonstration
from evalsuite.core.errors import DatasetError, RunError, SettingsError, escape_for_terminal, write_count
from evalsuite.core.json_codec import digest
from evalsuite.core.option_values import declare_arguments, make_int_parser
from evalsuite.core.protocols import Benchmark, JudgedScorer, Setup
from evalsuite.core.settings import make_settings
from evalsuite.core.types import Metric, Record
from evalsuite.decisions.gates import JUDGE, Gate, GateDecision, decide_gates, parse_gates
from evalsuite.decisions.measured import MeasuredBenchmark
from evalsuite.decisions.verdict import Status
from evalsuite.engine.case_record import format_input
from evalsuite.gateway.loop import BackgroundLoop
from evalsuite.judges.judgements import LABELS, average_scores, is_on_scale, parse_label
from evalsuite.judges.rubrics import Rubric, check_passing_score, rubric
from evalsuite.output.reports.judges.certificate import JudgeResults, make_judge_quality_section, make_labelled_tally
from evalsuite.output.reports.markdown import convert_for_terminal, format_decision_line, render_sections
from evalsuite.results.judge_labels import JUDGE_METRICS, estimate_corrected_score
from evalsuite.results.run_folders import find_run_folder
from evalsuite.results.runs import Run, load_run
from evalsuite.results.tally import Row, Tally

SCORES = "scores.jsonl"  # File in the folder `again/judge` that contains the scores of all judges so far.
TAKEN = ("judge_base_url", "judge_param", "judge_key_env", "max_connections", "max_rpm", "max_tpm", "max_cost", "price")
"""The options of a session that `evalsuite judge` also accepts."""


@declare_arguments(
    """
    --reports RUN
    --judge MODEL*     a judge; may be repeated, to compare
    --criteria --scale
    --passes SCORE     lowest score that passes (default: the best score)
    --benchmark NAME   the benchmark whose answers are judged, if the run has several
    --score NAME*      a score of the judge, if the cases declare several; may be repeated (default: all)
    --people FILE*     a sheet of `evalsuite judge sheet`; may be repeated
    --gate CONDITION*  a condition for every judge, such as 'judge.kappa >= 0.6 @95%%'; may be repeated. The exit status
        is 10 if a gate is missed, and 12 if a gate has no data or no answer of a judge could be read
    --probes N         random cases per kind of mutation test, each with about 20 to 35 calls; 0 makes no tests
        (default: 20)
    """,
    required=("judge",),
    passes=float,
    probes=(make_int_parser(0), 20),
    extend_parser=partial(add_options, names=TAKEN),
)
def run_judge(options: Namespace) -> int:
    """Judge the answers, print the judges' measured agreement, write it to the run's folder, and decide the gates."""
    gates = parse_gates(options.gate)
    run = load_run(find_run_folder(options.reports, options.name), make_declarations(Path.cwd()))
    folder, bench = run.folder, choose_benchmark(run, options.benchmark)
    records = read_answered_records(run, bench)
    filled_in = list(map(read_label_sheet, options.people))
    sheets = [sheet.labels for sheet in filled_in]
    people = average_scores(sheets)
    weights = {case: weight for sheet in filled_in for case, weight in sheet.weights.items() if case in people}
    if weights and (alone := set(people) - set(weights)):
        raise RunError(
            f"{min(alone)} has no weight, but other labelled cases have one: give sheets of one draw, with all weights"
        )
    _require_labels_of_run(filled_in, records, folder.path)
    answers = combine_answers_with_scorers(run, bench, records, options)
    seed = run.info.get("settings", {}).get("seed") or 0
    target = folder.path / AGAIN / "judge"
    target.mkdir(parents=True, exist_ok=True)
    store = target / "store.sqlite"
    # Check `--passes` where the scale is known, before any judge is paid.
    for scorer in answers.scorers:
        if isinstance(scorer, Rubric) and scorer.criteria and scorer.name in (options.score or [scorer.name]):
            check_passing_score(scorer.criteria, answers.passes)
    judges = [one for name in options.judge for one in judge_answers(name, answers, options, store, people, seed)]
    names = {judge.score for judge in judges}
    if unknown := set(options.score) - names:
        raise RunError(f"no judge gave the score {min(unknown)}; the judges gave {', '.join(sorted(names))}")
    judges = [judge for judge in judges if judge.score in (options.score or names)]
    if not all(judge.asked for judge in judges):
        raise RunError(f"{folder.path} has no answer that the judge of {bench} is asked about")
    _require_labels_on_scale([sheet.written for sheet in filled_in], judges)
    text = render_sections([make_judge_quality_section(judges, people, sheets, weights)], ())
    (target / "certificate.md").write_text(text, "utf-8")
    sys.stdout.write(f"{convert_for_terminal(text)}\n{target / 'certificate.md'}\n")
    _write_scores(target / SCORES, judges)
    mutations = [
        {"judge": judge.judge, "score": judge.score, "metric": metric, "cases": dict(cases)}
        for judge in judges
        for metric, cases in judge.mutations.items()
    ]
    _write_json_lines(target / "mutations.jsonl", mutations)
    unanswered = list_unanswered_rows(run, bench, records)
    counted = [replace(judge, tally=Tally((*judge.tally, *unanswered))) for judge in judges]
    decisions = decide_judge_gates(gates, counted, people, bench, sheets, weights)
    for decision in decisions:
        sys.stdout.write(f"{format_decision_line(decision)}{describe_needed_labels(decision, len(people))}\n")
    for judge in judges:
        if not judge.scores:
            sys.stdout.write(escape_for_terminal(f"no answer of {judge.name} could be read") + "\n")
    return int(choose_exit_status(decisions, judges))


def _require_labels_of_run(sheets: "Sequence[LabelSheet]", records: Sequence[Record], run: Path) -> None:
    """Raise RunError if no label belongs to a case of the run, or if one belongs to another answer or question."""
    current = {record.case: hash_content(record) for record in records}
    labelled = {case for sheet in sheets for case in sheet.labels}
    if labelled and not labelled & current.keys():
        raise RunError(
            f"no label belongs to a case of {run}: leave the column `case` as `evalsuite judge sheet` wrote it"
        )
    for sheet in sheets:
        shown = {case: sheet.contents[case] for case in sheet.labels if case in current}
        if stale := [case for case, text in shown.items() if HASH.fullmatch(text) and text != current[case]]:
            raise RunError(
                f"{sheet.path}: {len(stale)} of {len(sheet.labels)} labels belong to another answer or question than "
                f"this run's, such as the label of {stale[0]}; judge the run of the sheet, or label a sheet of this run"
            )


def _require_labels_on_scale(sheets: Sequence[Mapping[str, str]], judges: Sequence[JudgeResults]) -> None:
    for judge in judges:
        low, high = judge.scale or (-math.inf, math.inf)
        misfit = f"is off the scale of {judge.name}, from {low:g} to {high:g}"
        if judge.passes is not None and not judge.nominal and not low <= judge.passes <= high:
            raise RunError(f"--passes {judge.passes:g} {misfit}")
        for case, label in chain.from_iterable(sheet.items() for sheet in sheets):
            if judge.scale and not is_on_scale(label, judge.scale):
                raise RunError(f"the label {label} of {case} {misfit}")


def choose_benchmark(run: Run, benchmark: str | None) -> str:
    """Choose the named benchmark of a run, or the run's only benchmark."""
    names = [benchmark] if benchmark else list(run.benchmarks)
    if len(names) != 1 or names[0] not in run.benchmarks:
        raise RunError(f"name one benchmark of {run.folder.path} with --benchmark: {', '.join(run.benchmarks)}")
    return names[0]


def read_answered_records(run: Run, bench: str) -> list[Record]:
    """Read a benchmark's records that have an answer; raise RunError if no record has an answer."""
    records = [run.read(row.case) for row in run.benchmarks[bench].tally]
    answered = [record for record in records if record.transcript is not None]
    if not answered:
        raise RunError(f"{run.folder.path} has no answer to judge")
    return answered


def list_unanswered_rows(run: Run, bench: str, answered: Sequence[Record]) -> list[Row]:
    """List the cases that ended in an error without an answer; for gates, they count as missing, not as left out."""
    cases = {record.case for record in answered}
    errors = (row for row in run.benchmarks[bench].tally if row.outcome == "error" and row.case not in cases)
    return [replace(row, scores={}, facts={}) for row in errors]


def combine_answers_with_scorers(run: Run, bench: str, records: list[Record], options: Namespace) -> AnswersToJudge:
    """Combine answers with the scorers that judge them: a rubric from `--criteria`, or else the benchmark's scorers."""
    if options.criteria:
        return AnswersToJudge(records, [_make_rubric(options)], {}, getattr(options, "passes", None))
    if options.scale:
        raise SettingsError("--scale goes with --criteria; the scorers that the cases declare have their own scales")
    place = records[0].declared or records[0].case.partition("[")[0]
    declared = run.benchmarks[bench].benchmark
    if declared is None:
        declared, gone = make_declarations(Path.cwd()).find_benchmark(bench, place)
        if declared is None:
            raise RunError(
                f"the declaration of {bench} cannot be read{gone and f' ({gone})'}; name the question with --criteria"
            )
    setup = _restore_setup(run, declared, records, place, getattr(options, "judge", ["people"])[0])
    scorers = [scorer for scorer in declared.scorers(setup) if isinstance(scorer, JudgedScorer)]
    if not scorers:
        raise RunError(f"{bench} declares no scorer that asks a judge; name the question with --criteria")
    samples = {sample.id: sample for sample in declared.load(setup).samples}
    # Skip this check for a run of traces (`--answers`), because its questions come from the traces.
    kept = [] if run.info.get("settings", {}).get("answers") else [each for each in records if each.sample in samples]
    # Records store a question mark for each lone surrogate.
    now = [format_input(samples[each.sample]).encode("utf-8", "replace").decode() for each in kept]
    if changed := [each.case for each, text in zip(kept, now, strict=True) if text != each.input]:
        raise RunError(
            f"the questions of {len(changed)} of {write_count(len(records), 'case')} of {bench} have changed since the "
            f"run, such as that of {changed[0]}; restore them, or name a question about the answers with --criteria"
        )
    return AnswersToJudge(records, scorers, samples, getattr(options, "passes", None))


def _restore_setup(run: Run, benchmark: Benchmark, records: list[Record], place: str, judge: str) -> Setup:
    settings = run.info.get("settings", {})
    folder = Path(settings["data"]) / benchmark.name if settings.get("data") else None
    data = folder if folder and folder.is_dir() else None
    named = {record.tags["mode"] for record in records if "mode" in record.tags}
    modes = tuple(sorted(named)) or benchmark.default_modes
    in_demonstration = is_demonstration(benchmark, records[0].model, data, modes)
    args = make_declarations(Path.cwd()).find_declared_arguments(place, in_demonstration=in_demonstration)
    seed = settings.get("seed", 0)
    return Setup(records[0].model, judge=judge, data=data, modes=modes, seed=seed, args=args)


def _make_rubric(options: Namespace) -> JudgedScorer:
    scale = None
    if options.scale:
        low, _, high = options.scale.partition("-")
        if not (low.isdecimal() and high.isdecimal()):
            raise SettingsError(f"--scale {options.scale}: write LOW-HIGH, for example 1-5")
        scale = (int(low), int(high))
    return rubric(options.criteria, scale=scale, passes=getattr(options, "passes", None))


def judge_answers(
    name: str, answers: AnswersToJudge, options: Namespace, store: Path, people: Mapping[str, float], seed: int
) -> list[JudgeResults]:
    """Judge the answers with the judge `name`, within the limits of the command's options."""
    values = {option: getattr(options, option) for option in TAKEN}
    settings = make_settings({**values, "judge_model": name})
    with closing(BackgroundLoop()) as background:
        return background.run(rejudge_answers(settings, answers, getattr(options, "probes", 0), store, people, seed))


def decide_judge_gates(
    gates: Sequence[Gate],
    judges: Sequence[JudgeResults],
    people: Mapping[str, float],
    benchmark: str,
    sheets: Sequence[Mapping[str, float]] = (),
    weights: Mapping[str, float] | None = None,
) -> list[GateDecision]:
    """Decide every gate separately for each judge.

    A gate bounds a judge's agreement with people (`judge.kappa`) or the judge's scores (`qa.corrected_faithful`).
    Labels are keyed by case: `people` has each case's mean label, and `sheets` the labels of each person.
    """
    decisions = []
    for judge in judges:
        tally = make_labelled_tally(judge, people, sheets, weights)
        agreeing = Tally(tuple(row for row in tally if row.facts))
        declared = {judge.score: Metric(judge.scale)} if judge.scale else {}
        corrected = {f"corrected_{judge.score}": partial(estimate_corrected_score, judge.score)}
        measured = {benchmark: MeasuredBenchmark(tally + judge.known, corrected, declared)}
        if len(agreeing):
            measured[JUDGE] = MeasuredBenchmark(agreeing, JUDGE_METRICS)
        decided = decide_gates(gates, measured)
        decisions += [replace(decision, subject=f"{judge.name}: {decision.subject}") for decision in decided]
    return decisions


def describe_needed_labels(decision: GateDecision, labels: int) -> str:
    """State how many more labels a missed gate needs to be met, provided that the estimate stays the same."""
    gate, estimate = decision.gate, decision.estimate
    if decision.verdict != "missed" or gate.confidence is None or estimate is None or not labels:
        return ""
    bound = estimate.low if gate.is_higher_better else estimate.high
    room = (estimate.value - gate.threshold) * (1 if gate.is_higher_better else -1)
    if bound is None or room <= 0 or gate.metric.startswith(("detects_", "resists_")):
        return ""
    more = math.ceil(labels * ((abs(estimate.value - bound) / room) ** 2 - 1))
    return f" (about {more:,} more labels would meet it, if the estimate stays)"


def read_scores(file: Path) -> list[dict[str, Any]]:
    """Read the scores that judges gave earlier: one object per judge and score, with the values by case."""
    try:
        lines = [json.loads(line) for line in file.read_bytes().splitlines()]
        return [{**line, "cases": {str(case): float(score) for case, score in line["cases"].items()}} for line in lines]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunError(f"{file} is damaged ({error}); remove it, and run `evalsuite judge` again") from error


def _write_scores(file: Path, judges: Sequence[JudgeResults]) -> None:
    """Add the judges' scores to the file; if a judge gave a score before, replace the earlier values."""
    new = {(judge.judge, judge.score): dict(judge.scores) for judge in judges}
    old = {(line["judge"], line["score"]): line["cases"] for line in read_scores(file)}
    both = {**old, **new}.items()
    _write_json_lines(file, [{"judge": judge, "score": score, "cases": cases} for (judge, score), cases in both])


def _write_json_lines(file: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    file.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines), "utf-8")


def choose_exit_status(decisions: Sequence[GateDecision], judges: Sequence[JudgeResults]) -> Status:
    """Return the exit status: incomplete if a gate is undecided, or if all answers of some judge were unreadable."""
    verdicts = {decision.verdict for decision in decisions}
    if verdicts - {"met", "missed"} or not all(judge.scores for judge in judges):
        return Status.INCOMPLETE
    return Status.GATE_MISSED if "missed" in verdicts else Status.GOOD


HASH = re.compile(r"h[0-9a-f]{16}")
"""Matches what `hash_content` returns; other texts in a column `content` are the user's own."""


@dataclass(frozen=True, slots=True)
class LabelSheet:
    """The labels and weights that one person entered."""

    path: Path
    written: Mapping[str, str]  # The labels as the person wrote them, by case; a row without a label is left out.
    labels: Mapping[str, float]  # The labels as numbers, by case.
    weights: Mapping[str, float]  # The number of cases that each case represents; empty without weights.
    contents: Mapping[str, str]  # The hash of the question and the answer that the person saw, by case.


def hash_content(record: Record) -> str:
    """Compute a hash of a case's question and answer; it begins with a letter, so that no spreadsheet rounds it."""
    return f"h{digest([record.input, record.transcript.answer if record.transcript else ''])}"


def read_label_sheet(path: Path) -> LabelSheet:
    """Read a sheet; raise DatasetError if a label or a weight is invalid."""
    written, contents = dict[str, str](), dict[str, str]()
    labels, weights = dict[str, float](), dict[str, float]()
    seen: set[str] = set()
    for place, row in parse_csv_sheet(path, ("case", "label"), ("weight", "content")):
        case = row["case"].removeprefix("'")
        # Accept decimal commas, because spreadsheets in many countries use them.
        label, weight = (row[column].strip().replace(",", ".") for column in ("label", "weight"))
        if case and case in seen:
            raise DatasetError(path, place, f"{case} again", "each case once")
        if label and not case:
            raise DatasetError(path, place, f"the label {label[:60]} without a case", "each label beside its case")
        seen.add(case)
        number = parse_label(label)
        if label and number is None:
            expected = f"a number or one of {', '.join(LABELS)}"
            raise DatasetError(path, f"{place}, column label", repr(row["label"].strip()[:60]), expected)
        if number is not None:
            written[case], labels[case], contents[case] = label, number, row["content"]
        if weight and (parse_label(weight) is None or weight.casefold() in LABELS or float(weight) < 1):
            expected = "a number of at least 1, as `evalsuite judge sheet` wrote it"
            raise DatasetError(path, f"{place}, column weight", repr(row["weight"][:60]), expected)
        if weight:
            weights[case] = float(weight)
    return LabelSheet(path, written, labels, weights, contents)
