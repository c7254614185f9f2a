"""MT-Bench's judgements, LLMBar, JudgeBench and RewardBench in their published forms; the items are our own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from evalsuite.benchmarks.chat_eval import CHAT_EVAL
from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import Setup

if TYPE_CHECKING:
    from pathlib import Path


def talk(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]


VOTE = {
    "question_id": 81,
    "model_a": "vicuna-13b",
    "model_b": "claude",
    "winner": "model_b",
    "judge": "expert_1",
    "conversation_a": talk("Name a fruit.", "Stone.", "And a berry?", "Brick."),
    "conversation_b": talk("Name a fruit.", "Pear.", "And a berry?", "Cherry."),
    "turn": 1,
}
PAIR = {"input": "Count to two.", "output_1": "1 2", "output_2": "1 3", "label": 1}
JUDGED = {"pair_id": "x", "source": "own-maths", "question": "2 + 2?", "response_A": "5", "response_B": "4"}
CHOSEN = {"chosen": "A pun.", "chosen_model": "m-1", "rejected": "No.", "rejected_model": "m-2", "subset": "own"}
FILES: dict[str, list[Any]] = {
    "mt_bench/data/human-0.jsonl": [VOTE, {**VOTE, "winner": "tie", "turn": 2}],
    "llmbar/Dataset/LLMBar/Adversarial/Manual/dataset.json": [PAIR, {**PAIR, "label": 2}],
    "judgebench/data/pairs.jsonl": [{**JUDGED, "label": "B>A"}],
    "rewardbench/data/filtered-0.parquet": [{"prompt": f"Joke {n}?", **CHOSEN, "id": n} for n in range(40)],
}


def write(folder: Path, files: dict[str, list[Any]]) -> Path:
    for name, items in files.items():
        path = folder / name
        path.parent.mkdir(parents=True)
        lines = "\n".join(map(json.dumps, items))
        path.write_text(json.dumps(items) if path.suffix == ".json" else lines, "utf-8")
        if path.suffix == ".parquet":
            source = path.rename(path.with_suffix(".txt"))
            duckdb.sql(f"COPY (FROM read_json('{source}', format='newline_delimited')) TO '{path}'")
    return folder


def load(folder: Path) -> dict[str, Any]:
    return {sample.id: sample for sample in CHAT_EVAL.load(Setup("m", data=folder, modes=("single",))).samples}


def test_each_set_gives_questions_answers_and_peoples_verdicts(tmp_path: Path) -> None:
    samples = load(write(tmp_path, FILES))
    vote, manual, judged = samples["mt_bench-1"], samples["llmbar-1"], samples["judgebench-1"]
    assert (vote.input, vote.target, vote.metadata["answers"]) == ("Name a fruit.", "second", ["Stone.", "Pear."])
    assert vote.metadata["systems"] == ["vicuna-13b", "claude"]
    assert vote.metadata["names"] == ["vicuna-13b"], "a plain word does not tell a system"
    assert (manual.input, manual.target, manual.metadata["answers"]) == ("Count to two.", "first", ["1 2", "1 3"])
    assert samples["llmbar-2"].target == "second"
    assert manual.tags["category"] == "llmbar: Dataset/LLMBar/Adversarial/Manual"
    assert (judged.target, judged.metadata["answers"], judged.tags["set"]) == ("second", ["5", "4"], "judgebench")


def test_the_second_turn_shows_both_questions_and_both_answers(tmp_path: Path) -> None:
    sample = load(write(tmp_path, FILES))["mt_bench-2"]
    assert "Name a fruit." in sample.input
    assert "And a berry?" in sample.input
    assert "Stone." in sample.metadata["answers"][0]
    assert "Cherry." in sample.metadata["answers"][1]
    assert (sample.target, sample.tags["cluster"]) == ("tie", "mt_bench-81")


def test_the_chosen_answer_of_rewardbench_stands_in_either_place_with_its_system(tmp_path: Path) -> None:
    samples = [sample for sample in load(write(tmp_path, FILES)).values() if sample.tags["set"] == "rewardbench"]
    assert len(samples) == 40
    assert {sample.target for sample in samples} == {"first", "second"}
    for sample in samples:
        better = ("first", "second").index(sample.target)
        assert sample.metadata["answers"][better] == "A pun."
        assert sample.metadata["systems"][better] == "m-1"


def test_a_judge_that_knows_the_right_answers_agrees_with_people_on_every_set(tmp_path: Path, judged: Any) -> None:
    files = {**FILES, "mt_bench/data/human-0.jsonl": [VOTE]}
    files["llmbar/Dataset/LLMBar/Adversarial/Manual/dataset.json"] = [PAIR]

    def judge(prompt: str) -> str:
        places = [prompt.rfind(pair) for pair in ("Pear.", "1 2", "\n4\n", "A pun.")]
        wrong = [prompt.rfind(pair) for pair in ("Stone.", "1 3", "\n5\n", "No.")]
        return f"Verdict: Answer {1 + (max(places) > max(wrong))}"

    records = judged(judge, data=write(tmp_path, files)).records
    assert len(records) == 43
    assert {record.scores["accuracy"] for record in records.values()} == {1.0}


@pytest.mark.parametrize(
    ("name", "item", "problem"),
    [
        ("mt_bench/human.jsonl", {**VOTE, "winner": "model_c"}, "'winner' is 'model_c'"),
        ("mt_bench/human.jsonl", {**VOTE, "turn": 3}, "turn 3 of 2"),
        ("llmbar/dataset.json", {"input": "a", "label": 1}, "output_1"),
        ("judgebench/a.jsonl", {**JUDGED, "label": "A>B", "response_A": 5}, "'response_A' is 5, not text"),
        ("judgebench/a.txt", {}, "found no questions"),
    ],
)
def test_an_item_in_another_form_is_refused_with_its_place(tmp_path: Path, name: str, item: Any, problem: str) -> None:
    with pytest.raises(DatasetError, match=problem):
        load(write(tmp_path, {name: [item]}))
