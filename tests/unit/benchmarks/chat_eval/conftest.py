"""Runs the benchmark's samples through a scripted judge, without pytest's plugin."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.chat_eval import CHAT_EVAL
from evalsuite.core.errors import ModelError
from evalsuite.core.protocols import Setup
from evalsuite.core.types import SIGNATURES, Completion, Record, Score
from evalsuite.engine.case_record import JUDGES_FACTS
from evalsuite.results.tally import Row, RunView, Tally

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass
class ScriptedJudge:
    """Answers by a function of the whole prompt; remembers all prompts and how many calls were made."""

    answer: Callable[[str], Any]
    name: str = "scripted"
    prompts: list[str] = field(default_factory=list)
    params: list[dict[str, Any]] = field(default_factory=list)
    overrides: dict[str, Any] = field(default_factory=dict)

    async def chat(self, prompt: Any, *, tools: Any = (), **params: Any) -> Completion:
        self.prompts.append("\n".join(message.content for message in prompt))
        self.params.append(params)
        said = self.answer(self.prompts[-1])
        if isinstance(said, Exception):
            raise said
        return Completion(said)

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> ScriptedJudge:
        return ScriptedJudge(self.answer, name, self.prompts, self.params)


@dataclass
class Judged:
    """A run of all samples: its records, and the view that a report gets."""

    judge: ScriptedJudge
    records: dict[str, Record]

    @property
    def view(self) -> RunView:
        tally = Tally.of(Row.of(record) for record in self.records.values())
        return RunView(self.judge.name, tally, source="made for a test", read=self.records.__getitem__)


def run(
    answer: Callable[[str], Any], *modes: str, name: str = "scripted", data: Path | None = None, **args: Any
) -> Judged:
    """Judges the shipped samples, or those of a folder, in these modes."""
    setup = Setup(name, data=data, modes=modes or ("single",), args=args)
    judge = ScriptedJudge(answer, name)
    solver, (scorer,) = CHAT_EVAL.solver(setup), CHAT_EVAL.scorers(setup)
    records = {}
    for sample in CHAT_EVAL.load(setup).samples:
        common: Any = {"case": sample.id, "benchmark": "chat_eval", "sample": sample.id, "epoch": 1, "model": name}
        try:
            transcript = asyncio.run(solver(sample, judge))
        except ModelError as error:
            records[sample.id] = Record(**common, outcome="error", tags=sample.tags, error=str(error))
            continue
        given: Any = scorer
        scored = {
            key: value if isinstance(value, Score) else Score(value) for key, value in given(sample, transcript).items()
        }
        signatures = {key: score.signature for key, score in scored.items() if score.signature}
        facts = {name: fact for name, fact in transcript.facts.items() if name not in JUDGES_FACTS}
        facts |= {name: fact for score in scored.values() for name, fact in score.facts.items()}
        records[sample.id] = Record(
            **common,
            outcome="passed",
            tags=sample.tags,
            scores={key: float(score.value) for key, score in scored.items()},
            facts={**facts, SIGNATURES: signatures},
            transcript=transcript,
        )
    return Judged(judge, records)


@pytest.fixture(scope="session")
def judged() -> Callable[..., Judged]:
    return run


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes a small folder in the published formats; each part can be replaced by a text of one's own."""

    def write(**texts: str) -> Path:
        questions = [{"question_id": at, "text": f"Question {at}?", "category": "generic"} for at in (1, 2)]
        scores = {"naturalness": 3.0, "coherence": 2.0, "engagingness": 1.5, "groundedness": 0.0}
        dialogue = {"source": "hello ? \n\n", "context": "_nofact\n", "system_id": "X", "system_output": "hi ."}
        parts = {
            "question.jsonl": "".join(json.dumps(one) + "\n" for one in questions),
            "answer/answer_gpt35.jsonl": answers("gpt35", "gpt-3.5-turbo:1"),
            "answer/answer_vicuna-13b.jsonl": answers("vicuna", "vicuna-13b:1"),
            "review/review_gpt35_vicuna-13b_human.txt": "CHATGPT\nVICUNA13B",
            "topical_chat.json": json.dumps([{**dialogue, "scores": scores}]),
            **texts,
        }
        for name, text in parts.items():
            path = tmp_path / name if name == "topical_chat.json" else tmp_path / "faireval" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


def answers(who: str, model_id: str) -> str:
    lines = [{"question_id": at, "text": f"{who} says {at}.", "model_id": model_id} for at in (1, 2)]
    return "".join(json.dumps(line) + "\n" for line in lines)
