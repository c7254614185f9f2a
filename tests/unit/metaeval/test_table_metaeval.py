"""`evalsuite score metrics tables` and `evalsuite score tables`, as a user calls them."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

import evalsuite
from evalsuite.cli import main
from evalsuite.metaeval.agreement import (
    MEASURES,
    RatedTable,
    compute_agreements,
    compute_metrics,
    fill_unreadable_scores,
    read_rated_tables,
    tabulate_agreements,
)
from evalsuite.metaeval.table_grid import MARKS, make_slightly_changed_pairs
from evalsuite.metrics.tables import read_reference_tables
from evalsuite.stats.correlation import RESAMPLES, PairResamples

SHIPPED = sorted((Path(evalsuite.__file__).parent / "benchmarks/struc_bench/data").glob("*.json"))
ROWS = (("name", "points"), ("Ann", 12), ("Bob", 31))
WANTED = f"<table>{''.join(f'<tr><td>{name}</td><td>{points}</td></tr>' for name, points in ROWS)}</table>"


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for tests that do not look at intervals."""
    monkeypatch.setattr("evalsuite.metaeval.agreement.PairResamples", partial(PairResamples, resamples=50))


def _rated() -> list[dict[str, object]]:
    answers = {WANTED: 9.5, WANTED.replace("31", "13"): 6.0, "| name | points |\n| Ann | 99 |": 2.0, "Sorry.": 0.0}
    return [
        {
            "reference": WANTED.replace("Ann", name),
            "prediction": answer.replace("Ann", name),
            "human": [rating - 1, rating + 1],
            "judge": rating / 10,
        }
        for name in ("Ann", "Eve", "Kim")
        for answer, rating in answers.items()
    ]


def _tables(tmp_path: Path) -> Path:
    rated = tmp_path / "rated.jsonl"
    rated.write_text("".join(f"{json.dumps(record)}\n" for record in _rated()))
    return rated


def test_the_grid_holds_on_every_shipped_item(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "metrics", "tables", "--grid", *map(str, SHIPPED)]) == 0
    assert "all wrong" in capsys.readouterr().out


def test_the_grid_tells_apart_what_looks_much_alike_and_keeps_identical_tables(tmp_path: Path) -> None:
    pairs = {
        name: (wanted, answer)
        for name, wanted, answer in make_slightly_changed_pairs("| # | % |\n|---|---|\n| 1 | 2 |", "markdown")
    }
    assert {*MARKS, "bars in a cell", "two heads swapped", "two columns swapped"} == pairs.keys()
    assert pairs["bars in a cell"][0] == pairs["bars in a cell"][1]
    assert "1***" in pairs["fewer stars"][0]
    assert "1***" not in pairs["fewer stars"][1]
    assert read_reference_tables(pairs["two heads swapped"][1], "markdown").tables[0].rows == (("%", "#"), ("1", "2"))
    assert read_reference_tables(pairs["two columns swapped"][1], "markdown").tables[0].rows == (("%", "#"), ("2", "1"))


def test_a_change_that_a_table_has_no_place_for_is_left_out() -> None:
    assert list(make_slightly_changed_pairs("| a | a |\n|---|---|", "markdown")) == []


def test_a_broken_rule_of_the_grid_is_status_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mine.md"
    table.write_text("| a | b |\n|---|---|\n| 1 | 2 |")
    monkeypatch.setattr("evalsuite.metaeval.table_grid.NEAR_ZERO", -1.0)
    assert main(["score", "metrics", "tables", "--grid", str(table)]) == 1


@pytest.mark.usefixtures("few_resamples")
def test_metrics_and_judges_are_measured_against_ratings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rated = _tables(tmp_path)
    markdown, picture = tmp_path / "out.md", tmp_path / "out.svg"
    assert main(["score", "metrics", "tables", str(rated), "--to", str(markdown), "--plot", str(picture)]) == 0
    shown = capsys.readouterr().out
    assert "9 outputs, 3 unreadable left out" in shown
    assert "12 outputs, 3 unreadable as zeros" in shown
    for name in ("table_score", "teds", "grits_content", "rms", "judge"):
        assert name in shown
    assert "| Metric" in markdown.read_text()
    assert "<svg" in picture.read_text()


@pytest.mark.usefixtures("few_resamples")
def test_a_judge_is_asked_once_and_measured_beside_the_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judging_app.py").write_text(
        "import json, pathlib\n\n\ndef judge(messages):\n"
        "    with pathlib.Path('asked').open('a') as file:\n        file.write('x')\n"
        "    text = messages[-1]['content']\n    mark = 2 if '99' in text else 6 if '13' in text else 10\n"
        "    return json.dumps({'reasoning': 'Compared.', 'content': mark, 'structure': 5})\n"
    )
    arguments = ["metaeval", "tables", str(_tables(tmp_path)), "--model=function:judging_app:judge", "--plot=out.png"]
    for _ in range(2):
        assert main(arguments) == 0
    line = next(row for row in capsys.readouterr().out.splitlines() if row.startswith("p_content"))
    assert float(line.split()[3]) > 0.95, line
    # Nine readable outputs in both orders, which for the three right ones are the same; and nothing twice.
    assert len((tmp_path / "asked").read_text()) == 15
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert main(["score", "metrics", "tables", "rated.jsonl", "--plot=out.gif"]) == 2


