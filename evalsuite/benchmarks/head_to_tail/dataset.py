"""Read questions in the published format, and make samples from the questions.

Each source has one JSON file: an object with three lists of records.

    {"head": [[entity, template, question, answer], ...], "torso": [...], "tail": [...]}

The published scripts write files such as `head_to_tail_imdb.json`. The form of an entity depends on the source: a name,
an identifier, a DBpedia triple or a DBLP record. An answer is a string, a number, or a list of strings and numbers.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalsuite.benchmarks.head_to_tail.prompts import DEFAULT_MODE, OWN_MODES, SHOWS_TEMPLATE
from evalsuite.core.errors import DatasetError
from evalsuite.core.json_codec import digest
from evalsuite.core.protocols import Dataset, Setup
from evalsuite.core.types import Sample
from evalsuite.metrics.text import convert_targets
from evalsuite.samples.items import read_json, read_text, require_type

BUCKETS = ("head", "torso", "tail")
DOMAINS = ("movie", "book", "academics", "open")
# The domain of each source in the paper.
SOURCES = {"imdb": "movie", "goodreads": "book", "mag": "academics", "dblp": "academics", "dbpedia": "open"}
SHIPPED = "shipped samples"  # Data source of the shipped questions, as shown in reports.
_SHIPPED = Path(__file__).parent / "data"
_SHAPE = "[entity, template id, question, answer]"


@dataclass(frozen=True, slots=True)
class QuestionItem:
    """One question of a file."""

    origin: str  # Prefix of sample ids: the source that the file's name states, or else the domain.
    domain: str  # `movie`, `book`, `academics`, `open`, or the file name of another domain.
    bucket: str
    template: str
    question: str
    answers: tuple[str, ...]  # Acceptable answers as text; at least one.
    entity: Any  # The entity, as plain JSON data.
    # Tags that depend on other files in the folder of the questions. The tag `top` is `10%` for the most popular tenth
    # of the head. The tag `predicate` states the popularity bucket of the question's predicate, such as `tail
    # predicate`.
    facets: dict[str, str] = field(default_factory=dict)


def load_dataset(setup: Setup) -> Dataset:
    """Load the user's or the shipped questions; each makes one sample per mode that can ask it."""
    folder = setup.data or _SHIPPED
    files = sorted(folder.glob("head_to_tail*.json")) or sorted(folder.glob("*.json"))
    if not files:
        expected = "head_to_tail_imdb.json or the like, as `evalsuite build head-to-tail` writes it"
        raise DatasetError(folder, "", "no .json file" if folder.is_dir() else "no such folder", expected)
    items = [item for path in files for item in read_items(path)]
    modes = setup.modes or (DEFAULT_MODE,)
    source = [", ".join(path.name for path in files) if setup.data else SHIPPED]
    source += [
        f"the mode {mode} cannot ask {count:,} of its {len(items):,} questions"
        for mode in modes
        if (count := sum(not can_ask(mode, item) for item in items))
    ]
    return Dataset(tuple(make_samples(items, modes)), "; ".join(source))


def is_shipped_source(source: str) -> bool:
    """Tell whether a run used only the shipped questions, given its data source (`Dataset.source`)."""
    return source.partition("; ")[0] in {"", SHIPPED}


def read_items(path: Path) -> list[QuestionItem]:
    """Read the questions of one file: head, torso, then tail."""
    top = read_json(path, dict)
    if set(top) != set(BUCKETS):
        keys = f"the keys {', '.join(map(repr, top))}" if top else "an empty object"
        raise DatasetError(path, "the top of the file", keys, "the keys 'head', 'torso' and 'tail'")
    items = [
        _read_question_item(record, bucket, path, f"{bucket}, record {number}")
        for bucket in BUCKETS
        for number, record in enumerate(require_type(top[bucket], list, path, bucket), 1)
    ]
    if not items:
        raise DatasetError(path, "", "no question in head, torso or tail", f"records {_SHAPE}")
    # Only `evalsuite build` sorts questions by popularity and writes a file of statistics.
    tenth = (len(top["head"]) + 9) // 10 if path.with_suffix(STATS_SUFFIX).is_file() else 0
    predicates = read_predicate_buckets(path)
    for place, item in enumerate(items):
        if place < tenth:
            item.facets["top"] = "10%"
        if item.template in predicates:
            # Add the word "predicate"; otherwise, the gate `head_to_tail[tail]` would also select by this tag.
            item.facets["predicate"] = f"{predicates[item.template]} predicate"
    return items


