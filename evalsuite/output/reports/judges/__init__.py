"""Show how reliable judges are, in tables for any benchmark that a judge has scored.

Each function makes parts of a report from data that judges store in records: `verdict`, `ballots`, `lengths`,
`systems`, `human`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalsuite import stats
from evalsuite.judges.judgements import SINGLE_JUDGE_FACT, WINS
from evalsuite.output.reports.judges.agreement import tabulate_agreement, tabulate_people_agreement
from evalsuite.output.reports.judges.ballots import JudgedCase, has_ballots, read_judged_cases, tabulate_biases
from evalsuite.output.reports.judges.estimates import estimate_mean
from evalsuite.output.reports.section import Cell, Column, Table, parse_columns
from evalsuite.results.judge_labels import group_scores_by_signature
from evalsuite.results.tally import Estimate, RunView, Tally


def make_judge_tables(views: Sequence[RunView]) -> list[Table]:
    """Make tables of bias and agreement, for all judges whose single votes (ballots) are in the records."""
    judges = []
    for view in views:
        for prefix in list_judge_prefixes(view.tally):
            judge = ", ".join(filter(None, (view.judge or "the judge", prefix.rstrip("_"))))
            judges.append((f"{judge} ({view.label})", view.tally, prefix))
    tables: list[Table | None] = []
    for name, tally, prefix in judges:
        if any(case.verdict is not None for case in read_judged_cases(tally, prefix)):
            tables.append(tabulate_biases(f"Biases of {name}", [(name, tally)], prefix))
        tables.append(tabulate_debates(f"Debate on demand of {name}", tally, prefix))
        tables.append(tabulate_agreement(f"Agreement within {name}", [(name, tally)], prefix))
    tables.append(tabulate_people_agreement(views))
    return [table for table in tables if table is not None]


def list_judge_prefixes(tally: Tally) -> list[str]:
    """List the prefixes of the judges that stored ballots, in order; a judge without a prefix has the prefix ""."""
    plain = {""} if any(has_ballots(row.facts) for row in tally) else set()
    nested = {name for row in tally for name, fact in row.facts.items() if has_ballots(fact)}
    return sorted(plain | nested)


SIGNATURES_NOTE = (
    "A signature changes with the prompts, the scale, the parameters and the judge's model: scores under different "
    "signatures should not be compared."
)
LITTLE_NOTE = " Made of little: the judge gave most of the probability to something other than a score."
SIGNATURES_COLUMNS = (Column("Run"), Column("Mode"), Column("Scores"), Column("Signature"), Column("Cases", "count"))
LITTLE_COLUMN = Column("Made of little (%)", "percent")


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
    weighted = any(cases.little for _, _, cases in signed)
    rows: list[list[Cell]] = []
    for label, signature, cases in signed:
        rows.append([label, ", ".join(cases.modes), ", ".join(cases.scores), signature, cases.cases])
        rows[-1] += [sum(cases.little) / len(cases.little) if cases.little else None] if weighted else []
    columns = [*SIGNATURES_COLUMNS, *([LITTLE_COLUMN] if weighted else [])]
    if not any(cases.modes for _, _, cases in signed):
        columns, rows = [columns[0], *columns[2:]], [[row[0], *row[2:]] for row in rows]
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


def _make_debate_row(name: str, cases: Sequence[JudgedCase]) -> tuple[Cell, ...]:
    calls = sum(case.facts["calls"] for case in cases) / len(cases)
    labelled = [case for case in cases if case.facts.get("human") in WINS]
    shown = (name, len(cases), calls, len(labelled))
    if not labelled:
        return (*shown, None, None, None, None, None)
    alone = [_measure_agreement_with_people(case.facts[SINGLE_JUDGE_FACT]["verdict"], case) for case in labelled]
    joint = [_measure_agreement_with_people(case.verdict, case) for case in labelled]
    clusters = [case.cluster for case in labelled]
    before, after = (_estimate_mean_in_unit_interval(values, clusters) for values in (alone, joint))
    further = sum(case.facts["calls"] - case.facts[SINGLE_JUDGE_FACT]["calls"] for case in labelled) / len(labelled)
    if not further:
        return (*shown, before, after, None, None, None)
    found = stats.paired_difference(alone, joint, clusters=clusters, scale=1)
    gain = Estimate(found.difference, found.low, found.high, len(labelled))
    earned = "yes" if found.low > 0 else "not shown"
    return (*shown, before, after, gain, further / gain.value if gain.value > 0 else None, earned)


def _measure_agreement_with_people(verdict: str | None, case: JudgedCase) -> float:
    """Return 1 if a verdict equals people's choice, 0.5 if only one of them is a tie, and otherwise 0."""
    return 1 - abs(WINS[verdict] - WINS[case.facts["human"]])


def _estimate_mean_in_unit_interval(values: Sequence[float], clusters: Sequence[str]) -> Estimate:
    mean = estimate_mean(values, clusters)
    return (
        mean if mean.low is None or mean.high is None else replace(mean, low=max(0, mean.low), high=min(1, mean.high))
    )
