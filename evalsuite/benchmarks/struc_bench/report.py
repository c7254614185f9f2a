"""Struc-Bench's section of the report: the paper's Table 2, error types, ability map, and details.

Tables and figures are those of the paper (arXiv 2309.08963), named in each function.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.struc_bench.abilities import ABILITIES, ERROR_FREE, ERROR_TYPES
from evalsuite.benchmarks.struc_bench.items import ASPECTS, FORMAT_NAMES, NEURAL
from evalsuite.benchmarks.struc_bench.scoring import COMPILES, FORM, METRICS, RELEASED, TABLE_SCORE, corpus_bleu
from evalsuite.output.reports.generic import cut_off
from evalsuite.output.reports.section import Chart, Column, LabelledCases, Passage, Section, Series, Table, lines_of
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from evalsuite.core.types import Record
    from evalsuite.output.reports.section import Block, Cell
    from evalsuite.results.tally import Row, RunView, Tally
    from evalsuite.stats.correlation import ClusterDraws

RANKED_BY = "table_score"


def outputs_to_read(line: LabelledCases) -> Iterator[Passage]:
    """Show the outputs with the lowest and the highest table score, folded; among equal scores, the first output."""
    for written, name in FORMAT_NAMES.items():
        rows = line.tally.where(format=written).scored(RANKED_BY).rows
        if not rows:
            continue
        worst = min(rows, key=lambda row: row.scores[RANKED_BY])
        best = max(rows, key=lambda row: row.scores[RANKED_BY])
        yield _passage(f"{line.label}, {name}: the worst output", worst, line)
        if best is not worst:
            yield _passage(f"{line.label}, {name}: the best output", best, line)


def _passage(title: str, row: Row, line: LabelledCases) -> Passage:
    heading = (
        f"{title}, {row.sample} (table score {row.scores[RANKED_BY]:.3f}: content "
        f"{row.scores['table_content']:.3f}, form {row.scores['table_form']:.3f})"
    )
    return Passage(heading, _both(line.view.read(row.case)) + _checklist(row), folded=True)


def _checklist(row: Row) -> str:
    lines = (f"{'[x]' if fulfilled else '[ ]'} {text}" for _, text, fulfilled in row.facts.get(FORM, ()))
    return "\n\nFORM\n\n" + "\n".join(lines)


def _both(record: Record) -> str:
    answer = record.transcript.answer.strip() if record.transcript else ""
    return f"WANTED\n\n{record.target}\n\nANSWERED\n\n{answer or '(nothing)'}"


TITLE = "Struc-Bench: writing tables as text, LaTeX and HTML"
NUMBERS = {"p_content": 2, "p_format": 2, "bartscore": 3, "bleurt": 3}
"""Decimal places of metrics that are not shares: marks from 0 to 10, nats, a regression's output."""


def report(views: Sequence[RunView]) -> Section:
    """Make the section for one run, or for several side by side."""
    lines = [line for view in views for line in lines_of(view, alone=len(views) == 1)]
    details: list[Table | Chart] = [
        *_metrics(lines),
        *_form(lines),
        _released_table(lines),
        _errors(lines),
        *_errors_chart(lines),
        _abilities(lines),
        *_ability_map(lines),
        *_agreement(lines),
        _dataset(lines),
    ]
    blocks: list[Block] = [
        _preface(views, lines),
        _table_scores(lines),
        *(replace(detail, folded=True) for detail in details),
        *(word for line in lines for word in cut_off(line.label, line.tally, "STRUC_BENCH")),
        *(block for line in lines for block in outputs_to_read(line)),
    ]
    return Section(TITLE, tuple(blocks))


def _preface(views: Sequence[RunView], lines: Sequence[LabelledCases]) -> Passage:
    measured = {metric for line in lines for metric in line.tally.metrics()}
    missing = []
    if "p_content" not in measured:
        missing.append("the P-Score needs `--judge-model`")
    if unnamed := [METRICS[metric] for metric in NEURAL if metric not in measured]:
        missing.append(f"{', '.join(unnamed)} need the folder of a model each (docs/struc_bench.md)")
    sources = "; ".join(dict.fromkeys(f"{view.label}: {view.source}" for view in views if view.source))
    return Passage(
        "",
        "A table is to be made from a text. The table score compares it with the wanted one by cells and by a "
        "checklist of form; the paper's H-Score does so by sequences of cells and tags, its P-Score by a judge. "
        "A dash means: not measured"
        + (f" ({'; '.join(missing)})" if missing else "")
        + (f". Samples: {sources}." if sources else "."),
    )


