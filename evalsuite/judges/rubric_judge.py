"""The judge behind `rubric`: it is asked, read, asked again where a failure is to be confirmed, and settled."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Literal

from evalsuite.core.errors import JudgeError
from evalsuite.core.types import Message, Score
from evalsuite.judges.fields import sections
from evalsuite.judges.gather_all import together
from evalsuite.judges.marks import marked
from evalsuite.judges.people_facts import people_facts
from evalsuite.judges.repeated_judge import OFFICE
from evalsuite.judges.signature import described, signature
from evalsuite.judges.structured_answers import StructuredAnswers
from evalsuite.judges.written_criteria import from_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample, Transcript
    from evalsuite.judges.criteria import Criteria, Reading
    from evalsuite.judges.marks import Part
    from evalsuite.judges.opinions import Log

Aggregate = Literal["mean", "median", "min", "max", "majority"]
CONFIRMING_TEMPERATURE = 1.0
"""Of a judge that is asked again: at 0 it would repeat itself."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One judge's reading, or why there is none."""

    judge: str
    model: str
    reading: Reading | None
    problem: str
    log: Log

    def plain(self, name: str) -> dict[str, Any]:
        """As records keep ballots; see `Ballot.plain`."""
        value = {name: self.reading.value} if self.reading else {}
        return {"judge": self.judge, "model": self.model, "swapped": False, "verdict": None, "scores": value}


