"""Published metrics for tables: TEDS, GriTS, RMS and the F1 of names and cells, each as the mean over wanted tables.

A wanted table without a predicted table counts 0.0. The arguments `prediction`, `reference` and `format` are those of
`table_score`.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Literal

import numpy as np

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables.alignment import Floats, pair_lines_in_order
from evalsuite.metrics.tables.grid import CellGrid
from evalsuite.metrics.tables.released import compute_matching_ratio
from evalsuite.metrics.tables.table_score import match_tables

TableElement = tuple[str, ...]
Matched = tuple[float, int, int]  # The numbers of matched, predicted and wanted elements.


def _list_table_pairs(prediction: Any, reference: Any, markup: str | None) -> list[tuple[CellGrid | None, CellGrid]]:
    """List pairs of a predicted and a wanted table, one per wanted table; None stands for a missing predicted table."""
    match = match_tables(prediction, reference, markup)
    predicted, wanted = match.predicted.tables, match.wanted.tables
    return [
        (None if pair.predicted is None else predicted[pair.predicted], wanted[pair.wanted])
        for pair in match.content.pairs
    ]


class F1(float):
    """An F1 in [0, 1] as a float that also stores its precision and recall."""

    precision: float
    recall: float


def _divide_or_zero(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _average_over_tables(
    prediction: Any, reference: Any, markup: str | None, compare: Callable[[CellGrid, CellGrid], Matched]
) -> F1:
    rates = []
    for predicted, wanted in _list_table_pairs(prediction, reference, markup):
        matched, size, wanted_size = compare(predicted, wanted) if predicted else (0.0, 0, 0)
        sizes = (size + wanted_size, size, wanted_size)
        rates.append(list(map(_divide_or_zero, (2 * matched, matched, matched), sizes)))
    f1, precision, recall = (sum(column) / len(rates) for column in zip(*rates, strict=True))
    mean = F1(f1)
    mean.precision, mean.recall = precision, recall
    return mean


def _pad_rows(table: CellGrid) -> list[list[str]]:
    return [[*row, *[""] * (table.width - len(row))] for row in table.rows]


def _require_few_pairs(metric: str, noun: str, count: int, other_count: int, max_pairs: int) -> None:
    if count * other_count > max_pairs:
        raise ScoringError(
            f"{metric} compares at most {max_pairs:,} pairs of {noun}, not {count:,} x {other_count:,}; use table_score"
        )


LONGEST_SPAN = 6  # Maximum digits of `colspan` and `rowspan`: a span with more digits counts as 1.
MOST_STEPS = 1_000_000  # Maximum product of the two trees' numbers of nodes; a larger product would take minutes.


@dataclass(frozen=True, slots=True)
class TableNode:
    """A node of a table's tree, such as the table, a row or a cell."""

    tag: str
    spans: tuple[int, int] = (1, 1)  # The columns and rows that a cell covers.
    content: Sequence[str] = ()  # A cell's text, with one entry per character or inline tag.


@dataclass(frozen=True, slots=True)
class TableTree:
    """A table as a tree of rows and cells; cells have no child nodes."""

    nodes: list[TableNode]  # The nodes in postorder; the last node is the table.
    leftmost: list[int]  # For each node, the index of its leftmost leaf.
    size: int  # The number of elements in the table, also within cells.


def teds(prediction: Any, reference: Any, *, format: str | None = None) -> float:  # noqa: A002
    """Compute TEDS, a similarity based on the edit distance between two tables as trees of rows and cells.

    Source: Zhong, ShafieiBavani and Jimeno Yepes, Image-based table recognition: data, model, and evaluation (arXiv
    1911.10683). The distance is computed by the algorithm of Zhang and Shasha (Simple fast algorithms for the editing
    distance between trees, 1989). The APTED of the authors' code gives the same value. The authors' code drops the text
    of `th`; this function reads `th` as `td`. If the two tables have different markup, each is first reduced to a tree
    of only rows and cells.

    Raises:
        ScoringError: the reference contains no readable table, or the tables are too large to be compared in reasonable
            time.
    """
    return _compute_teds(prediction, reference, format, with_content=True)


