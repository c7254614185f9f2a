"""Makes samples of questions, one for each mode that can ask it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.head_to_tail.cloze import with_gap
from evalsuite.benchmarks.head_to_tail.natural import is_natural
from evalsuite.benchmarks.head_to_tail.prompts import OWN_MODES, SHOWS_TEMPLATE
from evalsuite.core.json_codec import digest
from evalsuite.core.types import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalsuite.benchmarks.head_to_tail.dataset import QuestionItem

# Longer identifiers are replaced by a digest.
_LONGEST_ENTITY = 60


def samples(items: Sequence[QuestionItem], modes: Sequence[str]) -> Iterator[Sample]:
    """One sample per question and mode; a mode leaves out questions that it cannot ask.

    The tag `cluster` names the entity, since answers about one entity are correlated; the tag `natural` says whether
    people are likely to ask the question. The metadata hold the entity and, if the mode shows them, another
    question of the template (`example`) or the sentence with a gap (`gap`).
    """
    seen: Counter[tuple[str, str]] = Counter()
    templates = _by_template(items)
    for item in items:
        seen[item.origin, item.bucket] += 1
        name = f"{item.origin}-{item.bucket}-{seen[item.origin, item.bucket]}"
        for mode in modes:
            if can_ask(mode, item):
                yield Sample(
                    id=f"{name}-{mode}" if len(modes) > 1 else name,
                    input=item.question,
                    target=item.answers[0] if len(item.answers) == 1 else item.answers,
                    tags=_tags(item, mode),
                    metadata={"entity": item.entity, **_shown(mode, item, templates[item.template])},
                )


def can_ask(mode: str, item: QuestionItem) -> bool:
    """Whether a mode can ask this question: some ask only natural ones, or only those that can be given a gap."""
    own = OWN_MODES.get(mode)
    return own is None or not (
        (own.cloze and with_gap(item.question) is None) or (own.natural and not is_natural(item.template))
    )


def _tags(item: QuestionItem, mode: str) -> dict[str, str]:
    return {
        "domain": item.domain,
        "bucket": item.bucket,
        "template": item.template,
        "mode": mode,
        "natural": "yes" if is_natural(item.template) else "no",
        "cluster": f"{item.origin} {_entity(item.entity)}",
        **item.facets,
    }


def _entity(entity: Any) -> str:
    """The entity's identifier, or a digest of the record that represents it."""
    # The published script of DBpedia writes the whole triple, which begins with the entity.
    name = entity[0] if isinstance(entity, list) and len(entity) == 3 else entity
    return name if isinstance(name, str) and 0 < len(name) <= _LONGEST_ENTITY else digest(name)


def _shown(mode: str, item: QuestionItem, template: Sequence[QuestionItem]) -> Mapping[str, Any]:
    own = OWN_MODES.get(mode)
    if own and own.cloze:
        return {"gap": with_gap(item.question)}
    # The example is about another entity, so that neither its name nor its answer gives this one away.
    other = next((each for each in template if _differs(each, item)), None)
    if mode in SHOWS_TEMPLATE and other:
        return {"example": {"question": other.question, "answer": other.answers[0]}}
    return {}


def _differs(other: QuestionItem, item: QuestionItem) -> bool:
    return (
        other.question != item.question
        and other.entity != item.entity
        and not set(other.answers) & set(item.answers)
    )


def _by_template(items: Sequence[QuestionItem]) -> Mapping[str, Sequence[QuestionItem]]:
    """The questions of each template; the first that differs from a given question serves as its example."""
    templates: defaultdict[str, list[QuestionItem]] = defaultdict(list)
    for item in items:
        templates[item.template].append(item)
    return templates
