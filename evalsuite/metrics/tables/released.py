"""Compute the H-Score exactly as the scripts released with Struc-Bench do (arXiv 2309.08963), mistakes included.

Papers report these scripts' numbers, so content and structure agree with the scripts to 1e-9. This module uses none of
the scripts' code; perf/h_score_plain.py implements the same definition step by step, and tests compare both
implementations.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain
from typing import Any

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables.grid import VARIANTS, Format, Variant
from evalsuite.metrics.tables.html import WHITELIST, parse_html
from evalsuite.metrics.tables.raw_text import LINE_END
from evalsuite.metrics.tables.readings import parse_format

HTML_CONTENT = ("cells_text_levenshtein_score", "cells_text_difflib_score")
HTML_FORMAT = ("num_cells_match", "struct_levenshtein_score", "struct_difflib_score")
TREE_LIMIT = 100_000  # Maximum tags of a flattened tree: fifteen levels of nesting stay below this limit.
CELLS = {"table": ("th", "td"), "ul": ("li",), "ol": ("li",), "li": ("li",)}
"""The tags that mark cells. The first of these four keys that the reference contains selects the tags."""

OPENING = {tag: chr(0x100 + 2 * place) for place, tag in enumerate(sorted(WHITELIST))}
CLOSING = {tag: chr(ord(char) + 1) for tag, char in OPENING.items()}
"""One character for each whitelisted tag, because trees are compared as strings."""

BLANKS = " \n\t\f\r"
PRESERVING = frozenset({"pre", "textarea"})
NOT_TEXT = frozenset({"rt", "rp", "style", "script", "template"})
"""BeautifulSoup finds no text in `NOT_TEXT`, and reduces a blank text outside of `PRESERVING` to one character."""


class ReleasedPage:
    """The parts of a page that the H-Score compares; lxml calls the methods `start`, `end`, `data` and `close`."""

    def __init__(self, markup: str) -> None:
        # The whitelisted elements in document order: tag, start and end of the element's text within the page's text.
        self.elements: list[tuple[str, int, int]] = []
        self.tags: list[str] = []  # Starts and ends of elements in order, as characters of `OPENING` and `CLOSING`.
        self._open: list[int] = []
        self._texts: list[str] = []
        self._length = 0
        self._pieces: list[str] = []
        self._preserving = self._hiding = 0
        parse_html(markup, self)
        self.text = "".join(self._texts)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002 - lxml's signature
        self._end_text()
        if tag in OPENING:
            self._open.append(len(self.elements))
            self.elements.append((tag, self._length, self._length))
            self.tags.append(OPENING[tag])
        self._preserving += tag in PRESERVING
        self._hiding += tag in NOT_TEXT

    def end(self, tag: str) -> None:
        self._end_text()
        if tag in CLOSING:
            place = self._open.pop()
            self.elements[place] = (*self.elements[place][:2], self._length)
            self.tags.append(CLOSING[tag])
        self._preserving -= tag in PRESERVING
        self._hiding -= tag in NOT_TEXT

    def data(self, text: str) -> None:
        self._pieces.append(text)

    def close(self, *_: str) -> None:
        """End the current text at a comment, a processing instruction, a document type or the end of the page."""
        self._end_text()

    comment = pi = doctype = close

    def _end_text(self) -> None:
        """End the current text, and join its pieces."""
        text = "".join(self._pieces)
        self._pieces.clear()
        if text and not self._hiding:
            if text.isspace() and not self._preserving and not text.strip(BLANKS):
                text = "\n" if "\n" in text else " "
            self._texts.append(text)
            self._length += len(text)

    def list_cells(self, tags: Collection[str]) -> list[str]:
        """Return the texts of elements with these tags; without tags, the nonempty texts of whitelisted elements."""
        if tags:
            return [self.text[start:end] for tag, start, end in self.elements if tag in tags]
        return [self.text[start:end] for _, start, end in self.elements if start < end]

    def flatten_tag_tree(self) -> str:
        """Return the flattened tag tree of the released script, with one character per tag.

        For each whitelisted tag among all descendants of a node, the script adds an opening tag, walks the subtree, and
        adds a closing tag. A child's descendants are also the node's descendants. Hence a node's result contains each
        child's result twice: once between the child's tags, and once alone.
        """
        walks: list[list[str]] = [[]]
        lengths = [0]
        for tag in self.tags:
            if not ord(tag) % 2:
                walks.append([])
                lengths.append(0)
                continue
            below, length = "".join(walks.pop()), lengths.pop()
            walks[-1] += (chr(ord(tag) - 1), below, tag, below)
            lengths[-1] += 2 + 2 * length
            if lengths[-1] > TREE_LIMIT:
                raise ScoringError(
                    f"the released H-Score flattens this HTML to more than {TREE_LIMIT:,} tags, because each level of "
                    "nesting doubles their number; use table_score"
                )
        return "".join(walks[0])


def score_html_parts(prediction: str, reference: str) -> dict[str, float]:
    """Compute all parts of the H-Score for HTML."""
    predicted, wanted = ReleasedPage(prediction), ReleasedPage(reference)
    present = {tag for tag, _, _ in wanted.elements}
    tags = next((tags for tag, tags in CELLS.items() if tag in present), ())
    cells, wanted_cells = predicted.list_cells(tags), wanted.list_cells(tags)
    tree, wanted_tree = predicted.flatten_tag_tree(), wanted.flatten_tag_tree()
    return {
        "num_cells_match": float(len(cells) == len(wanted_cells)),
        **_compute_similarities("cells_text", cells, wanted_cells),
        **_compute_similarities("struct", tree, wanted_tree),
    }


LATEX_CONTENT = ("caption_match_score", "data_levenshtein_score", "data_difflib_score")
LATEX_FORMAT = ("alignment_levenshtein_score", "alignment_difflib_score", "num_rows_match", "num_cols_match")
# pylatexenc may read at most `FEWEST_READINGS` tokens plus `READINGS` per character; it usually reads 1 or 2 per
# character.
READINGS, FEWEST_READINGS = 20, 50_000


def score_latex_parts(prediction: str, reference: str) -> dict[str, float]:
    """Compute all parts of the H-Score for LaTeX."""
    rows, caption, alignment = _read_latex(prediction)
    wanted_rows, wanted_caption, wanted_alignment = _read_latex(reference)
    return {
        **_compute_similarities("alignment", alignment, wanted_alignment),
        **_compute_similarities("data", list(chain(*rows)), list(chain(*wanted_rows))),
        "caption_match_score": float(caption == wanted_caption),
        **_compare_table_sizes(rows, wanted_rows),
    }


def _read_latex(latex: str) -> tuple[list[list[str]], str, str]:
    """Return the rows without blank cells, the caption ("None" without one) and the alignment of the first tabular."""
    nodes = _parse_latex_nodes(latex)
    environments = (node for kind, node, entering in _walk_nodes(nodes) if entering and kind == "Environment")
    tabular = next((node for node in environments if node.envname == "tabular"), None)
    if not tabular:
        return [], "None", ""
    if not tabular.nodeargd:
        raise ScoringError(_explain_unreadable_latex(latex, "the text ends where a tabular's columns should be"))
    # The column alignment is nearly always empty, because the released script skips the group that contains it. The
    # alignment is not empty if pylatexenc reads another piece as the argument, such as the `[` in
    # `\begin{tabular}[t]{ll}`.
    arguments = _walk_nodes(tabular.nodeargd.argnlist[:1], groups=False)
    alignment = "".join(node.chars for kind, node, entering in arguments if entering and kind == "Chars")
    return _read_rows(tabular.nodelist), _read_caption(nodes), alignment


def _parse_latex_nodes(latex: str) -> Sequence[Any]:
    from pylatexenc.latexwalker import LatexWalker

    class BoundedWalker(LatexWalker):  # type: ignore[misc]  # pylatexenc ships no types
        """Limits how many tokens are read, because each level of unclosed arguments doubles the number of reads."""

        tokens = FEWEST_READINGS + READINGS * len(latex)

        def get_token(self, *args: Any, **kwargs: Any) -> Any:
            self.tokens -= 1
            if self.tokens < 0:
                raise ScoringError("unclosed arguments nest too deeply to try all ways of closing them")
            return super().get_token(*args, **kwargs)

    try:
        return BoundedWalker(latex).get_latex_nodes()[0]  # type: ignore[no-any-return]
    except Exception as error:  # pylatexenc also raises errors of other kinds, because its parser has bugs.
        why = str(error) if isinstance(error, ScoringError) else f"{type(error).__name__}: {error}"
        raise ScoringError(_explain_unreadable_latex(latex, why)) from error


def _explain_unreadable_latex(latex: str, why: str) -> str:
    return (
        f"the released H-Score cannot be computed for this LaTeX of {len(latex)} characters, starting "
        f"{latex[:40]!r}: {why}; use table_score"
    )


def _walk_nodes(nodes: Sequence[Any], *, groups: bool = True) -> Iterator[tuple[str, Any, bool]]:
    """Yield each node on entering and on leaving it; arguments of a macro or environment come before its body.

    The first item is the short name of the node's class (`Chars` for `LatexCharsNode`); empty for a missing argument.
    """
    unseen = [(node, True) for node in reversed(nodes)]
    while unseen:
        node, entering = unseen.pop()
        kind = "" if node is None else type(node).__name__.removeprefix("Latex").removesuffix("Node")
        if kind == "Group" and not groups:
            continue
        yield kind, node, entering
        if entering:
            unseen.append((node, False))
            arguments = getattr(node, "nodeargd", None)
            children = [*(arguments.argnlist if arguments else ()), *(getattr(node, "nodelist", None) or ())]
            unseen += [(child, True) for child in reversed(children)]


def _read_rows(nodes: Sequence[Any]) -> list[list[str]]:
    r"""Split rows at `\\` and cells at `&`, ignoring groups, other macros and blank cells."""
    rows: list[list[str]] = [[""]]
    for kind, node, entering in _walk_nodes(nodes, groups=False):
        if not entering:
            continue
        if kind == "Chars":
            rows[-1][-1] += node.chars
        elif kind == "Specials" and node.specials_chars == "&":
            rows[-1].append("")
        elif kind == "Specials":
            rows[-1][-1] += node.specials_chars
        elif kind == "Macro" and node.macroname == "\\":
            rows.append([""])
    stripped = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    return [row for row in stripped if row]


def _read_caption(nodes: Sequence[Any]) -> str:
    r"""Return the text of the first group that starts after a `\caption`; without a caption, the word `None`."""
    has_begun = False
    for kind, node, entering in _walk_nodes(nodes):
        if has_begun and entering and kind == "Group":
            return _convert_to_text(node.nodelist)
        has_begun |= not entering and kind == "Macro" and node.macroname == "caption"
    return "None"


def _convert_to_text(nodes: Sequence[Any]) -> str:
    """Convert pylatexenc's nodes to text: characters, special characters and the delimiters of groups."""
    pieces = []
    for kind, node, entering in _walk_nodes(nodes):
        if kind == "Group":
            pieces.append(node.delimiters[0 if entering else 1])
        elif entering and kind == "Chars":
            pieces.append(node.chars)
        elif entering and kind == "Specials":
            pieces.append(node.specials_chars)
    return "".join(pieces)


