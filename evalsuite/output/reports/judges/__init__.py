"""Show how reliable judges are, in tables for any benchmark that a judge has scored.

The parts of a report are made from data that judges store in records: `verdict`, `ballots` (single votes), `lengths`,
`systems`, `human`. Tables show judges' biases, the use of debates, judges' signatures, and how raters agree: judges
(debaters, repetitions, epochs) with each other, and judges with people.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from statistics import fmean
from typing import Any, Literal, TypeGuard

from evalsuite import stats
from evalsuite.judges.judgements import CANNOT_TELL, SINGLE_JUDGE_FACT, WINS, Ballot
from evalsuite.output.reports.judges.estimates import estimate_mean, estimate_share
from evalsuite.output.reports.section import Cell, Table, parse_columns
from evalsuite.results.judge_labels import (
    JUDGE_METRICS,
    estimate_corrected_score,
    group_scores_by_signature,
    list_labelled_scores,
    select_labelled_cases,
)
from evalsuite.results.tally import Estimate, Row, RunView, Tally


def make_judge_tables(views: Sequence[RunView]) -> list[Table]:
    """Make tables of bias and agreement, for all judges whose single votes (ballots) are in the records."""
    tables: list[Table | None] = []
    for view in views:
        tally = view.tally
        # A judge without a prefix has the prefix "".
        plain = {""} if any(has_ballots(row.facts) for row in tally) else set()
        nested = {name for row in tally for name, fact in row.facts.items() if has_ballots(fact)}
        for prefix in sorted(plain | nested):
            judge = ", ".join(filter(None, (view.judge or "the judge", prefix.rstrip("_"))))
            name = f"{judge} ({view.label})"
            if any(case.verdict is not None for case in read_judged_cases(tally, prefix)):
                tables.append(tabulate_biases(f"Biases of {name}", [(name, tally)], prefix))
            tables.append(tabulate_debates(f"Debate on demand of {name}", tally, prefix))
            tables.append(tabulate_agreement(f"Agreement within {name}", [(name, tally)], prefix))
    tables.append(tabulate_people_agreement(views))
    return [table for table in tables if table is not None]


SIGNATURES_NOTE = (
    "A signature changes with the prompts, the scale, the parameters and the judge's model: scores under different "
    "signatures should not be compared."
)
LITTLE_NOTE = " Made of little: the judge gave most of the probability to something other than a score."


@dataclass
class _SignatureGroup:
    """The cases whose judged scores have the same signature."""

    modes: dict[str, None] = field(default_factory=dict)  # The cases' `mode` tags, in order of first appearance.
    scores: dict[str, None] = field(default_factory=dict)  # The scores' names, in order of first appearance.
    cases: int = 0  # Number of cases.
    # For each case and judge, whether one of the probability-weighted scores has a low total probability.
    little: list[bool] = field(default_factory=list)


def tabulate_signatures(views: Sequence[RunView]) -> Table | None:
    """Make a table of judges' signatures, with a row for each run and signature; None if no score is judged."""
    signed = [(view.label, *item) for view in views for item in _group_cases_by_signature(view.tally).items()]
    if not signed:
        return None
    with_modes = any(cases.modes for _, _, cases in signed)
    weighted = any(cases.little for _, _, cases in signed)
    rows: list[list[Cell]] = []
    for label, signature, cases in signed:
        mode: list[Cell] = [", ".join(cases.modes)] if with_modes else []
        little: list[Cell] = [sum(cases.little) / len(cases.little) if cases.little else None] if weighted else []
        rows.append([label, *mode, ", ".join(cases.scores), signature, cases.cases, *little])
    heads = ["Run", *(["Mode"] if with_modes else []), "Scores", "Signature", "Cases: count"]
    columns = parse_columns(" | ".join([*heads, "Made of little (%): percent"] if weighted else heads))
    note = SIGNATURES_NOTE + LITTLE_NOTE if weighted else SIGNATURES_NOTE
    return Table("Signatures of judged scores", columns, rows, note)


