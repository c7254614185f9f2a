"""The released H-Score spelled out step by step, to hold the fast one against: no part is shared with it.

Every step is the definition's own: BeautifulSoup's tree, a recursive walk over all descendants, Python's
difflib. Returned are the parts by name, as in `HScore.parts`.
"""

from __future__ import annotations

import difflib
import re
import warnings
from typing import Any

import bs4
import Levenshtein
from pylatexenc import latexwalker as lw

WHITELIST = ["table", "tr", "th", "td", "ul", "ol", "li", "div", "span", "p", "a", "img", "embed", "pre"]
WHITELIST += ["h1", "h2", "h3", "h4", "h5", "h6", "input", "button"]


def lev(p: list[str] | str, g: list[str] | str) -> float:
    return 1 - Levenshtein.distance(p, g) / (2 * len(g)) if g else 0.0


def sm(p: list[str] | str, g: list[str] | str) -> float:
    return difflib.SequenceMatcher(None, p, g).ratio()


def html(prediction: str, reference: str) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BeautifulSoup's, for text that looks like a path or like XML
        p, g = bs4.BeautifulSoup(prediction, "lxml"), bs4.BeautifulSoup(reference, "lxml")
    if g.find("table"):
        cells_p, cells_g = ([cell.text for cell in soup.find_all(["th", "td"])] for soup in (p, g))
    elif g.find("ul") or g.find("ol") or g.find("li"):
        cells_p, cells_g = ([cell.text for cell in soup.find_all("li")] for soup in (p, g))
    else:
        cells_p, cells_g = ([tag.text for tag in soup.find_all(WHITELIST) if tag.text] for soup in (p, g))
    tree_p, tree_g = walk(p), walk(g)
    return {
        "num_cells_match": float(len(cells_p) == len(cells_g)),
        "cells_text_levenshtein_score": lev(cells_p, cells_g),
        "cells_text_difflib_score": sm(cells_p, cells_g),
        "struct_levenshtein_score": lev(tree_p, tree_g),
        "struct_difflib_score": sm(tree_p, tree_g),
    }


def walk(node: bs4.Tag) -> list[str]:
    flat: list[str] = []
    for below in node.descendants:
        if isinstance(below, bs4.Tag) and below.name in WHITELIST:
            flat.append("<" + below.name + ">")
            flat.extend(walk(below))
            flat.append("</" + below.name + ">")
    return flat


def markdown(prediction: str, reference: str) -> dict[str, float]:
    scores = []
    for p_text, g_text in zip(team_and_player(prediction), team_and_player(reference), strict=True):
        p, g = rows_of(p_text), rows_of(g_text)
        p_data, g_data = ([cell for row in rows[1:] for cell in row] for rows in (p, g))
        p_names, g_names = (rows[0] if rows else [] for rows in (p, g))
        scores.append(
            {
                "num_rows_match": float(len(p) == len(g)),
                "num_cols_match": float(max(map(len, p), default=0) == max(map(len, g), default=0)),
                "columns_levenshtein_score": lev(p_names, g_names),
                "columns_difflib_score": sm(p_names, g_names),
                "data_levenshtein_score": lev(p_data, g_data),
                "data_difflib_score": sm(p_data, g_data),
            }
        )
    return {name: (scores[0][name] + scores[1][name]) / 2 for name in scores[0]}


def team_and_player(text: str) -> list[str]:
    lower = text.lower()

    def after(start: int, wanted: str) -> int:
        found = lower[start:].find(wanted)
        return -1 if found < 0 else start + found

    team = lower.find("team")
    player = after(team, "player")
    first = text[after(team, "|") : text[:player].rfind("|") + 1]
    return [first, text[after(player, "|") : text.rfind("|") + 1]]


def rows_of(text: str) -> list[list[str]]:
    rows = []
    for line in re.split("\n|<NEWLINE>|<newline>", text):
        cells = [cell.strip() for cell in line.split("|")]
        if any(char not in "-=" for cell in cells for char in cell):
            rows.append(cells)
    if all(row[0] == "" for row in rows):
        rows = [row[1:] for row in rows]
    if all(row[-1] == "" for row in rows):
        rows = [row[:-1] for row in rows]
    return rows


