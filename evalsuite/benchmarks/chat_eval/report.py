"""ChatEval's section of the report: the paper's tables and figure 3, and checks of the judge's reliability."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.chat_eval.agreement import (
    MeasuredJudge,
    compare_modes,
    compute_kappa,
    correlate_ratings,
    correlate_systems,
    estimate_corrected_means,
    list_responses,
    list_run_judges,
    select_dialogues,
    select_labelled_comparisons,
)
from evalsuite.benchmarks.chat_eval.dataset import ASPECT_NAMES, OVERALL, OVERLAP
from evalsuite.core.errors import write_count
from evalsuite.output.reports.judges import format_judge_log, read_judged_cases, tabulate_agreement, tabulate_biases
from evalsuite.output.reports.judges.estimates import estimate_share, tabulate_corrected_means
from evalsuite.output.reports.section import Block, Cell, Chart, Passage, Section, Series, Style, Table, parse_columns
from evalsuite.results.tally import Estimate, Row, RunView, Tally

if TYPE_CHECKING:
    from evalsuite.stats.correlation import Coefficient


PUBLISHED_NOTE = (
    "Rows with a number in brackets are published on FairEval's 80 questions or Topical-Chat's 360 "
    "responses: [1] ChatEval (arXiv 2308.07201), [2] FairEval (arXiv 2305.17926). They are comparable only with rows "
    "measured on those files, in modes with the same numbers of roles and turns; by default, `paper:` modes have 2 "
    "roles and 2 turns. The mode `single` is this project's own."
)
UNPARSED = (
    "A judgement that could not be parsed is a failure of the judge: it has no verdict, counts as disagreement in "
    "accuracy and kappa, and has no score to correlate. In `paper:` modes it is a tie, as in the "
    "authors' script, and is still counted under No verdict."
)


def make_report(views: Sequence[RunView]) -> Section:
    """Make the section for one run or several runs."""
    judges = list_run_judges(views)
    comparing = [judge for judge in judges if len(select_labelled_comparisons(judge.tally))]
    named = [(judge.name, judge.tally) for judge in judges]
    theirs = [(*result, None, 80) for result in (*PEOPLE, *JUDGES)]
    blocks: list[Block | None] = [
        _make_preface(views),
        Table("Comparisons (table 1)", PAIR_COLUMNS, [*theirs, *map(_make_judge_row, comparing)])
        if comparing
        else None,
        *compare_modes(views),
        _tabulate_accuracy_by_category(comparing),
        *tabulate_dialogues(judges),
        _tabulate_panels_by_strategy(comparing),
        *draw_agreement_by_panel_size(comparing),
        tabulate_changed_minds(judges),
        tabulate_biases("Biases in comparisons", [(judge.name, judge.tally) for judge in comparing]),
        tabulate_agreement("Agreement among the judges", named),
        tabulate_corrected_means("Means corrected with few labels", estimate_corrected_means(named)),
        *(block for judge in judges for block in make_debate_passages(judge.name, judge.tally, judge.view)),
    ]
    return Section("ChatEval: do judges agree with people?", tuple(filter(None, blocks)))


def _make_preface(views: Sequence[RunView]) -> Passage:
    sources = "; ".join(dict.fromkeys(f"{view.label}: {view.source}" for view in views if view.source))
    rows = [row for view in views for row in view.tally if "prompts" in row.facts]
    prompts = dict.fromkeys(f"{row.tags['mode']}, {row.tags['task']}: {row.facts['prompts']}" for row in rows)
    return Passage(
        "What is measured",
        f"The model under test is the judge; people's verdicts and ratings are the right answers. {UNPARSED}"
        + (f" Samples: {sources}." if sources else "")
        # Prompts of `paper:` modes are from the authors' files, or have this project's own wording.
        + (f" Prompts of `paper:` modes: {'; '.join(prompts)}." if prompts else "")
        + f"\n\n{PUBLISHED_NOTE}",
    )


PAIR_COLUMNS = parse_columns("Judge | Accuracy: percent | Kappa: number 2 | No verdict: percent | Pairs: count")


def _make_judge_row(judge: MeasuredJudge) -> tuple[Cell, ...]:
    compared = select_labelled_comparisons(judge.tally)
    unparsed = compared.mean("parsed")
    silent = None if unparsed is None else 1 - unparsed
    return (judge.name, compared.estimate("accuracy"), compute_kappa(judge.tally), silent, len(compared))


def _tabulate_accuracy_by_category(judges: Sequence[MeasuredJudge]) -> Table | None:
    by_judge = {judge.name: select_labelled_comparisons(judge.tally).groups("category") for judge in judges}
    categories = sorted({category for groups in by_judge.values() for category in groups})
    if not categories:
        return None
    rows = [
        (category, *(groups.get(category, Tally()).estimate("accuracy") for groups in by_judge.values()))
        for category in categories
    ]
    columns = parse_columns("Category", by_judge)
    return Table("Accuracy by question category", columns, rows)


def _tabulate_panels_by_strategy(judges: Sequence[MeasuredJudge]) -> Table | None:
    panels = [judge for judge in judges if judge.mode.strategy]
    if not panels:
        return None
    rows: list[tuple[Cell, ...]] = []
    for strategy, theirs in STRATEGIES.items():
        rows.append((*theirs, None, 80))
        rows += [_make_judge_row(each) for each in panels if each.mode.strategy == strategy and not each.mode.same_role]
    same = [judge for judge in panels if judge.mode.same_role]
    rows += [(*SAME_ROLE, None, 80), *map(_make_judge_row, same)] if same else []
    return Table("Communication strategies (table 4)", PAIR_COLUMNS, rows)


COEFFICIENTS: Mapping[Coefficient, str] = {
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "pearson": "Pearson's r",
}
DIALOGUE_COLUMNS = (
    *parse_columns("Judge", [*ASPECT_NAMES, "mean", "overall", "systems"], "number 2"),
    *parse_columns("No verdict: percent | Responses: count"),
)
ASPECT_GROUPS = (*((name,) for name in ASPECT_NAMES), ASPECT_NAMES, (OVERALL,))
DIALOGUE_NOTE = (
    "Correlation at turn level with the mean of people's ratings; overall: of the mean over aspects with people's "
    "overall rating; systems: of the systems' mean scores, averaged over aspects. ROUGE-L, BLEU and BERTScore need no "
    "judge: they compare each response with the conversation's own response, which is left out. G-Eval's scores are "
    "weighted by probability. Published rows are computed from the outputs that the authors released; the other "
    "rows of table 2 could not be checked and are left out."
)


def tabulate_dialogues(judges: Sequence[MeasuredJudge]) -> Iterator[Table]:
    """Make one table per correlation coefficient; make none if the judges rated no response."""
    rated = [judge for judge in judges if len(judge.tally.where(task="dialogues"))]
    for sign, title in COEFFICIENTS.items() if rated else ():
        rows: list[tuple[Cell, ...]] = [
            (name, *row[sign], fmean(row[sign]), None, None, None, 360)
            for name, row in DIALOGUES.items()
            if sign in row
        ]
        # Compute overlap metrics on the first judge's cases, because all judges rate the same responses.
        tally = rated[0].tally
        metrics = dict.fromkeys(name for row in tally for name in row.facts.get(OVERLAP, {}))
        rows += [
            (metric, *_correlate_with_people(tally, sign, metric), None, len(list_responses(tally, metric)))
            for metric in metrics
        ]
        for judge in rated:
            name = f"{judge.name} (G-Eval)" if judge.mode.kind == "weighted" else judge.name
            usable = len(select_dialogues(judge.tally))
            asked = len(judge.tally.where(lambda row: row.outcome != "error", task="dialogues"))
            silent = 1 - usable / asked if asked else None
            rows.append((name, *_correlate_with_people(judge.tally, sign), silent, usable))
        yield Table(f"Dialogue responses (table 2): {title}", DIALOGUE_COLUMNS, rows, DIALOGUE_NOTE)


def _correlate_with_people(tally: Tally, coefficient: Coefficient, metric: str | None = None) -> list[Cell]:
    by_aspect = (correlate_ratings(tally, coefficient, aspects, metric) for aspects in ASPECT_GROUPS)
    return [*by_aspect, correlate_systems(tally, coefficient, metric)]


CHANGED_COLUMNS = parse_columns(
    "Judge | Task | Turns | Changed: percent | To what people say: percent | Away from it: percent | Ballots: count"
)
CHANGED_NOTE = (
    "Share of the secret ballots after a turn that the same debater changed after the next turn, for the same order of "
    "the answers; the last ballot is the judgement. For comparisons, the verdicts are compared; for dialogue "
    "responses, all scores. Intervals take into account that a sample has several ballots. Nothing new: before the "
    "last ballot, the first debater (or all, if they speak at once) saw no further speech, so such changes are noise."
)


def tabulate_changed_minds(judges: Sequence[MeasuredJudge]) -> Table | None:
    """Tabulate how often debaters changed their ballot, by judge, task and turn; None without secret ballots."""
    rows = [row for judge in judges for task in ("pairs", "dialogues") for row in _make_changed_mind_rows(judge, task)]
    return Table("Minds changed in the debate", CHANGED_COLUMNS, rows, CHANGED_NOTE) if rows else None


def _make_changed_mind_rows(judge: MeasuredJudge, task: str) -> Iterator[tuple[Cell, ...]]:
    """Yield a row per turn: the shares of ballots that changed, and that changed to or from people's verdict."""
    cases = judge.tally.where(lambda row: row.outcome != "error" and bool(row.facts.get("interim")), task=task)
    simultaneous = judge.mode.strategy != "one_by_one"
    by_turn: dict[tuple[int, bool], list[tuple[str, float, float, float]]] = {}
    for row in cases:
        people = row.facts["human"]
        for turn, informed, before, after in pair_ballots(row, judge.mode.turns, simultaneous=simultaneous):
            changed = before != after
            shares = float(changed), float(changed and after == people), float(changed and before == people)
            by_turn.setdefault((turn, informed), []).append((row.sample, *shares))
    for (turn, informed), ballots in sorted(by_turn.items()):
        samples, *sides = zip(*ballots, strict=True)
        share, *compared = (estimate_share(side, samples) for side in sides)
        label = f"{turn} to {turn + 1}{'' if informed else ', nothing new'}"
        yield judge.name, task, label, share, *(compared if task == "pairs" else (None, None)), len(ballots)


