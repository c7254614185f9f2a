"""TReB's section of the report: the paper's tables, the leaderboard, a table by kind of model, and details.

The paper averages over cases, then over subtasks, then over columns (pairs of a skill and a mode). The paper's numbers
show that the overall score is the mean of the columns, and that a column is the mean of its subtasks (docs/treb.md).

The leaderboard has five skills with twenty subtasks about tables. The leaderboard uses the judge's marks, and each
subtask counts with its best mode. The published numbers confirm that the best mode counts. For QwQ-32B in TBO (basic
operations), the leaderboard has 81.98, but the modes in Table 3 have only 80.57, 78.23 and 74.00. In TU
(understanding), the leaderboard has 83.22, less than the 91.02 of ICoT in Table 3, because few TU subtasks run in ICoT.
"""

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evalsuite.benchmarks.treb.dataset import COLUMN_OF, COLUMNS, SKILLS, SUBTASKS
from evalsuite.benchmarks.treb.scoring import RULES_SUBTASK
from evalsuite.core.errors import SettingsError
from evalsuite.core.types import Record
from evalsuite.output.reports.generic import warn_of_cut_off_answers
from evalsuite.output.reports.section import (
    Block,
    Cell,
    Chart,
    ChartKind,
    Column,
    Section,
    Series,
    Table,
    parse_columns,
)
from evalsuite.results.tally import Estimate, Row, RunView, Tally
from evalsuite.samples.items import read_json

AverageColumn = tuple[str, str]
# The metrics of the paper's tables, with their titles.
METRICS = {"rouge_l": "ROUGE-L", "bleu": "BLEU", "judge": "Judge", "exact_match": "Exact match of numbers"}
# Variants of the metrics, as the authors' code computes them, for comparison with the published results.
RELEASED = {
    "rouge_l_released": "ROUGE-L as released",
    "bleu_released": "BLEU as released",
    "exact_match_released": "Exact match as released",
}


def list_columns(metric: str) -> tuple[AverageColumn, ...]:
    """List a metric's columns (skill, mode) in the paper's table; the table of exact match has no NLU columns."""
    return tuple(column for column in COLUMNS if not metric.startswith("exact_match") or column[0] != "NLU")


def find_column(row: Row) -> AverageColumn:
    """Return the column of the paper's tables to which a case belongs."""
    return row.tags["skill"], COLUMN_OF[row.tags["mode"]]


def average_column(tally: Tally, metric: str, column: AverageColumn) -> float | None:
    """Average the means of a column's subtasks; ignore subtasks without scored cases; None if no case is scored."""
    scored = tally.scored(metric).where(lambda row: find_column(row) == column)
    return _average_measured(cases.mean(metric) for cases in scored.groups("subtask").values())