MARKDOWN_CONTENT = ("data_levenshtein_score", "data_difflib_score")
MARKDOWN_FORMAT = ("num_rows_match", "num_cols_match", "columns_levenshtein_score", "columns_difflib_score")


def score_markdown_parts(prediction: str, reference: str) -> dict[str, float]:
    """Compute all parts of the H-Score for Markdown or other raw text, each as the mean over Team and Player table."""
    scored = []
    for sides in zip(_cut_out_tables(prediction), _cut_out_tables(reference), strict=True):
        predicted, wanted = map(_read_markdown, sides)
        # The first row contains the names of the columns.
        columns = _compute_similarities("columns", *((rows[0] if rows else []) for rows in (predicted, wanted)))
        data = _compute_similarities("data", list(chain(*predicted[1:])), list(chain(*wanted[1:])))
        scored.append({**_compare_table_sizes(predicted, wanted), **columns, **data})
    return {name: sum(table[name] for table in scored) / len(scored) for name in (*MARKDOWN_FORMAT, *MARKDOWN_CONTENT)}


def _cut_out_tables(text: str) -> tuple[str, str]:
    """Return the texts of the Team and the Player table.

    As in the released script, positions in the lower-case text cut the original text. This is wrong if lower case has
    another length (as for İ). If a name is missing, the script uses its position -1: searches then see only the last
    character, and slices end before the last character.
    """
    lower = text.lower()
    team = lower.find("team")
    player = _find_substring(lower, team, "player")
    team_starts, team_ends = _find_substring(lower, team, "|"), text[:player].rfind("|")
    player_starts, player_ends = _find_substring(lower, player, "|"), text.rfind("|")
    return text[team_starts : team_ends + 1], text[player_starts : player_ends + 1]


