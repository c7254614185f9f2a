"""Several tests at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.stats.inputs import numbers, within

if TYPE_CHECKING:
    from evalsuite.stats.inputs import Values


def holm(pvalues: Values) -> list[float]:
    """Holm's adjusted p-values, in the order given: reject where one is at most the level.

    The chance that any true hypothesis is rejected is then at most the level, however the tests depend on
    each other. Holm, "A simple sequentially rejective multiple test procedure" (Scandinavian Journal of
    Statistics 6, 1979).

    Raises:
        ValueError: no p-values, or one is not in [0, 1].
    """
    array = within(numbers(pvalues, "pvalues"), 0, 1, "pvalues")
    adjusted, worst = [0.0] * len(array), 0.0
    for done, at in enumerate(array.argsort(kind="stable")):
        worst = max(worst, min(1.0, (len(array) - done) * float(array[at])))
        adjusted[at] = worst
    return adjusted
