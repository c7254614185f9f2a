"""What a judge gets to see."""

from __future__ import annotations

import re

import pytest

from evalsuite.core.types import Message
from evalsuite.judges.prompts import JudgedInput, format_conversation, redact_names


def test_the_answers_stand_in_their_own_order_or_in_the_other() -> None:
    subject = JudgedInput("Why?", ("because", "no reason"))
    assert subject.format_parts().index("because") < subject.format_parts().index("no reason")
    assert subject.format_parts(swapped=True).index("no reason") < subject.format_parts(swapped=True).index("because")
    shown = subject.format_parts(swapped=True)
    assert re.search(r'<answer_1 key="(\w+)">\nno reason\n</answer_1 key="\1">', shown)


def test_empty_parts_are_left_out() -> None:
    assert [name for name, _ in JudgedInput("Why?", ("so",)).list_parts()] == ["question", "answer"]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("As ChatGPT, I think", "As [name withheld], I think"),
        ("I am Vicuna-13B.", "I am [name withheld]."),
        ("vicuna wool", "[name withheld] wool"),
        ("the gpt35x model", "the gpt35x model"),
    ],
)
def test_names_are_withheld_as_whole_words_the_longest_first(text: str, result: str) -> None:
    assert redact_names(text, ["chatgpt", "Vicuna", "Vicuna-13B", "gpt35", ""]) == result


def test_a_text_without_names_to_withhold_stays_as_it_is() -> None:
    assert redact_names("As ChatGPT, I think", []) == "As ChatGPT, I think"


def test_a_conversation_is_shown_with_its_roles() -> None:
    said = (Message("user", "Hi"), Message("assistant", "Hello"))
    assert format_conversation(said) == "user: Hi\n\nassistant: Hello"
    assert format_conversation("Hi") == "Hi"