def _table_scores(lines: Sequence[LabelledCases]) -> Table:
    """Tabulate the table score, which is the benchmark's main metric, by format."""
    rows: list[list[Cell]] = [
        [name, label, len(tally.scored("table_score")), *(tally.share(metric) for metric in (*TABLE_SCORE, COMPILES))]
        for name, label, tally in _by_format(lines)
    ]
    columns = [
        Column("Format"),
        Column("Run"),
        Column("Outputs", "count"),
        *(Column(heading, "percent", 1) for heading in TABLE_SCORE.values()),
        Column("Compiles", "percent", 1),
    ]
    note = (
        "Content: the F1 of cells, aligned in rows and columns and compared by value, in whatever markup the answer "
        "is. Form: the share of the facts read off the wanted table that the answer fulfils. The score is content "
        "times a mean of both in which content counts three times; 0 where nothing is right. Compiles: the share of "
        "LaTeX outputs in which nothing was found that TeX refuses."
    )
    return Table("Table score", columns, rows, note)


def _form(lines: Sequence[LabelledCases]) -> Iterator[Table]:
    """Tabulate the checklist: for each fact of form, the share of outputs that fulfil it."""
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
    columns = [Column("Run"), Column("Fact"), Column("Wanted", "count"), Column("Fulfilled", "percent", 1)]
    if rows:
        yield Table("Form, fact by fact", columns, rows, "Each output's own checklist is in its record and below.")


def _metrics(lines: Sequence[LabelledCases]) -> Iterator[Table]:
    """Make Table 2: one row per model or run, one column per metric, one block per format."""
    columns = [Column("Run"), Column("Outputs", "count"), *map(_column, METRICS.items())]
    note = (
        "SacreBLEU is the corpus' own, over all outputs at once; the others are means over outputs. In percent, "
        "but for the P-Score (0 to 10), BARTScore (nats a token) and BLEURT."
    )
    for written, name in FORMAT_NAMES.items():
        of_format = [(line.label, line.tally.where(format=written)) for line in lines]
        rows: list[list[Cell]] = [
            [label, len(tally.scored("table_score")), *(_estimate(tally, metric) for metric in METRICS)]
            for label, tally in of_format
            if len(tally)
        ]
        if rows:
            yield Table(name, columns, rows, note)
            note = ""  # only once


def _column(metric: tuple[str, str]) -> Column:
    name, heading = metric
    return Column(heading, "number", NUMBERS[name]) if name in NUMBERS else Column(heading, "percent", 1)


def _estimate(tally: Tally, metric: str) -> Cell:
    if metric == "bleu":
        return corpus_bleu(tally)
    return tally.estimate(metric) if metric in NUMBERS else tally.share(metric)


def _released_table(lines: Sequence[LabelledCases]) -> Table:
    """Tabulate by format the H-Score as published, which sums over parts of the tables."""
    rows: list[list[Cell]] = [
        [
            name,
            line.label,
            *(tally.mean(metric) for metric in RELEASED),
            len(tally.scored("table_score")) - len(tally.scored("h_content_released")),
        ]
        for written, name in FORMAT_NAMES.items()
        for line in lines
        if len(tally := line.tally.where(format=written))
    ]
    heads = [Column("Content (sum)", "number", 3), Column("Format (sum)", "number", 3)]
    columns = [Column("Format"), Column("Run"), *heads, Column("No score", "count")]
    note = (
        "As the authors' scripts compute it, for comparison with published numbers: content is at most 2 (LaTeX "
        "3), format at most 4 (HTML 3). No score: markup that those scripts cannot read."
    )
    return Table("H-Score as released", columns, rows, note)


def _by_format(lines: Sequence[LabelledCases]) -> Iterator[tuple[str, str, Tally]]:
    """Yield the cases of all formats together, then of each format."""
    for line in lines:
        yield "all", line.label, line.tally
    for written, name in FORMAT_NAMES.items():
        for line in lines:
            tally = line.tally.where(format=written)
            if len(tally):
                yield name, line.label, tally


def _errors(lines: Sequence[LabelledCases]) -> Table:
    """Make the table of Figure 2 and Appendix A.2: the share of outputs with each type of error."""
    shown = {**ERROR_TYPES, ERROR_FREE: "No error"}
    rows: list[list[Cell]] = [
        [name, label, *(tally.estimate(kind) for kind in shown)] for name, label, tally in _by_format(lines)
    ]
    columns = [Column("Format"), Column("Run"), *(Column(heading, "percent", 1) for heading in shown.values())]
    note = (
        "The share of outputs that have at least one such error. Structure: rows, columns or tables missing, too "
        "many or in another place. Naming: other names of rows or columns. Element: a value differs, is missing or "
        "should not be there. Element format: the right value in another form."
    )
    return Table("Types of errors", columns, rows, note)