def average_columns(tally: Tally, metric: str, confidence: float = 0.95) -> Estimate | None:
    """Average a metric over the paper's columns that have scored cases; add a confidence interval.

    The overall mean is a weighted sum of the cases' scores; a case's weight is 1 / (number of columns x number of
    subtasks in its column x number of cases of its subtask in this column). The modes and epochs of one record form one
    cluster. The interval counts only the variance between records of the same subtask, because the 26 subtasks are
    fixed. If any subtask has only a single record, no interval is computed.

    If no subtask has records with different scores, the observed spread is zero, but the true spread may be greater. If
    each record is correct with its own probability p, the probability that all records are correct is at most
    exp(-sum(1 - p)). Suppose that the true mean is below the observed mean by w ln(2 / (1 - confidence)), where w is
    the maximum weight of a record. Then all records are correct with a probability of at most (1 - confidence) / 2. The
    same bound holds if the true mean is as far above the observed mean. Because of this bound, an interval with zero
    spread extends by w ln(2 / (1 - confidence)) to both sides. Every interval of 0/1 scores extends at least as far;
    otherwise, one wrong answer could narrow an interval.
    """
    columns = list_columns(metric)
    # Select the cases that should have the metric, because a gate counts those without it as missing.
    ran = tally.where(lambda row: "skill" in row.tags and row.tags["subtask"] != RULES_SUBTASK)
    expected = ran.where(lambda row: find_column(row) in columns)
    if metric == "exact_match":  # Only answers that are numbers have an exact match; all answers have a ROUGE-L.
        expected = expected.where(lambda row: any(name in row.scores for name in ("rouge_l", metric)))
    scored = expected.scored(metric)
    if not len(scored):
        return None
    cells = [(find_column(row), row.tags["subtask"]) for row in scored]
    cases_by_cell = Counter(cells)
    subtasks_by_column = Counter(column for column, _ in cases_by_cell)
    weights = [1 / (len(subtasks_by_column) * subtasks_by_column[cell[0]] * cases_by_cell[cell]) for cell in cells]
    weighted = list(zip(scored, weights, strict=True))
    value = math.fsum(weight * row.scores[metric] for row, weight in weighted)
    # Maps each subtask, then each record, to its cases with their weights.
    records: dict[str, dict[str, list[tuple[Row, float]]]] = defaultdict(lambda: defaultdict(list))
    for row, weight in weighted:
        records[row.tags["subtask"]][row.cluster].append((row, weight))
    if any(len(cases) < 2 for cases in records.values()):
        return Estimate(value, n=len(scored))
    totals = [
        [math.fsum(weight * row.scores[metric] for row, weight in cases) for cases in by_record.values()]
        for by_record in records.values()
    ]
    error = math.sqrt(math.fsum(len(parts) * statistics.variance(parts) for parts in totals))
    reach = statistics.NormalDist().inv_cdf((1 + confidence) / 2) * error
    if error == 0 or all(row.scores[metric] in {0, 1} for row in scored):
        heaviest = max(math.fsum(weight for _, weight in cases) for each in records.values() for cases in each.values())
        reach = max(reach, heaviest * math.log(2 / (1 - confidence)))
    return Estimate(value, max(0.0, value - reach), min(1.0, value + reach), len(scored))


# Gates use the overall scores (`treb.overall_judge`), because a mean over cases would weight subtasks by size.
OVERALLS = {f"overall_{metric}": partial(average_columns, metric=metric) for metric in METRICS}


RULES = "instruction_following"
# Values of `facts["program"]`; each has a column in the table of programs, "missing" under the heading "no program".
PROGRAM_STATES = ("ok", "failed", "package missing", "timed out", "printed nothing", "missing")
# Charts show only the first of these metrics that has scores.
CHART_METRICS = ("judge", "rouge_l")


def make_report(views: Sequence[RunView]) -> Section:
    """Build the section for one run, or for several side by side."""
    published = any(row.tags.get("published") for view in views for row in view.tally)
    measured = {metric for view in views for metric in view.tally.metrics()}
    shown = (*METRICS, *(RELEASED if published else ()))
    blocks: list[Block] = [_tabulate_metric(views, metric, published=published) for metric in shown]
    blocks += tabulate_leaderboard(views, published=published)
    for metric in [metric for metric in CHART_METRICS if metric in measured][:1]:
        blocks += [_draw_chart(views, metric), *tabulate_by_model_kind(views, metric, published=published)]
    blocks += [
        _make_subtask_table(views),
        *_tabulate_program_outcomes(views),
        *(passage for view in views for passage in warn_of_cut_off_answers(view, "TREB")),
    ]
    return Section("TReB: table reasoning", tuple(blocks))


def _tabulate_metric(views: Sequence[RunView], metric: str, *, published: bool) -> Table:
    columns = list_columns(metric)
    rows: list[list[Cell]] = [
        [view.label, *(average_column(view.tally, metric, one) for one in columns), average_columns(view.tally, metric)]
        for view in views
    ]
    note = _write_metric_note(views, metric)
    if published and (metric in RELEASED or metric == "judge"):
        if paper := read_published_results().get(metric.removesuffix("_released")):
            names = [*map(" ".join, columns), "Overall"]
            source, models = paper
            rows += [[f"{model} (published)", *map(row.get, names)] for model, row in models.items()]
            note += f" Rows marked as published: {source}."
        else:
            note += " The paper prints no such table."
    heads = parse_columns("Run", [*map(" ".join, columns), "Overall"], "percent 2")
    return Table((METRICS | RELEASED)[metric], heads, rows, note)


