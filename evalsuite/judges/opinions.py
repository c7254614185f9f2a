"""Judges' opinions as data, and how several become one result."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.judges.judged_input import JudgedInput

PairVerdict = Literal["first", "second", "tie"]
PREFERENCE = "preference"
"""How far the first of two answers is preferred, from 0 to 1: the name of the score of a comparison."""

SWAPPED: Mapping[str, Any] = {"first": "second", "second": "first"}


@dataclass(frozen=True, slots=True)
class Opinion:
    """One parsed judgement.

    Attributes:
        scores: by aspect where one answer is judged, by place (`first`, `second`) where two are scored, and
            `preference` where the verdict has degrees.
        verdict: which of two answers is better; None where one answer is judged.
    """

    scores: Mapping[str, float] = field(default_factory=dict)
    verdict: PairVerdict | None = None

    def exchanged(self) -> Opinion:
        """The same opinion where the two answers stood in the other order."""
        scores = {
            SWAPPED.get(name, name): 1 - value if name == PREFERENCE else value
            for name, value in self.scores.items()
        }
        return Opinion(scores, SWAPPED.get(self.verdict or "", self.verdict))


@dataclass(frozen=True, slots=True)
class Ballot:
    """One judge's opinion on the answers in one order.

    Attributes:
        judge: the debater, or which of several repeats.
        model: the model that spoke.
        swapped: whether the second answer was shown first.
        opinion: about the answers in their own order, whatever order they were shown in.
    """

    judge: str
    model: str
    swapped: bool
    opinion: Opinion

    def plain(self) -> dict[str, Any]:
        """The ballot as plain data, for facts: `judge`, `model`, `swapped`, `verdict`, `scores`."""
        return {
            "judge": self.judge,
            "model": self.model,
            "swapped": self.swapped,
            "verdict": self.opinion.verdict,
            "scores": dict(self.opinion.scores),
        }


Log = tuple["Mapping[str, Any]", ...]


@dataclass(frozen=True, slots=True)
class Assessment:
    """A judge's result with the ballots and the log behind it.

    Attributes:
        opinion: the result.
        ballots: what it was made of, in a fixed order.
        log: everything said, readable from top to bottom, as plain data.
        facts: more about how it came about (which method gave a weighted score).
    """

    opinion: Opinion
    ballots: tuple[Ballot, ...]
    log: Log
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Completions that it took, those asked again included."""
        return sum(entry["role"] == "assistant" for entry in self.log)

    def knowing(self, **facts: Any) -> Assessment:
        """The same with further facts; empty ones are left out."""
        return replace(self, facts={**self.facts, **{name: fact for name, fact in facts.items() if fact}})

    def plain(self) -> dict[str, Any]:
        """What records keep: `verdict`, `calls`, `ballots`, `cut_off` where any answer was, and further facts."""
        ballots = [ballot.plain() for ballot in self.ballots]
        facts = {"verdict": self.opinion.verdict, "calls": self.calls, "ballots": ballots, **self.facts}
        return facts | cut_off(self.log)


def cut_off(log: Log) -> dict[str, int]:
    """The fact `cut_off`: how many answers of a judge met the limit on tokens; empty for none."""
    cut = sum(bool(entry.get("cut_off")) for entry in log)
    return {"cut_off": cut} if cut else {}


class Judge(Protocol):
    """A way to judge: one model once, several times, or a panel."""

    def prompts(self) -> Sequence[str]:
        """The words of its prompts, whatever is judged: a change of any of them makes it another judge."""
        ...

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        """Judges.

        Raises:
            JudgeError: an answer could not be parsed.
            ModelError: a call failed for good.
        """
        ...


def majority(verdicts: Sequence[PairVerdict]) -> PairVerdict:
    """The verdict of more than half of the votes; a tie where there is none."""
    winner, votes = Counter(verdicts).most_common(1)[0]
    return winner if 2 * votes > len(verdicts) else "tie"


def better(first: float, second: float) -> PairVerdict:
    """The answer with the higher score; a tie where both are equal."""
    if math.isclose(first, second, rel_tol=1e-12):
        return "tie"
    return "first" if first > second else "second"


def averaged(opinions: Iterable[Opinion]) -> dict[str, float]:
    """The plain mean of each score over the opinions."""
    columns: dict[str, list[float]] = {}
    for opinion in opinions:
        for name, value in opinion.scores.items():
            columns.setdefault(name, []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in columns.items()}