def _group_cases_by_signature(tally: Tally) -> dict[str, _SignatureGroup]:
    signed: dict[str, _SignatureGroup] = {}
    for row in tally:
        for signature, scores in group_scores_by_signature(row.facts).items():
            cases = signed.setdefault(signature, _SignatureGroup())
            cases.modes |= dict.fromkeys([row.tags["mode"]] if "mode" in row.tags else [])
            cases.scores |= dict.fromkeys(scores)
            cases.cases += 1
            cases.little += _list_low_probability_flags(row.facts, signature, scores)
    return dict(sorted(signed.items(), key=lambda item: (*item[1].scores, *item[1].modes, item[0])))


def _list_low_probability_flags(facts: Mapping[str, Any], signature: str, scores: Sequence[str]) -> Iterator[bool]:
    """Yield, for each judge with probability-weighted scores, whether one of them has a low total probability."""
    if not signature.startswith("weighted|"):
        return
    for prefix, part in (("", facts), *facts.items()):
        weights = part.get("weights") if isinstance(part, Mapping) else None
        if weights and scores[0].startswith(prefix):
            yield any(weight.get("little") for weight in weights.values())


DEBATE_COLUMNS = parse_columns(
    "Cases | Number: count | Calls per case: number 1 | With people's choice: count | Judge alone (%): percent | With "
    "debate (%): percent | Gain (%): percent | Calls per verdict gained: number 0 | Debate earned its cost"
)
DEBATE_NOTE = (
    "One judge compares both orders; only where its two verdicts differ does the panel debate. Accuracy is agreement "
    "with people's choice; a tie counts one half where people prefer an answer, as a toss of a coin would. The debate "
    "earned its cost if the 95% interval of the gain lies above zero. Calls per verdict gained: the debate's calls "
    "by the gain in right verdicts."
)


def tabulate_debates(title: str, tally: Tally, prefix: str = "") -> Table | None:
    """Tabulate cases that one judge decided, cases that a panel debated, and all cases; None without cases."""
    cases = [case for case in read_judged_cases(tally, prefix) if SINGLE_JUDGE_FACT in case.facts]
    debated = [case for case in cases if case.facts["calls"] > case.facts[SINGLE_JUDGE_FACT]["calls"]]
    settled = [case for case in cases if case not in debated]
    groups = (("decided by one judge", settled), ("debated", debated), ("all", cases))
    rows = [_make_debate_row(*group) for group in groups if group[1]]
    return Table(title, DEBATE_COLUMNS, rows, DEBATE_NOTE) if cases else None


def _make_debate_row(name: str, cases: "Sequence[JudgedCase]") -> tuple[Cell, ...]:
    calls = sum(case.facts["calls"] for case in cases) / len(cases)
    labelled = [case for case in cases if case.facts.get("human") in WINS]
    shown = (name, len(cases), calls, len(labelled))
    if not labelled:
        return (*shown, None, None, None, None, None)
    alone = [_measure_agreement_with_people(case.facts[SINGLE_JUDGE_FACT]["verdict"], case) for case in labelled]
    joint = [_measure_agreement_with_people(case.verdict, case) for case in labelled]
    clusters = [case.row.cluster for case in labelled]
    before, after = (_estimate_mean_in_unit_interval(values, clusters) for values in (alone, joint))
    further = sum(case.facts["calls"] - case.facts[SINGLE_JUDGE_FACT]["calls"] for case in labelled) / len(labelled)
    if not further:
        return (*shown, before, after, None, None, None)
    found = stats.paired_difference(alone, joint, clusters=clusters, scale=1)
    gain = Estimate(found.difference, found.low, found.high, len(labelled))
    earned = "yes" if found.low > 0 else "not shown"
    return (*shown, before, after, gain, further / gain.value if gain.value > 0 else None, earned)


def _measure_agreement_with_people(verdict: str | None, case: "JudgedCase") -> float:
    """Return 1 if a verdict equals people's choice, 0.5 if only one of them is a tie, and otherwise 0."""
    return 1 - abs(WINS[verdict] - WINS[case.facts["human"]])


