"""Compare the content and the form (layout and markup) of two tables written as raw text, HTML or LaTeX.

Use `table_score`. `h_score` is the score that was published with Struc-Bench, in its paper and scripts: Tang et al.,
Struc-Bench: Are Large Language Models Good at Generating Complex Structured Tabular Data? (arXiv 2309.08963).
"""

from evalsuite.metrics.tables.form import FormFact, describe_form
from evalsuite.metrics.tables.grid import FORMATS, VARIANTS, CellGrid, Format, Variant
from evalsuite.metrics.tables.published import CellF1, cell_f1, grits_content, grits_topology, rms, teds, teds_structure
from evalsuite.metrics.tables.readings import read_reference_tables, read_tables, strip_answer
from evalsuite.metrics.tables.released import HScore, h_score
from evalsuite.metrics.tables.table_score import TableScore, table_score, table_scores

__all__ = [
    "FORMATS", "VARIANTS", "CellF1", "CellGrid", "FormFact", "Format", "HScore", "TableScore", "Variant", "cell_f1",
    "describe_form", "grits_content", "grits_topology", "h_score", "read_reference_tables", "read_tables", "rms",
    "strip_answer", "table_score", "table_scores", "teds", "teds_structure",
]  # fmt: skip
