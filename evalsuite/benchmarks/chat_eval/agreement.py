"""Measure judges' agreement with people, beside published results; compare modes by paired tests; draw figure 3.

For accuracy, a comparison without a usable verdict of the judge counts as disagreement. For kappa, a missing verdict is
a label of its own, which people never give. A dialogue without a usable judgement is left out of correlations; tables
show how many dialogues are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from operator import eq
from typing import TYPE_CHECKING

from evalsuite import stats
from evalsuite.benchmarks.chat_eval.dataset import ASPECT_NAMES, HUMAN_ASPECTS, OVERALL, OVERLAP
from evalsuite.benchmarks.chat_eval.solver import JudgingMode, parse_mode
from evalsuite.core.errors import write_count
from evalsuite.judges.judgements import WINS
from evalsuite.output.reports.judges.ballots import read_judged_cases
from evalsuite.output.reports.judges.estimates import (
    CorrectedMean,
    estimate_corrected_mean,
    estimate_gain,
    estimate_kappa_gain,
)
from evalsuite.output.reports.section import Cell, Chart, Passage, Series, Style, Table, parse_columns
from evalsuite.results.judge_labels import FEWEST
from evalsuite.results.tally import Estimate, Row, RunView, Tally
from evalsuite.stats.paired import compute_paired_pvalue

if TYPE_CHECKING:
    from evalsuite.stats.correlation import Coefficient

    Lines = Mapping[str, Mapping[int, Tally]]


@dataclass(frozen=True, slots=True)
class MeasuredJudge:
    """A judge whose agreement is measured: the model of one run in one mode."""

    name: str
    mode: JudgingMode
    tally: Tally
    view: RunView


def list_run_judges(views: Sequence[RunView]) -> list[MeasuredJudge]:
    """List one judge per run and mode, in the order of runs and modes."""
    return [
        MeasuredJudge(f"{view.label}, {name}", parse_mode(name), tally, view)
        for view in views
        for name, tally in view.tally.groups("mode").items()
    ]


def select_labelled_comparisons(tally: Tally) -> Tally:
    """Select the comparisons with people's verdicts and without errors."""
    return tally.where(lambda row: row.outcome != "error" and "human" in row.facts, task="pairs")


def select_dialogues(tally: Tally) -> Tally:
    """Select the dialogues with a usable judgement."""
    return tally.where(lambda row: row.outcome != "error" and bool(row.facts.get("judged")), task="dialogues")


def compute_kappa(tally: Tally) -> Estimate | None:
    """Compute Cohen's kappa between the judge's and people's verdicts; None if kappa is undefined."""
    judged = select_labelled_comparisons(tally)
    if not len(judged):
        return None
    agreement = stats.clustered_kappa(
        [row.facts["human"] for row in judged],
        [row.facts["verdict"] or "none" for row in judged],
        clusters=[row.cluster for row in judged],
    )
    return Estimate.of(agreement.value, agreement.low, agreement.high, agreement.n)


def correlate_judge(tally: Tally, coefficient: Coefficient, aspects: Sequence[str] = ASPECT_NAMES) -> Estimate | None:
    """Correlate the judge's scores with people's ratings; see `RatedResponses.compute_correlation`."""
    return RatedResponses.from_judge(tally).compute_correlation(coefficient, aspects)


def correlate_overall(tally: Tally, coefficient: Coefficient) -> Estimate | None:
    """Correlate people's overall rating with the judge's mean score over four aspects, each scaled to [0, 1]."""
    return RatedResponses.from_judge(tally).select_overall().compute_correlation(coefficient, (OVERALL,))


def correlate_systems(tally: Tally, coefficient: Coefficient) -> Estimate | None:
    """Correlate the judge's mean score per system with people's; see `RatedResponses.correlate_systems`."""
    return RatedResponses.from_judge(tally).correlate_systems(coefficient)


