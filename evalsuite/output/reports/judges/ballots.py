"""Read judges' ballots (single votes) and logs from records."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeGuard

from evalsuite import stats
from evalsuite.judges.judgements import CANNOT_TELL
from evalsuite.output.reports.judges.estimates import estimate_share
from evalsuite.output.reports.section import Cell, Table, parse_columns
from evalsuite.results.tally import Estimate, Tally


@dataclass(frozen=True, slots=True)
class JudgeVote:
    """The vote of one judge on one case."""

    judge: str  # The debater's name in a panel, otherwise the number of the repetition.
    model: str  # The judge's model.
    swapped: bool  # Whether the judge saw the second answer first.
    # The verdict, converted to the original order of the answers; None if only one answer was scored.
    verdict: str | None
    scores: Mapping[str, float]  # Scores keyed by aspect for one answer, or by position for two answers.


_VOTE_FIELDS = {field.name for field in fields(JudgeVote)}


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case that a judge has judged."""

    case: str  # The case's id.
    sample: str  # The sample's id, the same in all epochs.
    cluster: str  # The group of related cases, such as all epochs of a sample.
    epoch: int  # The epoch, from 1.
    verdict: str | None  # The result of comparing two answers; None if only one answer was scored.
    votes: tuple[JudgeVote, ...]  # The single votes (ballots) from which the verdict was made.
    facts: Mapping[str, Any]  # Further data that the judge stored: `lengths`, `systems`, `human`.


def read_judged_cases(tally: Tally, prefix: str = "") -> list[JudgedCase]:
    """Read the judged cases in order; leave out cases and votes in which the judge could not tell."""
    rows = [(row, row.facts.get(prefix) if prefix else row.facts) for row in tally if row.outcome != "error"]
    cases = []
    for row, facts in rows:
        if has_ballots(facts) and facts["verdict"] != CANNOT_TELL:
            votes = tuple(JudgeVote(**ballot) for ballot in facts["ballots"] if ballot["verdict"] != CANNOT_TELL)
            cases.append(JudgedCase(row.case, row.sample, row.cluster, row.epoch, facts["verdict"], votes, facts))
    return cases


def has_ballots(facts: object) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether facts have a judge's verdict and ballots; facts of a user's scorer may have the same names."""
    ballots = facts.get("ballots") if isinstance(facts, Mapping) and "verdict" in facts else None
    return (
        isinstance(ballots, Sequence)
        and any(ballots)
        and all(isinstance(ballot, Mapping) and ballot.keys() == _VOTE_FIELDS for ballot in ballots)
    )


SHOWN_APART = ("kind", "role", "content", "reasoning", "speaker", "turn", "order", "model", "cut_off")


def format_judge_log(log: Sequence[Mapping[str, Any]]) -> str:
    """Write each message of the log as a paragraph with speaker and turn in its heading."""
    return "\n\n".join(
        f"{_format_log_heading(entry)}\n{_format_log_message(entry)}".strip() for entry in _drop_repeated_prompts(log)
    )


def _drop_repeated_prompts(log: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Leave out prompts that were already shown, because a judge may be asked the same question many times."""
    shown: set[tuple[str, str, str]] = set()
    for entry in log:
        if entry.get("role") in ("system", "user"):
            prompt = (str(entry.get("speaker")), str(entry.get("order")), str(entry.get("content")))
            if prompt in shown:
                continue
            shown.add(prompt)
        yield entry


def _format_log_heading(entry: Mapping[str, Any]) -> str:
    speaker = str(entry.get("speaker", "judge"))
    parts = [
        speaker if entry.get("role") in ("assistant", None) else f"to {speaker}",
        f"turn {entry['turn']}" if entry.get("turn") else "",
        f"order {entry['order']}" if entry.get("order") else "",
        str(entry.get("model", "")),
        "cut off" if entry.get("cut_off") else "",
    ]
    return f"[{', '.join(part for part in parts if part)}]"


def _format_log_message(entry: Mapping[str, Any]) -> str:
    reasoning = f"(reasoning) {entry['reasoning']}" if entry.get("reasoning") else ""
    others = [f"{name}: {value}" for name, value in entry.items() if name not in SHOWN_APART]
    return "\n".join(part for part in (reasoning, str(entry.get("content", "")).strip(), *others) if part)


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
                clusters.append(case.cluster)
    return estimate_share(values, clusters)


def _list_first_place_choices(case: JudgedCase) -> Iterator[Choice]:
    """Yield for each vote without a tie whether the judge chose the answer that was shown first."""
    # Count only judges that saw both orders: in one order alone, the better answers may be first by chance.
    first, second = ({vote.judge for vote in case.votes if vote.swapped is swapped} for swapped in (False, True))
    for vote in case.votes:
        if vote.judge in first & second and vote.verdict != "tie":
            yield case.cluster, float(vote.verdict == ("second" if vote.swapped else "first")), None


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
        yield case.cluster, float(case.verdict == favoured), None if human is None else float(human == favoured)


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
    from evalsuite.stats.paired import tango_interval

    clusters, judge = [cluster for cluster, *_ in choices], [chosen for _, chosen, _ in choices]
    if len(set(clusters)) == len(clusters):
        won = sum(one > other for one, other in zip(judge, people, strict=True))
        lost = sum(one < other for one, other in zip(judge, people, strict=True))
        interval = tango_interval(lost, won, len(clusters))
        return Estimate((won - lost) / len(clusters), interval.low, interval.high, len(clusters))
    difference = stats.paired_difference(people, judge, clusters=clusters)
    low, high = (bound if math.isfinite(bound) else None for bound in (difference.low, difference.high))
    return Estimate(difference.difference, low, high, len(clusters))


def find_model_family(model: str) -> str | None:
    """Find a model's family from its name; None if the family is unknown."""
    families = (name for name, pattern in FAMILIES.items() if re.search(pattern, model.lower()))
    return next(families, None)
