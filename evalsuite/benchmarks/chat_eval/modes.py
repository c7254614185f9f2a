"""The ways of judging that can be chosen with `--mode`, and what each suffix of a mode means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from evalsuite.judges.panels import Strategy

JudgingMethod = Literal["single", "mec", "weighted", "panel", "paper"]
PANEL = "3 roles and 2 turns, or else: append :4roles, :3turns, :same_role, in this order"
PAPER = "2 roles and 2 turns, or else: append :4roles, :3turns, :same_role, :ballots, in this order"
MODES = {
    "single": "one judgement in a line, pairs in both orders (ours)",
    "mec": "3 judgements with reasons, pairs in both orders, averaged (FairEval)",
    "weighted": "expected scores from the probabilities of tokens (G-Eval)",
    "weighted:steps": "the same, with evaluation steps that the judge first writes for itself (G-Eval's own)",
    "panel:one_by_one": f"each hears all that was said before, then a secret vote (ours); {PANEL}",
    "panel:simultaneous": f"all speak at once, hearing the earlier turns, then a secret vote (ours); {PANEL}",
    "panel:simultaneous_summarizer": f"the same, but only summaries of the turns are heard (ours); {PANEL}",
    "paper:single": "one referee with the paper's template: reasons, then scores; or else :same_role",
    "paper:one_by_one": f"the paper's debate, whose last turn is the judgement; {PAPER}",
    "paper:simultaneous": f"the same, all speaking at once, shuffled before they are heard; {PAPER}",
    "paper:simultaneous_summarizer": f"the same, hearing only summaries of all that was said; {PAPER}",
}
STRATEGIES = "one_by_one|simultaneous|simultaneous_summarizer"
SUFFIXES = "(?::(?P<roles>[1-9])roles)?(?::(?P<turns>[0-9])turns)?(?::(?P<same_role>same_role))?"
"""As in `panel:one_by_one:4roles:3turns:same_role`: up to 9 debaters and 9 turns, in this order."""

PANELS = re.compile(f"panel:(?P<strategy>{STRATEGIES}){SUFFIXES}")
REFEREES = re.compile(f"paper:(?P<strategy>{STRATEGIES}){SUFFIXES}(?::(?P<ballots>ballots))?")


@dataclass(frozen=True, slots=True)
class JudgingMode:
    """A way of judging.

    Attributes:
        kind: the judge's kind.
        strategy: of a panel.
        roles: number of debaters; 1 where there is no panel.
        turns: of talk before the secret vote of a `panel`; of a `paper` mode all, the judgement included; 0
            where there is neither.
        same_role: whether all debaters have the same role.
        steps: whether evaluation steps are generated first.
        ballots: whether debaters also judge in secret after each turn but the last.
    """

    kind: JudgingMethod
    strategy: Strategy | None = None
    roles: int = 1
    turns: int = 0
    same_role: bool = False
    steps: bool = False
    ballots: bool = False


SIMPLE: Mapping[str, JudgingMode] = {
    "single": JudgingMode("single"),
    "mec": JudgingMode("mec"),
    "weighted": JudgingMode("weighted"),
    "weighted:steps": JudgingMode("weighted", steps=True),
    "paper:single": JudgingMode("paper", turns=1),
    "paper:single:same_role": JudgingMode("paper", turns=1, same_role=True),
}


def read_mode(name: str) -> JudgingMode:
    """The mode of this name.

    Raises:
        KeyError: there is none.
    """
    if name in SIMPLE:
        return SIMPLE[name]
    if match := PANELS.fullmatch(name):
        return _debate("panel", match, roles=3)
    match = REFEREES.fullmatch(name)
    if match and match["turns"] != "0":
        return replace(_debate("paper", match, roles=2), ballots=bool(match["ballots"]))
    raise KeyError(name)


def _debate(kind: JudgingMethod, match: re.Match[str], roles: int) -> JudgingMode:
    strategy = cast("Strategy", match["strategy"])
    seats, turns = int(match["roles"] or roles), int(match["turns"] or 2)
    return JudgingMode(kind, strategy, seats, turns, same_role=bool(match["same_role"]))


class Modes(Mapping[str, str]):
    """The modes with their descriptions: it lists the plain ones and knows those with suffixes as well."""

    def __getitem__(self, name: str) -> str:
        mode = read_mode(name)
        if name in MODES:
            return MODES[name]
        seats = "of one and the same role" if mode.same_role else "of different roles"
        ballots = ", secret ballots after each turn but the last" if mode.ballots else ""
        return f"{mode.roles} debaters {seats}, {mode.turns} turns, {mode.strategy or 'alone'}{ballots}"

    def __iter__(self) -> Iterator[str]:
        return iter(MODES)

    def __len__(self) -> int:
        return len(MODES)
