"""Each mode asks as it says, and the judge's prompt holds all that it needs."""

from __future__ import annotations

import re

import pytest

from evalsuite.benchmarks.head_to_tail.dataset import DOMAINS, load
from evalsuite.benchmarks.head_to_tail.prompts import MODES, judge_prompt, prompt
from evalsuite.errors import SettingsError
from evalsuite.protocols import Setup

QUESTION = "Who wrote {it}?"


def shown(mode: str, domain: str = "movie") -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in prompt(mode, QUESTION, domain)]


def written(mode: str, domain: str = "movie") -> str:
    return "\n".join(content for _, content in shown(mode, domain))


def answers(mode: str, domain: str = "movie") -> list[str]:
    return [content for role, content in shown(mode, domain) if role == "assistant"]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_ends_with_the_question_as_it_stands(mode: str) -> None:
    role, content = shown(mode)[-1]
    assert role == "user"
    assert content.endswith(f"\n\nQuestion: {QUESTION}")


def test_few_shot_shows_one_answer_and_one_unsure_as_turns_that_went_before() -> None:
    assert [role for role, _ in shown("few_shot")] == ["user", "assistant"] * 2 + ["user"]
    assert answers("few_shot") == ["Mercury", "unsure"]


def test_zero_shot_is_few_shot_without_the_examples() -> None:
    assert shown("zero_shot") == shown("few_shot")[-1:]


def test_in_domain_shows_other_examples_in_each_domain_one_of_them_unsure() -> None:
    assert len({tuple(answers("in_domain", domain)) for domain in DOMAINS}) == len(DOMAINS)
    assert all(answers("in_domain", domain)[1] == "unsure" for domain in DOMAINS)
    assert shown("in_domain", "book")[-1] == shown("few_shot", "book")[-1]


def test_in_domain_without_examples_of_a_domain_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(SettingsError, match=r"'sports'.*movie, book, academics, open"):
        shown("in_domain", "sports")
    assert answers("few_shot", "sports") == ["Mercury", "unsure"]


def test_no_brief_takes_away_only_the_wish_for_brevity() -> None:
    assert "brief" in written("few_shot")
    assert "brief" not in written("no_brief")
    assert written("no_brief").count("unsure") == written("few_shot").count("unsure")


def test_no_unsure_takes_away_every_mention_of_it_and_keeps_two_examples() -> None:
    assert "unsure" not in written("no_unsure")
    assert len(answers("no_unsure")) == 2
    assert "brief" in written("no_unsure")


def test_no_example_is_a_question_of_the_shipped_pack() -> None:
    asked = {str(sample.input) for sample in load(Setup(model="m")).samples}
    examples = "\n".join(written(mode, domain) for mode in MODES for domain in DOMAINS)
    assert not [question for question in asked if question in examples]


def test_the_judge_sees_the_question_every_acceptable_answer_and_the_given_one() -> None:
    asked = judge_prompt("Who?", ["A. One", "B. Two"], "C. Three")
    assert "Who?" in asked
    assert "- A. One\n- B. Two" in asked
    assert re.search(r'<given key="(\w+)">\nC\. Three\n</given key="\1">', asked)
