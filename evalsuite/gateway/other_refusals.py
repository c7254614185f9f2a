"""Tells refusals that follow the rate from those that come whatever the rate is.

A server that fails one request in ten at random, or one that a neighbour keeps busy, is not helped by fewer
requests. Two explanations of what happened lately are compared by their likelihoods: a limit, under which the share
of refusals is what exceeds it, and a constant share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_SHARE = 0.02
"""Refusals that happen below a limit, too, as requests do not arrive evenly."""

MOST_SHARE = 0.4
"""Above it, a constant share is not believed: it is a limit, or a server that is down."""

ODDS, ODDS_PER_SHARE, FREE_SHARE = 8.0, 100.0, 0.12
"""Log odds that are demanded, and how much more for each unit of the share above FREE_SHARE."""

FEWEST_WINDOWS = 3


@dataclass(frozen=True, slots=True)
class Window:
    """What happened in a stretch of time.

    Attributes:
        seconds: its length.
        accepted: answers.
        refused: refusals.
    """

    seconds: float
    accepted: int
    refused: int

    @property
    def sent(self) -> float:
        """Requests a second."""
        return (self.accepted + self.refused) / self.seconds

    @property
    def goodput(self) -> float:
        """Answers a second."""
        return self.accepted / self.seconds

    @property
    def share(self) -> float:
        """Refused, of all."""
        return self.refused / (self.accepted + self.refused)


def other_share(windows: Sequence[Window], before: float) -> float:
    """The share of requests that is refused whatever the rate.

    Args:
        windows: the latest ones, of any order.
        before: what this function said last; it stands where the evidence favours neither explanation.
    """
    share = sum(window.refused for window in windows) / sum(
        window.accepted + window.refused for window in windows
    )
    refusing = [window for window in windows if window.refused]
    if len(refusing) < FEWEST_WINDOWS:
        return 0.0 if share < before / 2 else before
    odds = _likelihood(windows, [share] * len(windows)) - _likelihood_of_a_limit(refusing)
    if share > MOST_SHARE or odds < 0:
        return 0.0
    demanded = ODDS + ODDS_PER_SHARE * max(0.0, share - FREE_SHARE)
    return share if odds > demanded else before


def _likelihood_of_a_limit(refusing: Sequence[Window]) -> float:
    """Under the limit that explains these windows best; those without a refusal may have used up saved permits."""
    return max(
        _likelihood(refusing, [1.0 - limit / window.sent for window in refusing])
        for limit in (window.goodput for window in refusing)
    )


def _likelihood(windows: Sequence[Window], shares: Sequence[float]) -> float:
    """The logarithm of the probability of these refusals, each window with its own expected share."""
    bounded = (min(0.98, max(LEAST_SHARE, share)) for share in shares)
    return sum(
        window.refused * math.log(share) + window.accepted * math.log(1.0 - share)
        for window, share in zip(windows, bounded, strict=True)
    )
