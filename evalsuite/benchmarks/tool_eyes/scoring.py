"""ToolEyes' five capabilities, from an episode's events (arXiv 2401.00741, section on the evaluation)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.tool_eyes.prompts import documents_text, judge_prompt, parse_score
from evalsuite.judging.parse_retry import ask_until_parsed
from evalsuite.types import Score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.judging.marks import Part
    from evalsuite.judging.parse_retry import Judgement
    from evalsuite.protocols import Model
    from evalsuite.types import Sample, Transcript

RULES = ("format_alignment", "reality", "finished")
CAPABILITIES = (
    "format_alignment",
    "intent_comprehension",
    "behaviour_planning",
    "tool_selection",
    "answer_organisation",
)
OVERALL = "overall"
JUDGE_PARAMETERS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 512}
# The published evaluator has its judge give 5 of 10 where no thought was written; nothing needs asking then.
NO_THOUGHT = 0.5
# What makes a call unreal. Values of the wrong type do not: published documents call everything a string.
_UNREAL = {"unknown_tool", "unknown_parameter", "missing_parameter"}


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the model.

    Attributes:
        thought: what it wrote down.
        valid: whether the turn was of the demanded form.
        calls: the events of its calls.
    """

    thought: str
    valid: bool
    calls: Sequence[Mapping[str, Any]]

    @property
    def reality(self) -> float:
        """The share of its calls that name a documented tool, only its parameters and all required ones."""
        return sum(map(is_real, self.calls)) / len(self.calls) if self.calls else 0.0


def is_real(call: Mapping[str, Any]) -> bool:
    """Whether a call names a documented tool, none but its parameters, and all that are required."""
    return not _UNREAL & set(call["faults"])


def steps_of(transcript: Transcript) -> list[Step]:
    """The model's turns with their calls."""
    calls: dict[int, list[Mapping[str, Any]]] = {}
    for event in transcript.events:
        if event["kind"] == "call":
            calls.setdefault(event["turn"], []).append(event)
    return [
        Step(event["thought"], event["fault"] is None, calls.get(event["turn"], []))
        for event in transcript.events
        if event["kind"] == "turn"
    ]


def rule_scores(transcript: Transcript) -> dict[str, float]:
    """The parts that need no judge, each in [0, 1].

    `format_alignment` is N_valid / N; `reality` the mean over the valid turns, 0 where there is none;
    `finished` 1 where the model called finish within the limit of turns.
    """
    steps = steps_of(transcript)
    valid = [step for step in steps if step.valid]
    return {
        "format_alignment": len(valid) / len(steps),
        "reality": sum(step.reality for step in valid) / len(valid) if valid else 0.0,
        "finished": float(transcript.facts["ended"] == "finish"),
    }


@dataclass(frozen=True, slots=True)
class RuleScores:
    """The rule parts as a scorer."""

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:  # noqa: ARG002 - the scorers' signature
        return rule_scores(transcript)


@dataclass(frozen=True, slots=True)
class JudgedCapabilities:
    """The judged parts and the overall score.

    For an episode of N_valid valid turns that is finished: 4 questions to the judge, and one more for each
    valid turn with a thought and a real call.
    """

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Four capabilities and `overall`, the mean of all five.

        Raises:
            JudgeError: an answer of the judge could not be parsed.
            ModelError: a call failed for good.
        """
        questions = _Questions(sample, transcript, judge)
        chain = questions.chain()
        # Where the episode was not finished the product is 0 whatever the judge would say.
        finished = transcript.facts["ended"] == "finish"
        answer = [("answer", transcript.answer)]
        intent, validity, integrity, selection, quality = await asyncio.gather(
            questions.ask("intent", chain),
            questions.ask("validity", chain),
            questions.ask("integrity", chain),
            questions.selection(),
            questions.ask("quality", answer) if finished else _nothing(),
        )
        values = {
            "intent_comprehension": intent,
            "behaviour_planning": validity * integrity,
            "tool_selection": selection,
            "answer_organisation": quality,
        }
        overall = (rule_scores(transcript)["format_alignment"] + sum(values.values())) / len(CAPABILITIES)
        parts = {"validity": validity, "integrity": integrity, "quality": quality if finished else None}
        # The first score carries facts and log for all.
        first = Score(intent, facts={"judged": parts}, log=questions.log())
        return {**values, "intent_comprehension": first, OVERALL: overall}


class _Questions:
    """Asks the judge about one episode and keeps what was said."""

    def __init__(self, sample: Sample, transcript: Transcript, judge: Model) -> None:
        self.documents: Sequence[Mapping[str, Any]] = sample.metadata["documents"]
        self.request = str(sample.input)
        self.steps, self.judge = steps_of(transcript), judge
        self.said: dict[str, Judgement[float]] = {}

    async def ask(self, criterion: str, shown: Sequence[Part], name: str = "") -> float:
        """A score in tenths."""
        prompt = judge_prompt(criterion, self.documents, self.request, shown)
        found = await ask_until_parsed(self.judge, prompt, parse_score, **JUDGE_PARAMETERS)
        self.said[name or criterion] = found
        return found.value

    async def selection(self) -> float:
        """The sum of reality times match over the valid turns, divided by their number; 0 without any.

        A turn with several calls, which only the native protocol knows, counts with their mean.
        """
        valid = [(number, step) for number, step in enumerate(self.steps, 1) if step.valid]
        turns = await asyncio.gather(*(self.turn(number, step) for number, step in valid))
        return sum(turns) / len(turns) if turns else 0.0

    async def turn(self, number: int, step: Step) -> float:
        """The mean of reality times match over a turn's calls."""
        matches = [await self.match(f"{number}.{at}", step, call) for at, call in enumerate(step.calls, 1)]
        return sum(matches) / len(matches) if matches else 0.0

    async def match(self, place: str, step: Step, call: Mapping[str, Any]) -> float:
        """Reality times match of one call."""
        if not is_real(call):
            return 0.0
        if not step.thought:
            return NO_THOUGHT
        shown = [("thought", step.thought), ("tool", str(call["tool"]))]
        return await self.ask("match", shown, f"match {place}")

    def chain(self) -> list[Part]:
        """The thoughts, with what the user said in between."""
        sections: list[Part] = []
        for number, step in enumerate(self.steps, 1):
            sections.append((f"thought {number}", step.thought or "(no thought was written)"))
            sections += [
                ("said by the user", str(call["observation"]))
                for call in step.calls
                if call["tool"] == "ask_to_user"
            ]
        return sections

    def log(self) -> list[Mapping[str, Any]]:
        """What was said, in the order of the questions' names, whichever was answered first.

        The tools' documents, the same in every question, are left out: they would be most of a record.
        """
        documents, note = documents_text(self.documents), f"(documents of {len(self.documents)} tools)"
        return [
            {"speaker": f"judge of {name}", **entry, "content": entry["content"].replace(documents, note)}
            for name in sorted(self.said)
            for entry in self.said[name].log
        ]


async def _nothing() -> float:
    return 0.0
