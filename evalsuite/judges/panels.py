"""Panels: debaters speak in turns, then each judges without seeing other judgements, and votes are combined.

The debate follows Chan et al., "ChatEval: Towards Better LLM-based Evaluators through Multi-Agent Debate" (arXiv
2308.07201, section 2 and appendix A). The final secret ballot and the wording of the prompts are ours. The benchmark
ChatEval follows the paper's protocol.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, get_args

from evalsuite.core.errors import JudgeError, SettingsError
from evalsuite.core.types import Message
from evalsuite.judges.asking import ask_until_parsed, read_speech, wait_for_all
from evalsuite.judges.judgements import Ballot, Round, settle_rounds
from evalsuite.judges.prompts import OFFICE, mark_sections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.judges.asking import Log
    from evalsuite.judges.judgements import Assessment, Form, Opinion
    from evalsuite.judges.prompts import JudgedInput, Part

T = TypeVar("T")
Strategy = Literal["one_by_one", "simultaneous", "simultaneous_summarizer"]
SEATED = "{prompt} You sit on a panel and are called {name}. {office}"
TALK = (
    "It is your turn, {name}. Say in a few sentences what you make of it, and where you agree or disagree "
    "with what was said. Do not give your final judgement yet."
)
LAST = "The debate is over. Give your own judgement, {name}; the others will not see it.\n"
SUM_UP = (
    "You take the minutes of a panel. In a few sentences, sum up who held what and for which reasons. Add "
    f"nothing of your own. {OFFICE}"
)


@dataclass(frozen=True, slots=True)
class DebaterRole:
    """A debater.

    Attributes:
        name: the name that the other debaters see.
        prompt: A description of who the debater is and what it examines.
        model: the debater's model; None for the judge model.
    """

    name: str
    prompt: str
    model: str | None = None


ROLES = {
    "general public": "You speak for ordinary readers. You care whether an answer is easy to follow, "
    "interesting, and of use to somebody who simply wants to know.",
    "critic": "You are a critic. You look for what is weak: gaps, vagueness, padding, claims without "
    "support, and whatever the others may have let pass.",
    "psychologist": "You are a psychologist. You look at how an answer meets the person who asked: tone, "
    "tact, motives, and what it may do to the reader.",
    "news author": "You are a news author. You check whether facts are right and complete, what matters "
    "comes first, and the wording is plain and precise.",
    "scientist": "You are a scientist. You test the reasoning: whether conclusions follow, methods are "
    "sound, and what is uncertain is said to be so.",
}
ANNOTATOR = "You are an annotator. You judge answers by the instructions that you are given."


def make_debaters(roles: int | Sequence[str | DebaterRole], *, same_role: bool = False) -> tuple[DebaterRole, ...]:
    """Make a panel's debaters, each with a unique name.

    Args:
        roles: names or roles in the order of speaking, or a number; a number beyond the predefined roles repeats
            them. A name that is not predefined becomes the description of a role.
    """
    if isinstance(roles, str):
        raise SettingsError(f"roles is a list of names or a number; got the text {roles!r}")
    names = list(ROLES)
    wanted = [names[at % len(names)] for at in range(roles)] if isinstance(roles, int) else roles
    debaters = [_find_role(name) for name in wanted]
    if same_role:
        debaters = [replace(debater, name="annotator", prompt=ANNOTATOR) for debater in debaters]
    times, seen = Counter(debater.name for debater in debaters), Counter[str]()
    for at, debater in enumerate(debaters):
        seen[debater.name] += 1
        if times[debater.name] > 1:
            debaters[at] = replace(debater, name=f"{debater.name} {seen[debater.name]}")
    return tuple(debaters)


def _find_role(name: str | DebaterRole) -> DebaterRole:
    if isinstance(name, DebaterRole):
        return name
    described = f"You judge as a {name} would, with the knowledge and cares of one."
    return DebaterRole(name, ROLES.get(name, described))


@dataclass(frozen=True, slots=True)
class PanelRules:
    """The rules of a panel."""

    form: Form
    debaters: tuple[DebaterRole, ...]  # In the order of speaking.
    strategy: Strategy = "one_by_one"  # Which speeches each debater sees, and when.
    turns: int = 2  # The number of turns in which the debaters speak.
    swap: bool = True  # Whether two answers are debated in both orders, in two independent debates.
    summarizer: str | None = None  # The model that writes summaries; None for the judge model.
    attempts: int = 3  # Maximum answers to request, until one can be read.
    params: Mapping[str, Any] = field(default_factory=dict)  # Generation parameters for every call.
    quorum: int | None = None  # The minimum number of readable judgements in each order; None requires more than half.

    fewest_turns: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.strategy not in get_args(Strategy):
            strategies = ", ".join(get_args(Strategy))
            raise SettingsError(f"a panel's strategy is one of {strategies}; got {self.strategy!r}")
        if not self.debaters or self.turns < self.fewest_turns:
            raise SettingsError(
                f"a panel needs at least 1 debater and {self.fewest_turns} turns; got {len(self.debaters)} debaters "
                f"and {self.turns} turns"
            )

    @property
    def orders(self) -> tuple[bool, ...]:
        """The orders of the answers, one per debate: True if the second answer is shown first."""
        return (False, True) if self.form.compares and self.swap else (False,)


@dataclass(frozen=True, slots=True)
class Panel(PanelRules):
    """Debaters who speak for `turns` turns; then each judges without seeing the others' judgements."""

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        rounds = await wait_for_all(self._debate(subject, model, swapped=swapped) for swapped in self.orders)
        return settle_rounds(self.form, rounds, self.quorum)

    def prompts(self) -> Sequence[str]:
        return (OFFICE, SEATED, TALK, LAST, SUM_UP, self.form.request())

    async def _debate(self, subject: JudgedInput, model: Model, *, swapped: bool) -> Round:
        debate = Debate(self, subject, model, swapped)
        try:
            for turn in range(1, self.turns + 1):
                await self._talk(debate, turn)
        except JudgeError as error:
            return debate.fail(error)
        # In the final turn all debaters judge at once; each sees the whole debate but no other judgement.
        judgements = await wait_for_all(
            debate.judge(debater, self.turns + 1, LAST.format(name=debater.name) + self.form.request(), self.form.parse)
            for debater in self.debaters
        )
        debate.keep(*judgements)
        debate.count(*judgements)
        return debate.end()

    async def _talk(self, debate: Debate, turn: int) -> None:
        """Let every debater speak once.

        With the strategy one_by_one, each debater sees all earlier speeches; with simultaneous, the speeches of earlier
        turns; with simultaneous_summarizer, only the summaries of earlier turns.
        """
        requests = [(debater, TALK.format(name=debater.name)) for debater in self.debaters]
        if self.strategy == "one_by_one":
            for debater, request in requests:
                speeches = debate.keep(await debate.speak(debater, turn, request))
                debate.shown += [speech.part() for speech in speeches]
            return
        at_once = await wait_for_all(debate.speak(debater, turn, request) for debater, request in requests)
        parts = [speech.part() for speech in debate.keep(*at_once)]
        if self.strategy == "simultaneous_summarizer":
            summary = await debate.sum_up(parts, turn)
            debate.keep(summary)
            parts = [summary.part()]
        debate.shown += parts


