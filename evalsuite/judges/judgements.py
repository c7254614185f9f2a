"""Judgements as data: opinions, ballots, how several become one result, and the signature of how they were made."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from evalsuite.core.errors import JudgeError
from evalsuite.core.json_codec import digest
from evalsuite.core.redaction import show_params
from evalsuite.core.types import Score
from evalsuite.judges.asking import AGAIN
from evalsuite.judges.prompts import mark_sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.judges.prompts import JudgedInput

PairVerdict = Literal["first", "second", "tie"]
Lead = Literal["Reply", "End"]
Log = tuple["Mapping[str, Any]", ...]

PREFERENCE = "preference"
"""The score of a comparison: the preference for the first of two answers, from 0 to 1."""

SWAPPED: Mapping[str, Any] = {"first": "second", "second": "first"}

VERSION = 3
"""Counts changes in how answers are read and combined, which no prompt shows."""

UNDER_TEST = "the model under test"


@dataclass(frozen=True, slots=True)
class Opinion:
    """One parsed judgement.

    Attributes:
        scores: score by aspect if one answer is judged, by place (`first`, `second`) if two are scored, and
            `preference` if the verdict has degrees.
        verdict: the better of two answers; None if one answer is judged.
    """

    scores: Mapping[str, float] = field(default_factory=dict)
    verdict: PairVerdict | None = None

    def exchanged(self) -> Opinion:
        """Return the same opinion with the two answers in the other order."""
        scores = {
            SWAPPED.get(name, name): 1 - value if name == PREFERENCE else value
            for name, value in self.scores.items()
        }
        return Opinion(scores, SWAPPED.get(self.verdict or "", self.verdict))


@dataclass(frozen=True, slots=True)
class Ballot:
    """One judge's opinion on the answers in one order.

    Attributes:
        judge: the debater, or the number of the repeat.
        model: the model that answered.
        swapped: whether the second answer was shown first.
        opinion: the opinion on the answers in their own order, regardless of the order shown.
    """

    judge: str
    model: str
    swapped: bool
    opinion: Opinion

    def plain(self) -> dict[str, Any]:
        """Return the ballot as plain data, for facts: `judge`, `model`, `swapped`, `verdict`, `scores`."""
        return {
            "judge": self.judge,
            "model": self.model,
            "swapped": self.swapped,
            "verdict": self.opinion.verdict,
            "scores": dict(self.opinion.scores),
        }


@dataclass(frozen=True, slots=True)
class Assessment:
    """A judge's result with the ballots and the log behind it.

    Attributes:
        opinion: the result.
        ballots: the ballots that it combines, in a fixed order.
        log: all messages, in order, as plain data.
        facts: further facts about how it was made (the method of a weighted score).
    """

    opinion: Opinion
    ballots: tuple[Ballot, ...]
    log: Log
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Completions requested, repeated questions included."""
        return sum(entry["role"] == "assistant" for entry in self.log)

    def with_facts(self, **facts: Any) -> Assessment:
        """Return the same with further facts; empty ones are left out."""
        return replace(self, facts={**self.facts, **{name: fact for name, fact in facts.items() if fact}})

    def plain(self) -> dict[str, Any]:
        """Return what records keep: `verdict`, `calls`, `ballots`, `cut_off` if any answer was, and the facts."""
        ballots = [ballot.plain() for ballot in self.ballots]
        facts = {"verdict": self.opinion.verdict, "calls": self.calls, "ballots": ballots, **self.facts}
        return facts | count_cut_off(self.log)


def count_cut_off(log: Log) -> dict[str, int]:
    """Return the fact `cut_off`, the number of answers that met the limit on tokens; empty for none."""
    cut = sum(bool(entry.get("cut_off")) for entry in log)
    return {"cut_off": cut} if cut else {}


class Judge(Protocol):
    """A way to judge: one model once, several times, or a panel."""

    def prompts(self) -> Sequence[str]:
        """List the sentences of its prompts, without what is judged; a change of any of them changes the judge."""
        ...

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        """Judge one or two answers.

        Raises:
            JudgeError: an answer could not be parsed.
            ModelError: a call failed for good.
        """
        ...


