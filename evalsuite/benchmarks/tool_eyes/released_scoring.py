"""ToolEyes' scores as the authors' released evaluator computes them, where that differs from the paper.

What differs is listed in docs/tool_eyes.md. The judge is asked in the authors' words, read from their repository.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.tool_eyes.capabilities import CAPABILITIES, OVERALL
from evalsuite.benchmarks.tool_eyes.released_turns import answer_of, documents_json, parts_of
from evalsuite.benchmarks.tool_eyes.steps import Step, is_finished, steps_of
from evalsuite.core.types import Message, Score
from evalsuite.tools.documents import ASK_TO_USER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.benchmarks.tool_eyes.released_files import ReleasedPrompts
    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample, Transcript

JUDGE_PARAMETERS: Mapping[str, Any] = {"temperature": 0, "top_p": 0.5, "max_tokens": 1024}
_SCORE_LINE = re.compile(r"Evaluation Score:([^\n]*)")
_SCORE = re.compile(r"10|\d")


def rule_scores(sample: Sample, transcript: Transcript) -> dict[str, float]:
    """The scores that need no judge, each in [0, 1].

    `format_alignment`: an unfinished episode has one turn more, which the runner adds and which is not of the
    demanded form. `reality`: see `reality_of`. `finished`: 1 where the model called finish within the limit.
    """
    steps, finished = steps_of(transcript), is_finished(transcript)
    turns = len(steps) if finished else len(steps) + 1
    return {
        "format_alignment": sum(step.valid for step in steps) / turns,
        "reality": reality_of(sample, steps[:-1] if finished else steps),
        "finished": float(finished),
    }


def reality_of(sample: Sample, steps: Sequence[Step]) -> float:
    """1 - (calls of unknown tools + calls with wrong parameters) / valid turns; 0 without a valid turn.

    Once a tool was unknown, parameters are not looked at any more. A required parameter that was given once counts
    as given in all later calls of its tool.

    Args:
        sample: whose documents say what is real.
        steps: all but the one that finishes.
    """
    documents = {
        document["name"]: document["parameters"] for document in reversed(sample.metadata["documents"])
    }
    due = {name: set(schema.get("required", ())) for name, schema in documents.items()}
    unknown_tools = wrong_parameters = 0
    calls = [call for step in steps if step.valid for call in step.calls]
    for call in calls:
        unknown_tools += call["tool"] not in documents
        if not unknown_tools:
            due[call["tool"]] -= set(call["arguments"])
            unknown = set(call["arguments"]) - set(documents[call["tool"]].get("properties", {}))
            wrong_parameters += bool(due[call["tool"]] or unknown)
    return 1 - (unknown_tools + wrong_parameters) / len(calls) if calls else 0.0


async def judged(
    sample: Sample, transcript: Transcript, judge: Model, prompts: ReleasedPrompts
) -> dict[str, float | Score]:
    """The judged capabilities, their parts, and `overall`, the mean of all five capabilities.

    4 questions and one for each turn, the added one included. An answer that cannot be read counts as 0.

    Raises:
        ModelError: a call failed for good.
    """
    questions = _Questions(sample, transcript, judge, prompts)
    thoughts = [step.thought for step in questions.steps]
    intent, validity, integrity, quality, *matches = await asyncio.gather(
        questions.ask("intent", thought_chain=questions.chain(replies=True)),
        questions.ask("validity", thought_chain=questions.chain()),
        questions.ask("integrity", thought_chain=questions.chain()),
        questions.ask("quality", response=questions.answer),
        *(
            questions.ask("match", f" {number}", thought=thought, tool=tool)
            for number, (thought, tool) in enumerate(zip(thoughts, questions.tools, strict=True), 1)
        ),
    )
    rules = rule_scores(sample, transcript)
    # Turns that are not of the demanded form are left out, but for the last one, whatever it is.
    last = len(matches) - 1
    counted = [match for at, match in enumerate(matches) if questions.steps[at].valid or at == last]
    match = sum(counted) / len(counted)
    capabilities = {
        "intent_comprehension": intent,
        "behaviour_planning": validity * integrity,
        "tool_selection": rules["reality"] * match,
        "answer_organisation": quality,
    }
    return {
        **capabilities,
        "validity": validity,
        "integrity": integrity,
        "match": match,
        "quality": quality,
        # The first score carries the log for all.
        "intent_comprehension": Score(intent, log=questions.log),
        OVERALL: (rules["format_alignment"] + sum(capabilities.values())) / len(CAPABILITIES),
    }


class _Questions:
    """Asks the judge about one episode in the authors' words, and keeps its answers.

    Attributes:
        steps: the model's turns; of an unfinished episode with the turn that the runner adds.
        tools: the tool that each turn names.
        answer: what the user gets.
    """

    def __init__(
        self, sample: Sample, transcript: Transcript, judge: Model, prompts: ReleasedPrompts
    ) -> None:
        self.judge, self.prompts = judge, prompts
        self.common = {"document": documents_json(sample), "query": str(sample.input)}
        written = [message.content for message in transcript.messages if message.role == "assistant"]
        self.steps = steps_of(transcript)
        self.answer = transcript.answer
        if not is_finished(transcript):
            added = parts_of(prompts.given_up)
            written.append(prompts.given_up)
            self.steps.append(Step(added.thought, "added", ()))
            self.answer = answer_of(added.input)
        self.tools = [parts_of(text).action for text in written]
        self.answers: dict[str, list[Mapping[str, Any]]] = {}

    async def ask(self, criterion: str, place: str = "", **values: str) -> float:
        """A score in tenths; 0 where the judge's answer cannot be read."""
        question = self.prompts.questions[criterion]
        message = Message("user", question.filled({**self.common, **values}))
        completion = await self.judge.chat([Message("system", question.system), message], **JUDGE_PARAMETERS)
        self.answers[criterion + place] = [
            {
                "role": "user",
                "content": message.content.replace(self.common["document"], "(the tools' documents)"),
            },
            {"role": "assistant", "content": completion.text},
        ]
        return read_score(completion.text)

    def chain(self, *, replies: bool = False) -> str:
        """The thoughts, turn by turn; on demand with what stood in the user's name in between."""
        lines = []
        for number, step in enumerate(self.steps, 1):
            lines.append(f"Turn {number}:\n{step.thought}")
            if replies and step.fault == "unparseable":
                lines.append(f"User request:\n{self.prompts.reminder}")
            if replies:
                lines += [
                    f"User request:\n{call['observation']}"
                    for call in step.calls
                    if call["tool"] == ASK_TO_USER.name
                ]
        return "\n\n".join(lines)

    @property
    def log(self) -> list[Mapping[str, Any]]:
        """All questions and answers, in the order of the questions' names, whichever was answered first."""
        return [
            {"speaker": f"judge of {name}", **entry}
            for name in sorted(self.answers)
            for entry in self.answers[name]
        ]


def read_score(text: str) -> float:
    """The first whole number from 0 to 10 on the line of the score, in tenths; 0 where there is none."""
    line = _SCORE_LINE.search(text)
    number = _SCORE.search(line[1]) if line else None
    return int(number[0]) / 10 if number else 0.0
