"""`evalsuite judge rank`: a judge compares the answers of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

APP = """
import re

def short(messages):
    return messages[-1]["content"][:2]

def whole(messages):
    return messages[-1]["content"]

def silent(messages):
    return ""

def longer(messages):
    first, second = re.findall(r'<answer_\\d key="\\w+">\\n(.*?)\\n</answer', messages[-1]["content"], re.S)
    return "Verdict: " + ("tie" if len(first) == len(second) else "1" if len(first) > len(second) else "2")

def biased(messages):
    return "Verdict: 1"

def mute(messages):
    return "I do not know"
"""


@pytest.fixture
def three(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Three runs of one suite, whose answers differ in length."""
    suite.pytester.makepyfile(app=APP)
    for name in ("short", "whole", "silent"):
        suite.model = (f"--model=function:app:{name}",)
        suite.run(f"--run={name}", "--epochs=2")
    monkeypatch.chdir(suite.path)
    monkeypatch.syspath_prepend(suite.path)
    return suite


def cells(text: str, *wanted: str) -> list[str]:
    """The cells of the row that begins with these."""
    rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if "|" in line)
    return next(row for row in rows if row[: len(wanted)] == list(wanted))


def test_two_runs_have_a_win_rate_and_three_have_ratings(three: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    judge = "--judge=function:app:longer"
    capsys.readouterr()
    assert main(["judge", "whole", "--against", "short", judge]) == 0
    told = capsys.readouterr().out
    assert cells(told, "whole", "short", "function:app:longer")[3:6] == ["6", "0", "0"]
    assert "100.0 [" in told
    assert "Ratings" not in told
    assert main(["judge", "rank", "whole", "short", "silent", judge]) == 0
    told = capsys.readouterr().out
    assert cells(told, "short", "silent", "function:app:longer")[3:6] == ["0", "0", "6"], "an empty answer is a text"
    assert [line.split("|")[2].strip() for line in told.partition("Ratings")[2].splitlines()[4:7]] == [
        "silent",
        "whole",
        "short",
    ]
    assert told.strip().endswith("ranks.md")
    assert (three.path / "reports/whole/again/judge/ranks.md").is_file()


def test_a_judge_that_takes_the_first_answer_finds_ties_and_shows_it(
    three: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    judge = "--judge=function:app:biased"
    assert main(["judge", "whole", "--against=short", judge, "--gate=capitals.preference >= 0.9"]) == 10
    told = capsys.readouterr().out
    assert cells(told, "whole", "short", "function:app:biased")[3:6] == ["0", "6", "0"]
    assert cells(told, "function:app:biased: whole against short", "prefers the first place")[2].startswith("100.0")
    assert "capitals.preference: 0.5000" in told


def test_a_judge_that_cannot_be_read_gives_no_win_rate(three: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["judge", "rank", "whole", "short", "--judge=function:app:mute", "--criteria", "Is it polite?"]) == 12
    assert cells(capsys.readouterr().out, "whole", "short")[-1] == "6"


def test_runs_that_cannot_be_compared_are_refused_with_one_message(
    three: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = "--judge=function:app:longer"
    three.pytester.makepyfile(
        test_other=(three.path / "test_capitals.py")
        .read_text("utf-8")
        .replace('"capitals"', '"others"')
        .replace("test_capitals", "test_others")
    )
    three.run("--run=other", "test_other.py")
    capsys.readouterr()
    for arguments, message in (
        (["whole"], "name at least two runs"),
        (["whole", "whole"], "name at least two runs"),
        (["whole", "nowhere"], "nowhere"),
        (["whole", "other"], "different benchmarks, capitals and others"),
    ):
        assert main(["judge", "rank", *arguments, judge]) == 2
        assert message in capsys.readouterr().err


def test_a_case_that_a_run_failed_to_answer_is_missing_not_left_out(
    three: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    three.pytester.makepyfile(
        broken="def answer(messages):\n    return {'Rome': 'Rome!', 'Osaka': 'Osaka!'}[messages[-1]['content']]\n"
    )
    capsys.readouterr()
    three.run("--model=function:broken:answer", "--run=failing", "--epochs=2", model=False)
    assert [record["outcome"] for record in three.records("failing")].count("error") == 2
    gate = "--gate=capitals.preference >= 0.5"
    assert main(["judge", "failing", "--against=short", "--judge=function:app:longer", gate]) == 12
    told = capsys.readouterr().out
    assert cells(told, "failing", "short")[3:6] == ["4", "0", "0"]
    assert cells(told, "failing", "short")[-1] == "2"
    assert "errors in 2 of 6 cases" in told


def test_answers_to_different_questions_are_not_compared(three: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    cases = three.path / "test_capitals.py"
    cases.write_text(cases.read_text("utf-8").replace('input="Paris"', 'input="Capital?"'), "utf-8")
    three.run("--run=later", "--epochs=2", "--model=function:app:whole", model=False)
    capsys.readouterr()
    assert main(["judge", "later", "--against=short", "--judge=function:app:longer"]) == 0
    told = capsys.readouterr().out
    assert "2 cases left out because the question differs between later and short: test_capitals.py" in told
    assert sum(map(int, cells(told, "later", "short")[3:6])) == 4