def _write_metric_note(views: Sequence[RunView], metric: str) -> str:
    note = "In percent: the mean over the subtasks of a skill; overall, the plain mean of the measured columns."
    if metric == "judge":
        judges = sorted({view.judge for view in views if view.judge})
        note += f" Scores from 0 to 10, times ten, by {', '.join(judges) or 'no judge: not measured'}."
    if metric in RELEASED:
        note += " Computed as the authors' code does, for comparison with published rows alone."
    if metric == "exact_match_released":
        note += " Two answers without capital letters count as equal."
    if metric.startswith("exact_match"):
        note += " Only questions whose reference is a number count."
    return note


def _draw_chart(views: Sequence[RunView], metric: str) -> Chart:
    """Draw bars by skill for a single run; for several runs, draw a polygon per run."""
    if len(views) == 1:
        labels, tally = list(SKILLS), views[0].tally
        series = [
            Series(mode, [average_column(tally, metric, (skill, mode)) for skill in SKILLS])
            for mode in dict.fromkeys(COLUMN_OF.values())
        ]
    else:
        labels = [" ".join(column) for column in COLUMNS]
        series = [
            Series(view.label, [average_column(view.tally, metric, column) for column in COLUMNS]) for view in views
        ]
    kind: ChartKind = "bars" if len(views) == 1 else "radar"
    title, limits = f"TReB by skill and mode: {METRICS[metric]}", (0.0, 1.0)
    return Chart(kind, "treb_by_skill_and_mode", title, labels, series, "percent", limits, y_title=METRICS[metric])


def _make_subtask_table(views: Sequence[RunView]) -> Table:
    rows: list[list[Cell]] = []
    for subtask in SUBTASKS:
        for view in views:
            cases = view.tally.where(subtask=subtask.name)
            errors = len(cases.where(lambda row: row.outcome == "error"))
            if len(cases):
                scores = [cases.share(metric) for metric in (*METRICS, RULES)]
                rows.append([subtask.skill, subtask.name, view.label, len(cases), errors, *scores])
    heads = parse_columns("Skill | Subtask | Run | Cases: count | Errors: count", [*METRICS.values(), "Rules kept"])
    note = (
        "All modes together; errors are not scored. Rules kept: the share of answers to Instruction Following "
        "that keep every rule of their question; it is that subtask's only metric."
    )
    return Table("By subtask", heads, rows, note)


def _tabulate_program_outcomes(views: Sequence[RunView]) -> Iterator[Table]:
    """Count the programs in PoT and ICoT by outcome, because failed programs explain most zero scores."""
    rows: list[list[Cell]] = []
    packages: Counter[str] = Counter()
    for view in views:
        for mode, title in (("pot", "PoT"), ("icot", "ICoT")):
            cases = view.tally.where(mode=mode)
            counts = Counter(row.facts.get("program") for row in cases)
            del counts[None]  # Cases with errors have no `facts`.
            if counts:
                tiers = {
                    " with ".join(str(row.facts[fact]) for fact in ("sandbox", "environment") if row.facts.get(fact))
                    for row in cases
                    if row.facts.get("sandbox")
                }
                states = [counts[state] for state in PROGRAM_STATES]
                rows.append([view.label, title, ", ".join(sorted(tiers)), counts.total(), *states])
                packages.update(str(row.facts["package"]) for row in cases if row.facts.get("package"))
    if rows:
        heads = parse_columns("Run | Mode | Sandbox", ["Cases", *PROGRAM_STATES[:-1], "no program"], "count")
        note = "Of ICoT the last program of a case. In PoT all but the first kind are zero on every metric."
        if packages:
            missing = ", ".join(f"{name} ({count})" for name, count in packages.most_common(10))
            note += f" Packages that programs wanted and did not find: {missing}."
        yield Table("Programs", heads, rows, note)


