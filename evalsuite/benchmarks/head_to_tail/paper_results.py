"""The paper's own results for GPT-4, ChatGPT, Llama 2 and LLaMA, as its ChatGPT judge saw them.

Sun et al. 2024 (arXiv 2308.10168v2): Tables 3 and 7, and by popularity Table 14 of the appendix. Shares, as
everywhere here; where the paper prints no missing rate, it is 1 - A - H, which is how the paper defines it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.reporting.section import Column, Table

if TYPE_CHECKING:
    from evalsuite.reporting.section import Cell

# In percent. A and H over all questions; A over head, torso and tail; A over the domains open, movie, book
# and academics, which the paper's text gives for the best of each family only.
_RESULTS: dict[str, tuple[tuple[float, float], tuple[float, ...], tuple[float | None, ...]]] = {
    "GPT-4": ((30.9, 19.7), (40.3, 33.4, 19.0), (37.1, 41.7, 21.3, 10.0)),
    "ChatGPT": ((20.3, 14.1), (29.4, 21.9, 9.5), (22.1, 34.7, 16.9, 3.0)),
    "Llama 2 (70B)": ((11.8, 34.0), (16.2, 13.2, 6.1), (7.5, 27.9, 10.3, 9.8)),
    "LLaMA (7B)": ((12.1, 80.0), (19.0, 11.7, 5.4), (None, None, None, None)),
    "LLaMA (13B)": ((14.4, 84.3), (22.0, 14.8, 6.3), (None, None, None, None)),
    "LLaMA (33B)": ((18.2, 80.0), (26.0, 19.8, 8.8), (19.0, 28.7, 15.8, 7.1)),
    "LLaMA (65B)": ((17.8, 81.9), (25.9, 18.7, 8.7), (None, None, None, None)),
}
_COLUMNS = (
    *("Accuracy", "Hallucination", "Missing"),
    *(f"A, {part}" for part in ("head", "torso", "tail", "open", "movie", "book", "academics")),
)
_NOTE = (
    "arXiv 2308.10168, Tables 3, 7 and 14: answers of 2023 to the authors' 18,171 questions, judged by "
    "ChatGPT. Questions built from later dumps are like these, but not the same."
)


def published() -> Table:
    """The paper's rows, marked as such."""
    rows = [_row(model) for model in _RESULTS]
    columns = [Column("Model (published)"), *(Column(title, "percent") for title in _COLUMNS)]
    return Table("Published results", columns, rows, _NOTE)


def _row(model: str) -> list[Cell]:
    (accuracy, hallucination), buckets, domains = _RESULTS[model]
    shown = (accuracy, hallucination, 100 - accuracy - hallucination, *buckets, *domains)
    return [model, *(None if value is None else value / 100 for value in shown)]
