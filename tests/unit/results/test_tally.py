"""Tallies: addition, selection, and the estimates that are read off them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite import stats
from evalsuite.results.tally import Estimate, Row, RunView, Tally

if TYPE_CHECKING:
    import random

rows = st.builds(
    Row,
    case=st.uuids().map(str),
    sample=st.sampled_from("abcdef"),
    epoch=st.integers(1, 3),
    outcome=st.sampled_from(["passed", "failed", "error", "skipped"]),
    tags=st.dictionaries(st.sampled_from(["t", "u", "cluster"]), st.sampled_from("xyz"), max_size=2),
    scores=st.dictionaries(st.sampled_from("mn"), st.sampled_from([0.0, 1.0, 0.1, 1 / 3, 1e9]), max_size=2),
)
tallies = st.lists(rows, max_size=8).map(Tally.of)
modest = settings(max_examples=50, deadline=None)


def row(number: int, score: float, **more: Any) -> Row:
    given = {"sample": f"s{number}", "epoch": 1, "outcome": "passed", "tags": {}, **more}
    return Row(case=f"c{number:03}", scores={"m": score}, **given)


@given(tallies, tallies, tallies)
@modest
def test_addition_does_not_depend_on_order_or_grouping(a: Tally, b: Tally, c: Tally) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Tally() == a
    assert len(a + b) == len(a) + len(b)


@given(st.lists(rows, max_size=20), st.randoms(use_true_random=False))
@modest
def test_everything_read_off_is_the_same_whatever_the_order_of_arrival(given: list[Row], chance: random.Random) -> None:
    shuffled = chance.sample(given, len(given))
    one, other = Tally.of(given), Tally.of(shuffled)
    assert one == other
    assert one.metrics() == other.metrics()
    for metric in one.metrics():
        # To the last bit, so that reports are equal files.
        assert one.mean(metric) == other.mean(metric)
        assert repr(one.estimate(metric)) == repr(other.estimate(metric))


@given(st.lists(rows, max_size=20), st.integers(1, 4))
@modest
def test_shards_add_up_to_the_whole(given: list[Row], parts: int) -> None:
    shards = [Tally.of(given[part::parts]) for part in range(parts)]
    assert sum(shards, Tally()) == Tally.of(given)


@given(tallies)
@modest
def test_groups_divide_the_rows_that_have_the_tag(tally: Tally) -> None:
    groups = tally.groups("t")
    assert list(groups) == sorted(groups)
    assert sum(groups.values(), Tally()) == tally.where(lambda row: "t" in row.tags)
    assert all(tally.where(t=value) == group for value, group in groups.items())


def test_rows_are_chosen_by_all_tags_and_a_condition() -> None:
    tally = Tally.of(row(n, n, tags={"a": str(n % 2), "b": str(n % 3)}) for n in range(12))
    assert [one.sample for one in tally.where(a="1", b="0")] == ["s3", "s9"]
    assert [one.sample for one in tally.where(lambda row: row.scores["m"] > 5, a="1", b="0")] == ["s9"]
    assert not len(tally.where(missing="x"))


def test_an_error_has_no_score_even_if_it_bears_one() -> None:
    tally = Tally.of([row(1, 1.0), row(2, 0.0, outcome="error"), row(3, 0.5, outcome="failed")])
    assert tally.values("m") == [1.0, 0.5]
    assert tally.mean("m") == 0.75


def test_what_was_not_measured_has_neither_mean_nor_estimate() -> None:
    tally = Tally.of([row(1, 1.0)])
    assert tally.mean("other") is None
    assert tally.estimate("other") is None


def test_a_share_of_independent_cases_has_the_interval_of_its_count() -> None:
    tally = Tally.of(row(n, float(n < 7)) for n in range(10))
    exact = stats.exact_interval(7, 10)
    assert tally.estimate("m") == Estimate(0.7, exact.low, exact.high, 10)
    narrow = stats.exact_interval(7, 10, 0.8)
    assert tally.estimate("m", 0.8) == Estimate(0.7, narrow.low, narrow.high, 10)


def test_zeros_and_ones_on_a_wider_range_are_not_a_share() -> None:
    violations, marks = Tally.of(row(n, 0.0) for n in range(50)), Tally.of(row(n, 1.0) for n in range(50))
    # If 3% of further cases have ten violations, their mean is 0.3, and 50 cases show none in 22% of the runs.
    found = violations.estimate("m", bounds=(0, 10))
    interval = stats.betting_interval([0.0] * 50, bounds=(0, 10))
    assert found == Estimate(0.0, 0.0, interval.high, 50)
    assert interval.high > 0.7
    high = marks.estimate("m", bounds=(1, 10))
    assert high is not None
    assert high.low == 1.0
    assert high.high is not None
    assert high.high > 1.6


def test_a_mean_of_other_scores_has_the_t_interval() -> None:
    values = [0.1, 0.5, 0.4, 0.9]
    tally = Tally.of(row(n, value) for n, value in enumerate(values))
    interval = stats.mean_interval(values)
    assert tally.estimate("m") == Estimate(math.fsum(values) / 4, interval.low, interval.high, 4)


@pytest.mark.parametrize("by", ["epochs", "tag"])
def test_epochs_of_a_sample_and_samples_of_a_source_are_one_cluster(by: str) -> None:
    values = [0.1, 0.2, 0.5, 0.4, 0.9, 0.8]
    clusters = ["a", "a", "b", "b", "c", "c"]
    tally = Tally.of(
        row(n, value, sample=cluster) if by == "epochs" else row(n, value, tags={"cluster": cluster})
        for n, (value, cluster) in enumerate(zip(values, clusters, strict=True))
    )
    interval = stats.mean_interval(values, clusters=clusters)
    assert tally.estimate("m") == Estimate(math.fsum(values) / 6, interval.low, interval.high, 6)
    assert tally.clusters("m") == clusters


def test_repeated_outcomes_are_no_independent_outcomes() -> None:
    alone = Tally.of(row(n, float(n < 14)) for n in range(20)).estimate("m")
    repeated = Tally.of(row(n, float(n < 14), sample=f"s{n // 2}") for n in range(20)).estimate("m")
    assert alone is not None
    assert repeated is not None
    assert repeated.value == alone.value
    assert (repeated.high or 0) - (repeated.low or 0) > 1.2 * ((alone.high or 0) - (alone.low or 0))


def test_one_cluster_gives_a_mean_without_an_interval() -> None:
    assert Tally.of(row(n, 0.5, sample="s") for n in range(3)).estimate("m") == Estimate(0.5, n=3)
    assert Tally.of([row(1, 0.5)]).estimate("m") == Estimate(0.5, n=1)


def test_a_view_without_a_folder_has_no_records() -> None:
    with pytest.raises(KeyError, match="c1"):
        RunView("model", Tally()).read("c1")


def test_scores_that_are_all_the_same_prove_nothing_about_those_to_come() -> None:
    tally = Tally.of(row(n, 0.6) for n in range(2))
    assert tally.estimate("m") == Estimate(0.6, None, None, 2)
    bounded = tally.share("m")
    assert bounded is not None
    assert (bounded.low, bounded.high) == (0.0, 1.0)


def test_two_clusters_that_are_equal_by_chance_give_no_interval() -> None:
    values = [1.1, 1.9, 1.3, 1.7]
    tally = Tally.of(row(n, value, sample=f"s{n // 2}") for n, value in enumerate(values))
    assert tally.estimate("m") == Estimate(1.5, None, None, 4)


def test_clusters_whose_sums_cancel_but_for_rounding_give_no_interval() -> None:
    values = [0.1, 0.2, -0.3, 0.3, -0.2, -0.1]
    tally = Tally.of(row(n, value, sample=f"s{n // 3}") for n, value in enumerate(values))
    estimate = tally.estimate("m")
    assert estimate is not None
    assert estimate.low is None
