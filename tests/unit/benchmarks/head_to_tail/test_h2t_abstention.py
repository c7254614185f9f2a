"""An answer is missing where it is empty or owns up to not knowing, and only there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.benchmarks.head_to_tail.scoring import is_missing


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n",
        "...",
        "unsure",
        "Unsure.",
        '"unsure"',
        "I'm unsure",
        "I am not sure.",
        "I\u2019m not entirely certain who that was.",
        "I don't know",
        "I do not know who directed the film.",
        "I'm sorry, but I don't know.",
        "I'm afraid I don't know.",
        "It isn't known",
        "I do not have that information.",
        "I haven't a clue",
        "That information is not publicly available.",
        "Unsure - I don't know",
        "As an AI language model, I do not have enough information.",
        "Answer: unsure",
        "The answer is unknown.",
        "Unknown",
        "N/A",
        "No idea.",
        "I cannot determine the answer.",
        "I'm not aware of any such film.",
        "unsure\n\nI hope this helps!",
        "unsure\nQuestion: Who else? Answer: unsure",
        "I do not have access to that",
        "There is no information about this",
        "It is not known",
        "It is not known who wrote it.",
        "I'm unable to help",
        "I have no clue",
        "Unsure. I don't know.",
        "Unknown. Please give more context.",
        "Unsure, sorry",
    ],
)
def test_owning_up_to_not_knowing_is_missing(answer: str) -> None:
    assert is_missing(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "Paris",
        "1999",
        "Unknown Pleasures",
        "Unsure, but maybe Paris",
        "Not sure, but I think it was Kubrick",
        "I don't know for certain, perhaps 1999",
        "Sure Thing",
        "Unsure. Stanley Kubrick",
        "Unsure - Stanley Kubrick",
        "No One Knows",
        "Unsure, Stanley Kubrick.",
        "unknown: 1999",
        "I am unable to determine that. Kubrick",
        "None Shall Escape",
        "It is unsure who wrote it; Homer is named most often",
        "Nairobi",
    ],
)
def test_an_attempt_is_not_missing(answer: str) -> None:
    assert not is_missing(answer)


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=60)
def test_any_text_is_decided_and_white_space_around_it_does_not_matter(answer: str) -> None:
    assert is_missing(answer) == is_missing(f" {answer}\n")
