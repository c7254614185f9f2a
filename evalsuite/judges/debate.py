"""One debate in one order of the answers: who is asked what, and what the others hear of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from evalsuite.core.errors import JudgeError
from evalsuite.core.types import Message
from evalsuite.judges.marks import marked
from evalsuite.judges.opinions import Ballot
from evalsuite.judges.parse_retry import ask_until_parsed, everything, finished_lines
from evalsuite.judges.quorum import Round
from evalsuite.judges.repeated_judge import OFFICE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Completion
    from evalsuite.judges.judged_input import JudgedInput
    from evalsuite.judges.marks import Part
    from evalsuite.judges.opinions import Log, Opinion
    from evalsuite.judges.panel_rules import PanelRules
    from evalsuite.judges.roles import DebaterRole

T = TypeVar("T")

SEATED = "{prompt} You sit on a panel and are called {name}. {office}"
SUM_UP = (
    "You take the minutes of a panel. In a few sentences, sum up who held what and for which reasons. Add "
    f"nothing of your own. {OFFICE}"
)


@dataclass(frozen=True, slots=True)
class Speech(Generic[T]):
    """What one speaker said, parsed and as text, with the log of the calls that it took."""

    speaker: str
    model: str
    value: T
    text: str
    log: Log

    def heard(self) -> Part:
        """As the others hear it."""
        return (f"said by {self.speaker}", self.text)


@dataclass(frozen=True, slots=True)
class Silence:
    """A speaker whose answers could not be read."""

    problem: str
    log: Log


@dataclass
class Debate:
    """The state of a debate in one order of the answers.

    Attributes:
        rules: of the panel.
        subject: what is judged.
        model: the judge model.
        swapped: whether the second answer is shown first.
        heard: what everybody hears, in order.
        ballots: the final judgements that could be read.
        problems: of the final judgements that could not.
        log: everything said, in order.
    """

    rules: PanelRules
    subject: JudgedInput
    model: Model
    swapped: bool
    heard: list[Part] = field(default_factory=list)
    ballots: list[Ballot] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    log: list[Mapping[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """The log starts with what the panel sees and, once for both orders, who sits on it."""
        shown = self.subject.shown(swapped=self.swapped)
        self.log.append(self._entry("everybody", 0, {"role": "user", "content": shown}))
        for seat in () if self.swapped else self.rules.debaters:
            self.log.append(self._entry(seat.name, 0, {"role": "system", "content": self._part(seat)}))

    async def speak(self, seat: DebaterRole, turn: int, request: str) -> Speech[str] | Silence:
        """A debater's contribution, given what is in `heard` at this moment."""
        return await self._ask(seat, turn, request, spoken, everything)

    async def judge(
        self, seat: DebaterRole, turn: int, request: str, parse: Callable[[str], Opinion]
    ) -> Speech[Opinion] | Silence:
        """A debater's judgement, given what is in `heard` at this moment."""
        return await self._ask(seat, turn, request, parse, finished_lines)

    async def sum_up(self, speeches: Iterable[Part], turn: int) -> Speech[str]:
        """The summary of these speeches.

        Raises:
            JudgeError: the summarizer said nothing; the log holds what was said before.
        """
        model = self.model.peer(self.rules.summarizer) if self.rules.summarizer else self.model
        text = marked([*self.subject.parts(swapped=self.swapped), *speeches])
        prompt = [Message("system", SUM_UP), Message("user", text)]
        summary = await self._said("summary", model, prompt, turn, spoken, everything)
        if isinstance(summary, Silence):
            raise JudgeError(summary.problem, (*self.log, *summary.log))
        return summary

    def keep(self, *contributions: Speech[Any] | Silence) -> list[Speech[Any]]:
        """Logs contributions and returns those that are speeches."""
        for contribution in contributions:
            self.log.extend(contribution.log)
        return [one for one in contributions if isinstance(one, Speech)]

    def count(self, *judgements: Speech[Opinion] | Silence) -> None:
        """Counts final judgements: as ballots, or as problems where they could not be read."""
        self.ballots += [self.ballot(judgement) for judgement in judgements if isinstance(judgement, Speech)]
        self.problems += [judgement.problem for judgement in judgements if isinstance(judgement, Silence)]

    def ballot(self, speech: Speech[Opinion]) -> Ballot:
        """A judgement, about the answers in their own order."""
        opinion = speech.value.exchanged() if self.swapped else speech.value
        return Ballot(speech.speaker, speech.model, self.swapped, opinion)

    def ended(self) -> Round:
        """The ballots, problems and log of the debate."""
        return Round(tuple(self.ballots), tuple(self.problems), tuple(self.log))

    def failed(self, error: JudgeError) -> Round:
        """The round of a debate that broke off."""
        return Round((), (str(error),), tuple(error.log))

    async def _ask(
        self,
        seat: DebaterRole,
        turn: int,
        request: str,
        parse: Callable[[str], T],
        read: Callable[[Completion], str],
    ) -> Speech[T] | Silence:
        model = self.model.peer(seat.model) if seat.model else self.model
        sections = marked([*self.subject.parts(swapped=self.swapped), *self.heard])
        prompt = [Message("system", self._part(seat)), Message("user", f"{sections}\n\n{request}")]
        return await self._said(seat.name, model, prompt, turn, parse, read)

    async def _said(
        self,
        speaker: str,
        model: Model,
        prompt: list[Message],
        turn: int,
        parse: Callable[[str], T],
        read: Callable[[Completion], str],
    ) -> Speech[T] | Silence:
        def placed(log: Sequence[Mapping[str, Any]]) -> Log:
            # The prompt repeats what the debate's log already holds; what was asked again does not.
            return tuple(self._entry(speaker, turn, entry, model.name) for entry in log[len(prompt) :])

        options = {"attempts": self.rules.attempts, "read": read, **self.rules.params}
        try:
            judgement = await ask_until_parsed(model, prompt, parse, **options)
        except JudgeError as error:
            return Silence(str(error), placed(error.log))
        return Speech(speaker, model.name, judgement.value, judgement.text, placed(judgement.log))

    def _part(self, seat: DebaterRole) -> str:
        return SEATED.format(prompt=seat.prompt, name=seat.name, office=OFFICE)

    def _entry(self, speaker: str, turn: int, spoken: Mapping[str, Any], model: str = "") -> dict[str, Any]:
        order = "swapped" if self.swapped else "as given"
        return {"speaker": speaker, "model": model, "order": order, "turn": turn, **spoken}


def spoken(text: str) -> str:
    """The text, if there is any.

    Raises:
        ValueError: it is empty.
    """
    if not text.strip():
        raise ValueError("it is empty.")
    return text
