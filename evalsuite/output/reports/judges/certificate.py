"""A judge's certificate: its agreement with people and other judges, and its results on mutated answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from evalsuite.judges.judgements import PREFERENCE
from evalsuite.output.reports.judges import (
    AGREEMENT_COLUMNS,
    AGREEMENT_NOTE,
    MEASURES_NOTE,
    PEOPLE_COLUMNS,
    Rating,
    make_agreement_rows,
    make_people_agreement_cells,
    tabulate_biases,
)
from evalsuite.output.reports.judges.estimates import (
    compare_correlations,
    compare_verdicts,
    estimate_corrected_mean,
    tabulate_corrected_means,
)
from evalsuite.output.reports.section import Block, Cell, Column, Section, Table, parse_columns
from evalsuite.results.judge_labels import (
    JUDGE_METRICS,
    MUTATIONS,
    LabelledScore,
    convert_preference,
    estimate_rho,
    find_majority_verdict,
    list_labelled_scores,
)
from evalsuite.results.tally import Tally

PLAIN = "rubric"  # The name of a rubric's score if the user does not choose one.


@dataclass(frozen=True, slots=True)
class JudgeResults:
    """One judge's scores for the answers of one run."""

    judge: str  # The judge's model.
    scores: Mapping[str, float]  # The scores by case; a case is left out if its judgement could not be read.
    asked: int  # The number of cases that the judge was asked about.
    passes: float | None  # The lowest passing score; None if the judge's scores neither pass nor fail.
    untold: float = 0  # The number of cases on which the judge said that it cannot tell.
    # Results of mutation tests, by metric (`detects_numbers`, ...) and then by case: 1.0 if the judge passed, else 0.0.
    mutations: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    signature: str = ""  # Signature of the judge: a text that identifies its model, prompt and settings.
    score: str = ""  # The name of the judge's score; empty if no judgement could be read.
    nominal: bool = False  # Whether each score is a preference between two answers, from 0 to 1.
    scale: tuple[float, float] | None = None  # Lowest and highest possible score; None if unknown.
    lengths: Mapping[str, int] = field(default_factory=dict)  # The length of each case's answer in characters, by case.
    tally: Tally = field(default_factory=Tally)  # The judged cases; the judge stored data in their facts.
    known: Tally = field(default_factory=Tally)  # The cases that the scorer decides without the judge.

    @property
    def name(self) -> str:
        """The judge's label in the report: its model and its score's name."""
        return f"{self.judge}, {self.score}" if self.score not in {"", PLAIN} else self.judge

    def map_cases_to_clusters(self) -> dict[str, str]:
        """Map each judged case to its group of related cases."""
        return {row.case: row.cluster for row in self.tally}

    def find_verdict(self, score: float) -> float | None:
        """Convert a score, or a label on the judge's scale, to a verdict; None if the judge has no passing score."""
        if self.nominal:
            return convert_preference(score)
        return None if self.passes is None else float(score >= self.passes)


def make_judge_quality_section(
    judges: Sequence[JudgeResults],
    people: Mapping[str, float],
    sheets: Sequence[Mapping[str, float]] = (),
    weights: Mapping[str, float] | None = None,
) -> Section:
    """Make a report section about judges: their agreement with people and with each other, and their mutation tests.

    Args:
        people: people's labels by case, converted to the judges' scale; empty if nobody labelled cases.
        weights: the number of cases that each labelled case represents; needed if some cases were more likely to be
            labelled. With weights, measures such as kappa are left out, because the labelled cases differ from others.
    """
    tallies = [make_labelled_tally(judge, people, sheets, weights) for judge in judges]
    blocks: list[Block | None] = [
        _tabulate_judges(judges, tallies),
        _tabulate_agreement(judges, len(sheets), tallies) if people else None,
        tabulate_sheet_agreement(sheets),
        _tabulate_corrected_means(judges, people, weights or {}) if people else None,
        _tabulate_judge_gains(judges, tallies) if people and not weights and len(judges) > 1 else None,
        *(
            tabulate_biases(f"Biases of {each.name}", [(each.name, each.tally)], each.score.removesuffix(PREFERENCE))
            for each in judges
            if each.nominal
        ),
        _tabulate_length_bias(judges, people),
        _tabulate_mutations(judges, tallies),
    ]
    return Section("Certificate", tuple(block for block in blocks if block is not None))


