"""Panels: debaters speak in turns, and each judges in the last turn; the scores of these judgements are averaged.

The protocol follows Chan et al., "ChatEval: Towards Better LLM-based Evaluators through Multi-Agent Debate" (arXiv
2308.07201, section 2.3, algorithms 1 to 3, and appendix A). The wording of the prompts is not from the paper.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from evalsuite.core.errors import JudgeError, SettingsError
from evalsuite.core.types import Message
from evalsuite.judges.asking import Log, Vote, ask_until_parsed, get_vote, join_logs, strip_nonempty_text, wait_for_all
from evalsuite.judges.judgements import Assessment, Votes, combine_orders, make_ballots
from evalsuite.judges.prompts import REASONS, SYSTEM_PROMPT, JudgedInput, Part, make_prompt_messages, mark_sections

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model
    from evalsuite.judges.forms import Form

T = TypeVar("T")
Strategy = Literal["one_by_one", "simultaneous", "simultaneous_summarizer"]
Stage = Literal["talk", "judgement", "secret ballot"]
ROLE_PROMPT = "{prompt} You sit on a panel and are called {name}. {office}"
TASK = "The task of the panel: {task} Do not let the order of the answers sway you.\n"
TALK = (
    "It is your turn to talk, {name}. Say briefly what you make of it and how you see what the others said. "
    "The scores are given in a later turn."
)
JUDGEMENT = "It is your turn, {name}, and this is the last turn. You need not agree with the others.\n"
SUMMARY_PROMPT = (
    "You take the minutes of a panel. In a few sentences, sum up who held what and for which reasons. Add "
    f"nothing of your own. {SYSTEM_PROMPT}"
)


@dataclass(frozen=True, slots=True)
class DebaterRole:
    """A member of a panel.

    Attributes:
        name: the name that the other debaters see.
        prompt: a description of the debater and its task, which begins its prompts.
        model: the debater's model; None means the judge model.
    """

    name: str
    prompt: str
    model: str | None = None


ROLES = {
    "general public": "You speak for ordinary readers. You care whether an answer is easy to follow, "
    "interesting, and of use to somebody who simply wants to know.",
    "critic": "You are a critic. You check whether the writing is fluent, the sentences are clear and the words well "
    "chosen. You question the others' judgements, and offer another view where two answers seem equal.",
    "psychologist": "You are a psychologist. You look at how an answer meets the person who asked: tone, "
    "tact, motives, and what it may do to the reader.",
    "news author": "You are a news author. You check whether facts are right and complete, what matters "
    "comes first, and the wording is plain and precise.",
    "scientist": "You are a scientist. You test the reasoning: whether conclusions follow, methods are "
    "sound, and what is uncertain is said to be so.",
}
ANNOTATOR = "You are an annotator. You judge answers by the instructions that you are given."


def make_debaters(roles: int | Sequence[str | DebaterRole], *, same_role: bool = False) -> tuple[DebaterRole, ...]:
    """Make a panel's debaters, each with a unique name, from names or roles in the order of speaking, or from a number.

    A number selects predefined roles, and repeats them if they are too few. An unknown name becomes a role with the
    name as its description.
    """
    if isinstance(roles, str):
        raise SettingsError(f"roles is a list of names or a number; got the text {roles!r}")
    names = list(ROLES)
    wanted = [names[at % len(names)] for at in range(roles)] if isinstance(roles, int) else roles
    default = "You judge as a {} would, with the knowledge and cares of one."
    debaters = [
        role if isinstance(role, DebaterRole) else DebaterRole(role, ROLES.get(role, default.format(role)))
        for role in wanted
    ]
    if same_role:
        debaters = [replace(debater, name="annotator", prompt=ANNOTATOR) for debater in debaters]
    times, seen = Counter(debater.name for debater in debaters), Counter[str]()
    for at, debater in enumerate(debaters):
        seen[debater.name] += 1
        if times[debater.name] > 1:
            debaters[at] = replace(debater, name=f"{debater.name} {seen[debater.name]}")
    return tuple(debaters)


@dataclass(frozen=True, slots=True)
class PromptWriter:
    """Writes the prompts of all debaters in a panel."""

    form: Form

    def describe_debater(self, debater: DebaterRole) -> str:
        """Describe the debater; the description becomes the system message of this debater's prompts."""
        return ROLE_PROMPT.format(prompt=debater.prompt, name=debater.name, office=SYSTEM_PROMPT)

    def write_prompt(
        self, debater: DebaterRole, subject: JudgedInput, speeches: Sequence[Part], stage: Stage
    ) -> list[Message]:
        """Write a prompt for one debater, who sees these speeches, each with its speaker."""
        sections = mark_sections([*subject.list_parts(), *((f"said by {speaker}", text) for speaker, text in speeches)])
        task = "" if stage == "secret ballot" else TASK.format(task=self.form.write_judging_task())
        judgement = JUDGEMENT.format(name=debater.name) + REASONS + self.form.write_answer_request("End")
        request = task + (TALK.format(name=debater.name) if stage == "talk" else judgement)
        return make_prompt_messages(sections, request, subject.media, system=self.describe_debater(debater))

    def write_summary_prompt(self, subject: JudgedInput, speeches: Sequence[Part]) -> list[Message]:
        text = mark_sections([*subject.list_parts(), *((f"said by {speaker}", text) for speaker, text in speeches)])
        return [Message("system", SUMMARY_PROMPT), Message("user", text, parts=subject.media)]

    def list_fixed_texts(self) -> Sequence[str]:
        """List the prompts' fixed texts, for the judge's signature."""
        task, request = self.form.write_judging_task(), self.form.write_answer_request("End")
        return (SYSTEM_PROMPT, ROLE_PROMPT, TASK, TALK, JUDGEMENT, REASONS, SUMMARY_PROMPT, task, request)


