"""A run's folder: names, finding, writing that a crash may cut short, and reading."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import RunError
from evalsuite.core.types import Usage
from evalsuite.journal.journal import Journal
from evalsuite.results.run_folders import (
    INFO,
    JOURNAL,
    RECORDS,
    SUMMARY,
    RunFolder,
    check_run_name,
    explain_interruption,
    export_records,
    find_run_folder,
    import_records,
    make_run_folder,
    replace_file,
)
from evalsuite.results.runs import BenchmarkResults, load_run
from evalsuite.results.tally import Tally

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.conftest import Desk

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4", "20260304-050607-gpt-4"),
        ("local:smollm2", "20260304-050607-local-smollm2"),
        ("local:/models/my model.gguf?slots=2", "20260304-050607-my-model.gguf-slots-2"),
        ("litellm:bedrock/anthropic.x", "20260304-050607-anthropic.x"),
        ("..", "20260304-050607-model"),
        ("模型", "20260304-050607-model"),
        ("m" * 100, "20260304-050607-" + "m" * 40),
    ],
)
def test_a_new_run_is_named_by_time_and_model(tmp_path: Path, model: str, name: str) -> None:
    assert make_run_folder(tmp_path, None, model, NOW).name == name


def test_runs_of_one_second_get_names_of_their_own(tmp_path: Path) -> None:
    names = [make_run_folder(tmp_path, None, "m", NOW).name for _ in range(3)]
    assert names == ["20260304-050607-m", "20260304-050607-m-2", "20260304-050607-m-3"]
    (tmp_path / names[1]).rmdir()
    assert make_run_folder(tmp_path, None, "m", NOW).name == names[1]


@pytest.mark.parametrize("name", ["nightly", "gpt-4@2026+x=1_a.b", "Ünïcode", "1"])
def test_a_name_that_can_be_a_folder_is_taken(tmp_path: Path, name: str) -> None:
    assert make_run_folder(tmp_path, name, "m", NOW).path == tmp_path / name


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "../up", "a b", "a\n", "a\0", "$(x)", "last"])
def test_a_name_that_cannot_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunError, match=r"a run's name is letters|reserved for the newest run"):
        make_run_folder(tmp_path, name, "m", NOW)


@pytest.mark.parametrize("file", [INFO, RECORDS])
def test_a_run_is_not_begun_twice(tmp_path: Path, file: str) -> None:
    (tmp_path / "r").mkdir()
    check_run_name(tmp_path, "r")
    (tmp_path / "r" / file).touch()
    with pytest.raises(RunError, match="a run r is there already: go on with it with --resume r"):
        check_run_name(tmp_path, "r")


def test_a_run_is_found_by_name_by_path_and_as_the_last_one(desk: Desk, monkeypatch: Any) -> None:
    desk.folder([], "a", started="2026-01-02T00:00:00+00:00")
    desk.folder([], "b", started="2026-01-01T00:00:00+00:00")
    assert find_run_folder(desk.reports, "b").path == desk.reports / "b"
    assert find_run_folder(desk.reports, str(desk.reports / "b")).name == "b"
    monkeypatch.chdir(desk.reports)
    assert find_run_folder(desk.reports / "elsewhere", "./b").name == "b"
    assert find_run_folder(desk.reports, "last").name == "a"


@pytest.mark.parametrize("name", ["b", "last"])
def test_a_run_that_contains_a_link_is_refused(desk: Desk, name: str) -> None:
    desk.folder([], "b", started="2026-01-01T00:00:00+00:00")
    (desk.reports / "b" / "report.md").symlink_to(desk.reports / "elsewhere.md")
    with pytest.raises(RunError, match=r"report\.md is a link: a run has plain files only"):
        find_run_folder(desk.reports, name)


def test_of_two_runs_of_one_second_the_one_written_to_later_is_the_last(desk: Desk) -> None:
    for number, name in enumerate(["x-10", "x-9"]):
        folder = desk.folder([], name)
        os.utime(folder.path / INFO, ns=(number, number))
    assert find_run_folder(desk.reports, "last").name == "x-9"


def test_a_damaged_run_does_not_hide_the_others(desk: Desk) -> None:
    desk.folder([], "good")
    desk.folder([], "bad")
    (desk.reports / "bad" / INFO).write_text("{")
    assert find_run_folder(desk.reports, "good").name == "good"
    assert find_run_folder(desk.reports, "last").name == "good"


def test_a_run_that_is_not_there_is_told_with_the_newest_that_are(desk: Desk) -> None:
    for day in range(1, 8):
        desk.folder([], f"run{day}", started=f"2026-01-0{day}T00:00:00+00:00")
    newest = "run7, run6, run5, run4, run3; name one of these or give a path"
    with pytest.raises(RunError, match=rf"no run 'x' in .*; the newest there: {newest}$"):
        find_run_folder(desk.reports, "x")
    with pytest.raises(RunError, match=r"no run 'last' in .*: none"):
        find_run_folder(desk.reports / "elsewhere", "last")


def test_a_file_that_is_none_of_a_runs_is_named(desk: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("{}")
    with pytest.raises(RunError, match=r"other\.jsonl is not a run's folder, records\.jsonl, run\.json or"):
        find_run_folder(desk.reports, str(other))


def test_what_a_run_knows_of_itself_comes_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.info() == {}
    folder.write_info({"model": "gpt-4 – ü", "settings": {"gate": ["a.b > 0"]}})
    assert folder.info() == {"version": 1, "model": "gpt-4 – ü", "settings": {"gate": ["a.b > 0"]}}


@pytest.mark.parametrize("text", ["{", "[]", "null", "5", "{}", '"text"', b"\xff"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str | bytes) -> None:
    (tmp_path / INFO).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RunError, match=r"run\.json (cannot be read|is damaged: it names no version)"):
        RunFolder(tmp_path).info()


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / INFO).write_text('{"version": 2}')
    with pytest.raises(RunError, match=r"run\.json has version 2, this evalsuite reads version 1"):
        RunFolder(tmp_path).info()


@pytest.mark.parametrize(
    ("info", "why"),
    [
        ({"seconds": 1.0}, None),
        ({"seconds": 1.0, "stopped": None}, None),
        ({"seconds": 1.0, "stopped": "interrupted"}, "interrupted"),
        ({"started": "x"}, "it was killed, or it still goes on"),
    ],
)
def test_a_run_that_was_not_brought_to_its_end_says_so(info: dict[str, Any], why: str | None) -> None:
    assert explain_interruption(info) == why


def test_a_file_is_replaced_in_one_step_and_half_characters_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "f.txt"
    replace_file(file, "old")
    replace_file(file, "ne\ud800w")
    assert file.read_text("utf-8") == "ne?w"
    assert [path.name for path in tmp_path.iterdir()] == ["f.txt"]


def test_a_run_is_read_by_benchmark_with_its_records_at_hand(desk: Desk) -> None:
    records = [
        desk.record("z", {"m": 1.0}, benchmark="b", source="there"),
        desk.record("y", {"m": 0.0}, "failed", benchmark="a", error="– too low"),
        desk.record("x", {"m": 0.5}, benchmark="b", source="there", usage=Usage(2, 3, 4, 0.5)),
    ]
    run = desk.run(records, model="gpt-4")
    assert list(run.benchmarks) == ["a", "b"]
    assert [row.sample for row in run.benchmarks["b"].tally] == ["x", "z"]
    assert (run.benchmarks["b"].source, run.benchmarks["b"].model) == ("there", "gpt-4")
    assert [run.read(record.case) for record in records] == records
    assert run.info["model"] == "gpt-4"
    with pytest.raises(KeyError):
        run.read("no such case")


def test_of_a_case_that_ran_twice_the_later_record_counts(desk: Desk) -> None:
    first, other, again = (desk.record("1", {"m": 0.0}, "error"), desk.record("2"), desk.record("1", {"m": 1.0}))
    run = desk.run([first, other, again])
    assert [row.outcome for row in run.all_rows()] == ["passed", "passed"]
    assert run.read(first.case) == again


def test_a_last_line_without_an_end_is_not_there_yet(desk: Desk) -> None:
    folder = desk.folder([desk.record("1"), desk.record("2")])
    folder.write_info({"model": "gpt-4", "settings": {}, "started": "2026-01-01T00:00:00+00:00"})
    file = folder.path / RECORDS
    file.write_bytes(file.read_bytes()[:-1])
    assert [row.sample for row in load_run(folder).all_rows()] == ["1"]


@pytest.mark.parametrize(
    ("lines", "summary", "fault"),
    [
        (2, '{"cases": {"passed": 3, "failed": 1}}', "holds 2 of 4 cases"),
        (2.5, '{"cases": {"passed": 4}}', "holds 2 of 4 cases and ends within a line"),
        (3.5, "{}", "ends within a line"),
        (0, '{"cases": {"passed": 4}}', "holds 0 of 4 cases"),
    ],
)
def test_records_that_were_cut_short_are_not_read(desk: Desk, lines: float, summary: str, fault: str) -> None:
    folder = desk.folder([desk.record(name) for name in "1234"])
    (folder.path / SUMMARY).write_text(summary)
    file = folder.path / RECORDS
    whole = file.read_bytes()
    file.write_bytes(whole[: round(len(whole) * lines / 4)])
    with pytest.raises(RunError, match=rf"records\.jsonl {fault}: it was cut short; copy it again$"):
        load_run(folder)


@pytest.mark.parametrize("summary", ["", "{", "[]", '{"cases": null}', '{"cases": {"passed": 1}}'])
def test_records_are_read_where_the_summary_counts_no_more_of_them(desk: Desk, summary: str) -> None:
    folder = desk.folder([desk.record("1")])
    (folder.path / SUMMARY).write_text(summary)
    assert len(list(load_run(folder).all_rows())) == 1


def test_records_that_were_cut_short_come_back_from_the_journal(desk: Desk) -> None:
    folder = desk.folder([desk.record("1"), desk.record("2")])
    file = folder.path / RECORDS
    whole = file.read_bytes()
    journal = Journal(folder.path / JOURNAL)
    journal.begin_session("2026-01-01T00:00:00+00:00", "pytest")
    import_records(journal, file)
    export_records(journal, folder.path)
    journal.close()
    file.write_bytes(whole[: len(whole) - 10])
    assert len(list(load_run(folder).all_rows())) == 2
    assert file.read_bytes() == whole


@pytest.mark.parametrize(
    "line", [b"{", b"", b"[]", b"null", b"5", b'"x"', b"{}", b'{"case": "c"}', b"\xff\xfe", b"[" * 5000]
)
def test_a_damaged_line_is_named(desk: Desk, line: bytes) -> None:
    folder = desk.folder([desk.record("1")])
    file = folder.path / RECORDS
    file.write_bytes(file.read_bytes() + line + b"\n" + file.read_bytes())
    with pytest.raises(RunError, match=r"records\.jsonl, line 2: not a record of evalsuite"):
        load_run(folder)


def test_a_run_without_records_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"records\.jsonl cannot be read: No such file"):
        load_run(RunFolder(tmp_path))


def test_every_line_of_the_records_is_json_by_itself(desk: Desk) -> None:
    folder = desk.folder([desk.record("a\nb\u2028c")])
    lines = (folder.path / RECORDS).read_bytes().split(b"\n")
    assert len(lines) == 2
    assert json.loads(lines[0])["sample"] == "a\nb\u2028c"


def test_the_metric_that_stands_for_a_benchmark_is_its_own_choice_or_the_first_in_the_alphabet(desk: Desk) -> None:
    made = [desk.record("0", {"second": 1.0}), desk.record("1", {"second": 1.0, "first": 0.0})]
    assert desk.run(made, "without").benchmarks["capitals"].primary == "first"
    desk.declare("capitals", primary="chosen")
    assert desk.run(made, "with").benchmarks["capitals"].primary == "chosen"
    assert BenchmarkResults(Tally(), "", "").primary is None


def test_of_runs_that_begin_at_once_each_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        folders = list(threads.map(lambda _: make_run_folder(tmp_path, None, "m", NOW).path, range(16)))
    assert all(folder.is_dir() for folder in folders)
    assert len(set(folders)) == 16


def test_a_named_run_may_begin_in_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "log.txt").touch()
    assert make_run_folder(tmp_path, "mine", "m", NOW).path == tmp_path / "mine"
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"file cannot be made: File exists; name another folder"):
        make_run_folder(tmp_path, "file", "m", NOW)
