"""ToolEyes' five capabilities by the paper's formulas (arXiv 2401.00741, section on the evaluation).

The judge is asked in words of our own, and is shown what the tools returned.
"""

from __future__ import annotations

import asyncio
import json
import math
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.tool_eyes.capabilities import CAPABILITIES, OVERALL
from evalsuite.benchmarks.tool_eyes.prompts import documents_text, judge_prompt, parse_score
from evalsuite.benchmarks.tool_eyes.steps import is_finished, is_real, steps_of
from evalsuite.core.errors import JudgeError
from evalsuite.core.types import Score
from evalsuite.judges.parse_retry import ask_until_parsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.benchmarks.tool_eyes.steps import Step
    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample, Transcript
    from evalsuite.judges.marks import Part

JUDGE_PARAMETERS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 512}
# The published evaluator tells its judge to give 5 of 10 where no thought was written; nothing needs asking then.
NO_THOUGHT = 0.5
NOT_RUN = "(this turn was not of the demanded form, so nothing was called)"
# An observation of more characters than this is shown to the judge, but stands in its log by name only.
LONGEST_IN_LOG = 200


def rule_scores(sample: Sample, transcript: Transcript) -> dict[str, float]:  # noqa: ARG001 - as in the released variant
    """The scores that need no judge, each in [0, 1].

    `format_alignment` is N_valid / N; `reality` the mean over the valid turns, 0 where there is none;
    `finished` 1 where the model called finish within the limit of turns.
    """
    steps = steps_of(transcript)
    valid = [step for step in steps if step.valid]
    return {
        "format_alignment": len(valid) / len(steps),
        "reality": sum(step.reality for step in valid) / len(valid) if valid else 0.0,
        "finished": float(is_finished(transcript)),
    }


