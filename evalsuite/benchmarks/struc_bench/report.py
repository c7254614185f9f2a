"""Struc-Bench's section of the report: the paper's Table 2, error types, ability map, and details.

Each function states which table or figure of the paper (arXiv 2309.08963) it makes.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evalsuite import stats
from evalsuite.benchmarks.struc_bench.abilities import ABILITIES, ERROR_FREE, ERROR_TYPES
from evalsuite.benchmarks.struc_bench.items import ASPECTS, FORMAT_NAMES, NEURAL
from evalsuite.benchmarks.struc_bench.scoring import CELLS, COMPILES, FORM, ROW_KINDS, compute_corpus_bleu
from evalsuite.output.reports.generic import warn_of_cut_off_answers
from evalsuite.output.reports.section import (
    Block,
    Cell,
    Chart,
    Column,
    Passage,
    Section,
    Series,
    Table,
    parse_columns,
    split_by_mode,
)
from evalsuite.results.judge_labels import estimate_kappa
from evalsuite.results.tally import UNMEASURED, Estimate, Row, RunView, Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evalsuite.stats.correlation import PairResamples

TABLE_SCORE = {"table_score": "Table score", "table_content": "Content", "table_form": "Form"}
"""The table score, which is the main metric, and its two parts."""
METRICS = {
    "bleu": "SacreBLEU",
    "rouge_l": "ROUGE-L, stemmed",
    "rouge_l_unstemmed": "ROUGE-L, unstemmed",
    "bertscore": "BERTScore",
    "bartscore": "BARTScore",
    "bleurt": "BLEURT",
    "p_content": "Content P-Score",
    "p_format": "Format P-Score",
}
"""The columns of the paper's Table 2, in the same order."""
RELEASED = {"h_content_released": "Content H-Score, released", "h_format_released": "Format H-Score, released"}
RANKED_BY = "table_score"
TITLE = "Struc-Bench: writing tables as text, LaTeX and HTML"
NUMBERS = {"p_content": 2, "p_format": 2, "bartscore": 3, "bleurt": 3}
"""Decimal places of metrics that are not shares: marks from 0 to 10, log probabilities, regression outputs."""
PUBLISHED = Path(__file__).parent / "data" / "published.csv"  # The paper's Table 2, as printed.
PERCENT = ("bleu", "rouge_l_unstemmed", "bertscore", "bleurt")  # Metrics that the paper multiplies by 100.
SHOWN_ERRORS = {**ERROR_TYPES, ERROR_FREE: "No error"}


def make_report(views: Sequence[RunView]) -> Section:
    """Make the section for one run, or for several side by side."""
    lines = split_by_mode(views, name_run=False)
    by_format = {
        name: [replace(line, tally=tally) for line in lines if len(tally := line.tally.where(format=written))]
        for written, name in FORMAT_NAMES.items()
    }
    of_formats = [(name, line) for name, part in by_format.items() for line in part]
    groups = [*(("all", line) for line in lines), *of_formats]
    # Charts have one bar or polygon per run and mode; if there is only one run and mode, one per format.
    drawn = [(line.label, line.tally) for line in lines]
    if len(lines) == 1:
        drawn = [(name, line.tally) for name, line in of_formats]
    details: list[Table | Chart] = [
        *_make_metric_tables(by_format),
        *_tabulate_passed_checks(lines),
        _make_released_h_score_table(by_format),
        # The types of errors are those of the paper's Figure 2 and Appendix A.2.
        _make_shares_table("Types of errors", SHOWN_ERRORS, Tally.estimate, groups, ERRORS_NOTE),
        _draw_metrics("bars", "struc_bench_errors", "Share of outputs with each type of error", SHOWN_ERRORS, drawn),
        *_make_cell_maps(lines),
        # The numbers of the paper's Figure 5.
        _make_shares_table("Abilities", ABILITIES, Tally.share, groups, ABILITIES_NOTE),
        _draw_metrics("radar", "struc_bench_abilities", "Ability map", ABILITIES, drawn),
        *_make_agreement_tables(lines),
        _make_items_table(of_formats),
    ]
    blocks: list[Block] = [
        _make_preface(views, lines),
        _tabulate_table_scores(groups),
        *(replace(detail, folded=True) for detail in details),
        *(passage for line in lines for passage in warn_of_cut_off_answers(line, "STRUC_BENCH")),
        *(passage for line in lines for passage in _make_extreme_output_passages(line)),
    ]
    return Section(TITLE, tuple(blocks))


