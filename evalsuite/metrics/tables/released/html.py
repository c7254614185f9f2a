"""Released definition, HTML: the texts of cells, and the tag tree with each node once for every ancestor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables.html_events import WHITELIST, HtmlListener, listen
from evalsuite.metrics.tables.similarity import levenshtein_similarity, matching_ratio

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

CONTENT = ("cells_text_levenshtein_score", "cells_text_difflib_score")
FORMAT = ("num_cells_match", "struct_levenshtein_score", "struct_difflib_score")
TREE_LIMIT = 100_000
"""Greatest length of a flattened tag tree. Fifteen whitelisted tags, each in the other, stay below it."""

CELLS = {"table": ("th", "td"), "ul": ("li",), "ol": ("li",), "li": ("li",)}
"""What is a cell, by the first of these tags that the reference has."""

OPENING = {tag: chr(0x100 + 2 * place) for place, tag in enumerate(sorted(WHITELIST))}
CLOSING = {tag: chr(ord(char) + 1) for tag, char in OPENING.items()}
"""A character for each whitelisted tag: trees are compared as strings."""

BLANKS = " \n\t\f\r"
PRESERVING = frozenset({"pre", "textarea"})
NOT_TEXT = frozenset({"rt", "rp", "style", "script", "template"})
"""BeautifulSoup: blank text is cut to one character outside the former, no text at all in the latter."""
SPECIAL = PRESERVING | NOT_TEXT


class ReleasedPage(HtmlListener):
    """What the definition needs of a page.

    Attributes:
        elements: the whitelisted ones, in document order: the tag, where its text starts in the page's, and
            where it ends.
        tags: their start and end, in order, as characters of `OPENING` and `CLOSING`.
        text: all texts of the page, one after the other.
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
        """An element begins."""
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
        """An element ends."""
        if self._pieces:
            self._flush()
        if tag in CLOSING:
            self._ends[self._open.pop()] = self._length
            self.tags.append(CLOSING[tag])
        if tag in SPECIAL:
            self._preserving -= tag in PRESERVING
            self._hiding -= tag in NOT_TEXT

    def data(self, text: str) -> None:
        """A piece of text."""
        self._pieces.append(text)

    def comment(self, text: str) -> None:  # noqa: ARG002 - lxml's signature
        """A comment."""
        self._flush()

    def pi(self, target: str, text: str) -> None:  # noqa: ARG002 - lxml's signature
        """A processing instruction."""
        self._flush()

    def doctype(self, name: str, public: str, system: str) -> None:  # noqa: ARG002 - lxml's signature
        """A document type."""
        self._flush()

    def _flush(self) -> None:
        """Ends a text: pieces that nothing parts are one."""
        text = "".join(self._pieces)
        self._pieces.clear()
        if text and not self._hiding:
            if text.isspace() and not self._preserving and not text.strip(BLANKS):
                text = "\n" if "\n" in text else " "
            self._texts.append(text)
            self._length += len(text)

    def cells(self, tags: Collection[str]) -> list[str]:
        """The texts of all elements with these tags; of every whitelisted one that has text, if none."""
        if tags:
            return [self.text[start:end] for tag, start, end in self.elements if tag in tags]
        return [self.text[start:end] for _, start, end in self.elements if start < end]

    def cell_tags(self) -> tuple[str, ...]:
        """What counts as a cell if this page is the reference."""
        present = {tag for tag, _, _ in self.elements}
        return next((tags for tag, tags in CELLS.items() if tag in present), ())

    def tree(self) -> str:
        """The flattened tag tree of the released walk, a character a tag.

        For each whitelisted tag among all descendants of a node, the walk notes an opening tag, walks below
        it, and notes a closing tag. The walk below a node is thus, for each of its children in turn, the
        child's tags around the walk below it, and that walk once more, as its nodes are descendants too.

        Raises:
            ScoringError: the tree is longer than `TREE_LIMIT`.
        """
        if (length := self._tree_length()) > TREE_LIMIT:
            raise ScoringError(
                f"the released H-Score flattens this HTML to {_shown(length)} tags, more than the limit of "
                f"{TREE_LIMIT:,}: it notes every tag once for each subset of the tags around it; "
                'use variant="standard"'
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


def parts(prediction: str, reference: str) -> dict[str, float]:
    """All parts.

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
    # Each level of nesting doubles the length, so the number itself may have hundreds of digits.
    return f"{length:,}" if length < 10**12 else f"more than 10^{(length.bit_length() - 1) * 3 // 10}"
