"""A panel of debaters that judges together, after ChatEval.

Chan et al., "ChatEval: Towards Better LLM-based Evaluators through Multi-Agent Debate" (arXiv
2308.07201, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.errors import SettingsError
from evalsuite.judging.debate import STRATEGIES, Debate
from evalsuite.judging.gather_all import together
from evalsuite.judging.opinions import Assessment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.judging.debate import Strategy
    from evalsuite.judging.forms import Form
    from evalsuite.judging.judged_input import JudgedInput
    from evalsuite.judging.opinions import Ballot, Log
    from evalsuite.judging.roles import DebaterRole
    from evalsuite.protocols import Model


@dataclass(frozen=True, slots=True)
class Panel:
    """Debaters who talk for some turns, then each give an opinion in a fixed form, unheard by the others.

    Attributes:
        form: of the final turn.
        debaters: in the order of speaking.
        strategy: who hears whom when.
        turns: of talk, before the final one; 0 for a vote without debate.
        swap: whether two answers are debated in both orders, by two debates that know nothing of each
            other.
        summarizer: the model that sums up; None for the judge model.
        attempts: answers asked for at most, until one can be parsed.
        params: generation parameters of every call.
    """

    form: Form
    debaters: tuple[DebaterRole, ...]
    strategy: Strategy = "one_by_one"
    turns: int = 2
    swap: bool = True
    summarizer: str | None = None
    attempts: int = 3
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses what is no panel."""
        if self.strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise SettingsError(f"a panel does not know the strategy {self.strategy!r}; it knows {known}")
        if not self.debaters or self.turns < 0:
            seats, turns = len(self.debaters), self.turns
            raise SettingsError(f"a panel needs a debater and 0 turns or more; got {seats} and {turns}")

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        """See `Judge`."""
        orders = (False, True) if self.form.compares and self.swap else (False,)
        debates = await together(self._debate(subject, model, swapped=swapped) for swapped in orders)
        ballots = tuple(ballot for cast, _ in debates for ballot in cast)
        log = tuple(entry for _, said in debates for entry in said)
        return Assessment(self.form.settle([ballot.opinion for ballot in ballots]), ballots, log)

    def calls(self) -> int:
        """Completions for one subject where every answer can be parsed at once.

        orders x (debaters x (turns + 1) + summaries), with as many summaries as turns under a summarizer.
        """
        orders = 2 if self.form.compares and self.swap else 1
        summaries = self.turns if self.strategy == "simultaneous_summarizer" else 0
        return orders * (len(self.debaters) * (self.turns + 1) + summaries)

    async def _debate(self, subject: JudgedInput, model: Model, *, swapped: bool) -> tuple[list[Ballot], Log]:
        debate = Debate(self, subject, model, swapped)
        for turn in range(1, self.turns + 1):
            await STRATEGIES[self.strategy](debate, turn)
        ballots = await debate.vote()
        return ballots, tuple(debate.log)
