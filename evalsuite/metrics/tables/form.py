"""Compare the form (layout and markup) of tables by a checklist of statements about the reference, called facts."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from evalsuite.metrics.tables.cells import normalise_cell
from evalsuite.metrics.tables.content import ContentComparison, compare_content
from evalsuite.metrics.tables.grid import CellGrid
from evalsuite.metrics.tables.latex_text import list_known_macros
from evalsuite.metrics.tables.readings import MarkupReading

OF_MARKUP = frozenset({
    "markup", "compiles", "head_rows", "alignment", "rules", "borders", "label", "references", "links",
})  # fmt: skip
"""Kinds of facts that some markups cannot express, or that are invisible in the printed table."""
MARKUP_NAMES = {"markdown": "raw text", "html": "HTML", "latex": "LaTeX", "json": "JSON", "mediawiki": "MediaWiki"}
LABEL = re.compile(r"\\label\s*\{([^{}]*)\}")
REFERENCE = re.compile(r"\\(?:[cC]ref|ref|autoref|cite[a-z]*)\*?(?:\[[^\]]*\])*\s*\{([^{}]*)\}")
LINK = re.compile(r"""<a\b[^<>]*?\bhref\s*=\s*["']?([^"'\s<>]+)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FormFact:
    """A statement about the form of the reference, which may also be true of a prediction.

    Attributes:
        name: the kind of statement, such as `spans`; each of several tables may have a statement of this kind.
        text: the statement about the reference, as an English sentence without its full stop.
        fulfilled: whether the statement is also true of the prediction.
    """

    name: str
    text: str
    fulfilled: bool


def list_form_facts(
    predicted: MarkupReading, wanted: MarkupReading, content: ContentComparison
) -> tuple[FormFact, ...]:
    """List statements about the reference's form; a prediction without a table fulfils none of them."""
    facts = list(_list_document_facts(predicted, wanted))
    for pair in content.pairs:
        table = CellGrid(()) if pair.predicted is None else predicted.tables[pair.predicted]
        # If lines are displaced, read the size from the unaligned table, because the aligned grid may be transposed.
        grid = table if pair.displaced else pair.left
        size = (len(grid.rows), grid.width)
        listed = _list_table_facts(table, size, pair.left.counts, wanted.tables[pair.wanted], wanted.markup)
        facts += (replace(fact, fulfilled=fact.fulfilled and pair.predicted is not None) for fact in listed)
        facts.append(FormFact("order", "Rows and columns are in this order", not pair.displaced))
    return tuple(replace(fact, fulfilled=fact.fulfilled and bool(predicted.tables)) for fact in facts)


def describe_form(wanted: MarkupReading) -> str:
    """Describe a reference's layout and markup in sentences, one per line."""
    facts = list_form_facts(wanted, wanted, compare_content(wanted.tables, wanted.tables))
    return "\n".join(f"{fact.text}." for fact in facts)


def _list_document_facts(predicted: MarkupReading, wanted: MarkupReading) -> Iterator[FormFact]:
    name, is_tex = MARKUP_NAMES[wanted.markup], wanted.markup == "latex"
    yield FormFact("markup", f"The answer is written in {name}", predicted.markup == wanted.markup)
    if _is_well_formed(wanted):
        text = "The markup is complete: whatever begins also ends, and no row is too long"
        is_complete = _is_well_formed(predicted) and (is_tex or _is_accepted_by_tex(predicted, predicted))
        yield FormFact("well_formed", text, is_complete)
    if is_tex and _is_accepted_by_tex(wanted, wanted):
        text = "TeX accepts it: whatever begins also ends, columns and macros exist, rows end before rules and rows"
        yield FormFact("compiles", text, predicted.markup == "latex" and _is_accepted_by_tex(predicted, wanted))
    count = len(wanted.tables)
    tables = "is one table" if count == 1 else f"are {count} tables"
    yield FormFact("tables", f"There {tables}", len(predicted.tables) == count)
    for fact, pattern, noun in (
        ("label", LABEL, "label"), ("references", REFERENCE, "reference"), ("links", LINK, "link"),
    ):  # fmt: skip
        if targets := Counter(pattern.findall(wanted.text)):
            listed = ", ".join(targets)
            have = Counter(pattern.findall(predicted.text))
            yield FormFact(fact, f"It has the {noun}{'s' * (len(targets) > 1)} {listed[:200]}", not targets - have)


def _list_table_facts(
    table: CellGrid, size: tuple[int, int], counts: Counter[str], wanted: CellGrid, markup: str
) -> Iterator[FormFact]:
    """Yield statements about a wanted table; `size` and `counts` (of each value) belong to the predicted table."""
    height, width = len(wanted.rows), wanted.width
    yield FormFact("rows", f"The table has {_write_count(height, 'row')}", size[0] == height)
    yield FormFact("columns", f"The table has {_write_count(width, 'column')}", size[1] == width)
    if wanted.name:
        text = f"Its {'name' if markup == 'markdown' else 'caption'} is “{wanted.name[:200]}”"
        yield FormFact("caption", text, normalise_cell(table.name) == normalise_cell(wanted.name))
    if wanted.head_rows:
        rows = "row is" if wanted.head_rows == 1 else f"{wanted.head_rows} rows are"
        yield FormFact("head_rows", f"The first {rows} the head", table.head_rows == wanted.head_rows)
    if spans := _count_spanned_positions(wanted):
        listed = "; ".join(
            f"“{span.text[:60]}” covers {_write_count(span.rows, 'row')} and {_write_count(span.columns, 'column')}"
            for span in wanted.spans[:20]
        )
        # Accept repeated text instead of a span: a prediction may write the text in each position that the span covers.
        yield FormFact("spans", f"Cells cover several places: {listed}", not spans - counts)
    if bold := Counter(map(normalise_cell, wanted.bold)):
        text = f"These cells are bold: {', '.join(wanted.bold)[:200]}"
        yield FormFact("bold", text, Counter(map(normalise_cell, table.bold)) == bold)
    if markup == "html" and wanted.rules:
        yield FormFact("rules", "The table has a border", table.rules > 0)
    if wanted.alignment and markup == "latex":
        text = f"The columns are aligned {' '.join(wanted.alignment)}"
        yield FormFact("alignment", text, table.alignment == wanted.alignment)
    if markup == "latex":
        text = "Horizontal rules part the rows" if wanted.rules else "The table has no horizontal rules"
        yield FormFact("rules", text, (table.rules > 0) == (wanted.rules > 0))
        text = "Vertical rules part the columns" if wanted.borders else "The table has no vertical rules"
        yield FormFact("borders", text, (table.borders > 0) == (wanted.borders > 0))


def _count_spanned_positions(table: CellGrid) -> Counter[str]:
    """Count, for each text, the positions that spanning cells with this text cover."""
    cells: Counter[str] = Counter()
    for span in table.spans:
        if value := normalise_cell(span.text):
            cells[value] += span.rows * span.columns
    if not cells:
        return cells
    # Positions beyond the table's edge need not contain a copy of the span's text.
    return cells & Counter(map(normalise_cell, table.cells))


def _write_count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


PAIRED_TAG = re.compile(
    r"<(/?)(table|thead|tbody|caption|b|strong|i|em|a|sup|sub|span|div)\b[^<>]*?(/?)>", re.IGNORECASE
)
LATEX_PIECE = re.compile(
    r"\\(begin|end)\s*\{([^{}]*)\}|(?<!\\)(?:\\\\)*%[^\n]*|\\verb\*?([^a-zA-Z\s]).*?\3|\\([()\[\]])|\\.|([{}])|(\$\$?)",
    re.DOTALL,
)
PARTNERS = {"(": ")", "[": "]"}
MACRO = re.compile(r"(?<!\\)(?:\\\\)*\\([a-zA-Z]+)")
DEFINITION = re.compile(
    r"\\(?:(?:re)?newcommand|providecommand|def|newcolumntype|DeclareMathOperator)\*?\s*\{?\\?([a-zA-Z]+)"
)
COLUMN_LETTERS = frozenset("lcrpmbXSLCRJDwWQ")
NAMES = re.compile(
    r"\\(?:label|[a-zA-Z]*ref|cite[a-z]*|url|href|includegraphics|input|bibliography)\*?(?:\[[^\]]*\])*\s*\{[^{}]*\}"
)
"""Arguments in which an underscore is an ordinary letter."""
FORMULA = re.compile(r"(?<!\\)(\$\$?)(?:\\.|[^$\\])*\1", re.DOTALL)
OTHER_FORMULA = re.compile(
    r"\\[(\[]|\\ensuremath|\\begin\s*\{(?:NiceA|a)rray|\\begin\s*\{(?:equation|align|gather|math|displaymath)"
)
FORMULA_SIGN = re.compile(r"(?<!\\)[_^#]")
VERBATIM_OR_COMMENT = re.compile(r"\\verb\*?([^a-zA-Z\s]).*?\1|(?<!\\)%[^\n]*")
NO_COLUMNS = re.compile(r"\\begin\s*\{(tabular|longtable|array)\}\s*+(?:\[[^\]]*\]\s*+)?+(?!\{)")


def _is_well_formed(reading: MarkupReading) -> bool:
    """Tell whether every opened piece of markup is closed, and no row is too long."""
    if reading.markup == "html":
        opened: Counter[str] = Counter()
        for ends, tag, itself in PAIRED_TAG.findall(reading.text):
            if not itself:
                opened[tag.lower()] += -1 if ends else 1
        # HTML allows the end tags of `thead` and `tbody` to be omitted.
        return not any(count for tag, count in opened.items() if tag not in {"thead", "tbody"})
    if reading.markup == "latex":
        fits = (not table.alignment or table.width <= len(table.alignment) for table in reading.tables)
        return _is_balanced_latex(reading.text) and all(fits)
    return all(len({len(row) for row in table.rows}) <= 1 for table in reading.tables)


def _is_balanced_latex(text: str) -> bool:
    """Tell whether all environments, braces and formulas have a beginning and an end."""
    open_: list[str] = []
    formulas: Counter[str] = Counter()
    for match in LATEX_PIECE.finditer(text):
        opens, name, _, delimiter, brace, dollar = match.groups()
        if dollar:
            formulas[dollar] += 1
        elif delimiter in PARTNERS or brace == "{" or opens == "begin":
            open_.append(PARTNERS.get(delimiter or "") or name or "}")
        elif (delimiter or brace or opens == "end") and (not open_ or open_.pop() != (delimiter or name or "}")):
            return False
    return not open_ and not any(count % 2 for count in formulas.values())


def _is_accepted_by_tex(reading: MarkupReading, wanted: MarkupReading) -> bool:
    """Return False if LaTeX has a known mistake that TeX refuses; accept other markup and the reference's macros."""
    if reading.markup != "latex":
        return True
    tables = reading.tables
    if NO_COLUMNS.search(reading.text) or not _is_well_formed(reading) or any(table.refused for table in tables):
        return False
    defined = {*DEFINITION.findall(reading.text), *MACRO.findall(wanted.text)}
    macros = set(MACRO.findall(VERBATIM_OR_COMMENT.sub("", reading.text)))
    columns = {letter for table in tables for letter in table.alignment}
    known_columns = COLUMN_LETTERS.union(defined, *(table.alignment for table in wanted.tables))
    if not (macros <= list_known_macros() | defined and columns <= known_columns):
        return False
    if OTHER_FORMULA.search(reading.text):
        return True
    # TeX refuses `_`, `^` and `#` outside of formulas.
    plain = VERBATIM_OR_COMMENT.sub("", NAMES.sub("", reading.text))
    return FORMULA_SIGN.search(FORMULA.sub("", plain)) is None
