"""The paper's four types of errors (arXiv 2309.08963, Figure 2 and Appendix A.2), read off a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalsuite.benchmarks.struc_bench.comparison import TableComparison

ERROR_TYPES = {
    "structure_error": "Structure error",
    "naming_error": "Structure naming error",
    "element_error": "Element error",
    "element_format_error": "Element format error",
}
"""Metric names and headings."""
ERROR_FREE = "error_free"


def error_types(comparison: TableComparison) -> dict[str, float]:
    """Which types of errors an output has, 1.0 for each that it has, and `error_free`, 1.0 if it has none.

    - structure: a table, row or column is missing, too many, or in another place among the others;
    - naming: a row's or column's name differs (case and white space apart);
    - element: a data cell in its place has another value, is missing, or should be empty;
    - element format: a data cell has the right value in another form (50 for 50.0%, 12 for 12:00).

    Cells of missing rows and columns are not errors in themselves. Where no table was wanted, there is nothing to
    compare, so no type is given.
    """
    if not comparison.tables:
        return {}
    verdicts = {pair.verdict for pair in comparison.cells}
    present = {
        "structure_error": comparison.structure.total() > 0,
        "naming_error": bool(comparison.names),
        "element_error": bool(verdicts & {"differs", "missing", "unwanted"}),
        "element_format_error": "other form" in verdicts,
    }
    return {
        **{name: float(has) for name, has in present.items()},
        ERROR_FREE: float(not any(present.values())),
    }