def _estimate_mean_in_unit_interval(values: Sequence[float], clusters: Sequence[str]) -> Estimate:
    mean = estimate_mean(values, clusters)
    return (
        mean if mean.low is None or mean.high is None else replace(mean, low=max(0, mean.low), high=min(1, mean.high))
    )


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case that a judge has judged."""

    row: Row
    verdict: str | None  # The result of comparing two answers; None if only one answer was scored.
    votes: tuple[Ballot, ...]  # The single votes from which the verdict was made.
    facts: Mapping[str, Any]  # Further data that the judge stored: `lengths`, `systems`, `human`.


def read_judged_cases(tally: Tally, prefix: str = "") -> list[JudgedCase]:
    """Read the judged cases in order; leave out cases and votes in which the judge could not tell."""
    rows = [(row, row.facts.get(prefix) if prefix else row.facts) for row in tally if row.outcome != "error"]
    cases = []
    for row, facts in rows:
        if has_ballots(facts) and facts["verdict"] != CANNOT_TELL:
            votes = tuple(Ballot(**ballot) for ballot in facts["ballots"] if ballot["verdict"] != CANNOT_TELL)
            cases.append(JudgedCase(row, facts["verdict"], votes, facts))
    return cases


_BALLOT_FIELDS = {item.name for item in fields(Ballot)}


def has_ballots(facts: object) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether facts have a judge's verdict and ballots; facts of a user's scorer may have the same names."""
    ballots = facts.get("ballots") if isinstance(facts, Mapping) and "verdict" in facts else None
    return (
        isinstance(ballots, Sequence)
        and any(ballots)
        and all(isinstance(ballot, Mapping) and ballot.keys() == _BALLOT_FIELDS for ballot in ballots)
    )


SHOWN_APART = ("kind", "role", "content", "reasoning", "speaker", "turn", "order", "model", "cut_off")


def format_judge_log(log: Sequence[Mapping[str, Any]]) -> str:
    """Write each message as a paragraph with speaker and turn in its heading; leave out prompts that were shown."""
    shown: set[tuple[str, str, str]] = set()
    paragraphs = []
    for entry in log:
        speaker, role, content = str(entry.get("speaker", "judge")), entry.get("role"), str(entry.get("content", ""))
        if role in ("system", "user"):
            # A judge may be asked the same question many times.
            prompt = (speaker, str(entry.get("order")), content)
            if prompt in shown:
                continue
            shown.add(prompt)
        heading = (
            speaker if role in ("assistant", None) else f"to {speaker}",
            *(f"{name} {entry[name]}" for name in ("turn", "order") if entry.get(name)),
            str(entry.get("model", "")),
            "cut off" if entry.get("cut_off") else "",
        )
        reasoning = f"(reasoning) {entry['reasoning']}" if entry.get("reasoning") else ""
        others = [f"{name}: {value}" for name, value in entry.items() if name not in SHOWN_APART]
        lines = (f"[{', '.join(filter(None, heading))}]", reasoning, content.strip(), *others)
        paragraphs.append("\n".join(filter(None, lines)).strip())
    return "\n\n".join(paragraphs)


FAMILIES = {
    "GPT": r"gpt|chatgpt|davinci|(?<![a-z])o[134](?![a-z0-9])",
    "Claude": r"claude",
    "Gemini": r"gemini|gemma|palm",
    "Llama": r"llama|vicuna|alpaca",
    "Mistral": r"mistral|mixtral",
    "Qwen": r"qwen|qwq",
    "DeepSeek": r"deepseek",
    "SmolLM": r"smollm",
}
"""Patterns for names of models, by family: models of one family share weights, data or makers."""


Choice = tuple[str, float, float | None]
"""One decision of a judge, used to measure a bias towards an answer.

A choice consists of the case's cluster, the judge's choice (1.0 for the favoured answer, otherwise 0.0), and people's
choice (None if unknown).
"""


def tabulate_biases(title: str, judges: Sequence[tuple[str, Tally]], prefix: str = "") -> Table:
    """Make a table with a row for each judge and bias; a bias that the judge's comparisons cannot show has no numbers.

    The table shows how often a judge's decisions show the bias, how often decisions without a bias would (people's
    choices of the favoured answer, or one half), and the difference.
    """
    rows: list[tuple[Cell, ...]] = []
    for name, tally in judges:
        compared = [case for case in read_judged_cases(tally, prefix) if case.verdict is not None]
        flips = _estimate_order_flips(compared)
        rows.append((name, "changes with the order", flips, None, None, flips.n if flips else None, None))
        for bias, list_choices in BIASES.items():
            choices = [choice for case in compared for choice in list_choices(case)]
            rows.append((name, bias, *_make_bias_cells(choices)))
    columns = parse_columns(
        "Judge | Bias | How often (%): percent | Unbiased (%): percent | Excess (%): percent | Cases: count | Flagged"
    )
    return Table(title, columns, rows, BIAS_NOTE)


