"""Check answers to Instruction Following by rules, without a judge.

A rule is a JSON object with the name of a `check` and the arguments of this check:

    {"check": "equals", "text": "OK"}                   the whole answer, without surrounding blanks
    {"check": "starts_with", "text": "Lost"}            the answer begins so; also `ends_with`, `contains`, `excludes`
    {"check": "reversed", "text": "lantern"}            the answer is this text from back to front
    {"check": "characters", "at_least": 15}             or `words`; `at_most` or `exactly`
    {"check": "count", "of": ",", "exactly": 2}         how often a text occurs
    {"check": "items", "separator": ",", "exactly": 4, "shape": "AABB"}    every item has this shape
    {"check": "any", "rules": [...]}                    at least one of these rules holds

`"ignore_case": true` ignores upper and lower case, and `"ignore_accents": true` ignores accents. An answer
follows its instruction if it satisfies all rules.
"""

import hashlib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalsuite.core.errors import ScoringError
from evalsuite.samples.items import read_json

PUBLISHED = Path(__file__).parent / "data" / "instruction_rules.json"


def list_broken_rules(answer: str, rules: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """List the rules that an answer breaks."""
    return [rule for rule in rules if not _is_rule_kept(answer.strip(), rule)]


def find_shipped_rules(question: str) -> Sequence[Mapping[str, Any]] | None:
    """Return evalsuite's rules for an official question, as official files lack rules; None for other questions.

    Questions are identified by their SHA-256, so that the package does not contain the questions.
    """
    digest = hashlib.sha256(question.strip().encode()).hexdigest()[:16]
    rules: dict[str, Sequence[Mapping[str, Any]]] = read_json(PUBLISHED, dict)["rules"]
    return rules.get(digest)


def _is_rule_kept(answer: str, rule: Mapping[str, Any]) -> bool:
    try:
        return _CHECKS[rule["check"]](answer, rule)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        checks = ", ".join(sorted(_CHECKS))
        raise ScoringError(
            f"the rule {rule!r} cannot be checked ({error!r}); "
            f"it needs a check of {checks} and what that check compares with"
        ) from error


def _is_within_bounds(number: int, rule: Mapping[str, Any]) -> bool:
    bounds = {name: rule[name] for name in ("at_least", "at_most", "exactly") if name in rule}
    if not bounds:
        raise KeyError("at_least, at_most or exactly")
    lowest, highest = bounds.get("at_least", number), bounds.get("at_most", number)
    return bool(lowest <= number <= highest and number == bounds.get("exactly", number))


def _has_items_of_shape(answer: str, rule: Mapping[str, Any]) -> bool:
    items = [item.strip() for item in answer.split(rule["separator"])]
    shape = rule.get("shape")
    return _is_within_bounds(len(items), rule) and all(
        shape is None or _encode_shape(item) == _encode_shape(shape) for item in items
    )


def _encode_shape(text: str) -> tuple[int, ...]:
    """Replace each character by the index of its first occurrence, so that texts such as AABB and xxyy become equal."""
    return tuple(map(text.index, text))


def _make_text_check(compare: Callable[[str, str], bool]) -> Callable[[str, Mapping[str, Any]], bool]:
    """Make a check that compares the answer with the rule's text; the rule may ignore case and accents."""
    return lambda answer, rule: compare(_drop_case_or_accents(answer, rule), _drop_case_or_accents(rule["text"], rule))


def _drop_case_or_accents(text: str, rule: Mapping[str, Any]) -> str:
    if rule.get("ignore_accents"):
        text = "".join(char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char))
    return text.casefold() if rule.get("ignore_case") else unicodedata.normalize("NFC", text)


_CHECKS: dict[str, Callable[[str, Mapping[str, Any]], bool]] = {
    "equals": _make_text_check(lambda answer, text: answer == text),
    "starts_with": _make_text_check(str.startswith),
    "ends_with": _make_text_check(str.endswith),
    "contains": _make_text_check(lambda answer, text: text in answer),
    "excludes": _make_text_check(lambda answer, text: text not in answer),
    "reversed": _make_text_check(lambda answer, text: answer == text[::-1]),
    "characters": lambda answer, rule: _is_within_bounds(len(answer), rule),
    "words": lambda answer, rule: _is_within_bounds(len(answer.split()), rule),
    "count": lambda answer, rule: _is_within_bounds(answer.count(rule["of"]), rule),
    "items": _has_items_of_shape,
    "any": lambda answer, rule: any(_is_rule_kept(answer, each) for each in rule["rules"]),
}
