"""The shipped items: their texts hold their tables, and both variants of the H-Score read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from evalsuite.benchmarks.struc_bench.abilities import find_table_differences
from evalsuite.benchmarks.struc_bench.items import (
    MODES,
    SHIPPED,
    TableItem,
    encode_items,
    find_files,
    load_dataset,
    read_items,
)
from evalsuite.core.protocols import Setup
from evalsuite.metrics.tables import FORMATS, Format, h_score, read_tables, table_score
from evalsuite.metrics.tables.cells import SearchedText, is_blank
from evalsuite.metrics.tables.content import compare_content

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACK: dict[Format, list[TableItem]] = {written: read_items(path) for written, path in find_files(SHIPPED).items()}
ITEMS = [
    pytest.param(written, item, id=f"{written}-{place:03}")
    for written, items in PACK.items()
    for place, item in enumerate(items)
]

DERIVED = {
    "markdown-003": ["27", "23"],
    "markdown-005": ["0"],
    "markdown-006": ["48%"],
    "markdown-008": ["0"],
    "markdown-010": ["$284.00", "$86.00"],
    "markdown-012": ["274", "229"],
    "latex-003": ["23", "24"],
    "latex-007": ["12,000", "100%"],
    "latex-013": ["11", "361.00"],
    "html-003": ["3", "0"],
    "html-008": ["300"],
}
"""Data cells that the text does not hold: sums, differences, and none of something."""

WITHOUT_TABLE = {"html-010", "html-011"}
"""A list and a page of cards."""
WITHOUT_TABULAR = {"latex-011", "latex-012"}
"""A tabularx and a longtable, for which the released script has no cells."""
TEAM_AND_PLAYER = {f"markdown-{place:03}" for place in range(9)}

HIGHEST: dict[Format, tuple[float, float]] = {"markdown": (2, 4), "html": (2, 3), "latex": (3, 3)}
"""Greatest sums of the released definition; LaTeX's alignment never has its fourth point."""
MARKUP = re.compile(r"[|\\<>&{}$#]|```")
SHORT = {"markdown": 120, "latex": 200, "html": 200}


def names(written: Format) -> Iterator[tuple[str, TableItem]]:
    yield from ((f"{written}-{place:03}", item) for place, item in enumerate(PACK[written]))


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """The id of the item that a test is given."""
    found = re.search(r"(?:markdown|latex|html)-\d{3}", request.node.callspec.id)
    assert found
    return found[0]


def test_each_format_has_at_least_twelve_items() -> None:
    assert list(PACK) == list(FORMATS)
    assert all(len(items) >= 12 for items in PACK.values()), {name: len(items) for name, items in PACK.items()}


def test_the_samples_have_stable_and_distinct_ids() -> None:
    modes = tuple(MODES)
    samples = load_dataset(Setup("gpt-4", modes=modes, args={"each": 0})).samples
    assert sorted(sample.id for sample in samples) == sorted(
        f"{name}-{mode}" for written in PACK for name, _ in names(written) for mode in modes
    )


def test_no_two_items_share_a_text_or_a_table() -> None:
    items = [item for items in PACK.values() for item in items]
    for part in ("input", "output", "format_description"):
        assert len({getattr(item, part) for item in items}) == len(items), part


def test_the_first_four_are_short_enough_for_a_small_model() -> None:
    lengths = {written: [len(item.output) for item in items] for written, items in PACK.items()}
    for written, found in lengths.items():
        assert max(found[:4]) <= SHORT[written], written
        assert 600 < max(found[4:]) <= 1500, written


@pytest.mark.parametrize(("written", "item"), ITEMS)
def test_every_item_scores_one_against_itself(written: Format, item: TableItem) -> None:
    score = table_score(item.output, item.output, format=written)
    assert score.value == 1.0, score.parts


@pytest.mark.parametrize(("written", "item"), ITEMS)
def test_the_released_variant_reads_it_whole(written: Format, item: TableItem, name: str) -> None:
    score = h_score(item.output, item.output, format=written, variant="released")
    if written != "markdown" and name not in WITHOUT_TABULAR:
        assert (score.content, score.format) == HIGHEST[written]
    elif name in TEAM_AND_PLAYER:
        assert (score.content, score.format) == HIGHEST["markdown"]
        assert [table.name for table in read_tables(item.output, written)] == ["Team", "Player"]


