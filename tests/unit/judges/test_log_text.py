"""A judge's log as text to read."""

from __future__ import annotations

import asyncio
from typing import Any

from evalsuite.core.types import Sample, Transcript
from evalsuite.judges import weighted
from evalsuite.output.reports.judges import format_judge_log


def test_of_many_samples_the_prompt_is_shown_once_and_every_answer(scripted: Any) -> None:
    model: Any = scripted(lambda asked: str(1 + asked.params.get("seed", 0) % 5))
    scores: dict[str, Any] = asyncio.run(
        weighted(samples=20).judged(Sample("a", "Why?"), Transcript("Because."), model)
    )
    text = format_judge_log(scores["quality"].log)
    assert text.count("Because.") == 1
    assert text.count("[quality, scripted]") == 20
