"""The parts of the H-Score as the paper describes it, each in [0, 1].

Tables are paired by name, then by their order; a table that has no partner, on either side, scores 0.0 in
every part. Of a pair each part is computed as in the released scripts, but for what those do by accident;
of several pairs it is the mean.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.html_events import WHITELIST
from evalsuite.metrics.tables.similarity import levenshtein_similarity, matching_ratio
from evalsuite.metrics.tables.standard.html import LIST_TAGS, PageTables
from evalsuite.metrics.tables.standard.latex import read_latex
from evalsuite.metrics.tables.standard.markdown import read_markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalsuite.metrics.tables.grid import CellGrid

    Pair = tuple[CellGrid | None, CellGrid | None]

DATA = ("data_levenshtein_score", "data_difflib_score")
SIZE = ("num_rows_match", "num_cols_match")
NAMES = {
    "markdown": (DATA, (*SIZE, "columns_levenshtein_score", "columns_difflib_score", "table_name_match")),
    "html": (
        ("cells_text_levenshtein_score", "cells_text_difflib_score"),
        ("num_cells_match", "struct_levenshtein_score", "struct_difflib_score", *SIZE),
    ),
    "latex": (
        ("caption_match_score", *DATA),
        ("alignment_levenshtein_score", "alignment_difflib_score", *SIZE),
    ),
}
"""The names of the parts of content and of format."""


def markdown_parts(prediction: str, reference: str) -> dict[str, float]:
    """The parts for raw text; the names of the columns are form, the cells below them content."""
    pairs = pair_tables(read_markdown(prediction), read_markdown(reference))
    return {
        **_both(pairs, "data", lambda table: table.data),
        **_size(pairs),
        **_both(pairs, "columns", lambda table: table.columns),
        "table_name_match": _mean(
            pairs, lambda predicted, wanted: not wanted.name or _same(predicted.name, wanted.name)
        ),
    }


def latex_parts(prediction: str, reference: str) -> dict[str, float]:
    """The parts for LaTeX; all cells are content."""
    pairs = pair_tables(read_latex(prediction), read_latex(reference))
    return {
        "caption_match_score": _mean(pairs, lambda predicted, wanted: _same(predicted.name, wanted.name)),
        **_both(pairs, "data", lambda table: table.cells),
        **_size(pairs),
        **_both(pairs, "alignment", lambda table: table.alignment),
    }


def html_parts(prediction: str, reference: str) -> dict[str, float]:
    """The parts for HTML. As there, the reference decides what is a cell: a table's, a list's, or any text.

    The numbers of rows and columns are parts only where the reference has a table.
    """
    predicted, wanted = PageTables(prediction), PageTables(reference)
    if tables := wanted.tables:
        pairs = pair_tables(predicted.tables, tables)
        cells = [cell for table in predicted.tables for cell in table.cells]
        wanted_cells = [cell for table in tables for cell in table.cells]
        counts = predicted.cell_count == wanted.cell_count
        size = _size(pairs)
    else:
        tags = LIST_TAGS if wanted.has_lists else WHITELIST
        cells, wanted_cells = predicted.texts(tags), wanted.texts(tags)
        counts, size = len(cells) == len(wanted_cells), {}
    return {
        "num_cells_match": float(counts),
        "cells_text_levenshtein_score": _levenshtein(cells, wanted_cells),
        "cells_text_difflib_score": _difflib(cells, wanted_cells),
        "struct_levenshtein_score": _levenshtein(predicted.tags, wanted.tags),
        "struct_difflib_score": _difflib(predicted.tags, wanted.tags),
        **size,
    }


def pair_tables(prediction: Sequence[CellGrid], reference: Sequence[CellGrid]) -> list[Pair]:
    """Which table is to be compared with which: the same name first, then the order among the rest.

    Returns:
        Predicted and wanted table, in the order of the wanted ones; None where one has no partner.
    """
    by_name: dict[str, deque[int]] = {}
    for place, table in enumerate(prediction):
        by_name.setdefault(table.name.casefold(), deque()).append(place)
    partners: dict[int, int] = {}
    for place, wanted in enumerate(reference):
        if wanted.name and by_name.get(wanted.name.casefold()):
            partners[place] = by_name[wanted.name.casefold()].popleft()
    taken = set(partners.values())
    rest = deque(table for place, table in enumerate(prediction) if place not in taken)
    pairs: list[Pair] = []
    for place, wanted in enumerate(reference):
        partner = prediction[partners[place]] if place in partners else None
        pairs.append((partner or (rest.popleft() if rest else None), wanted))
    return [*pairs, *((extra, None) for extra in rest)]


def _size(pairs: Sequence[Pair]) -> dict[str, float]:
    return {
        "num_rows_match": _mean(pairs, lambda predicted, wanted: len(predicted.rows) == len(wanted.rows)),
        "num_cols_match": _mean(pairs, lambda predicted, wanted: predicted.width == wanted.width),
    }


def _both(
    pairs: Sequence[Pair], name: str, sequence: Callable[[CellGrid], Sequence[str]]
) -> dict[str, float]:
    """Both similarities of a sequence that every table has."""
    return {
        f"{name}_levenshtein_score": _mean(
            pairs, lambda one, two: _levenshtein(sequence(one), sequence(two))
        ),
        f"{name}_difflib_score": _mean(pairs, lambda one, two: _difflib(sequence(one), sequence(two))),
    }


def _mean(pairs: Sequence[Pair], part: Callable[[CellGrid, CellGrid], float]) -> float:
    """The mean of a part over the pairs; 1.0 where neither side has a table."""
    if not pairs:
        return 1.0
    return sum(part(one, two) if one and two else 0.0 for one, two in pairs) / len(pairs)


def _levenshtein(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """The definition's similarity, not below 0; where one is empty, whether both are."""
    if not prediction or not reference:
        return float(not prediction and not reference)
    return max(0.0, levenshtein_similarity(prediction, reference))


def _difflib(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Without difflib's rule that in a reference of 200 elements the frequent ones start no match.

    That rule makes a table of 60 cells look wholly different once a column is missing, but not one of 50.
    """
    return matching_ratio(prediction, reference, autojunk=False)


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