LEADERBOARD = Path(__file__).parent / "data" / "leaderboard.json"
LEADERBOARD_SKILLS = tuple(skill for skill in SKILLS if skill != "NLU")
RANKING_METRIC = "judge"
LEADERBOARD_TITLE = "As on the leaderboard"


def find_best_mode(tally: Tally, subtask: str) -> tuple[float, str] | None:
    """Return the highest mean score among a subtask's modes, and this mode; None if no case was judged."""
    scores: dict[str, list[float]] = {mode: [] for mode in COLUMN_OF.values()}
    for row in tally.scored(RANKING_METRIC).where(subtask=subtask):
        scores[COLUMN_OF[row.tags["mode"]]].append(row.scores[RANKING_METRIC])
    means = [(math.fsum(values) / len(values), mode) for mode, values in scores.items() if values]
    # Compare only the means, so that the first mode wins if several modes have the same mean.
    return max(means, key=lambda pair: pair[0], default=None)


def tabulate_leaderboard(views: Sequence[RunView], *, published: bool) -> Iterator[Table]:
    """Yield a table with the leaderboard's columns if any case was judged; `published` adds the published rows."""
    rows: list[list[Cell]] = []
    for view in views:
        found = ((subtask.skill, find_best_mode(view.tally, subtask.name)) for subtask in SUBTASKS if subtask.table)
        best = [(skill, *pair) for skill, pair in found if pair]
        scores = [_average_measured(mean for of, mean, _ in best if of == skill) for skill in LEADERBOARD_SKILLS]
        chosen = Counter(mode for _, _, mode in best)
        counts = ", ".join(f"{mode} {chosen[mode]}" for mode in dict.fromkeys(COLUMN_OF.values()))
        overall = None if None in scores else _average_measured(scores)
        rows.append([view.label, *scores, overall, counts if best else None])
    if not any(isinstance(cell, float) for row in rows for cell in row):
        return
    note = (
        "The judge's mark in percent, of each subtask in its best mode; a skill is the mean over its subtasks, overall "
        "the mean of the five skills, and a dash where one was not measured. The best of three is higher than any one "
        "of them would be on new questions: compare runs on the tables above."
    )
    if published:
        board = read_json(LEADERBOARD, dict)
        rows += [
            [f"{model} (published {date})", *(value / 100 for value in values), None]
            for model, date, *values in board["rows"]
        ]
        note += (
            f" Rows marked as published: {board['source']}; their judge is not this run's, and "
            "in those of May 2026 the overall is not the mean of the five."
        )
    heads = [*parse_columns("Run", [*LEADERBOARD_SKILLS, "Overall"], "percent 2"), Column("Best modes")]
    yield Table(LEADERBOARD_TITLE, heads, rows, note)


PUBLISHED_KINDS = Path(__file__).parent / "data" / "published_kinds.json"
# The first pattern that matches a model's name determines its kind; the patterns reproduce the paper's kinds.
KINDS: dict[str, re.Pattern[str]] = {
    "table-reasoning-optimised": re.compile(r"(?<!s)table", re.IGNORECASE),
    "code-optimised": re.compile(r"code|starcoder|codestral|devstral", re.IGNORECASE),
    "math-optimised": re.compile(r"math|prover", re.IGNORECASE),
    "deep-thinking": re.compile(r"\br1\b|qwq|qwen-?3|think|reason|\bo[134]\b", re.IGNORECASE),
    "general": re.compile(""),
}


def infer_model_kind(model: str) -> str:
    """Derive the kind of a model from its name."""
    return next(kind for kind, name in KINDS.items() if name.search(model))