def _read_question_item(record: Any, bucket: str, path: Path, where: str) -> QuestionItem:
    parts = require_type(record, list, path, where)
    if len(parts) != 4:
        raise DatasetError(path, where, f"a list of {len(parts)}", f"a list of 4: {_SHAPE}")
    template = _require_nonempty_text(parts[1], path, f"{where}, template id")
    question = _require_nonempty_text(parts[2], path, f"{where}, question")
    source = re.sub(r"^head[_-]to[_-]tail[_-]?", "", path.stem, flags=re.IGNORECASE)
    source = re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-")
    # Find the domain from the file name, or else from the template's id (`imdb-title-0`); the default is `open`.
    known = [name for name in (source, template.partition("-")[0]) if name in SOURCES or name in DOMAINS]
    domain = SOURCES.get(known[0], known[0]) if known else source or "open"
    answers = tuple(_read_answers(parts[3], path, f"{where}, answer"))
    return QuestionItem(source or domain, domain, bucket, template, question, answers, parts[0])


def _read_answers(answers: Any, path: Path, where: str) -> Iterator[str]:
    if answers == []:
        raise DatasetError(path, where, "an empty list", "at least one acceptable answer")
    listed = isinstance(answers, list)
    for number, answer in enumerate(answers if listed else [answers], 1):
        place = f"{where} {number}" if listed else where
        if isinstance(answer, (bool, dict, list)) or answer is None:
            raise DatasetError(path, place, repr(answer)[:60], "a string, a number or a list of these")
        text = answer if isinstance(answer, str) else convert_targets(require_type(answer, float, path, place))[0]
        yield _require_nonempty_text(text, path, place)


def _require_nonempty_text(text: Any, path: Path, where: str) -> str:
    if not require_type(text, str, path, where).strip():
        raise DatasetError(path, where, "an empty text", "some words")
    return str(text).strip()


_LONGEST_ENTITY = 60  # Longest identifier in characters; longer identifiers are replaced by a digest.


def make_samples(items: Sequence[QuestionItem], modes: Sequence[str]) -> Iterator[Sample]:
    """Yield one sample per question and mode, except for questions that the mode cannot ask.

    The tag `cluster` names the entity, because answers about one entity are correlated. The tag `natural` says whether
    people are likely to ask the question. The metadata contain the entity. For modes that need them, the metadata also
    contain an example question (`example`) or a sentence with a gap (`gap`).
    """
    counts: Counter[tuple[str, str]] = Counter()
    templates: defaultdict[str, list[QuestionItem]] = defaultdict(list)
    for item in items:
        templates[item.template].append(item)
    for item in items:
        counts[item.origin, item.bucket] += 1
        name = f"{item.origin}-{item.bucket}-{counts[item.origin, item.bucket]}"
        for mode in modes:
            if can_ask(mode, item):
                yield Sample(
                    id=f"{name}-{mode.replace(':', '-')}" if len(modes) > 1 else name,
                    input=item.question,
                    target=item.answers[0] if len(item.answers) == 1 else item.answers,
                    tags=_make_sample_tags(item, mode),
                    metadata={"entity": item.entity, **_make_gap_or_example(mode, item, templates[item.template])},
                )


def can_ask(mode: str, item: QuestionItem) -> bool:
    """Tell whether a mode can ask a question; some modes need a natural question or a sentence with a gap."""
    own = OWN_MODES.get(mode)
    return own is None or not (
        (own.cloze and make_gap_sentence(item.question) is None) or (own.natural and item.template in _UNNATURAL)
    )


def _make_sample_tags(item: QuestionItem, mode: str) -> dict[str, str]:
    # In a DBpedia triple, the entity is the first element.
    entity = item.entity[0] if isinstance(item.entity, list) and len(item.entity) == 3 else item.entity
    is_name = isinstance(entity, str) and 0 < len(entity) <= _LONGEST_ENTITY
    return {
        "domain": item.domain,
        "bucket": item.bucket,
        "template": item.template,
        "mode": mode,
        "natural": "no" if item.template in _UNNATURAL else "yes",
        "cluster": f"{item.origin} {entity if is_name else digest(entity)}",
        **item.facets,
    }


def _make_gap_or_example(mode: str, item: QuestionItem, same_template: Sequence[QuestionItem]) -> Mapping[str, Any]:
    """Return `gap` or `example` for a sample's metadata, whichever the mode's prompt needs; {} if it needs neither."""
    own = OWN_MODES.get(mode)
    if own and own.cloze:
        return {"gap": make_gap_sentence(item.question)}
    for other in same_template if mode in SHOWS_TEMPLATE else ():
        # Choose an example about another entity, so that the example does not reveal the answer.
        differs = other.question != item.question and other.entity != item.entity
        if differs and not set(other.answers) & set(item.answers):
            return {"example": {"question": other.question, "answer": other.answers[0]}}
    return {}


