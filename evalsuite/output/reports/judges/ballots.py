"""Read judges' ballots (single votes) and logs from records."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeGuard

from evalsuite import stats
from evalsuite.judges.judgements import CANNOT_TELL
from evalsuite.output.reports.judges.estimates import estimate_share
from evalsuite.output.reports.section import Cell, Table, parse_columns
from evalsuite.results.tally import Estimate, Row, Tally


@dataclass(frozen=True, slots=True)
class JudgeVote:
    """The vote of one judge on one case."""

    judge: str  # The debater's name in a panel, otherwise the number of the repetition.
    model: str  # The judge's model.
    swapped: bool  # Whether the judge saw the second answer first.
    # The verdict, converted to the original order of the answers; None if only one answer was scored.
    verdict: str | None
    scores: Mapping[str, float]  # Scores keyed by aspect for one answer, or by position for two answers.

    @property
    def first_shown(self) -> str:
        """The answer that the judge saw first: `first` or `second`."""
        return "second" if self.swapped else "first"


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
    return [
        _read_judged_case(row, facts) for row, facts in rows if has_ballots(facts) and facts["verdict"] != CANNOT_TELL
    ]


def has_ballots(facts: object) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether facts have a judge's verdict and ballots; facts of a user's scorer may have the same names."""
    ballots = facts.get("ballots") if isinstance(facts, Mapping) and "verdict" in facts else None
    return (
        isinstance(ballots, Sequence)
        and any(ballots)
        and all(isinstance(ballot, Mapping) and ballot.keys() == _VOTE_FIELDS for ballot in ballots)
    )


def _read_judged_case(row: Row, facts: Mapping[str, Any]) -> JudgedCase:
    votes = tuple(JudgeVote(**ballot) for ballot in facts["ballots"] if ballot["verdict"] != CANNOT_TELL)
    return JudgedCase(row.case, row.sample, row.cluster, row.epoch, facts["verdict"], votes, facts)


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


@dataclass(frozen=True, slots=True)
class PairedChoice:
    """One decision of a judge, used to measure a bias."""

    cluster: str  # The case's group of related cases.
    judge: float  # The judge's choice: 1.0 for the answer that the bias favours, otherwise 0.0.
    people: float | None = None  # People's choice: 1.0 for the favoured answer, otherwise 0.0; None if unknown.


@dataclass(frozen=True, slots=True)
class JudgeBias:
    """One bias of a judge, measured over many decisions."""

    name: str  # The bias's name.
    judge: Estimate | None  # The share of decisions that show the bias, such as choices of the favoured answer.
    # The share without a bias: how often people chose the favoured answer, or one half; None if unknown.
    expected: float | None = None
    excess: Estimate | None = None  # `judge` minus `expected`, with an interval.

    @property
    def is_significant(self) -> bool:
        """Whether the bias is significant: the interval of `excess` excludes zero."""
        if self.excess is None or self.excess.low is None or self.excess.high is None:
            return False
        return not self.excess.low <= 0 <= self.excess.high


def measure_biases(cases: Sequence[JudgedCase]) -> list[JudgeBias]:
    """Measure all four biases over comparisons of two answers; a bias that these cases cannot show has no numbers."""
    compared = [case for case in cases if case.verdict is not None]
    return [
        _measure_order_flips(compared),
        _measure_choice_bias("prefers the first place", list(_list_first_place_choices(compared))),
        _measure_choice_bias("prefers the longer answer", list(_list_longer_answer_choices(compared))),
        _measure_choice_bias("prefers its own family", list(_list_own_family_choices(compared))),
    ]


def tabulate_biases(title: str, judges: Sequence[tuple[str, Tally]], prefix: str = "") -> Table:
    """Make a table of biases, with a row for each judge and bias."""
    rows = [
        _make_bias_row(name, bias)
        for name, tally in judges
        for bias in measure_biases(read_judged_cases(tally, prefix))
    ]
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


def _make_bias_row(judge: str, bias: JudgeBias) -> tuple[Cell, ...]:
    flagged = None if bias.excess is None else ("yes" if bias.is_significant else "no")
    cases = bias.judge.n if bias.judge else None
    return (judge, bias.name, bias.judge, bias.expected, bias.excess, cases, flagged)


def _measure_order_flips(cases: Sequence[JudgedCase]) -> JudgeBias:
    values, clusters = [], []
    for case in cases:
        verdicts = {(vote.judge, vote.swapped): vote.verdict for vote in case.votes}
        for (judge, swapped), verdict in verdicts.items():
            if not swapped and (judge, True) in verdicts:
                values.append(float(verdict != verdicts[judge, True]))
                clusters.append(case.cluster)
    return JudgeBias("changes with the order", estimate_share(values, clusters))


def _list_first_place_choices(cases: Sequence[JudgedCase]) -> Iterator[PairedChoice]:
    """Yield for each vote without a tie whether the judge chose the answer that was shown first."""
    for case in cases:
        # Count only judges that saw both orders: in one order alone, the better answers may be first by chance.
        first, second = ({vote.judge for vote in case.votes if vote.swapped is swapped} for swapped in (False, True))
        for vote in case.votes:
            if vote.judge in first & second and vote.verdict != "tie":
                yield PairedChoice(case.cluster, float(vote.verdict == vote.first_shown))


def _list_longer_answer_choices(cases: Sequence[JudgedCase]) -> Iterator[PairedChoice]:
    """Yield for each case whether the judge chose the longer answer, and whether people did."""
    for case in cases:
        first, second = case.facts.get("lengths") or (0, 0)
        if first != second:
            yield from _list_paired_choices(case, "first" if first > second else "second")


def _list_own_family_choices(cases: Sequence[JudgedCase]) -> Iterator[PairedChoice]:
    """Yield whether the judge chose its own model family's answer; skip cases without exactly one such answer."""
    for case in cases:
        families = [find_model_family(system) for system in case.facts.get("systems") or ()]
        own = {find_model_family(vote.model) for vote in case.votes}
        if len(own) == 1 and own != {None} and [found in own for found in families].count(True) == 1:
            yield from _list_paired_choices(case, "first" if families[0] in own else "second")


def _list_paired_choices(case: JudgedCase, favoured: str) -> Iterator[PairedChoice]:
    """Yield one choice: whether judge and people chose the favoured answer; yield nothing for a tie."""
    human = case.facts.get("human")
    if case.verdict == "tie" or human == "tie":
        return
    people = None if human is None else float(human == favoured)
    yield PairedChoice(case.cluster, float(case.verdict == favoured), people)


def _measure_choice_bias(name: str, choices: Sequence[PairedChoice]) -> JudgeBias:
    chosen = estimate_share([choice.judge for choice in choices], [choice.cluster for choice in choices])
    people = [choice.people for choice in choices if choice.people is not None]
    if chosen is None:
        return JudgeBias(name, None)
    if len(people) < len(choices):
        low, high = chosen.low, chosen.high
        excess = Estimate(chosen.value - 0.5, low and low - 0.5, high and high - 0.5, chosen.n)
        return JudgeBias(name, chosen, 0.5, excess)
    return JudgeBias(name, chosen, math.fsum(people) / len(people), _estimate_excess_over_people(choices, people))


def _estimate_excess_over_people(choices: Sequence[PairedChoice], people: Sequence[float]) -> Estimate:
    from evalsuite.stats.paired import tango_interval

    judge, clusters = [choice.judge for choice in choices], [choice.cluster for choice in choices]
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