@pytest.mark.parametrize(("written", "item"), ITEMS)
def test_every_page_but_lists_and_cards_has_a_table(written: Format, item: TableItem, name: str) -> None:
    tables = read_tables(item.output, written)
    assert bool(tables) == (name not in WITHOUT_TABLE)
    for table in tables:
        assert {len(row) for row in table.rows} == {table.width}, "every row is full"


@pytest.mark.parametrize(("written", "item"), ITEMS)
def test_the_text_holds_every_data_value_that_need_not_be_worked_out(
    written: Format, item: TableItem, name: str
) -> None:
    tables, text = read_tables(item.output, written), SearchedText(item.input)
    data = find_table_differences(compare_content(tables, tables), tables).predicted
    assert [cell for cell in data if not text.contains_value(cell)] == DERIVED.get(name, [])


@pytest.mark.parametrize(("written", "item"), ITEMS)
def test_the_text_holds_the_name_of_every_row(written: Format, item: TableItem) -> None:
    text = SearchedText(item.input)
    rows = [row[0] for table in read_tables(item.output, written) for row in table.rows[1:] if table.width > 1]
    assert [row for row in rows if not text.contains_value(row)] == []


@pytest.mark.parametrize("name", sorted(WITHOUT_TABLE))
def test_the_text_holds_the_texts_of_lists_and_cards(name: str) -> None:
    item = dict(names("html"))[name]
    texts = re.findall(r"<(?:li|h\d|p)>([^<]+)<", item.output)
    assert len(texts) >= 6
    assert [one for one in texts if not SearchedText(item.input).contains_value(one)] == []


def test_every_format_has_blank_and_derived_cells_and_values_in_another_form() -> None:
    for written, items in PACK.items():
        blank = other_form = 0
        for item in items:
            tables = read_tables(item.output, written)
            data = find_table_differences(compare_content(tables, tables), tables).predicted
            blank += sum(map(is_blank, data))
            other_form += sum(not is_blank(cell) and cell not in item.input for cell in data)
        derived = sum(len(cells) for name, cells in DERIVED.items() if name.startswith(written))
        assert blank >= 3, written
        assert derived >= 3, written
        assert other_form >= derived + 3, written


@pytest.mark.parametrize(("written", "item"), ITEMS)
def test_a_description_describes_and_holds_no_markup(written: Format, item: TableItem) -> None:
    assert not MARKUP.search(item.format_description)
    assert 150 < len(item.format_description) < 1000
    numbers = set(re.findall(r"\d+", item.format_description))
    for table in read_tables(item.output, written):
        plain = SearchedText(item.format_description)
        assert all(plain.contains_value(name) for name in table.columns), table.columns
        assert numbers, "it says how many"


@pytest.mark.parametrize("written", FORMATS)
def test_the_file_is_as_items_are_written(written: Format, tmp_path: Path) -> None:
    (tmp_path / "again.json").write_text(encode_items(PACK[written]), "utf-8")
    shipped = find_files(SHIPPED)[written]
    assert (tmp_path / "again.json").read_bytes() == shipped.read_bytes()


def test_markup_of_every_kind_named_by_the_paper_is_there() -> None:
    latex = "".join(item.output for item in PACK["latex"])
    html = "".join(item.output for item in PACK["html"])
    wanted = ["caption", "toprule", "multicolumn", "multirow", "textbf", "hline", "cmidrule", "label"]
    assert [macro for macro in wanted if f"\\{macro}" not in latex] == []
    assert [name for name in ("tabularx", "longtable") if f"\\begin{{{name}}}" not in latex] == []
    tags = ["th", "td", "thead", "tbody", "tfoot", "caption", "ol", "div", "a"]
    assert [tag for tag in tags if not re.search(rf"<{tag}[ >]", html)] == []
    assert "colspan=" in html
    assert "rowspan=" in html
