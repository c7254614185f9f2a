"""The paper's figure 3: accuracy and kappa against the number of roles and of turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.chat_eval import paper_results as published
from evalsuite.benchmarks.chat_eval.human_scores import kappa, pairs
from evalsuite.core.counted_nouns import number_of
from evalsuite.output.reports.judges.ballots import judged
from evalsuite.output.reports.section import Chart, Passage, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.benchmarks.chat_eval.judge_settings import JudgeSetting
    from evalsuite.benchmarks.chat_eval.modes import JudgingMode
    from evalsuite.output.reports.section import Style
    from evalsuite.results.tally import Estimate, Tally

    Lines = Mapping[str, Mapping[int, Tally]]

THEIRS: Mapping[str, tuple[str, Mapping[int, published.OnPairs]]] = {
    "roles": ("ChatGPT [1], one_by_one, 2 turns", published.BY_ROLES),
    "turns": ("ChatGPT [1], one_by_one, 2 roles", published.BY_TURNS),
}


def growth(judges: Sequence[JudgeSetting]) -> list[Chart | Passage]:
    """The charts that can be drawn: those in which panels of one model differ in roles or turns alone."""
    by_roles = _lines(judges, lambda mode: mode.roles, lambda mode: number_of(mode.turns, "turn"))
    by_turns = _lines(judges, lambda mode: mode.turns, lambda mode: number_of(mode.roles, "role"))
    charts = [
        *(_charts(by_roles, "roles") if by_roles else []),
        *(_charts(by_turns, "turns") if by_turns else []),
    ]
    return [*charts, Passage("Figure 3 of the paper", published.FIGURE_3)] if charts else []


def _lines(
    judges: Sequence[JudgeSetting],
    along: Callable[[JudgingMode], int],
    fixed: Callable[[JudgingMode], str],
) -> Lines:
    lines: dict[str, dict[int, JudgeSetting]] = {}
    for judge in (judge for judge in judges if judge.mode.strategy):
        same = ", same role" if judge.mode.same_role else ""
        alike = f"{judge.mode.kind}:{judge.mode.strategy}, {fixed(judge.mode)}{same}"
        line = f"{_model(judge)}, {alike}"
        # A second run of the same panel has a line of its own.
        line = f"{judge.view.label}, {alike}" if along(judge.mode) in lines.get(line, {}) else line
        lines.setdefault(line, {})[along(judge.mode)] = judge
    for points in lines.values():
        _begin_with_single_agent(points, judges)
    return {
        line: {at: pairs(judge.tally) for at, judge in points.items()}
        for line, points in lines.items()
        if len(points) > 1
    }


def _begin_with_single_agent(points: dict[int, JudgeSetting], judges: Sequence[JudgeSetting]) -> None:
    """Adds `paper:single` as the point 1 of a line of the paper's panels, as the paper does."""
    panel = next(iter(points.values()))
    for single in judges:
        alone = single.mode.kind == panel.mode.kind == "paper" and not single.mode.strategy
        if alone and single.mode.same_role == panel.mode.same_role and _model(single) == _model(panel):
            points.setdefault(1, single)


def _charts(lines: Lines, name: str) -> list[Chart]:
    their_line, theirs = THEIRS[name]
    numbers = sorted({number for points in (*lines.values(), theirs) for number in points})
    labels = [str(number) for number in numbers]

    def chart(metric: str, read: Callable[[Tally], Estimate | None], limits: tuple[float, float]) -> Chart:
        series = [
            Series(line, [read(points[at]) if at in points else None for at in numbers])
            for line, points in lines.items()
        ]
        values = [getattr(theirs[at], metric) if at in theirs else None for at in numbers]
        series.append(Series(their_line, values))
        title = f"{metric.capitalize()} against the number of {name}"
        unit: Style = "percent" if metric == "accuracy" else "number"
        stem = f"chat_eval_{metric}_by_{name}"
        return Chart("lines", stem, title, labels, series, unit, limits, name, metric)

    return [
        chart("accuracy", lambda tally: tally.estimate("accuracy"), (0.0, 1.0)),
        chart("kappa", kappa, (-1.0, 1.0)),
    ]


def _model(judge: JudgeSetting) -> str:
    """The model that debates: several runs of it make one line, whatever the runs are called."""
    models = dict.fromkeys(vote.model for case in judged(judge.tally) for vote in case.votes)
    return ", ".join(models) or judge.view.label
