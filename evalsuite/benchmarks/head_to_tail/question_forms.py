"""Questions as sentences with a gap, and which questions people are likely to ask (Tables 11 and 10).

The rules for gaps depend on the wording, not the template, so they work for questions built here and for those of
the published scripts. A question that fits no rule cannot be asked this way.

The paper leaves out less natural questions without listing them. Here these are facts that people look up:
identifiers, and attributes that a source keeps for its own use. The figures for books in Table 10 agree with leaving
out both ISBNs and nothing else.
"""

from __future__ import annotations

import re

GAP = "_"
# Past participles, keyed by the verbs of questions such as "Who directed ...?".
_PARTICIPLES = {
    "authored": "authored",
    "composed": "composed",
    "created": "created",
    "designed": "designed",
    "developed": "developed",
    "directed": "directed",
    "discovered": "discovered",
    "founded": "founded",
    "invented": "invented",
    "painted": "painted",
    "played": "played",
    "produced": "produced",
    "publishes": "published",
    "wrote": "written",
}
_PAST = {
    "appear": "appeared",
    "come out": "came out",
    "complete": "completed",
    "die": "died",
    "end": "ended",
    "fall": "fell",
    "first go on air": "first went on air",
    "publish": "published",
    "receive": "received",
    "write": "wrote",
}
_DONE = "|".join(_PARTICIPLES)
_DID = "|".join(_PAST)
# The first rule that matches a whole question makes the sentence.
_RULES = tuple(
    (re.compile(rf"{pattern}[?.]", re.IGNORECASE), sentence)
    for pattern, sentence in (
        (rf"(?:who|which actor or actress) (?P<done>{_DONE}) (?P<what>.+)", "{what} was {participle} by _."),
        (
            r"in which year was (?P<what>.+?) (?P<done>born|released|first published|published|founded)",
            "{what} was {done} in the year _.",
        ),
        (
            rf"in which year did (?P<what>.+?) (?P<did>{_DID})(?P<rest>| .+)",
            "{what} {past}{rest} in the year _.",
        ),
        (r"where was (?P<what>.+) (?P<done>born|held)", "{what} was {done} in _."),
        (rf"where did (?P<what>.+?) (?P<did>{_DID})(?P<rest>| .+)", "{what} {past}{rest} at _."),
        (
            r"in which (?P<kind>\w+) was (?P<what>.+) (?P<done>born|held)",
            "{what} was {done} in the {kind} _.",
        ),
        (
            rf"(?:at|in) which (?P<kind>\w+) did (?P<what>.+?) (?P<did>{_DID})(?P<rest>| .+)",
            "{what} {past}{rest} in the {kind} _.",
        ),
        (r"in which venue was (?P<what>.+) published", "{what} was published in the venue _."),
        (
            r"in which journal or at which conference did (?P<what>.+) appear",
            "{what} appeared in the journal or at the conference _.",
        ),
        (r"to which (?P<kind>.+?) does (?P<what>.+) belong", "{what} belongs to the {kind} _."),
        (r"in which (?P<kind>city|country|place|state) is (?P<what>.+)", "{what} is in the {kind} _."),
        (rf"which (?P<kind>\w+) (?P<done>{_DONE}) (?P<what>.+)", "{what} was {participle} by the {kind} _."),
        (r"what does (?P<what>.+) stand for", "{what} stands for _."),
        (r"which publisher brought out (?P<what>.+)", "The publisher that brought out {what} is _."),
        (r"how many pages has (?P<what>.+)", "{what} has _ pages."),
        (r"how many minutes does (?P<what>.+) run", "{what} runs _ minutes."),
        (r"how long is (?P<what>.+)", "{what} is _."),
        (r"(?P<what>.+) is in what department", "{what} is in the department _."),
        (r"in which department does (?P<what>.+) work", "{what} works in the department _."),
        (r"what profession does (?P<what>.+) have", "{what} has the profession of _."),
        (r"what (?P<kind>.+) is (?P<what>.+) known for", "The {kind} that {what} is known for is _."),
        (r"(?:what's|what is|who is) the (?P<what>.+)", "The {what} is _."),
        (r"name an? (?P<what>.+)", "One {what} is _."),
    )
)


def with_gap(question: str) -> str | None:
    """Rewrite a question as a sentence with the gap `_` for the answer; return None if no rule fits.

    "Who directed Titanic?" becomes "Titanic was directed by _."
    """
    for pattern, sentence in _RULES:
        if parts := pattern.fullmatch(question.strip()):
            words = {name: text or "" for name, text in parts.groupdict().items()}
            words["participle"] = _PARTICIPLES.get(words.get("done", "").lower(), "")
            words["past"] = _PAST.get(words.get("did", "").lower(), "")
            filled = sentence.format_map(words)
            return filled[0].upper() + filled[1:]
    return None


_UNNATURAL = {
    # Questions built here.
    "goodreads-book-isbn10",
    "goodreads-book-isbn13",
    "imdb-person-department",
    "imdb-person-specialty",
    "imdb-title-running-time",
    "mag-journal-issn",
    "mag-paper-doi",
    "mag-paper-publisher",
    # The same questions of the published scripts.
    "goodreads-book-2",
    "goodreads-book-3",
    "imdb-name-3",
    "imdb-name-4",
    "imdb-title-3",
    "mag-journal-0",
    "mag-paper-2",
    "mag-paper-3",
}


def is_natural(template: str) -> bool:
    """Tell whether people are likely to ask questions of this template."""
    return template not in _UNNATURAL
