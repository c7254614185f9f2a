"""Prompts of ToolEyes: five worked examples for the model, and the questions to the judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.types import Message
from evalsuite.judges.forms import Aspect, ScoresForm
from evalsuite.judges.prompts import mark_sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalsuite.judges.prompts import Part

_EXAMPLES = Path(__file__).parent / "data" / "examples.json"
_FORM = ScoresForm((Aspect("Score"),))

_CRITERIA = {
    "intent": """\
Judge how well the assistant's thoughts follow what the user wants:
- every thought serves the user's request and does not wander off;
- what the user says later, or what turns out on the way, is taken up at once. If nothing new came up, leave \
this point out.""",
    "validity": """\
Judge how well the assistant plans, by its thoughts:
- a thought sums up what is known so far, completely and briefly;
- a thought says in good time and in some detail what to do next;
- thoughts differ from one another, and each brings the task forward instead of repeating the one before.""",
    "integrity": """\
Judge how sound the assistant's thoughts are:
- their language is free of mistakes;
- they do not contradict each other, the request or what the tools returned, which is shown after each call;
- where the assistant did go wrong, it notices and corrects itself soon.""",
    "match": """\
Judge how well the tool that the assistant chose fits the thought it wrote down before: does this tool, among \
all that are documented, serve best what the thought plans to do?""",
    "match_call": """\
Judge how well the tool that the assistant called last fits what was to be done at that point: does this tool, \
among all that are documented, bring the request forward best, going by what was known then?""",
    "quality": """\
Judge the answer that the user gets in the end:
- it answers what was asked;
- it says nothing that is wrong or that the tools' results contradict; what you cannot check counts as right;
- where it does not solve the task, it at least tells the user how to get further. If it solves the task, \
leave this point out.""",
}

_NATIVE = """\
The assistant called its tools without having to write thoughts down. Where it wrote none, take its calls for \
its thoughts, and do not hold the missing words against it."""


def documents_text(documents: Sequence[Mapping[str, Any]]) -> str:
    """Write tools' documents for a judge: one line of JSON per document."""
    return "\n".join(json.dumps(document, ensure_ascii=False) for document in documents)


def judge_prompt(
    criterion: str,
    documents: Sequence[Mapping[str, Any]],
    request: str,
    shown: Sequence[Part],
    *,
    native: bool = False,
) -> str:
    """Write a question to the judge by one of `_CRITERIA`, about the sections `shown`.

    `native` means that the assistant used function calling, where a call needs no thought.
    """
    note = f"{_NATIVE}\n\n" if native and criterion in {"intent", "validity", "integrity"} else ""
    parts = [("tools, one document a line", documents_text(documents)), ("request", request), *shown]
    return (
        "An assistant has worked on a user's request with the help of tools.\n"
        f"{_CRITERIA[criterion]}\n\n{note}{mark_sections(parts)}\n\n"
        "Give your reasons in a few sentences; then end with one line that holds nothing but your score, from 1 "
        "(worst) to 10 (best):\nScore: <number>"
    )


def judge_templates() -> list[str]:
    """List every question to the judge with empty fields, for the judge's signature."""
    return [
        judge_prompt(criterion, (), "", (), native=native)
        for criterion in _CRITERIA
        for native in (False, True)
    ]


def parse_score(text: str) -> float:
    """Read the judge's score in tenths, 0.1 to 1.0.

    Raises:
        ValueError: the text has no score, or one outside 1 to 10.
    """
    return _FORM.parse(text).scores["Score"] / 10


def _read_examples() -> Iterator[tuple[Message, ...]]:
    for example in json.loads(_EXAMPLES.read_text(encoding="utf-8")):
        messages = [Message("user", example["request"])]
        for turn in example["turns"]:
            written = json.dumps(turn["input"])
            said = f"Thought: {turn['thought']}\nAction: {turn['action']}\nAction Input: {written}"
            messages.append(Message("assistant", said))
            if turn["observation"]:
                messages.append(Message("user", f"Observation: {turn['observation']}"))
        yield tuple(messages)


FIVE_EXAMPLES = tuple(_read_examples())
"""Worked episodes: the model's turns, each followed by an observation except the last."""
