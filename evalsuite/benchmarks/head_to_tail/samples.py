"""Questions as samples: one for each mode that can ask it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.head_to_tail.cloze import with_gap
from evalsuite.benchmarks.head_to_tail.natural import is_natural
from evalsuite.benchmarks.head_to_tail.prompts import OWN_MODES, SHOWS_TEMPLATE
from evalsuite.json_codec import digest
from evalsuite.types import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalsuite.benchmarks.head_to_tail.dataset import QuestionItem

# As much of an entity as is shown where questions about it are grouped.
_LONGEST_ENTITY = 60


def samples(items: Sequence[QuestionItem], modes: Sequence[str]) -> Iterator[Sample]:
    """One sample a question and mode; modes that cannot ask a question leave it out.

    The tag `cluster` names the entity, since questions about one entity are answered alike; the tag `natural`
    says whether people may well ask this. The metadata hold the entity and, where the mode shows them, another
    question of the template (`example`) and the sentence with a gap (`gap`).
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
    """Whether a mode asks this question: some ask only natural ones, or those that a gap can be made in."""
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
    """What tells an entity from others: its identifier, or a digest of the record that stands for it."""
    # The published script of DBpedia writes the whole triple, which begins with the entity.
    name = entity[0] if isinstance(entity, list) and len(entity) == 3 else entity
    return name if isinstance(name, str) and 0 < len(name) <= _LONGEST_ENTITY else digest(name)


def _shown(mode: str, item: QuestionItem, template: Sequence[QuestionItem]) -> Mapping[str, Any]:
    own = OWN_MODES.get(mode)
    if own and own.cloze:
        return {"gap": with_gap(item.question)}
    # Another entity's question, so that neither its answer nor its name can give this one away.
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
    """A few questions of each template; the first that differs from one that is asked serves as its example."""
    templates: defaultdict[str, list[QuestionItem]] = defaultdict(list)
    for item in items:
        templates[item.template].append(item)
    return templates