def pair_ballots(row: Row, turns: int, *, simultaneous: bool = False) -> Iterator[tuple[int, bool, Any, Any]]:
    """Pair each ballot with the same debater's next ballot, separately for each order of the answers.

    Yield the number of the earlier turn (from 1), whether the debater saw a new speech between the two ballots, and the
    verdict or the scores of each ballot. If `simultaneous`, all debaters speak at the same time, so no debater sees a
    new speech between the last two ballots.
    """
    ballots = [(ballot, ballot["turn"]) for ballot in row.facts["interim"]]
    ballots += [(ballot, turns) for ballot in row.facts.get("ballots", ())]
    opinions = {
        (ballot["judge"], ballot["swapped"], turn): ballot["scores"] if ballot["verdict"] is None else ballot["verdict"]
        for ballot, turn in ballots
    }
    first = next((debater for debater, _, _ in opinions), None)
    for (debater, swapped, turn), opinion in opinions.items():
        following = (debater, swapped, turn + 1)
        if following in opinions:
            yield turn, turn + 1 < turns or not (simultaneous or debater == first), opinion, opinions[following]


SHOWN = 2  # Maximum judgements shown per judge; records.jsonl has all judgements.


def make_debate_passages(judge_name: str, tally: Tally, view: RunView) -> Iterator[Passage]:
    """Yield the whole debate of each of the first few comparisons in which the judge disagrees with people."""
    differing = [row for row in select_labelled_comparisons(tally) if row.facts["verdict"] != row.facts["human"]]
    for row in differing[:SHOWN]:
        transcript = view.read(row.case).transcript
        verdict = row.facts["verdict"] or "no verdict"
        title = f"{judge_name}, {row.sample}: the judge says {verdict}, people say {row.facts['human']}"
        yield Passage(title, format_judge_log(transcript.events if transcript else ()), folded=True, whole=True)


