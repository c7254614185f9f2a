"""Compute the H-Score exactly as the scripts released with Struc-Bench do (arXiv 2309.08963), mistakes included.

Published numbers come from those scripts, so each part equals theirs to 1e-9. None of their code is used
here; perf/h_score_plain.py implements the same definition step by step, and tests compare the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables.grid import FORMATS, VARIANTS
from evalsuite.metrics.tables.html import WHITELIST, HtmlListener, listen
from evalsuite.metrics.tables.sequences import levenshtein_similarity, matching_ratio

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from evalsuite.metrics.tables.grid import Format, Variant


HTML_CONTENT = ("cells_text_levenshtein_score", "cells_text_difflib_score")
HTML_FORMAT = ("num_cells_match", "struct_levenshtein_score", "struct_difflib_score")
TREE_LIMIT = 100_000
"""Maximum length of a flattened tag tree. Fifteen nested whitelisted tags stay below it."""

CELLS = {"table": ("th", "td"), "ul": ("li",), "ol": ("li",), "li": ("li",)}
"""The tags of cells, selected by the first of these tags that the reference contains."""

OPENING = {tag: chr(0x100 + 2 * place) for place, tag in enumerate(sorted(WHITELIST))}
CLOSING = {tag: chr(ord(char) + 1) for tag, char in OPENING.items()}
"""One character for each whitelisted tag, because trees are compared as strings."""

BLANKS = " \n\t\f\r"
PRESERVING = frozenset({"pre", "textarea"})
NOT_TEXT = frozenset({"rt", "rp", "style", "script", "template"})
"""Tags in which BeautifulSoup finds no text. Elsewhere, it reduces a blank text to one character."""
SPECIAL = PRESERVING | NOT_TEXT


class ReleasedPage(HtmlListener):
    """The parts of a page that the definition needs.

    Attributes:
        elements: the whitelisted elements in document order: the tag, and where its text starts and ends in
            the page's text.
        tags: the starts and ends of elements in order, as characters of `OPENING` and `CLOSING`.
        text: all texts of the page, joined.
    """

    def __init__(self, markup: str) -> None:
        self.elements: list[tuple[str, int, int]] = []
        self.tags: list[str] = []
        self._names: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._open: list[int] = []
        self._texts: list[str] = []
        self._length = 0
        self._pieces: list[str] = []
        self._preserving = self._hiding = 0
        listen(markup, self)
        self._flush()
        self.text = "".join(self._texts)
        self.elements = list(zip(self._names, self._starts, self._ends, strict=True))

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002 - lxml's signature
        """Handle the start of an element."""
        if self._pieces:
            self._flush()
        if tag in OPENING:
            self._open.append(len(self._names))
            self._names.append(tag)
            self._starts.append(self._length)
            self._ends.append(self._length)
            self.tags.append(OPENING[tag])
        if tag in SPECIAL:
            self._preserving += tag in PRESERVING
            self._hiding += tag in NOT_TEXT

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        if self._pieces:
            self._flush()
        if tag in CLOSING:
            self._ends[self._open.pop()] = self._length
            self.tags.append(CLOSING[tag])
        if tag in SPECIAL:
            self._preserving -= tag in PRESERVING
            self._hiding -= tag in NOT_TEXT

    def data(self, text: str) -> None:
        """Handle a piece of text."""
        self._pieces.append(text)

    def comment(self, text: str) -> None:  # noqa: ARG002 - lxml's signature
        """Handle a comment."""
        self._flush()

    def pi(self, target: str, text: str) -> None:  # noqa: ARG002 - lxml's signature
        """Handle a processing instruction."""
        self._flush()

    def doctype(self, name: str, public: str, system: str) -> None:  # noqa: ARG002 - lxml's signature
        """Handle a document type."""
        self._flush()

    def _flush(self) -> None:
        """End a text: pieces without a tag between them are one text."""
        text = "".join(self._pieces)
        self._pieces.clear()
        if text and not self._hiding:
            if text.isspace() and not self._preserving and not text.strip(BLANKS):
                text = "\n" if "\n" in text else " "
            self._texts.append(text)
            self._length += len(text)

    def cells(self, tags: Collection[str]) -> list[str]:
        """Return the texts of elements with these tags; if there are none, of whitelisted elements with text."""
        if tags:
            return [self.text[start:end] for tag, start, end in self.elements if tag in tags]
        return [self.text[start:end] for _, start, end in self.elements if start < end]

    def cell_tags(self) -> tuple[str, ...]:
        """Return the tags that mark cells if this page is the reference."""
        present = {tag for tag, _, _ in self.elements}
        return next((tags for tag, tags in CELLS.items() if tag in present), ())

    def tree(self) -> str:
        """Return the flattened tag tree of the released script, with one character per tag.

        For each whitelisted tag among all descendants of a node, the script adds an opening tag, walks the
        subtree, and adds a closing tag. So the result for a node contains two parts for each child: the
        child's tags around the result for the child, and that result once more, because the child's
        descendants are also the node's.

        Raises:
            ScoringError: the tree is longer than `TREE_LIMIT`.
        """
        if (length := self._tree_length()) > TREE_LIMIT:
            raise ScoringError(
                f"the released H-Score flattens this HTML to {_shown(length)} tags, more than the limit of "
                f"{TREE_LIMIT:,}: it notes every tag once for each subset of the tags around it; "
                "use table_score"
            )
        walks: list[list[str]] = [[]]
        for tag in self.tags:
            if not ord(tag) % 2:
                walks.append([])
                continue
            below = "".join(walks.pop())
            walks[-1] += (chr(ord(tag) - 1), below, tag, below)
        return "".join(walks[0])

    def _tree_length(self) -> int:
        lengths = [0]
        for tag in self.tags:
            if not ord(tag) % 2:
                lengths.append(0)
                continue
            below = lengths.pop()
            lengths[-1] += 2 + 2 * below
        return lengths[0]


def html_parts(prediction: str, reference: str) -> dict[str, float]:
    """Compute all parts of the score for HTML.

    Raises:
        ScoringError: a flattened tag tree is longer than `TREE_LIMIT`.
    """
    predicted, wanted = ReleasedPage(prediction), ReleasedPage(reference)
    tags = wanted.cell_tags()
    cells, wanted_cells = predicted.cells(tags), wanted.cells(tags)
    tree, wanted_tree = predicted.tree(), wanted.tree()
    return {
        "num_cells_match": float(len(cells) == len(wanted_cells)),
        "cells_text_levenshtein_score": levenshtein_similarity(cells, wanted_cells),
        "cells_text_difflib_score": matching_ratio(cells, wanted_cells),
        "struct_levenshtein_score": levenshtein_similarity(tree, wanted_tree),
        "struct_difflib_score": matching_ratio(tree, wanted_tree),
    }


def _shown(length: int) -> str:
    # Each level of nesting doubles the length, so the number may have hundreds of digits.
    return f"{length:,}" if length < 10**12 else f"more than 10^{(length.bit_length() - 1) * 3 // 10}"


LATEX_CONTENT = ("caption_match_score", "data_levenshtein_score", "data_difflib_score")
LATEX_FORMAT = ("alignment_levenshtein_score", "alignment_difflib_score", "num_rows_match", "num_cols_match")
NO_CAPTION = "None"
READINGS = 20
FEWEST_READINGS = 50_000
"""Minimum limit for the number of tokens that pylatexenc may read, and the limit per character; one or two reads per
character are usual.
"""


@dataclass(frozen=True, slots=True)
class LatexTable:
    """The compared parts of a table: rows of cells without blank ones, caption, text read as alignment."""

    rows: Sequence[Sequence[str]] = ()
    caption: str = NO_CAPTION
    alignment: str = ""

    @property
    def data(self) -> list[str]:
        """All cells in order."""
        return [cell for row in self.rows for cell in row]

    @property
    def width(self) -> int:
        """The number of cells in the widest row."""
        return max(map(len, self.rows), default=0)


def latex_parts(prediction: str, reference: str) -> dict[str, float]:
    """Compute all parts of the score for LaTeX.

    Raises:
        ScoringError: pylatexenc cannot parse a text; the released script gives no score either.
    """
    predicted, wanted = read_released_latex(prediction), read_released_latex(reference)
    return {
        "alignment_levenshtein_score": levenshtein_similarity(predicted.alignment, wanted.alignment),
        "alignment_difflib_score": matching_ratio(predicted.alignment, wanted.alignment),
        "data_levenshtein_score": levenshtein_similarity(predicted.data, wanted.data),
        "data_difflib_score": matching_ratio(predicted.data, wanted.data),
        "caption_match_score": float(predicted.caption == wanted.caption),
        "num_rows_match": float(len(predicted.rows) == len(wanted.rows)),
        "num_cols_match": float(predicted.width == wanted.width),
    }


def read_released_latex(latex: str) -> LatexTable:
    """Return the first tabular of a text; an empty table without caption if there is none.

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
        """Stops if tokens are read too often: each level of unclosed arguments doubles the work."""

        tokens = FEWEST_READINGS + READINGS * len(latex)

        def get_token(self, *args: Any, **kwargs: Any) -> Any:
            self.tokens -= 1
            if self.tokens < 0:
                raise ScoringError("arguments left open nest too deeply to try all ways of closing them")
            return super().get_token(*args, **kwargs)

    try:
        return BoundedWalker(latex).get_latex_nodes()[0]  # type: ignore[no-any-return]
    except Exception as error:  # pylatexenc also raises errors of other kinds, caused by bugs in its parser
        why = str(error) if isinstance(error, ScoringError) else f"{type(error).__name__}: {error}"
        raise ScoringError(_refusal(latex, why)) from error


