"""One debate: who speaks when, and who hears whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from evalsuite.errors import JudgeError
from evalsuite.judging.gather_all import together
from evalsuite.judging.opinions import Ballot
from evalsuite.judging.parse_retry import ask_until_parsed
from evalsuite.judging.repeated_judge import OFFICE
from evalsuite.types import Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from evalsuite.judging.judged_input import JudgedInput
    from evalsuite.judging.opinions import Log, Opinion
    from evalsuite.judging.panels import Panel
    from evalsuite.judging.roles import DebaterRole
    from evalsuite.protocols import Model

T = TypeVar("T")
Strategy = Literal["one_by_one", "simultaneous", "simultaneous_summarizer"]

TALK = (
    "It is your turn, {name}. Say in a few sentences what you make of it, and where you agree or disagree "
    "with what was said. Do not give your final judgement yet."
)
SUM_UP = (
    "You take the minutes of a panel. In a few sentences, sum up who held what in this turn and for which "
    "reasons. Add nothing of your own."
)
LAST = "The debate is over. Give your own judgement, {name}; the others will not see it.\n"


@dataclass(frozen=True, slots=True)
class Speech(Generic[T]):
    """What one speaker said: as parsed, as text, and with everything that was said to get it."""

    speaker: str
    model: str
    value: T
    text: str
    log: Log

    def heard(self) -> str:
        """As the others hear it."""
        return f"[{self.speaker}] {self.text.strip()}"


@dataclass
class Debate:
    """The state of a debate in one order of the answers.

    Attributes:
        panel: its debaters and rules.
        subject: what is judged.
        model: the judge model.
        swapped: whether the second answer is shown first.
        heard: what everybody hears, in order.
        log: everything said, in order.
    """

    panel: Panel
    subject: JudgedInput
    model: Model
    swapped: bool
    heard: list[str] = field(default_factory=list)
    log: list[Mapping[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """The log starts with what the panel sees and, once for both orders, who sits on it."""
        self.log.append(self._entry("everybody", 0, {"role": "user", "content": self._shown()}))
        for seat in () if self.swapped else self.panel.debaters:
            self.log.append(self._entry(seat.name, 0, {"role": "system", "content": self._part(seat)}))

    async def speak(self, seat: DebaterRole, turn: int) -> Speech[str]:
        """A debater's contribution, from what is in `heard` at this moment."""
        return await self._ask(seat, turn, TALK.format(name=seat.name), spoken)

    async def sum_up(self, speeches: Sequence[Speech[str]], turn: int) -> Speech[str]:
        """The summary of one turn, from what was said in it alone."""
        model = self.model.peer(self.panel.summarizer) if self.panel.summarizer else self.model
        minutes = "\n\n".join(speech.heard() for speech in speeches)
        prompt = [Message("system", SUM_UP), Message("user", f"{self._shown()}\n\n{minutes}")]
        return await self._said("summary", model, prompt, turn, spoken)

    async def vote(self) -> list[Ballot]:
        """The final turn: all at once, each from the whole debate but nobody's judgement."""
        form, last = self.panel.form, self.panel.turns + 1
        asked = [
            self._ask(seat, last, LAST.format(name=seat.name) + form.request(), form.parse)
            for seat in self.panel.debaters
        ]
        speeches = await together(asked)
        self.keep(*speeches)
        return [self._ballot(speech) for speech in speeches]

    def _ballot(self, speech: Speech[Opinion]) -> Ballot:
        opinion = speech.value.exchanged() if self.swapped else speech.value
        return Ballot(speech.speaker, speech.model, self.swapped, opinion)

    def keep(self, *speeches: Speech[Any]) -> None:
        """Puts speeches into the log."""
        for speech in speeches:
            self.log.extend(speech.log)

    async def _ask(self, seat: DebaterRole, turn: int, request: str, parse: Callable[[str], T]) -> Speech[T]:
        model = self.model.peer(seat.model) if seat.model else self.model
        debate = "\n\n".join(["What the panel has said so far:", *self.heard]) if self.heard else ""
        question = "\n\n".join(part for part in (self._shown(), debate, request) if part)
        prompt = [Message("system", self._part(seat)), Message("user", question)]
        return await self._said(seat.name, model, prompt, turn, parse)

    async def _said(
        self, speaker: str, model: Model, prompt: list[Message], turn: int, parse: Callable[[str], T]
    ) -> Speech[T]:
        def placed(log: Sequence[Mapping[str, Any]]) -> Log:
            # The prompt repeats what the debate's log already holds; what was asked again does not.
            return tuple(self._entry(speaker, turn, entry, model.name) for entry in log[len(prompt) :])

        panel = self.panel
        try:
            said = await ask_until_parsed(model, prompt, parse, attempts=panel.attempts, **panel.params)
        except JudgeError as error:
            raise JudgeError(str(error), (*self.log, *placed(error.log))) from error
        return Speech(speaker, model.name, said.value, said.text, placed(said.log))

    def _shown(self) -> str:
        return self.subject.shown(swapped=self.swapped)

    def _part(self, seat: DebaterRole) -> str:
        return f"{seat.prompt} You sit on a panel and are called {seat.name}. {OFFICE}"

    def _entry(self, speaker: str, turn: int, said: Mapping[str, Any], model: str = "") -> dict[str, Any]:
        order = "swapped" if self.swapped else "as given"
        return {"speaker": speaker, "model": model, "order": order, "turn": turn, **said}


def spoken(text: str) -> str:
    """The text, if there is any.

    Raises:
        ValueError: it is empty.
    """
    if not text.strip():
        raise ValueError("it is empty.")
    return text


async def one_by_one(debate: Debate, turn: int) -> None:
    """Each in turn; each hears all that was said before."""
    for seat in debate.panel.debaters:
        speech = await debate.speak(seat, turn)
        debate.keep(speech)
        debate.heard.append(speech.heard())


async def simultaneous(debate: Debate, turn: int) -> None:
    """All at once; each hears the earlier turns."""
    speeches = await together(debate.speak(seat, turn) for seat in debate.panel.debaters)
    debate.keep(*speeches)
    debate.heard += [speech.heard() for speech in speeches]


async def simultaneous_summarizer(debate: Debate, turn: int) -> None:
    """All at once; each hears the summaries of the earlier turns, and nothing else of them."""
    speeches = await together(debate.speak(seat, turn) for seat in debate.panel.debaters)
    summary = await debate.sum_up(speeches, turn)
    debate.keep(*speeches, summary)
    debate.heard.append(summary.heard())


STRATEGIES: Mapping[Strategy, Callable[[Debate, int], Awaitable[None]]] = {
    "one_by_one": one_by_one,
    "simultaneous": simultaneous,
    "simultaneous_summarizer": simultaneous_summarizer,
}
