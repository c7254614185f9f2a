"""`rubric`: one judge for everybody's own cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Literal, get_args

from evalsuite.errors import JudgeError, ScoringError, SettingsError
from evalsuite.judging.checklists import Checklist, Tree
from evalsuite.judging.criteria import Likert, YesNo
from evalsuite.judging.fields import as_fields, sections
from evalsuite.judging.gather_all import together
from evalsuite.judging.marks import marked
from evalsuite.judging.people_facts import people_facts
from evalsuite.judging.repeated_judge import OFFICE
from evalsuite.judging.signature import signature
from evalsuite.judging.structured_answers import StructuredAnswers
from evalsuite.keywords import generation_params
from evalsuite.types import Message, Score

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.judging.criteria import Criteria, Reading
    from evalsuite.judging.marks import Part
    from evalsuite.judging.opinions import Log
    from evalsuite.protocols import Model
    from evalsuite.types import Sample, Transcript

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
    """A judge with criteria of one's own; see `rubric`."""

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
        return {self.name: self._score(value, votes, criteria, models, people)}

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
        failing = [one for one in values if one < bar]
        return self._joined(
            failing if 2 * len(failing) > len(values) else [one for one in values if one >= bar]
        ), votes

    def _settled(self, votes: Sequence[Vote]) -> float:
        values = [vote.reading.value for vote in votes if vote.reading]
        needed = len(votes) // 2 + 1 if self.quorum is None else min(self.quorum, len(votes))
        if len(values) < needed:
            problem = next(vote.problem for vote in votes if vote.reading is None)
            count = f" ({len(values)} of {len(votes)} judges could be read; {needed} are needed)"
            message = f"{self.name}: {problem}{count if len(votes) > 1 else ''}"
            raise JudgeError(message, tuple(said for vote in votes for said in vote.log))
        return self._joined(values)

    def _joined(self, values: Sequence[float]) -> float:
        return AGGREGATES[self.aggregate](values)

    def _score(
        self,
        value: float,
        votes: Sequence[Vote],
        criteria: Criteria,
        models: Sequence[Model],
        people: Mapping[str, Any],
    ) -> Score:
        read = [vote.reading for vote in votes if vote.reading]
        spoken = min(read, key=lambda reading: abs(reading.value - value))
        lost = len(votes) - len(read)
        facts: dict[str, Any] = {
            "verdict": None,
            "calls": sum(said["role"] == "assistant" for vote in votes for said in vote.log),
            "ballots": [vote.plain(self.name) for vote in votes if vote.reading],
            "signature": self.signature(criteria, [model.name for model in models]),
            **people,
        }
        facts |= {"parts": dict(spoken.parts)} if spoken.parts else {}
        facts |= {"unreadable": lost} if lost else {}
        return Score(
            value, spoken.reason, {self.name: facts}, tuple(said for vote in votes for said in vote.log)
        )

    async def _ask(
        self, criteria: Criteria, parts: Sequence[Part], model: Model, at: int, *, again: bool = False
    ) -> Vote:
        name = f"{model.name} {at + 1}" if at else model.name
        params: dict[str, Any] = {"temperature": CONFIRMING_TEMPERATURE if again or self.samples > 1 else 0.0}
        params |= {"seed": at} if at else {}
        prompt = [
            Message("system", OFFICE),
            Message("user", f"{marked(parts)}\n\n{self.instruction(criteria)}"),
        ]
        options = {**params, **self.params}
        try:
            judgement = await self.structured.ask(
                model, prompt, criteria.read, criteria.schema(), attempts=self.attempts, **options
            )
        except JudgeError as error:
            return Vote(name, model.name, None, str(error), _placed(error.log, name, model.name))
        return Vote(name, model.name, judgement.value, "", _placed(judgement.log, name, model.name))

    def instruction(self, criteria: Criteria) -> str:
        """What stands below the marked sections: steps, examples, the criteria, the form."""
        steps = "".join(f"\n{at}. {step}" for at, step in enumerate(self.steps, 1))
        examples = "".join(
            "\n- " + "; ".join(f"{name}: {value}" for name, value in example.items())
            for example in self.examples
        )
        blocks = [
            f"Go through these steps first:{steps}" if steps else "",
            f"Examples of judgements:{examples}" if examples else "",
            criteria.request(),
        ]
        return "\n\n".join(block for block in blocks if block)

    def signature(self, criteria: Criteria, models: Sequence[str]) -> str:
        """What the score hangs on, in a line; see `signature`."""
        shown = {"fields": dict(self.fields), "office": OFFICE, "asked": self.instruction(criteria)}
        settings = [
            self.samples,
            self.aggregate,
            self.quorum,
            self.passes,
            self.confirm_failures,
            dict(self.params),
        ]
        return signature("rubric", models, [shown, repr(criteria), settings])


