"""Official files: every field is checked, and large files are streamed."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter, deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.treb import TREB, dataset
from evalsuite.benchmarks.treb.dataset import COLUMN_OF, COLUMNS, SUBTASKS, find_subtask, load_dataset, read_raw_records
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.protocols import Setup

PUBLISHED = Path(__file__).parents[5] / "shared" / "data" / "treb"
FOUR = ("tcot_markdown", "tcot_html", "pot", "icot")


def record(**changes: Any) -> dict[str, Any]:
    return {
        "id": "Table_Query|web|1",
        "file_path": ["csv/1.csv"],
        "instruction": "",
        "question": "What is in row 1?",
        "answer": "7",
        "title": ["A table"],
        "columnslable": [1],
        "Table_markdown": [""],
        "Table_html": [""],
        "number_answer": 7.0,
    } | changes


def written(folder: Path, *records: Any, name: str = "Table_Query.json") -> Path:
    (folder / "csv").mkdir(parents=True, exist_ok=True)
    (folder / "csv" / "1.csv").write_text("a,b\n7,8\n", encoding="utf-8")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(list(records), ensure_ascii=False), encoding="utf-8")
    return folder


def samples(folder: Path, *modes: str, **args: Any) -> Any:
    return load_dataset(Setup("m", data=folder, modes=modes or ("auto",), args=args)).samples


def test_there_are_26_subtasks_in_the_columns_of_the_paper() -> None:
    assert len(SUBTASKS) == 26
    assert [" ".join(column) for column in COLUMNS] == [
        "NLU TCoT",
        *(f"{skill} {mode}" for skill in ("TU", "TBO", "TCO", "DA", "ADA") for mode in ("TCoT", "PoT", "ICoT")),
    ]


@pytest.mark.parametrize("written", ["Multi-step_Operations", "Multi-step Operation", "multistep_operations"])
def test_a_subtask_is_known_in_the_spellings_of_paper_and_files(written: str) -> None:
    assert find_subtask(written) == find_subtask("Multi-step_Operations") is not None


def test_a_record_runs_once_in_each_of_its_modes(tmp_path: Path) -> None:
    found = samples(written(tmp_path, record()))
    assert [sample.id for sample in found] == [f"Table_Query|web|1|{mode}" for mode in FOUR]
    assert dict(found[0].tags) == {
        "skill": "TBO",
        "subtask": "Table Query",
        "mode": "tcot_markdown",
        "language": "en",
        "cluster": "Table_Query|web|1",
    }
    assert found[0].target == "7"
    assert found[0].metadata["number"] == "7.0"


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (("pot",), ["pot"]),
        (("tcot",), ["tcot_markdown", "tcot_html"]),
        (("tcot_html", "icot"), ["tcot_html", "icot"]),
        (("auto",), [*FOUR]),
        (("published",), [*FOUR]),
    ],
)
def test_only_the_chosen_modes_run(tmp_path: Path, modes: tuple[str, ...], expected: list[str]) -> None:
    assert [sample.tags["mode"] for sample in samples(written(tmp_path, record()), *modes)] == expected


def test_a_question_without_a_table_runs_once_in_words(tmp_path: Path) -> None:
    folder = written(tmp_path, record(id="Understanding|x|1", file_path=[""]), name="Understanding.json")
    assert [sample.tags["mode"] for sample in samples(folder)] == ["tcot"]
    assert [sample.tags["mode"] for sample in samples(folder, "tcot_html")] == ["tcot"]
    assert samples(folder, "pot") == []


def test_titles_are_shown_only_where_the_paper_shows_them(tmp_path: Path) -> None:
    folder = written(tmp_path, record(id="Table_Summary|x|1"), name="Table_Summary.json")
    assert samples(folder)[0].input == "What is in row 1?\nA table"
    assert samples(written(tmp_path / "query", record()))[0].input == "What is in row 1?"


def test_json_lines_and_folders_by_language_are_read(tmp_path: Path) -> None:
    written(tmp_path, record(), name="English/Table_Query.json")
    chinese = record(question="第一行是什么？")
    (tmp_path / "Chinese").mkdir()
    (tmp_path / "Chinese" / "Table_Query.jsonl").write_text(
        f"{json.dumps(chinese)}\n\n{json.dumps(chinese | {'id': 'Table_Query|web|2'})}\n", encoding="utf-8"
    )
    found = samples(tmp_path, "pot")
    assert [sample.id for sample in found] == [
        "Table_Query|web|1|pot",
        "Table_Query|web|1#2|pot",
        "Table_Query|web|2|pot",
    ]
    assert [sample.tags["language"] for sample in found] == ["en", "zh", "zh"]
    # A question and its translation are no independent cases.
    assert [sample.tags["cluster"] for sample in found] == ["Table_Query|web|1"] * 2 + ["Table_Query|web|2"]


def test_csv_files_are_found_below_a_path_of_the_authors(tmp_path: Path) -> None:
    folder = written(tmp_path, record(file_path=["/data/treb/dataset/csv/1.csv"]))
    assert samples(folder)[0].metadata["tables"][0]["csv"] == str((tmp_path / "csv" / "1.csv").resolve())


def test_no_record_reads_a_file_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n", encoding="utf-8")
    folder = written(tmp_path / "treb", record(file_path=["../secret.csv"]))
    with pytest.raises(DatasetError, match=r"record 1, field 'file_path': found '\.\./secret\.csv'"):
        samples(folder)


def test_the_modes_of_a_record_are_one_cluster(tmp_path: Path) -> None:
    found = samples(written(tmp_path, record(), record(id="Table_Query|web|2")))
    assert Counter(sample.tags["cluster"] for sample in found) == {"Table_Query|web|1": 4, "Table_Query|web|2": 4}


@pytest.mark.parametrize(
    ("number", "answer", "kept"),
    [
        ("", "seven", None),
        (None, "seven", None),
        (float("nan"), "seven", None),
        (12.5, "12.5%", "12.5%"),
        (12.5, "It was 12.50 %.", "12.5%"),
        ("12.5%", "12.5%", "12.5%"),
        (12.5, "12.5, which is 3% more", "12.5"),
        ("1,234", "1,234", "1,234"),
        (0, "0", "0"),
    ],
)
def test_the_number_keeps_the_percent_sign_of_its_answer(
    tmp_path: Path, number: Any, answer: str, kept: str | None
) -> None:
    folder = written(tmp_path, record(number_answer=number, answer=answer))
    assert samples(folder)[0].metadata["number"] == kept


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": 5}, r"record 1, field 'question': found 5, expected a string"),
        ({"id": None}, r"record 1, field 'id': found null, expected a string"),
        ({"title": [3]}, r"field 'title': found 3, expected a string"),
        ({"columnslable": 1}, r"field 'columnslable': found 1, expected a list"),
        ({"columnslable": [True]}, r"field 'columnslable': found true, expected a whole number"),
        ({"columnslable": [-1]}, r"field 'columnslable': found -1"),
        ({"number_answer": "about 7"}, r"field 'number_answer': found 'about 7', expected a number"),
        ({"number_answer": [7]}, r"field 'number_answer': found \[7\]"),
        ({"answer": {"x": 1}}, r"field 'answer': found .*expected a text or a number"),
        ({"file_path": ["csv/2.csv"]}, r"field 'file_path': found 'csv/2.csv', expected a CSV file in"),
        ({"file_path": [""]}, r"field 'file_path': found no table"),
        ({"file_path": ["csv/\0.csv"]}, r"field 'file_path': found 'csv/\\x00\.csv', expected a CSV file in"),
        ({"file_path": ["9" * 5000]}, r"field 'file_path': found '9999"),
        ({"rules": "no"}, r"field 'rules': found \"no\", expected a list"),
        ({"rules": ["no"]}, r"field 'rules', element 1: found \"no\", expected an object"),
        ({"rules": [{"check": "sings"}]}, r"field 'rules': found the rule .*sings.* cannot be checked"),
    ],
)
def test_a_wrong_field_is_named_with_its_place(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        samples(written(tmp_path, record(**changes)))


@pytest.mark.parametrize("number", [7.0, [7], {}])
def test_a_missing_answer_is_an_error(tmp_path: Path, number: Any) -> None:
    raw = record(number_answer=number)
    del raw["answer"]
    with pytest.raises(DatasetError, match="expected the field 'answer'"):
        samples(written(tmp_path, raw))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"found nothing, expected a JSON list"),
        (b'[{"id": "Table_Query|1"', r"the end of the text, expected JSON"),
        (b"[1, 2]", r"record 1: found 1, expected an object"),
        (b"\xff\xfe\x00", r"byte 0: found the byte 0xff, expected UTF-8"),
        (b'{"id": 1}\n{"id"', r"line 1.*field 'id'"),
    ],
)
def test_a_damaged_file_is_an_error_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "Table_Query.json").write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        samples(tmp_path)


def test_a_folder_without_a_subtasks_file_is_an_error_that_says_what_to_put_there(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DatasetError, match="files named after subtasks"):
        samples(tmp_path)


def test_an_argument_that_treb_does_not_know_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="TReB takes no argument 'max_token'; did you mean max_tokens"):
        samples(written(tmp_path, record()), max_token=5)


def test_the_default_selection_has_each_subtask_once_and_each_mode() -> None:
    found = load_dataset(Setup("m", modes=TREB.default_modes))
    assert Counter(sample.tags["subtask"] for sample in found.samples) == {each.name: 1 for each in SUBTASKS}
    assert {sample.tags["mode"] for sample in found.samples} == set(COLUMN_OF)
    assert found.source == "shipped samples, 26 of 76 records"


def test_any_chosen_mode_runs_all_shipped_samples() -> None:
    found = load_dataset(Setup("m", modes=("tcot", "pot", "icot")))
    assert len({sample.id for sample in found.samples}) == len(found.samples)
    assert len({sample.id.rsplit("|", 1)[0] for sample in found.samples}) == 76
    assert found.source == "shipped samples"


def test_the_wish_for_published_rows_travels_with_the_cases(tmp_path: Path) -> None:
    folder = written(tmp_path, record())
    assert "published" not in samples(folder)[0].tags
    assert samples(folder, "published")[0].tags["published"] == "shown"
    assert samples(folder, published=True)[0].tags["published"] == "shown"


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the folder shared/data/treb is not beside the project")
def test_real_wikipedia_questions_load_whole() -> None:
    found = samples(PUBLISHED)
    assert len(found) == 4 * 255
    assert sum(sample.metadata["number"] is not None for sample in found) == 4 * 119


values = st.recursive(st.none() | st.integers() | st.text('a"\\]},铁 ', max_size=9), st.lists, max_leaves=4)
objects = st.dictionaries(st.text("ab{", max_size=3), values, max_size=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records")


@pytest.fixture
def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "PIECE", 3)


@pytest.mark.usefixtures("in_small_pieces")
@given(st.lists(objects, max_size=5), st.sampled_from([None, 1]), st.sampled_from(["", "\ufeff"]))
def test_a_stream_holds_what_the_file_holds(
    folder: Path, records: list[dict[str, Any]], indent: int | None, mark: str
) -> None:
    file = folder / "list.json"
    text = json.dumps(records, ensure_ascii=False, indent=indent)
    file.write_bytes((mark + text).encode())
    assert [item.fields for item in read_raw_records(file)] == records


@pytest.mark.usefixtures("in_small_pieces")
def test_json_lines_are_streamed_by_line(tmp_path: Path) -> None:
    file = tmp_path / "lines.json"
    file.write_text('{"a": 1}\n\n{"a": "铁"}', encoding="utf-8")
    assert [(item.where, item.fields) for item in read_raw_records(file)] == [
        ("line 1", {"a": 1}),
        ("line 3", {"a": "铁"}),
    ]


@pytest.mark.parametrize(
    ("text", "at_once", "in_pieces"),
    [
        ('[{"a": 1}, {"b"', "line 1, column 16: found the end of the text", "record 2: found the end of the text"),
        ('[{"a": 1} {"b": 2}]', "line 1, column 11: found '{\"b\": 2}]'", "line 1, column 11: found '{"),
        ('[{"a": 1}, {"b": 2} 3]', "line 1, column 21: found '3]'", "after record 2: found '3"),
        ('[{"a": 1}, {"b": x, "c": ""}]', "line 1, column 18: found 'x, ", "record 2: found 'x, "),
        ('[{"a": 1}, ]', "line 1, column 1[02]: found '.*'", "line 1, column 1[02]: found '.*'"),
        ('[{"a": 1}] more', "line 1, column 12: found 'more'", "line 1, column 12: found 'm"),
        ("[1]", "record 1: found 1, expected an object", "record 1: found 1, expected an object"),
        ("[[{}]]", "record 1: found a list, expected an object", "record 1: found a list, expected an object"),
        ('[{"a": 1}', "line 1, column 10: found the end of the text", "line 1, column 10: found the end of the text"),
        ('[{"a": "\\ud800"}]', "record 1: found half of a surrogate", "record 1: found half of a surrogate"),
    ],
)
def test_a_fault_is_told_with_its_place(
    tmp_path: Path, text: str, at_once: str, in_pieces: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "broken.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=at_once):
        list(read_raw_records(file))
    monkeypatch.setattr(dataset, "PIECE", 3)
    with pytest.raises(DatasetError, match=in_pieces):
        list(read_raw_records(file))


@pytest.mark.parametrize("place", [1, 198])
@pytest.mark.parametrize(
    "fault", ['{"a" 1}', '{"a": 1} {"b": 2}', '[{"a": 1}', '{"a": 1}]', '{"a": [1}', f"{'[' * 9999}"]
)
def test_a_fault_in_a_large_file_does_not_bring_the_file_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, fault: str
) -> None:
    monkeypatch.setattr(dataset, "PIECE", 1 << 16)
    file = tmp_path / "large.json"
    records = [json.dumps({"text": "x" * 50_000})] * 200
    records[place] = fault
    file.write_text(f"[{','.join(records)}]", encoding="utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(DatasetError):
            deque(read_raw_records(file), maxlen=0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.usefixtures("in_small_pieces")
def test_a_byte_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "bytes.json"
    file.write_bytes(b'[{"a": "\xff"}]')
    with pytest.raises(DatasetError, match="0xff"):
        list(read_raw_records(file))


@pytest.mark.usefixtures("in_small_pieces")
def test_a_large_file_is_never_in_memory_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "PIECE", 1 << 16)
    file = tmp_path / "large.json"
    file.write_text(json.dumps([{"text": "x" * 50_000}] * 200), encoding="utf-8")
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_raw_records(file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (count, peak < 2_000_000) == (200, True)
