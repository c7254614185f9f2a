"""A judge as a scorer of cases: what it is shown of a case, and what its assessment becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError
from evalsuite.core.types import Score
from evalsuite.judges.judged_input import JudgedInput, conversation, without_names
from evalsuite.judges.opinions import PREFERENCE
from evalsuite.judges.people_facts import people_facts
from evalsuite.judges.signature import judge_signature, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample, Transcript
    from evalsuite.judges.opinions import Assessment, Judge, Opinion

WINS: Mapping[str | None, float] = {"first": 1.0, "tie": 0.5, "second": 0.0}
"""What a verdict is worth to the first answer, which is the answer under test."""


@dataclass(frozen=True, slots=True)
class JudgeScorer:
    """A judge that scores cases; see `single`, `pairwise`, `multiple_evidence`, `weighted` and `panel`.

    Attributes:
        judge: the way of judging.
        rival: what the answer is compared with: a key of the sample's metadata, or `target`; None where
            the answer is scored alone.
        background: key of the metadata with what a good answer may draw on.
        hide: names that are withheld wherever an answer mentions them.
        prefix: put before each score's name, and around its facts, where a case has two judges.
        model: the judge model; empty for the run's.
    """

    judge: Judge
    rival: str | None = None
    background: str | None = None
    hide: tuple[str, ...] = ()
    prefix: str = ""
    model: str = ""

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """The scores; the first one carries the facts and the log of all judge calls."""
        subject = self.subject(sample, transcript)
        judge = judge.peer(self.model) if self.model else judge
        assessment = await self.judge(subject, judge)
        name, *others = (values := _values(assessment))
        facts = {**assessment.plain(), "lengths": [len(answer) for answer in subject.answers]}
        facts |= _authors_and_label(sample) if self.rival else {}
        facts |= self._people(sample, list(values))
        # Two judges of one case would overwrite each other's facts: a prefix keeps them apart, too.
        facts = {self.prefix: facts} if self.prefix else facts
        first = Score(values[name], note=_note(assessment), facts=facts, log=assessment.log)
        scores: dict[str, float | Score] = {
            self.prefix + name: first,
            **{self.prefix + other: values[other] for other in others},
        }
        return signed(scores, self.signature(judge))

    def signature(self, judge: Model) -> str:
        """How this judge makes the scores, in a line; see `signature`."""
        return judge_signature(self.judge, [judge], [self.rival, self.background, list(self.hide)])

    def _people(self, sample: Sample, names: Sequence[str]) -> dict[str, Any]:
        """People's labels, by the names under which the scores are kept."""
        if self.rival and not isinstance(sample.metadata.get("human"), (str, Mapping)):
            return {}
        return people_facts(sample, [self.prefix + name for name in names], nominal=bool(self.rival))

    def given(
        self, *, background: str | None = None, hide: Sequence[str] = (), prefix: str = ""
    ) -> JudgeScorer:
        """The same judge with another background, hidden names or prefix; see the attributes."""
        return replace(self, background=background, hide=tuple(hide), prefix=prefix)

    def subject(self, sample: Sample, transcript: Transcript) -> JudgedInput:
        """What the judge is shown of a case.

        Raises:
            ScoringError: the sample lacks the rival answer or the background.
        """
        answers = [transcript.answer, *([_text(sample, self.rival)] if self.rival else [])]
        return JudgedInput(
            question=conversation(sample.input),
            answers=tuple(without_names(answer, self.hide) for answer in answers),
            background=_text(sample, self.background) if self.background else "",
            reference=_target(sample) if not self.rival else "",
        )


def _authors_and_label(sample: Sample) -> dict[str, Any]:
    """What biases are measured with: who wrote both answers, and people's verdict, where the sample says so."""
    systems, human = sample.metadata.get("systems"), sample.metadata.get("human")
    facts: dict[str, Any] = {}
    if isinstance(systems, (list, tuple)) and [type(system) for system in systems] == [str, str]:
        facts["systems"] = list(systems)
    if isinstance(human, str) and human in WINS:
        facts["human"] = human
    return facts


def _values(assessment: Assessment) -> dict[str, float]:
    opinion = assessment.opinion
    if opinion.verdict is None:
        return dict(opinion.scores)
    return {PREFERENCE: opinion.scores.get(PREFERENCE, WINS[opinion.verdict])}


def _note(assessment: Assessment) -> str:
    return "; ".join(f"{ballot.judge}: {_in_words(ballot.opinion)}" for ballot in assessment.ballots)


def _in_words(opinion: Opinion) -> str:
    if opinion.verdict and PREFERENCE not in opinion.scores:
        return opinion.verdict
    return _numbers(opinion.scores)


def _numbers(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in scores.items())


def _target(sample: Sample) -> str:
    target = sample.target
    if target is None or isinstance(target, (str, int, float)):
        return "" if target is None else str(target)
    return str(target[0]) if target else ""


def _text(sample: Sample, key: str) -> str:
    text = sample.metadata.get(key, _target(sample) if key == "target" else None)
    if not isinstance(text, str) or not text:
        raise ScoringError(
            f"sample {sample.id} has no text {key!r} for its judge: its metadata holds "
            f"{', '.join(map(repr, sample.metadata)) or 'nothing'}; name another key, or fill this one in"
        )
    return text
