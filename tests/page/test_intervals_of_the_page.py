"""What the page recomputes for the filtered cases equals what the report says of the same cases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalsuite import stats
from evalsuite.results.tally import Row, Tally
from evalsuite.stats.multiplicity import holm

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