BIAS_NOTE = (
    "Flagged where the 95% interval of the excess leaves out zero. Unbiased: people's own choices on the "
    "same cases where they are known, else one half. Changes with the order: verdicts of the same judge on "
    "the same answers in both orders that differ. A dash: these cases cannot show it, as where nobody of the "
    "judge's own family wrote one of two answers."
)


def _estimate_order_flips(cases: Sequence[JudgedCase]) -> Estimate | None:
    values, clusters = [], []
    for case in cases:
        verdicts = {(vote.judge, vote.swapped): vote.verdict for vote in case.votes}
        for (judge, swapped), verdict in verdicts.items():
            if not swapped and (judge, True) in verdicts:
                values.append(float(verdict != verdicts[judge, True]))
                clusters.append(case.row.cluster)
    return estimate_share(values, clusters)


def _list_first_place_choices(case: JudgedCase) -> Iterator[Choice]:
    """Yield for each vote without a tie whether the judge chose the answer that was shown first."""
    # Count only judges that saw both orders: in one order alone, the better answers may be first by chance.
    first, second = ({vote.judge for vote in case.votes if vote.swapped is swapped} for swapped in (False, True))
    for vote in case.votes:
        if vote.judge in first & second and vote.verdict != "tie":
            yield case.row.cluster, float(vote.verdict == ("second" if vote.swapped else "first")), None


def _list_longer_answer_choices(case: JudgedCase) -> Iterator[Choice]:
    """Yield whether the judge chose the longer answer, and whether people did."""
    first, second = case.facts.get("lengths") or (0, 0)
    if first != second:
        yield from _list_paired_choices(case, "first" if first > second else "second")


def _list_own_family_choices(case: JudgedCase) -> Iterator[Choice]:
    """Yield whether the judge chose its own model family's answer; skip cases without exactly one such answer."""
    families = [find_model_family(system) for system in case.facts.get("systems") or ()]
    own = {find_model_family(vote.model) for vote in case.votes}
    if len(own) == 1 and own != {None} and [found in own for found in families].count(True) == 1:
        yield from _list_paired_choices(case, "first" if families[0] in own else "second")


BIASES: Mapping[str, Callable[[JudgedCase], Iterator[Choice]]] = {
    "prefers the first place": _list_first_place_choices,
    "prefers the longer answer": _list_longer_answer_choices,
    "prefers its own family": _list_own_family_choices,
}


def _list_paired_choices(case: JudgedCase, favoured: str) -> Iterator[Choice]:
    """Yield one choice: whether judge and people chose the favoured answer; yield nothing for a tie."""
    human = case.facts.get("human")
    if case.verdict != "tie" and human != "tie":
        yield case.row.cluster, float(case.verdict == favoured), None if human is None else float(human == favoured)


def _make_bias_cells(choices: Sequence[Choice]) -> tuple[Cell, ...]:
    """Return the share of choices that show the bias, the share without a bias, the excess, the number, and a flag."""
    chosen = estimate_share([judge for _, judge, _ in choices], [cluster for cluster, *_ in choices])
    if chosen is None:
        return (None,) * 5
    people = [human for *_, human in choices if human is not None]
    if len(people) == len(choices):
        expected, excess = math.fsum(people) / len(people), _estimate_excess_over_people(choices, people)
    else:
        low, high = (bound if bound is None else bound - 0.5 for bound in (chosen.low, chosen.high))
        expected, excess = 0.5, Estimate(chosen.value - 0.5, low, high, chosen.n)
    flagged = excess.low is not None and excess.high is not None and not excess.low <= 0 <= excess.high
    return (chosen, expected, excess, chosen.n, "yes" if flagged else "no")