def _find_substring(text: str, start: int, wanted: str) -> int:
    # From -1, the script searches only the last character: no name fits there, and a bar there also has the index -1.
    return -1 if start == -1 else text.find(wanted, start)


def _read_markdown(text: str) -> list[list[str]]:
    """Split a table's text into rows and cells, without separator rows and empty outer columns."""
    rows = [[cell.strip() for cell in line.split("|")] for line in LINE_END.split(text)]
    rows = [row for row in rows if "".join(row).strip("-=")]
    if not any(row[0] for row in rows):
        rows = [row[1:] for row in rows]
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    return rows


def compute_levenshtein_similarity(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Return one minus the edit distance divided by twice the reference's length; 0.0 if the reference is empty.

    Source: the scripts released with Struc-Bench (arXiv 2309.08963). The measure is not symmetrical: an empty
    prediction scores 0.5, and a prediction more than twice as long as the reference may score below 0.
    """
    import Levenshtein

    if not reference:
        return 0.0
    # `score_hint` is a guess of the distance; it can save time and never changes the result.
    distance = Levenshtein.distance(prediction, reference, score_hint=len(reference) // 32)
    return 1.0 - distance / (2 * len(reference))


def compute_matching_ratio(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Return difflib's ratio: twice the number of matched elements over both lengths' sum; 1.0 if both are empty."""
    if list(prediction) == list(reference):
        return 1.0  # For equal sequences, difflib would compute the same more slowly.
    return SequenceMatcher(None, prediction, reference).ratio()


def _compute_similarities(prefix: str, predicted: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
    return {
        f"{prefix}_levenshtein_score": compute_levenshtein_similarity(predicted, wanted),
        f"{prefix}_difflib_score": compute_matching_ratio(predicted, wanted),
    }


def _compare_table_sizes(predicted: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> dict[str, float]:
    widths = [max(map(len, rows), default=0) for rows in (predicted, wanted)]
    return {"num_rows_match": float(len(predicted) == len(wanted)), "num_cols_match": float(widths[0] == widths[1])}


METHODS: Mapping[Format, tuple[Callable[[str, str], dict[str, float]], Sequence[str], Sequence[str]]] = {
    "markdown": (score_markdown_parts, MARKDOWN_CONTENT, MARKDOWN_FORMAT),
    "html": (score_html_parts, HTML_CONTENT, HTML_FORMAT),
    "latex": (score_latex_parts, LATEX_CONTENT, LATEX_FORMAT),
}
"""For each format, the function that computes the parts, and the parts whose sums are the two scores."""


@dataclass(frozen=True, slots=True)
class HScore:
    """An H-Score: the similarity of a predicted table to the wanted table, in content and in format.

    Attributes:
        content: similarity of the contents, at most 2 (LaTeX: 3).
        format: similarity of the forms, at most 4 (HTML: 3).
        parts: the terms by name; `content` and `format` are sums of terms. A term can be negative.
    """

    content: float
    format: float
    parts: dict[str, float]


def h_score(
    prediction: str,
    reference: str,
    *,
    format: str,  # noqa: A002 - the word of the contract
    variant: Variant = "released",
) -> HScore:
    """Score a predicted table as the scripts released with Struc-Bench do.

    The texts are compared as they are; call `strip_answer` first to remove the text around a table. Content and
    format are sums of their parts. With the Levenshtein distance D of prediction p and reference g, lev(p, g) is
    1 - D(p, g) / (2 * len(g)); sm is difflib's ratio.

    - Raw text with "team" and "player". Content: lev and sm of the cells below the first row. Format: equal row counts,
      equal column counts, lev and sm of the column names, equal table names.
    - LaTeX. Content: equal captions, lev and sm of all cells. Format: equal row counts, equal column counts, lev and sm
      of the alignment.
    - HTML. Content: lev and sm of the cells' texts. Format: equal counts of cells, of rows and of columns, lev and sm
      of the tags in document order.

    Args:
        prediction: the model's text.
        reference: the table's markup.
        format: the markup of both texts.
        variant: the definition; only "released" exists.

    Raises:
        ValueError: the format is unknown.
        ScoringError: the variant is "standard", which was removed (use `table_score`); HTML is nested too deeply;
            or pylatexenc cannot parse a text in LaTeX.
    """
    if variant == "standard":
        raise ScoringError(
            'h_score(variant="standard") was removed because it agrees little with people (r = 0.29); '
            "use table_score(prediction, reference, format=...), which has .content and .form"
        )
    if variant not in VARIANTS:
        raise ValueError(f"h_score has the variant {', '.join(VARIANTS)}, not {variant!r}")
    compute, content, form = METHODS[parse_format(format)]
    values = compute(prediction, reference)
    return HScore(sum(values[name] for name in content), sum(values[name] for name in form), values)
