"""Rank correlations of many tables of counts at once: what a jackknife needs, in a few array operations.

A table holds how many cases have which value of x (rows, ascending) and of y (columns, ascending). The values are
scipy's `spearmanr` and `kendalltau` (tau-b) of the cases behind a table, without their p-values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from evalsuite.stats.inputs import Array

RankCoefficient = Literal["spearman", "kendall"]

CELLS_AT_ONCE = 2_000_000
"""Cells of tables held at a time: some 16 MB, a few times over."""


def without_each_cluster(
    x: Sequence[float], y: Sequence[float], clusters: Sequence[Hashable], coefficient: RankCoefficient
) -> tuple[float, list[float]]:
    """The coefficient of all cases, and of all but each cluster's, in the order in which clusters appear.

    Args:
        x: finite numbers, one a case.
        y: the same of the other variable.
        clusters: which cases belong together.
        coefficient: Spearman's rho or Kendall's tau-b; nan where a variable is constant.
    """
    import numpy as np

    rows, row_of = np.unique(np.asarray(x, dtype=float), return_inverse=True)
    columns, column_of = np.unique(np.asarray(y, dtype=float), return_inverse=True)
    number: dict[Hashable, int] = {}
    cluster_of = np.array([number.setdefault(cluster, len(number)) for cluster in clusters])
    shape = (len(rows), len(columns))
    whole = np.zeros(shape)
    np.add.at(whole, (row_of, column_of), 1.0)
    measure = _spearman if coefficient == "spearman" else _kendall
    left: list[float] = []
    step = max(1, CELLS_AT_ONCE // whole.size)
    for first in range(0, len(number), step):
        chosen = (cluster_of >= first) & (cluster_of < first + step)
        tables = np.repeat(whole[None], min(step, len(number) - first), axis=0)
        np.add.at(tables, (cluster_of[chosen] - first, row_of[chosen], column_of[chosen]), -1.0)
        left += measure(tables).tolist()
    return float(measure(whole[None])[0]), left


def _spearman(tables: Array) -> Array:
    """Pearson's correlation of mid-ranks, weighted by the counts."""
    import numpy as np

    x, y = _midranks(tables.sum(axis=2)), _midranks(tables.sum(axis=1))
    together = np.einsum("gij,gi,gj->g", tables, x, y)
    spread = (tables.sum(axis=2) * x**2).sum(axis=1) * (tables.sum(axis=1) * y**2).sum(axis=1)
    return _ratio(together, spread)


def _midranks(counts: Array) -> Array:
    """Each value's mid-rank, less the mean rank."""
    ranks: Array = counts.cumsum(axis=1) - counts / 2
    centred: Array = ranks - counts.sum(axis=1, keepdims=True) / 2
    return centred


def _kendall(tables: Array) -> Array:
    """Concordant less discordant pairs, over the geometric mean of the pairs that are not tied."""
    import numpy as np

    below = np.zeros((len(tables), tables.shape[1] + 1, tables.shape[2] + 1))
    below[:, 1:, 1:] = tables.cumsum(axis=1).cumsum(axis=2)
    lower_left = below[:, :-1, :-1]
    lower_right = below[:, :-1, -1:] - below[:, :-1, 1:]
    difference = (tables * (lower_left - lower_right)).sum(axis=(1, 2))
    return _ratio(difference, _untied(tables.sum(axis=2)) * _untied(tables.sum(axis=1)))


def _untied(counts: Array) -> Array:
    total = counts.sum(axis=1)
    untied: Array = (total**2 - (counts**2).sum(axis=1)) / 2
    return untied


def _ratio(above: Array, squared: Array) -> Array:
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = np.where(squared > 0, np.clip(above / np.sqrt(squared), -1.0, 1.0), np.nan)
    return ratio