@dataclass(frozen=True, slots=True)
class Panel:
    """Debaters who speak in turns; in the last turn, each gives a judgement.

    The last turn counts as a turn: two debaters in two turns speak four times. With the strategy `one_by_one`, each
    debater sees all earlier speeches, even those of the same turn. With the strategy `simultaneous`, each debater sees
    the speeches of earlier turns in shuffled order. With the strategy `simultaneous_summarizer`, each debater sees a
    summary of each earlier turn instead of the speeches.
    """

    form: Form
    debaters: tuple[DebaterRole, ...]  # The debaters, in the order of speaking.
    strategy: Strategy = "one_by_one"  # Decides who speaks in which order, and which speeches a debater sees.
    turns: int = 2  # The number of turns; the last turn is the judgement.
    swap: bool = True  # Whether to debate two answers twice, independently, once in each order.
    summarizer: str | None = None  # The model that writes summaries; None means the judge model.
    attempts: int = 3  # Maximum requests until an answer can be read.
    params: Mapping[str, Any] = field(default_factory=dict)  # Generation parameters for every call.
    quorum: int | None = None  # The minimum number of readable judgements in each order; None requires more than half.
    seed: int = 0  # The seed that shuffles simultaneous speeches.
    # Whether each debater also votes in secret after every turn but the last; the votes show changes of opinion.
    interim: bool = False
    prompt_writer: PromptWriter | None = field(default=None, repr=False)  # None means the default prompts.

    def __post_init__(self) -> None:
        if self.strategy not in get_args(Strategy):
            strategies = ", ".join(get_args(Strategy))
            raise SettingsError(f"a panel's strategy is one of {strategies}; got {self.strategy!r}")
        if not self.debaters or self.turns < 1:
            raise SettingsError(
                f"a panel needs at least 1 debater and 1 turn; got {len(self.debaters)} debaters and {self.turns} turns"
            )

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        orders = (False, True) if self.form.is_comparison and self.swap else (False,)
        exchanged = replace(subject, answers=subject.answers[::-1])
        debates = [Debate(self, exchanged if swapped else subject, model, swapped) for swapped in orders]
        judged = await wait_for_all(debate.run_debate() for debate in debates)
        assessment = combine_orders(self.form.combine_opinions, judged, self.quorum)
        interim = [ballot for debate in debates for ballot in debate.interim]
        return replace(assessment, facts={**assessment.facts, "interim": interim}) if interim else assessment

    def list_prompt_sentences(self) -> Sequence[str]:
        return self.get_prompt_writer().list_fixed_texts()

    def get_prompt_writer(self) -> PromptWriter:
        return self.prompt_writer or PromptWriter(self.form)


