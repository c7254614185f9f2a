"""Questions become samples: clusters by entity, gaps, and modes that leave questions out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalsuite.benchmarks.head_to_tail.dataset import is_shipped, load
from evalsuite.benchmarks.head_to_tail.question_forms import with_gap
from evalsuite.core.protocols import Setup

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = [
    ["tt1", "imdb-title-4", "Who directed Alpha?", ["Ann"]],
    ["tt1", "imdb-title-3", "How long is the running time of Alpha (in minutes)?", 90],
    ["tt2", "imdb-title-4", "Who directed Beta?", ["Bo"]],
    [["<e>", "<p>", "<o>"], "<p>", "Why Gamma?", "Because"],
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "head_to_tail_imdb.json"
    file.write_text(json.dumps({"head": RECORDS, "torso": [], "tail": []}), encoding="utf-8")
    return tmp_path


def test_questions_about_one_entity_are_one_cluster(data: Path) -> None:
    samples = load(Setup(model="m", data=data)).samples
    assert [sample.tags["cluster"] for sample in samples] == ["imdb tt1", "imdb tt1", "imdb tt2", "imdb <e>"]


def test_a_whole_record_for_an_entity_is_told_from_others_by_its_digest(data: Path) -> None:
    records = [
        [{"author": [name], "title": "T" * 200}, "dblp-name-0", f"{name}?", "x"] for name in ("A", "B", "A")
    ]
    file = data / "head_to_tail_imdb.json"
    file.write_text(json.dumps({"head": records, "torso": [], "tail": []}), encoding="utf-8")
    first, second, third = (sample.tags["cluster"] for sample in load(Setup(model="m", data=data)).samples)
    assert first == third != second
    assert len(first) < 30


def test_the_mode_natural_leaves_out_what_hardly_anybody_asks_and_says_so(data: Path) -> None:
    dataset = load(Setup(model="m", data=data, modes=("natural", "few_shot")))
    asked = [sample.input for sample in dataset.samples if sample.tags["mode"] == "natural"]
    assert asked == ["Who directed Alpha?", "Who directed Beta?", "Why Gamma?"]
    assert dataset.source == "head_to_tail_imdb.json; the mode natural cannot ask 1 of its 4 questions"
    assert {sample.id for sample in dataset.samples} >= {"imdb-head-2-few_shot", "imdb-head-3-natural"}


def test_the_mode_cloze_leaves_out_questions_that_no_rule_fits(data: Path) -> None:
    dataset = load(Setup(model="m", data=data, modes=("cloze",)))
    assert [sample.metadata["gap"] for sample in dataset.samples] == [
        "Alpha was directed by _.",
        "The running time of Alpha (in minutes) is _.",
        "Beta was directed by _.",
    ]
    assert "the mode cloze cannot ask 1 of its 4 questions" in dataset.source


def test_the_shipped_pack_is_known_whatever_a_mode_leaves_out() -> None:
    assert is_shipped(load(Setup(model="m", modes=("cloze",))).source)
    assert not is_shipped("head_to_tail_imdb.json")


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        # As built here.
        ('In which year did the film "X" come out?', 'The film "X" came out in the year _.'),
        (
            'In which year did the TV series "X" first go on air?',
            'The TV series "X" first went on air in the year _.',
        ),
        ('How many minutes does the film "X" run?', 'The film "X" runs _ minutes.'),
        ('Which actor or actress played Y in the film "X"?', 'Y in the film "X" was played by _.'),
        ('Who wrote the film "X" (1999)?', 'The film "X" (1999) was written by _.'),
        ('In which year was Z, known for "X", born?', 'Z, known for "X", was born in the year _.'),
        ('What is the profession of Z, known for "X"?', 'The profession of Z, known for "X" is _.'),
        ("Name a work that Z is known for.", "One work that Z is known for is _."),
        ("What is the ISBN-13 of X (published in 1999)?", "The ISBN-13 of X (published in 1999) is _."),
        # In the published scripts.
        ("In which year was X released?", "X was released in the year _."),
        ("What's the series start year of X?", "The series start year of X is _."),
        ("Z (known for X) is in what department?", "Z (known for X) is in the department _."),
        ("What movie is Z known for?", "The movie that Z is known for is _."),
        ("What profession does Z (known for X) have?", "Z (known for X) has the profession of _."),
        ("Where was ICML 2001 held?", "ICML 2001 was held in _."),
        ("Where did Z receive the Ph.D. (thesis: T)?", "Z received the Ph.D. (thesis: T) at _."),
        ("In which year did Z receive the Ph.D. from U?", "Z received the Ph.D. from U in the year _."),
        ('In which venue was "X" published?', '"X" was published in the venue _.'),
    ],
)
def test_a_question_becomes_a_sentence_with_a_gap(question: str, sentence: str) -> None:
    assert with_gap(question) == sentence


def test_a_question_that_no_rule_fits_has_no_gap() -> None:
    assert with_gap("Why?") is None