def _estimate_excess_over_people(choices: Sequence[Choice], people: Sequence[float]) -> Estimate:
    clusters, judge = [cluster for cluster, *_ in choices], [chosen for _, chosen, _ in choices]
    # Tango's interval is for independent choices.
    shared, scale = (clusters, None) if len(set(clusters)) < len(clusters) else (None, 1.0)
    difference = stats.paired_difference(people, judge, clusters=shared, scale=scale)
    low, high = (bound if math.isfinite(bound) else None for bound in (difference.low, difference.high))
    return Estimate(difference.difference, low, high, len(clusters))


def find_model_family(model: str) -> str | None:
    """Find a model's family from its name; None if the family is unknown."""
    families = (name for name, pattern in FAMILIES.items() if re.search(pattern, model.lower()))
    return next(families, None)


RatedQuestion = tuple[str, Literal["nominal", "interval"]]
"""A question that raters answered: `verdict` or the name of a scored aspect, and the level of the answers."""
VERDICT: RatedQuestion = ("verdict", "nominal")


@dataclass(frozen=True, slots=True)
class Rating:
    """One rater's verdict or score for one item."""

    cluster: str  # The group of items that depend on each other, such as the two orders of one case.
    item: Hashable  # The rated item.
    rater: str  # The rater's name.
    value: str | float  # The rater's verdict or score.


def tabulate_agreement(title: str, judges: Sequence[tuple[str, Tally]], prefix: str = "") -> Table | None:
    """Tabulate the agreement of each judge on each question, over all raters and per pair; None without ratings."""
    rows: list[tuple[Cell, ...]] = []
    for name, tally in judges:
        cases = read_judged_cases(tally, prefix)
        for kind, rated in (("judges", _list_ratings_by_vote(cases)), ("epochs", _list_ratings_by_epoch(cases))):
            by_question: dict[RatedQuestion, list[Rating]] = {VERDICT: []}
            for question, rating in rated:
                by_question.setdefault(question, []).append(rating)
            for question, ratings in by_question.items():
                rows += make_agreement_rows(name, kind, question, ratings)
    return Table(title, AGREEMENT_COLUMNS, rows, AGREEMENT_NOTE) if rows else None


def _list_ratings_by_vote(cases: Sequence[JudgedCase]) -> Iterator[tuple[RatedQuestion, Rating]]:
    """Yield each vote's verdict on a case in one order, or its score of each aspect of a single answer."""
    for case in cases:
        for vote in case.votes:
            if vote.verdict is not None:
                yield VERDICT, Rating(case.row.cluster, (case.row.case, vote.swapped), vote.judge, vote.verdict)
            if case.verdict is None:
                for aspect, score in vote.scores.items():
                    yield (aspect, "interval"), Rating(case.row.cluster, case.row.case, vote.judge, score)


def _list_ratings_by_epoch(cases: Sequence[JudgedCase]) -> Iterator[tuple[RatedQuestion, Rating]]:
    """Yield the result of each case in its epoch: the verdict, or the mean score of each aspect."""
    for case in cases:
        row, epoch = case.row, f"epoch {case.row.epoch}"
        if case.verdict is not None:
            yield VERDICT, Rating(row.cluster, row.sample, epoch, case.verdict)
            continue
        for aspect in dict.fromkeys(name for vote in case.votes for name in vote.scores):
            mean = fmean(vote.scores[aspect] for vote in case.votes if aspect in vote.scores)
            yield (aspect, "interval"), Rating(row.cluster, row.sample, epoch, mean)


AGREEMENT_COLUMNS = parse_columns(
    "Judge | On | Raters | Krippendorff's alpha: number 2 | Cohen's kappa: number 2 | Things rated: count"
)

AGREEMENT_NOTE = (
    "Alpha is nominal for verdicts and interval for scores; its 95% interval leaves out one case at a time. "
    "1 is full agreement, 0 is chance."
)


def make_agreement_rows(
    judge: str, kind: str, question: RatedQuestion, ratings: Sequence[Rating]
) -> list[tuple[Cell, ...]]:
    """Make a row for all raters of a question and, if they gave verdicts, for each pair; none for a single rater.

    Args:
        kind: what the raters are, such as `judges`.
    """
    by_rater: dict[str, dict[Hashable, str | float]] = {}
    for rating in ratings:
        by_rater.setdefault(rating.rater, {})[rating.item] = rating.value
    if len(by_rater) < 2:
        return []
    about, level = question
    alpha = _estimate_alpha(ratings, level)
    rows: list[tuple[Cell, ...]] = [
        (judge, about, f"all {len(by_rater)} {kind}", alpha, None, alpha.n if alpha else None)
    ]
    for (one, values), (other, others) in combinations(by_rater.items(), 2) if level == "nominal" else ():
        both = [(value, others[item]) for item, value in values.items() if item in others]
        kappa = stats.cohen_kappa(*zip(*both, strict=True)) if both else math.nan
        rows.append((judge, about, f"{one}, {other}", None, None if math.isnan(kappa) else kappa, None))
    return rows


