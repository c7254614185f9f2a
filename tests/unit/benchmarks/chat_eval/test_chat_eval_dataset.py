"""FairEval's and Topical-Chat's published formats, and what is wrong with files that are not in them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalsuite.benchmarks.chat_eval import CHAT_EVAL
from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import Setup

PUBLISHED = Path(__file__).parents[5] / "shared" / "data" / "chat_eval"


def load(data: Path | None, *modes: str) -> Any:
    return CHAT_EVAL.load(Setup("m", data=data, modes=modes or ("single",)))


def test_a_folder_in_the_published_formats_is_read(folder: Any) -> None:
    first, second, dialogue = load(folder()).samples
    assert (first.id, first.input, first.target) == ("pair-1", "Question 1?", "first")
    assert first.metadata["answers"] == ["gpt35 says 1.", "vicuna says 1."]
    assert first.tags == {"task": "pairs", "category": "generic", "cluster": "pair-1", "mode": "single"}
    assert second.target == "second"
    assert (dialogue.id, dialogue.input, dialogue.target) == ("dialogue-1-1", "hello ?", None)
    assert dialogue.metadata["human"] == {"naturalness": 3, "coherence": 2, "engagingness": 1.5, "groundedness": 0}
    assert dialogue.metadata["background"] == "", "_nofact means that there is none"


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the folder shared/data/chat_eval is not beside the project")
def test_the_published_files_load_whole() -> None:
    samples = load(PUBLISHED).samples
    assert Counter(sample.tags["task"] for sample in samples) == {"pairs": 80, "dialogues": 360}
    assert Counter(sample.target for sample in samples) == {"first": 41, "second": 25, "tie": 14, None: 360}
    assert len({sample.metadata["dialogue"] for sample in samples if sample.tags["task"] == "dialogues"}) == 60


def test_the_shipped_samples_are_in_the_same_formats_and_say_whose_labels_they_hold() -> None:
    dataset = load(None)
    assert dataset.source == "shipped samples, labelled by their authors"
    assert Counter(sample.tags["task"] for sample in dataset.samples) == {"pairs": 6, "dialogues": 6}
    assert Counter(sample.target for sample in dataset.samples) == {"first": 3, "second": 2, "tie": 1, None: 6}


def test_each_mode_has_its_own_samples_under_its_own_ids() -> None:
    ids = [sample.id for sample in load(None, "single", "paper:one_by_one:2roles").samples]
    assert len(ids) == len(set(ids)) == 24
    assert "pair-1-single" in ids
    assert "pair-1-paper-one_by_one-2roles" in ids


def test_one_of_the_two_parts_is_enough(folder: Any) -> None:
    data = folder()
    (data / "topical_chat.json").unlink()
    assert [sample.id for sample in load(data).samples] == ["pair-1", "pair-2"]


def test_a_folder_with_neither_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"topical_chat\.json"):
        load(tmp_path)


def dialogue(**changes: Any) -> str:
    scores = {"naturalness": 1, "coherence": 1, "engagingness": 1, "groundedness": 0, **changes.pop("scores", {})}
    record = {"source": "a", "context": "b", "system_id": "c", "system_output": "d", "scores": scores, **changes}
    return json.dumps([record])


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("question.jsonl", '{"question_id": 1, "text": "Q", "category": 5}\n' * 2, "'category'.*found 5"),
        ("question.jsonl", '{"question_id": 1, "text": "Q", "category": "c"}\n' * 2, "line 2.*question 1 again"),
        ("question.jsonl", '{"question_id": 1, "te', "line 1"),
        ("question.jsonl", '{"question_id": true, "text": "Q", "category": "c"}\n' * 2, "'question_id'"),
        ("answer/answer_gpt35.jsonl", '{"question_id": 1, "text": "A", "model_id": "m"}\n', "question 2.*no answer"),
        ("answer/answer_gpt35.jsonl", '{"question_id": 1, "text": "A", "model_id": "m"}\n' * 2, "second answer"),
        ("answer/answer_gpt35.jsonl", '{"question_id": 1, "model_id": "m"}\n', "line 1.*the field 'text'"),
        ("review/review_gpt35_vicuna-13b_human.txt", "CHATGPT\n", "1 lines.*2 questions"),
        ("review/review_gpt35_vicuna-13b_human.txt", "CHATGPT\nGPT4\n", "line 2.*'GPT4'.*CHATGPT, VICUNA13B, TIE"),
        ("question.jsonl", "\n", "no questions"),
        ("topical_chat.json", "{}", "a list"),
        ("topical_chat.json", "[]", "no records"),
        ("topical_chat.json", "[3]", "record 1.*an object"),
        ("topical_chat.json", dialogue(source=None), "record 1.*'source'"),
        ("topical_chat.json", dialogue(scores={"naturalness": 4}), "'naturalness'.*found 4.*1 to 3"),
        ("topical_chat.json", dialogue(scores={"coherence": "good"}), "'coherence'.*a finite number"),
        ("topical_chat.json", dialogue(scores={"naturalness": 10**400}), "'naturalness'.*a finite number"),
    ],
)
def test_what_is_not_in_the_published_format_is_named_with_its_place(
    folder: Any, name: str, text: str, problem: str
) -> None:
    with pytest.raises(DatasetError, match=problem) as raised:
        load(folder(**{name: text}))
    assert Path(name).name in str(raised.value) or "faireval" in str(raised.value)


@pytest.mark.parametrize(("name", "folder_first"), [("faireval", True), ("topical_chat.json", False)])
def test_a_file_for_a_folder_or_the_reverse_is_refused_and_not_passed_over(
    folder: Any, name: str, *, folder_first: bool
) -> None:
    data = folder()
    (data / name).rename(data / "aside")
    if folder_first:
        (data / name).write_text("no folder")
    else:
        (data / name).mkdir()
    with pytest.raises(DatasetError, match=name):
        load(data)


def test_a_review_of_systems_without_answers_is_refused(folder: Any) -> None:
    data = folder()
    (data / "faireval" / "answer" / "answer_gpt35.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"answers of vicuna-13b.*one file review_<one>_<other>_human\.txt"):
        load(data)


def test_two_reviews_leave_open_which_is_meant(folder: Any) -> None:
    data = folder(**{"review/review_vicuna-13b_gpt35_human.txt": "TIE\nTIE"})
    with pytest.raises(DatasetError, match="one file review_"):
        load(data)


def test_a_file_in_another_encoding_is_refused(folder: Any) -> None:
    data = folder()
    (data / "topical_chat.json").write_bytes('["caf\u00e9"]'.encode("latin-1"))
    with pytest.raises(DatasetError, match="0xe9"):
        load(data)
