"""Forms of judgement on one answer or on two: how a judge is asked, and how its answers are read and combined."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, ClassVar

from evalsuite.core.errors import SettingsError
from evalsuite.judges import judgements, parsing
from evalsuite.judges.asking import make_number_schema, make_object_schema
from evalsuite.judges.judgements import CANNOT_TELL, PREFERENCE, Lead, Opinion
from evalsuite.judges.parsing import AnswerField, AnswerForm, ChoiceFormat, MissingFieldError, NumberFormat

TEXT = {"type": "string"}
SCORE_SYNONYMS = ("score", "rating", "mark", "grade", "result")
"""Labels that judges write instead of `score` if only one score was requested."""

VERDICT_LABELS = (
    *("verdict", "winner", "better answer", "better one", "best answer", "preferred answer"),
    *("choice", "decision", "judgement", "judgment", "result"),
)
PLACES: Mapping[str, Sequence[str]] = {
    f"Score of answer {number}": (
        *(f"{score}{noun} {number}" for noun in ("answer", "assistant") for score in ("score of ", "score for ", "")),
        *(f"{noun} {letter}" for noun in ("answer", "assistant", "response")),
        *(f"response {number}", place),
    )
    for number, letter, place in (("1", "a", "first"), ("2", "b", "second"))
}
"""The labels for the scores of two answers, each with the synonyms that judges write instead."""

_NOUN = r"(?:answer|assistant|response|model|option|candidate)"
_WINS = (
    r"(?: (?:is|was) (?:(?:clearly|slightly|much|far|overall|the) ){0,3}"
    rf"(?:better|best|stronger|superior|winner|preferred)(?: (?:{_NOUN}|one|choice))?| wins)?"
)


def _make_answer_pattern(words: str) -> str:
    """Write a regular expression for a mention of an answer, such as `the first answer` or `answer 1`."""
    return rf"(?:the )?(?:{_NOUN}[ _#-]{{0,2}})?(?:{words})(?: {_NOUN}| one)?"


_FIRST, _SECOND = _make_answer_pattern("1|a|one|first|1st"), _make_answer_pattern("2|b|two|second|2nd")
_TIE = r"(?:it is |it's )?(?:a )?(?:tie|draw)|tied|c|equal|(?:both|they)(?: answers)? are (?:equal|equally good|tied)"
CANNOT_TELL_PATTERN = (
    r"(?:i )?(?:can(?:not|['\u2019]t| not)|(?:am )?unable to) (?:tell|decide|say|judge)|undecided|"
    r"cannot be (?:decided|determined)"
)
CHOICES: Mapping[Any, str] = {"first": _FIRST + _WINS, "second": _SECOND + _WINS, "tie": _TIE}

_MUCH, _SOME = " (?:is )?(?:much|significantly|far) better", " (?:is )?(?:slightly |somewhat |a bit )?better"
GRADES: Mapping[Any, str] = {
    # Accept `A>>B` (A is much better than B), the notation of Arena-Hard.
    1.0: f"{_FIRST}{_MUCH}|[a1]>>[b2]",
    0.75: f"{_FIRST}{_SOME}|[a1]>[b2]",
    0.5: f"{_TIE}|[a1]=[b2]",
    0.25: f"{_SECOND}{_SOME}|[b2]>[a1]",
    0.0: f"{_SECOND}{_MUCH}|[b2]>>[a1]",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """The parsed content of a judge's answer."""

    value: float  # The criterion's value; NaN if the judge could not tell.
    reason: str  # The judge's reason, in one line.
    # The values of single criteria, claims or turns, keyed by name.
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_decided(self) -> bool:
        """Whether the judge gave a verdict; false if it answered that it cannot tell."""
        return not math.isnan(self.value)


class ScaleCriteria:
    """Criteria with a scale of whole numbers; the lowest number is the worst."""

    __slots__ = ()
    low: int
    high: int

    @property
    def worst(self) -> float:
        """The worst value on the scale."""
        return float(self.low)

    @property
    def best(self) -> float:
        """The best value on the scale."""
        return float(self.high)