def _refusal(latex: str, why: str) -> str:
    return (
        f"the released H-Score cannot be computed for this LaTeX of {len(latex)} characters, starting "
        f"{latex[:40]!r}: {why}; use table_score"
    )


def _walk(nodes: Sequence[Any], *, groups: bool = True) -> Iterator[tuple[Any, bool]]:
    """Yield every node on entering and on leaving it: arguments of macros and environments, then bodies."""
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
    """Return a node's children; a missing optional argument is None."""
    arguments = getattr(node, "nodeargd", None)
    return [*(arguments.argnlist if arguments else ()), *(getattr(node, "nodelist", None) or ())]


def _is_tabular(node: Any) -> bool:
    from pylatexenc.latexwalker import LatexEnvironmentNode

    return isinstance(node, LatexEnvironmentNode) and node.envname == "tabular"


def _alignment(tabular: Any) -> str:
    """Return the alignment, nearly always empty, because the script skips the group with the columns.

    Characters remain only if something else is in the group's place; for example, pylatexenc takes the
    bracket of `[t]` for the argument.
    """
    from pylatexenc.latexwalker import LatexCharsNode

    argument_nodes = _walk(tabular.nodeargd.argnlist[:1], groups=False)
    return "".join(node.chars for node, entering in argument_nodes if entering and isinstance(node, LatexCharsNode))


