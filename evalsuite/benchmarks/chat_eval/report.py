"""ChatEval's section of the report: the paper's tables and figure 3, and checks of the judge's reliability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.chat_eval.agreement import (
    DIALOGUES,
    JUDGES,
    PEOPLE,
    SAME_ROLE,
    STRATEGIES,
    MeasuredJudge,
    PairsResult,
    RatedResponses,
    compare_modes,
    compute_kappa,
    draw_agreement_by_panel_size,
    estimate_corrected_means,
    list_run_judges,
    select_dialogues,
    select_labelled_comparisons,
)
from evalsuite.benchmarks.chat_eval.dataset import ASPECT_NAMES, OVERALL, OVERLAP
from evalsuite.output.reports.judges.agreement import tabulate_agreement
from evalsuite.output.reports.judges.ballots import format_judge_log, tabulate_biases
from evalsuite.output.reports.judges.estimates import estimate_share, tabulate_corrected_means
from evalsuite.output.reports.section import Block, Cell, Column, Passage, Section, Table, parse_columns
from evalsuite.results.tally import Row, RunView, Tally

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
    theirs = map(_make_row_of_published_result, (*PEOPLE, *JUDGES))
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


def _make_row_of_published_result(result: PairsResult) -> tuple[Cell, ...]:
    return (result.name, result.accuracy, result.kappa, None, 80)


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
    columns = (Column("Category"), *(Column(name, "percent") for name in by_judge))
    return Table("Accuracy by question category", columns, rows)


def _tabulate_panels_by_strategy(judges: Sequence[MeasuredJudge]) -> Table | None:
    panels = [judge for judge in judges if judge.mode.strategy]
    if not panels:
        return None
    rows: list[tuple[Cell, ...]] = []
    for strategy, theirs in STRATEGIES.items():
        rows.append(_make_row_of_published_result(theirs))
        rows += [_make_judge_row(each) for each in panels if each.mode.strategy == strategy and not each.mode.same_role]
    same = [judge for judge in panels if judge.mode.same_role]
    rows += [_make_row_of_published_result(SAME_ROLE), *map(_make_judge_row, same)] if same else []
    return Table("Communication strategies (table 4)", PAIR_COLUMNS, rows)


COEFFICIENTS: Mapping[Coefficient, str] = {
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "pearson": "Pearson's r",
}
DIALOGUE_COLUMNS = (
    Column("Judge"),
    *(Column(name, "number", 2) for name in (*ASPECT_NAMES, "mean", "overall", "systems")),
    Column("No verdict", "percent"),
    Column("Responses", "count"),
)
ASPECT_GROUPS = (*((name,) for name in ASPECT_NAMES), ASPECT_NAMES)
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
        for metric in dict.fromkeys(name for row in tally for name in row.facts.get(OVERLAP, {})):
            responses = RatedResponses.from_metric(tally, metric)
            rows.append((metric, *_correlate_responses_with_ratings(responses, sign), None, len(responses.rows)))
        for judge in rated:
            name = f"{judge.name} (G-Eval)" if judge.mode.kind == "weighted" else judge.name
            responses, usable = RatedResponses.from_judge(judge.tally), len(select_dialogues(judge.tally))
            asked = len(judge.tally.where(lambda row: row.outcome != "error", task="dialogues"))
            silent = 1 - usable / asked if asked else None
            rows.append((name, *_correlate_responses_with_ratings(responses, sign), silent, usable))
        yield Table(f"Dialogue responses (table 2): {title}", DIALOGUE_COLUMNS, rows, DIALOGUE_NOTE)


def _correlate_responses_with_ratings(responses: RatedResponses, coefficient: Coefficient) -> list[Cell]:
    return [
        *(responses.compute_correlation(coefficient, names) for names in ASPECT_GROUPS),
        responses.select_overall().compute_correlation(coefficient, (OVERALL,)),
        responses.correlate_systems(coefficient),
    ]


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

    Args:
        simultaneous: whether all debaters speak at the same time. If so, no debater sees a new speech between the last
            two ballots.

    Yields:
        The number of the earlier turn (from 1), whether the debater saw a new speech between the two ballots, and the
        verdict or the scores of both ballots.
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
