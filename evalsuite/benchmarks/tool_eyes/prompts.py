"""Prompts of ToolEyes: five worked examples for the model, and the questions to the judge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from evalsuite.core.types import Message
from evalsuite.judges.forms import Aspect, ScoresForm
from evalsuite.judges.prompts import mark_sections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.judges.prompts import Part

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
    """Write a question to the judge.

    Args:
        criterion: `intent`, `validity`, `integrity`, `match`, `match_call` or `quality`.
        documents: the documents of the offered tools.
        request: the user's request.
        shown: the sections to judge.
        native: the assistant used function calling, where a call needs no thought.
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


def _example(request: str, *turns: tuple[str, str]) -> tuple[Message, ...]:
    """Build a worked episode from pairs of a model's turn and the observation after it (empty after the last turn)."""
    messages = [Message("user", request)]
    for turn, observation in turns:
        messages.append(Message("assistant", turn))
        if observation:
            messages.append(Message("user", f"Observation: {observation}"))
    return tuple(messages)


def _turn(thought: str, action: str, **arguments: Any) -> str:
    return f"Thought: {thought}\nAction: {action}\nAction Input: {json.dumps(arguments)}"


FIVE_EXAMPLES = (
    _example(
        "How many litres are 12 gallons?",
        (
            _turn(
                "I have to convert 12 US gallons to litres. The converter can do this in one call.",
                "convert_volume",
                value=12,
                source="gallon",
                target="litre",
            ),
            "45.424941",
        ),
        (
            _turn(
                "The converter says 45.424941 litres. That answers the question.",
                "finish",
                answer="12 US gallons are about 45.42 litres.",
            ),
            "",
        ),
    ),
    _example(
        "Which of the songs 'Low Tide' and 'Copper Moon' is longer?",
        (
            _turn(
                "I need the lengths of both songs. I look up the first one first.",
                "song_details",
                title="Low Tide",
            ),
            '{"title": "Low Tide", "seconds": 214}',
        ),
        (
            _turn(
                "'Low Tide' takes 214 seconds. Now I need the second one to compare.",
                "song_details",
                title="Copper Moon",
            ),
            '{"title": "Copper Moon", "seconds": 187}',
        ),
        (
            _turn(
                "214 seconds are more than 187, so 'Low Tide' is the longer one.",
                "finish",
                answer="'Low Tide' is longer: 3:34 against 3:07.",
            ),
            "",
        ),
    ),
    _example(
        "Remind me to water the plants.",
        (
            _turn(
                "A reminder needs a time, and the user has not given one. Only the user can know it.",
                "ask_to_user",
                question="When shall I remind you?",
            ),
            "Tomorrow at 18:00, please.",
        ),
        (
            _turn(
                "Now I know the time and can set the reminder.",
                "set_reminder",
                text="water the plants",
                when="tomorrow 18:00",
            ),
            '{"status": "set"}',
        ),
        (
            _turn(
                "The reminder is set, so the task is done.",
                "finish",
                answer="I will remind you tomorrow at 18:00 to water the plants.",
            ),
            "",
        ),
    ),
    _example(
        "What is the entry fee of the museum in Elmsford on Sundays?",
        (
            _turn(
                "I look up the museum's fees for a Sunday.",
                "museum_fees",
                town="Elmsford",
                weekday="Sun",
            ),
            "Error: parameter 'weekday': 'Sun' is not one of ['saturday', 'sunday']",
        ),
        (
            _turn(
                "The tool wants the weekday in full and in lower case. I call it again with 'sunday'.",
                "museum_fees",
                town="Elmsford",
                weekday="sunday",
            ),
            '{"adults": 0, "children": 0}',
        ),
        (
            _turn(
                "On Sundays nobody pays. I can answer.",
                "finish",
                answer="On Sundays the museum in Elmsford is free.",
            ),
            "",
        ),
    ),
    _example(
        "Order me a pizza.",
        (
            _turn(
                "My tools can only look up opening hours and addresses. None of them can place an order, so I say "
                "so and offer what I can do.",
                "finish",
                answer="I cannot place orders. I can find you the address and the opening hours of a pizzeria.",
            ),
            "",
        ),
    ),
)