def _rows(nodes: Sequence[Any]) -> list[list[str]]:
    r"""Split rows at `\\` and cells at `&`; groups are skipped, macros print nothing, blank cells are dropped."""
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
    r"""Return the text of the first group that starts after a `\caption`."""
    from pylatexenc.latexwalker import LatexGroupNode, LatexMacroNode

    announced = False
    for node, entering in _walk(nodes):
        if announced and entering and isinstance(node, LatexGroupNode):
            return _text(node.nodelist)
        announced |= not entering and isinstance(node, LatexMacroNode) and node.macroname == "caption"
    return NO_CAPTION


def _text(nodes: Sequence[Any]) -> str:
    """Join characters, specials and the delimiters of groups."""
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


MARKDOWN_CONTENT = ("data_levenshtein_score", "data_difflib_score")
MARKDOWN_FORMAT = ("num_rows_match", "num_cols_match", "columns_levenshtein_score", "columns_difflib_score")
LINE_END = re.compile(r"\n|<NEWLINE>|<newline>")
NOT_FOUND = -1


@dataclass(frozen=True, slots=True)
class RawTable:
    """Rows of stripped cells, with the column names as the first row."""

    rows: Sequence[Sequence[str]]

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns, which are the first row."""
        return self.rows[0] if self.rows else ()

    @property
    def data(self) -> list[str]:
        """The cells of all rows but the first, in order."""
        return [cell for row in self.rows[1:] for cell in row]

    @property
    def width(self) -> int:
        """The number of cells in the widest row."""
        return max(map(len, self.rows), default=0)


def markdown_parts(prediction: str, reference: str) -> dict[str, float]:
    """Compute all parts of the score for raw text, each as the mean over the two tables."""
    scored = [
        _table_parts(read_released_markdown(predicted), read_released_markdown(wanted))
        for predicted, wanted in zip(cut_tables(prediction), cut_tables(reference), strict=True)
    ]
    return {name: sum(table[name] for table in scored) / len(scored) for name in (*MARKDOWN_FORMAT, *MARKDOWN_CONTENT)}


def cut_tables(text: str) -> tuple[str, str]:
    """Return the texts of the Team and the Player table.

    The script searches in the lower-case text but cuts the original one; if lower-casing changes the length
    (İ), the cuts are wrong. A missing name has the place -1, which is used like any other: a search from
    there sees only the last character, and a slice that ends there lacks it.
    """
    lower = text.lower()
    team = lower.find("team")
    player = _find_from(lower, team, "player")
    team_starts, team_ends = _find_from(lower, team, "|"), text[:player].rfind("|")
    player_starts, player_ends = _find_from(lower, player, "|"), text.rfind("|")
    return text[team_starts : team_ends + 1], text[player_starts : player_ends + 1]


def _find_from(text: str, start: int, wanted: str) -> int:
    # Names longer than one character cannot be found within the last character, but a bar can, with this
    # place.
    return NOT_FOUND if start == NOT_FOUND else text.find(wanted, start)


def read_released_markdown(text: str) -> RawTable:
    """Split a table's text into rows and cells, without separator rows and empty outer columns."""
    rows = [[cell.strip() for cell in line.split("|")] for line in LINE_END.split(text)]
    rows = [row for row in rows if "".join(row).strip("-=")]
    if not any(row[0] for row in rows):
        rows = [row[1:] for row in rows]
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    return RawTable(rows)


