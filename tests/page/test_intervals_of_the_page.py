"""The page shows the report's own intervals and p-values, and says why it shows none for other selections."""

from __future__ import annotations

from typing import Any

import pytest

from evalsuite import stats
from evalsuite.core.types import Metric
from tests.page.conftest import summary


def printed(estimate: dict[str, Any]) -> str:
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"


@pytest.fixture
def folder(make_run: Any, make_record: Any) -> Any:
    records = [
        make_record(
            f"s{number:02}",
            outcome="failed" if number % 3 == 0 else "passed",
            scores={"exact_match": float(number % 3 != 0)},
            tags={"region": ["eu", "asia"][number % 2], "size": ["small", "large"][number // 20]},
        )
        for number in range(40)
    ]
    gates = ["capitals[asia].exact_match >= 0.1", "capitals[region=eu].exact_match >= 0.1"]
    return make_run("tagged", records, gate=gates)


def test_the_cases_of_one_tag_value_have_the_interval_of_the_summary(open_page: Any, folder: Any) -> None:
    shown = open_page(folder, "#cases?benchmark=capitals&tag=region%3Aasia").locator("#tallies").inner_text()
    asia = summary(folder)["benchmarks"]["capitals"]["tags"]["region"]["asia"]["exact_match"]
    assert printed(asia) in shown
    assert "No intervals" not in shown


@pytest.mark.parametrize("query", ["outcome=failed", "metric=exact_match&min=0.5", "q=Paris"])
def test_cases_chosen_by_answers_or_scores_have_no_interval_and_the_page_says_why(
    open_page: Any, folder: Any, query: str
) -> None:
    page = open_page(folder, f"#cases?{query}")
    assert "chosen by their answers or scores" in page.locator("#tallies").inner_text()
    assert "[" not in page.locator(".means").inner_text()


def test_two_tag_values_at_once_have_a_mean_without_an_interval(open_page: Any, folder: Any) -> None:
    page = open_page(folder, "#cases?tag=region%3Aasia&tag=size%3Asmall")
    assert "for single tag values" in page.locator("#tallies").inner_text()
    assert "[" not in page.locator(".means").inner_text()


def test_the_cases_behind_a_gate_on_a_tag_have_the_tags_interval(open_page: Any, folder: Any) -> None:
    europe = summary(folder)["benchmarks"]["capitals"]["tags"]["region"]["eu"]["exact_match"]
    assert printed(europe) in open_page(folder, "#cases?gate=1").locator(".means").inner_text()


def test_a_difference_from_the_baseline_is_shown_for_all_cases_and_for_none_chosen_by_scores(
    make_run: Any, make_record: Any, open_page: Any
) -> None:
    names = [f"s{number}" for number in range(12)]
    make_run("old", [make_record(name) for name in names])
    worse = [make_record(name, scores={"exact_match": float(name > "s4")}) for name in names]
    run = make_run("new", worse, baseline=["old"])
    assert "p = " in open_page(run, "#cases").locator(".means").inner_text()
    page = open_page(run, "#cases?changed=lost")
    page.get_by_text("chosen by their answers or scores").wait_for()
    assert "p = " not in page.locator(".means").inner_text()


def test_a_run_with_declared_ranges_shows_the_same_interval_in_page_and_report(
    make_run: Any, open_page: Any, make_record: Any
) -> None:
    records = [make_record(f"s{number}", scores={"grade": 1 + number % 5 + number / 100}) for number in range(40)]
    folder = make_run("graded", records, metrics={"capitals": {"grade": Metric(range=(1.0, 10.0))}})
    printed = summary(folder)["benchmarks"]["capitals"]["metrics"]["grade"]
    shown = f"{printed['value']:.3f} [{printed['low']:.3f}, {printed['high']:.3f}]"
    page = open_page(folder, "#cases")
    assert shown in page.locator(".means").inner_text()
    assert shown in (folder.path / "report.md").read_text("utf-8")


def test_a_share_of_samples_that_need_some_of_their_epochs_is_the_reports(
    make_run: Any, open_page: Any, make_record: Any
) -> None:
    records = [
        make_record(
            f"s{number}",
            case=f"cases/test_capitals.py::test_capitals[s{number}-{epoch}]",
            epoch=epoch,
            facts={"at_least": 2},
            outcome="passed" if epoch <= number % 4 else "failed",
        )
        for number in range(12)
        for epoch in (1, 2, 3)
    ]
    folder = make_run("epochs", records)
    printed = summary(folder)["benchmarks"]["capitals"]["metrics"]["pass_rate"]
    page = open_page(folder, "#cases?benchmark=capitals")
    assert (
        f"{printed['value']:.3f} [{printed['low']:.3f}, {printed['high']:.3f}]"
        in page.locator(".mean", has_text="pass_rate").inner_text()
    )


def test_runs_with_different_epochs_are_compared_question_by_question(
    make_run: Any, open_page: Any, make_record: Any, compare: Any
) -> None:
    values = [number % 7 / 10 for number in range(12)]
    once = [make_record(f"s{number}", scores={"f1": value}) for number, value in enumerate(values)]
    twice = [
        make_record(
            f"s{number}",
            case=f"cases/test_capitals.py::test_capitals[s{number}-e{epoch}]",
            epoch=epoch,
            scores={"f1": value * epoch / 2 + number / 100},
        )
        for number, value in enumerate(values)
        for epoch in (1, 2)
    ]
    file = compare(make_run("once", once), make_run("twice", twice))
    means = [value * 0.75 + number / 100 for number, value in enumerate(values)]
    wanted = stats.paired_difference(values, means)
    shown = f"{wanted.difference:.3f} [{wanted.low:.3f}, {wanted.high:.3f}]".replace("-", "\u2212")
    line = open_page(file).locator("#part-pairs-capitals ~ div .gate").inner_text()
    assert shown in line.replace("+", "")
    assert "12 questions" in line
    assert f"[{wanted.low:.3f}, {wanted.high:.3f}]" in file.with_suffix(".md").read_text("utf-8")


def test_pairs_are_shown_by_a_metric_that_was_measured_where_the_primary_one_was_not(
    make_run: Any, open_page: Any, make_record: Any, compare: Any
) -> None:
    runs = [
        make_run(
            name, [make_record(f"s{n}", benchmark="tool_eyes", scores={"finished": n % step / 2}) for n in range(6)]
        )
        for name, step in (("two", 2), ("three", 3))
    ]
    page = open_page(compare(*runs))
    assert page.locator("#part-pairs-tool_eyes ~ label select").input_value() == "finished"
    assert "6 questions" in page.locator("#part-pairs-tool_eyes ~ div .gate").inner_text()
