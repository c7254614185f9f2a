"""Charts as files: whatever their series are called, they can be read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from evalsuite.output.reports.plots import draw_chart, draw_charts
from evalsuite.output.reports.section import Chart, Series
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.output.reports.section import ChartKind, Style

pytest.importorskip("matplotlib", reason="pip install 'evalsuite[plots]'")

SVG = "{http://www.w3.org/2000/svg}"
VALUES: list[Estimate | float | None] = [Estimate(0.3, 0.2, 0.4), None, 0.6]


def lines(*names: str, values: list[Estimate | float | None] = VALUES) -> Chart:
    series = [Series(name, values) for name in names]
    return Chart("lines", "chart", "Accuracy", ["head", "torso", "tail"], series, "percent", (0.0, 1.0))


def share_of_the_page(file: Path) -> float:
    """How much of the page's width the axes have."""
    page = ET.parse(file).getroot()
    box = page.find(f".//{SVG}g[@id='axes_1']/{SVG}g[@id='patch_2']/{SVG}path")
    assert box is not None
    numbers = [float(word) for word in box.attrib["d"].split() if word not in "MLz"]
    return (max(numbers[::2]) - min(numbers[::2])) / float(page.attrib["viewBox"].split()[2])


@pytest.mark.parametrize("names", [["a", "b"], ["a model of a rather long name, and its mode " * 2] * 9])
def test_the_names_of_series_leave_the_axes_their_width(names: list[str], tmp_path: Path) -> None:
    draw_chart(lines(*names), tmp_path / "chart.svg")
    assert share_of_the_page(tmp_path / "chart.svg") > 0.8


def test_every_series_is_named_below_its_chart(tmp_path: Path) -> None:
    draw_chart(lines("gpt-4", "llama-2"), tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text("utf-8")
    assert "gpt-4" in drawn
    assert "llama-2" in drawn


def test_equal_charts_are_equal_files(tmp_path: Path) -> None:
    for name in ("one.svg", "other.svg"):
        draw_chart(lines("gpt-4", "llama-2"), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_a_chart_without_any_value_is_not_drawn(tmp_path: Path) -> None:
    assert draw_charts([lines("gpt-4", values=[None, None, None])], tmp_path) == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["bars", "lines"])
def test_only_a_value_with_an_interval_gets_its_mark(kind: ChartKind, tmp_path: Path) -> None:
    draw_chart(replace(lines("gpt-4"), kind=kind), tmp_path / "chart.svg")
    drawn = ET.parse(tmp_path / "chart.svg").getroot()
    marks = drawn.findall(f".//{SVG}g[@id='LineCollection_1']//{SVG}path")
    assert [bool(mark.get("d")) for mark in marks] == [True, False, False]


def test_a_radar_closes_each_polygon_and_names_every_spoke(tmp_path: Path) -> None:
    chart = lines("gpt-4", "llama-2", values=[0.5, 0.25, 0.75])
    draw_chart(replace(chart, kind="radar"), tmp_path / "chart.svg")
    drawn = ET.parse(tmp_path / "chart.svg").getroot()
    words = [text.text for text in drawn.iter(f"{SVG}text")]
    assert {"head", "torso", "tail"} <= set(words)
    # A closed polygon of three spokes comes back to its first.
    outlines = [path.attrib["d"].split() for path in drawn.iter(f"{SVG}path") if "clip-path" in path.attrib]
    corners = [[word for word in outline if word in "ML"] for outline in outlines]
    assert ["M", "L", "L", "L"] in corners


def test_a_radar_leaves_a_gap_where_nothing_was_measured(tmp_path: Path) -> None:
    chart = lines("gpt-4", values=[0.5, None, 0.75, 0.25])
    draw_chart(replace(chart, kind="radar", labels=["a", "b", "c", "d"]), tmp_path / "chart.svg")
    drawn = ET.parse(tmp_path / "chart.svg").getroot()
    outlines = [path.attrib["d"].split() for path in drawn.iter(f"{SVG}path") if "clip-path" in path.attrib]
    corners = [[word for word in outline if word in "ML"] for outline in outlines]
    assert ["M", "M", "L", "L"] in corners


@pytest.mark.parametrize(("unit", "shown"), [("percent", ["50", "100"]), ("count", ["0", "1"]), ("number", ["0.50"])])
def test_a_heat_map_has_decimals_only_for_plain_numbers(tmp_path: Path, unit: Style, shown: list[str]) -> None:
    chart = replace(lines("x", values=[0.5, 1.0]), kind="heatmap", labels=["a", "b"], unit=unit, limits=(0.0, 1.0))
    draw_chart(chart, tmp_path / "chart.svg")
    words = [text.text for text in ET.parse(tmp_path / "chart.svg").getroot().iter(f"{SVG}text")]
    assert set(shown) <= set(words)
    assert ("1.00" in words) == (unit == "number")


def test_a_heat_map_writes_each_value_into_its_cell_and_leaves_empty_ones_empty(tmp_path: Path) -> None:
    chart = replace(lines("x", "y"), kind="heatmap", unit="number", limits=(-1.0, 1.0))
    draw_chart(chart, tmp_path / "chart.svg")
    drawn = ET.parse(tmp_path / "chart.svg").getroot()
    words = [text.text for text in drawn.iter(f"{SVG}text")]
    assert words.count("0.30") == words.count("0.60") == 2
    assert not [word for word in words if word and "nan" in word]
