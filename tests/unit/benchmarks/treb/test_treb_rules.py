from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.treb.rules import broken_rules, published_rules
from evalsuite.core.errors import ScoringError


def keeps(answer: str, **rule: Any) -> bool:
    return not broken_rules(answer, [rule])


@pytest.mark.parametrize(
    ("rule", "kept", "broken"),
    [
        ({"check": "equals", "text": "OK"}, " OK\n", "OK."),
        ({"check": "equals", "text": "ok", "ignore_case": True}, "Ok", "Okay"),
        ({"check": "starts_with", "text": "Lost"}, "Lost castle", "A lost castle"),
        ({"check": "ends_with", "text": "end"}, "the end", "end of it"),
        ({"check": "contains", "text": "window"}, "by the window", "by the door"),
        ({"check": "excludes", "text": "ship", "ignore_case": True}, "a boat", "a Ship"),
        ({"check": "reversed", "text": "lantern"}, "nretnal", "lantern"),
        ({"check": "characters", "at_least": 3, "at_most": 5}, "four", "longer"),
        ({"check": "words", "exactly": 2}, "two words", "these three words"),
        ({"check": "count", "of": ",", "exactly": 2}, "a, b, c", "a, b"),
        (
            {"check": "items", "separator": "，", "exactly": 2, "shape": "AABB"},
            "高高兴兴，平平安安",
            "高兴，平安",
        ),
        ({"check": "items", "separator": ",", "at_least": 2}, "a, b, c", "a"),
        ({"check": "equals", "text": "chéng", "ignore_accents": True}, "cheng", "shen"),
        (
            {"check": "any", "rules": [{"check": "equals", "text": "a"}, {"check": "equals", "text": "b"}]},
            "b",
            "c",
        ),
    ],
)
def test_each_check_tells_answers_apart(rule: dict[str, Any], kept: str, broken: str) -> None:
    assert keeps(kept, **rule)
    assert not keeps(broken, **rule)


def test_all_broken_rules_are_named() -> None:
    rules = [{"check": "contains", "text": word} for word in ("red", "green", "blue")]
    assert broken_rules("a green field", rules) == [rules[0], rules[2]]


@given(st.text(), st.text())
def test_contains_and_excludes_are_opposites(answer: str, text: str) -> None:
    assert keeps(answer, check="contains", text=text) != keeps(answer, check="excludes", text=text)


@given(st.text("abcXYZ089汉字é,", min_size=1))
def test_a_text_reversed_keeps_its_rule(text: str) -> None:
    assert keeps(text[::-1], check="reversed", text=text)


@pytest.mark.parametrize(
    "rule",
    [
        {"check": "sounds_nice"},
        {"text": "no check"},
        {"check": "equals"},
        {"check": "equals", "text": 5},
        {"check": "characters"},
        {"check": "characters", "at_least": "3"},
        {"check": "count", "exactly": 1},
        {"check": "any"},
        {"check": "items", "separator": "", "exactly": 1},
        "not even an object",
    ],
)
def test_a_rule_that_cannot_be_checked_is_an_error_that_names_it(rule: Any) -> None:
    with pytest.raises(ScoringError, match="cannot be checked"):
        broken_rules("an answer", [rule])


def test_an_official_question_is_known_by_its_hash_alone() -> None:
    # The question of the released checker about two Chinese words; its text is in no file of ours.
    question = 'Please reply to me using only the chinese words "好的".'
    rules = published_rules(f" {question}\n")
    assert rules is not None
    assert broken_rules("好的", rules) == []
    assert broken_rules("好的！", rules) == rules


def test_other_questions_have_no_published_rules() -> None:
    assert published_rules("What is the capital of France?") is None


def test_every_published_rule_can_be_checked() -> None:
    from evalsuite.benchmarks.treb.rules import _published

    assert len(_published()) == 18
    for digest, rules in _published().items():
        assert len(digest) == len(hashlib.sha256().hexdigest()[:16])
        assert broken_rules("an answer that follows none of them", rules)