def _errors_chart(lines: Sequence[LabelledCases]) -> Iterator[Chart]:
    shown = {**ERROR_TYPES, ERROR_FREE: "No error"}
    series = [Series(name, [tally.estimate(kind) for kind in shown]) for name, tally in _polygons(lines)]
    title = "Share of outputs with each type of error"
    yield Chart(
        "bars", "struc_bench_errors", title, list(shown.values()), series, "percent", (0.0, 1.0), y_title="Outputs"
    )


def _abilities(lines: Sequence[LabelledCases]) -> Table:
    """Tabulate the numbers of Figure 5."""
    rows: list[list[Cell]] = [
        [name, label, *(tally.share(ability) for ability in ABILITIES)] for name, label, tally in _by_format(lines)
    ]
    columns = [Column("Format"), Column("Run"), *(Column(name, "percent", 1) for name in ABILITIES.values())]
    note = "How each is computed from the tables and the text: docs/struc_bench.md."
    return Table("Abilities", columns, rows, note)


def _ability_map(lines: Sequence[LabelledCases]) -> Iterator[Chart]:
    """Draw Figure 5."""
    series = [Series(name, [tally.mean(ability) for ability in ABILITIES]) for name, tally in _polygons(lines)]
    labels = list(ABILITIES.values())
    yield Chart("radar", "struc_bench_abilities", "Ability map", labels, series, "percent", limits=(0.0, 1.0))


def _polygons(lines: Sequence[LabelledCases]) -> list[tuple[str, Tally]]:
    """Choose the polygons of a chart: one per run and mode, or per format if there is a single one."""
    if len(lines) > 1:
        return [(line.label, line.tally) for line in lines]
    tallies = ((name, lines[0].tally.where(format=written)) for written, name in FORMAT_NAMES.items())
    return [(name, tally) for name, tally in tallies if len(tally)]


def _agreement(lines: Sequence[LabelledCases]) -> Iterator[Table]:
    """Make Table 3, if people's scores were given."""
    metrics = {**TABLE_SCORE, **METRICS, **RELEASED}
    for line in lines:
        outputs = [row for row in line.tally if "people" in row.facts]
        if outputs:
            yield agreement_table(f"Agreement with people, {line.label}", metrics, outputs)
        if table := error_table(f"Types of errors and people's labels, {line.label}", outputs):
            yield table


def _dataset(lines: Sequence[LabelledCases]) -> Table:
    """Make Table 1, which describes the items; items that several runs and modes share have one row."""
    rows: dict[tuple[Cell, ...], list[Cell]] = {}
    for line in lines:
        for written, name in FORMAT_NAMES.items():
            sizes = _sizes(line.tally.where(format=written))
            tables = [size for item in sizes.values() for size in item]
            if sizes:
                means: list[Cell] = [
                    sum(size[side] for size in tables) / len(tables) if tables else None for side in (0, 1)
                ]
                row: list[Cell] = [name, len(sizes), len(tables), *means]
                rows.setdefault(tuple(row), row)
    columns = [
        Column("Format"),
        Column("Items", "count"),
        Column("Tables", "count"),
        Column("Rows a table", "number", 1),
        Column("Columns a table", "number", 1),
    ]
    return Table("The wanted tables", columns, list(rows.values()), "Heads count as rows.")


def _sizes(tally: Tally) -> dict[str, Sequence[Sequence[int]]]:
    """List the rows and columns of each item's tables; an item counts once for all its modes and epochs."""
    return {row.cluster: row.facts["sizes"] for row in tally if "sizes" in row.facts}


RESAMPLES = 300
"""Number of resamples; low, because a report has about a hundred such intervals."""
FEWEST = 3
OTHERS = "A person and the mean of the others"


def agreement_table(title: str, metrics: Mapping[str, str], outputs: Sequence[Row]) -> Table:
    """Correlate each metric with people's scores over outputs, by Pearson, Spearman and Kendall.

    Args:
        title: the table's heading.
        metrics: the metrics' headings, by name.
        outputs: rated outputs, with people's scores under the fact `people`.
    """
    from evalsuite.stats.correlation import COEFFICIENTS, ClusterDraws

    draws = ClusterDraws([row.cluster for row in outputs], resamples=RESAMPLES)
    lines = [
        [heading, len(rated), *_correlations([row.scores.get(metric) for row in outputs], outputs, draws)]
        for metric, heading in metrics.items()
        if (rated := [row for row in outputs if metric in row.scores])
    ]
    columns = [Column("Metric"), Column("Outputs", "count")]
    columns += [Column(f"{heading}: {name}", "number", 3) for heading in ASPECTS.values() for name in COEFFICIENTS]
    note = (
        f"Over outputs; a dash below {FEWEST} outputs, or where either side is constant. Intervals of 95% by "
        f"bootstrap, drawing items with all their outputs.{_alpha_note(outputs)}"
    )
    return Table(title, columns, [*lines, *_raters_line(outputs, draws)], note)


