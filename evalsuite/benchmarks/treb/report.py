"""TReB's part of a report: the paper's table for each metric, a picture by skill and mode, the details."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalsuite.benchmarks.treb.averages import METRICS, RELEASED, column_mean, columns_of, overall
from evalsuite.benchmarks.treb.leaderboard import leaderboard
from evalsuite.benchmarks.treb.model_kinds import by_kind
from evalsuite.benchmarks.treb.paper_results import published_results
from evalsuite.benchmarks.treb.subtasks import COLUMN_OF, COLUMNS, SKILLS, SUBTASKS
from evalsuite.output.reports.section import Chart, Column, Section, Series, Table
from evalsuite.output.reports.truncation_note import cut_off
from evalsuite.results.artefacts import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.output.reports.section import Block, Cell, ChartKind
    from evalsuite.results.tally import RunView, Tally

RULES = "instruction_following"
# Titles of the counts, by the fact `program`.
PROGRAM_STATES = {
    "ok": "ok",
    "failed": "failed",
    "package missing": "package missing",
    "timed out": "timed out",
    "printed nothing": "printed nothing",
    "missing": "no program",
}
# The picture shows the first of these that was measured: the authors' leaderboard ranks by the judge.
PICTURED = ("judge", "rouge_l")
SHOWN_FILES = 20


def report(views: Sequence[RunView]) -> Section:
    """The section for one run, or for several side by side."""
    released = RELEASED if _shows_published(views) else {}
    blocks: list[Block] = [_paper_table(views, metric) for metric in (*METRICS, *released)]
    blocks += [
        *leaderboard(views, published=_shows_published(views)),
        *_pictures(views),
        *(
            block
            for metric in _pictured(views)
            for block in by_kind(views, metric, published=_shows_published(views))
        ),
        _subtasks(views),
        *_programs(views),
        *_files(views),
        *(word for view in views for word in cut_off(view.label, view.tally, "TREB")),
    ]
    return Section("TReB: table reasoning", tuple(blocks))


def _paper_table(views: Sequence[RunView], metric: str) -> Table:
    columns = columns_of(metric)
    rows: list[list[Cell]] = [_own_row(view, metric) for view in views]
    note = _note(views, metric)
    if _shows_published(views) and (metric in RELEASED or metric == "judge"):
        if paper := published_results().get(metric.removesuffix("_released")):
            names = [*map(" ".join, columns), "Overall"]
            rows += [[f"{model} (published)", *map(row.get, names)] for model, row in paper.rows.items()]
            note += f" Rows marked as published: {paper.source}."
        else:
            note += " The paper prints no such table."
    heads = [Column("Run"), *(Column(" ".join(column), "percent", 2) for column in columns)]
    return Table((METRICS | RELEASED)[metric], (*heads, Column("Overall", "percent", 2)), rows, note)


def _shows_published(views: Sequence[RunView]) -> bool:
    return any(row.tags.get("published") for view in views for row in view.tally)


def _own_row(view: RunView, metric: str) -> list[Cell]:
    means = [column_mean(view.tally, metric, column) for column in columns_of(metric)]
    return [view.label, *means, overall(view.tally, metric)]


def _note(views: Sequence[RunView], metric: str) -> str:
    note = (
        "In percent: the mean over the subtasks of a skill; overall, the plain mean of the measured columns."
    )
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


def _pictured(views: Sequence[RunView]) -> list[str]:
    """The metric that pictures show: one, or none where neither was measured."""
    measured = {metric for view in views for metric in view.tally.metrics()}
    return [metric for metric in PICTURED if metric in measured][:1]


def _pictures(views: Sequence[RunView]) -> Iterator[Chart]:
    """Bars by skill for one run, a polygon a run for several."""
    for metric in _pictured(views):
        title = f"TReB by skill and mode: {METRICS[metric]}"
        if len(views) == 1:
            labels, series = list(SKILLS), _bars(views[0].tally, metric)
        else:
            labels, series = [" ".join(column) for column in COLUMNS], _polygons(views, metric)
        kind: ChartKind = "bars" if len(views) == 1 else "radar"
        name = "treb_by_skill_and_mode"
        yield Chart(kind, name, title, labels, series, "percent", (0.0, 1.0), y_title=METRICS[metric])


def _bars(tally: Tally, metric: str) -> list[Series]:
    return [
        Series(mode, [column_mean(tally, metric, (skill, mode)) for skill in SKILLS])
        for mode in dict.fromkeys(COLUMN_OF.values())
    ]


def _polygons(views: Sequence[RunView], metric: str) -> list[Series]:
    return [
        Series(view.label, [column_mean(view.tally, metric, column) for column in COLUMNS]) for view in views
    ]


def _subtasks(views: Sequence[RunView]) -> Table:
    rows: list[list[Cell]] = []
    for subtask in SUBTASKS:
        for view in views:
            cases = view.tally.where(subtask=subtask.name)
            errors = len(cases.where(lambda row: row.outcome == "error"))
            if len(cases):
                scores = [cases.share(metric) for metric in (*METRICS, RULES)]
                rows.append([subtask.skill, subtask.name, view.label, len(cases), errors, *scores])
    heads = [
        Column("Skill"),
        Column("Subtask"),
        Column("Run"),
        Column("Cases", "count"),
        Column("Errors", "count"),
    ]
    shown = [Column(title, "percent", 1) for title in (*METRICS.values(), "Rules kept")]
    note = (
        "All modes together; errors are not scored. Rules kept: the share of answers to Instruction Following "
        "that keep every rule of their question; it is that subtask's only metric."
    )
    return Table("By subtask", (*heads, *shown), rows, note)


def _files(views: Sequence[RunView]) -> Iterator[Table]:
    """Which cases have files of their programs."""
    rows: list[list[Cell]] = [
        [view.label, row.sample, str(row.facts["files"])]
        for view in views
        for row in view.tally
        if row.facts.get("files")
    ]
    if rows:
        left_out = f", here the first {SHOWN_FILES} of {len(rows)} cases" if len(rows) > SHOWN_FILES else ""
        note = (
            f"Pictures and texts that programs wrote{left_out}: shown with their case in report.html, and kept in the "
            f"run's folder `{FOLDER}`."
        )
        yield Table(
            "Files of programs", (Column("Run"), Column("Case"), Column("Files")), rows[:SHOWN_FILES], note
        )


def _programs(views: Sequence[RunView]) -> Iterator[Table]:
    """How the programs of PoT and ICoT ended, which explains most zeros."""
    rows: list[list[Cell]] = []
    packages: Counter[str] = Counter()
    for view in views:
        for mode, title in (("pot", "PoT"), ("icot", "ICoT")):
            cases = view.tally.where(mode=mode)
            counts = Counter(row.facts.get("program") for row in cases)
            del counts[None]  # errors leave no facts
            if counts:
                held = Counter(str(row.facts["sandbox"]) for row in cases if row.facts.get("sandbox"))
                tiers = ", ".join(sorted(held))
                rows.append(
                    [view.label, title, tiers, counts.total(), *(counts[state] for state in PROGRAM_STATES)]
                )
                packages.update(str(row.facts["package"]) for row in cases if row.facts.get("package"))
    if rows:
        heads = [
            Column("Run"),
            Column("Mode"),
            Column("Sandbox"),
            *(Column(name, "count") for name in ("Cases", *PROGRAM_STATES.values())),
        ]
        note = "Of ICoT the last program of a case. In PoT all but the first kind are zero on every metric."
        if packages:
            missing = ", ".join(f"{name} ({count})" for name, count in packages.most_common(10))
            note += f" Packages that programs wanted and did not find: {missing}."
        yield Table("Programs", heads, rows, note)
