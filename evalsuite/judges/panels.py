"""The house's panel: debaters talk, then each judges unheard by the others, and votes are counted.

After Chan et al., "ChatEval: Towards Better LLM-based Evaluators through Multi-Agent Debate" (arXiv
2308.07201, section 2), with a final secret ballot of our own; `referees` has the paper's protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import JudgeError
from evalsuite.judges.debate import SEATED, SUM_UP, Debate
from evalsuite.judges.gather_all import together
from evalsuite.judges.panel_rules import PanelRules
from evalsuite.judges.quorum import settled
from evalsuite.judges.repeated_judge import OFFICE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.judges.judged_input import JudgedInput
    from evalsuite.judges.opinions import Assessment
    from evalsuite.judges.panel_rules import Strategy
    from evalsuite.judges.quorum import Round

TALK = (
    "It is your turn, {name}. Say in a few sentences what you make of it, and where you agree or disagree "
    "with what was said. Do not give your final judgement yet."
)
LAST = "The debate is over. Give your own judgement, {name}; the others will not see it.\n"


@dataclass(frozen=True, slots=True)
class Panel(PanelRules):
    """Debaters who talk for some turns, then each give an opinion in a fixed form, unheard by the others.

    `turns` are of talk, before the final one; 0 is a vote without a debate.
    """

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        rounds = await together(self._debate(subject, model, swapped=swapped) for swapped in self.orders)
        return settled(self.form, rounds, self.quorum)

    def prompts(self) -> Sequence[str]:
        """See `Judge.prompts`."""
        return (OFFICE, SEATED, TALK, LAST, SUM_UP, self.form.request())

    def calls(self) -> int:
        """Completions for one subject where every answer can be parsed at once.

        orders x (debaters x (turns + 1) + summaries), with as many summaries as turns under a summarizer.
        """
        summaries = self.turns if self.strategy == "simultaneous_summarizer" else 0
        return len(self.orders) * (len(self.debaters) * (self.turns + 1) + summaries)

    async def _debate(self, subject: JudgedInput, model: Model, *, swapped: bool) -> Round:
        debate = Debate(self, subject, model, swapped)
        try:
            for turn in range(1, self.turns + 1):
                await STRATEGIES[self.strategy](debate, turn)
        except JudgeError as error:
            return debate.failed(error)
        await self._vote(debate)
        return debate.ended()

    async def _vote(self, debate: Debate) -> None:
        """The final turn: all at once, each from the whole debate but nobody's judgement."""
        requests = [LAST.format(name=seat.name) + self.form.request() for seat in self.debaters]
        judgements = await together(
            debate.judge(seat, self.turns + 1, request, self.form.parse)
            for seat, request in zip(self.debaters, requests, strict=True)
        )
        debate.keep(*judgements)
        debate.count(*judgements)


async def one_by_one(debate: Debate, turn: int) -> None:
    """Each in turn; each hears all that was said before."""
    for seat in debate.rules.debaters:
        speeches = debate.keep(await debate.speak(seat, turn, TALK.format(name=seat.name)))
        debate.heard += [speech.heard() for speech in speeches]


async def simultaneous(debate: Debate, turn: int) -> None:
    """All at once; each hears the earlier turns."""
    speeches = debate.keep(*await _all_at_once(debate, turn))
    debate.heard += [speech.heard() for speech in speeches]


async def simultaneous_summarizer(debate: Debate, turn: int) -> None:
    """All at once; each hears the summaries of the earlier turns, and nothing else of them."""
    speeches = debate.keep(*await _all_at_once(debate, turn))
    summary = await debate.sum_up([speech.heard() for speech in speeches], turn)
    debate.keep(summary)
    debate.heard.append(summary.heard())


async def _all_at_once(debate: Debate, turn: int) -> list[Any]:
    return await together(
        debate.speak(seat, turn, TALK.format(name=seat.name)) for seat in debate.rules.debaters
    )


STRATEGIES: Mapping[Strategy, Callable[[Debate, int], Awaitable[None]]] = {
    "one_by_one": one_by_one,
    "simultaneous": simultaneous,
    "simultaneous_summarizer": simultaneous_summarizer,
}