@pytest.mark.usefixtures("few_resamples")
def test_a_judge_that_gives_peoples_marks_agrees_wholly_and_the_difference_is_paired(tmp_path: Path) -> None:
    rated = read_rated_tables(_tables(tmp_path))
    by_name = {line.metric: line for line in compute_agreements(rated, compute_metrics(rated))}
    judge = by_name["judge"]
    assert [judge.agreement[name].value for name in MEASURES] == pytest.approx([1.0] * 4)
    score = by_name["table_score"].agreement
    assert [judge.behind[name].value + 1.0 for name in MEASURES] == pytest.approx(
        [score[name].value for name in MEASURES]
    )
    # All references fare alike, so that no draw differs from another: there is no interval.
    assert math.isnan(score["Pearson"].low)


def test_outputs_are_ordered_only_within_their_reference() -> None:
    rated = [RatedTable(WANTED, name, "html", human) for name in "ab" for human in (1.0, 2.0, 2.0, 5.0)]
    # The second reference's values are higher throughout. Of its five pairs with different ratings one is tied and
    # one is turned; the pair that people rate alike does not count.
    values = [1.0, 2.0, 3.0, 4.0, 15.0, 15.0, 16.0, 15.5]
    line = compute_agreements(rated, {"table_score": values})[0].agreement
    assert line["Pairs within"].value == pytest.approx((5 + 3.5) / 10)
    expected = [kendalltau(values[at : at + 4], (1, 2, 2, 5)).statistic for at in (0, 4)]
    assert line["Kendall within"].value == pytest.approx(sum(expected) / 2)


@pytest.mark.usefixtures("few_resamples")
def test_the_metric_that_agrees_best_comes_first() -> None:
    rated = [RatedTable(WANTED, str(place), "html", float(place)) for place in range(4)]
    values = {"table_score": [3.0, 2.0, 1.0, 0.0], "teds": [0.0, 1.0, 2.0, 3.0], "rms": [0.0, 2.0, 1.0, 3.0]}
    assert [line.metric for line in compute_agreements(rated, values)] == ["teds", "rms", "table_score"]


def test_an_unreadable_output_counts_zero_unless_the_file_has_a_number() -> None:
    rated = [RatedTable(text, WANTED, "html", 1.0, {"teds": 0.3}) for text in ("Sorry.", WANTED)]
    filled = fill_unreadable_scores(rated, [False, True], {"table_score": [1.0], "teds (file)": [0.3]})
    assert filled == {"table_score": [0.0, 1.0], "teds (file)": [0.3, 0.3]}


def test_outputs_without_a_readable_table_are_no_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rated = tmp_path / "rated.json"
    rated.write_text(json.dumps([{"reference": WANTED, "prediction": "Sorry.", "human": 1}] * 3))
    assert main(["score", "metrics", "tables", str(rated)]) == 2
    assert capsys.readouterr().err == "evalsuite: 3 of 3 outputs have no readable table\n"
    assert main(["score", "metrics", "tables", str(tmp_path / "none.json")]) == 2
    assert "none.json: no such file, expected objects with `reference`" in capsys.readouterr().err


def test_outputs_of_one_reference_have_no_interval() -> None:
    rated = [RatedTable(WANTED, WANTED, "html", human) for human in (1.0, 2.0, 4.0)]
    line = compute_agreements(rated, {"table_score": [0.1, 0.3, 0.2]})[0]
    assert math.isfinite(line.agreement["Pearson"].value)
    assert math.isnan(line.agreement["Pearson"].low)
    assert math.isnan(line.agreement["Kendall within"].high)


