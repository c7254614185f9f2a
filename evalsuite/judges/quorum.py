"""Settles the ballots that could be read into one result, if there are enough of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.core.errors import JudgeError
from evalsuite.judges.opinions import Assessment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.judges.forms import Form
    from evalsuite.judges.opinions import Ballot, Log, Opinion


@dataclass(frozen=True, slots=True)
class Round:
    """The outcome of asking every judge, in one order of the answers.

    Attributes:
        ballots: those that could be read, in a fixed order.
        problems: one message for each ballot that could not be read.
        log: everything said.
    """

    ballots: tuple[Ballot, ...]
    problems: tuple[str, ...]
    log: Log


def settled(form: Form, rounds: Sequence[Round], quorum: int | None = None) -> Assessment:
    """One result of all orders.

    Where ballots are missing, both orders keep the same weight, since they are there to balance each other.

    Args:
        form: of the ballots.
        rounds: one for each order.
        quorum: ballots that each order needs; None for more than half of those asked.

    Raises:
        JudgeError: an order has too few readable ballots; the log holds what was said in all of them.
    """
    log = tuple(entry for round_ in rounds for entry in round_.log)
    for round_ in rounds:
        needed = _needed(round_, quorum)
        if len(round_.ballots) < needed:
            raise JudgeError(_too_few(round_, needed), log)
    ballots = tuple(ballot for round_ in rounds for ballot in round_.ballots)
    lost = sum(len(round_.problems) for round_ in rounds)
    return Assessment(_result(form, rounds), ballots, log, {"unreadable": lost} if lost else {})


def _needed(one: Round, quorum: int | None) -> int:
    asked = len(one.ballots) + len(one.problems)
    return asked // 2 + 1 if quorum is None else min(quorum, asked)


def _too_few(one: Round, needed: int) -> str:
    asked = len(one.ballots) + len(one.problems)
    if asked == 1:
        return one.problems[0]
    return f"{one.problems[0]} ({len(one.ballots)} of {asked} ballots could be read; {needed} are needed)"


def _result(form: Form, rounds: Sequence[Round]) -> Opinion:
    opinions = [[ballot.opinion for ballot in round_.ballots] for round_ in rounds]
    sizes = {len(order) for order in opinions}
    if len(sizes) == 1 or any(not opinion.scores for order in opinions for opinion in order):
        return form.settle([opinion for order in opinions for opinion in order])
    return form.settle([form.settle(order) for order in opinions])
