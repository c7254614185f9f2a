"""The benchmark's section: the paper's tables and figure 3, and how far the judge can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.chat_eval import paper_results as published
from evalsuite.benchmarks.chat_eval.changed_minds import changed_minds
from evalsuite.benchmarks.chat_eval.debates import debates
from evalsuite.benchmarks.chat_eval.dialogue_tables import dialogue_tables
from evalsuite.benchmarks.chat_eval.growth import growth
from evalsuite.benchmarks.chat_eval.human_scores import kappa, pairs
from evalsuite.benchmarks.chat_eval.judge_settings import judge_settings
from evalsuite.benchmarks.chat_eval.labelled import corrected
from evalsuite.benchmarks.chat_eval.paired_modes import paired_modes
from evalsuite.output.reports.judges import agreement_table, bias_table, corrected_table
from evalsuite.output.reports.section import Column, Passage, Section, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.benchmarks.chat_eval.judge_settings import JudgeSetting
    from evalsuite.benchmarks.chat_eval.paper_results import OnPairs
    from evalsuite.output.reports.section import Block, Cell
    from evalsuite.results.tally import RunView

THEIRS = (
    "Rows with a number in brackets are published on FairEval's 80 questions or Topical-Chat's 360 "
    "responses: [1] ChatEval (arXiv 2308.07201), [2] FairEval (arXiv 2305.17926). They compare with rows "
    "measured on those files, not with rows measured on other samples, and with modes of as many roles and turns as "
    "they name; the `paper:` modes have 2 of either unless told otherwise. The modes `single` and `panel:` are this "
    "project's own protocols (panels end in a secret vote)."
)
UNPARSED = (
    "A judgement that could not be parsed is the judge's own failure: it has no verdict, counts as "
    "disagreement in accuracy and kappa, and leaves no score to correlate."
)


def report(views: Sequence[RunView]) -> Section:
    """The section for one run, or for several side by side."""
    judges = judge_settings(views)
    comparing = [judge for judge in judges if len(pairs(judge.tally))]
    named = [(judge.name, judge.tally) for judge in judges]
    blocks: list[Block | None] = [
        _about(views),
        _on_pairs(comparing),
        *paired_modes(views),
        _by_category(comparing),
        *dialogue_tables(judges),
        _strategies(comparing),
        *growth(comparing),
        changed_minds(judges),
        bias_table("Biases in comparisons", [(judge.name, judge.tally) for judge in comparing]),
        agreement_table("Agreement among the judges", named),
        corrected_table("Means corrected with few labels", corrected(named)),
        *(block for judge in judges for block in debates(judge.name, judge.tally, judge.view)),
    ]
    return Section("ChatEval: do judges agree with people?", tuple(filter(None, blocks)))


def _about(views: Sequence[RunView]) -> Passage:
    sources = "; ".join(dict.fromkeys(f"{view.label}: {view.source}" for view in views if view.source))
    return Passage(
        "What is measured",
        f"The model under test is the judge; people's verdicts and ratings are the right answers. {UNPARSED}"
        + (f" Samples: {sources}." if sources else "")
        + f"\n\n{THEIRS}",
    )


def _on_pairs(judges: Sequence[JudgeSetting]) -> Table | None:
    if not judges:
        return None
    theirs = [_theirs(row) for row in (*published.PEOPLE, *published.JUDGES)]
    return Table("Comparisons (table 1)", PAIR_COLUMNS, [*theirs, *map(_ours, judges)])


PAIR_COLUMNS = (
    Column("Judge"),
    Column("Accuracy", "percent"),
    Column("Kappa", "number", 2),
    Column("No verdict", "percent"),
    Column("Pairs", "count"),
)


def _theirs(row: OnPairs) -> tuple[Cell, ...]:
    return (row.name, row.accuracy, row.kappa, None, 80)


def _ours(judge: JudgeSetting) -> tuple[Cell, ...]:
    compared = pairs(judge.tally)
    unparsed = compared.mean("parsed")
    silent = None if unparsed is None else 1 - unparsed
    return (judge.name, compared.estimate("accuracy"), kappa(judge.tally), silent, len(compared))


def _by_category(judges: Sequence[JudgeSetting]) -> Table | None:
    by_judge = {judge.name: pairs(judge.tally).groups("category") for judge in judges}
    categories = sorted({category for groups in by_judge.values() for category in groups})
    if not categories:
        return None
    rows = [
        (
            category,
            *(
                groups[category].estimate("accuracy") if category in groups else None
                for groups in by_judge.values()
            ),
        )
        for category in categories
    ]
    return Table(
        "Accuracy by question category",
        (Column("Category"), *(Column(name, "percent") for name in by_judge)),
        rows,
    )


def _strategies(judges: Sequence[JudgeSetting]) -> Table | None:
    panels = [judge for judge in judges if judge.mode.strategy]
    if not panels:
        return None
    rows: list[tuple[Cell, ...]] = []
    for strategy, theirs in published.STRATEGIES.items():
        rows += [_theirs(theirs), *(_ours(judge) for judge in panels if _plain(judge, strategy))]
    same = [judge for judge in panels if judge.mode.same_role]
    rows += [_theirs(published.SAME_ROLE), *map(_ours, same)] if same else []
    return Table("Communication strategies (table 4)", PAIR_COLUMNS, rows)


def _plain(judge: JudgeSetting, strategy: str) -> bool:
    return judge.mode.strategy == strategy and not judge.mode.same_role
