from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.builders.head_to_tail.drawing import Partition, choose, find_cap
from evalsuite.builders.head_to_tail.questions import Candidate, Draw, Drawn, QuestionTemplate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Listed:
    """A source that holds its questions in a list and hands out so many of each template and bucket."""

    def __init__(
        self, counts: Mapping[str, Sequence[int]], questions: str = "{template} {bucket} {n}?"
    ) -> None:
        self.templates = self.paper_templates = tuple(QuestionTemplate(name, "thing") for name in counts)
        self.dropped: dict[str, str] = {}
        self.partitions = {"thing": Partition({1: 1})}
        self.template_popularity: dict[str, int] = {}
        self.counts, self.questions = counts, questions
        self.draws: list[dict[str, int]] = []

    def draw(self, sizes: Mapping[QuestionTemplate, int]) -> Draw:
        self.draws.append({template.id: size for template, size in sizes.items()})
        return {
            template: {
                bucket: Drawn(
                    tuple(self._one(template.id, bucket, n) for n in range(min(count, sizes[template]))),
                    exhausted=count <= sizes[template],
                )
                for bucket, count in zip(BUCKETS, self.counts[template.id], strict=True)
            }
            for template in self.templates
        }

    def _one(self, template: str, bucket: str, n: int) -> Candidate:
        question = self.questions.format(template=template, bucket=bucket, n=n)
        return Candidate(f"{bucket}{n}", 1, 0, n, question, ("yes",))


def _counts(source: Listed, per_template: int | None = None, target: int = 1000) -> dict[str, list[int]]:
    chosen = choose(source, source.templates, per_template=per_template, target=target)
    return {template.id: [len(asked[b]) for b in BUCKETS] for template, asked in chosen.questions.items()}


def test_a_template_asks_as_often_as_its_scarcest_bucket_allows() -> None:
    assert _counts(Listed({"a": (3, 50, 9), "b": (8, 2, 90)})) == {"a": [3, 3, 3], "b": [2, 2, 2]}


def test_a_template_asks_no_more_than_it_may() -> None:
    assert _counts(Listed({"a": (30, 50, 90), "b": (3, 20, 90)}), per_template=7) == {
        "a": [7, 7, 7],
        "b": [3, 3, 3],
    }


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
        def draw(self, sizes: Mapping[QuestionTemplate, int]) -> Draw:
            return super().draw({template: 7 * size for template, size in sizes.items()})

    counts = {"a": (500, 700, 900), "b": (3, 2000, 2000), "c": (2000, 2000, 150)}
    frugal, generous = Listed(counts), Generous(counts)
    assert choose(frugal, frugal.templates, per_template=None, target=900) == choose(
        generous, generous.templates, per_template=None, target=900
    )


def test_where_the_data_do_not_reach_the_target_all_that_is_balanced_is_asked() -> None:
    assert _counts(Listed({"a": (5, 6, 7), "b": (1, 1, 0)}), target=1000) == {"a": [5] * 3, "b": [0] * 3}


def test_a_question_that_two_templates_make_is_asked_once_by_the_first_of_them() -> None:
    same = Listed({"a": (2, 2, 2), "b": (4, 4, 4)}, questions="Where is {bucket} {n}?")
    chosen = choose(same, same.templates, per_template=None, target=1000).questions
    asked = [one.question for buckets in chosen.values() for those in buckets.values() for one in those]
    assert len(asked) == len(set(asked)) == 12
    assert [len(those) for those in chosen[same.templates[1]].values()] == [2, 2, 2]


def test_a_question_that_differs_in_case_and_spacing_only_is_the_same() -> None:
    class Shouting(Listed):
        def _one(self, template: str, bucket: str, n: int) -> Candidate:
            question = "WHERE  is it?" if template == "b" else "Where is it?"
            return Candidate(bucket, 1, 0, n, f"{question} {bucket}", ("yes",))

    assert _counts(Shouting({"a": (1, 1, 1), "b": (1, 1, 1)})) == {"a": [1] * 3, "b": [0] * 3}


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 200))
@settings(max_examples=150)
def test_the_level_is_the_least_cap_that_reaches_the_target(available: list[int], target: int) -> None:
    cap = find_cap(available, target)
    reached = [sum(min(allowed, each) for each in available) for allowed in range(target + 1)]
    enough = [allowed for allowed, total in enumerate(reached) if total >= target]
    assert cap == (enough[0] if enough else target)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(*[st.integers(0, 60)] * 3), min_size=1),
    st.integers(1, 80),
)
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