@dataclass(frozen=True, slots=True)
class Rubric:
    """A judge with criteria of one's own; `rubric` makes it and says what its attributes mean."""

    criteria: Criteria | None
    name: str
    steps: tuple[str, ...]
    examples: tuple[Mapping[str, Any], ...]
    fields: Mapping[str, str]
    models: tuple[str, ...]
    samples: int
    aggregate: Aggregate
    quorum: int | None
    passes: float | None
    confirm_failures: int
    attempts: int
    params: Mapping[str, Any]
    structured: StructuredAnswers = field(default_factory=StructuredAnswers, compare=False, repr=False)

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        criteria = self.criteria or from_metadata(sample)
        parts = sections(sample, transcript, self._fields(sample))
        models = [judge.peer(name) for name in self.models] or [judge]
        seats = [(model, at) for model in models for at in range(self.samples)]
        votes = await together(self._ask(criteria, parts, model, at) for model, at in seats)
        value, votes = await self._confirmed(criteria, parts, models[0], votes)
        people = people_facts(
            sample, [self.name], scale=(criteria.worst, criteria.best), passes=self._bar(criteria)
        )
        return {self.name: self._score(value, votes, models, people)}

    def _bar(self, criteria: Criteria) -> float:
        """The least value that is no failure."""
        return criteria.best if self.passes is None else self.passes

    def _fields(self, sample: Sample) -> Mapping[str, str]:
        if self.fields:
            return self.fields
        usual = {"question": "input", "answer": "answer"}
        return usual if sample.target is None else {**usual, "reference": "target"}

    async def _confirmed(
        self, criteria: Criteria, parts: Sequence[Part], model: Model, votes: list[Vote]
    ) -> tuple[float, list[Vote]]:
        """A failure that is to be confirmed is asked again, until there are `confirm_failures` votes."""
        value, bar = self._settled(votes), self._bar(criteria)
        if value >= bar or len(votes) >= self.confirm_failures:
            return value, votes
        again = range(len(votes), self.confirm_failures)
        votes += await together(self._ask(criteria, parts, model, at, again=True) for at in again)
        values = [vote.reading.value for vote in votes if vote.reading]
        failing = [vote for vote in values if vote < bar]
        holding = [vote for vote in values if vote >= bar]
        return self._joined(failing if len(failing) > len(holding) else holding), votes

    def _settled(self, votes: Sequence[Vote]) -> float:
        values = [vote.reading.value for vote in votes if vote.reading]
        needed = len(votes) // 2 + 1 if self.quorum is None else min(self.quorum, len(votes))
        if len(values) < needed:
            problem = next(vote.problem for vote in votes if vote.reading is None)
            count = f" ({len(values)} of {len(votes)} judges could be read; {needed} are needed)"
            message = f"{self.name}: {problem}{count if len(votes) > 1 else ''}"
            raise JudgeError(message, _whole_log(votes))
        return self._joined(values)

    def _joined(self, values: Sequence[float]) -> float:
        return AGGREGATES[self.aggregate](values)

    def _score(
        self,
        value: float,
        votes: Sequence[Vote],
        models: Sequence[Model],
        people: Mapping[str, Any],
    ) -> Score:
        readings = [vote.reading for vote in votes if vote.reading]
        nearest = min(readings, key=lambda reading: abs(reading.value - value))
        lost = len(votes) - len(readings)
        facts: dict[str, Any] = {
            "verdict": None,
            "calls": sum(entry["role"] == "assistant" for entry in _whole_log(votes)),
            "ballots": [vote.plain(self.name) for vote in votes if vote.reading],
            **people,
        }
        facts |= {"parts": dict(nearest.parts)} if nearest.parts else {}
        facts |= {"unreadable": lost} if lost else {}
        return Score(value, nearest.reason, {self.name: facts}, _whole_log(votes), self.signature(models))

    async def _ask(
        self, criteria: Criteria, parts: Sequence[Part], model: Model, at: int, *, again: bool = False
    ) -> Vote:
        name = f"{model.name} {at + 1}" if at else model.name
        params: dict[str, Any] = {"temperature": CONFIRMING_TEMPERATURE if again or self.samples > 1 else 0.0}
        prompt = [
            Message("system", OFFICE),
            Message("user", f"{marked(parts)}\n\n{self.instruction(criteria)}"),
        ]
        options = {**params, **self.params}
        # The same request twice would be one request, paid once and answered once.
        options |= {"seed": int(self.params.get("seed") or 0) + at} if at else {}
        try:
            judgement = await self.structured.ask(
                model, prompt, criteria.read, criteria.schema(), attempts=self.attempts, **options
            )
        except JudgeError as error:
            return Vote(name, model.name, None, str(error), _placed(error.log, name, model.name))
        return Vote(name, model.name, judgement.value, "", _placed(judgement.log, name, model.name))

    def instruction(self, criteria: Criteria | None) -> str:
        """The text below the marked sections: steps, examples, the criteria and the form of the answer."""
        steps = "".join(f"\n{at}. {step}" for at, step in enumerate(self.steps, 1))
        examples = "".join(
            "\n- " + "; ".join(f"{name}: {value}" for name, value in example.items())
            for example in self.examples
        )
        blocks = [
            f"Go through these steps first:{steps}" if steps else "",
            f"Examples of judgements:{examples}" if examples else "",
            criteria.request() if criteria else "",
        ]
        return "\n\n".join(block for block in blocks if block)

    def signature(self, models: Sequence[Model]) -> str:
        """How the score is made, in a line (see `signature`), without criteria that each sample brings along."""
        shown = {"fields": dict(self.fields), "office": OFFICE, "asked": self.instruction(self.criteria)}
        settings = [
            self.samples,
            self.aggregate,
            self.quorum,
            self.passes,
            self.confirm_failures,
            dict(self.params),
        ]
        return signature("rubric", models, shown, described(self.criteria), settings)


def _majority(values: Sequence[float]) -> float:
    """The commonest value; of several that are equally common, the lowest."""
    return min(values, key=lambda vote: (-values.count(vote), vote))


AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "majority": _majority,
}


def _placed(log: Sequence[Mapping[str, Any]], speaker: str, model: str) -> Log:
    return tuple({"speaker": speaker, "model": model, **entry} for entry in log)


def _whole_log(votes: Sequence[Vote]) -> Log:
    return tuple(entry for vote in votes for entry in vote.log)