@dataclass(frozen=True, slots=True)
class RatedResponses:
    """Dialogue responses with people's ratings, and the values that are correlated with these ratings."""

    rows: Sequence[Row]
    values: Sequence[Mapping[str, float]]  # For each response: a judge's scores or a metric's values, by aspect.

    @classmethod
    def from_judge(cls, tally: Tally) -> RatedResponses:
        """Select the responses with a usable judgement; use the judge's scores as their values."""
        rows = list(select_dialogues(tally))
        return cls(rows, [row.facts["judged"] for row in rows])

    @classmethod
    def from_metric(cls, tally: Tally, name: str) -> RatedResponses:
        """Select the responses that have a value of an overlap metric; use this value for every aspect."""
        rows = [row for row in tally if name in row.facts.get(OVERLAP, {})]
        return cls(rows, [dict.fromkeys(ASPECT_NAMES, row.facts[OVERLAP][name]) for row in rows])

    def compute_correlation(self, coefficient: Coefficient, aspects: Sequence[str]) -> Estimate | None:
        """Correlate each aspect over all responses; average the correlations, as UniEval does; None if undefined.

        The interval of the correlation is a jackknife over dialogues.
        """
        from evalsuite.stats.correlation import rank_interval

        pairs = [self._list_values_and_ratings(one) for one in aspects]
        value, interval = rank_interval(pairs, [str(row.facts["dialogue"]) for row in self.rows], coefficient)
        return Estimate.of(value, interval.low, interval.high, len(self.rows))

    def select_overall(self) -> RatedResponses:
        """Select the responses with an overall rating; a response's value is its aspects' mean, scaled to [0, 1]."""
        both = [two for two in zip(self.rows, self.values, strict=True) if OVERALL in two[0].facts["human"]]
        means = [
            math.fsum((values[one.name] - one.low) / (one.high - one.low) for one in HUMAN_ASPECTS) / len(HUMAN_ASPECTS)
            for _, values in both
        ]
        return RatedResponses([row for row, _ in both], [{OVERALL: mean} for mean in means])

    def correlate_systems(self, coefficient: Coefficient) -> Estimate | None:
        """Correlate systems' mean scores with their mean ratings, aspect by aspect; return the mean correlation.

        Return None for fewer than three systems.
        """
        from evalsuite.stats.correlation import compute_rank_replicates

        systems = sorted({row.tags.get("system", "") for row in self.rows})
        of_system = [[at for at, row in enumerate(self.rows) if row.tags.get("system", "") == name] for name in systems]
        variables = [
            (
                [math.fsum(side[at] for at in places) / len(places) for places in of_system]
                for side in self._list_values_and_ratings(one)
            )
            for one in ASPECT_NAMES
        ]
        value, _ = compute_rank_replicates([(x, y) for x, y in variables], systems, coefficient)
        return Estimate.of(value, math.nan, math.nan, len(systems))

    def _list_values_and_ratings(self, aspect: str) -> tuple[list[float], list[float]]:
        return [values[aspect] for values in self.values], [row.facts["human"][aspect] for row in self.rows]

    def compute_jackknife_correlations(self, coefficient: Coefficient) -> tuple[float, list[float]]:
        """Return the correlation (mean over aspects) of all dialogues, then without each in turn; NaN if undefined."""
        from evalsuite.stats.correlation import compute_rank_replicates

        pairs = [self._list_values_and_ratings(one) for one in ASPECT_NAMES]
        return compute_rank_replicates(pairs, [str(row.facts["dialogue"]) for row in self.rows], coefficient)


def estimate_corrected_means(judges: Sequence[tuple[str, Tally]]) -> list[tuple[str, CorrectedMean]]:
    """Estimate the first system's win rate and each aspect's mean, from all judge scores and a few human labels."""
    estimates = []
    for name, tally in judges:
        compared = select_labelled_comparisons(tally).where(lambda row: row.facts["verdict"] is not None)
        wins = [(row, WINS[row.facts["human"]], WINS[row.facts["verdict"]]) for row in compared]
        estimates.append((name, _correct_judge_mean("wins of the first system", wins, (0.0, 1.0))))
        for aspect in HUMAN_ASPECTS:
            rated = [
                (row, row.facts["human"][aspect.name], row.facts["judged"][aspect.name])
                for row in select_dialogues(tally)
            ]
            estimates.append((name, _correct_judge_mean(aspect.name, rated, (aspect.low, aspect.high))))
    return [(name, one) for name, one in estimates if one is not None]