@dataclass(frozen=True, slots=True)
class Speech(Generic[T]):
    """One speaker's contribution: the parsed value, the text, and the messages."""

    speaker: str
    model: str
    value: T
    text: str
    log: Log

    def part(self) -> Part:
        """Return the section that the other debaters see."""
        return (f"said by {self.speaker}", self.text)


@dataclass(frozen=True, slots=True)
class Silence:
    """A speaker whose answers could not be read."""

    problem: str
    log: Log


@dataclass
class Debate:
    """The state of a debate in one order of the answers."""

    rules: PanelRules  # The panel's rules.
    subject: JudgedInput  # The answers to judge.
    model: Model  # The judge model.
    swapped: bool  # Whether the second answer is shown first.
    shown: list[Part] = field(default_factory=list)  # The speeches that every debater sees, in order.
    ballots: list[Ballot] = field(default_factory=list)  # The final judgements that could be read.
    problems: list[str] = field(default_factory=list)  # One message per final judgement that could not be read.
    log: list[Mapping[str, Any]] = field(default_factory=list)  # All messages, in order.

    def __post_init__(self) -> None:
        """Begin the log with the answers and, only for the first of two orders, with the debaters' system messages."""
        shown = self.subject.shown(swapped=self.swapped)
        self.log.append(self._log_entry("everybody", 0, {"role": "user", "content": shown}))
        for debater in () if self.swapped else self.rules.debaters:
            self.log.append(self._log_entry(debater.name, 0, {"role": "system", "content": _write_system(debater)}))

    async def speak(self, debater: DebaterRole, turn: int, request: str) -> Speech[str] | Silence:
        return await self._ask(debater, turn, request, read_speech, read_cut_off=True)

    async def judge(
        self, debater: DebaterRole, turn: int, request: str, parse: Callable[[str], Opinion]
    ) -> Speech[Opinion] | Silence:
        return await self._ask(debater, turn, request, parse)

    async def sum_up(self, speeches: Iterable[Part], turn: int) -> Speech[str]:
        model = self.model.peer(self.rules.summarizer) if self.rules.summarizer else self.model
        text = mark_sections([*self.subject.parts(swapped=self.swapped), *speeches])
        prompt = [Message("system", SUM_UP), Message("user", text, parts=self.subject.media)]
        summary = await self._ask_model("summary", model, prompt, turn, read_speech, read_cut_off=True)
        if isinstance(summary, Silence):
            raise JudgeError(summary.problem, (*self.log, *summary.log))
        return summary

    def keep(self, *contributions: Speech[Any] | Silence) -> list[Speech[Any]]:
        """Log the contributions; return only the speeches."""
        for contribution in contributions:
            self.log.extend(contribution.log)
        return [one for one in contributions if isinstance(one, Speech)]

    def count(self, *judgements: Speech[Opinion] | Silence) -> None:
        """Store final judgements: as ballots, or as problems if the judgements could not be read."""
        self.ballots += [self.ballot(judgement) for judgement in judgements if isinstance(judgement, Speech)]
        self.problems += [judgement.problem for judgement in judgements if isinstance(judgement, Silence)]

    def ballot(self, speech: Speech[Opinion]) -> Ballot:
        """Convert a judgement to a ballot, where `first` is the case's first answer."""
        opinion = speech.value.exchange() if self.swapped else speech.value
        return Ballot(speech.speaker, speech.model, self.swapped, opinion)

    def end(self) -> Round:
        return Round(tuple(self.ballots), tuple(self.problems), tuple(self.log))

    def fail(self, error: JudgeError) -> Round:
        return Round((), (str(error),), tuple(error.log))

    async def _ask(
        self, debater: DebaterRole, turn: int, request: str, parse: Callable[[str], T], **options: Any
    ) -> Speech[T] | Silence:
        model = self.model.peer(debater.model) if debater.model else self.model
        sections = mark_sections([*self.subject.parts(swapped=self.swapped), *self.shown])
        asked = Message("user", f"{sections}\n\n{request}", parts=self.subject.media)
        prompt = [Message("system", _write_system(debater)), asked]
        return await self._ask_model(debater.name, model, prompt, turn, parse, **options)

    async def _ask_model(
        self, speaker: str, model: Model, prompt: list[Message], turn: int, parse: Callable[[str], T], **options: Any
    ) -> Speech[T] | Silence:
        def take_own_entries(log: Sequence[Mapping[str, Any]]) -> Log:
            # Leave out the prompt, because the debate's log contains it already; keep repeated questions.
            return tuple(self._log_entry(speaker, turn, entry, model.name) for entry in log[len(prompt) :])

        options = {"attempts": self.rules.attempts, **options, **self.rules.params}
        try:
            judgement = await ask_until_parsed(model, prompt, parse, **options)
        except JudgeError as error:
            return Silence(str(error), take_own_entries(error.log))
        return Speech(speaker, model.name, judgement.value, judgement.text, take_own_entries(judgement.log))

    def _log_entry(self, speaker: str, turn: int, message: Mapping[str, Any], model: str = "") -> dict[str, Any]:
        order = "swapped" if self.swapped else "as given"
        return {"speaker": speaker, "model": model, "order": order, "turn": turn, **message}


def _write_system(debater: DebaterRole) -> str:
    return SEATED.format(prompt=debater.prompt, name=debater.name, office=OFFICE)
