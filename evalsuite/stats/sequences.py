"""Confidence sequences: intervals that stay valid however often they are looked at.

The chance that the true mean ever leaves the interval, at any of all looks, is at most 1 - confidence. So a
run may stop as soon as the interval lies on one side of a threshold. What is added must be independent
(one value a cluster: the mean of a sample's epochs), or drawn in random order from a known number of cases;
then `population` makes the sequence one about exactly these cases, and it ends in their mean.

Should nothing be left of the interval, then the truth has been excluded, which has the chance above, or the
order was not random, which is likelier. All that was concluded is taken back, and what counting alone leaves
stands: so a run whose answers change midway is not decided by its first half.
"""

from __future__ import annotations

from typing import Protocol


class ConfidenceSequence(Protocol):
    """What can be added to and read at any time.

    Attributes:
        n: values added.
        low: lower bound; it never falls, unless nothing is left of the interval.
        high: upper bound; it never rises, likewise.
    """

    n: int
    low: float
    high: float

    @property
    def mean(self) -> float:
        """The mean of the values added; nan before the first."""

    def add(self, value: float) -> None:
        """Takes in one more value.

        Raises:
            ValueError: it is out of range, not a number, or more than the population.
        """


def left_by_counting(total: float, n: int, population: int | None) -> tuple[float, float]:
    """The bounds of a mean of values in [0, 1] that hold for certain, after n values with this sum."""
    if population is None:
        return 0.0, 1.0
    return total / population, (total + population - n) / population


def check_population(population: int | None) -> None:
    """Refuses an empty population.

    Raises:
        ValueError: the population is not above 0.
    """
    if population is not None and population < 1:
        raise ValueError(f"a population has at least one case; got {population}")


def check_room(n: int, population: int | None) -> None:
    """Refuses more values than there are cases.

    Raises:
        ValueError: all cases have been added.
    """
    if n == population:
        raise ValueError(f"all {population} cases of the population have been added already")
