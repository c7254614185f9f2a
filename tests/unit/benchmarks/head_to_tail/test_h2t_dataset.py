"""Questions in the published format, and the samples made of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.benchmarks.head_to_tail import HEAD_TO_TAIL
from evalsuite.benchmarks.head_to_tail.dataset import (
    BUCKETS,
    is_shipped_source,
    load_dataset,
    make_gap_sentence,
    read_items,
)
from evalsuite.core.errors import DatasetError, EvalsuiteError
from evalsuite.core.protocols import Setup
from evalsuite.metrics.text import convert_targets
from evalsuite.results.tally import remove_mode

if TYPE_CHECKING:
    from pathlib import Path


RECORD = ["tt1375666", "imdb-title-4", "Who directed Inception?", ["Christopher Nolan"]]
# What the published scripts write: identifiers, addresses, triples and whole records as entities.
PUBLISHED = {
    "head_to_tail_imdb.json": ["tt1375666", "imdb-title-1", "In which year was Inception released?", 2010],
    "head_to_tail_goodreads.json": [
        "https://books.example/5907",
        "goodreads-book-1",
        "Who authored The Hobbit?",
        ["J.R.R. Tolkien"],
    ],
    "head_to_tail_dblp.json": [
        {"type": "phdthesis", "author": ["A"]},
        "dblp-name-2",
        "In which year did A receive the Ph.D.?",
        "1999",
    ],
    "head_to_tail_dbpedia.json": [
        ["<s>", "<p>", "<o>"],
        "<http://dbpedia.org/ontology/director>",
        "Who directed Psycho?",
        "Alfred Hitchcock",
    ],
}
DOMAINS = {"imdb": "movie", "goodreads": "book", "dblp": "academics", "dbpedia": "open"}


def written(folder: Path, top: Any, name: str = "head_to_tail.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(top), encoding="utf-8")
    return path


def buckets(*records: Any) -> dict[str, Any]:
    return {"head": list(records), "torso": [], "tail": []}


def setup(folder: Path | None = None, *modes: str) -> Setup:
    return Setup(model="m", data=folder, modes=modes)


def test_every_published_file_is_read_and_gives_its_domain(tmp_path: Path) -> None:
    for name, record in PUBLISHED.items():
        written(tmp_path, buckets(record), name)
    dataset = load_dataset(setup(tmp_path))
    assert dataset.source == ", ".join(sorted(PUBLISHED))
    assert {sample.id: sample.tags["domain"] for sample in dataset.samples} == {
        f"{source}-head-1": domain for source, domain in DOMAINS.items()
    }
    assert {sample.id: sample.target for sample in dataset.samples} == {
        "imdb-head-1": "2010",
        "goodreads-head-1": "J.R.R. Tolkien",
        "dblp-head-1": "1999",
        "dbpedia-head-1": "Alfred Hitchcock",
    }


@pytest.mark.parametrize(
    ("name", "template", "domain"),
    [
        ("head_to_tail.json", "imdb-title-1", "movie"),
        ("head_to_tail.json", "book-author", "book"),
        ("head_to_tail.json", "t1", "open"),
        ("head_to_tail_sports.json", "t1", "sports"),
        ("head-to-tail-mag.json", "t1", "academics"),
        ("questions.json", "dblp-name-0", "academics"),
    ],
)
def test_the_domain_comes_from_the_file_s_name_or_from_the_template(
    tmp_path: Path, name: str, template: str, domain: str
) -> None:
    (item,) = read_items(written(tmp_path, buckets(["e", template, "q?", "a"]), name))
    assert item.domain == domain


def test_files_of_other_names_are_read_only_where_none_is_named_head_to_tail(tmp_path: Path) -> None:
    written(tmp_path, buckets(RECORD), "mine.json")
    assert load_dataset(setup(tmp_path)).source == "mine.json"
    written(tmp_path, buckets(RECORD))
    assert load_dataset(setup(tmp_path)).source == "head_to_tail.json"


def test_ids_are_unique_over_files_and_stay_when_a_file_is_added(tmp_path: Path) -> None:
    written(tmp_path, buckets(RECORD, RECORD), "head_to_tail_mag.json")
    before = [sample.id for sample in load_dataset(setup(tmp_path)).samples]
    written(tmp_path, buckets(RECORD), "head_to_tail_dblp.json")
    after = [sample.id for sample in load_dataset(setup(tmp_path)).samples]
    assert before == ["mag-head-1", "mag-head-2"]
    assert after == ["dblp-head-1", *before]


def test_several_modes_give_a_sample_each_with_the_mode_in_tag_and_id(tmp_path: Path) -> None:
    written(tmp_path, buckets(RECORD), "head_to_tail_imdb.json")
    samples = load_dataset(setup(tmp_path, "few_shot", "zero_shot")).samples
    assert [(sample.id, sample.tags["mode"]) for sample in samples] == [
        ("imdb-head-1-few_shot", "few_shot"),
        ("imdb-head-1-zero_shot", "zero_shot"),
    ]
    (alone,) = load_dataset(setup(tmp_path, "zero_shot")).samples
    assert (alone.id, alone.tags["mode"]) == ("imdb-head-1", "zero_shot")


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ([], r"the top of the file: found \[\], expected an object"),
        ({}, "an empty object"),
        ({"head": [], "torso": []}, "found the keys 'head', 'torso', expected the keys 'head', 'torso' and 'tail'"),
        ({**buckets(), "Tail": []}, "'Tail'"),
        (buckets(), "no question in head, torso or tail"),
        ({**buckets(), "torso": {}}, "torso: found {}, expected a list"),
        (buckets("x"), 'head, record 1: found "x", expected a list'),
        (buckets(RECORD, RECORD[:3]), "head, record 2: found a list of 3, expected a list of 4"),
        (buckets(["e", 7, "q", "a"]), "record 1, template id: found 7, expected a string"),
        (buckets(["e", "t", " ", "a"]), "record 1, question: found an empty text"),
        (buckets(["e", "t", "q", ""]), "record 1, answer: found an empty text"),
        (buckets(["e", "t", "q", []]), "record 1, answer: found an empty list"),
        (buckets(["e", "t", "q", ["a", None]]), "record 1, answer 2: found None"),
        (buckets(["e", "t", "q", True]), "record 1, answer: found True"),
        (buckets(["e", "t", "q", {"a": 1}]), "record 1, answer: found {'a': 1}"),
        (buckets(["e", "t", "q", float("nan")]), "record 1, answer: found NaN, expected a finite number"),
        (buckets(["e", "t", "q", 10**400]), r"record 1, answer: found 10+ \.\.\., expected a finite number"),
    ],
    ids=str,
)
def test_another_shape_is_an_error_that_names_file_place_and_both_sides(tmp_path: Path, top: Any, message: str) -> None:
    path = written(tmp_path, top)
    with pytest.raises(DatasetError, match=message) as caught:
        load_dataset(setup(tmp_path))
    assert str(path) in str(caught.value)


def test_a_truncated_file_and_a_wrong_encoding_are_named(tmp_path: Path) -> None:
    path = tmp_path / "head_to_tail.json"
    path.write_text('{"head": [["e", "t"', encoding="utf-8")
    with pytest.raises(DatasetError, match=r"head_to_tail\.json, line 1.*the end of the text"):
        load_dataset(setup(tmp_path))
    path.write_bytes(json.dumps(buckets(["Amélie", "t", "q", "a"]), ensure_ascii=False).encode("latin-1"))
    with pytest.raises(DatasetError, match=r"byte \d+: found the byte 0xe9, expected UTF-8 text"):
        load_dataset(setup(tmp_path))


def test_a_folder_without_files_and_no_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no \.json file"):
        load_dataset(setup(tmp_path))
    with pytest.raises(DatasetError, match="no such folder"):
        load_dataset(setup(tmp_path / "nowhere"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.tuples(JSON, JSON, JSON, JSON).map(list) | JSON


@given(record=RECORDS)
@settings(deadline=None, max_examples=60)
def test_any_json_is_read_or_refused_but_never_crashes(record: Any, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = written(folder, buckets(record))
    try:
        (item,) = read_items(path)
    except EvalsuiteError:
        return
    assert item.answers
    assert all(answer.strip() for answer in item.answers)


def test_the_shipped_pack_is_balanced_over_domains_buckets_and_templates() -> None:
    samples = load_dataset(setup()).samples
    assert len(samples) == 72
    cells = [(sample.tags["domain"], sample.tags["bucket"]) for sample in samples]
    assert {cell: cells.count(cell) for cell in cells} == {
        (domain, bucket): 6 for domain in ("movie", "book", "academics", "open") for bucket in BUCKETS
    }
    for template in {sample.tags["template"] for sample in samples}:
        asked = [sample.tags["bucket"] for sample in samples if sample.tags["template"] == template]
        assert sorted(asked) == sorted(BUCKETS)


def test_no_shipped_question_gives_its_answer_away_or_is_asked_twice() -> None:
    samples = load_dataset(setup()).samples
    assert len({sample.input for sample in samples}) == len(samples)
    for sample in samples:
        assert sample.target is not None
        answers = [answer.lower() for answer in convert_targets(sample.target)]
        assert not [answer for answer in answers if answer in str(sample.input).lower()]


def test_the_benchmark_says_that_its_samples_are_the_shipped_ones() -> None:
    assert HEAD_TO_TAIL.load(setup()).source == "shipped samples"


CITY_RECORDS = [
    ["tt1", "imdb-title-4", "Who directed Alpha?", ["Ann"]],
    ["tt1", "imdb-title-3", "How long is the running time of Alpha (in minutes)?", 90],
    ["tt2", "imdb-title-4", "Who directed Beta?", ["Bo"]],
    [["<e>", "<p>", "<o>"], "<p>", "Why Gamma?", "Because"],
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "head_to_tail_imdb.json"
    file.write_text(json.dumps({"head": CITY_RECORDS, "torso": [], "tail": []}), encoding="utf-8")
    return tmp_path


def test_questions_about_one_entity_are_one_cluster(data: Path) -> None:
    samples = load_dataset(Setup(model="m", data=data)).samples
    assert [sample.tags["cluster"] for sample in samples] == ["imdb tt1", "imdb tt1", "imdb tt2", "imdb <e>"]


def test_a_whole_record_for_an_entity_is_told_from_others_by_its_digest(data: Path) -> None:
    records = [[{"author": [name], "title": "T" * 200}, "dblp-name-0", f"{name}?", "x"] for name in ("A", "B", "A")]
    file = data / "head_to_tail_imdb.json"
    file.write_text(json.dumps({"head": records, "torso": [], "tail": []}), encoding="utf-8")
    first, second, third = (sample.tags["cluster"] for sample in load_dataset(Setup(model="m", data=data)).samples)
    assert first == third != second
    assert len(first) < 30


def test_the_mode_natural_leaves_out_what_hardly_anybody_asks_and_says_so(data: Path) -> None:
    dataset = load_dataset(Setup(model="m", data=data, modes=("natural", "few_shot")))
    asked = [sample.input for sample in dataset.samples if sample.tags["mode"] == "natural"]
    assert asked == ["Who directed Alpha?", "Who directed Beta?", "Why Gamma?"]
    assert dataset.source == "head_to_tail_imdb.json; the mode natural cannot ask 1 of its 4 questions"
    assert {sample.id for sample in dataset.samples} >= {"imdb-head-2-few_shot", "imdb-head-3-natural"}


def test_the_mode_cloze_leaves_out_questions_that_no_rule_fits(data: Path) -> None:
    dataset = load_dataset(Setup(model="m", data=data, modes=("cloze",)))
    assert [sample.metadata["gap"] for sample in dataset.samples] == [
        "Alpha was directed by _.",
        "The running time of Alpha (in minutes) is _.",
        "Beta was directed by _.",
    ]
    assert "the mode cloze cannot ask 1 of its 4 questions" in dataset.source


def test_the_shipped_pack_is_known_whatever_a_mode_leaves_out() -> None:
    assert is_shipped_source(load_dataset(Setup(model="m", modes=("cloze",))).source)
    assert not is_shipped_source("head_to_tail_imdb.json")


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        # As built here.
        ('In which year did the film "X" come out?', 'The film "X" came out in the year _.'),
        ('In which year did the TV series "X" first go on air?', 'The TV series "X" first went on air in the year _.'),
        ('How many minutes does the film "X" run?', 'The film "X" runs _ minutes.'),
        ('Which actor or actress played Y in the film "X"?', 'Y in the film "X" was played by _.'),
        ('Who wrote the film "X" (1999)?', 'The film "X" (1999) was written by _.'),
        ('In which year was Z, known for "X", born?', 'Z, known for "X", was born in the year _.'),
        ('What is the profession of Z, known for "X"?', 'The profession of Z, known for "X" is _.'),
        ("Name a work that Z is known for.", "One work that Z is known for is _."),
        ("What is the ISBN-13 of X (published in 1999)?", "The ISBN-13 of X (published in 1999) is _."),
        # In the published scripts.
        ("In which year was X released?", "X was released in the year _."),
        ("What's the series start year of X?", "The series start year of X is _."),
        ("Z (known for X) is in what department?", "Z (known for X) is in the department _."),
        ("What movie is Z known for?", "The movie that Z is known for is _."),
        ("What profession does Z (known for X) have?", "Z (known for X) has the profession of _."),
        ("Where was ICML 2001 held?", "ICML 2001 was held in _."),
        ("Where did Z receive the Ph.D. (thesis: T)?", "Z received the Ph.D. (thesis: T) at _."),
        ("In which year did Z receive the Ph.D. from U?", "Z received the Ph.D. from U in the year _."),
        ('In which venue was "X" published?', '"X" was published in the venue _.'),
    ],
)
def test_a_question_becomes_a_sentence_with_a_gap(question: str, sentence: str) -> None:
    assert make_gap_sentence(question) == sentence


def test_a_question_that_no_rule_fits_has_no_gap() -> None:
    assert make_gap_sentence("Why?") is None


def test_a_question_has_one_name_in_all_modes_of_a_run() -> None:
    samples = load_dataset(Setup("m", modes=("few_shot", "paper:brief"))).samples
    assert len({remove_mode(sample.id, sample.tags["mode"]) for sample in samples}) * 2 == len(samples)