def _make_preface(views: Sequence[RunView], lines: Sequence[RunView]) -> Passage:
    measured = {metric for line in lines for metric in line.tally.metrics()}
    reasons = (row.facts[UNMEASURED] for line in lines for row in line.tally if UNMEASURED in row.facts)
    missing = [f"Compiles: {why}" for why in dict.fromkeys(reason[COMPILES] for reason in reasons)]
    if "p_content" not in measured:
        missing.append("the P-Score needs `--judge-model`")
    if unnamed := [METRICS[metric] for metric in NEURAL if metric not in measured]:
        missing.append(f"{', '.join(unnamed)} need the folder of a model each (docs/struc_bench.md)")
    sources = "; ".join(dict.fromkeys(f"{view.label}: {view.source}" for view in views if view.source))
    return Passage(
        "",
        "A table is to be made from a text. The table score compares it with the wanted table by cells and by a "
        "checklist of form. The paper's H-Score compares sequences of cells and tags; its P-Score asks a judge. "
        "A dash means: not measured"
        + (f" ({'; '.join(missing)})" if missing else "")
        + (f". Samples: {sources}." if sources else "."),
    )


ByFormat = Mapping[str, Sequence[RunView]]  # By a format's name, the runs and modes with this format's cases.
CaseGroup = tuple[str, RunView]  # The name of a format ("all" for all formats), and its cases in one run and mode.


def _tabulate_table_scores(groups: Sequence[CaseGroup]) -> Table:
    rows: list[list[Cell]] = [
        [
            *(name, line.label, len(line.tally.scored(RANKED_BY))),
            *(line.tally.share(metric) for metric in (*TABLE_SCORE, COMPILES)),
        ]
        for name, line in groups
    ]
    columns = parse_columns("Format | Run | Outputs: count", [*TABLE_SCORE.values(), "Compiles"])
    note = (
        "Content: the F1 of cells, aligned in rows and columns and compared by value. Form: the share of the facts "
        "about the wanted table's form that the answer fulfils. The score is content times a weighted mean of content "
        "(weight 3) and the facts of form that every markup can show (weight 1). Compiles: the share of LaTeX outputs "
        "that pdflatex accepts, of those with a reference that it accepts."
    )
    return Table("Table score", columns, rows, note)


def _tabulate_passed_checks(lines: Sequence[RunView]) -> Iterator[Table]:
    """Tabulate the share of outputs that pass each check of layout or markup."""
    rows: list[list[Cell]] = []
    for line in lines:
        counts: dict[str, list[bool]] = {}
        for row in line.tally:
            for name, _, fulfilled in row.facts.get(FORM, ()):
                counts.setdefault(name, []).append(bool(fulfilled))
        rows += [
            [line.label, name.replace("_", " "), len(values), sum(values) / len(values)]
            for name, values in counts.items()
        ]
    columns = parse_columns("Run | Fact | Wanted: count | Fulfilled: percent")
    if rows:
        yield Table("Form, fact by fact", columns, rows, "Each output's own checklist is in its record and below.")


def _make_metric_tables(by_format: ByFormat) -> Iterator[Table]:
    """Make the paper's Table 2: one row per model or run, one column per metric, one block per format."""
    columns = parse_columns("Run | Outputs: count")
    for metric, heading in METRICS.items():
        columns.append(Column(heading, "number", NUMBERS[metric]) if metric in NUMBERS else Column(heading, "percent"))
    note = (
        "SacreBLEU is computed over all outputs at once; the other values are means over outputs. All values are in "
        "percent, except the P-Score (0 to 10), BARTScore (nats per token) and BLEURT. Rows marked as published: the "
        "paper's Table 2 (NAACL 2024, page 15). They do not compare with this run's rows: items and prompts differ, "
        "GPT-3.5 gave the P-Scores, and the released scripts apply BARTScore to two fixed sentences."
    )
    for name, lines in by_format.items():
        rows: list[list[Cell]] = [
            [line.label, len(line.tally.scored(RANKED_BY)), *(_estimate_metric(line.tally, one) for one in METRICS)]
            for line in lines
        ]
        if rows:
            paper = ([model, None, *values] for model, values in _read_published_rows(name, METRICS))
            yield Table(name, columns, [*rows, *paper], note)
            note = ""  # Show the note only below the first table.


def _read_published_rows(name: str, metrics: Iterable[str]) -> Iterator[tuple[str, list[float | None]]]:
    """Read the paper's values of `metrics` for each of its models; None for a metric that the paper lacks."""
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            values = [float(row[key]) / (100 if key in PERCENT else 1) if key in row else None for key in metrics]
            if row["format"] == name:
                yield f"{row['model']} (published)", values


