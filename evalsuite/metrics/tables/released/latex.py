"""Released definition, LaTeX: the first `tabular` environment and the caption, as pylatexenc parses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables.similarity import levenshtein_similarity, matching_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CONTENT = ("caption_match_score", "data_levenshtein_score", "data_difflib_score")
FORMAT = ("alignment_levenshtein_score", "alignment_difflib_score", "num_rows_match", "num_cols_match")
NO_CAPTION = "None"
READINGS = 20
FEWEST_READINGS = 50_000
"""How many tokens pylatexenc may read, for each character and at least; once or twice each is usual."""


@dataclass(frozen=True, slots=True)
class LatexTable:
    """What is compared: rows of cells without blank ones, the caption, and what is taken for the alignment."""

    rows: Sequence[Sequence[str]] = ()
    caption: str = NO_CAPTION
    alignment: str = ""

    @property
    def data(self) -> list[str]:
        """All cells, one after the other."""
        return [cell for row in self.rows for cell in row]

    @property
    def width(self) -> int:
        """The number of cells in the widest row."""
        return max(map(len, self.rows), default=0)


def parts(prediction: str, reference: str) -> dict[str, float]:
    """All parts.

    Raises:
        ScoringError: pylatexenc cannot parse a text, for which the released script has no score either.
    """
    predicted, wanted = read_table(prediction), read_table(reference)
    return {
        "alignment_levenshtein_score": levenshtein_similarity(predicted.alignment, wanted.alignment),
        "alignment_difflib_score": matching_ratio(predicted.alignment, wanted.alignment),
        "data_levenshtein_score": levenshtein_similarity(predicted.data, wanted.data),
        "data_difflib_score": matching_ratio(predicted.data, wanted.data),
        "caption_match_score": float(predicted.caption == wanted.caption),
        "num_rows_match": float(len(predicted.rows) == len(wanted.rows)),
        "num_cols_match": float(predicted.width == wanted.width),
    }


def read_table(latex: str) -> LatexTable:
    """The first tabular of a text; an empty table without caption if there is none.

    Raises:
        ScoringError: pylatexenc cannot parse the text.
    """
    nodes = _parse(latex)
    tabular = next((node for node, entering in _walk(nodes) if entering and _is_tabular(node)), None)
    if not tabular:
        return LatexTable()
    if not tabular.nodeargd:
        raise ScoringError(_refusal(latex, "the text ends where a tabular's columns should be"))
    return LatexTable(_rows(tabular.nodelist), _caption(nodes), _alignment(tabular))


def _parse(latex: str) -> Sequence[Any]:
    from pylatexenc.latexwalker import LatexWalker

    class BoundedWalker(LatexWalker):  # type: ignore[misc]  # pylatexenc ships no types
        """Gives up where tokens are read over and over: arguments left open cost twice for each level."""

        tokens = FEWEST_READINGS + READINGS * len(latex)

        def get_token(self, *args: Any, **kwargs: Any) -> Any:
            self.tokens -= 1
            if self.tokens < 0:
                raise ScoringError("arguments left open nest too deeply to try all ways of closing them")
            return super().get_token(*args, **kwargs)

    try:
        return BoundedWalker(latex).get_latex_nodes()[0]  # type: ignore[no-any-return]
    except Exception as error:  # besides its own errors, pylatexenc leaks those of its parser's slips
        why = str(error) if isinstance(error, ScoringError) else f"{type(error).__name__}: {error}"
        raise ScoringError(_refusal(latex, why)) from error


def _refusal(latex: str, why: str) -> str:
    return (
        f"the released H-Score cannot be computed for this LaTeX of {len(latex)} characters, starting "
        f'{latex[:40]!r}: {why}; use variant="standard"'
    )


def _walk(nodes: Sequence[Any], *, groups: bool = True) -> Iterator[tuple[Any, bool]]:
    """Every node twice, on entering and on leaving it: arguments of macros and environments, then bodies."""
    from pylatexenc.latexwalker import LatexGroupNode

    unseen = [(node, True) for node in reversed(nodes)]
    while unseen:
        node, entering = unseen.pop()
        if not groups and isinstance(node, LatexGroupNode):
            continue
        yield node, entering
        if entering:
            unseen.append((node, False))
            unseen += [(child, True) for child in reversed(_children(node))]


def _children(node: Any) -> list[Any]:
    """What a node holds; a missing optional argument is None."""
    arguments = getattr(node, "nodeargd", None)
    return [*(arguments.argnlist if arguments else ()), *(getattr(node, "nodelist", None) or ())]


def _is_tabular(node: Any) -> bool:
    from pylatexenc.latexwalker import LatexEnvironmentNode

    return isinstance(node, LatexEnvironmentNode) and node.envname == "tabular"


def _alignment(tabular: Any) -> str:
    """Nearly always empty: the walk skips groups, and what holds the columns is one.

    Only where something else stands in its place (pylatexenc takes the bracket of `[t]` for the argument)
    are characters left.
    """
    from pylatexenc.latexwalker import LatexCharsNode

    argument_nodes = _walk(tabular.nodeargd.argnlist[:1], groups=False)
    return "".join(
        node.chars for node, entering in argument_nodes if entering and isinstance(node, LatexCharsNode)
    )


def _rows(nodes: Sequence[Any]) -> list[list[str]]:
    r"""Cells end at `&`, rows at `\\`; groups are skipped, macros leave nothing, blank cells are dropped."""
    from pylatexenc.latexwalker import LatexCharsNode, LatexMacroNode, LatexSpecialsNode

    rows: list[list[str]] = [[""]]
    for node, entering in _walk(nodes, groups=False):
        if not entering:
            continue
        if isinstance(node, LatexCharsNode):
            rows[-1][-1] += node.chars
        elif isinstance(node, LatexSpecialsNode) and node.specials_chars == "&":
            rows[-1].append("")
        elif isinstance(node, LatexSpecialsNode):
            rows[-1][-1] += node.specials_chars
        elif isinstance(node, LatexMacroNode) and node.macroname == "\\":
            rows.append([""])
    stripped = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    return [row for row in stripped if row]


def _caption(nodes: Sequence[Any]) -> str:
    r"""The text of the first group that starts after a `\caption`."""
    from pylatexenc.latexwalker import LatexGroupNode, LatexMacroNode

    announced = False
    for node, entering in _walk(nodes):
        if announced and entering and isinstance(node, LatexGroupNode):
            return _text(node.nodelist)
        announced |= not entering and isinstance(node, LatexMacroNode) and node.macroname == "caption"
    return NO_CAPTION


def _text(nodes: Sequence[Any]) -> str:
    """Characters, specials and the delimiters of groups."""
    from pylatexenc.latexwalker import LatexCharsNode, LatexGroupNode, LatexSpecialsNode

    pieces = []
    for node, entering in _walk(nodes):
        if isinstance(node, LatexGroupNode):
            pieces.append(node.delimiters[0 if entering else 1])
        elif entering and isinstance(node, LatexCharsNode):
            pieces.append(node.chars)
        elif entering and isinstance(node, LatexSpecialsNode):
            pieces.append(node.specials_chars)
    return "".join(pieces)