def _correct_judge_mean(
    quantity: str, scores: Sequence[tuple[Row, float, float]], bounds: tuple[float, float]
) -> CorrectedMean | None:
    """Correct a judge's mean score with a fifth of the human labels (at least `FEWEST`); None without scores.

    A hash of the question chooses the labels, so runs on the same questions use the same labels.
    """
    if not scores:
        return None
    kept = max(FEWEST, len(scores) // 5)
    order = sorted(scores, key=lambda one: sha256(one[0].question[0].encode()).digest())
    shown = [(people if at < kept else None, judge) for at, (_, people, judge) in enumerate(order)]
    truth = math.fsum(people for _, people, _ in scores) / len(scores)
    return estimate_corrected_mean(quantity, shown, truth, bounds, clusters=[row.cluster for row, *_ in order])


COLUMNS = parse_columns(
    "Mode | Other mode | Accuracy gained: percent | p: pvalue | Kappa gained: number 2 | p: pvalue | Pairs: count"
)
NOTE = (
    "Gains of the other mode over the first, on the comparisons that both judged. The p of accuracy is McNemar's exact "
    "test, or the paired t test if cases share a question; the interval and the p of kappa are jackknife estimates by "
    "question."
)
RHO_COLUMNS = parse_columns("Mode | Other mode | Spearman's rho gained: number 2 | p: pvalue | Responses: count")
RHO_NOTE = (
    "Gains of the other mode over the first in the mean correlation over the four aspects, on the responses that both "
    "scored. Interval and p are jackknife estimates by conversation."
)


def compare_modes(views: Sequence[RunView]) -> list[Table]:
    """Compare the modes of each run in pairs; make one table for comparisons and one for dialogue responses."""
    on_pairs: list[tuple[Cell, ...]] = []
    on_dialogues: list[tuple[Cell, ...]] = []
    for view in views:
        for (one, first), (other, second) in combinations(view.tally.groups("mode").items(), 2):
            names = f"{view.label}, {one}", f"{view.label}, {other}"
            if pairs := _pair_rows(select_labelled_comparisons(first), select_labelled_comparisons(second)):
                people = [row.facts["human"] for row, _ in pairs]
                verdicts, others = (
                    [row.facts["verdict"] or "none" for row in rows] for rows in zip(*pairs, strict=True)
                )
                before, after = (list(map(float, map(eq, people, side))) for side in (verdicts, others))
                gained = (math.fsum(after) - math.fsum(before)) / len(pairs)
                clusters = [row.cluster for row, _ in pairs]
                kappa_gain = estimate_kappa_gain(people, verdicts, others, clusters)
                pvalue = compute_paired_pvalue(before, after, clusters)
                on_pairs.append((*names, gained, pvalue, *kappa_gain, len(pairs)))
            if both := _pair_rows(select_dialogues(first), select_dialogues(second)):
                (rho, least), (other_rho, most) = (
                    RatedResponses(rows, [row.facts["judged"] for row in rows]).compute_jackknife_correlations(
                        "spearman"
                    )
                    for rows in zip(*both, strict=True)
                )
                replicates = [two - one for one, two in zip(least, most, strict=True)]
                on_dialogues.append((*names, *estimate_gain(other_rho - rho, replicates, len(both)), len(both)))
    tables = [
        Table("Modes compared, pair by pair", COLUMNS, on_pairs, NOTE),
        Table("Modes compared, response by response", RHO_COLUMNS, on_dialogues, RHO_NOTE),
    ]
    return [table for table in tables if table.rows]


def _pair_rows(first: Tally, second: Tally) -> list[tuple[Row, Row]]:
    """Pair the rows of two modes by question and epoch."""
    others = {(row.question[0], row.epoch): row for row in second}
    return [(row, others[key]) for row in first if (key := (row.question[0], row.epoch)) in others]


# Published results on ChatEval's files; reports show these results beside the run's results and cite the source.
# Sources: [1] Chan et al., "ChatEval" (arXiv 2308.07201), tables 1 to 4 and section 3, and the authors' repository
# thunlp/ChatEval: the script that draws figure 3, and GPT-4's judgements of Topical-Chat, from which correlations are
# computed. [2] Wang et al., "Large Language Models are not Fair Evaluators" (arXiv 2305.17926), the main table. A
# published result is None if it could not be checked.
@dataclass(frozen=True, slots=True)
class PairsResult:
    """A published result on FairEval: accuracy in [0, 1] and Cohen's kappa."""

    name: str
    accuracy: float
    kappa: float | None = None


PEOPLE = (
    PairsResult("a human annotator, the mean of three [2]", 0.717, 0.54),
    PairsResult("human annotator 1 [1]", 0.688),
    PairsResult("human annotator 2 [1]", 0.763),
    PairsResult("human annotator 3 [1]", 0.70),
)
SINGLE_AGENT = PairsResult("ChatGPT, single agent [1]", 0.538, 0.27)
JUDGES = (
    PairsResult("ChatGPT, multiple evidence, both orders [2]", 0.587, 0.31),
    PairsResult("GPT-4, multiple evidence, both orders [2]", 0.625, 0.37),
    SINGLE_AGENT,
    PairsResult("ChatGPT, panel of 2 roles, 2 turns [1]", 0.60, 0.33),
    PairsResult("GPT-4, single agent [1]", 0.613),
    PairsResult("GPT-4, panel of 2 roles, 2 turns [1]", 0.638, 0.40),
)
STRATEGIES = {
    "one_by_one": PairsResult("ChatGPT, one by one, 3 roles, 2 turns [1]", 0.60, 0.33),
    "simultaneous": PairsResult("ChatGPT, simultaneous, 3 roles, 2 turns [1]", 0.55, 0.28),
    "simultaneous_summarizer": PairsResult("ChatGPT, simultaneous with summarizer, 3 roles, 2 turns [1]", 0.55, 0.27),
}
SAME_ROLE = PairsResult("ChatGPT, panel of the same role, 2 roles, 2 turns [1]", 0.538, 0.25)
# Correlations with people in naturalness, coherence, engagingness and groundedness, computed from the released outputs.
# The means of the panel's correlations (0.684 and 0.632) agree with table 2.
DIALOGUES = {
    "GPT-4, single agent [1]": {
        "spearman": (0.5318, 0.5908, 0.7342, 0.7736),
        "kendall": (0.4826, 0.5353, 0.6759, 0.7497),
    },
    "GPT-4, panel of 3 annotators, as released [1]": {
        "spearman": (0.6299, 0.6190, 0.7654, 0.7216),
        "kendall": (0.5707, 0.5611, 0.6950, 0.6995),
    },
}

BY_ROLES = {
    1: SINGLE_AGENT,
    2: PairsResult("2 roles", 0.60, 0.33),
    3: PairsResult("3 roles", 0.625, 0.37),
    4: PairsResult("4 roles", 0.625, 0.38),
    5: PairsResult("5 roles", 0.588, 0.32),
}
"""Results of figure 3 by number of roles, with strategy one by one in 2 turns; 1 means the single agent."""
BY_TURNS = {
    1: SINGLE_AGENT,
    2: PairsResult("2 turns", 0.60, 0.33),
    3: PairsResult("3 turns", 0.55, 0.28),
    4: PairsResult("4 turns", 0.563, 0.28),
    5: PairsResult("5 turns", 0.538, 0.23),
}
"""Results of figure 3 by number of turns, with strategy one by one and 2 roles; 1 means the single agent."""

FIGURE_3 = (
    "The paper's points come from the script that its authors released: one by one, with 2 turns for the number of "
    "roles and with 2 roles for the number of turns; 1 is the single agent. For 3 roles, the figure has 62.5% and "
    "0.37, but table 4 has 60.0% and 0.33."
)

PUBLISHED_LINES: Mapping[str, tuple[str, Mapping[int, PairsResult]]] = {
    "roles": ("ChatGPT [1], one_by_one, 2 turns", BY_ROLES),
    "turns": ("ChatGPT [1], one_by_one, 2 roles", BY_TURNS),
}


def draw_agreement_by_panel_size(judges: Sequence[MeasuredJudge]) -> list[Chart | Passage]:
    """Draw panels' accuracy and kappa against the number of roles and of turns, as in the paper's figure 3."""
    charts = [
        chart
        for size, other in (("roles", "turns"), ("turns", "roles"))
        for chart in _make_accuracy_and_kappa_charts(_map_curves_to_comparisons(judges, size, other), size)
    ]
    return [*charts, Passage("Figure 3 of the paper", FIGURE_3)] if charts else []


def _map_curves_to_comparisons(judges: Sequence[MeasuredJudge], size: str, other_size: str) -> Lines:
    """Map each curve's label to comparisons by panel size; leave out curves with a single point."""
    lines: dict[str, dict[int, MeasuredJudge]] = {}
    for judge in (judge for judge in judges if judge.mode.strategy):
        same = ", same role" if judge.mode.same_role else ""
        other = write_count(getattr(judge.mode, other_size), other_size.removesuffix("s"))
        alike = f"{judge.mode.kind}:{judge.mode.strategy}, {other}{same}"
        line = f"{_join_model_names(judge)}, {alike}"
        # If another run already gave this line a panel of this size, draw a separate line for this run.
        number: int = getattr(judge.mode, size)
        line = f"{judge.view.label}, {alike}" if number in lines.get(line, {}) else line
        lines.setdefault(line, {})[number] = judge
    for points in lines.values():
        # In the paper's figure 3, the panel of size 1 is the mode `paper:single`.
        panel = next(iter(points.values()))
        models = _join_model_names(panel)
        for single in judges:
            alone = single.mode.kind == panel.mode.kind == "paper" and not single.mode.strategy
            if alone and single.mode.same_role == panel.mode.same_role and _join_model_names(single) == models:
                points.setdefault(1, single)
    return {
        line: {at: select_labelled_comparisons(judge.tally) for at, judge in points.items()}
        for line, points in lines.items()
        if len(points) > 1
    }


def _make_accuracy_and_kappa_charts(lines: Lines, axis: str) -> list[Chart]:
    if not lines:
        return []
    their_line, theirs = PUBLISHED_LINES[axis]
    numbers = sorted({number for points in (*lines.values(), theirs) for number in points})

    def make_chart(metric: str, estimate: Callable[[Tally], Estimate | None], limits: tuple[float, float]) -> Chart:
        series = [
            Series(line, [estimate(points[at]) if at in points else None for at in numbers])
            for line, points in lines.items()
        ]
        series.append(Series(their_line, [getattr(theirs[at], metric) if at in theirs else None for at in numbers]))
        title = f"{metric.capitalize()} against the number of {axis}"
        unit: Style = "percent" if metric == "accuracy" else "number"
        labels = list(map(str, numbers))
        return Chart("lines", f"chat_eval_{metric}_by_{axis}", title, labels, series, unit, limits, axis, metric)

    return [
        make_chart("accuracy", lambda tally: tally.estimate("accuracy"), (0.0, 1.0)),
        make_chart("kappa", compute_kappa, (-1.0, 1.0)),
    ]


def _join_model_names(judge: MeasuredJudge) -> str:
    models = dict.fromkeys(vote.model for case in read_judged_cases(judge.tally) for vote in case.votes)
    return ", ".join(models) or judge.view.label
