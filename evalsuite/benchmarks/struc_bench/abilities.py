"""The paper's ability map (arXiv 2309.08963, Figure 5): six abilities, each by a formula of our own.

The paper names the abilities and has people rate them; the formulas are stated here and in docs/struc_bench.md.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.cell_values import Text, is_blank, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.benchmarks.struc_bench.comparison import TableComparison
    from evalsuite.metrics.tables import FormFact

ABILITIES = {
    "coverage": "Coverage",
    "formatting": "Formatting",
    "reasoning": "Reasoning",
    "comprehension": "Comprehension",
    "pragmatics": "Pragmatics",
    "hallucination_control": "Hallucination control",
}
"""Metric names and spokes of the radar chart."""
SIZE_FACTS = frozenset({"tables", "rows", "columns"})
"""Facts of form about how large tables are, not about how they are marked up."""


def abilities(
    comparison: TableComparison, *, source: str, form: float, markup: float, share: float
) -> dict[str, float]:
    """The abilities that an output shows, each in [0, 1]; those it gives no occasion for are left out.

    Where no table was wanted, only formatting is measured; where none of the wanted cells holds a value, there
    is nothing to cover, to comprehend or to write in its form. Otherwise:

    - coverage: of the values in the wanted data cells, the share that stands in any data cell;
    - formatting: the H-Score of the format;
    - comprehension: of the values covered, the share that stands in the right row and column (0 if none is
      covered); where columns or rows of the reference are sums or differences of others, the mean of that and the
      share of these sums that hold in the output too, whatever its numbers are;
    - reasoning: of the wanted data cells whose value is not in the source text as such, so that it has to be
      worked out, the share that is right; left out where there is no such cell;
    - pragmatics: the mean of three shares: of the facts about the markup used those that are fulfilled, of the
      right cells those written in the wanted form (0 if none is right), and of the answer the characters that
      belong to its table;
    - hallucination control: of the values in the predicted data cells, the share that the source text or the
      reference holds; left out where the output has no data.

    Args:
        comparison: of the output with the reference.
        source: the text that the table was to be made from.
        form: the H-Score's format.
        markup: the share of fulfilled facts about the markup used, see `markup_used`.
        share: of the answer's characters, those of its table.
    """
    if not comparison.tables:
        return {"formatting": form}
    right = [
        pair for pair in comparison.cells if pair.verdict in {"same", "other form"} and value_of(pair.wanted)
    ]
    wanted, predicted = _values(comparison.wanted), _values(comparison.predicted)
    covered = (wanted & predicted).total()
    in_form = sum(pair.verdict == "same" for pair in right)
    text = Text(source)
    values = {
        "coverage": _share(covered, wanted.total()),
        "formatting": form,
        "reasoning": _reasoning(comparison, text),
        "comprehension": _comprehension(_share(len(right), covered) or 0.0, comparison.sums)
        if wanted
        else None,
        "pragmatics": (markup + (_share(in_form, len(right)) or 0.0) + share) / 3 if wanted else None,
        "hallucination_control": _supported(comparison, text, wanted),
    }
    return {name: value for name, value in values.items() if value is not None}


def markup_used(facts: Iterable[FormFact]) -> float:
    """The share of fulfilled facts among those about the markup used: heads, spans, rules, links and the like."""
    about_markup = [fact.fulfilled for fact in facts if fact.name not in SIZE_FACTS]
    return sum(about_markup) / len(about_markup)


def _comprehension(placed: float, sums: Sequence[bool]) -> float:
    return (placed + sum(sums) / len(sums)) / 2 if sums else placed


def _reasoning(comparison: TableComparison, text: Text) -> float | None:
    derived = [pair for pair in comparison.cells if not text.holds(pair.wanted)]
    right = sum(pair.verdict in {"same", "other form"} for pair in derived)
    return _share(right, len(derived) + sum(not text.holds(cell) for cell in comparison.lost))


def _supported(comparison: TableComparison, text: Text, wanted: Counter[str]) -> float | None:
    answered = [cell for cell in comparison.predicted if not is_blank(cell)]
    return _share(sum(text.holds(cell) or value_of(cell) in wanted for cell in answered), len(answered))


def _values(cells: Iterable[str]) -> Counter[str]:
    return Counter(value for cell in cells if (value := value_of(cell)))


def _share(part: int, whole: int) -> float | None:
    return min(part / whole, 1.0) if whole else None