class Form(Protocol):
    """The form of a judge's answer, and how several opinions in this form become one."""

    @property
    def compares(self) -> bool:
        """Whether two answers are judged, which may be shown in either order."""
        ...

    def task(self) -> str:
        """Write the task."""
        ...

    def request(self, lead: Lead = "Reply") -> str:
        """Write the task and the form of the whole answer or, with `End`, of its last lines."""
        ...

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of an answer that holds nothing but the judgement."""
        ...

    def parse(self, text: str) -> Opinion:
        """Read the opinion on the answers as they were shown.

        Raises:
            ValueError: the answer is not in the form; the message tells the judge why.
        """
        ...

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        """Combine several opinions on the answers in their own order."""
        ...


def majority(verdicts: Sequence[PairVerdict]) -> PairVerdict:
    """Return the verdict of more than half of the votes; a tie if there is none."""
    winner, votes = Counter(verdicts).most_common(1)[0]
    return winner if 2 * votes > len(verdicts) else "tie"


def better(first: float, second: float) -> PairVerdict:
    """Return the answer with the higher score; a tie if both are equal."""
    if math.isclose(first, second, rel_tol=1e-12):
        return "tie"
    return "first" if first > second else "second"


def mean_scores(opinions: Iterable[Opinion]) -> dict[str, float]:
    """Average each score over the opinions."""
    columns: dict[str, list[float]] = {}
    for opinion in opinions:
        for name, value in opinion.scores.items():
            columns.setdefault(name, []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in columns.items()}


@dataclass(frozen=True, slots=True)
class Round:
    """The ballots of all judges in one order of the answers.

    Attributes:
        ballots: the ballots that could be read, in a fixed order.
        problems: one message per ballot that could not be read.
        log: all messages.
    """

    ballots: tuple[Ballot, ...]
    problems: tuple[str, ...]
    log: Log


def settle_rounds(form: Form, rounds: Sequence[Round], quorum: int | None = None) -> Assessment:
    """Combine all orders into one result.

    If ballots are missing, both orders keep the same weight, because each balances the other.

    Args:
        form: the form of the ballots.
        rounds: one per order.
        quorum: ballots that each order needs; None for more than half of those requested.

    Raises:
        JudgeError: an order has too few readable ballots; the log holds the messages of all orders.
    """
    log = tuple(entry for one in rounds for entry in one.log)
    for one in rounds:
        asked = len(one.ballots) + len(one.problems)
        needed = asked // 2 + 1 if quorum is None else min(quorum, asked)
        if len(one.ballots) < needed:
            count = f" ({len(one.ballots)} of {asked} ballots could be read; {needed} are needed)"
            raise JudgeError(f"{one.problems[0]}{count if asked > 1 else ''}", log)
    ballots = tuple(ballot for one in rounds for ballot in one.ballots)
    lost = sum(len(one.problems) for one in rounds)
    opinions = [[ballot.opinion for ballot in one.ballots] for one in rounds]
    return Assessment(_settle_orders(form, opinions), ballots, log, {"unreadable": lost} if lost else {})


def _settle_orders(form: Form, orders: Sequence[Sequence[Opinion]]) -> Opinion:
    alike = len({len(order) for order in orders}) == 1
    if alike or any(not opinion.scores for order in orders for opinion in order):
        return form.settle([opinion for order in orders for opinion in order])
    return form.settle([form.settle(order) for order in orders])


def signature(kind: str, models: Sequence[Model], *content: Any) -> str:
    """Write how a score is made, as in `rubric|judge:gpt-4|version:2|hash:5f0c2a71d3b49e08`.

    Two signatures are equal if the same model is asked the same. The hash covers the models with the parameters that
    the user set for the whole run, the content, and the sentences that all judges share. Keys and other secrets among
    the parameters are left out.

    Args:
        kind: the kind of judge.
        models: the judge's models; none if judging is the task of the model under test.
        content: prompts, scales and parameters, as plain data.
    """
    names = [model.name for model in models]
    overrides = [show_params(model.overrides) for model in models]
    shared = [VERSION, AGAIN, mark_sections([("section", "")])]
    hashed = digest([kind, names, overrides, shared, content])
    return f"{kind}|judge:{'+'.join(names) or UNDER_TEST}|version:{VERSION}|hash:{hashed}"


def judge_signature(judge: Judge, models: Sequence[Model], shown: Any = None) -> str:
    """Write the signature of a `Judge`.

    Args:
        judge: the judge, with its form, its parameters and, for a panel, its debaters.
        models: the judge's models; none for the model under test.
        shown: whatever else decides what the judge is shown, as plain data.
    """
    return signature(type(judge).__name__.lower(), models, judge.prompts(), describe(judge), shown)


def describe(settings: Any) -> str:
    """Return the repr without memory addresses, which differ in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(settings))


def sign_scores(scores: Mapping[str, float | Score], written: str) -> dict[str, float | Score]:
    """Return the same scores, each with this signature."""
    return {
        name: replace(score if isinstance(score, Score) else Score(score), signature=written)
        for name, score in scores.items()
    }
