from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.types import Message
from evalsuite.samples.files import iter_samples, load_samples

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = [{"id": 1, "input": "a?", "target": "A", "lang": "en"}, {"id": 2, "input": "b?", "target": "B", "lang": "de"}]


def written(folder: Path, name: str) -> Path:
    """The items in the format that the name says."""
    path = folder / name
    if path.suffix == ".parquet":
        import duckdb

        source = folder / "source.json"
        source.write_text(json.dumps(ITEMS), encoding="utf-8")
        duckdb.execute(f"COPY (SELECT * FROM read_json('{source}')) TO '{path}' (FORMAT parquet)")
        return path
    separator = {".csv": ",", ".tsv": "\t"}.get(path.suffix, "")
    texts = {
        ".jsonl": "\n".join(map(json.dumps, ITEMS)) + "\n\n",
        ".json": json.dumps({"version": 1, "items": ITEMS}),
        ".yaml": '- {id: 1, input: "a?", target: A, lang: en}\n- {id: 2, input: "b?", target: B, lang: de}\n',
        ".csv": "",
        ".tsv": "",
    }
    rows = [list(ITEMS[0]), *(map(str, item.values()) for item in ITEMS)]
    text = texts[path.suffix] or "\n".join(separator.join(row) for row in rows)
    path.write_text(text, encoding="utf-8-sig")
    return path


@pytest.mark.parametrize("name", ["s.jsonl", "s.json", "s.csv", "s.tsv", "s.yaml", "s.parquet"])
def test_every_format_gives_the_same_samples(tmp_path: Path, name: str) -> None:
    samples = load_samples(written(tmp_path, name), id="id", tags=["lang"])
    assert [(sample.id, sample.input, sample.target, sample.tags) for sample in samples] == [
        ("1", "a?", "A", {"lang": "en"}),
        ("2", "b?", "B", {"lang": "de"}),
    ]
    assert samples[0].metadata == {"lang": "en"}


def test_fields_of_fields_functions_and_messages(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    item = {"ask": {"turns": [{"role": "user", "content": "Hi"}]}, "answers": ["x", "y"], "level": 3}
    path.write_text(json.dumps(item), encoding="utf-8")
    (sample,) = load_samples(
        path,
        input="ask.turns",
        target="answers",
        tags={"hard": lambda row: row["level"] > 2},
        metadata={"depth": "level"},
    )
    assert sample.input == (Message("user", "Hi"),)
    assert (sample.id, sample.target, sample.tags) == ("1", ["x", "y"], {"hard": "True"})
    assert sample.metadata == {"depth": 3}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "s.jsonl",
            '{"input": "a", "target": "b"}\n{"input": ',
            "line 2: found the end of the text, expected one JSON object",
        ),
        ("s.jsonl", "[1]", r"line 1: found \[1\], expected an object"),
        ("s.jsonl", '{"question": "a"}', "line 1: found the fields 'question', expected the field 'input'"),
        ("s.jsonl", '{"input": "", "target": "b"}', "line 1: found the input ''"),
        ("s.jsonl", '{"input": "a", "target": true}', "line 1: found the target True, expected text, a finite number"),
        ("s.jsonl", '{"input": "a", "target": NaN}', "line 1: found the target nan"),
        ("s.json", '[{"input": "a", "target": {"b": 1}}]', "item 1: found the target {'b': 1}"),
        ("s.jsonl", "", "found no items"),
        ("s.json", '{"a": [], "b": []}', "found an object with 2 lists"),
        ("s.json", "3", "found 3, expected a list of objects"),
        ("s.json", '{"a": 1}\n{"a": 2}', r"line 2, column 1: found .*, expected a list of objects \(Extra data\)"),
        ("s.csv", "input,target\na,b\nc\n", "line 3: found 1 fields, expected 2"),
        ("s.csv", 'input,target\n"a,b\n', "expected separated values whose quotes are closed"),
        ("s.csv", "input,input\na,b\n", "line 1: found the names"),
        ("s.yaml", "a: [", "invalid YAML"),
        ("s.parquet", "no parquet", "an invalid Parquet file"),
    ],
)
def test_what_is_wrong_is_told_with_file_place_and_remedy(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=words) as caught:
        load_samples(path)
    assert str(caught.value).startswith(str(path))


def test_a_doubled_id_names_both_places(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    line = '{"id": "a", "input": "x", "target": "y"}\n'
    path.write_text(line * 2, encoding="utf-8")
    with pytest.raises(DatasetError, match="line 2: found the id 'a', which line 1 also has"):
        load_samples(path, id="id")


def test_another_encoding_is_told(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes('{"input": "Zürich"}'.encode("latin-1"))
    with pytest.raises(DatasetError, match=r"byte 12: found the byte 0xfc, expected UTF-8 text"):
        load_samples(path)


def test_an_unknown_ending_lists_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"known extension \(\.jsonl, \.json"):
        load_samples(tmp_path / "s.xlsx")


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(items=st.lists(st.fixed_dictionaries({"input": texts, "target": texts}), min_size=1, max_size=5))
def test_any_text_survives_json_lines(tmp_path: Path, items: list[dict[str, Any]]) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(json.dumps(item, ensure_ascii=False) for item in items), encoding="utf-8", newline="")
    assert [{"input": sample.input, "target": sample.target} for sample in load_samples(path)] == items


def test_of_a_large_file_no_more_is_read_than_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "large.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"input": "a"}\n{"input": "b\xe2\x80\xa8"}\n{"input": "c"\n\xff')
    samples = iter_samples(file, target=None)
    assert [next(samples).input, next(samples).input] == ["a", "b\u2028"]
    with pytest.raises(DatasetError, match="line 3"):
        next(samples)
    file.write_bytes(b'{"input": "a"}\n{"input": "\xff"}')
    with pytest.raises(DatasetError, match="byte 26: found the byte 0xff, expected UTF-8 text"):
        load_samples(file, target=None)


def test_two_parquet_files_are_read_side_by_side(tmp_path: Path) -> None:
    import duckdb

    for name in "ab":
        query = f"SELECT '{name}' || i AS input, i AS target FROM range(1500) t(i)"
        duckdb.execute(f"COPY ({query}) TO '{tmp_path / name}.parquet' (FORMAT parquet)")
    both = zip(iter_samples(tmp_path / "a.parquet"), iter_samples(tmp_path / "b.parquet"), strict=True)
    assert [(first.input, second.input) for first, second in both] == [(f"a{n}", f"b{n}") for n in range(1500)]


def test_a_parquet_file_whose_name_is_a_pattern_is_read_alone(tmp_path: Path) -> None:
    written(tmp_path, "s.parquet").rename(tmp_path / "s[1].parquet")
    written(tmp_path, "s1.parquet").write_text("another file")
    assert len(load_samples(tmp_path / "s[1].parquet")) == len(ITEMS)


def test_a_folder_is_no_file_of_samples(tmp_path: Path) -> None:
    (tmp_path / "s.csv").mkdir()
    with pytest.raises(DatasetError, match="found a folder, expected a file"):
        load_samples(tmp_path / "s.csv")