def _estimate_alpha(ratings: Sequence[Rating], level: Literal["nominal", "interval"]) -> Estimate | None:
    from evalsuite.stats.agreement import compute_alpha_replicates
    from evalsuite.stats.clustering import compute_jackknife_interval

    values: dict[Hashable, list[str | float]] = {}
    clusters: dict[Hashable, str] = {}
    for rating in ratings:
        values.setdefault(rating.item, []).append(rating.value)
        clusters.setdefault(rating.item, rating.cluster)
    value, without = compute_alpha_replicates(list(values.values()), list(clusters.values()), level=level)
    if math.isnan(value):
        return None
    interval = compute_jackknife_interval(value, without, bounds=(-math.inf, 1.0))
    return Estimate.of(value, interval.low, interval.high, len(values))


MEASURES = ("accuracy", "sensitivity", "specificity", "kappa", "ac1", "weighted_kappa", "alpha", "rho")
PEOPLE_COLUMNS = parse_columns(
    "Accuracy (%): percent | Sensitivity (%): percent | Specificity (%): percent | Kappa: number 2 | AC1: number 2 | "
    "Weighted kappa: number 2 | Ordinal alpha: number 2 | Spearman's rho: number 2 | Confusion | Labels: count"
)
# Measures left out if people gave verdicts, because these measures need numeric scores.
NUMERIC_MEASURES = ("weighted_kappa", "alpha")
MEASURES_NOTE = (
    "Accuracy, kappa and Gwet's AC1 are of verdicts. Sensitivity is the share of people's passes that the judge "
    "passes, specificity of their failures that it fails; the confusion counts people's verdict → the judge's. "
    "Weighted kappa (quadratic), Krippendorff's ordinal alpha and Spearman's rho are of scores. Gates may demand them: "
    "`judge.kappa >= 0.6 @95%`."
)
PEOPLE_NOTE = (
    f"Of cases whose sample's metadata has people's label under `human`. {MEASURES_NOTE} The corrected mean is by "
    "prediction-powered inference; it needs 30 labels of a random part of the cases, and as many cases without."
)


def make_people_agreement_cells(tally: Tally) -> tuple[Cell, ...]:
    """Measure how one score agrees with people's labels; return the cells of the columns `PEOPLE_COLUMNS`."""
    labels = list_labelled_scores(tally)
    verdicts = [label.verdicts for label in labels if label.verdicts is not None]
    measured = (None if verdicts and name in NUMERIC_MEASURES else JUDGE_METRICS[name](tally) for name in MEASURES)
    counts = Counter(label.verdicts for label in labels if label.verdicts is not None and not label.nominal)
    names = {1.0: "pass", 0.0: "fail"}
    cells = [f"{names[people]} → {names[judge]}: {counts[people, judge]}" for people in names for judge in names]
    return (*measured, ", ".join(cells) if counts else None, len(labels))


def tabulate_people_agreement(views: Sequence[RunView]) -> Table | None:
    """Tabulate agreement with people, with a row for each run and labelled score; None if no score has labels."""
    rows: list[tuple[Cell, ...]] = []
    for view in views:
        for score in dict.fromkeys(label.score for label in list_labelled_scores(view.tally)):
            agreement = make_people_agreement_cells(select_labelled_cases(view.tally, score))
            name = f"{view.judge or 'the judge'} ({view.label})"
            rows.append((name, score, *agreement, view.tally.mean(score), estimate_corrected_score(score, view.tally)))
    means = parse_columns("Mean, all cases: number 3 | Corrected mean: number 3")
    columns = (*parse_columns("Judge | Score"), *PEOPLE_COLUMNS, *means)
    return Table("Judges against people", columns, rows, PEOPLE_NOTE) if rows else None
