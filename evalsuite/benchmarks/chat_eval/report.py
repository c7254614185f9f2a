"""The benchmark's section: the paper's tables 1, 2 and 4, and how far the judge can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.benchmarks.chat_eval import paper_results as published
from evalsuite.benchmarks.chat_eval.debates import debates
from evalsuite.benchmarks.chat_eval.human_scores import correlation, dialogues, kappa, pairs
from evalsuite.benchmarks.chat_eval.labelled import corrected
from evalsuite.benchmarks.chat_eval.modes import read_mode
from evalsuite.benchmarks.chat_eval.paired_modes import paired_modes
from evalsuite.benchmarks.chat_eval.ratings import ASPECT_NAMES
from evalsuite.reporting.judges import agreement_table, bias_table, corrected_table
from evalsuite.reporting.judges.ballots import judged
from evalsuite.reporting.section import Chart, Column, Passage, Section, Series, Table
from evalsuite.reporting.truncation_note import judges_cut_off

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.benchmarks.chat_eval.human_scores import Coefficient
    from evalsuite.benchmarks.chat_eval.modes import JudgingMode
    from evalsuite.benchmarks.chat_eval.paper_results import OnPairs
    from evalsuite.reporting.section import Block, Cell
    from evalsuite.results.tally import RunView, Tally

THEIRS = (
    "Rows with a number in brackets are published on FairEval's 80 questions or Topical-Chat's 360 "
    "responses: [1] ChatEval (arXiv 2308.07201), [2] FairEval (arXiv 2305.17926). They compare with rows "
    "measured on those files, not with rows measured on other samples. The published panels of tables 1 and 2 have 2 "
    "debaters, as the `paper:` modes have unless told otherwise: rows measured with more have no counterpart among "
    "them. The modes `single` and `panel:` are this project's own protocols (panels end in a secret vote)."
)
COEFFICIENTS: Mapping[Coefficient, str] = {"spearman": "Spearman's rho", "kendall": "Kendall's tau-b"}
UNPARSED = (
    "A judgement that could not be parsed is the judge's own failure: it has no verdict, counts as "
    "disagreement in accuracy and kappa, and leaves no score to correlate."
)


@dataclass(frozen=True, slots=True)
class JudgeSetting:
    """One mode of one run."""

    name: str
    mode: JudgingMode
    tally: Tally
    view: RunView


def report(views: Sequence[RunView]) -> Section:
    """The section for one run, or for several side by side."""
    judges = _judges(views)
    comparing = [judge for judge in judges if len(pairs(judge.tally))]
    named = [(judge.name, judge.tally) for judge in judges]
    blocks: list[Block | None] = [
        _about(views),
        *(note for judge in judges for note in judges_cut_off(judge.name, judge.tally)),
        _on_pairs(comparing),
        paired_modes(views),
        _by_category(comparing),
        *_on_dialogues(judges),
        _strategies(comparing),
        *_growth(comparing),
        bias_table("Biases in comparisons", [(judge.name, judge.tally) for judge in comparing]),
        agreement_table("Agreement among the judges", named),
        corrected_table("Means corrected with few labels", corrected(named)),
        *(block for judge in judges for block in debates(judge.name, judge.tally, judge.view)),
    ]
    return Section("ChatEval: do judges agree with people?", tuple(filter(None, blocks)))


def _judges(views: Sequence[RunView]) -> list[JudgeSetting]:
    found = []
    for view in views:
        modes = view.tally.groups("mode")
        for name, tally in modes.items():
            found.append(JudgeSetting(f"{view.label}, {name}", read_mode(name), tally, view))
    return found


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
    found = {judge.name: pairs(judge.tally).groups("category") for judge in judges}
    categories = sorted({category for groups in found.values() for category in groups})
    if not categories:
        return None
    rows = [
        (
            category,
            *(
                groups[category].estimate("accuracy") if category in groups else None
                for groups in found.values()
            ),
        )
        for category in categories
    ]
    return Table(
        "Accuracy by question category",
        (Column("Category"), *(Column(name, "percent") for name in found)),
        rows,
    )


def _on_dialogues(judges: Sequence[JudgeSetting]) -> list[Table]:
    rated = [judge for judge in judges if len(judge.tally.where(task="dialogues"))]
    return [_correlations(rated, sign, title) for sign, title in COEFFICIENTS.items()] if rated else []


def _correlations(rated: Sequence[JudgeSetting], sign: Coefficient, title: str) -> Table:
    wanted = [*((name,) for name in ASPECT_NAMES), ASPECT_NAMES]
    columns = (
        Column("Judge"),
        *(Column(name, "number", 2) for name in (*ASPECT_NAMES, "mean")),
        Column("No verdict", "percent"),
        Column("Responses", "count"),
    )
    blank: tuple[Cell, ...] = (None,) * len(ASPECT_NAMES)
    theirs = [(name, *blank, means[sign], None, 360) for name, means in published.DIALOGUES.items()]
    ours = [
        (
            judge.name,
            *(correlation(judge.tally, sign, names) for names in wanted),
            *_coverage(judge.tally),
        )
        for judge in rated
    ]
    note = "At turn level, with the mean of people's ratings."
    return Table(f"Dialogue responses (table 2): {title}", columns, [*theirs, *ours], note)


def _coverage(tally: Tally) -> tuple[Cell, Cell]:
    rated = tally.where(lambda row: row.outcome != "error", task="dialogues")
    usable = len(dialogues(tally))
    return (1 - usable / len(rated) if len(rated) else None), usable


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


def _growth(judges: Sequence[JudgeSetting]) -> list[Chart]:
    """Accuracy against the number of roles and of turns, where panels of one model differ in it alone."""
    panels = [judge for judge in judges if judge.mode.strategy]
    charts = [
        _chart(panels, "roles", lambda mode: mode.roles, lambda mode: _counted(mode.turns, "turn")),
        _chart(panels, "turns", lambda mode: mode.turns, lambda mode: _counted(mode.roles, "role")),
    ]
    return [chart for chart in charts if chart]


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _chart(
    panels: Sequence[JudgeSetting],
    name: str,
    along: Callable[[JudgingMode], int],
    fixed: Callable[[JudgingMode], str],
) -> Chart | None:
    lines: dict[str, dict[int, Tally]] = {}
    for judge in panels:
        same = ", same role" if judge.mode.same_role else ""
        alike = f"{judge.mode.strategy}, {fixed(judge.mode)}{same}"
        line = f"{_model(judge)}, {alike}"
        # A second run of the same panel has a line of its own.
        line = f"{judge.view.label}, {alike}" if along(judge.mode) in lines.get(line, {}) else line
        lines.setdefault(line, {})[along(judge.mode)] = pairs(judge.tally)
    lines = {line: points for line, points in lines.items() if len(points) > 1}
    numbers = sorted({number for points in lines.values() for number in points})
    series = [
        Series(line, [points[at].estimate("accuracy") if at in points else None for at in numbers])
        for line, points in lines.items()
    ]
    if not series:
        return None
    title = f"Accuracy against the number of {name}" + (f"\n{series[0].name}" if len(series) == 1 else "")
    labels = [str(number) for number in numbers]
    return Chart(
        "lines", f"chat_eval_by_{name}", title, labels, series, "percent", (0.0, 1.0), name, "accuracy"
    )


def _model(judge: JudgeSetting) -> str:
    """The model that debates: several runs of it make one line, whatever the runs are called."""
    models = dict.fromkeys(vote.model for case in judged(judge.tally) for vote in case.votes)
    return ", ".join(models) or judge.view.label
