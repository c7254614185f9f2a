"""FT: interest and loans, by formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.toolbox.limits import bounded
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample


class Savings:
    """Has no state."""

    def __init__(self, sample: Sample) -> None:
        """Every subject is made with the sample, whether it needs it or not."""

    @tool
    def compound_interest(self, amount: float, rate_percent: float, years: int) -> float:
        """Says what an amount grows to with interest paid and kept once a year.

        Args:
            amount: what is put in at the beginning.
            rate_percent: interest in percent a year.
            years: for how many years, 0 to 100.
        """
        _check(amount, rate_percent)
        return round(amount * (1 + rate_percent / 100) ** bounded("years", years, 0, 100), 2)

    @tool
    def loan_payment(self, amount: float, rate_percent: float, months: int) -> float:
        """Says what must be paid each month to pay a loan back in equal payments.

        Args:
            amount: what is lent.
            rate_percent: interest in percent a year, a twelfth of it charged each month.
            months: how many payments, 1 to 600.
        """
        _check(amount, rate_percent)
        monthly, count = rate_percent / 1200, bounded("months", months, 1, 600)
        if monthly == 0:
            return round(amount / count, 2)
        return round(amount * monthly / (1 - (1 + monthly) ** -count), 2)

    @tool
    def percent_change(self, before: float, after: float) -> float:
        """Says by how many percent a value has changed.

        Args:
            before: the value at first.
            after: the value then.
        """
        if before == 0:
            raise ValueError("a change from 0 has no percentage")
        return round(100 * (after - before) / before, 4)


def _check(amount: float, rate_percent: float) -> None:
    if not (0 <= amount <= 1e12 and 0 <= rate_percent <= 100):
        raise ValueError("the amount must be 0 to 1e12 and the rate 0 to 100 percent")