def _estimate_metric(tally: Tally, metric: str) -> Cell:
    if metric == "bleu":
        return compute_corpus_bleu(tally)
    return tally.estimate(metric) if metric in NUMBERS else tally.share(metric)


def _make_released_h_score_table(by_format: ByFormat) -> Table:
    """Tabulate the published H-Score, which is a sum of several parts, by format."""
    rows: list[list[Cell]] = []
    for name, lines in by_format.items():
        for line in lines:
            unscored = len(line.tally.scored(RANKED_BY)) - len(line.tally.scored("h_content_released"))
            rows.append([name, line.label, *(line.tally.mean(metric) for metric in RELEASED), unscored])
        published = _read_published_rows(name, RELEASED) if lines else ()
        rows += [[name, model, *values, None] for model, values in published]
    columns = parse_columns("Format | Run | Content (sum): number 3 | Format (sum): number 3 | No score: count")
    note = (
        "As the authors' scripts compute it, for comparison with published numbers: content is at most 2 (LaTeX "
        "3), format at most 4 (HTML 3). No score: markup that those scripts cannot read. Rows marked as published: the "
        "paper's Table 2, over other items and prompts."
    )
    return Table("H-Score as released", columns, rows, note)


ERRORS_NOTE = (
    "The share of outputs that have at least one such error. Structure: rows, columns or tables are missing, unwanted "
    "or in another place. Naming: rows or columns have other names. Element: a value differs, is missing or should not "
    "be there. Element format: the value is right, but in another form. In the paper's Figure 2, 3% of GPT-3.5's and "
    "9% of GPT-4's outputs have no error, 88% and 82% a naming error, 89% and 81% a structure error, 75% to 81% and "
    "73% to 79% each kind of element error; people found those errors, in answers to other prompts and items."
)
ABILITIES_NOTE = "How each is computed from the tables and the text: docs/struc_bench.md."


def _make_shares_table(
    title: str,
    metrics: Mapping[str, str],
    estimate: Callable[[Tally, str], Cell],
    groups: Sequence[CaseGroup],
    note: str,
) -> Table:
    rows: list[list[Cell]] = [
        [name, line.label, *(estimate(line.tally, metric) for metric in metrics)] for name, line in groups
    ]
    return Table(title, parse_columns("Format | Run", metrics.values()), rows, note)


def _draw_metrics(
    kind: Literal["bars", "radar"],
    name: str,
    title: str,
    metrics: Mapping[str, str],
    drawn: Sequence[tuple[str, Tally]],
) -> Chart:
    of_metric = attrgetter("estimate" if kind == "bars" else "mean")
    series = [Series(label, list(map(of_metric(tally), metrics))) for label, tally in drawn]
    y_title = "Outputs" if kind == "bars" else ""
    return Chart(kind, name, title, list(metrics.values()), series, "percent", limits=(0.0, 1.0), y_title=y_title)


MOST_COLUMNS = 12  # Maximum columns of a heat map; the columns with the most wrong cells are shown.


def _make_cell_maps(lines: Sequence[RunView]) -> Iterator[Chart]:
    """Draw a heat map, for each run with wrong cells, of their share by kind of row and column name."""
    for place, line in enumerate(lines):
        counts: dict[str, dict[str, list[int]]] = {}
        for row in line.tally:
            for kind, column, cells, wrong in row.facts.get(CELLS, ()):
                count = counts.setdefault(column, {}).setdefault(kind, [0, 0])
                count[0] += cells
                count[1] += wrong
        totals = {column: sum(wrong for _, wrong in kinds.values()) for column, kinds in counts.items()}
        columns = sorted(filter(totals.get, totals), key=lambda column: (-totals[column], column))[:MOST_COLUMNS]
        series = [
            Series(kind, [pair[1] / pair[0] if (pair := counts[column].get(kind)) else None for column in columns])
            for kind in ROW_KINDS
        ]
        if columns:
            title = f"Share of wrong cells in percent, {line.label}"
            labels = [column or "(no name)" for column in columns]
            yield Chart("heatmap", f"struc_bench_cells_{place}", title, labels, series, "percent", (0.0, 1.0))


def _make_agreement_tables(lines: Sequence[RunView]) -> Iterator[Table]:
    """Make the paper's Table 3 (agreement of metrics with people), if people's scores were given."""
    metrics = {**TABLE_SCORE, **METRICS, **RELEASED}
    for line in lines:
        outputs = [row for row in line.tally if "people" in row.facts]
        if outputs:
            yield tabulate_agreement(f"Agreement with people, {line.label}", metrics, outputs)
        if table := tabulate_errors(f"Types of errors and people's labels, {line.label}", outputs):
            yield table


