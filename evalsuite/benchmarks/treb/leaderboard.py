"""The authors' leaderboard: five skills over twenty subtasks about tables, each in its best mode, by the judge.

That the best mode is taken for each subtask, and a skill is the mean of its subtasks, fits their numbers: QwQ-32B
has 81.98 in TBO there, above each of its modes in the paper's Table 3 (80.57, 78.23, 74.00), and 83.22 in TU, below
its ICoT there (91.02), which few subtasks run in.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import read_json
from evalsuite.benchmarks.treb.subtasks import COLUMN_OF, SKILLS, SUBTASKS
from evalsuite.output.reports.section import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import RunView, Tally

FILE = Path(__file__).parent / "data" / "leaderboard.json"
RANKED = tuple(skill for skill in SKILLS if skill != "NLU")
METRIC = "judge"
TITLE = "As on the leaderboard"


def best_mode(tally: Tally, subtask: str) -> tuple[float, str] | None:
    """The highest mean of a subtask over TCoT, PoT and ICoT, and the mode that has it; None where none was judged."""
    scored = tally.scored(METRIC).where(subtask=subtask)
    modes = dict.fromkeys(COLUMN_OF.values())
    means = [(_in_mode(scored, mode).mean(METRIC), mode) for mode in modes]
    measured = [(mean, mode) for mean, mode in means if mean is not None]
    # Of equal ones the first: a run is not to change its mode by the order of a comparison of texts.
    return max(measured, key=lambda pair: pair[0], default=None)


def _in_mode(tally: Tally, mode: str) -> Tally:
    return tally.where(lambda row: COLUMN_OF[row.tags["mode"]] == mode)


def skill_score(tally: Tally, skill: str) -> float | None:
    """The mean over a skill's judged subtasks, each in its best mode; None where none was judged."""
    names = [subtask.name for subtask in SUBTASKS if subtask.skill == skill]
    best = [pair[0] for name in names if (pair := best_mode(tally, name)) is not None]
    return math.fsum(best) / len(best) if best else None


def leaderboard(views: Sequence[RunView], *, published: bool) -> Iterator[Table]:
    """The table in the leaderboard's columns, where anything was judged.

    Args:
        views: the runs.
        published: whether the authors' rows stand below.
    """
    rows: list[list[Cell]] = [_row(view) for view in views]
    if not any(isinstance(cell, float) for row in rows for cell in row):
        return
    note = (
        "The judge's mark in percent, of each subtask in its best mode; a skill is the mean over its subtasks, overall "
        "the mean of the five skills, and a dash where one was not measured. The best of three is higher than any one "
        "of them would be on new questions: compare runs on the tables above."
    )
    if published:
        board = read_json(FILE, dict)
        rows += [
            [f"{model} (published {date})", *(value / 100 for value in values), None]
            for model, date, *values in board["rows"]
        ]
        note += (
            f" Rows marked as published: {board['source']}; their judge is not this run's, and "
            "in those of May 2026 the overall is not the mean of the five."
        )
    heads = [
        Column("Run"),
        *(Column(skill, "percent", 2) for skill in (*RANKED, "Overall")),
        Column("Best modes"),
    ]
    yield Table(TITLE, heads, rows, note)


def _row(view: RunView) -> list[Cell]:
    scores = [skill_score(view.tally, skill) for skill in RANKED]
    measured = [score for score in scores if score is not None]
    overall = math.fsum(measured) / len(measured) if len(measured) == len(scores) else None
    best = [
        pair[1] for subtask in SUBTASKS if subtask.table and (pair := best_mode(view.tally, subtask.name))
    ]
    counts = ", ".join(f"{mode} {best.count(mode)}" for mode in dict.fromkeys(COLUMN_OF.values()))
    return [view.label, *scores, overall, counts if best else None]
