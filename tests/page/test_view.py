"""`evalsuite report page`: an index of all runs, and the page of a run that goes on."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.cli import main
from evalsuite.core.json_codec import dumps, encode_record
from evalsuite.output.page.view import is_in_progress, update_page_until_end, write_live_page
from evalsuite.results.run_folders import RunFolder
from evalsuite.results.runs import INSTALLED

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def going_on(tmp_path: Path, make_record: Any) -> RunFolder:
    folder = RunFolder(tmp_path / "now")
    folder.path.mkdir()
    folder.write_info({"model": "function:toy", "started": "2026-01-02T03:04:05+00:00", "settings": {}})
    append(folder, make_record("fr"))
    return folder


def append(folder: RunFolder, record: Any) -> None:
    with (folder.path / "records.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(dumps(encode_record(record)) + "\n")


def test_the_index_lists_runs_with_their_trends(
    make_run: Any, make_record: Any, open_page: Any, tmp_path: Path, capsys: Any
) -> None:
    make_run("monday", [make_record("fr")])
    make_run("tuesday", [make_record("fr", scores={"exact_match": 0.0})], gate=["capitals.exact_match >= 1"])
    assert main(["report", "page", "--reports", str(tmp_path), "--no-open"]) == 0
    assert capsys.readouterr().out.strip() == (tmp_path / "index.html").as_uri()
    page = open_page(tmp_path / "index.html")
    assert page.locator("tbody tr").count() == 2
    assert "a gate is missed" in page.locator("tbody").inner_text()
    assert page.locator("figcaption").all_inner_texts() == ["capitals.exact_match"]
    page.get_by_role("link", name="monday").click()
    assert page.locator("h1").inner_text() == "Passed"


def test_a_damaged_run_does_not_hide_the_others(
    make_run: Any, make_record: Any, open_page: Any, tmp_path: Path
) -> None:
    make_run("good", [make_record("fr")])
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text("{", "utf-8")
    (tmp_path / "bad" / "records.jsonl").write_text("", "utf-8")
    main(["report", "page", "--reports", str(tmp_path), "--no-open"])
    assert "cannot be read" in open_page(tmp_path / "index.html").locator("tbody").inner_text()


def test_without_runs_it_says_where_they_come_from(tmp_path: Path, capsys: Any) -> None:
    assert main(["report", "page", "--reports", str(tmp_path), "--no-open"]) == 2
    assert "no run in" in capsys.readouterr().err


def test_the_open_page_follows_the_run_and_sees_its_end(going_on: RunFolder, make_record: Any, open_page: Any) -> None:
    write_live_page(going_on, INSTALLED)
    page = open_page(going_on)
    assert page.locator("h1").inner_text() == "Still running"
    append(going_on, make_record("de"))
    write_live_page(going_on, INSTALLED)
    page.get_by_text("2 cases", exact=True).wait_for()

    def end() -> None:
        going_on.write_info({**json.loads((going_on.path / "run.json").read_text("utf-8")), "seconds": 1.0})

    for _cases in update_page_until_end(going_on, INSTALLED):
        end()
    # The script that it followed is gone, which the browser reports as an error of the page's own making.
    page.get_by_text("Passed", exact=True).wait_for()


def test_a_run_that_has_been_quiet_for_long_was_killed(going_on: RunFolder) -> None:
    assert is_in_progress(going_on)
    os.utime(going_on.path / "records.jsonl", (0, 0))
    assert not is_in_progress(going_on)