def _make_items_table(groups: Sequence[CaseGroup]) -> Table:
    """Make the paper's Table 1, which describes the items; runs and modes with the same items share a row."""
    rows: dict[tuple[Cell, ...], list[Cell]] = {}
    for name, line in groups:
        # Count an item only once, whatever its number of modes and epochs.
        items = {row.cluster: row.facts for row in line.tally if "words" in row.facts}.values()
        counts = Counter(kind for item in items for kind in item["names"] if kind and name == FORMAT_NAMES["markdown"])
        for kind in ["", *(label for label, count in counts.most_common(MOST_KINDS) if count > 1)] if items else []:
            chosen = [facts for facts in items if kind in ("", *facts["names"])]
            tables = [
                size
                for facts in chosen
                for label, size in zip(facts["names"], facts["sizes"], strict=True)
                if kind in ("", label)
            ]
            lengths: list[Cell] = [sum(facts["words"] > words for facts in chosen) for words in LONG_TEXTS]
            means: list[Cell] = [sum(size[at] for size in tables) / len(tables) if tables else None for at in (0, 1)]
            row: list[Cell] = [f"{name}, {kind}" if kind else name, len(chosen), *lengths, len(tables), *means]
            rows.setdefault(tuple(row), row)
    columns = parse_columns("Format | Items: count", (f"Over {words} words" for words in LONG_TEXTS), "count")
    columns += parse_columns("Tables: count | Rows a table: number 2 | Columns a table: number 2")
    note = "Words: of the text. Heads count as rows. The paper's Table 1 has 7.26 rows and 8.75 columns for RotoWire."
    return Table("The wanted tables", columns, list(rows.values()), note)


def _make_extreme_output_passages(line: RunView) -> Iterator[Passage]:
    """Show the outputs with the lowest and highest table scores in folded passages; on a tie, show the first output."""
    for written, name in FORMAT_NAMES.items():
        rows = line.tally.where(format=written).scored(RANKED_BY).rows
        if not rows:
            continue
        worst = min(rows, key=lambda row: row.scores[RANKED_BY])
        best = max(rows, key=lambda row: row.scores[RANKED_BY])
        yield _make_output_passage(f"{line.label}, {name}: the worst output", worst, line)
        if best is not worst:
            yield _make_output_passage(f"{line.label}, {name}: the best output", best, line)


def _make_output_passage(title: str, row: Row, view: RunView) -> Passage:
    heading = (
        f"{title}, {row.sample} (table score {row.scores[RANKED_BY]:.3f}: content "
        f"{row.scores['table_content']:.3f}, form {row.scores['table_form']:.3f})"
    )
    record = view.read(row.case)
    answer = record.transcript.answer.strip() if record.transcript else ""
    facts = "\n".join(f"{'[x]' if fulfilled else '[ ]'} {text}" for _, text, fulfilled in row.facts.get(FORM, ()))
    text = f"WANTED\n\n{record.target}\n\nANSWERED\n\n{answer or '(nothing)'}\n\nFORM\n\n{facts}"
    return Passage(heading, text, folded=True)


LONG_TEXTS = (300, 500)  # Like the paper, count texts with more words than each of these numbers.
MOST_KINDS = 4  # Maximum number of table names, such as Team and Player, for which separate rows are shown.
RESAMPLES = 300  # Bootstrap resamples per interval; few, because a report has about a hundred intervals.
FEWEST = 3
OTHERS = "A person and the mean of the others"


def tabulate_agreement(title: str, metrics: Mapping[str, str], outputs: Sequence[Row]) -> Table:
    """Correlate each metric with people's scores (Pearson, Spearman and Kendall) over the outputs that people rated."""
    from evalsuite.stats.correlation import COEFFICIENTS, PairResamples, compute_correlations

    draws = PairResamples([row.cluster for row in outputs], resamples=RESAMPLES)
    rated = [np.array([row.facts["people"][aspect] for row in outputs]) for aspect in ASPECTS]
    by_rater = _make_ratings_array(outputs)
    lines: list[list[Cell]] = []
    for metric, heading in metrics.items():
        if count := sum(metric in row.scores for row in outputs):
            measured = np.array([row.scores.get(metric, math.nan) for row in outputs])
            found = [each for ratings in rated for each in compute_correlations(measured, ratings, draws).values()]
            lines.append([heading, count, *(Estimate.of(each.value, each.low, each.high) for each in found)])
    heads = (f"{heading}: {name}" for heading in ASPECTS.values() for name in COEFFICIENTS)
    columns = parse_columns("Metric | Outputs: count", heads, "number 3")
    note = (
        f"Over outputs; a dash below {FEWEST} outputs, or where either side is constant. Intervals of 95% by "
        f"bootstrap, drawing items with all their outputs.{_describe_alpha(by_rater)}"
    )
    return Table(title, columns, [*lines, *_correlate_raters(by_rater, draws)], note)