# Published results on ChatEval's files; reports show these results beside the run's results and cite the source.
# Sources: [1] Chan et al., "ChatEval" (arXiv 2308.07201), tables 1 to 4 and section 3, and the authors' repository
# thunlp/ChatEval: the script that draws figure 3, and GPT-4's judgements of Topical-Chat, from which correlations are
# computed. [2] Wang et al., "Large Language Models are not Fair Evaluators" (arXiv 2305.17926), the main table. A
# published result is None if it could not be checked.
# A result on FairEval is a name, the accuracy in [0, 1], and Cohen's kappa.
PEOPLE = (
    ("a human annotator, the mean of three [2]", 0.717, 0.54),
    ("human annotator 1 [1]", 0.688, None),
    ("human annotator 2 [1]", 0.763, None),
    ("human annotator 3 [1]", 0.70, None),
)
JUDGES = (
    ("ChatGPT, multiple evidence, both orders [2]", 0.587, 0.31),
    ("GPT-4, multiple evidence, both orders [2]", 0.625, 0.37),
    ("ChatGPT, single agent [1]", 0.538, 0.27),
    ("ChatGPT, panel of 2 roles, 2 turns [1]", 0.60, 0.33),
    ("GPT-4, single agent [1]", 0.613, None),
    ("GPT-4, panel of 2 roles, 2 turns [1]", 0.638, 0.40),
)
STRATEGIES = {
    "one_by_one": ("ChatGPT, one by one, 3 roles, 2 turns [1]", 0.60, 0.33),
    "simultaneous": ("ChatGPT, simultaneous, 3 roles, 2 turns [1]", 0.55, 0.28),
    "simultaneous_summarizer": ("ChatGPT, simultaneous with summarizer, 3 roles, 2 turns [1]", 0.55, 0.27),
}
SAME_ROLE = ("ChatGPT, panel of the same role, 2 roles, 2 turns [1]", 0.538, 0.25)
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

