"""From what could be asked to what is asked: equally many of a template for head, torso and tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalsuite.builders.head_to_tail.popularity import Partition
    from evalsuite.builders.head_to_tail.questions import Candidate, Draw, Drawn, QuestionTemplate

# How much the draw of a template grows when its candidates do not suffice.
GROWTH = 4


class QuestionSource(Protocol):
    """A dump that has been read, from which questions can be drawn."""

    @property
    def templates(self) -> Sequence[QuestionTemplate]:
        """What is asked by default; where two templates make the same question, the earlier one has it."""
        ...

    @property
    def paper_templates(self) -> Sequence[QuestionTemplate]:
        """What the paper asks."""
        ...

    @property
    def dropped(self) -> Mapping[str, str]:
        """Templates of the user's that are not asked at all, by id, each with the reason."""
        ...

    @property
    def partitions(self) -> Mapping[str, Partition]:
        """By type of entity."""
        ...

    @property
    def template_popularity(self) -> Mapping[str, int]:
        """By template id how popular what it asks for is, where that differs and is known."""
        ...

    def draw(self, sizes: Mapping[QuestionTemplate, int]) -> Draw:
        """The questions about so many entities in each bucket, those that the seed puts first.

        Args:
            sizes: at least how many entities to draw, by template; fewer where there are no more. Nothing is
                drawn for other templates.
        """
        ...


@dataclass(frozen=True, slots=True)
class Selection:
    """The questions asked.

    Attributes:
        questions: by template and bucket; equally many of a template in each bucket.
        cap: the most that a template was allowed in a bucket.
        empty: by template that asks nothing, the buckets in which it has no question.
    """

    questions: Mapping[QuestionTemplate, Mapping[str, Sequence[Candidate]]]
    cap: int
    empty: Mapping[QuestionTemplate, Sequence[str]]


def choose(
    source: QuestionSource, templates: Sequence[QuestionTemplate], *, per_template: int | None, target: int
) -> Selection:
    """Draws until every template has all that it may ask, or all that there is.

    Args:
        source: where to draw from.
        templates: what to ask.
        per_template: the most questions of a template in a bucket; None for as many as it takes to come
            to `target` in a bucket.
        target: questions in a bucket, over all templates, where `per_template` is None.
    """
    guess = per_template or -(-target // max(len(templates), 1))
    sizes = dict.fromkeys(templates, 4 * guess + 100)
    while True:
        drawn = source.draw(sizes)
        cap = per_template or level([_scarcest(buckets) for buckets in drawn.values()], target)
        lacking = [template for template, buckets in drawn.items() if _lacks(buckets, cap)]
        if not lacking:
            return _selection(drawn, cap)
        sizes |= {template: sizes[template] * GROWTH for template in lacking}


def level(available: Sequence[int], target: int) -> int:
    """The least cap with which the templates together come to the target.

    Args:
        available: for each template how many questions there are at most.
        target: how many are wanted of all together.

    Returns:
        the least `cap` with `sum(min(cap, n)) >= target`; the target itself where no cap is enough.
    """
    for cap in sorted(each for each in {*available, target} if each):
        reached = sum(min(cap, each) for each in available)
        if reached >= target:
            # From the next smaller number on, each further one is asked of all templates that have it.
            return cap - (reached - target) // sum(each >= cap for each in available)
    return target


def _scarcest(buckets: Mapping[str, Drawn]) -> int:
    return min(len(bucket.candidates) for bucket in buckets.values())


def _lacks(buckets: Mapping[str, Drawn], cap: int) -> bool:
    """Whether a bucket with more to draw has fewer candidates than the template will be allowed."""
    allowed = min([cap, *(len(bucket.candidates) for bucket in buckets.values() if bucket.exhausted)])
    return _scarcest(buckets) < allowed


def _selection(drawn: Draw, cap: int) -> Selection:
    """The first candidates of each template, without questions that another template asks already."""
    asked: set[str] = set()
    chosen, empty = {}, {}
    for template, buckets in drawn.items():
        seen = set(asked)
        fresh = {bucket: list(_fresh(buckets[bucket].candidates, seen)) for bucket in BUCKETS}
        count = min(cap, *map(len, fresh.values()))
        chosen[template] = {bucket: candidates[:count] for bucket, candidates in fresh.items()}
        if not count:
            empty[template] = [bucket for bucket in BUCKETS if not fresh[bucket]]
        asked |= {each.key for candidates in chosen[template].values() for each in candidates}
    return Selection(chosen, cap, empty)


def _fresh(candidates: Iterable[Candidate], seen: set[str]) -> Iterator[Candidate]:
    for candidate in candidates:
        if candidate.key not in seen:
            seen.add(candidate.key)
            yield candidate
