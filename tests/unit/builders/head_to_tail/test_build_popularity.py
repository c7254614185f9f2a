from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.builders.head_to_tail.drawing import Partition, Share

HISTOGRAMS = st.dictionaries(st.integers(0, 10**7), st.integers(1, 10**5), max_size=30)


def _entities(histogram: dict[int, int]) -> int:
    return sum(histogram.values())


def test_each_bucket_takes_up_where_a_third_of_all_popularity_has_been_reached() -> None:
    # Sums from the top: 40, 70, 90, 100 of 100; thirds are reached at 34 and at 67.
    cut = Partition({40: 1, 30: 1, 20: 1, 5: 2})
    assert [cut.bucket(popularity) for popularity in (40, 30, 20, 5)] == ["head", "torso", "tail", "tail"]
    assert cut.shares() == {"head": Share(1, 40), "torso": Share(1, 30), "tail": Share(3, 30)}


def test_the_paper_s_own_example_is_cut_as_the_paper_cuts_it() -> None:
    # In its appendix: A = 8; B = 4, C = D = 2; E to L = 1.
    cut = Partition({8: 1, 4: 1, 2: 2, 1: 8})
    assert cut.shares() == {"head": Share(1, 8), "torso": Share(3, 8), "tail": Share(8, 8)}


def test_equal_popularity_stays_on_one_side_where_a_third_is_reached_in_its_midst() -> None:
    # Of 60 in all, the ten entities of popularity 3 span the first third's end at 20.
    cut = Partition({15: 1, 3: 10, 1: 15})
    assert cut.shares() == {"head": Share(11, 45), "torso": Share(), "tail": Share(15, 15)}


def test_a_single_entity_that_outweighs_the_rest_is_the_head() -> None:
    cut = Partition({1000: 1, 1: 3})
    assert cut.shares()["head"] == Share(1, 1000)
    assert cut.shares()["tail"] == Share(3, 3)


def test_entities_without_any_popularity_are_tail() -> None:
    assert Partition({0: 7}).shares()["tail"] == Share(7, 0)
    assert Partition({5: 1, 0: 7}).bucket(0) == "tail"


def test_no_entities_make_three_empty_buckets() -> None:
    assert Partition({}).shares() == dict.fromkeys(BUCKETS, Share())


def test_an_unknown_popularity_has_no_bucket() -> None:
    with pytest.raises(KeyError):
        Partition({5: 1}).bucket(4)


@given(HISTOGRAMS)
@settings(max_examples=100)
def test_the_buckets_cover_all_entities_and_share_none(histogram: dict[int, int]) -> None:
    shares = Partition(histogram).shares()
    assert sum(share.entities for share in shares.values()) == _entities(histogram)
    assert sum(share.popularity for share in shares.values()) == sum(p * n for p, n in histogram.items())


@given(HISTOGRAMS)
@settings(max_examples=100)
def test_more_popular_entities_are_never_in_a_later_bucket(histogram: dict[int, int]) -> None:
    cut = Partition(histogram)
    ranks = [BUCKETS.index(cut.bucket(popularity)) for popularity in sorted(histogram, reverse=True)]
    assert ranks == sorted(ranks)


@given(HISTOGRAMS)
@settings(max_examples=100)
def test_head_and_head_with_torso_are_the_shortest_beginnings_that_reach_one_and_two_thirds(
    histogram: dict[int, int],
) -> None:
    cut = Partition(histogram)
    for rank, bucket in enumerate(BUCKETS[:2], 1):
        inside = [p for p in histogram if BUCKETS.index(cut.bucket(p)) < rank]
        total = sum(p * histogram[p] for p in inside)
        assert 3 * total >= rank * cut.total
        if inside:
            last = min(inside)
            assert 3 * (total - last * histogram[last]) < rank * cut.total
            assert cut.floor(bucket) == last


@given(HISTOGRAMS)
@settings(max_examples=100)
def test_what_is_above_the_top_is_nothing_and_grows_downwards(histogram: dict[int, int]) -> None:
    cut = Partition(histogram)
    above = [cut.above(popularity) for popularity in sorted(histogram, reverse=True)]
    assert above == sorted(above)
    if cut.total:
        assert above[0] == Fraction(0)
        assert all(0 <= share <= 1 for share in above)


def test_the_floor_of_an_empty_bucket_is_out_of_reach() -> None:
    assert Partition({}).floor("head") == 1
    assert Partition({0: 4}).floor("torso") == 1