def teds_structure(prediction: Any, reference: Any, *, format: str | None = None) -> float:  # noqa: A002
    """Compute TEDS of the tables' structure, without the cells' text; often called TEDS-Struct or S-TEDS.

    Raises:
        ScoringError: the reference contains no readable table, or the tables are too large to be compared in reasonable
            time.
    """
    return _compute_teds(prediction, reference, format, with_content=False)


def _compute_teds(prediction: Any, reference: Any, markup: str | None, *, with_content: bool) -> float:
    match = match_tables(prediction, reference, markup)
    sides = (match.predicted, match.wanted)
    if all(side.markup == "html" for side in sides) and (trees := [_read_html_trees(side.text) for side in sides])[1]:
        predicted, wanted = trees
    else:
        predicted, wanted = ([_make_grid_tree(table) for table in side.tables] for side in sides)
    scores = [
        _compute_tree_similarity(predicted[pair.predicted], wanted[place], with_content=with_content)
        if pair.predicted is not None and pair.predicted < len(predicted)
        else 0.0
        for place, pair in enumerate(match.content.pairs)
        if place < len(wanted)
    ]
    return sum(scores) / len(scores)


def _read_html_trees(markup: str) -> list[TableTree]:
    """Return the tables that have cells as trees."""
    from bs4 import BeautifulSoup

    trees = list[TableTree]()
    for table in BeautifulSoup(markup.encode("utf-8", "replace").decode("utf-8"), "lxml").find_all("table"):
        if not table.find(["td", "th"]):
            continue
        tree = TableTree([], [], len(table.find_all(True)))
        trees.append(tree)
        # Avoid recursion, because markup may be nested to any depth. An element waits with None until it is read, then
        # with the index of its leftmost leaf until its children have been read.
        waiting: list[tuple[Any, int | None]] = [(table, None)]
        while waiting:
            element, start = waiting.pop()
            if start is not None:
                tree.nodes.append(TableNode(element.name))
                tree.leftmost.append(start)
            elif element.name in {"td", "th"}:
                spans = (_read_span(element.get("colspan")), _read_span(element.get("rowspan")))
                tree.leftmost.append(len(tree.nodes))
                tree.nodes.append(TableNode("td", spans, _list_characters_and_tags(element)))
            else:
                waiting.append((element, len(tree.nodes)))
                waiting += [(child, None) for child in reversed(element.find_all(True, recursive=False))]
    return trees


def _read_span(written: str | None) -> int:
    return int(written) if written and written.isdecimal() and len(written) <= LONGEST_SPAN else 1


def _list_characters_and_tags(cell: Any) -> list[str]:
    tokens: list[str] = []
    waiting: list[Any] = [*reversed(cell.contents)]
    while waiting:
        child = waiting.pop()
        if isinstance(child, (str, list)):
            tokens += child  # The characters of a text, or a closing tag.
        else:
            tokens.append(f"<{child.name}>")
            waiting += [[f"</{child.name}>"], *reversed(child.contents)]
    return tokens


def _make_grid_tree(table: CellGrid) -> TableTree:
    covered = {
        (row, column): span
        for span in table.spans
        for row in range(span.row, span.row + span.rows)
        for column in range(span.column, span.column + span.columns)
    }
    nodes, leftmost = list[TableNode](), list[int]()
    for place, texts in enumerate(table.rows):
        start = len(nodes)
        for column, text in enumerate(texts):
            span = covered.get((place, column))
            if span is None or (span.row, span.column) == (place, column):
                spans = (span.columns, span.rows) if span else (1, 1)
                leftmost.append(len(nodes))
                nodes.append(TableNode("td", spans, text))
        nodes.append(TableNode("tr"))
        leftmost.append(start)
    return TableTree([*nodes, TableNode("table")], [*leftmost, 0], len(nodes))