def rubric(  # noqa: PLR0913 - a judge is declared in one line, each option a keyword
    criteria: str | Sequence[str] | Mapping[str, Any] | Criteria | None,
    *,
    name: str = "rubric",
    scale: tuple[int, int] | None = None,
    anchors: Mapping[int, str] | None = None,
    steps: Sequence[str] = (),
    examples: Sequence[Mapping[str, Any]] = (),
    fields: Sequence[str] | Mapping[str, str] = (),
    model: str | Sequence[str] = (),
    samples: int = 1,
    aggregate: Aggregate = "mean",
    quorum: int | None = None,
    passes: float | None = None,
    confirm_failures: int = 0,
    attempts: int = 3,
    **params: Any,
) -> Rubric:
    """A judge with criteria of your own; it gives its reasons before its score.

    One call for each judge and sample; the reason is the score's note.

    Args:
        criteria: a question, answered by yes (1.0) or no (0.0), or on a `scale`; several questions, or questions
            with weights: a checklist, whose value is the weight of those met as a share; a decision tree of
            `{"question": ..., "yes": ..., "no": ...}` whose leaves are scores; or one of the criteria in
            `evalsuite.judging`: `YesNo`, `Likert`, `Checklist`, `Tree`, `Each`. None takes the checklist in the
            sample's metadata, under `criteria`.
        name: of the score.
        scale: lowest and highest point for a question that is not answered by yes or no.
        anchors: words for the scale's points; without `scale` they are the scale.
        steps: to go through before judging.
        examples: of judgements, each a mapping of names to texts.
        fields: what the judge sees: `input`, `answer`, `reasoning`, `target` (all references), `conversation`,
            `tools` (calls with results), `metadata.KEY`, `facts.KEY` or a bare key; a mapping names the sections.
            By default question, answer and the references that there are.
        model: another judge than the run's, or several.
        samples: judgements of each judge, at temperature 1.
        aggregate: how several values become one: `mean`, `median`, `min`, `max` or `majority`.
        quorum: judgements that must be readable; None for more than half.
        passes: the least value that is no failure; None for the best.
        confirm_failures: votes in all where the first verdict is a failure, which stands if most of them agree;
            0 takes the first verdict as it is.
        attempts: answers asked for at most, until one can be read.
        params: generation parameters; the temperature is 0 unless given here.

    Raises:
        SettingsError: criteria, scale, aggregate or numbers make no sense.
    """
    if aggregate not in get_args(Aggregate):
        raise SettingsError(
            f"a rubric's values are joined by {', '.join(get_args(Aggregate))}; got {aggregate!r}"
        )
    if samples < 1 or attempts < 1 or confirm_failures < 0:
        raise SettingsError("a rubric needs at least 1 sample and 1 attempt, and 0 or more confirmations")
    read = None if criteria is None else as_criteria(criteria, scale, anchors or {})
    if isinstance(read, Likert) and confirm_failures and passes is None:
        raise SettingsError(
            "confirm_failures needs to know what fails: give passes=, the least value that does not"
        )
    return Rubric(
        read,
        name,
        tuple(steps),
        tuple(examples),
        as_fields(fields),
        (model,) if isinstance(model, str) else tuple(model),
        samples,
        aggregate,
        quorum,
        passes,
        confirm_failures,
        attempts,
        generation_params(rubric, params),
    )


def as_criteria(
    criteria: str | Sequence[str] | Mapping[str, Any] | Criteria,
    scale: tuple[int, int] | None = None,
    anchors: Mapping[int, str] | None = None,
) -> Criteria:
    """Criteria from how a case writes them; see `rubric`."""
    if isinstance(criteria, str):
        if scale or anchors:
            low, high = scale or (min(anchors or ()), max(anchors or ()))
            return Likert(criteria, low, high, anchors or {})
        return YesNo(criteria)
    if scale or anchors:
        raise SettingsError("a scale belongs to one question; a checklist and a tree have none")
    if isinstance(criteria, Mapping):
        return Tree(criteria) if "question" in criteria else Checklist(criteria)
    if isinstance(criteria, Sequence):
        return Checklist(dict.fromkeys(criteria, 1.0))
    return criteria


def from_metadata(sample: Sample) -> Criteria:
    """The checklist of one sample.

    Raises:
        ScoringError: it has none.
    """
    given = sample.metadata.get("criteria")
    if not isinstance(given, (str, list, tuple, Mapping)) or not given:
        raise ScoringError(f"sample {sample.id} has no checklist under 'criteria' in its metadata")
    return as_criteria(given if not isinstance(given, str) else [given])


def _majority(values: Sequence[float]) -> float:
    """The commonest value; of several that are equally common, the lowest."""
    return min(values, key=lambda one: (-values.count(one), one))


AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "majority": _majority,
}


def _placed(log: Sequence[Mapping[str, Any]], speaker: str, model: str) -> Log:
    return tuple({"speaker": speaker, "model": model, **entry} for entry in log)