async def judged(sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
    """The judged capabilities, their parts, and `overall`, the mean of all five capabilities.

    Of N turns of which N_valid are of the demanded form: 3 questions, one for each call of a valid turn with
    a thought, and one about the answer of a finished episode. `match` is absent where no turn is valid,
    `quality` where the episode was not finished.

    Raises:
        JudgeError: an answer of the judge could not be parsed.
        ModelError: a call failed for good.
    """
    questions = _Questions(sample, transcript, judge)
    chain = questions.chain(questions.steps)
    intent, validity, integrity, (match, selection), quality = await asyncio.gather(
        questions.ask("intent", chain),
        questions.ask("validity", chain),
        questions.ask("integrity", chain),
        questions.selection(),
        questions.quality(transcript),
    )
    if questions.problems:
        raise JudgeError(questions.problems[min(questions.problems)], questions.log())
    capabilities = {
        "intent_comprehension": intent,
        "behaviour_planning": validity * integrity,
        "tool_selection": selection,
        "answer_organisation": quality or 0.0,
    }
    parts = {"validity": validity, "integrity": integrity, "match": match, "quality": quality}
    alignment = rule_scores(sample, transcript)["format_alignment"]
    return {
        **capabilities,
        **{name: value for name, value in parts.items() if value is not None},
        # The first score carries the log for all.
        "intent_comprehension": Score(intent, log=questions.log()),
        OVERALL: (alignment + sum(capabilities.values())) / len(CAPABILITIES),
    }


class _Questions:
    """Asks the judge about one episode and keeps its answers."""

    def __init__(self, sample: Sample, transcript: Transcript, judge: Model) -> None:
        self.documents: Sequence[Mapping[str, Any]] = sample.metadata["documents"]
        self.request = str(sample.input)
        self.steps, self.judge = steps_of(transcript), judge
        # In the native protocol a call needs no thought beside it, so a missing one is no fault.
        self.native = sample.tags["mode"] == "functions"
        self.logs: dict[str, Sequence[Mapping[str, Any]]] = {}
        self.problems: dict[str, str] = {}

    async def ask(self, criterion: str, shown: Sequence[Part], name: str = "") -> float:
        """A score in tenths; not a number where the judge's answers cannot be read, which `problems` then says."""
        prompt = judge_prompt(criterion, self.documents, self.request, shown, native=self.native)
        name = name or criterion
        try:
            judgement = await ask_until_parsed(self.judge, prompt, parse_score, **JUDGE_PARAMETERS)
        except JudgeError as error:
            # The other questions are asked and paid for at the same time: their answers are kept.
            self.logs[name], self.problems[name] = error.log, f"{name}: {error}"
            return math.nan
        self.logs[name] = judgement.log
        return judgement.value

    async def quality(self, transcript: Transcript) -> float | None:
        """How good the answer is; None where there is none."""
        if not is_finished(transcript):
            return None
        results = [
            part
            for number, step in enumerate(self.steps, 1)
            for part in self.results(number, step)
            if step.valid
        ]
        return await self.ask("quality", [*results, ("answer", transcript.answer)])

    async def selection(self) -> tuple[float | None, float]:
        """The mean of match over the valid turns, and that of reality times match.

        A turn with several calls, which only the native protocol knows, counts with their mean.
        """
        valid = [(number, step) for number, step in enumerate(self.steps, 1) if step.valid]
        turns = await asyncio.gather(*(self.turn(number, step) for number, step in valid))
        if not turns:
            return None, 0.0
        matches, products = zip(*turns, strict=True)
        return sum(matches) / len(turns), sum(products) / len(turns)

    async def turn(self, number: int, step: Step) -> tuple[float, float]:
        """The means of match and of reality times match over a turn's calls."""
        matches = [await self.match(number, at, step) for at in range(1, len(step.calls) + 1)]
        products = [match if is_real(call) else 0.0 for match, call in zip(matches, step.calls, strict=True)]
        count = max(1, len(matches))
        return sum(matches) / count, sum(products) / count

    async def match(self, number: int, at: int, step: Step) -> float:
        """How well one call fits the thought before it, or without one what was to be done."""
        tool, name = ("tool", _call_text(step.calls[at - 1])), f"match {number}.{at}"
        if step.thought:
            return await self.ask("match", [("thought", step.thought), tool], name)
        if not self.native:
            return NO_THOUGHT
        return await self.ask("match_call", [*self.chain(self.steps[: number - 1]), tool], name)

    def chain(self, steps: Sequence[Step]) -> list[Part]:
        """The thoughts, each with the calls that followed it and what came of them."""
        sections: list[Part] = []
        for number, step in enumerate(steps, 1):
            if step.thought or not self.native:
                sections.append((f"thought {number}", step.thought or "(no thought was written)"))
            sections += self.results(number, step)
        return sections

    def results(self, number: int, step: Step) -> list[Part]:
        """A turn's calls, each with what the tool returned or the user said."""
        sections: list[Part] = [] if step.valid else [(f"call {number}", NOT_RUN)]
        for at, call in enumerate(step.calls, 1):
            if call["tool"] == "finish" and not call["failed"]:
                continue
            place = f"{number}.{at}"
            came = "said by the user" if call["tool"] == "ask_to_user" else f"result {place}"
            sections += [(f"call {place}", _call_text(call)), (came, str(call["observation"]))]
        return sections

    def log(self) -> list[Mapping[str, Any]]:
        """All questions and answers, in the order of the questions' names, whichever was answered first.

        The tools' documents and long observations, which stand in most questions, are named and left out:
        they would be most of a record.
        """
        return [
            {"speaker": f"judge of {name}", **entry, "content": self.shortened(entry["content"])}
            for name in sorted(self.logs)
            for entry in self.logs[name]
        ]

    def shortened(self, text: str) -> str:
        """A question without what the record holds elsewhere."""
        text = text.replace(documents_text(self.documents), f"(documents of {len(self.documents)} tools)")
        for number, step in enumerate(self.steps, 1):
            for at, call in enumerate(step.calls, 1):
                observation = str(call["observation"]).strip()
                if len(observation) > LONGEST_IN_LOG:
                    text = text.replace(observation, f"(result {number}.{at}, {len(observation)} characters)")
        return text


def _call_text(call: Mapping[str, Any]) -> str:
    return f"{call['tool']} {json.dumps(call['arguments'], ensure_ascii=False)}"
