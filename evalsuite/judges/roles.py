"""Who sits on a panel: the roles of the ChatEval paper, in our own words, and any others.

Chan et al., "ChatEval" (arXiv 2308.07201, section 2 and appendix A).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalsuite.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class DebaterRole:
    """A debater.

    Attributes:
        name: by which the others know it.
        prompt: who it is and what it looks at.
        model: the model that plays it; None for the judge model.
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


def role(name: str | DebaterRole) -> DebaterRole:
    """The role of this name, or a new one that is described by its name alone."""
    if isinstance(name, DebaterRole):
        return name
    return DebaterRole(
        name, ROLES.get(name, f"You judge as a {name} would, with the knowledge and cares of one.")
    )


def debaters(roles: int | Sequence[str | DebaterRole], *, same_role: bool = False) -> tuple[DebaterRole, ...]:
    """The panel's seats, each with a name of its own.

    Args:
        roles: names or roles in the order of speaking, or how many of the known roles to take; beyond
            the last they start again.
        same_role: the paper's ablation: all seats get one and the same neutral prompt.

    Raises:
        SettingsError: a bare text, whose letters would be taken for names.
    """
    if isinstance(roles, str):
        raise SettingsError(f"roles are a list of names, or a number; got the text {roles!r}")
    names = list(ROLES)
    wanted = [names[at % len(names)] for at in range(roles)] if isinstance(roles, int) else roles
    seats = [role(name) for name in wanted]
    if same_role:
        seats = [replace(seat, name="annotator", prompt=ANNOTATOR) for seat in seats]
    return _numbered(seats)


def _numbered(seats: Sequence[DebaterRole]) -> tuple[DebaterRole, ...]:
    often = {name for name, times in Counter(seat.name for seat in seats).items() if times > 1}
    seen: Counter[str] = Counter()
    named = []
    for seat in seats:
        seen[seat.name] += 1
        named.append(replace(seat, name=f"{seat.name} {seen[seat.name]}") if seat.name in often else seat)
    return tuple(named)