@dataclass(frozen=True, slots=True)
class Likert(ScaleCriteria):
    """One question on a scale of whole numbers.

    Attributes:
        question: the question to the judge; empty if the score's name says what is judged.
        low: the worst score.
        high: the best score.
        anchors: descriptions of some or all points of the scale.
        name: the name of the score, needed if a judge gives several scores.
    """

    question: str
    low: int = 1
    high: int = 5
    anchors: Mapping[int, str] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise SettingsError(f"a scale goes from a lower to a higher number; got {self.low} to {self.high}")
        if off := [point for point in self.anchors if not self.low <= point <= self.high]:
            raise SettingsError(f"anchors for {off} are off the scale from {self.low} to {self.high}")
        if self.name != " ".join(self.name.split()):
            raise SettingsError(f"the name of a score is one line of words; got {self.name!r}")

    @property
    def label(self) -> str:
        """The name of the score in a judge's answer."""
        return self.name or "score"

    def write_answer_request(self) -> str:
        return (
            f"Score from {self.low} (worst) to {self.high} (best): {self.question or self.name}"
            f'{self._format_anchors()}\nReply with one JSON object: {{"reason": "<in one or two sentences>", "score": '
            f"<{self.low} to {self.high}>}}"
        )

    def _format_anchors(self) -> str:
        return "".join(f"\n{point}: {words}" for point, words in sorted(self.anchors.items()))

    def make_schema(self) -> dict[str, Any]:
        return make_object_schema(reason=TEXT, score=make_number_schema(self.low, self.high))

    def read_answer(self, text: str) -> Reading:
        score = replace(self, name="score")
        labels = {"score": (*SCORE_SYNONYMS, "quality", "verdict")}
        return Reading(parse_aspect_scores(text, [score], labels)["score"], parsing.find_reason(text))

    def describe_scale(self) -> str:
        """Describe the score for a prompt: its name, scale, question and anchors (descriptions of points)."""
        meaning = f": {self.question}" if self.question else ""
        return f"{self.label} ({self.low} to {self.high}{meaning}){self._format_anchors()}"


QUALITY = Likert("how well the answer does overall what was asked", 1, 10, name="quality")


def parse_aspect_scores(
    text: str, aspects: Sequence[Likert], labels: Mapping[str, Sequence[str]] | None = None
) -> dict[str, float]:
    """Read each aspect's score, from lines that begin with the aspects' names or from a JSON object.

    If there is only one aspect, the judge may omit its name, or write `score` or a synonym of `score` instead.
    """
    synonyms, general = labels or {}, SCORE_SYNONYMS if len(aspects) == 1 else ()
    fields = {
        aspect.label: AnswerField((aspect.label, *synonyms.get(aspect.label, ()), *general), NumberFormat(aspect.high))
        for aspect in aspects
    }
    by_name = {aspect.label: aspect for aspect in aspects}
    try:
        scores = AnswerForm(fields).read_fields(text)
    except MissingFieldError as missing:
        aspect = by_name[missing.args[0]]
        wanted = f"{aspect.label}: followed by a number from {aspect.low} to {aspect.high}"
        raise ValueError(f"it has no line of the form {wanted}.") from missing
    for name, aspect in by_name.items():
        if not aspect.low <= scores[name] <= aspect.high:
            raise ValueError(f"{name}: {scores[name]:g} is off the scale from {aspect.low} to {aspect.high}.")
    return {name: scores[name] for name in by_name}


def parse_aspect_score(text: str, aspect: Likert) -> float:
    """Read the score of an answer about one aspect; `parse_aspect_scores` describes the errors."""
    return parse_aspect_scores(text, [aspect])[aspect.label]


@dataclass(frozen=True, slots=True)
class ScoresForm:
    """Scores of one answer, one per aspect; if there are several judgements, their scores are averaged."""

    aspects: tuple[Likert, ...] = (QUALITY,)
    is_comparison = False  # Whether the form judges two answers, which may be shown in either order.

    def write_judging_task(self) -> str:
        """Write the sentence that says what to judge, such as `Which answer is better?`."""
        listed = "; ".join(aspect.describe_scale() for aspect in self.aspects)
        return f"Score the answer on {listed}. The highest number is the best."

    def write_answer_request(self, lead: Lead = "Reply") -> str:
        """Write the task and the form of the answer; if `lead` is "End", the judge may write other text first."""
        *most, last = (f"`{aspect.label}: `" for aspect in self.aspects)
        lines = f"one line for each: {', '.join(most)} and {last}, each" if most else f"one line: {last},"
        return f"{self.write_judging_task()} {lead} with {lines} followed by your number."

    def make_schema(self) -> dict[str, Any]:
        """Return the JSON schema of an answer that contains only the judgement."""
        scores = {aspect.label: make_number_schema(aspect.low, aspect.high) for aspect in self.aspects}
        return make_object_schema(**scores)

    def parse_opinion(self, text: str) -> Opinion:
        """Parse an answer to an opinion, in which `first` means the answer that was shown first."""
        return Opinion(parse_aspect_scores(text, self.aspects))

    def combine_opinions(self, opinions: Sequence[Opinion]) -> Opinion:
        """Combine several opinions; in each, `first` means the case's first answer, in whatever order it was shown."""
        return Opinion(judgements.average_scores(opinion.scores for opinion in opinions))


@dataclass(frozen=True, slots=True)
class PairedScores:
    """Scores of two answers; the answer with the higher mean score is better, and equal means are a tie."""

    aspect: Likert = QUALITY
    is_comparison = True

    def write_judging_task(self) -> str:
        return f"Score both answers on {self.aspect.describe_scale()}. The highest number is the best."

    def write_answer_request(self, lead: Lead = "Reply") -> str:
        return (
            f"{self.write_judging_task()} {lead} with two lines: `Score of answer 1: ` and `Score of answer 2: `, each "
            "followed by your number."
        )

    def make_schema(self) -> dict[str, Any]:
        score = make_number_schema(self.aspect.low, self.aspect.high)
        return make_object_schema(**{"Score of answer 1": score, "Score of answer 2": score})

    def parse_opinion(self, text: str) -> Opinion:
        places = [replace(self.aspect, name=label) for label in PLACES]
        return _make_opinion_from_scores(*parse_aspect_scores(text, places, PLACES).values())

    def combine_opinions(self, opinions: Sequence[Opinion]) -> Opinion:
        means = judgements.average_scores(opinion.scores for opinion in opinions)
        return _make_opinion_from_scores(means["first"], means["second"])


