"""Criteria with several yes/no questions (weighted checklists, decision trees), and criteria as cases write them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.judges.asking import object_schema
from evalsuite.judges.criteria import TEXT, YES_OR_NO_SCHEMA, Likert, Reading, YesNo, read_yes_or_no
from evalsuite.judges.parsing import (
    CLOSING,
    OPENING,
    REASON,
    YES_OR_NO,
    NumberForm,
    find_objects,
    one_line,
    read_value,
    remove_thoughts,
)

if TYPE_CHECKING:
    from evalsuite.core.types import Sample
    from evalsuite.judges.criteria import Criteria

Verdicts = dict[int, tuple[float, str]]  # verdict and reason, by the question's number

NUMBERED = re.compile(
    rf"^[\s*`_#>-]{{0,6}}(?:criterion )?(\d{{1,3}})[.):*\s]{{1,6}}{OPENING}[*`_]{{0,3}}({YES_OR_NO.pattern})"
    rf"[*`_]{{0,3}}{CLOSING}({REASON})\s*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line such as `2. no - it evades`."""


@dataclass(frozen=True, slots=True)
class Checklist:
    """Several weighted yes/no questions; the value is the weight of those answered yes, as a share of the total."""

    weights: Mapping[str, float]
    worst, best = 0.0, 1.0

    def __post_init__(self) -> None:
        """Refuse an empty list and weights that are not positive numbers."""
        if not self.weights or any(not 0 < weight < math.inf for weight in self.weights.values()):
            raise SettingsError(f"a checklist has criteria with weights above 0; got {dict(self.weights)!r:.200}")

    def request(self) -> str:
        listed = "\n".join(f"{at}. {question}" for at, question in enumerate(self.weights, 1))
        return (
            f"Decide each of these, by itself:\n{listed}\n"
            'Reply with one JSON object: {"answers": [{"criterion": 1, "reason": "<one sentence>", "verdict": "yes" or '
            '"no"}, ...]}, with one entry for each criterion.'
        )

    def schema(self) -> dict[str, Any]:
        entry = object_schema(criterion={"type": "integer"}, reason=TEXT, verdict=YES_OR_NO_SCHEMA)
        return object_schema(answers={"type": "array", "items": entry})

    def read(self, text: str) -> Reading:
        answers = self.answers(text)
        total = math.fsum(self.weights.values())
        value = math.fsum(weight * answers[one][0] for one, weight in self.weights.items()) / total
        missed = [f"not met: {one}{f' ({why})' if why else ''}" for one, (met, why) in answers.items() if not met]
        return Reading(value, "; ".join(missed) or "all met", {one: met for one, (met, _) in answers.items()})

    def answers(self, text: str) -> dict[str, tuple[float, str]]:
        """Read 1.0 or 0.0 and the reason for each question."""
        text = remove_thoughts(text)
        verdicts = _read_entries(text) or _read_lines(text)
        questions = list(self.weights)
        missing = [str(at) for at in range(1, len(questions) + 1) if at not in verdicts]
        if missing:
            raise ValueError(f"it has no verdict, yes or no, for criterion {', '.join(missing)}.")
        return {question: verdicts[at] for at, question in enumerate(questions, 1)}


@dataclass(frozen=True, slots=True)
class Tree:
    """A decision tree: yes/no questions whose answers lead to further questions or to a score.

    The judge answers all questions at once; its answers then select the path through the tree.
    """

    root: Mapping[str, Any]  # `{"question": ..., "yes": <node or number>, "no": <node or number>}`

    def __post_init__(self) -> None:
        """Refuse nodes and leaves that do not have this form."""
        _find_leaves(self.root)

    @property
    def worst(self) -> float:
        return min(_find_leaves(self.root))

    @property
    def best(self) -> float:
        return max(_find_leaves(self.root))

    def request(self) -> str:
        return self._checklist().request()

    def schema(self) -> dict[str, Any]:
        return self._checklist().schema()

    def read(self, text: str) -> Reading:
        answers = self._checklist().answers(text)
        node: Any = self.root
        parts: dict[str, float] = {}
        reasons: list[str] = []
        while isinstance(node, Mapping):
            met, why = answers[node["question"]]
            parts[node["question"]] = met
            reasons.append(f"{node['question']} {'yes' if met else 'no'}{f' ({why})' if why else ''}")
            node = node["yes" if met else "no"]
        return Reading(float(node), "; ".join(reasons), parts)

    def _checklist(self) -> Checklist:
        return Checklist(dict.fromkeys(_find_questions(self.root), 1.0))


def _read_entries(text: str) -> Verdicts:
    for item, _, _ in find_objects(text):
        entries = item.get("answers")
        if isinstance(entries, Sequence) and not isinstance(entries, str):
            numbered = [
                (int(read_value(entry.get("criterion"), NumberForm(math.inf)) or at), entry)
                for at, entry in enumerate(entries, 1)
                if isinstance(entry, Mapping)
            ]
            return _join(
                (number, entry.get("verdict", entry.get("met", entry.get("answer"))), entry.get("reason"))
                for number, entry in numbered
            )
    return {}


def _read_lines(text: str) -> Verdicts:
    lines = (match.groups() for match in NUMBERED.finditer(text))
    return _join((int(number), word, reason.strip(" -:.,()\n")) for number, word, reason, *_ in lines)


def _join(found: Any) -> Verdicts:
    verdicts: Verdicts = {}
    for number, word, reason in found:
        verdict = read_yes_or_no(word)
        if verdicts.get(number, (verdict, ""))[0] != verdict:
            raise ValueError(f"it has two verdicts for criterion {number}.")
        verdicts[number] = (verdict, one_line(reason))
    return verdicts


def _find_questions(node: Any) -> list[str]:
    if not isinstance(node, Mapping):
        return []
    return [node["question"], *_find_questions(node["yes"]), *_find_questions(node["no"])]


def _find_leaves(node: Any) -> list[float]:
    if isinstance(node, Mapping):
        if set(node) != {"question", "yes", "no"}:
            raise SettingsError(f"a node of a decision tree has question, yes and no; got {', '.join(map(str, node))}")
        return [*_find_leaves(node["yes"]), *_find_leaves(node["no"])]
    if isinstance(node, bool) or not isinstance(node, (int, float)):
        raise SettingsError(f"a leaf of a decision tree is a number; got {node!r:.80}")
    return [float(node)]


def as_criteria(
    criteria: str | Sequence[str] | Mapping[str, Any] | Criteria,
    scale: tuple[int, int] | None = None,
    anchors: Mapping[int, str] | None = None,
) -> Criteria:
    """Convert criteria as a case writes them: a question, a list, weights, a tree; see `rubric`."""
    if isinstance(criteria, str):
        if scale or anchors:
            low, high = scale or (min(anchors or ()), max(anchors or ()))
            return Likert(criteria, low, high, anchors or {})
        return YesNo(criteria)
    if scale or anchors:
        raise SettingsError("a scale belongs to one question; a checklist and a tree have none")
    if isinstance(criteria, Mapping):
        return Tree(criteria) if "question" in criteria else Checklist(criteria)
    if isinstance(criteria, Sequence):
        return Checklist(dict.fromkeys(criteria, 1.0))
    return criteria


def criteria_of(sample: Sample) -> Criteria:
    """Read the checklist in a sample's metadata."""
    criteria = sample.metadata.get("criteria")
    if not isinstance(criteria, (str, list, tuple, Mapping)) or not criteria:
        raise ScoringError(f"sample {sample.id} has no checklist under 'criteria' in its metadata")
    return as_criteria([criteria] if isinstance(criteria, str) else criteria)
