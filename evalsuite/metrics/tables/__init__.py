"""Compare two tables in content and in form, as raw text, HTML or LaTeX.

`table_score` is the score to use; `h_score` is the one released with Struc-Bench: Tang et al.,
Struc-Bench: Are Large Language Models Good at Generating Complex Structured Tabular Data? (arXiv 2309.08963),
and its scripts.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalsuite.core.errors import ScoringError
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
from evalsuite.metrics.tables.table_score import TableScore, table_score

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
        content: similarity of the contents, at most 2 (LaTeX: 3).
        format: similarity of the forms, at most 4 (HTML: 3).
        parts: the components of both, by name; a component can be negative.
    """

    content: float
    format: float
    parts: dict[str, float]


def h_score(
    prediction: str,
    reference: str,
    *,
    format: Format,  # noqa: A002 - the word of the contract
    variant: Variant = "released",
) -> HScore:
    """Score a predicted table as the scripts released with Struc-Bench do.

    The texts are compared as they are; `strip_answer` removes what surrounds a table. Content and format are
    sums of their parts.

    Args:
        prediction: the model's text.
        reference: the table's markup.
        format: the markup of both.
        variant: the definition; "released" is the only one.

    Raises:
        ValueError: the format is unknown.
        ScoringError: the variant "standard" was removed (use `table_score`); or the definition gives no score for
            a text or takes exponential time (HTML nested too deeply, LaTeX that pylatexenc cannot parse).
    """
    if variant == "standard":
        raise ScoringError(
            'h_score(variant="standard") was removed because it agrees little with people (r = 0.29); '
            "use table_score(prediction, reference, format=...), which has .content and .form"
        )
    if format not in FORMATS or variant not in VARIANTS:
        raise ValueError(
            f"h_score knows the formats {', '.join(FORMATS)} and the variant {', '.join(VARIANTS)}, "
            f"not {format!r} and {variant!r}"
        )
    from evalsuite.metrics.tables.released import html, latex, markdown

    definition = {"markdown": markdown, "html": html, "latex": latex}[format]
    values = definition.parts(prediction, reference)
    content = sum(values[name] for name in definition.CONTENT)
    return HScore(content, sum(values[name] for name in definition.FORMAT), values)


def read_tables(text: str, format: Format) -> list[CellGrid]:  # noqa: A002 - the word of the contract
    """Read all tables of a text. Bad markup never raises; what can be read is returned."""
    from evalsuite.metrics.tables.readers import html, latex, markdown

    if format == "html":
        return html.PageTables(text).tables
    return latex.read_latex(text) if format == "latex" else markdown.read_markdown(text)
