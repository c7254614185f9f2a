"""The first screen says whether this model may be released, and what that is based on."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.decisions.comparison import ComparisonRules
from evalsuite.decisions.history import track_metrics
from evalsuite.output.reports.compare import write_history
from evalsuite.output.reports.section import Column, Section, Table
from evalsuite.results.runs import INSTALLED, load_run
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.output.reports.section import Cell


def test_a_missed_gate_is_the_verdict(make_run: Any, open_page: Any, make_record: Any) -> None:
    wrong = make_record("fr", answer="Lyon", scores={"exact_match": 0.0})
    folder = make_run("red", [wrong], gate=["capitals.exact_match >= 0.5"])
    page = open_page(folder)
    assert page.locator("h1").inner_text() == "A gate is missed"
    assert page.locator(".gate .figure").first.inner_text().startswith("0.0000 [0.0000, 0.9750]")


def test_the_example_that_the_readme_names_opens(tab: Any, request: pytest.FixtureRequest) -> None:
    tab.goto((request.config.rootpath / "reports" / "example" / "report.html").as_uri())
    assert tab.locator("h1").inner_text() == "Passed"


def test_a_difference_to_the_baseline_stands_with_its_interval(make_run: Any, open_page: Any, make_record: Any) -> None:
    names = [f"s{number}" for number in range(20)]
    make_run("before", [make_record(name) for name in names])
    after = [make_record(name, scores={"exact_match": float(name != "s3")}) for name in names]
    folder = make_run("after", after, baseline=["before"])
    line = open_page(folder).locator("#part-baseline + .gate")
    assert "−0.0500 [" in line.inner_text()


def test_each_of_several_baselines_has_its_part(make_run: Any, open_page: Any, make_record: Any) -> None:
    for name in ("first", "second"):
        make_run(name, [make_record("fr"), make_record("jp")])
    page = open_page(make_run("now", [make_record("fr"), make_record("jp")], baseline=["first", "second"]))
    assert page.locator("#part-baseline + .gate").count() == 1
    assert page.locator("#part-baseline-2 + .gate").count() == 1
    assert page.locator("#part-baseline-2").inner_text() == "Against second"


def test_a_run_without_gates_shows_no_empty_list_of_them(make_run: Any, open_page: Any, make_record: Any) -> None:
    page = open_page(make_run("plain", [make_record("fr")]))
    assert page.locator("h1").inner_text() == "Passed"
    assert page.locator("#part-gates").count() == 0


def test_a_report_s_table_of_four_intervals_shows_its_last_column_at_1200_pixels(
    make_run: Any, open_page: Any, make_record: Any, monkeypatch: Any
) -> None:
    heads = [Column(title) for title in ("Format", "Run", "Outputs")]
    heads += [Column(title, "percent", 1) for title in ("Table score", "Content", "Form", "Compiles")]
    line: list[Cell] = ["Raw text", "function:app:answer", "4", *[Estimate(0.851, 0.282, 1.0)] * 4]
    section = Section("Struc-Bench", [Table("Table score", heads, [line])])
    monkeypatch.setattr("evalsuite.output.reports.report.make_generic_section", lambda *_: section)
    page = open_page(make_run("wide", [make_record("fr")]), "#report")
    page.set_viewport_size({"width": 1200, "height": 800})
    region = page.locator("#section-struc-bench .scrolled")
    assert region.evaluate("region => region.scrollWidth - region.clientWidth") == 0
    assert region.locator("td").last.inner_text().split() == ["85.1", "[28.2,", "100.0]"]


def test_what_the_report_folds_is_closed_on_the_page(
    make_run: Any, open_page: Any, make_record: Any, monkeypatch: Any
) -> None:
    tables = [Table(title, [Column("what")], [["this"]], folded=title != "Shown") for title in ("Shown", "A", "B")]
    monkeypatch.setattr("evalsuite.output.reports.report.make_generic_section", lambda *_: Section("Capitals", tables))
    page = open_page(make_run("folded", [make_record("fr")]), "#report")
    section = page.locator("#section-capitals")
    assert section.get_by_text("Shown").is_visible()
    assert not section.get_by_text("A", exact=True).is_visible()
    section.get_by_text("More tables and pictures").click()
    assert section.get_by_text("B", exact=True).is_visible()


def test_a_history_opens_with_what_has_drifted_and_the_course_of_each_metric(
    make_run: Any, open_page: Any, make_record: Any, tmp_path: Path
) -> None:
    runs = []
    for name, wrong in (("first", 0), ("second", 2), ("third", 12)):
        scores = ({"exact_match": float(number >= wrong)} for number in range(30))
        records = [make_record(f"s{number}", scores=one) for number, one in enumerate(scores)]
        runs.append(load_run(make_run(name, records, gate=["capitals.exact_match >= 0"]), INSTALLED))
    write_history(runs, track_metrics(runs, runs[:1], ComparisonRules()), tmp_path / "history")
    page = open_page(tmp_path / "history" / "comparison.html")
    assert page.locator("h1").inner_text() == "The newest release has drifted from a reference"
    assert "capitals.exact_match has drifted: 0.6 in third after 1 in first" in page.locator(".hero").inner_text()
    assert page.locator("#section-capitals-exact-match svg").count() == 1
    assert page.locator("#section-capitals-exact-match tbody tr").count() == 3


def test_a_history_whose_newest_release_has_recovered_opens_well_and_still_names_the_drift(
    make_run: Any, open_page: Any, make_record: Any, tmp_path: Path
) -> None:
    runs = []
    for name, wrong in (("first", 0), ("second", 12), ("third", 0)):
        records = [make_record(f"s{n}", scores={"exact_match": float(n >= wrong)}) for n in range(30)]
        runs.append(load_run(make_run(name, records, gate=["capitals.exact_match >= 0"]), INSTALLED))
    write_history(runs, track_metrics(runs, runs[:1], ComparisonRules()), tmp_path / "history")
    page = open_page(tmp_path / "history" / "comparison.html")
    assert page.locator("h1").inner_text().startswith("The newest release has not drifted")
    assert "in second after 1 in first" in page.locator(".hero.good").inner_text()


FORTY_RELEASES = """() => {
  const labels = Array.from({ length: 40 }, (_, place) => `release_${place}`);
  const values = labels.map(() => ({ value: 0.5, low: 0.4, high: 0.6 }));
  const chart = { kind: "lines", title: "t", y_title: "y", labels, series: [{ name: "s", values }] };
  document.body.replaceChildren(frame(chart, () => null));
  return [...document.querySelectorAll("text.tick title")].map((title) => title.textContent);
}"""


def test_labels_of_many_releases_do_not_cover_each_other(make_run: Any, open_page: Any, make_record: Any) -> None:
    page = open_page(make_run("run", [make_record("s")]))
    names = page.evaluate(FORTY_RELEASES)
    assert names == [f"release_{place}" for place in range(1, 40, 2)]
    boxes = [label.bounding_box() for label in page.locator("text.tick:has(title)").all()]
    assert all(right["x"] - left["x"] > 20 for left, right in itertools.pairwise(boxes))


@pytest.mark.parametrize(("unit", "shown"), [("count", "35"), ("percent", "3500"), ("number", "35.00")])
def test_a_heat_map_has_decimals_only_for_plain_numbers(
    make_run: Any, open_page: Any, make_record: Any, unit: str, shown: str
) -> None:
    page = open_page(make_run("run", [make_record("s")]))
    chart = {"kind": "heatmap", "unit": unit, "labels": ["a"], "series": [{"name": "s", "values": [{"value": 35.0}]}]}
    page.evaluate("chart => document.body.replaceChildren(heatChart(chart))", chart)
    assert page.locator(".heat tbody td").inner_text() == shown