def _compute_tree_similarity(one: TableTree, two: TableTree, *, with_content: bool) -> float:
    _require_few_pairs("TEDS", "elements", len(one.nodes), len(two.nodes), MOST_STEPS)
    rename = [[_measure_rename_cost(a, b, with_content=with_content) for b in two.nodes] for a in one.nodes]
    trees = [[0.0] * len(two.nodes) for _ in one.nodes]
    for i in _find_keyroots(one.leftmost):
        for j in _find_keyroots(two.leftmost):
            _fill_subtree_distances(one.leftmost, two.leftmost, i, j, rename, trees)
    # Clip at 0, because the distance can exceed the larger tree's size: a row is never renamed to a cell.
    return max(0.0, 1.0 - trees[-1][-1] / max(one.size, two.size, 1))


def _find_keyroots(leftmost: list[int]) -> list[int]:
    """Return Zhang and Shasha's keyroots: per leftmost leaf, the topmost node whose subtree begins with that leaf."""
    return sorted({leaf: place for place, leaf in enumerate(leftmost)}.values())


def _fill_subtree_distances(
    left_one: list[int], left_two: list[int], i: int, j: int, rename: list[list[float]], trees: list[list[float]]
) -> None:
    """Fill `trees` with the distances between subtrees whose roots lie on the leftmost paths below `i` and `j`."""
    low_i, low_j = left_one[i], left_two[j]
    before = [float(column) for column in range(j - low_j + 2)]
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


def _measure_rename_cost(one: TableNode, two: TableNode, *, with_content: bool) -> float:
    if one.tag != two.tag or one.spans != two.spans:
        return 1.0
    if not with_content or one.tag != "td" or not (one.content or two.content):
        return 0.0
    import Levenshtein

    return Levenshtein.distance(one.content, two.content) / max(len(one.content), len(two.content))


MOST_COMPARISONS = 20_000_000
"""Maximum pairs of cells, because memory and time grow with the pairs: two tables of 200 by 20 have 16 million."""
Box = tuple[int, int, int, int]


def grits_content(prediction: Any, reference: Any, *, format: str | None = None) -> F1:  # noqa: A002
    """Compute the GriTS of content, which compares cells by difflib's ratio.

    Source: Smock, Pesala and Abraham, GriTS: Grid table similarity metric for table structure recognition
    (arXiv 2203.12555).

    Raises:
        ScoringError: the reference contains no readable table, or the tables are too large to be compared in reasonable
            time.
    """
    compare = partial(_count_grits_matches, _pad_rows, compute_matching_ratio)
    return _average_over_tables(prediction, reference, format, compare)


def grits_topology(prediction: Any, reference: Any, *, format: str | None = None) -> F1:  # noqa: A002
    """Compute the GriTS of topology, which compares cells by the overlap of the positions that they cover.

    Raises:
        ScoringError: the reference contains no readable table, or the tables are too large to be compared in reasonable
            time.
    """
    compare = partial(_count_grits_matches, _make_boxes, _measure_box_overlap)
    return _average_over_tables(prediction, reference, format, compare)


def _make_boxes(table: CellGrid) -> list[list[Box]]:
    """Return the edges (left, top, right, bottom) of each position's cell, relative to the position."""
    boxes: list[list[Box]] = [[(0, 0, 1, 1)] * table.width for _ in table.rows]
    for span in table.spans:
        for row in range(span.row, min(span.row + span.rows, len(boxes))):
            for column in range(span.column, min(span.column + span.columns, table.width)):
                left, top = span.column - column, span.row - row
                boxes[row][column] = (left, top, left + span.columns, top + span.rows)
    return boxes


def _measure_box_overlap(one: Box, two: Box) -> float:
    width = min(one[2], two[2]) - max(one[0], two[0])
    height = min(one[3], two[3]) - max(one[1], two[1])
    shared = max(0, width) * max(0, height)
    both = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, two)) - shared
    return shared / both


