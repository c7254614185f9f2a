"""`evalsuite gate comment`: which verdict is posted, where, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main
from tests.workflows.conftest import TOKEN

if TYPE_CHECKING:
    from pathlib import Path

    from tests.workflows.conftest import Comments

ID, OTHER = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "verdict"
    target.mkdir()
    (target / "comment.md").write_text(f"# ✅ m: passed\n\n<!-- evalsuite verdict {ID} -->\n\nBody\n", "utf-8")
    (target / "summary.json").write_text(json.dumps({"verdict_id": ID, "status": 0}))
    return target


@pytest.fixture(autouse=True)
def on_github(comments: Comments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job for a pull request of the repository's own; the event's file."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"repo": {"full_name": "me/it"}}}}))
    given = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "me/it",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_API_URL": comments.url,
        "GITHUB_TOKEN": TOKEN,
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    for name in ("GH_TOKEN", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    return event


@pytest.mark.parametrize("wanted", [[], [f"--verdict={ID}"]], ids=["any", "named"])
def test_the_verdict_s_comment_is_posted(folder: Path, comments: Comments, wanted: list[str]) -> None:
    assert main(["comment", str(folder), *wanted]) == 0
    assert [one["body"] for one in comments.kept] == [(folder / "comment.md").read_text("utf-8")]


@pytest.mark.parametrize(("status", "expected"), [(10, 10), (12, 12), (None, 2)])
def test_the_step_that_comments_ends_with_the_verdict_s_status(
    folder: Path, comments: Comments, status: int | None, expected: int
) -> None:
    (folder / "summary.json").write_text(json.dumps({"verdict_id": ID, "status": status}))
    assert main(["comment", str(folder)]) == expected
    assert len(comments.kept) == 1


@pytest.mark.parametrize("wanted", [OTHER, "", "passed"])
def test_another_verdict_than_the_one_that_was_decided_is_refused(
    folder: Path, comments: Comments, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["comment", str(folder), f"--verdict={wanted}"]) == 2
    assert "verdict" in capsys.readouterr().err
    assert [one["body"].splitlines()[0] for one in comments.kept] == ["# ⚠️ no verdict"]


def test_a_comment_beside_the_summary_of_another_verdict_is_refused(folder: Path, comments: Comments) -> None:
    (folder / "summary.json").write_text(json.dumps({"verdict_id": OTHER, "status": 0}))
    assert main(["comment", str(folder)]) == 2
    assert "Body" not in comments.kept[0]["body"]


def test_an_id_in_a_case_s_answer_is_not_taken_for_the_verdict_s(folder: Path, comments: Comments) -> None:
    file = folder / "comment.md"
    file.write_text(f"{file.read_text('utf-8')}\n<!-- evalsuite verdict {OTHER} -->\n", "utf-8")
    assert main(["comment", str(folder), f"--verdict={OTHER}"]) == 2
    assert "Body" not in comments.kept[0]["body"]


def test_the_comment_on_an_earlier_commit_is_replaced(folder: Path, comments: Comments) -> None:
    said = [{"id": n, "body": f"remark {n}", "user": {"type": "User"}} for n in range(1, 151)]
    quoted = {"id": 151, "body": f"> <!-- evalsuite verdict {OTHER} -->", "user": {"type": "User"}}
    ours = {"id": 152, "body": f"# ❌\n\n<!-- evalsuite verdict {OTHER} -->", "user": {"type": "Bot"}}
    comments.kept += [*said, quoted, ours]
    assert main(["comment", str(folder)]) == 0
    assert len(comments.kept) == 152
    assert comments.kept[-1]["body"].startswith("# ✅ m: passed")
    assert comments.kept[-2] == quoted


def test_a_pull_request_from_a_fork_gets_no_comment(
    folder: Path, comments: Comments, on_github: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on_github.write_text(json.dumps({"pull_request": {"number": 7, "head": {"repo": {"full_name": "fork/it"}}}}))
    assert main(["comment", str(folder)]) == 0
    assert "from a fork" in capsys.readouterr().out
    assert not comments.kept
    assert not comments.tokens


@pytest.mark.parametrize(("status", "words"), [(403, "pull-requests: write"), (302, "302"), (500, "500")])
def test_a_forge_that_refuses_is_one_message_without_the_token(
    folder: Path, comments: Comments, status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    comments.status = status
    assert main(["comment", str(folder)]) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert "Traceback" not in told.err
    assert TOKEN not in told.err + told.out


def test_a_job_without_a_token_says_how_to_give_it_one(
    folder: Path, comments: Comments, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    assert main(["comment", str(folder)]) == 2
    assert "env: GITHUB_TOKEN: ${{ github.token }}" in capsys.readouterr().err


def test_outside_of_ci_the_comment_is_printed(
    folder: Path, comments: Comments, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert main(["comment", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("# ✅ m: passed")
    assert not comments.kept


def test_a_variable_that_the_ci_job_lacks_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_EVENT_PATH")
    assert main(["comment", str(folder)]) == 2
    assert "this job has no variable GITHUB_EVENT_PATH" in capsys.readouterr().err
