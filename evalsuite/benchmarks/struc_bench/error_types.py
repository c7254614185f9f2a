"""The paper's four types of errors (arXiv 2309.08963, Figure 2 and Appendix A.2), read off a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalsuite.benchmarks.struc_bench.comparison import TableComparison
    from evalsuite.metrics.tables import FormFact

ERROR_TYPES = {
    "structure_error": "Structure error",
    "naming_error": "Structure naming error",
    "element_error": "Element error",
    "element_format_error": "Element format error",
}
"""Metric names and headings."""
ERROR_FREE = "error_free"
BROKEN = frozenset({"markup", "well_formed", "compiles"})
"""Facts of form without which an output is no table of the wanted kind at all."""


def error_types(comparison: TableComparison, facts: Iterable[FormFact] = ()) -> dict[str, float]:
    """Which types of errors an output has, 1.0 for each that it has.

    `error_free` is 1.0 if it has none of them and fulfils every fact of form.

    - structure: a table, row or column is missing, too many, or in another place among the others; or the markup
      is another one than wanted, is incomplete, or would not compile;
    - naming: a row's or column's name differs in value;
    - element: a data cell in its place has another value, is missing, or should be empty;
    - element format: a data cell has the right value in another form (50 for 50.0%, 12 for 12:00).

    Cells of missing rows and columns are not errors in themselves. Where no table was wanted, there is nothing to
    compare, so no type is given.
    """
    if not comparison.tables:
        return {}
    unfulfilled = {fact.name for fact in facts if not fact.fulfilled}
    verdicts = {pair.verdict for pair in comparison.cells}
    present = {
        "structure_error": comparison.structure.total() > 0 or bool(unfulfilled & BROKEN),
        "naming_error": bool(comparison.names),
        "element_error": bool(verdicts & {"differs", "missing", "unwanted"}),
        "element_format_error": "other form" in verdicts,
    }
    free = not unfulfilled and not any(present.values())
    return {**{name: float(has) for name, has in present.items()}, ERROR_FREE: float(free)}