def test_intervals_equal_those_of_an_independent_bootstrap_over_references() -> None:
    draw, outputs, drawn = np.random.default_rng(29), 6, 600
    groups = [range(place, place + outputs) for place in range(0, 20 * outputs, outputs)]
    human = draw.integers(0, 11, 20 * outputs).astype(float)
    metrics = {
        name: human + np.repeat(draw.normal(0, spread, 20), outputs) + draw.normal(0, 2, len(human))
        for name, spread in (("table_score", 2.0), ("teds", 5.0))  # References differ, so they are drawn whole.
    }
    resamples = draw.integers(0, 20, (drawn, 20))

    def measure_resamples(values: np.ndarray) -> np.ndarray:
        pairs = [[(one, two) for one in group for two in group if human[one] > human[two]] for group in groups]
        kendalls = np.array([kendalltau(values[group], human[group]).statistic for group in groups])
        right = np.array([sum(values[one] > values[two] for one, two in group) for group in pairs])
        ordered = right[resamples].sum(axis=1) / np.array(list(map(len, pairs)))[resamples].sum(axis=1)
        at = [[place for chosen in resample for place in groups[chosen]] for resample in resamples]
        of_all = [[test(values[each], human[each]).statistic for each in at] for test in (pearsonr, spearmanr)]
        return np.array([*of_all, kendalls[resamples].mean(axis=1), ordered])

    first, other = map(measure_resamples, metrics.values())
    rated = [RatedTable("", str(place // outputs), "html", rating) for place, rating in enumerate(human)]
    agreements = compute_agreements(rated, {name: list(values) for name, values in metrics.items()})
    score, teds = (next(line for line in agreements if line.metric == name) for name in metrics)
    for expected, found in ((first, score.agreement), (other, teds.agreement), (first - other, teds.behind)):
        for column, interval in zip(expected, found.values(), strict=True):
            for share, end in ((0.025, interval.low), (0.975, interval.high)):
                # Four standard errors of a quantile's rank, of the independent draws and of the metric's own.
                error = 4 * math.sqrt(share * (1 - share) * (1 / drawn + 1 / RESAMPLES))
                low, high = np.quantile(column, [max(0.0, share - error), min(1.0, share + error)])
                assert low <= end <= high


def test_a_constant_metric_has_no_correlation_and_orders_half_of_the_pairs() -> None:
    rated = [RatedTable(WANTED, WANTED, "html", human) for human in (1.0, 2.0, 4.0)]
    agreements = compute_agreements(rated, {"table_score": [0.5] * 3})
    assert "equal metric values counts half" in tabulate_agreements(agreements, "Agreement")[0].note
    constant = agreements[0].agreement
    assert math.isnan(constant["Kendall within"].value)
    assert constant["Pairs within"].value == 0.5
    alike = [RatedTable(WANTED, WANTED, "html", 3.0)] * 3
    assert math.isnan(compute_agreements(alike, {"table_score": [0.1, 0.2, 0.3]})[0].agreement["Pairs within"].value)


def test_a_study_as_published_is_read(tmp_path: Path) -> None:
    study = tmp_path / "study.json"
    rows = [[0, WANTED, 9.5, 0.8]]
    study.write_text(
        json.dumps({"references": [WANTED], "columns": ["reference", "output", "human", "teds"], "rows": rows})
    )
    assert read_rated_tables(study) == [RatedTable(WANTED, WANTED, "html", 9.5, {"teds": 0.8})]


def test_ratings_are_read_with_a_byte_order_mark_and_aliases_of_formats(tmp_path: Path) -> None:
    file = tmp_path / "rated.json"
    rated = [{"reference": "| a |", "prediction": "| a |", "human": 3, "format": "md"}]
    file.write_text(json.dumps(rated), "utf-8-sig")
    assert [table.format for table in read_rated_tables(file)] == ["markdown"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no record"),
        ("{", "line 1"),
        ('[{"reference": "a"}]', "record 1"),
        ('[{"reference": "a", "prediction": "b", "human": "good"}]', "a number or a list of numbers"),
        (f'[{{"reference": "a", "prediction": "b", "human": 1{"0" * 400}}}]', "a number or a list of numbers"),
        ('[{"reference": "a", "prediction": "b", "human": 1, "format": "pdf"}]', "format"),
        ('{"references": [], "columns": ["reference"], "rows": [[3]]}', "the index of a reference"),
        ('{"references": [], "columns": [["reference"]], "rows": []}', "field 'columns', element 1: found"),
        ('{"references": [], "columns": ["reference"], "rows": [3]}', "field 'rows', element 1: found 3"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_bad_files_are_one_message(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rated.json"
    file.write_text(text)
    assert main(["score", "metrics", "tables", str(file)]) == 2
    assert message in capsys.readouterr().err


def test_two_files_are_scored_with_a_diff_of_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted, answer, page = tmp_path / "wanted.html", tmp_path / "answer.md", tmp_path / "diff.html"
    wanted.write_text(WANTED)
    answer.write_text("Sure:\n| name | points | <script>x</script> |\n| Ann | 13 | 1 |")
    arguments = ["--reference", str(wanted), "--prediction", str(answer), "--format", "html", "--html", str(page)]
    assert main(["score", "tables", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "[ ] The answer is written in HTML" in shown
    assert "13 → 12" in shown
    assert "[-Bob-]" in shown
    assert "table_score|version" in shown
    assert "<script>" not in page.read_text()
    assert "<del>13</del> <ins>12</ins>" in page.read_text()


def test_a_reference_without_a_table_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "empty.html"
    file.write_text("Nothing here.")
    assert main(["score", "tables", "--reference", str(file), "--prediction", str(file), "--format", "html"]) == 2
    assert "contains no table" in capsys.readouterr().err
