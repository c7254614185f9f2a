"""Struc-Bench's section of the report: the paper's Table 2, error types, ability map, and details.

Tables and figures are those of the paper (arXiv 2309.08963), named in each function.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.abilities import ABILITIES, ERROR_FREE, ERROR_TYPES
from evalsuite.benchmarks.struc_bench.items import FORMAT_NAMES, NEURAL
from evalsuite.benchmarks.struc_bench.people_agreement import agreement_table, error_table
from evalsuite.benchmarks.struc_bench.scoring import (
    COMPILES,
    FORM,
    METRICS,
    RELEASED,
    TABLE_SCORE,
    corpus_bleu,
)
from evalsuite.output.reports.generic import cut_off
from evalsuite.output.reports.section import (
    Chart,
    Column,
    LabelledCases,
    Passage,
    Section,
    Series,
    Table,
    lines_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.core.types import Record
    from evalsuite.output.reports.section import Block, Cell, LabelledCases
    from evalsuite.results.tally import Row, RunView, Tally


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
        [
            name,
            label,
            len(tally.scored("table_score")),
            *(tally.share(metric) for metric in (*TABLE_SCORE, COMPILES)),
        ]
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
        yield Table(
            "Form, fact by fact", columns, rows, "Each output's own checklist is in its record and below."
        )


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
    columns = [
        Column("Format"),
        Column("Run"),
        *(Column(heading, "percent", 1) for heading in shown.values()),
    ]
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
        "bars",
        "struc_bench_errors",
        title,
        list(shown.values()),
        series,
        "percent",
        (0.0, 1.0),
        y_title="Outputs",
    )


def _abilities(lines: Sequence[LabelledCases]) -> Table:
    """Tabulate the numbers of Figure 5."""
    rows: list[list[Cell]] = [
        [name, label, *(tally.share(ability) for ability in ABILITIES)]
        for name, label, tally in _by_format(lines)
    ]
    columns = [Column("Format"), Column("Run"), *(Column(name, "percent", 1) for name in ABILITIES.values())]
    note = "How each is computed from the tables and the text: docs/struc_bench.md."
    return Table("Abilities", columns, rows, note)


def _ability_map(lines: Sequence[LabelledCases]) -> Iterator[Chart]:
    """Draw Figure 5."""
    series = [
        Series(name, [tally.mean(ability) for ability in ABILITIES]) for name, tally in _polygons(lines)
    ]
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
