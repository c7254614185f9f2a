"""What the page recomputes for the filtered cases equals what the report says of the same cases."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalsuite import stats
from evalsuite.core.types import Metric
from evalsuite.results.tally import Row, Tally
from evalsuite.stats.multiplicity import holm
from tests.page.conftest import summary

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCORES = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(-10, 10, width=32))
EXAMPLES = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def page(make_run: Any, open_page: Any, make_record: Any) -> Any:
    return open_page(make_run("any", [make_record("fr")]))


def in_browser(page: Page, function: str, *arguments: Any) -> Any:
    return page.evaluate(f"(given) => {function}(...given)", list(arguments))


def assert_same(found: dict[str, Any], wanted: Any, *names: str) -> None:
    for name in names:
        ours, theirs = found[name], getattr(wanted, name)
        if theirs is None or ours is None:
            assert ours == theirs
        else:
            assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-10), (name, ours, theirs)


@EXAMPLES
@given(
    st.one_of(
        st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.integers(0, 8)), min_size=1, max_size=40),
        st.lists(st.tuples(SCORES, st.integers(0, 30)), min_size=1, max_size=40),
    )
)
def test_means_and_intervals_are_the_tallys(page: Page, cases: list[tuple[float, int]]) -> None:
    rows = [
        Row(f"case {place}", f"s{cluster}", place, "passed", {}, {"m": value})
        for place, (value, cluster) in enumerate(cases)
    ]
    found = in_browser(
        page, "estimate", [value for value, _ in cases], [f"s{cluster}" for _, cluster in cases]
    )
    wanted = Tally.of(rows).estimate("m")
    assert wanted is not None
    assert_same(found, wanted, "value", "low", "high", "n")


@EXAMPLES
@given(
    st.lists(st.tuples(st.floats(-2, 5, width=32), st.integers(0, 30)), min_size=1, max_size=60),
    st.sampled_from([(-2.0, 5.0), (-10.0, 30.0), (0.0, 5.0)]),
)
def test_scores_within_declared_bounds_have_the_betting_interval(
    page: Page, cases: list[tuple[float, int]], bounds: tuple[float, float]
) -> None:
    rows = [
        Row(f"case {place:02}", f"s{cluster}", place, "passed", {}, {"m": value})
        for place, (value, cluster) in enumerate(cases)
    ]
    values, clusters = [value for value, _ in cases], [f"s{cluster}" for _, cluster in cases]
    recomputed = in_browser(page, "estimate", values, clusters, bounds)
    wanted = Tally.of(rows).estimate("m", bounds=bounds)
    assert wanted is not None
    assert recomputed["n"] == wanted.n
    for side in ("low", "high"):
        ours, theirs = recomputed[side], getattr(wanted, side)
        # Both end in a bisection of 30 steps.
        assert ours == theirs if theirs is None else math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-7)


@pytest.mark.parametrize("count", [1, 2, 21, 700, 5000])
def test_the_order_of_bets_is_that_of_pythons_generator(page: Page, count: int) -> None:
    assert in_browser(page, "drawnOrder", count) == random.Random(0).sample(range(count), count)


def test_a_run_with_declared_ranges_shows_the_same_interval_in_page_and_report(
    make_run: Any, open_page: Any, make_record: Any
) -> None:
    records = [
        make_record(f"s{number}", scores={"grade": 1 + number % 5 + number / 100}) for number in range(40)
    ]
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


@EXAMPLES
@given(st.lists(st.tuples(SCORES, SCORES, st.integers(0, 20)), min_size=2, max_size=40))
def test_paired_differences_are_those_of_a_comparison(
    page: Page, cases: list[tuple[float, float, int]]
) -> None:
    before, after, clusters = (list(column) for column in zip(*cases, strict=True))
    wanted = stats.paired_difference(before, after, clusters=clusters)
    found = in_browser(page, "pairedDifference", before, after, clusters)
    assert math.isclose(found["p"], wanted.pvalue, rel_tol=1e-7, abs_tol=1e-9)
    if math.isfinite(wanted.low):
        assert_same(found, wanted, "low", "high")
    scaled = stats.paired_difference(before, after, clusters=clusters, scale=20.0)
    assert_same(in_browser(page, "pairedDifference", before, after, clusters, 20), scaled, "low", "high")


@EXAMPLES
@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1])), min_size=2, max_size=60))
def test_differences_of_shares_have_tangos_interval(page: Page, cases: list[tuple[int, int]]) -> None:
    before, after = (list(column) for column in zip(*cases, strict=True))
    wanted = stats.paired_difference(before, after, scale=1.0)
    assert_same(in_browser(page, "pairedDifference", before, after, None, 1), wanted, "low", "high")


@EXAMPLES
@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1])), min_size=1, max_size=60))
def test_mcnemar_is_exact(page: Page, cases: list[tuple[int, int]]) -> None:
    before, after = [one for one, _ in cases], [one for _, one in cases]
    assert math.isclose(
        in_browser(page, "mcnemar", before, after), stats.mcnemar(before, after), rel_tol=1e-9, abs_tol=1e-12
    )


@pytest.mark.parametrize("freedom", [1, 2, 5, 30, 400, 99_999])
def test_quantiles_of_students_t_are_scipys(page: Page, freedom: int) -> None:
    from scipy.special import stdtrit

    found = in_browser(page, "studentQuantile", 0.975, freedom)
    assert math.isclose(found, float(stdtrit(freedom, 0.975)), rel_tol=1e-10)


def test_corrected_p_values_are_holms(page: Page) -> None:
    pvalues = [0.04, 0.001, 0.5, 0.02]
    assert in_browser(page, "holm", pvalues) == pytest.approx(holm(pvalues), abs=1e-12)


def test_sums_are_exact(page: Page) -> None:
    values = [1e16, 1.0, -1e16, 0.1, 0.2, 0.3]
    assert in_browser(page, "exactSum", values) == math.fsum(values)


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
            name,
            [
                make_record(f"s{n}", benchmark="tool_eyes", scores={"finished": n % step / 2})
                for n in range(6)
            ],
        )
        for name, step in (("two", 2), ("three", 3))
    ]
    page = open_page(compare(*runs))
    assert page.locator("#part-pairs-tool_eyes ~ label select").input_value() == "finished"
    assert "6 questions" in page.locator("#part-pairs-tool_eyes ~ div .gate").inner_text()
