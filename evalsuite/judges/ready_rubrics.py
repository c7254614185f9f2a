"""Rubrics that are ready to use; each is `rubric` with options that any of them may be given anew."""

from __future__ import annotations

from functools import partial

from evalsuite.judges.each_item import Each
from evalsuite.judges.rubrics import rubric

faithful = partial(
    rubric,
    Each("claim", "do the given passages support it? What they do not say counts as unsupported."),
    name="faithful",
    fields={"question": "input", "passages": "passages", "answer": "answer"},
    steps=(
        "Split the answer into the claims of fact that it makes, each a short sentence of its own.",
        "For each claim, look for the passage that says it.",
    ),
)
"""The share of the answer's claims that the passages (`passages` of the metadata or the facts) support."""

relevant = partial(
    rubric,
    "Does the answer address what was asked?",
    name="relevant",
    fields={"question": "input", "answer": "answer"},
    anchors={
        1: "it is about something else",
        2: "it touches the question and misses its point",
        3: "it answers a part of it, or hides the answer among other things",
        4: "it answers the question, with some that was not asked",
        5: "it answers the whole question and nothing else",
    },
)
"""From 1 to 5: how well the answer addresses the question."""

factual = partial(
    rubric,
    "Does the answer say the same as one of the references? It may say more, but must contradict none of it.",
    name="factual",
    fields={"question": "input", "reference": "target", "answer": "answer"},
)
"""1.0 where the answer agrees with a reference, else 0.0."""

follows = partial(rubric, None, name="follows", fields={"instruction": "input", "answer": "answer"})
"""The weight of the criteria met, as a share; they are in the sample's metadata, under `criteria`."""

conversation = partial(
    rubric,
    Each("turn", "how well does the assistant serve the user in it, given all that was said before?", 1, 5),
    name="conversation",
    fields=("conversation",),
)
"""From 1 to 5, the mean over the turns of the whole dialogue."""
