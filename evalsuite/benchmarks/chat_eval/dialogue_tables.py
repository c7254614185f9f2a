"""The paper's table 2: rank correlations with people's ratings of dialogue responses."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from evalsuite.benchmarks.chat_eval import paper_results as published
from evalsuite.benchmarks.chat_eval.human_scores import RatedResponses, correlation, dialogues
from evalsuite.benchmarks.chat_eval.overlap import OVERLAP
from evalsuite.benchmarks.chat_eval.ratings import ASPECT_NAMES
from evalsuite.output.reports.section import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.benchmarks.chat_eval.human_scores import Coefficient
    from evalsuite.benchmarks.chat_eval.judge_settings import JudgeSetting
    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import Tally

COEFFICIENTS: Mapping[Coefficient, str] = {"spearman": "Spearman's rho", "kendall": "Kendall's tau-b"}
COLUMNS = (
    Column("Judge"),
    *(Column(name, "number", 2) for name in (*ASPECT_NAMES, "mean")),
    Column("No verdict", "percent"),
    Column("Responses", "count"),
)
SOUGHT = (*((name,) for name in ASPECT_NAMES), ASPECT_NAMES)
NOTE = (
    "At turn level, with the mean of people's ratings. ROUGE-L, BLEU and BERTScore ask no judge: they compare a "
    "response with what was really said in the conversation, and leave that response itself out. G-Eval's scores are "
    "weighted by probability. Published rows are computed from the outputs that the paper's authors released; the "
    "other rows of its table 2 could not be checked and are left out."
)


def dialogue_tables(judges: Sequence[JudgeSetting]) -> list[Table]:
    """A table for each coefficient; none where no response was rated."""
    rated = [judge for judge in judges if len(judge.tally.where(task="dialogues"))]
    return [_table(rated, sign, title) for sign, title in COEFFICIENTS.items()] if rated else []


def _table(rated: Sequence[JudgeSetting], sign: Coefficient, title: str) -> Table:
    rows = [*_published(sign), *_without_judge(rated[0].tally, sign), *(_row(judge, sign) for judge in rated)]
    return Table(f"Dialogue responses (table 2): {title}", COLUMNS, rows, NOTE)


def _published(sign: Coefficient) -> list[tuple[Cell, ...]]:
    return [(name, *row[sign], fmean(row[sign]), None, 360) for name, row in published.DIALOGUES.items()]


def _without_judge(tally: Tally, sign: Coefficient) -> list[tuple[Cell, ...]]:
    """The metrics do not depend on who judges: the first judge's responses stand for all."""
    metrics = dict.fromkeys(name for row in tally for name in row.facts.get(OVERLAP, {}))
    measured = {name: RatedResponses.by_metric(tally, name) for name in metrics}
    return [
        (name, *(responses.correlation(sign, names) for names in SOUGHT), None, len(responses.rows))
        for name, responses in measured.items()
    ]


def _row(judge: JudgeSetting, sign: Coefficient) -> tuple[Cell, ...]:
    name = f"{judge.name} (G-Eval)" if judge.mode.kind == "weighted" else judge.name
    return (name, *(correlation(judge.tally, sign, names) for names in SOUGHT), *_coverage(judge.tally))


def _coverage(tally: Tally) -> tuple[Cell, Cell]:
    rated = tally.where(lambda row: row.outcome != "error", task="dialogues")
    usable = len(dialogues(tally))
    return (1 - usable / len(rated) if len(rated) else None), usable