def _tabulate_judges(judges: Sequence[JudgeResults], tallies: Sequence[Tally]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            judge.name,
            tally.estimate(judge.score),
            (judge.asked - judge.untold - len(judge.scores)) / judge.asked,
            judge.untold / judge.asked,
            judge.asked,
            judge.signature,
        )
        for judge, tally in zip(judges, tallies, strict=True)
    ]
    columns = parse_columns(
        "Judge | Mean score: number 3 | Not read (%): percent | Cannot tell (%): percent | Cases: count | Signature"
    )
    return Table("Judges", columns, rows)


def _tabulate_agreement(judges: Sequence[JudgeResults], sheets: int, tallies: Sequence[Tally]) -> Table:
    rows = [(judge.name, *make_people_agreement_cells(tally)) for judge, tally in zip(judges, tallies, strict=True)]
    note = (
        f"Against the labels of {sheets} {'person' if sheets == 1 else 'people'}. Verdicts are compared with the "
        "verdict of most people. If people are evenly divided, a comparison counts as a tie; any other case has no "
        f"verdict. Scores are compared with the mean of people's labels. {MEASURES_NOTE}"
    )
    return Table("Agreement with people", (Column("Judge"), *PEOPLE_COLUMNS), rows, note)


def make_labelled_tally(
    judge: JudgeResults,
    people: Mapping[str, float],
    sheets: Sequence[Mapping[str, float]] = (),
    weights: Mapping[str, float] | None = None,
) -> Tally:
    """Copy the judge's cases; add people's labels to the rows' `facts`, and turn unreadable judgements into errors."""
    rows = []
    for row in judge.tally:
        if row.case not in judge.scores:
            rows.append(replace(row, outcome="error", facts={}))
            continue
        outcomes = {metric: cases[row.case] for metric, cases in judge.mutations.items() if row.case in cases}
        facts: dict[str, Any] = {MUTATIONS: outcomes} if outcomes else {}
        if row.case in people:
            compared: dict[str, Any] = {"label": people[row.case], "passes": judge.passes, "nominal": judge.nominal}
            compared |= {"scale": list(judge.scale)} if judge.scale else {}
            compared |= {"weight": weights.get(row.case, 1.0)} if weights else {}
            # A case that only has a joint label has one verdict.
            labels = [sheet[row.case] for sheet in sheets if row.case in sheet] or [people[row.case]]
            verdicts = [verdict for label in labels if (verdict := judge.find_verdict(label)) is not None]
            if verdicts:
                compared["verdict"] = find_majority_verdict(verdicts)
            facts = {"ballots": [judge.judge], "people": {judge.score: compared}, **facts}
        rows.append(replace(row, scores={judge.score: judge.scores[row.case]}, facts=facts))
    return Tally(tuple(rows))


def _tabulate_corrected_means(
    judges: Sequence[JudgeResults], people: Mapping[str, float], weights: Mapping[str, float]
) -> Table | None:
    means = []
    for judge in judges:
        scores = [(people.get(case), score) for case, score in judge.scores.items()]
        drawn = [weights.get(case, 1.0) for case in judge.scores if case in people] if weights else None
        clusters = judge.map_cases_to_clusters()
        grouped = [clusters[case] for case in judge.scores]
        known = judge.known.values(judge.score)
        mean = estimate_corrected_mean(
            judge.score, scores, bounds=judge.scale, weights=drawn, clusters=grouped, known=known
        )
        if mean is not None:
            means.append((judge.judge, mean))
    note = "Prediction-powered inference, from labels of a random part of the cases."
    if any(len(judge.known) for judge in judges):
        note += " Cases about which the judge is not asked count with the score that a rule gives them."
    if weights:
        note += (
            " Some cases were drawn more often than others, so the labels are weighted; people alone are not. "
            "Agreement beyond chance is not shown, because the labelled cases differ from the others."
        )
    return tabulate_corrected_means("Mean corrected by people's labels", means, note) if means else None


