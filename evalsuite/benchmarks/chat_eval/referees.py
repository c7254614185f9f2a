"""The ChatEval paper's panel: the last turn of the debate is the judgement.

Chan et al., "ChatEval: Towards Better LLM-based Evaluators through Multi-Agent Debate" (arXiv 2308.07201): the
strategies of section 2.3 and algorithms 1 to 3; scores of all debaters in both orders are averaged and the means are
compared. The prompts are in our own words.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

from evalsuite.core.errors import JudgeError
from evalsuite.judges.asking import wait_for_all
from evalsuite.judges.judgements import settle_rounds
from evalsuite.judges.panels import SEATED, SUM_UP, Debate, PanelRules
from evalsuite.judges.prompts import OFFICE, REASONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.judges.judgements import Assessment, Round
    from evalsuite.judges.panels import DebaterRole, Silence, Speech
    from evalsuite.judges.prompts import JudgedInput, Part

TASK = "The task of the panel: {task} Do not let the order of the answers sway you.\n"
TALK = (
    "It is your turn to talk, {name}. Say briefly what you make of it and how you see what the others said. "
    "The scores are given in a later turn."
)
JUDGEMENT = "It is your turn, {name}, and this is the last turn. You need not agree with the others.\n"


@dataclass(frozen=True, slots=True)
class RefereePanel(PanelRules):
    """Debaters who talk in turns, the last of which is their judgement.

    `turns` include the judgement, so two debaters in two turns speak four times. One by one, each sees all earlier
    speeches, in the last turn as well. Simultaneously, all speak at once, and the speeches of a turn are shuffled
    before the others see them; under a summarizer they see only summaries, each of all speeches so far.

    Attributes:
        seed: the seed of the shuffling.
        interim: whether each debater also casts a secret ballot after each earlier turn, at one call per ballot; the
            ballots show who changes their mind.
    """

    seed: int = 0
    interim: bool = False

    fewest_turns: ClassVar[int] = 1

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        debates = [PaperDebate(self, Debate(self, subject, model, swapped)) for swapped in self.orders]
        rounds = await wait_for_all(debate.hold() for debate in debates)
        assessment = settle_rounds(self.form, rounds, self.quorum)
        return assessment.with_facts(interim=[ballot for debate in debates for ballot in debate.interim])

    def prompts(self) -> Sequence[str]:
        """See `Judge.prompts`."""
        task, request = self.form.task(), self.form.request("End")
        return (OFFICE, SEATED, TASK, TALK, JUDGEMENT, REASONS, SUM_UP, task, request)

    def calls(self) -> int:
        """Count the completions for one subject if every answer can be read at once.

        orders x (debaters x turns + summaries + secret ballots): one summary, and one round of secret ballots, after
        each turn but the last.
        """
        summaries = self.turns - 1 if self.strategy == "simultaneous_summarizer" else 0
        secret = len(self.debaters) * (self.turns - 1) if self.interim else 0
        return len(self.orders) * (len(self.debaters) * self.turns + summaries + secret)


@dataclass
class PaperDebate:
    """One debate of a `RefereePanel`, in one order of the answers.

    Attributes:
        panel: the panel.
        debate: the debate's state.
        spoken: all speeches so far, shown to the others or not.
        interim: the secret ballots, as plain data, each with its turn.
    """

    panel: RefereePanel
    debate: Debate
    spoken: list[Part] = field(default_factory=list)
    interim: list[Mapping[str, Any]] = field(default_factory=list)

    async def hold(self) -> Round:
        """Hold the debate; the round's problems name the answers that could not be read."""
        try:
            for turn in range(1, self.panel.turns + 1):
                await self._turn(turn)
        except JudgeError as error:
            return self.debate.fail(error)
        return self.debate.end()

    async def _turn(self, turn: int) -> None:
        if self.panel.strategy == "one_by_one":
            for seat in self.panel.debaters:
                self.debate.shown += self._keep([await self._contribution(seat, turn)], turn)
        else:
            contributions = await wait_for_all(self._contribution(seat, turn) for seat in self.panel.debaters)
            self.spoken += (parts := self._keep(contributions, turn))
            if turn < self.panel.turns:
                self.debate.shown += await self._convey(parts, turn)
        if self.panel.interim and turn < self.panel.turns:
            await self._secret_ballots(turn)

    async def _contribution(self, seat: DebaterRole, turn: int) -> Speech[Any] | Silence:
        task = TASK.format(task=self.panel.form.task())
        if turn < self.panel.turns:
            return await self.debate.speak(seat, turn, task + TALK.format(name=seat.name))
        return await self.debate.judge(seat, turn, task + self._judgement(seat), self.panel.form.parse)

    def _judgement(self, seat: DebaterRole) -> str:
        return JUDGEMENT.format(name=seat.name) + REASONS + self.panel.form.request("End")

    def _keep(self, contributions: Sequence[Speech[Any] | Silence], turn: int) -> list[Part]:
        speeches = self.debate.keep(*contributions)
        if turn == self.panel.turns:
            self.debate.count(*contributions)
        return [speech.part() for speech in speeches]

    async def _convey(self, parts: list[Part], turn: int) -> list[Part]:
        """Return what the others see of a turn in which all spoke at once."""
        if self.panel.strategy == "simultaneous_summarizer":
            summary = await self.debate.sum_up(self.spoken, turn)
            self.debate.keep(summary)
            return [summary.part()]
        return shuffle_parts(
            parts, self.panel.seed, turn, self.debate.subject.shown(swapped=self.debate.swapped)
        )

    async def _secret_ballots(self, turn: int) -> None:
        ask = self.panel.form
        ballots = await wait_for_all(
            self.debate.judge(seat, turn, self._judgement(seat), ask.parse) for seat in self.panel.debaters
        )
        for speech in self.debate.keep(*ballots):
            self.interim.append({"turn": turn, **self.debate.ballot(speech).plain()})


def shuffle_parts(parts: Sequence[Part], seed: int, turn: int, subject: str) -> list[Part]:
    """Shuffle the parts, in the same way on every machine, by the seed, the turn and the subject."""
    digest = sha256(f"{seed}\0{turn}\0{subject}".encode("utf-8", "surrogatepass")).digest()
    mixed = list(parts)
    random.Random(digest).shuffle(mixed)  # noqa: S311 - the order of speeches need not be unpredictable
    return mixed