# Suffixes of the files that `evalsuite build` writes beside the questions: `dbpedia.predicates.tsv` for `dbpedia.json`.
STATS_SUFFIX, PREDICATES_SUFFIX = ".stats.md", ".predicates.tsv"
HEADER = ("template", "popularity", "bucket")  # The columns of the table of predicates' popularity.


def read_predicate_buckets(questions_path: Path) -> dict[str, str]:
    """Map each template to the bucket of its predicate's popularity; empty if the file is missing."""
    path = questions_path.with_suffix(PREDICATES_SUFFIX)
    if not path.is_file():
        return {}
    lines = [tuple(line.split("\t")) for line in read_text(path).rstrip("\n").split("\n")]
    for number, line in enumerate(lines, 1):
        if len(line) != len(HEADER) or (number == 1 and line != HEADER):
            expected = "the columns " + ", ".join(HEADER)
            raise DatasetError(path, f"line {number}", " and ".join(map(repr, line))[:60], expected)
        if number > 1 and line[2] not in BUCKETS:
            raise DatasetError(path, f"line {number}", repr(line[2])[:60], f"one of {', '.join(BUCKETS)}")
    return {template: bucket for template, _, bucket in lines[1:]}


# Verbs in questions such as "Who directed Titanic?"; the past participle is the same word, except in `_PARTICIPLES`.
_MAKER_VERBS = (
    "authored|composed|created|designed|developed|directed|discovered|founded|invented|painted|played|produced|"
    "publishes|wrote"
)
_PARTICIPLES = {"publishes": "published", "wrote": "written"}
_PAST_TENSES = {
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
_DID_VERBS = "|".join(_PAST_TENSES)
# Rules that turn a question into a sentence; the first rule that matches the whole question is used.
_RULES = tuple(
    (re.compile(rf"{pattern}[?.]", re.IGNORECASE), sentence)
    for pattern, sentence in (
        (rf"(?:who|which actor or actress) (?P<done>{_MAKER_VERBS}) (?P<what>.+)", "{what} was {participle} by _."),
        (
            r"in which year was (?P<what>.+?) (?P<done>born|released|first published|published|founded)",
            "{what} was {done} in the year _.",
        ),
        (rf"in which year did (?P<what>.+?) (?P<did>{_DID_VERBS})(?P<rest>| .+)", "{what} {past}{rest} in the year _."),
        (r"where was (?P<what>.+) (?P<done>born|held)", "{what} was {done} in _."),
        (rf"where did (?P<what>.+?) (?P<did>{_DID_VERBS})(?P<rest>| .+)", "{what} {past}{rest} at _."),
        (r"in which (?P<kind>\w+) was (?P<what>.+) (?P<done>born|held)", "{what} was {done} in the {kind} _."),
        (
            rf"(?:at|in) which (?P<kind>\w+) did (?P<what>.+?) (?P<did>{_DID_VERBS})(?P<rest>| .+)",
            "{what} {past}{rest} in the {kind} _.",
        ),
        (r"in which venue was (?P<what>.+) published", "{what} was published in the venue _."),
        (
            r"in which journal or at which conference did (?P<what>.+) appear",
            "{what} appeared in the journal or at the conference _.",
        ),
        (r"to which (?P<kind>.+?) does (?P<what>.+) belong", "{what} belongs to the {kind} _."),
        (r"in which (?P<kind>city|country|place|state) is (?P<what>.+)", "{what} is in the {kind} _."),
        (rf"which (?P<kind>\w+) (?P<done>{_MAKER_VERBS}) (?P<what>.+)", "{what} was {participle} by the {kind} _."),
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


def make_gap_sentence(question: str) -> str | None:
    """Rewrite a question as a sentence with the gap `_` in place of the answer; return None if no rule fits.

    "Who directed Titanic?" becomes "Titanic was directed by _."
    """
    for pattern, sentence in _RULES:
        if parts := pattern.fullmatch(question.strip()):
            words = {name: text or "" for name, text in parts.groupdict().items()}
            done = words.get("done", "").lower()
            words["participle"] = _PARTICIPLES.get(done, done)
            words["past"] = _PAST_TENSES.get(words.get("did", "").lower(), "")
            filled = sentence.format_map(words)
            return filled[0].upper() + filled[1:]
    return None


# Templates that people are unlikely to ask: first those of `evalsuite build`, then those of the published scripts.
_UNNATURAL = {
    *("goodreads-book-isbn10", "goodreads-book-isbn13", "imdb-person-department", "imdb-person-specialty"),
    *("imdb-title-running-time", "mag-journal-issn", "mag-paper-doi", "mag-paper-publisher"),
    *("goodreads-book-2", "goodreads-book-3", "imdb-name-3", "imdb-name-4"),
    *("imdb-title-3", "mag-journal-0", "mag-paper-2", "mag-paper-3"),
}