def _tabulate_judge_gains(judges: Sequence[JudgeResults], tallies: Sequence[Tally]) -> Table:
    """Tabulate, for each pair of judges, how much better the second judge agrees with people than the first."""
    labelled = [{label.row.case: label for label in list_labelled_scores(tally)} for tally in tallies]
    rows: list[tuple[Cell, ...]] = []
    for (one, first), (other, second) in combinations(zip(judges, labelled, strict=True), 2):
        both = [(label, second[case]) for case, label in first.items() if case in second]
        if one.score == other.score and both:
            rows.append((one.name, other.name, *_make_gain_cells(both), len(both)))
    columns = parse_columns(
        "Judge | Other judge | More often right (%): percent | p: pvalue | Kappa gained: number 2 | p: pvalue | Rho "
        "gained: number 2 | p: pvalue | Labels: count"
    )
    note = (
        "Of the other over the first, on the cases that both scored. McNemar's exact test of verdicts, or the paired t "
        "test if cases share a cluster; the jackknife's interval and p-value of kappa and of Spearman's rho."
    )
    return Table("Judges compared", columns, rows, note)


def _make_gain_cells(both: Sequence[tuple[LabelledScore, LabelledScore]]) -> tuple[Cell, ...]:
    """Compare how two judges agree with people: gains in accuracy, kappa and rho, each with its p-value."""
    people = [label.label for label, _ in both]
    one, other = ([(people, [label.judge for label in labels])] for labels in zip(*both, strict=True))
    in_rho = compare_correlations(one, other, [label.row.cluster for label, _ in both])
    verdicts = [
        (*pair, judged[1], label.row.cluster)
        for label, theirs in both
        if (pair := label.verdicts) and (judged := theirs.verdicts)
    ]
    gained = compare_verdicts(*zip(*verdicts, strict=True)) if verdicts else (None,) * 4
    return (*gained, *in_rho)


def _tabulate_mutations(judges: Sequence[JudgeResults], tallies: Sequence[Tally]) -> Table | None:
    rows: list[tuple[Cell, ...]] = [
        (judge.name, f"judge.{metric}", JUDGE_METRICS[metric](tally), len(outcomes))
        for judge, tally in zip(judges, tallies, strict=True)
        for metric, outcomes in judge.mutations.items()
    ]
    columns = (Column("Judge"), Column("Gate on"), Column("Share (%)", "percent"), Column("Cases", "count"))
    note = (
        "`detects_KIND`: share of answers that pass whose score falls after a small corruption of this kind. "
        "`resists_KIND`: share of detected corruptions whose verdict stays the same after a trick. "
        "Cases where detection was impossible are left out, so a judge without detections has no row for tricks. "
        "Some texts are written by the judge's model, which also checks them."
    )
    return Table("Mutation tests", columns, rows, note) if rows else None


def tabulate_sheet_agreement(sheets: Sequence[Mapping[str, float]]) -> Table | None:
    """Tabulate how people agree: Krippendorff's alpha over all, Cohen's kappa per pair; None for one person."""
    ratings = [
        Rating(case, case, f"sheet {at}", label) for at, sheet in enumerate(sheets, 1) for case, label in sheet.items()
    ]
    verdicts = {rating.value for rating in ratings} <= {0.0, 0.5, 1.0}
    rows = make_agreement_rows("people", "people", ("labels", "nominal" if verdicts else "interval"), ratings)
    note = f"No judge can be expected to exceed this by much. {AGREEMENT_NOTE}"
    return Table("People among themselves", AGREEMENT_COLUMNS, rows, note) if rows else None


def _tabulate_length_bias(judges: Sequence[JudgeResults], people: Mapping[str, float]) -> Table | None:
    """Tabulate how answers' lengths correlate with the judges' scores and with people's labels."""
    rows: list[tuple[Cell, ...]] = []
    for judge in judges:
        cases = [case for case in judge.scores if case in judge.lengths]
        labelled = [case for case in cases if case in people]
        clusters = judge.map_cases_to_clusters()
        leaning, theirs = (
            estimate_rho(
                [(float(judge.lengths[case]), values[case]) for case in some], [clusters[case] for case in some]
            )
            for some, values in ((cases, judge.scores), (labelled, people))
        )
        if leaning is not None:
            rows.append((judge.name, leaning, theirs, len(cases)))
    columns = parse_columns(
        "Judge | rho of score and length: number 2 | rho of people's label and length: number 2 | Cases: count"
    )
    note = "Spearman's. A judge that favours length more than people do is biased by it."
    return Table("Longer answers", columns, rows, note) if rows else None
