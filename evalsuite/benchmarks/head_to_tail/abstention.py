"""Whether an answer owns up to not knowing: the paper's missing rate counts empty and "unsure" answers."""

from __future__ import annotations

import re

from evalsuite.metrics.text import normalise

# All in the form that `normalise` leaves: lower case, no punctuation, no articles.
_ABOUT_ME = (
    r"(?:(?:(?:im |i am )?sorry|apologies|unfortunately|as ai(?: language)? model|answer|answer is|my answer is|"
    r"well|but)\s)*(?:(?:i am|im|i)\s)?"
)
_WHOLE = re.compile(
    rf"{_ABOUT_ME}(?:unknown|na|none|no answer|no idea|not available|uncertain|information not available"
    r"|it is unknown|cannot say|cant say|not known)"
)
_START = re.compile(
    rf"{_ABOUT_ME}(?:(?:really|honestly|quite)\s)?"
    r"(?:unsure|not (?:quite |really |entirely |completely )?(?:sure|certain|aware)|uncertain"
    r"|(?:do not|dont) (?:have (?:enough |any )?information|know)|have no (?:idea|information)|no idea"
    r"|(?:cannot|cant|could not|couldnt|am unable to|unable to|am not able to|not able to)"
    r" (?:answer|confirm|determine|find|provide|say|tell|verify))\b"
)
# What follows "not sure" may be an answer after all.
_ATTEMPT = re.compile(
    r"\b(?:but|maybe|may be|might|perhaps|possibly|probably|likely|guess|think|believe|could be|could have)\b"
)


def is_missing(answer: str) -> bool:
    """True where the answer is empty or says no more than that the model does not know.

    "Unsure.", "I'm not sure who directed it." and "I don't know" are missing; "Not sure, but I think it was
    Kubrick" is an attempt, and "Unknown Pleasures" is an answer.
    """
    said = normalise(answer)
    if not any(map(str.isalnum, said)) or _WHOLE.fullmatch(said):
        return True
    start = _START.match(said)
    return bool(start) and not _ATTEMPT.search(said, start.end() if start else 0)