FIGURE_3 = (
    "The paper's points come from the script that its authors released: one by one, with 2 turns for the number of "
    "roles and with 2 roles for the number of turns; 1 is the single agent. For 3 roles, the figure has 62.5% and "
    "0.37, but table 4 has 60.0% and 0.33."
)

# For each axis of figure 3, the paper's line, and its accuracy and kappa by panel size; 1 means the single agent.
PUBLISHED_LINES: Mapping[str, tuple[str, Mapping[int, tuple[float, float]]]] = {
    "roles": (
        "ChatGPT [1], one_by_one, 2 turns",
        {1: (0.538, 0.27), 2: (0.60, 0.33), 3: (0.625, 0.37), 4: (0.625, 0.38), 5: (0.588, 0.32)},
    ),
    "turns": (
        "ChatGPT [1], one_by_one, 2 roles",
        {1: (0.538, 0.27), 2: (0.60, 0.33), 3: (0.55, 0.28), 4: (0.563, 0.28), 5: (0.538, 0.23)},
    ),
}
# Each chart's metric, its estimate for a panel's comparisons, its style, and the limits of its axis.
FIGURES: tuple[tuple[str, Callable[[Tally], Estimate | None], Style, tuple[float, float]], ...] = (
    ("accuracy", lambda tally: tally.estimate("accuracy"), "percent", (0.0, 1.0)),
    ("kappa", compute_kappa, "number", (-1.0, 1.0)),
)


def draw_agreement_by_panel_size(judges: Sequence[MeasuredJudge]) -> list[Chart | Passage]:
    """Draw panels' accuracy and kappa against the number of roles and of turns, as in the paper's figure 3."""
    charts = []
    for axis, other in (("roles", "turns"), ("turns", "roles")):
        lines = _map_curves_to_comparisons(judges, axis, other)
        their_line, theirs = PUBLISHED_LINES[axis]
        numbers = sorted({number for points in (*lines.values(), theirs) for number in points})
        for place, (metric, estimate, unit, limits) in enumerate(FIGURES if lines else ()):
            series = [
                Series(line, [estimate(points[at]) if at in points else None for at in numbers])
                for line, points in lines.items()
            ]
            series.append(Series(their_line, [theirs[at][place] if at in theirs else None for at in numbers]))
            name, title = f"chat_eval_{metric}_by_{axis}", f"{metric.capitalize()} against the number of {axis}"
            charts.append(Chart("lines", name, title, list(map(str, numbers)), series, unit, limits, axis, metric))
    return [*charts, Passage("Figure 3 of the paper", FIGURE_3)] if charts else []


def _map_curves_to_comparisons(
    judges: Sequence[MeasuredJudge], size: str, other_size: str
) -> dict[str, dict[int, Tally]]:
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


def _join_model_names(judge: MeasuredJudge) -> str:
    models = dict.fromkeys(vote.model for case in read_judged_cases(judge.tally) for vote in case.votes)
    return ", ".join(models) or judge.view.label
