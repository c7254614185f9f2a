"""Runs side by side: labels, the table at a glance, paired statistics, one radar a benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scipy.stats import binomtest

from evalsuite import cli
from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import RunError
from evalsuite.decisions.comparison import ScorePair
from evalsuite.output.page.write import compare_score_pairs
from evalsuite.output.paper import map_significance_stars
from evalsuite.output.reports.compare import (
    make_comparison_sections,
    make_paired_table,
    make_run_labels,
    write_comparison,
)
from evalsuite.output.reports.section import Chart, Table
from evalsuite.results.tally import Estimate
from evalsuite.stats import paired_difference
from evalsuite.stats.paired import tango_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.output.reports.section import Section
    from evalsuite.results.runs import Run
    from tests.unit.conftest import Desk


def charts(sections: Sequence[Section]) -> list[Chart]:
    return [block for section in sections for block in section.blocks if isinstance(block, Chart)]


def value(cell: Any) -> Any:
    return cell.value if isinstance(cell, Estimate) else cell


def run(desk: Desk, name: str, scores: dict[str, dict[str, float]], **info: Any) -> Run:
    tags = {sample: {"region": sample[0]} for sample in scores}
    return desk.run([desk.record(one, scores[one], tags=tags[one]) for one in scores], name, **info)


def test_two_runs_of_zeros_on_a_wide_range_may_differ_by_a_share_of_this_range(desk: Desk) -> None:
    pairs = [ScorePair(desk.row(f"a{n}"), 0.0, 0.0) for n in range(50)]
    one, ten = (compare_score_pairs(pairs, (0, high), 1).difference for high in (1, 10))
    assert one is not None
    assert one.high == pytest.approx(0.0713, abs=1e-3)
    # A share of 7% of further clusters may differ, by up to 10 each.
    assert ten is not None
    assert ten.high == pytest.approx(0.711, abs=1e-3)


def test_the_interval_of_a_wide_range_includes_zero_if_the_exact_test_of_its_zeros_and_ones_rejects_nothing(
    desk: Desk,
) -> None:
    pairs = [ScorePair(desk.row(f"a{n}"), 1.0, float(n >= 5)) for n in range(40)]
    found = compare_score_pairs(pairs, (0, 10), 1)
    assert found.pvalue == 2 / 2**5
    assert found.difference is not None
    assert found.difference.high == 0


def test_runs_are_labelled_by_their_models_and_all_by_their_names_if_a_model_repeats(desk: Desk) -> None:
    runs = [run(desk, name, {}, model=model) for name, model in (("a", "x"), ("b", "y"), ("c", "x"))]
    assert make_run_labels(runs) == ["a", "b", "c"]
    assert make_run_labels(runs[:2]) == ["x", "y"]


def test_a_run_without_a_model_is_labelled_so(desk: Desk) -> None:
    runs = [run(desk, "a", {}, model=None), run(desk, "b", {}, model="y")]
    assert make_run_labels(runs) == ["no model", "y"]


def test_a_run_s_model_does_not_become_markup_or_terminal_sequences_of_a_comparison(desk: Desk) -> None:
    models = [f"\x1b[2J\n::error::![t](https://a.example/b.png)<b>{name}" for name in "xy"]
    folders = [
        run(desk, name, {"a1": {"hit": 1.0}}, model=model).folder for name, model in zip("ab", models, strict=True)
    ]
    text = write_comparison(folders, desk.reports / "to", Declarations())
    heading = (desk.reports / "to" / "comparison.md").read_text("utf-8").splitlines()[0]
    assert "\x1b" not in text + heading
    assert not [line for line in text.splitlines() if line.startswith("::")]
    assert ("<b>" in heading, "![t]" in heading, "against" in heading) == (False, False, True)


def test_a_run_named_twice_is_not_compared_with_itself(desk: Desk) -> None:
    folder = run(desk, "one", {"a1": {"hit": 1.0}}).folder
    with pytest.raises(RunError, match="one is named twice"):
        write_comparison([folder, folder], desk.reports / "to", Declarations())


def test_the_interval_of_a_difference_of_few_shares_is_tango_s(desk: Desk) -> None:
    before = run(desk, "one", {"a": {"hit": 1.0}, "b": {"hit": 0.0}, "c": {"hit": 0.0}})
    after = run(desk, "two", {"a": {"hit": 1.0}, "b": {"hit": 1.0}, "c": {"hit": 0.0}})
    table = make_paired_table([before, after], ["one", "two"], "capitals")
    assert table
    wanted = tango_interval(lost=0, won=1, n=3)
    assert table.rows[0][6] == Estimate(1 / 3, wanted.low, wanted.high, 3)
    assert -1 < wanted.low < wanted.high < 1


def test_the_table_at_a_glance_has_a_row_a_benchmark_and_a_column_a_run(desk: Desk) -> None:
    one = run(desk, "one", {"a1": {"hit": 1.0}, "a2": {"hit": 0.0}})
    two = desk.run([desk.record("b1", {"share": 0.25}, benchmark="rivers")], "two")
    glance = make_comparison_sections([one, two], ["one", "two"])[1]
    assert glance.title == "At a glance"
    table = glance.blocks[0]
    assert isinstance(table, Table)
    assert [column.title for column in table.columns] == ["benchmark", "metric", "one", "two"]
    rows = [[value(cell) for cell in row] for row in table.rows]
    assert rows == [["capitals", "hit ↑", 0.5, None], ["rivers", "share ↑", None, 0.25]]


def test_binary_scores_are_compared_by_exact_mcnemar_over_the_cases_of_both(desk: Desk) -> None:
    before = {f"s{place}": {"hit": 1.0} for place in range(8)} | {"only": {"hit": 1.0}}
    after = {f"s{place}": {"hit": float(place >= 6)} for place in range(8)}
    table = make_paired_table([run(desk, "one", before), run(desk, "two", after)], ["one", "two"], "capitals")
    assert table
    label, base, metric, pairs, before_mean, here, difference, p = table.rows[0]
    assert (label, base, metric, pairs, before_mean, here) == ("two", "one", "hit", 8, 1.0, 0.25)
    assert value(difference) == -0.75
    # Six cases flipped, all one way: two-sided sign test.
    assert p == pytest.approx(binomtest(0, 6).pvalue)


@pytest.mark.parametrize("lost", range(3, 9))
def test_an_interval_of_shares_excludes_zero_only_where_the_exact_test_rejects(desk: Desk, lost: int) -> None:
    names = ("one", "two", "three")
    firsts = (0, lost, lost)
    runs = [
        run(desk, name, {f"s{place:02}": {"hit": float(place >= wrong)} for place in range(20)})
        for name, wrong in zip(names, firsts, strict=True)
    ]
    table = make_paired_table(runs, names, "capitals")
    assert table
    *_, difference, p = table.rows[0]
    assert isinstance(difference, Estimate)
    assert difference.high is not None
    assert (difference.high < 0) == (value(p) < 0.05)


def test_samples_of_one_source_are_one_cluster_of_a_difference(desk: Desk) -> None:
    def asked(name: str, scores: Sequence[float]) -> Run:
        records = [
            desk.record(f"s{place}", {"hit": score}, tags={"cluster": f"source {place // 2}"})
            for place, score in enumerate(scores)
        ]
        return desk.run(records, name)

    before, after = [1.0] * 8, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    table = make_paired_table([asked("one", before), asked("two", after)], ["one", "two"], "capitals")
    assert table
    *_, difference, p = table.rows[0]
    expected = paired_difference(before, after, clusters=[0, 0, 1, 1, 2, 2, 3, 3], scale=1.0)
    assert difference == Estimate(-0.625, expected.low, expected.high, 8)
    assert p == expected.pvalue


def test_a_difference_of_the_primary_metric_has_stars_even_if_another_metric_has_its_values(desk: Desk) -> None:
    desk.declare("capitals", primary="score")
    runs = [
        run(desk, name, {f"s{place}": {"hit": right, "score": right} for place in range(20)})
        for name, right in (("one", 1.0), ("two", 0.0))
    ]
    table = make_paired_table(runs, ["one", "two"], "capitals")
    assert table
    assert [row[2] for row in table.rows] == ["score"]
    assert "hit has the values of score" in table.note
    assert map_significance_stars(runs, ["one", "two"]) == {("capitals", "two"): "$^{***}$"}


def test_runs_without_a_common_case_have_no_difference(desk: Desk) -> None:
    runs = [run(desk, "one", {"a": {"hit": 1.0}}), run(desk, "two", {"b": {"hit": 1.0}})]
    table = make_paired_table(runs, ["one", "two"], "capitals")
    assert table
    assert list(table.rows[0]) == ["two", "one", "hit", 0, None, None, None, None]


def test_a_radar_has_a_polygon_a_run_over_the_metrics_that_are_shares(desk: Desk) -> None:
    scores = {"a1": {"hit": 1.0, "f1": 0.5, "rouge": 0.25, "marks": 7.0}}
    runs = [run(desk, name, scores) for name in ("one", "two")]
    radar = charts(make_comparison_sections(runs, ["one", "two"]))[0]
    assert (radar.kind, radar.name, list(radar.labels)) == ("radar", "capitals_runs", ["f1", "hit", "rouge"])
    assert [(series.name, list(series.values)) for series in radar.series] == [
        ("one", [0.5, 1.0, 0.25]),
        ("two", [0.5, 1.0, 0.25]),
    ]


def test_with_few_metrics_the_radar_s_spokes_are_the_values_of_a_tag(desk: Desk) -> None:
    one = run(desk, "one", {"a1": {"hit": 1.0}, "b1": {"hit": 0.0}, "b2": {"hit": 1.0}, "c1": {"hit": 0.0}})
    two = run(desk, "two", {"a1": {"hit": 0.0}, "b1": {"hit": 0.0}})
    radar = charts(make_comparison_sections([one, two], ["one", "two"]))[0]
    assert list(radar.labels) == ["a", "b", "c"]
    assert [list(series.values) for series in radar.series] == [[1.0, 0.5, 0.0], [0.0, 0.0, None]]


def test_nothing_to_draw_a_radar_of_is_no_error(desk: Desk) -> None:
    runs = [run(desk, "one", {"a": {"hit": 1.0}}), run(desk, "two", {"a": {"hit": 1.0}})]
    assert charts(make_comparison_sections(runs, ["one", "two"])) == []


def test_the_command_writes_the_page_and_its_pictures(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"a1": {"hit": 1.0, "f1": 0.5, "rouge": 0.25}}
    for name in ("one", "two"):
        run(desk, name, scores)
    assert cli.main(["compare", "one", "two", "--reports", str(desk.reports)]) == 0
    folder = desk.reports / "compare-one-two"
    assert f"comparison: {folder / 'comparison.md'}" in capsys.readouterr().out
    text = (folder / "comparison.md").read_text("utf-8")
    assert text.startswith("# one against two\n")
    assert "![capitals: means of its metrics, in percent](capitals_runs.svg)" in text
    assert (folder / "capitals_runs.svg").is_file()


def test_one_run_is_nothing_to_compare(desk: Desk) -> None:
    run(desk, "one", {"a": {"hit": 1.0}})
    with pytest.raises(RunError, match="two runs or more"):
        write_comparison([desk.folder([], "one")], desk.reports / "to", Declarations())