def latex(prediction: str, reference: str) -> dict[str, float]:
    (p_rows, p_caption, p_columns), (g_rows, g_caption, g_columns) = (latex_table(prediction), latex_table(reference))
    p_cells, g_cells = ([cell for row in rows for cell in row] for rows in (p_rows, g_rows))
    return {
        "alignment_levenshtein_score": lev(p_columns, g_columns),
        "alignment_difflib_score": sm(p_columns, g_columns),
        "data_levenshtein_score": lev(p_cells, g_cells),
        "data_difflib_score": sm(p_cells, g_cells),
        "caption_match_score": float(p_caption == g_caption),
        "num_rows_match": float(len(p_rows) == len(g_rows)),
        "num_cols_match": float(max(map(len, p_rows), default=0) == max(map(len, g_rows), default=0)),
    }


def latex_table(text: str) -> tuple[list[list[str]], str, str]:
    nodes = lw.LatexWalker(text).get_latex_nodes()[0]
    tabular = first_tabular(nodes)
    if tabular is None:
        return [], "None", ""
    rows: list[list[str]] = []
    row: list[str] = []
    cell = ""
    for node in flat(tabular.nodelist, into_groups=False):
        if isinstance(node, lw.LatexCharsNode):
            cell += node.chars
        elif isinstance(node, lw.LatexSpecialsNode) and node.specials_chars != "&":
            cell += node.specials_chars
        elif isinstance(node, lw.LatexSpecialsNode) or (isinstance(node, lw.LatexMacroNode) and node.macroname == "\\"):
            row, cell = [*row, cell.strip()], ""
            if isinstance(node, lw.LatexMacroNode):
                rows, row = [*rows, row], []
    rows.append([*row, cell.strip()])
    without_blanks = [[cell for cell in row if cell] for row in rows]
    columns = "".join(
        node.chars
        for node in flat(tabular.nodeargd.argnlist[:1], into_groups=False)
        if isinstance(node, lw.LatexCharsNode)
    )
    return [row for row in without_blanks if row], caption(nodes), columns


def first_tabular(nodes: list[Any]) -> Any:
    for node in flat(nodes, into_groups=True):
        if isinstance(node, lw.LatexEnvironmentNode) and node.environmentname == "tabular":
            return node
    return None


def flat(nodes: list[Any], *, into_groups: bool) -> list[Any]:
    """Every node, before what it holds."""
    found = []
    for node in nodes:
        if isinstance(node, lw.LatexGroupNode) and not into_groups:
            continue
        found.append(node)
        found.extend(flat(below(node), into_groups=into_groups))
    return found


def below(node: Any) -> list[Any]:
    arguments = list(node.nodeargd.argnlist) if getattr(node, "nodeargd", None) else []
    return arguments + list(getattr(node, "nodelist", None) or [])


def caption(nodes: list[Any]) -> str:
    """The group that is entered first after a caption macro was left."""
    state = {"left": False}

    def visit(nodes: list[Any]) -> str | None:
        for node in nodes:
            if state["left"] and isinstance(node, lw.LatexGroupNode):
                return "".join(map(spelled, node.nodelist))
            found = visit(below(node))
            if found is not None:
                return found
            if isinstance(node, lw.LatexMacroNode) and node.macroname == "caption":
                state["left"] = True
        return None

    found = visit(nodes)
    return "None" if found is None else found


def spelled(node: Any) -> str:
    inner = "".join(map(spelled, below(node)))
    if isinstance(node, lw.LatexGroupNode):
        return str(node.delimiters[0]) + inner + str(node.delimiters[1])
    if isinstance(node, lw.LatexCharsNode):
        return str(node.chars) + inner
    return (str(node.specials_chars) if isinstance(node, lw.LatexSpecialsNode) else "") + inner
