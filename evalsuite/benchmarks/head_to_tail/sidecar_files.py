"""The files that `evalsuite build head-to-tail` writes beside a file of questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import read_text
from evalsuite.benchmarks.head_to_tail.buckets import BUCKETS
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path

HEADER = ("template", "popularity", "bucket")


def stats_path(questions: Path) -> Path:
    """The path of the statistics page: `imdb.stats.md` for `imdb.json`."""
    return questions.with_suffix(".stats.md")


def predicates_path(questions: Path) -> Path:
    """The path of the table of predicates' popularity: `dbpedia.predicates.tsv` for `dbpedia.json`."""
    return questions.with_suffix(".predicates.tsv")


def is_ranked(questions: Path) -> bool:
    """Whether the questions of a bucket are sorted by popularity, most popular first.

    Those that were built here do; the published scripts shuffle theirs.
    """
    return stats_path(questions).is_file()


def predicate_buckets(questions: Path) -> dict[str, str]:
    """The bucket of each template's predicate by its own popularity; empty if unknown.

    Raises:
        DatasetError: the file that tells is not of the shape in which it was written.
    """
    path = predicates_path(questions)
    if not path.is_file():
        return {}
    lines = [tuple(line.split("\t")) for line in read_text(path).splitlines()]
    for number, line in enumerate(lines, 1):
        if len(line) != len(HEADER) or (number == 1 and line != HEADER):
            expected = "the columns " + ", ".join(HEADER)
            raise DatasetError(path, f"line {number}", " and ".join(map(repr, line))[:60], expected)
        if number > 1 and line[2] not in BUCKETS:
            raise DatasetError(path, f"line {number}", repr(line[2])[:60], f"one of {', '.join(BUCKETS)}")
    return {template: bucket for template, _, bucket in lines[1:]}