def tabulate_errors(title: str, outputs: Sequence[Row]) -> Table | None:
    """Tabulate how computed error types agree with people's labels; None if nobody labelled errors."""
    labelled = [row for row in outputs if row.facts["people"].get("errors")]
    lines: list[list[Cell]] = []
    for name, heading in ERROR_TYPES.items():
        pairs = [
            (row.scores[name] > 0, row.facts["people"]["errors"][name] > 0.5, row.cluster)
            for row in labelled
            if name in row.scores
        ]
        if pairs:
            computed, people, clusters = zip(*pairs, strict=True)
            shares = (sum(side) / len(pairs) for side in (people, computed))
            agreed = estimate_kappa(list(zip(computed, people, strict=True)), clusters)
            lines.append([heading, len(pairs), *shares, agreed])
    columns = parse_columns("Type | Outputs: count | People: percent | Computed: percent | Cohen's kappa: number 3")
    note = "The share of outputs with such an error as most people labelled them, and as the comparison finds it."
    return Table(title, columns, lines, note) if lines else None


def _make_ratings_array(outputs: Sequence[Row]) -> NDArray[Any]:
    """Return the ratings by aspect, rater and output; NaN if a rating is missing."""
    by_output = [row.facts["people"].get("raters", {}) for row in outputs]
    names = dict.fromkeys(rater for raters in by_output for rater in raters)
    missing = [math.nan] * len(ASPECTS)
    ratings = np.array([[raters.get(name, missing) for raters in by_output] for name in names], dtype=float)
    return np.moveaxis(ratings.reshape(len(names), len(outputs), len(ASPECTS)), 2, 0)


def _correlate_raters(ratings: NDArray[Any], draws: PairResamples) -> list[list[Cell]]:
    """Correlate each person's scores with the others' mean scores, to compare metrics with people."""
    from evalsuite.stats.correlation import COEFFICIENTS, SHARE_OF_SLOW, SLOWEST_COEFFICIENT

    count = (~np.isnan(ratings)).sum(axis=1, keepdims=True)
    sum_of_others = np.nansum(ratings, axis=1, keepdims=True) - ratings
    others = np.where(count > 1, sum_of_others / np.maximum(count - 1, 1), np.nan)
    has_several = count[0, 0] > 1
    if has_several.sum() < FEWEST:
        return []
    cells: list[Cell] = []
    for own, rest in zip(ratings, others, strict=True):
        for name, coefficient in COEFFICIENTS.items():
            statistic = partial(_average_rater_correlations, coefficient, own, rest)
            resamples = len(draws) // SHARE_OF_SLOW if name == SLOWEST_COEFFICIENT else None
            found = draws.interval(statistic, has_several, resamples=resamples)
            cells.append(Estimate.of(found.value, found.low, found.high))
    return [[OTHERS, int(has_several.sum()), *cells]]


def _average_rater_correlations(
    coefficient: Any, ratings: NDArray[Any], others: NDArray[Any], selected: NDArray[Any]
) -> float:
    """Average, over raters, the correlation of their ratings with the others' means; NaN if undefined."""
    sides = ((own, rest, ~np.isnan(rest)) for own, rest in zip(ratings[:, selected], others[:, selected], strict=True))
    values = (coefficient(own[both], rest[both]) for own, rest, both in sides)
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def _describe_alpha(ratings: NDArray[Any]) -> str:
    """State Krippendorff's alpha among people in a sentence; empty if no output has several ratings."""
    if (~np.isnan(ratings)).sum(axis=1).max(initial=0) < 2:
        return ""
    alphas = [stats.krippendorff_alpha(side.tolist(), level="interval") for side in ratings]
    named = " and ".join(
        f"{'undefined' if math.isnan(alpha) else format(alpha, '.3f')} for {aspect}"
        for alpha, aspect in zip(alphas, ASPECTS, strict=True)
    )
    return f" Krippendorff's alpha (interval) among {ratings.shape[1]} people: {named}."
