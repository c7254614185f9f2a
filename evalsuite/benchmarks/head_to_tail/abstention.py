"""Recognises answers that admit not knowing: the paper's missing rate counts empty and "unsure" answers."""

from __future__ import annotations

import re

from evalsuite.metrics.text import normalise

# All in the form that `normalise` leaves: lower case, no punctuation, no articles.
_ABOUT_ME = (
    r"(?:(?:(?:im |i am )?(?:sorry|afraid)|apologies|unfortunately|as ai(?: language)? model|answer|answer is|"
    r"my answer is|well|but)\s)*(?:(?:i am|im|i)\s)?"
)
_WHOLE = re.compile(
    rf"{_ABOUT_ME}(?:unknown|na|none|no answer|no idea|no clue|not available|uncertain|information not available"
    r"|it is unknown|(?:(?:it is|its|that is|thats) not|(?:it|that) isnt) known|cannot say|cant say|not known)"
)
_ABILITY = r"(?:cannot|cant|could not|couldnt|am unable to|unable to|am not able to|not able to)"
_START = re.compile(
    rf"{_ABOUT_ME}(?:(?:really|honestly|quite|currently)\s)?"
    r"(?:unsure|not (?:quite |really |entirely |completely )?(?:sure|certain|aware)|uncertain"
    r"|(?:do not|dont) (?:currently )?have (?:access|(?:(?:enough|any|that|this|such) )?(?:information|data|knowledge"
    r"|details))"
    r"|(?:do not|dont|would not|wouldnt) know|have no (?:idea|information|clue|knowledge|access)|no (?:idea|clue)"
    r"|havent (?:clue|any idea|(?:slightest|faintest) idea)"
    r"|(?:that|this|such) (?:information|data) (?:is not|isnt) (?:\w+ )?(?:available|known)"
    rf"|{_ABILITY} (?:answer|assist|confirm|determine|find|help|identify|provide|recall|say|tell|verify)"
    r"|(?:there is|theres) (?:no|not any|not enough|insufficient) (?:\w+ )?(?:information|data|record|evidence)"
    r"|no (?:\w+ )?information (?:is )?(?:available|found)"
    r"|(?:it is|its) (?:not (?:publicly |widely )?(?:known|clear)|unclear|unknown)"
    r" (?:who|what|when|where|which|how|if))\b"
)
# What follows "not sure" may be an answer after all.
_ATTEMPT = re.compile(
    r"\b(?:but|maybe|may be|might|perhaps|possibly|probably|likely|guess|think|believe|could be|could have)\b"
)
# An abstention that ends its sentence, and what follows on the same line. A comma ends only the bare word: "I'm
# sorry, I don't know" is a single abstention.
_AND_THEN = re.compile(
    r"[^\w]*(?:(?:unsure|not sure),|(?P<owned>(?:(?!\s-\s)[^.!?:;\n\u2013\u2014])*)(?:[.!?:;\u2013\u2014]+|\s-\s))"
    r"[^\S\n]*(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
# An answer given after an abstention is short and does not begin like an explanation.
_EXPLAINS = re.compile(
    r"(?:as|because|can|could|i|im|it|its|more|my|no|note|please|question|since|sorry|that|there|theres|they|this|"
    r"unfortunately|without|you|your)\b"
)
_MOST_WORDS = 8


def is_missing(answer: str) -> bool:
    """True if the answer is empty or only says that the model does not know.

    "Unsure.", "I'm not sure who directed it." and "I have no clue" are missing; "Not sure, but I think it was
    Kubrick" and "Unsure. Stanley Kubrick" are attempts, and "Unknown Pleasures" is an answer.
    """
    text = normalise(answer)
    if not any(map(str.isalnum, text)) or _WHOLE.fullmatch(text):
        return True
    start = _START.match(text)
    if not start:
        return _is_owned(answer) and not _names_something(answer)
    return not _ATTEMPT.search(text, start.end()) and not _names_something(answer)


def _is_owned(answer: str) -> bool:
    """Whether the first sentence says that the answer is unknown ("It is not known. ...")."""
    parts = _AND_THEN.match(answer)
    return bool(parts and _WHOLE.fullmatch(normalise(parts["owned"] or "")))


def _names_something(answer: str) -> bool:
    """Whether an answer follows the abstention on the same line: a few words that do not explain it."""
    parts = _AND_THEN.match(answer)
    rest = normalise(parts["rest"]) if parts else ""
    return (
        0 < len(rest.split()) <= _MOST_WORDS
        and not _EXPLAINS.match(rest)
        and not _START.match(rest)
        and not _WHOLE.fullmatch(rest)
    )
