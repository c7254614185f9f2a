"""Reads questions in the published format: one JSON file per source, an object of three lists of records.

    {"head": [[entity, template, question, answer], ...], "torso": [...], "tail": [...]}

The published scripts write `head_to_tail_imdb.json` and its like. An entity is whatever the source calls
it: a name, an identifier, a DBpedia triple, a DBLP record. An answer is a string, a number, or a list of
acceptable ones.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import expect, read_json
from evalsuite.benchmarks.head_to_tail.buckets import BUCKETS
from evalsuite.benchmarks.head_to_tail.prompts import DEFAULT_MODE
from evalsuite.benchmarks.head_to_tail.samples import can_ask, samples
from evalsuite.benchmarks.head_to_tail.sidecar_files import is_ranked, predicate_buckets
from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import Dataset
from evalsuite.metrics.text import as_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalsuite.core.protocols import Setup

DOMAINS = ("movie", "book", "academics", "open")
# The paper's domains are made from these sources.
SOURCES = {"imdb": "movie", "goodreads": "book", "mag": "academics", "dblp": "academics", "dbpedia": "open"}
# What the report calls the pack that comes along.
SHIPPED = "shipped samples"
_SHIPPED = Path(__file__).parent / "data"
_SHAPE = "[entity, template id, question, answer]"


@dataclass(frozen=True, slots=True)
class QuestionItem:
    """One question of a file.

    Attributes:
        origin: the beginning of its ids: the source that its file is named after, else its domain.
        domain: movie, book, academics, open, or the name of a file of another domain.
        bucket: head, torso or tail.
        template: the published template id.
        question: as published.
        answers: acceptable answers as text; at least one.
        entity: plain JSON data.
        facets: further tags from the files beside it: `top` (`10%`) for the most popular tenth of the head, `predicate`
            (`tail predicate`) for a predicate's own popularity.
    """

    origin: str
    domain: str
    bucket: str
    template: str
    question: str
    answers: tuple[str, ...]
    entity: Any
    facets: Mapping[str, str] = field(default_factory=dict)


def load(setup: Setup) -> Dataset:
    """Samples from the user's files or from the shipped pack, one for each mode that can ask a question.

    Raises:
        DatasetError: there is no file, or one is not in the published shape.
    """
    files = _files(setup.data or _SHIPPED)
    items = [item for path in files for item in read_items(path)]
    modes = setup.modes or (DEFAULT_MODE,)
    source = ", ".join(path.name for path in files) if setup.data else SHIPPED
    return Dataset(tuple(samples(items, modes)), "; ".join([source, *_left_out(items, modes)]))


def _left_out(items: Sequence[QuestionItem], modes: Sequence[str]) -> Iterator[str]:
    for mode in modes:
        count = sum(not can_ask(mode, item) for item in items)
        if count:
            yield f"the mode {mode} cannot ask {count:,} of its {len(items):,} questions"


def is_shipped(source: str) -> bool:
    """Whether a run's source (`Dataset.source`) is the shipped pack."""
    return source.partition("; ")[0] in {"", SHIPPED}


def read_items(path: Path) -> list[QuestionItem]:
    """The questions of one file, head first.

    Raises:
        DatasetError: the file is not in the published shape.
    """
    top = read_json(path, dict)
    if set(top) != set(BUCKETS):
        keys = f"the keys {', '.join(map(repr, top))}" if top else "an empty object"
        raise DatasetError(path, "the top of the file", keys, "the keys 'head', 'torso' and 'tail'")
    items = [
        _item(record, bucket, path, f"{bucket}, record {number}")
        for bucket in BUCKETS
        for number, record in enumerate(expect(top[bucket], list, path, bucket), 1)
    ]
    if not items:
        raise DatasetError(path, "", "no question in head, torso or tail", f"records {_SHAPE}")
    return list(_with_facets(items, path, len(top["head"])))


def _with_facets(items: Iterable[QuestionItem], path: Path, heads: int) -> Iterator[QuestionItem]:
    """The items, head first, with facets from the files beside theirs."""
    tenth, predicates = (heads + 9) // 10 if is_ranked(path) else 0, predicate_buckets(path)
    for place, item in enumerate(items):
        top = {"top": "10%"} if place < tenth else {}
        # Not `tail` alone: a gate on head_to_tail[tail] means the bucket of the entity.
        own = {"predicate": f"{predicates[item.template]} predicate"} if item.template in predicates else {}
        yield replace(item, facets=top | own)


def _files(folder: Path) -> list[Path]:
    named = sorted(folder.glob("head_to_tail*.json"))
    if files := named or sorted(folder.glob("*.json")):
        return files
    expected = "head_to_tail_imdb.json or the like, as `evalsuite build head-to-tail` writes it"
    raise DatasetError(folder, "", "no .json file" if folder.is_dir() else "no such folder", expected)


def _item(record: Any, bucket: str, path: Path, where: str) -> QuestionItem:
    parts = expect(record, list, path, where)
    if len(parts) != 4:
        raise DatasetError(path, where, f"a list of {len(parts)}", f"a list of 4: {_SHAPE}")
    template = _filled(parts[1], path, f"{where}, template id")
    question = _filled(parts[2], path, f"{where}, question")
    source = _slug(re.sub(r"^head[_-]to[_-]tail[_-]?", "", path.stem, flags=re.IGNORECASE))
    domain = _domain(source, template)
    answers = tuple(_answers(parts[3], path, f"{where}, answer"))
    return QuestionItem(source or domain, domain, bucket, template, question, answers, parts[0])


def _domain(source: str, template: str) -> str:
    """The domain by the file name, else by the template id (`imdb-title-0`, `movie-director`, a DBpedia predicate)."""
    for name in (source, template.partition("-")[0]):
        if name in SOURCES or name in DOMAINS:
            return SOURCES.get(name, name)
    # Nothing else tells, so it is a question about the world at large.
    return source or "open"


def _answers(answer: Any, path: Path, where: str) -> Iterator[str]:
    if isinstance(answer, list):
        if not answer:
            raise DatasetError(path, where, "an empty list", "at least one acceptable answer")
        for number, text in enumerate(answer, 1):
            yield _answer(text, path, f"{where} {number}")
    else:
        yield _answer(answer, path, where)


def _answer(answer: Any, path: Path, where: str) -> str:
    if isinstance(answer, str):
        return _filled(answer, path, where)
    if isinstance(answer, (bool, dict, list)) or answer is None:
        raise DatasetError(path, where, repr(answer)[:60], "a string, a number or a list of these")
    number = expect(answer, float, path, where)
    if not math.isfinite(number):
        raise DatasetError(path, where, repr(answer), "a finite number")
    return as_texts(number)[0]


def _filled(text: Any, path: Path, where: str) -> str:
    if not expect(text, str, path, where).strip():
        raise DatasetError(path, where, "an empty text", "some words")
    return str(text).strip()


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
