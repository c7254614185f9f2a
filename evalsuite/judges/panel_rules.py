"""What every panel is made of: who sits on it, who hears whom, for how long, and how its judgements are settled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from evalsuite.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.judges.forms import Form
    from evalsuite.judges.roles import DebaterRole

Strategy = Literal["one_by_one", "simultaneous", "simultaneous_summarizer"]


@dataclass(frozen=True, slots=True)
class PanelRules:
    """The rules of a panel.

    Attributes:
        form: of a judgement.
        debaters: in the order of speaking.
        strategy: who hears whom when.
        turns: of the debate.
        swap: whether two answers are debated in both orders, by two debates that know nothing of each other.
        summarizer: the model that sums up; None for the judge model.
        attempts: answers asked for at most, until one can be read.
        params: generation parameters of every call.
        quorum: judgements that must be readable in each order; None for more than half.
    """

    form: Form
    debaters: tuple[DebaterRole, ...]
    strategy: Strategy = "one_by_one"
    turns: int = 2
    swap: bool = True
    summarizer: str | None = None
    attempts: int = 3
    params: Mapping[str, Any] = field(default_factory=dict)
    quorum: int | None = None

    fewest_turns: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Refuses what is no panel."""
        if self.strategy not in get_args(Strategy):
            strategies = ", ".join(get_args(Strategy))
            raise SettingsError(
                f"a panel does not know the strategy {self.strategy!r}; it knows {strategies}"
            )
        if not self.debaters or self.turns < self.fewest_turns:
            raise SettingsError(
                f"this panel needs a debater and at least {self.fewest_turns} turns; got {len(self.debaters)} debaters "
                f"and {self.turns} turns"
            )

    @property
    def orders(self) -> tuple[bool, ...]:
        """For each debate, whether the second answer is shown first."""
        return (False, True) if self.form.compares and self.swap else (False,)