def _count_grits_matches(
    list_rows: Callable[[CellGrid], list[list[Any]]],
    similarity: Callable[[Any, Any], float],
    predicted: CellGrid,
    wanted: CellGrid,
) -> Matched:
    """Count the matches of two tables by the similarity of the cells that `list_rows` lists for each row."""
    grids = (list_rows(wanted), list_rows(predicted))
    sizes = [len(grid) * len(grid[0]) for grid in grids]
    _require_few_pairs("GriTS", "cells", sizes[0], sizes[1], MOST_COMPARISONS)
    numbers = [{cell: place for place, cell in enumerate(dict.fromkeys(chain(*grid)))} for grid in grids]
    rewards = np.array([[similarity(one, two) for two in numbers[1]] for one in numbers[0]])
    codes = [
        np.array([[number[cell] for cell in row] for row in grid]) for grid, number in zip(grids, numbers, strict=True)
    ]
    # The array's axes are wanted row, predicted row, wanted column, predicted column.
    cells = rewards[codes[0][:, None, :, None], codes[1][None, :, None, :]]
    # Among alignments of equal rewards, the authors' code takes the one with more pairs.
    rows, columns = (
        pair_lines_in_order(_sum_best_alignments(each), prefers_pairs=True)
        for each in (cells, cells.transpose(2, 3, 0, 1))
    )
    total = sum(cells[one, two, here, there] for one, two in rows for here, there in columns)
    return float(total), sizes[1], sizes[0]


def _sum_best_alignments(cell_rewards: Floats) -> Floats:
    """Find the best alignment of the cells of each pair of lines; return each pair's total reward."""
    best = np.zeros((cell_rewards.shape[3] + 1, *cell_rewards.shape[:2]))
    for here in range(cell_rewards.shape[2]):
        above = best.copy()
        for there in range(cell_rewards.shape[3]):
            skipped = np.maximum(above[there + 1], best[there])
            best[there + 1] = np.maximum(skipped, above[there] + cell_rewards[:, :, here, there])
    return np.asarray(best[-1])


TEXT_THRESHOLD = 0.5
NUMBER_THRESHOLD = 0.1
"""Relative distances from which two texts or two numbers count as different, as in the authors' code."""
MOST_POINTS = 2_000


def rms(prediction: Any, reference: Any, *, format: str | None = None) -> F1:  # noqa: A002
    """Compute the F1 of RMS, for the predicted table or its transpose, whichever is higher.

    RMS compares tables as sets of mappings from the names of a row and a column to a value. Source: Liu et al.,
    DePlot: One-shot visual language reasoning by plot-to-table translation (arXiv 2212.10505).

    Raises:
        ScoringError: the reference contains no readable table, or a table has more values than can be paired
            in a few seconds.
    """
    return _average_over_tables(prediction, reference, format, _count_rms_matches)


def _count_rms_matches(predicted: CellGrid, wanted: CellGrid) -> Matched:
    target = _map_names_to_values(wanted.rows, wanted.name)
    filled = _pad_rows(predicted)
    sides = (_map_names_to_values(rows, predicted.name) for rows in (filled, list(zip(*filled, strict=True))))
    matched = [_count_matched_values(side, target) for side in sides]
    return max(matched, key=lambda match: _divide_or_zero(match[0], match[1] + match[2]))


def _map_names_to_values(rows: Sequence[Sequence[str]], title: str) -> dict[str, str]:
    points = {"title": title.lower()} if title else {}
    head = rows[0] if len(rows) > 1 and len(rows[0]) > 1 else ()
    for row in rows[1:]:
        for name, cell in zip(head[1:], row[1:], strict=False):
            points[f"{row[0]} {name}".lower()] = cell.lower()
    return points


