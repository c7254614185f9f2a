"""Every source of the paper, built from a dump in its published format to questions like those of its results."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.head_to_tail import HEAD_TO_TAIL
from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.benchmarks.head_to_tail.paper_results import PAPER_MIX, compare_with_published
from evalsuite.core.protocols import Setup
from evalsuite.output.reports.section import Passage, Table
from evalsuite.results.tally import Row, Tally
from tests.unit.builders.head_to_tail.paper_dumps import DUMPS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

OF_TITLES = ("start-year", "release-year", "end-year", "running-time", "director", "writer", "character")
OF_PEOPLE = ("birth-year", "death-year", "job", "department", "known-for")
EACH = {
    "imdb": {**dict.fromkeys((*OF_TITLES, *OF_PEOPLE), 85), "specialty": 11},
    "goodreads": dict.fromkeys(("author", "publisher", "isbn10", "isbn13"), 250),
    "mag": dict.fromkeys(("location", "issn", "year", "venue", "publisher", "doi", "author"), 100),
    "dblp": {f"{degree}-{asked}": 47 for degree in ("phd", "masters") for asked in ("title", "year", "school")},
}
"""The last words of each template, and how many questions it has in head, torso and tail."""


@pytest.fixture
def built(
    tmp_path: Path, dump: Callable[[Mapping[str, str]], Path], build: Callable[..., dict[str, list[list[Any]]]]
) -> dict[str, dict[str, list[list[Any]]]]:
    """The questions of each source, by bucket."""
    (tmp_path / "data").mkdir()
    questions = {}
    for source, files in DUMPS.items():
        folder = dump(files())
        templates = ["--templates", str(folder / "templates.json")] if source == "dbpedia" else []
        to = f"data/head_to_tail_{source}.json"
        questions[source] = build(source, folder, "--mix", "paper", *templates, to=to)
    return questions


def test_all_four_domains_have_the_paper_s_templates_and_numbers_and_are_held_against_its_results(
    built: dict[str, dict[str, list[list[Any]]]], tmp_path: Path
) -> None:
    for source, templates in EACH.items():
        for bucket in BUCKETS:
            counts = Counter(template for _, template, *_ in built[source][bucket])
            by_end = {end: count for end in templates for id_, count in counts.items() if id_.endswith(f"-{end}")}
            assert (len(counts), by_end) == (len(templates), templates), (source, bucket)
    for bucket in BUCKETS:
        counts = Counter(template for _, template, *_ in built["dbpedia"][bucket])
        assert (len(counts), set(counts.values())) == (393, {7, 8})
    tally = _asked(tmp_path / "data")
    domains = Counter(row.tags["domain"] for row in tally)
    assert domains == {domain: mix.questions for domain, mix in PAPER_MIX.items()}
    assert domains.total() == 18_171
    table, passage = compare_with_published("mine", tally, "gpt-3.5-turbo-0301")
    assert isinstance(table, Table)
    assert isinstance(passage, Passage)
    assert passage.text.endswith("differs from the paper's own runs: nothing.")
    assert [column.title.removeprefix("A against it, ") for column in table.columns[1:]] == ["all", *PAPER_MIX]


def _asked(data: Path) -> Tally:
    """A run of the paper's mode in which every answer is right."""
    setup = Setup(model="mine", judge=None, reports=data, data=data, modes=("paper",), seed=0, args={})
    samples = HEAD_TO_TAIL.load(setup).samples
    return Tally(
        tuple(Row(one.id, one.id, 1, "passed", one.tags, {"accuracy_lm": 1.0, "accuracy_em": 1.0}) for one in samples)
    )