def _table_parts(prediction: RawTable, reference: RawTable) -> dict[str, float]:
    return {
        "num_rows_match": float(len(prediction.rows) == len(reference.rows)),
        "num_cols_match": float(prediction.width == reference.width),
        "columns_levenshtein_score": levenshtein_similarity(prediction.columns, reference.columns),
        "columns_difflib_score": matching_ratio(prediction.columns, reference.columns),
        "data_levenshtein_score": levenshtein_similarity(prediction.data, reference.data),
        "data_difflib_score": matching_ratio(prediction.data, reference.data),
    }


@dataclass(frozen=True, slots=True)
class HScore:
    """An H-Score.

    Attributes:
        content: similarity of the contents, at most 2 (LaTeX: 3).
        format: similarity of the forms, at most 4 (HTML: 3).
        parts: the components of both sums, by name; a component can be negative.
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

    The texts are compared without changes; `strip_answer` removes the text around a table. Content and format
    are sums of their parts.

    Args:
        prediction: the model's text.
        reference: the table's markup.
        format: the markup of both texts.
        variant: the definition; only "released" exists.

    Raises:
        ValueError: the format is unknown.
        ScoringError: the variant "standard" was removed (use `table_score`); or a text has no score or takes
            exponential time (HTML nested too deeply, LaTeX that pylatexenc cannot parse).
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
    content: tuple[str, ...]
    form: tuple[str, ...]
    if format == "markdown":
        values, content, form = markdown_parts(prediction, reference), MARKDOWN_CONTENT, MARKDOWN_FORMAT
    elif format == "html":
        values, content, form = html_parts(prediction, reference), HTML_CONTENT, HTML_FORMAT
    else:
        values, content, form = latex_parts(prediction, reference), LATEX_CONTENT, LATEX_FORMAT
    return HScore(sum(values[name] for name in content), sum(values[name] for name in form), values)
