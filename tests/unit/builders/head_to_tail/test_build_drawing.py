"""Popularity buckets, fit questions, and the choice of equally many per template."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.builders.head_to_tail.drawing import (
    CandidateQuestion,
    Draw,
    PopularityPartition,
    QuestionSource,
    QuestionTemplate,
    choose_questions,
    drop_repeated_answers,
    find_question_cap,
    is_suitable_question,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


HISTOGRAMS = st.dictionaries(st.integers(0, 10**7), st.integers(1, 10**5), max_size=30)


def _entities(histogram: dict[int, int]) -> int:
    return sum(histogram.values())


def test_each_bucket_takes_up_where_a_third_of_all_popularity_has_been_reached() -> None:
    # Sums from the top: 40, 70, 90, 100 of 100; thirds are reached at 34 and at 67.
    cut = PopularityPartition({40: 1, 30: 1, 20: 1, 5: 2})
    assert [cut.find_bucket(popularity) for popularity in (40, 30, 20, 5)] == ["head", "torso", "tail", "tail"]
    assert cut.compute_bucket_totals() == {"head": (1, 40), "torso": (1, 30), "tail": (3, 30)}


def test_the_paper_s_own_example_is_cut_as_the_paper_cuts_it() -> None:
    # In its appendix: A = 8; B = 4, C = D = 2; E to L = 1.
    cut = PopularityPartition({8: 1, 4: 1, 2: 2, 1: 8})
    assert cut.compute_bucket_totals() == {"head": (1, 8), "torso": (3, 8), "tail": (8, 8)}


def test_equal_popularity_stays_on_one_side_where_a_third_is_reached_in_its_midst() -> None:
    # Of 60 in all, the ten entities of popularity 3 span the first third's end at 20.
    cut = PopularityPartition({15: 1, 3: 10, 1: 15})
    assert cut.compute_bucket_totals() == {"head": (11, 45), "torso": (0, 0), "tail": (15, 15)}


def test_a_single_entity_that_outweighs_the_rest_is_the_head() -> None:
    cut = PopularityPartition({1000: 1, 1: 3})
    assert cut.compute_bucket_totals()["head"] == (1, 1000)
    assert cut.compute_bucket_totals()["tail"] == (3, 3)


def test_entities_without_any_popularity_are_tail() -> None:
    assert PopularityPartition({0: 7}).compute_bucket_totals()["tail"] == (7, 0)
    assert PopularityPartition({5: 1, 0: 7}).find_bucket(0) == "tail"


def test_no_entities_make_three_empty_buckets() -> None:
    assert PopularityPartition({}).compute_bucket_totals() == dict.fromkeys(BUCKETS, (0, 0))


def test_an_unknown_popularity_has_no_bucket() -> None:
    with pytest.raises(KeyError):
        PopularityPartition({5: 1}).find_bucket(4)


@given(HISTOGRAMS)
@settings(max_examples=100)
def test_the_buckets_cover_all_entities_and_share_none(histogram: dict[int, int]) -> None:
    shares = PopularityPartition(histogram).compute_bucket_totals()
    assert sum(entities for entities, _ in shares.values()) == _entities(histogram)
    assert sum(popularity for _, popularity in shares.values()) == sum(p * n for p, n in histogram.items())


@given(HISTOGRAMS)
@settings(max_examples=100)
def test_more_popular_entities_are_never_in_a_later_bucket(histogram: dict[int, int]) -> None:
    cut = PopularityPartition(histogram)
    ranks = [BUCKETS.index(cut.find_bucket(popularity)) for popularity in sorted(histogram, reverse=True)]
    assert ranks == sorted(ranks)


@given(HISTOGRAMS)
@settings(max_examples=100)
def test_head_and_head_with_torso_are_the_shortest_beginnings_that_reach_one_and_two_thirds(
    histogram: dict[int, int],
) -> None:
    cut = PopularityPartition(histogram)
    for rank, bucket in enumerate(BUCKETS[:2], 1):
        inside = [p for p in histogram if BUCKETS.index(cut.find_bucket(p)) < rank]
        total = sum(p * histogram[p] for p in inside)
        assert 3 * total >= rank * cut.total
        if inside:
            last = min(inside)
            assert 3 * (total - last * histogram[last]) < rank * cut.total
            assert cut.find_lowest_popularity(bucket) == last


@given(HISTOGRAMS)
@settings(max_examples=100)
def test_what_is_above_the_top_is_nothing_and_grows_downwards(histogram: dict[int, int]) -> None:
    cut = PopularityPartition(histogram)
    above = [cut.compute_share_above(popularity) for popularity in sorted(histogram, reverse=True)]
    assert above == sorted(above)
    if cut.total:
        assert above[0] == Fraction(0)
        assert all(0 <= share <= 1 for share in above)


def test_the_floor_of_an_empty_bucket_is_out_of_reach() -> None:
    assert PopularityPartition({}).find_lowest_popularity("head") == 1
    assert PopularityPartition({0: 4}).find_lowest_popularity("torso") == 1


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who directed Alfred Stone's Tale?", "Alfred Stone"),
        ("Who wrote THE BIG BOOK?", "the big book"),
        ("Where is the café of Ole?", "Cafe"),
        ('In which year did the film "1984" come out?', 1984),
        ("Which company made Disneyland?", "Disney"),
        ("Who is J. R. R. Tolkien?", "J R R Tolkien"),
    ],
)
def test_a_question_that_contains_its_answer_gives_it_away(question: str, answer: str | int) -> None:
    assert not is_suitable_question(question, [answer])


def test_one_given_answer_of_several_is_enough_to_leave_a_question_out() -> None:
    assert not is_suitable_question("Who sang on Abba Gold?", ["Agnetha Fältskog", "ABBA"])


def test_a_question_without_its_answer_is_fit() -> None:
    assert is_suitable_question("Who directed Tale?", ["Alfred Stone"])
    assert is_suitable_question('In which year did the film "1984" come out?', [1985])


@given(st.text(min_size=1, max_size=12), st.text(max_size=12), st.text(max_size=12))
@settings(max_examples=100)
def test_no_question_that_holds_an_answer_word_for_word_is_fit(answer: str, before: str, after: str) -> None:
    assert not is_suitable_question(before + answer + after, [answer])


def test_an_answer_must_be_text() -> None:
    assert is_suitable_question("What is it?", ["7", "東京"])
    assert not is_suitable_question("What is it?", ["..."])
    assert not is_suitable_question("What is it?", ["https://example.org/picture.png"])
    assert not is_suitable_question("What is it?", ["www.example.org"])
    assert not is_suitable_question("What is it?", ["http://example.org"])


def test_a_question_with_no_answer_or_with_too_many_is_not_asked() -> None:
    assert not is_suitable_question("What?", [])
    assert is_suitable_question("What?", [f"answer {n}" for n in range(12)])
    assert not is_suitable_question("What?", [f"answer {n}" for n in range(13)])


def test_answers_stand_once_each_without_gaps_and_blanks() -> None:
    assert drop_repeated_answers(["b", None, "a", "b", "", " a  b ", 3, 3]) == ("b", "a", "a b", 3)


class Listed(QuestionSource):
    """A source that holds its questions in a list and hands out so many of each template and bucket."""

    def __init__(self, counts: Mapping[str, Sequence[int]], questions: str = "{template} {bucket} {n}?") -> None:
        self.templates = self.paper_templates = tuple(QuestionTemplate("thing", name) for name in counts)
        self.partitions = {"thing": PopularityPartition({1: 1})}
        self.counts, self.questions = counts, questions
        self.draws: list[dict[str, int]] = []

    def draw_questions(self, entity_counts: Mapping[QuestionTemplate, int]) -> Draw:
        self.draws.append({template.id: size for template, size in entity_counts.items()})
        return {
            template: {
                bucket: (
                    [self._one(template.id, bucket, n) for n in range(min(count, entity_counts[template]))],
                    count <= entity_counts[template],
                )
                for bucket, count in zip(BUCKETS, self.counts[template.id], strict=True)
            }
            for template in self.templates
        }

    def _one(self, template: str, bucket: str, n: int) -> CandidateQuestion:
        question = self.questions.format(template=template, bucket=bucket, n=n)
        return CandidateQuestion(f"{bucket}{n}", 1, 0, n, question, ("yes",))


def _counts(source: Listed, per_template: int | None = None, target: int = 1000) -> dict[str, list[int]]:
    chosen = choose_questions(source, source.templates, per_template=per_template, target=target)
    return {template.id: [len(asked[b]) for b in BUCKETS] for template, asked in chosen.questions.items()}


def test_a_template_asks_as_often_as_its_scarcest_bucket_allows() -> None:
    assert _counts(Listed({"a": (3, 50, 9), "b": (8, 2, 90)})) == {"a": [3, 3, 3], "b": [2, 2, 2]}


def test_a_template_asks_no_more_than_it_may() -> None:
    assert _counts(Listed({"a": (30, 50, 90), "b": (3, 20, 90)}), per_template=7) == {"a": [7, 7, 7], "b": [3, 3, 3]}


def test_by_default_templates_are_allowed_as_much_as_it_takes_to_reach_the_target() -> None:
    # b has only 2, so a and c have to make up 8 of 10 between them.
    source = Listed({"a": (30, 50, 90), "b": (2, 20, 90), "c": (9, 9, 9)})
    assert _counts(source, target=10) == {"a": [4, 4, 4], "b": [2, 2, 2], "c": [4, 4, 4]}


def test_a_draw_grows_for_the_templates_that_lack_candidates_and_for_no_other() -> None:
    source = Listed({"a": (5000, 5000, 5000), "b": (0, 5000, 5000)})
    assert _counts(source, target=1000) == {"a": [1000] * 3, "b": [0] * 3}
    assert [draw["b"] for draw in source.draws] == [source.draws[0]["b"]] * len(source.draws)


def test_the_result_does_not_depend_on_how_much_is_drawn_at_once() -> None:
    class Generous(Listed):
        def draw_questions(self, entity_counts: Mapping[QuestionTemplate, int]) -> Draw:
            return super().draw_questions({template: 7 * size for template, size in entity_counts.items()})

    counts = {"a": (500, 700, 900), "b": (3, 2000, 2000), "c": (2000, 2000, 150)}
    frugal, generous = Listed(counts), Generous(counts)
    assert choose_questions(frugal, frugal.templates, per_template=None, target=900) == choose_questions(
        generous, generous.templates, per_template=None, target=900
    )


def test_where_the_data_do_not_reach_the_target_all_that_is_balanced_is_asked() -> None:
    assert _counts(Listed({"a": (5, 6, 7), "b": (1, 1, 0)}), target=1000) == {"a": [5] * 3, "b": [0] * 3}


def test_a_question_that_two_templates_make_is_asked_once_by_the_first_of_them() -> None:
    same = Listed({"a": (2, 2, 2), "b": (4, 4, 4)}, questions="Where is {bucket} {n}?")
    chosen = choose_questions(same, same.templates, per_template=None, target=1000).questions
    asked = [one.question for buckets in chosen.values() for those in buckets.values() for one in those]
    assert len(asked) == len(set(asked)) == 12
    assert [len(those) for those in chosen[same.templates[1]].values()] == [2, 2, 2]


def test_a_question_that_differs_in_case_and_spacing_only_is_the_same() -> None:
    class Shouting(Listed):
        def _one(self, template: str, bucket: str, n: int) -> CandidateQuestion:
            question = "WHERE  is it?" if template == "b" else "Where is it?"
            return CandidateQuestion(bucket, 1, 0, n, f"{question} {bucket}", ("yes",))

    assert _counts(Shouting({"a": (1, 1, 1), "b": (1, 1, 1)})) == {"a": [1] * 3, "b": [0] * 3}


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 200))
@settings(max_examples=150)
def test_the_level_is_the_least_cap_that_reaches_the_target(available: list[int], target: int) -> None:
    cap = find_question_cap(available, target)
    reached = [sum(min(allowed, each) for each in available) for allowed in range(target + 1)]
    enough = [allowed for allowed, total in enumerate(reached) if total >= target]
    assert cap == (enough[0] if enough else target)


@given(st.dictionaries(st.sampled_from("abcdef"), st.tuples(*[st.integers(0, 60)] * 3), min_size=1), st.integers(1, 80))
@settings(max_examples=60)
def test_every_template_asks_equally_often_in_every_bucket(
    counts: dict[str, tuple[int, int, int]], target: int
) -> None:
    source = Listed(counts)
    chosen = _counts(source, target=target)
    for name, numbers in chosen.items():
        assert len(set(numbers)) == 1
        assert numbers[0] <= min(counts[name])
    wanted = min(target, sum(map(min, counts.values())))
    assert wanted <= sum(numbers[0] for numbers in chosen.values()) < wanted + len(counts)
