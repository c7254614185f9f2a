"""The metrics that ask no judge: against what was really said, that response itself left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalsuite.benchmarks.chat_eval.dialogue_tables import dialogue_tables
from evalsuite.benchmarks.chat_eval.judge_settings import judge_settings
from evalsuite.metrics.text import bleu, rouge_l
from evalsuite.stats import spearman

SAID = "yes , a whole herd of them in kenya"
RESPONSES = ["yes , a herd in kenya", "yes , herds", "no", "a herd of elephants in a zoo"]


def topical_chat(dialogues: int) -> str:
    def record(number: int, system: str, text: str, score: float) -> dict[str, Any]:
        scores = {"naturalness": score, "coherence": score, "engagingness": score, "groundedness": score / 3}
        source = f"have you seen elephants , number {number} ?"
        return {
            "source": source,
            "context": "a fact",
            "system_id": system,
            "system_output": text,
            "scores": scores,
        }

    records = [
        record(number, system, text, 1 + (at + number) % 3)
        for number in range(dialogues)
        for at, (system, text) in enumerate(
            [("Original Ground Truth", SAID), *((f"S{at}", text) for at, text in enumerate(RESPONSES))]
        )
    ]
    return json.dumps(records)


def scoring(prompt: str) -> str:
    return "Verdict: 1\nnaturalness: 2\ncoherence: 2\nengagingness: 2\ngroundedness: 1"


def test_responses_are_compared_with_what_was_really_said_which_is_left_out_itself(
    judged: Any, folder: Any
) -> None:
    run = judged(scoring, "single", "mec", data=folder(**{"topical_chat.json": topical_chat(3)}))
    (table, _) = dialogue_tables(judge_settings([run.view]))
    rows: dict[Any, Any] = {row[0]: row[1:] for row in table.rows}
    assert rows["ROUGE-L"][-1] == rows["BLEU"][-1] == 3 * len(RESPONSES), "once, in however many modes"
    for name, metric in (("ROUGE-L", rouge_l), ("BLEU", bleu)):
        values = [metric(text, SAID) for text in RESPONSES] * 3
        people = [float(1 + (at + number) % 3) for number in range(3) for at in range(1, len(RESPONSES) + 1)]
        assert rows[name][0].value == pytest.approx(spearman(values, people).statistic)


def test_without_what_was_really_said_there_is_nothing_to_compare(judged: Any) -> None:
    (table, _) = dialogue_tables(judge_settings([judged(scoring, "single").view]))
    assert "ROUGE-L" not in {row[0] for row in table.rows}


def test_weighted_scores_are_named_as_g_eval(judged: Any) -> None:
    run = judged(lambda prompt: "1. Read." if "steps for it" in prompt else "1", "weighted:steps")
    (table, _) = dialogue_tables(judge_settings([run.view]))
    assert table.rows[-1][0] == "scripted, weighted:steps (G-Eval)"
