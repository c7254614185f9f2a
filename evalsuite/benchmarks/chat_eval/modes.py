"""The ways of judging that can be chosen with `--mode`, and what each suffix of a mode means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from evalsuite.judging.debate import Strategy

JudgingMethod = Literal["single", "mec", "weighted", "panel"]
PANEL = "3 roles and 2 turns, or else: append :4roles, :3turns, :same_role, in this order"
MODES = {
    "single": "one judgement, pairs in both orders",
    "mec": "3 judgements with reasons, pairs in both orders, averaged (FairEval)",
    "weighted": "expected scores from the probabilities of tokens (G-Eval)",
    "panel:one_by_one": f"each hears all that was said before (ChatEval); {PANEL}",
    "panel:simultaneous": f"all speak at once, hearing the earlier turns; {PANEL}",
    "panel:simultaneous_summarizer": f"the same, but only summaries of the turns are heard; {PANEL}",
}
SUFFIXES = "(?::(?P<roles>[1-9])roles)?(?::(?P<turns>[0-9])turns)?(?::(?P<same_role>same_role))?"
"""As in `panel:one_by_one:4roles:3turns:same_role`: up to 9 debaters and 9 turns, in this order."""


@dataclass(frozen=True, slots=True)
class JudgingMode:
    """A way of judging.

    Attributes:
        kind: the judge's kind.
        strategy: of a panel.
        roles: number of debaters; 1 where there is no panel.
        turns: of talk before the final one; 0 where there is no panel.
        same_role: whether all debaters have the same role.
    """

    kind: JudgingMethod
    strategy: Strategy | None = None
    roles: int = 1
    turns: int = 0
    same_role: bool = False


SIMPLE: Mapping[str, JudgingMode] = {
    "single": JudgingMode("single"),
    "mec": JudgingMode("mec"),
    "weighted": JudgingMode("weighted"),
}


def read_mode(name: str) -> JudgingMode:
    """The mode of this name.

    Raises:
        KeyError: there is none.
    """
    if name in SIMPLE:
        return SIMPLE[name]
    found = re.fullmatch(
        f"panel:(?P<strategy>one_by_one|simultaneous|simultaneous_summarizer){SUFFIXES}", name
    )
    if not found:
        raise KeyError(name)
    roles, turns = int(found["roles"] or 3), int(found["turns"] or 2)
    strategy = cast("Strategy", found["strategy"])
    return JudgingMode("panel", strategy, roles, turns, same_role=bool(found["same_role"]))


class Modes(Mapping[str, str]):
    """The modes with their descriptions: it lists the plain ones and knows those with suffixes as well."""

    def __getitem__(self, name: str) -> str:
        mode = read_mode(name)
        if name in MODES:
            return MODES[name]
        seats = "of one and the same role" if mode.same_role else "of different roles"
        return f"{mode.roles} debaters {seats}, {mode.turns} turns, {mode.strategy}"

    def __iter__(self) -> Iterator[str]:
        return iter(MODES)

    def __len__(self) -> int:
        return len(MODES)