def _count_matched_values(predicted: dict[str, str], wanted: dict[str, str]) -> Matched:
    from scipy.optimize import linear_sum_assignment

    if not predicted or not wanted:
        return (0.0, len(predicted), len(wanted)) if predicted or wanted else (1.0, 1, 1)
    if (most := max(len(predicted), len(wanted))) > MOST_POINTS:
        raise ScoringError(f"RMS compares tables of at most {MOST_POINTS:,} values, not {most:,}; use table_score")
    names, others = list(wanted), list(predicted)
    alike = np.array([[_measure_text_similarity(name, other) for other in others] for name in names])
    score = sum(
        alike[one, two] * _measure_value_similarity(wanted[names[one]], predicted[others[two]])
        for one, two in zip(*linear_sum_assignment(alike, maximize=True), strict=True)
    )
    return float(score), len(predicted), len(wanted)


def _measure_text_similarity(one: str, two: str) -> float:
    import Levenshtein

    distance = Levenshtein.distance(one, two) / max(len(one), len(two), 1)
    return 1.0 - distance if distance < TEXT_THRESHOLD else 0.0


def _measure_value_similarity(wanted: str, predicted: str) -> float:
    target, number = _parse_number(wanted), _parse_number(predicted)
    if number is not None and target:
        distance = min(abs((target - number) / target), 1.0)
        return 1.0 - distance if distance < NUMBER_THRESHOLD else 0.0
    return 1.0 if wanted == predicted else _measure_text_similarity(wanted, predicted)


def _parse_number(text: str) -> float | None:
    try:
        number = float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None  # "NaN" and "inf" are compared as text.


@dataclass(frozen=True, slots=True)
class CellF1:
    """The F1, in [0, 1], of the names of rows, of the names of columns, and of all other cells."""

    rows: float
    columns: float
    cells: float


def cell_f1(
    prediction: Any,
    reference: Any,
    *,
    format: str | None = None,  # noqa: A002
    similarity: Literal["exact", "chrf"] = "exact",
) -> CellF1:
    """Compare the names and cells of each wanted table with those of its predicted table; return the mean F1 values.

    Raises:
        ScoringError: the reference contains no readable table.
    """
    pairs = _list_table_pairs(prediction, reference, format)
    totals = [0.0, 0.0, 0.0]
    for predicted, wanted in pairs:
        elements = zip(_list_names_and_cells(predicted or CellGrid(())), _list_names_and_cells(wanted), strict=True)
        for place, sides in enumerate(elements):
            if not all(sides):
                totals[place] += float(not any(sides))
            elif similarity == "exact":
                totals[place] += 2 * len(sides[0] & sides[1]) / (len(sides[0]) + len(sides[1]))
            else:
                totals[place] += _compute_chrf_f1(*sides)
    return CellF1(*(total / len(pairs) for total in totals))


def _list_names_and_cells(table: CellGrid) -> tuple[set[TableElement], set[TableElement], set[TableElement]]:
    """Return the names of rows, the names of columns, and the other cells, each with its row's and column's name."""
    names, body = table.columns[1:], table.rows[1:]
    rows: set[TableElement] = {(row[0] if row else "",) for row in body}
    columns: set[TableElement] = {(name,) for name in names}
    cells: set[TableElement] = {
        (row[0], name, cell) for row in body for name, cell in zip(names, row[1:], strict=False) if cell
    }
    return rows, columns, cells


def _compute_chrf_f1(predicted: Collection[TableElement], wanted: Collection[TableElement]) -> float:
    alike = [[math.prod(map(_compute_chrf, one, two)) for two in wanted] for one in predicted]
    precision = sum(map(max, alike)) / len(predicted)
    recall = sum(map(max, zip(*alike, strict=True))) / len(wanted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@lru_cache(maxsize=65_536)
def _compute_chrf(one: str, two: str) -> float:
    from sacrebleu import sentence_chrf

    return float(sentence_chrf(one, [two]).score) / 100
