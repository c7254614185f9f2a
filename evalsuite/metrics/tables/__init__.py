"""How alike two tables are in content and in form, as raw text, HTML or LaTeX.

`table_score` is the score to use; `h_score` is Struc-Bench's own. Source of the latter: Tang et al.,
Struc-Bench: Are Large Language Models Good at Generating Complex Structured Tabular Data? (arXiv 2309.08963),
and the scripts released with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.answer import strip_answer
from evalsuite.metrics.tables.any_markup import read_wanted
from evalsuite.metrics.tables.form_facts import FormFact, describe_form
from evalsuite.metrics.tables.grid import CellGrid
from evalsuite.metrics.tables.names import FORMATS, VARIANTS, Format, Variant
from evalsuite.metrics.tables.published import (
    CellF1,
    cell_f1,
    grits_content,
    grits_topology,
    rms,
    teds,
    teds_structure,
)
from evalsuite.metrics.tables.standard.parts import pair_tables
from evalsuite.metrics.tables.table_score import TableScore, no_readable_table, table_score

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "FORMATS",
    "VARIANTS",
    "CellF1",
    "CellGrid",
    "FormFact",
    "Format",
    "HScore",
    "TableScore",
    "Variant",
    "cell_f1",
    "describe_form",
    "grits_content",
    "grits_topology",
    "h_score",
    "pair_tables",
    "read_tables",
    "read_wanted",
    "rms",
    "strip_answer",
    "table_score",
    "teds",
    "teds_structure",
]


@dataclass(frozen=True, slots=True)
class HScore:
    """An H-Score.

    Attributes:
        content: similarity of the contents. `standard`: in [0, 1]; `released`: at most 2, for LaTeX 3.
        format: similarity of the forms. `standard`: in [0, 1]; `released`: at most 4, for HTML 3.
        parts: the components of both, by name; only those of `released` can be negative.
    """

    content: float
    format: float
    parts: dict[str, float]


def h_score(
    prediction: str,
    reference: str,
    *,
    format: Format,  # noqa: A002 - the word of the contract
    variant: Variant = "standard",
) -> HScore:
    """Compares a predicted table with the one that was wanted.

    `standard` takes the prediction out of its surroundings first (`strip_answer`), and gives
    the mean of the parts. `released` equals the scripts released with the paper: it compares the texts as
    they are and gives the sum of the parts.

    Args:
        prediction: what a model wrote.
        reference: the table's markup.
        format: how both are written.
        variant: which definition.

    Raises:
        ValueError: the format or the variant is unknown.
        ScoringError: `standard`: the reference holds no table that can be read. `released`: a text for which that
            definition gives no score or takes exponential time (HTML nested too deeply, LaTeX that pylatexenc
            cannot parse).
    """
    if format not in FORMATS or variant not in VARIANTS:
        raise ValueError(
            f"h_score knows the formats {', '.join(FORMATS)} and the variants {', '.join(VARIANTS)}, "
            f"not {format!r} and {variant!r}"
        )
    if variant == "released":
        return _released(prediction, reference, format)
    if not read_wanted(reference, format).tables:
        raise no_readable_table(reference, format)
    return _standard(strip_answer(prediction, format), reference, format)


def read_tables(text: str, format: Format) -> list[CellGrid]:  # noqa: A002 - the word of the contract
    """All tables of a text, as `standard` reads them. Bad markup never raises; what can be read is returned."""
    from evalsuite.metrics.tables.standard import html, latex, markdown

    if format == "html":
        return html.PageTables(text).tables
    return latex.read_latex(text) if format == "latex" else markdown.read_markdown(text)


def _standard(prediction: str, reference: str, format: Format) -> HScore:  # noqa: A002
    from evalsuite.metrics.tables.standard import parts

    compute = {"markdown": parts.markdown_parts, "html": parts.html_parts, "latex": parts.latex_parts}[format]
    values = compute(prediction, reference)
    content, form = ([values[name] for name in names if name in values] for names in parts.NAMES[format])
    return HScore(_mean(content), _mean(form), values)


def _released(prediction: str, reference: str, format: Format) -> HScore:  # noqa: A002
    from evalsuite.metrics.tables.released import html, latex, markdown

    definition = {"markdown": markdown, "html": html, "latex": latex}[format]
    values = definition.parts(prediction, reference)
    content = sum(values[name] for name in definition.CONTENT)
    return HScore(content, sum(values[name] for name in definition.FORMAT), values)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