def tabulate_by_model_kind(views: Sequence[RunView], metric: str, *, published: bool) -> Iterator[Block]:
    """Average a metric over the runs of each kind of model (Table 4); yield nothing if there is only one run.

    If `published` is true, the table of the judge's scores also contains the paper's rows.
    """
    if len(views) < 2:
        return
    columns = list_columns(metric)
    by_kind: dict[str, list[Tally]] = {kind: [] for kind in reversed(KINDS)}
    for view in views:
        by_kind[infer_model_kind(view.label)].append(view.tally)
    rows: list[list[Cell]] = []
    series: list[Series] = []
    for kind, tallies in by_kind.items():
        if tallies:
            means = [
                _average_measured(average_column(tally, metric, column) for tally in tallies) for column in columns
            ]
            overalls = filter(None, (average_columns(tally, metric) for tally in tallies))
            rows.append([kind, len(tallies), *means, _average_measured(overall.value for overall in overalls)])
            series.append(Series(kind, means))
    labels = [" ".join(column) for column in columns]
    note = f"{METRICS[metric]}, in percent: the mean over the models of a kind, which is read off a model's name."
    if published and metric == "judge":
        board = read_json(PUBLISHED_KINDS, dict)
        rows += [[f"{kind} (published)", count, *(one / 100 for one in rates)] for kind, count, *rates in board["rows"]]
        note += f" Rows marked as published: {board['source']}."
    heads = parse_columns("Kind | Models: count", [*labels, "Overall"], "percent 2")
    yield Table("By kind of model", heads, rows, note)
    if len(series) > 1:
        title = f"TReB by kind of model: {METRICS[metric]}"
        yield Chart("radar", "treb_by_kind", title, labels, series, "percent", (0.0, 1.0), y_title=METRICS[metric])


def _average_measured(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return math.fsum(measured) / len(measured) if measured else None


PUBLISHED_RESULTS = Path(__file__).parent / "data" / "published.json"


def read_published_results() -> dict[str, tuple[str, dict[str, dict[str, float]]]]:
    """Read the source and the rows of the paper's tables by metric: `rouge_l`, `judge`, `exact_match`.

    Rows map models to values in [0, 1] by column (`TU PoT`, `Overall`).
    """
    tables = {}
    for table in read_json(PUBLISHED_RESULTS, dict)["tables"]:
        rows = {
            model: {name: value / 100 for name, value in zip(table["columns"], values, strict=True)}
            for model, values in table["rows"].items()
        }
        tables[table["metric"]] = (f"arXiv 2506.18421, Table {table['table']}", rows)
    return tables


def choose_rows(tally: Tally, modes: Sequence[str]) -> list[Row]:
    """Choose one row per question: epoch 1, in the first of `modes` in which this question was asked."""
    ran = sorted({row.tags["mode"] for row in tally})
    if unknown := [mode for mode in modes if mode not in ran]:
        raise SettingsError(f"--mode {unknown[0]}: no question of this run has this mode; it has {', '.join(ran)}")
    questions: dict[str, dict[str, Row]] = {}
    for row in tally:
        if row.epoch == 1:
            questions.setdefault(row.question[0], {})[row.tags["mode"]] = row
    rows = []
    for question, by_mode in questions.items():
        wanted = next((mode for mode in modes if mode in by_mode), None)
        if wanted is None and len(by_mode) > 1:
            raise SettingsError(
                f"{question} has answers in several modes ({', '.join(sorted(by_mode))}), and a submission has one "
                "answer: name it with --mode, repeated in order of preference (--mode icot --mode tcot_markdown)"
            )
        rows.append(by_mode[wanted] if wanted else next(iter(by_mode.values())))
    return rows


def make_submission_line(record: Record, model: str) -> dict[str, Any]:
    """Convert a record to a line of a leaderboard submission: the model's answer, messages and last reasoning."""
    transcript = record.transcript
    written = [message.content for message in transcript.messages if message.role == "assistant"] if transcript else []
    if transcript and transcript.reasoning:
        written.insert(max(0, len(written) - 1), f"<think>\n{transcript.reasoning}\n</think>")
    return {
        # Use the id in the record's file, because a translation's sample id has a number appended to it.
        "id": record.tags["cluster"],
        "model_name": model,
        "question": record.input,
        "generation": "\n\n".join(written),
        "pred_answer": transcript.answer if transcript else "",
    }