def error_table(title: str, outputs: Sequence[Row]) -> Table | None:
    """Tabulate computed types of errors against people's labels; None without labels."""
    from evalsuite.stats import kappa_interval

    labelled = [row for row in outputs if row.facts["people"].get("errors")]
    lines: list[list[Cell]] = []
    for name, heading in ERROR_TYPES.items():
        pairs = [
            (row.scores[name] > 0, row.facts["people"]["errors"][name] > 0.5) for row in labelled if name in row.scores
        ]
        if pairs:
            computed, people = zip(*pairs, strict=True)
            kappa = kappa_interval(computed, people)
            agreed = None if math.isnan(kappa.value) else Estimate(kappa.value, kappa.low, kappa.high, kappa.n)
            shares = (sum(side) / len(pairs) for side in (people, computed))
            lines.append([heading, len(pairs), *shares, agreed])
    columns = [
        Column("Type"), Column("Outputs", "count"), Column("People", "percent", 1), Column("Computed", "percent", 1),
        Column("Cohen's kappa", "number", 3),
    ]  # fmt: skip
    note = "The share of outputs with such an error as most people labelled them, and as the comparison finds it."
    return Table(title, columns, lines, note) if lines else None


def _correlations(values: Sequence[float | None], outputs: Sequence[Row], draws: ClusterDraws) -> list[Estimate | None]:
    import numpy as np

    from evalsuite.stats.correlation import correlations

    measured = np.array([math.nan if value is None else value for value in values])
    return [
        Estimate.of(correlation.value, correlation.low, correlation.high)
        for aspect in ASPECTS
        for correlation in correlations(
            measured, np.array([row.facts["people"][aspect] for row in outputs]), draws
        ).values()
    ]


def _raters_line(outputs: Sequence[Row], draws: ClusterDraws) -> list[list[Cell]]:
    """Correlate each person with the mean of the others, as a reference for what one more person would reach."""
    from evalsuite.stats.correlation import COEFFICIENTS, SHARE_OF_SLOW, SLOW

    sides = [_each_and_others(outputs, place) for place in range(len(ASPECTS))]
    several = sides[0][2].sum()
    if several < FEWEST:
        return []
    cells: list[Cell] = []
    for one, others, has in sides:
        for name, coefficient in COEFFICIENTS.items():
            statistic = partial(_mean_over_raters, coefficient, one, others)
            resamples = len(draws) // SHARE_OF_SLOW if name == SLOW else None
            found = draws.interval(statistic, has, resamples=resamples)
            cells.append(Estimate.of(found.value, found.low, found.high))
    return [[OTHERS, int(several), *cells]]


def _each_and_others(outputs: Sequence[Row], place: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return each person's scores, the others' means (NaN if there are none), and which outputs have both."""
    import numpy as np

    ratings = _ratings(outputs, place)
    present = ~np.isnan(ratings)
    total, count = np.where(present, ratings, 0.0).sum(axis=0), present.sum(axis=0)
    others = np.where(present & (count > 1), (total - np.nan_to_num(ratings)) / np.maximum(count - 1, 1), np.nan)
    return ratings, others, count > 1


def _ratings(outputs: Sequence[Row], place: int) -> NDArray[Any]:
    import numpy as np

    by_output = [row.facts["people"].get("raters", {}) for row in outputs]
    names = dict.fromkeys(rater for raters in by_output for rater in raters)
    return np.array(
        [[raters[name][place] if name in raters else math.nan for raters in by_output] for name in names]
    ).reshape(len(names), len(outputs))


def _mean_over_raters(coefficient: Any, one: NDArray[Any], others: NDArray[Any], at: NDArray[Any]) -> float:
    import numpy as np

    values = []
    for own, rest in zip(one[:, at], others[:, at], strict=True):
        both = ~np.isnan(rest)
        values.append(coefficient(own[both], rest[both]))
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def _alpha_note(outputs: Sequence[Row]) -> str:
    """Describe Krippendorff's alpha among the people, if some outputs have several ratings."""
    from evalsuite.stats import krippendorff_alpha

    ratings = [_ratings(outputs, place) for place in range(len(ASPECTS))]
    if len(ratings[0]) < 2 or not _each_and_others(outputs, 0)[2].any():
        return ""
    alphas = [krippendorff_alpha(list(map(list, side)), level="interval") for side in ratings]
    named = " and ".join(
        f"{'undefined' if math.isnan(alpha) else format(alpha, '.3f')} for {aspect}"
        for alpha, aspect in zip(alphas, ASPECTS, strict=True)
    )
    return f" Krippendorff's alpha (interval) among {len(ratings[0])} people: {named}."