@dataclass(frozen=True, slots=True)
class ChoiceForm:
    """A choice of the better of two answers; the result is a tie if no verdict has more than half of the votes."""

    aspect: Likert = QUALITY
    cannot_tell: bool = field(default=False, repr=False)  # Whether the judge may answer that it cannot tell.
    is_comparison = True
    words: ClassVar[tuple[str, ...]] = ("1", "2", "tie")

    def write_judging_task(self) -> str:
        if self.aspect == QUALITY:
            return "Which answer is better?"
        meaning = f" {self.aspect.question}" if self.aspect.question else ""
        return f"Which answer is better in {self.aspect.name or 'this respect'}?{meaning}"

    def write_answer_request(self, lead: Lead = "Reply") -> str:
        *most, last = (f"`Verdict: {verdict}`" for verdict in self._list_allowed_verdicts())
        return f"{self.write_judging_task()} {lead} with one line: {', '.join(most)} or {last}."

    def make_schema(self) -> dict[str, Any]:
        return make_object_schema(verdict={"type": "string", "enum": list(self._list_allowed_verdicts())})

    def parse_opinion(self, text: str) -> Opinion:
        return Opinion(verdict=self._read_verdict(text, CHOICES))

    def _read_verdict(self, text: str, options: Mapping[Any, str]) -> Any:
        """Return the option whose synonyms match the verdict in a judge's answer, or `CANNOT_TELL` if allowed."""
        abstention: Mapping[Any, str] = {CANNOT_TELL: CANNOT_TELL_PATTERN} if self.cannot_tell else {}
        verdict = AnswerField(VERDICT_LABELS, ChoiceFormat({**options, **abstention}))
        try:
            return AnswerForm({"Verdict": verdict}).read_fields(text)["Verdict"]
        except MissingFieldError as missing:
            wanted = ", ".join(f"Verdict: {word}" for word in self._list_allowed_verdicts())
            raise ValueError(f"it has no line of the form {wanted} at its beginning or end.") from missing

    def _list_allowed_verdicts(self) -> tuple[str, ...]:
        return (*self.words, CANNOT_TELL) if self.cannot_tell else self.words

    def combine_opinions(self, opinions: Sequence[Opinion]) -> Opinion:
        return Opinion(verdict=judgements.find_majority_or_tie([opinion.verdict or "tie" for opinion in opinions]))


@dataclass(frozen=True, slots=True)
class GradedChoice(ChoiceForm):
    """A choice between two answers on five levels, from "1 much better" to "2 much better".

    The score is the mean preference for the first answer (0 to 1).
    """

    words: ClassVar[tuple[str, ...]] = ("1 much better", "1 better", "tie", "2 better", "2 much better")

    def write_judging_task(self) -> str:
        return f"{ChoiceForm.write_judging_task(self)} By how much?"

    def parse_opinion(self, text: str) -> Opinion:
        """Read the preference; raise ValueError if the verdict does not say how much better an answer is."""
        read = self._read_verdict(text, GRADES)
        return Opinion(verdict=CANNOT_TELL) if isinstance(read, str) else _make_opinion_from_preference(read)

    def combine_opinions(self, opinions: Sequence[Opinion]) -> Opinion:
        return _make_opinion_from_preference(fmean(opinion.scores[PREFERENCE] for opinion in opinions))


Form = ScoresForm | PairedScores | ChoiceForm  # `ScoresForm` describes the methods.


@dataclass(frozen=True, slots=True)
class BestOfForm(ChoiceForm):
    """A choice of the best of several answers."""

    count: int = 2  # The number of answers, at most 9.

    def write_judging_task(self) -> str:
        return ChoiceForm.write_judging_task(self).replace("better", "best")

    def read_best_answer(self, text: str) -> int:
        """Read the number of the best answer, from 1; 0 means a tie."""
        places = {at: _make_answer_pattern(f"{at}|{chr(96 + at)}") + _WINS for at in range(1, self.count + 1)}
        return int(self._read_verdict(text, {**places, 0: _TIE.replace("|c|", "|")}))

    def _list_allowed_verdicts(self) -> tuple[str, ...]:
        return (*map(str, range(1, self.count + 1)), "tie")


def _make_opinion_from_scores(first: float, second: float) -> Opinion:
    return Opinion({"first": first, "second": second}, judgements.find_better_answer(first, second))


def _make_opinion_from_preference(preference: float) -> Opinion:
    return Opinion({PREFERENCE: preference}, judgements.find_better_answer(preference, 0.5))