@dataclass
class Debate:
    """The state of one debate; each order of the answers has a debate of its own."""

    panel: Panel  # The panel's rules.
    subject: JudgedInput  # The answers to judge, in the order in which this debate shows them.
    model: Model  # The judge model.
    swapped: bool  # Whether this debate shows the second answer first.
    shown: list[Part] = field(default_factory=list)  # The speeches that every debater sees, in order.
    # If debaters speak simultaneously: all speeches so far, from which summaries are made.
    spoken: list[Part] = field(default_factory=list)
    judgements: list[Vote[Any]] = field(default_factory=list)  # The votes of the last turn.
    # The secret ballots as plain data; each has the turn after which it was cast.
    interim: list[Mapping[str, Any]] = field(default_factory=list)
    log: list[Mapping[str, Any]] = field(default_factory=list)  # All messages, in order.

    def __post_init__(self) -> None:
        """Start the log with the answers; in the first debate, also log the debaters' system messages."""
        place = {"model": "", "order": self._describe_answer_order(), "turn": 0}
        self.log.append({"speaker": "everybody", **place, "role": "user", "content": self.subject.format_parts()})
        for debater in () if self.swapped else self.panel.debaters:
            description = self.panel.get_prompt_writer().describe_debater(debater)
            self.log.append({"speaker": debater.name, **place, "role": "system", "content": description})

    async def run_debate(self) -> tuple[Votes, Log]:
        """Run the debate, and return its votes and log; if a `JudgeError` ends it, the only vote is unreadable."""
        try:
            for turn in range(1, self.panel.turns + 1):
                await self._run_debate_turn(turn)
        except JudgeError as error:
            return [Vote("", "", None, str(error))], tuple(error.log)
        return self.judgements, tuple(self.log)

    async def _run_debate_turn(self, turn: int) -> None:
        stage: Stage = "judgement" if turn == self.panel.turns else "talk"
        if self.panel.strategy == "one_by_one":
            for debater in self.panel.debaters:
                self.shown += self._record_speeches([await self._ask_debater(debater, turn, stage)], turn)
        else:
            speeches = await self._ask_all_debaters(turn, stage)
            self.spoken += (parts := self._record_speeches(speeches, turn))
            if turn < self.panel.turns:
                self.shown += await self._summarize_or_shuffle_speeches(parts, turn)
        if self.panel.interim and turn < self.panel.turns:
            votes = await self._ask_all_debaters(turn, "secret ballot")
            self.log += join_logs(votes)
            ballots = make_ballots(votes, swapped=self.swapped)
            self.interim += [{"turn": turn, **asdict(ballot)} for ballot in ballots]

    def _record_speeches(self, speeches: Sequence[Vote[Any]], turn: int) -> list[Part]:
        """Log the speeches, keep those of the last turn as judgements, and return the speeches that could be read."""
        self.log += join_logs(speeches)
        if turn == self.panel.turns:
            self.judgements += speeches
        return [(speech.judge, speech.text) for speech in speeches if not speech.problem]

    async def _summarize_or_shuffle_speeches(self, speeches: list[Part], turn: int) -> list[Part]:
        if self.panel.strategy != "simultaneous_summarizer":
            # Seed by the contents, so that the order is the same on every machine.
            content = f"{self.panel.seed}\0{turn}\0{self.subject.format_parts()}".encode("utf-8", "surrogatepass")
            mixed = list(speeches)
            random.Random(sha256(content).digest()).shuffle(mixed)  # noqa: S311 - an order, no secret
            return mixed
        model = self.model.peer(self.panel.summarizer) if self.panel.summarizer else self.model
        prompt = self.panel.get_prompt_writer().write_summary_prompt(self.subject, self.spoken)
        summary = await self._ask_model("summary", model, prompt, turn, strip_nonempty_text, read_cut_off=True)
        if summary.problem:
            raise JudgeError(summary.problem, (*self.log, *summary.log))
        return self._record_speeches([summary], turn)

    async def _ask_all_debaters(self, turn: int, stage: Stage) -> list[Vote[Any]]:
        return await wait_for_all(self._ask_debater(debater, turn, stage) for debater in self.panel.debaters)

    async def _ask_debater(self, debater: DebaterRole, turn: int, stage: Stage) -> Vote[Any]:
        model = self.model.peer(debater.model) if debater.model else self.model
        prompt = self.panel.get_prompt_writer().write_prompt(debater, self.subject, self.shown, stage)
        if stage == "talk":
            return await self._ask_model(debater.name, model, prompt, turn, strip_nonempty_text, read_cut_off=True)
        return await self._ask_model(debater.name, model, prompt, turn, self.panel.form.parse_opinion)

    async def _ask_model(
        self, speaker: str, model: Model, prompt: list[Message], turn: int, parse: Callable[[str], T], **options: Any
    ) -> Vote[T]:
        options = {"attempts": self.panel.attempts, **options, **self.panel.params}
        call = ask_until_parsed(model, prompt, parse, **options)
        # Do not log the prompt again: the debate's log already contains its parts.
        return await get_vote(call, speaker, model, skip=len(prompt), order=self._describe_answer_order(), turn=turn)

    def _describe_answer_order(self) -> str:
        return "swapped" if self.swapped else "as given"
