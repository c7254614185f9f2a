"""TEDS: the edit distance between two tables as trees of rows and cells.

Source: Zhong, ShafieiBavani and Jimeno Yepes, Image-based table recognition: data, model, and evaluation
(arXiv 1911.10683). The distance is computed by Zhang and Shasha, Simple fast algorithms for the editing
distance between trees (1989), which gives the same value as the APTED of the authors' code. Unlike their
code, which drops the text of `th`, this reads `th` as `td`. If the two tables have different markup, both
become plain trees of rows and cells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables.table_score import match_tables

if TYPE_CHECKING:
    from evalsuite.metrics.tables.grid import CellGrid, Format


MOST_STEPS = 1_000_000
"""Maximum product of the two trees' numbers of nodes; more would take minutes."""


@dataclass(slots=True)
class Node:
    """An element of a table.

    Attributes:
        tag: the element's tag.
        spans: the columns and rows that a cell covers.
        content: a cell's text, with one entry per character or inline tag.
        children: the child elements; cells have none.
    """

    tag: str
    spans: tuple[int, int] = (1, 1)
    content: list[str] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)


def teds(prediction: str, reference: str, *, format: Format) -> float:  # noqa: A002
    """Compute TEDS, which compares cells by their texts.

    Raises:
        ScoringError: the reference contains no readable table, or the tables are too large for this
            definition.
    """
    return _teds(prediction, reference, format, with_content=True)


def teds_structure(prediction: str, reference: str, *, format: Format) -> float:  # noqa: A002
    """Compute TEDS of the structure alone, often called TEDS-Struct or S-TEDS.

    Raises:
        ScoringError: as for `teds`.
    """
    return _teds(prediction, reference, format, with_content=False)


def _teds(prediction: str, reference: str, written: Format, *, with_content: bool) -> float:
    match = match_tables(prediction, reference, format=written)
    sides = (match.predicted, match.wanted)
    if all(side.markup == "html" for side in sides) and (trees := [_html_trees(side.text) for side in sides])[1]:
        predicted, wanted = trees
    else:
        predicted, wanted = ([_grid_tree(table) for table in side.tables] for side in sides)
    scores = [
        _similarity(*predicted[pair.predicted], *wanted[place], with_content=with_content)
        if pair.predicted is not None and pair.predicted < len(predicted)
        else 0.0
        for place, pair in enumerate(match.content.pairs)
        if place < len(wanted)
    ]
    return sum(scores) / len(scores)


def _html_trees(markup: str) -> list[tuple[Node, int]]:
    """Return each table that is not nested in another, with the number of elements within it."""
    from bs4 import BeautifulSoup

    tables = BeautifulSoup(markup, "lxml").find_all("table")
    return [(_html_node(table), len(table.find_all(True))) for table in tables if table.find(["td", "th"])]


def _html_node(element: Any) -> Node:
    if element.name in {"td", "th"}:
        spans = tuple(
            int(text) if (text := str(element.get(name, "1"))).isdecimal() else 1 for name in ("colspan", "rowspan")
        )
        return Node("td", (spans[0], spans[1]), list(_tokens(element)))
    return Node(element.name, children=[_html_node(child) for child in element.find_all(True, recursive=False)])


def _tokens(element: Any) -> list[str]:
    tokens: list[str] = []
    for child in element.children:
        if child.name is None:
            tokens += str(child)
        else:
            tokens += [f"<{child.name}>", *_tokens(child), f"</{child.name}>"]
    return tokens


def _grid_tree(table: CellGrid) -> tuple[Node, int]:
    covered = {
        (row, column): span
        for span in table.spans
        for row in range(span.row, span.row + span.rows)
        for column in range(span.column, span.column + span.columns)
    }
    root = Node("table")
    for place, texts in enumerate(table.rows):
        row = Node("tr")
        for column, text in enumerate(texts):
            span = covered.get((place, column))
            if span is None:
                row.children.append(Node("td", content=list(text)))
            elif (span.row, span.column) == (place, column):
                row.children.append(Node("td", (span.columns, span.rows), list(text)))
        root.children.append(row)
    return root, len(table.rows) + sum(len(row.children) for row in root.children)


def _similarity(one: Node, size: int, two: Node, other: int, *, with_content: bool) -> float:
    # The distance can exceed the size, because a row cannot be paired with cells of another depth.
    return max(0.0, 1.0 - _distance(one, two, with_content=with_content) / max(size, other, 1))


def _distance(one: Node, two: Node, *, with_content: bool) -> float:
    """Compute Zhang and Shasha's distance, on trees in postorder with the leftmost leaf below each node."""
    first, second = _Postorder(one), _Postorder(two)
    if len(first.nodes) * len(second.nodes) > MOST_STEPS:
        raise ScoringError(
            f"TEDS compares each node with each other: {len(first.nodes)} times {len(second.nodes)} are too many"
        )
    rename = [[_rename(a, b, with_content=with_content) for b in second.nodes] for a in first.nodes]
    trees = [[0.0] * len(second.nodes) for _ in first.nodes]
    for i in first.roots:
        for j in second.roots:
            _fill(first.leftmost, second.leftmost, i, j, rename, trees)
    return trees[-1][-1]


class _Postorder:
    """A tree's nodes in postorder, the leftmost leaf of each node, and the nodes at which a path to a leaf begins."""

    def __init__(self, root: Node) -> None:
        self.nodes: list[Node] = []
        self.leftmost: list[int] = []
        self._visit(root)
        last = {leaf: place for place, leaf in enumerate(self.leftmost)}
        self.roots = sorted(last.values())

    def _visit(self, root: Node) -> None:
        # Avoid recursion, because markup may be nested to any depth.
        waiting: list[tuple[Node, int | None]] = [(root, None)]
        while waiting:
            node, start = waiting.pop()
            if start is None:
                waiting.append((node, len(self.nodes)))
                waiting += [(child, None) for child in reversed(node.children)]
            else:
                self.leftmost.append(start)
                self.nodes.append(node)


def _fill(
    left_one: list[int], left_two: list[int], i: int, j: int, rename: list[list[float]], trees: list[list[float]]
) -> None:
    """Compute the distances between all subtrees on the paths that end in these two nodes."""
    low_i, low_j = left_one[i], left_two[j]
    width = j - low_j + 2
    before = [float(column) for column in range(width)]
    forest = [before]
    for a in range(low_i, i + 1):
        row = [before[0] + 1.0]
        for b in range(low_j, j + 1):
            column = b - low_j
            least = min(before[column + 1], row[column]) + 1.0
            if left_one[a] == low_i and left_two[b] == low_j:
                least = min(least, before[column] + rename[a][b])
                trees[a][b] = least
            else:
                least = min(least, forest[left_one[a] - low_i][left_two[b] - low_j] + trees[a][b])
            row.append(least)
        forest.append(row)
        before = row


def _rename(one: Node, two: Node, *, with_content: bool) -> float:
    if one.tag != two.tag or one.spans != two.spans:
        return 1.0
    if not with_content or one.tag != "td" or not (one.content or two.content):
        return 0.0
    import Levenshtein

    return Levenshtein.distance(one.content, two.content) / max(len(one.content), len(two.content))
