"""What `--limit`, `-k` and `--shard` leave out is never made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.core.types import Sample
from evalsuite.samples import lazy
from evalsuite.samples.lazy import LazySamples

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

LAZY = """
import pathlib
from evalsuite import LazySamples, Sample, benchmark, exact_match, generate

def make(id):
    with pathlib.Path("made.txt").open("a") as stream:
        stream.write(id + "\\n")
    return Sample(id=id, input=f"word {id}", target=f"word {id}", tags={"kind": "made"})

@benchmark("lazy", LazySamples(range(1000), make), solver=generate(), scorers=[exact_match()])
def test_lazy(scores):
    assert scores["exact_match"] == 1.0
"""

STREAMED = """
import pathlib
from evalsuite import Sample, benchmark, exact_match, generate

def read():
    for number in range(10**9):
        pathlib.Path("read.txt").write_text(str(number))
        yield Sample(id=number % 20, input="word", target="word")

@benchmark("streamed", read, solver=generate(), scorers=[exact_match()])
def test_streamed(scores):
    assert scores["exact_match"] == 1.0
"""


def made(suite: Suite) -> set[str]:
    file = suite.path / "made.txt"
    names = set(file.read_text().split())
    file.unlink()
    return names


def test_samples_that_keyword_limit_or_shard_leave_out_are_not_made(suite: Suite) -> None:
    suite.pytester.makepyfile(test_lazy=LAZY)
    suite.run("test_lazy.py", "-k", "lazy and (997 or [31] or [32]) and not 32").assert_outcomes(passed=2)
    assert made(suite) == {"997", "31"}
    suite.run("test_lazy.py", "-k", "nothing_like_it").assert_outcomes(deselected=1)
    assert not (suite.path / "made.txt").exists()
    suite.run("test_lazy.py", "--limit=3").assert_outcomes(passed=3)
    assert len(made(suite)) == 3
    suite.run("test_lazy.py", "--shard=7/500", "-n2").assert_outcomes(passed=2)
    assert made(suite) == {"6", "506"}
    assert {record["tags"]["kind"] for record in suite.records()} == {"made"}


def test_names_that_a_conftest_adds_keep_their_items(suite: Suite) -> None:
    suite.pytester.makepyfile(test_lazy=LAZY)
    with (suite.path / "conftest.py").open("a") as stream:
        stream.write(
            "\ndef pytest_itemcollected(item):\n"
            "    if item.name.endswith('[5]'):\n        item.extra_keyword_matches.add('chosen')\n"
        )
    suite.run("test_lazy.py", "-k", "chosen").assert_outcomes(passed=1, deselected=999)
    assert made(suite) == {"5"}


def test_a_generator_is_read_as_far_as_the_limit(suite: Suite) -> None:
    suite.pytester.makepyfile(test_streamed=STREAMED)
    suite.run("test_streamed.py", "--limit=4").assert_outcomes(passed=4)
    assert (suite.path / "read.txt").read_text() == "3"
    result = suite.run("test_streamed.py", "--limit=25")
    result.stdout.fnmatch_lines(["*two samples have the id '0'; ids must be unique*"])


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("return None", "make('0') returned None, not a Sample"),
        ("raise KeyError(id)", "make('0') raised KeyError: '0'"),
        ("raise SystemExit(0)", "make('0') raised SystemExit: 0"),
    ],
)
def test_a_sample_that_cannot_be_made_is_one_message(suite: Suite, fault: str, words: str) -> None:
    code = LAZY.replace("    return Sample", f"    {fault}\n    return Sample")
    (suite.path / "test_capitals.py").write_text(code, encoding="utf-8")
    result = suite.run()
    assert result.ret == 12
    shown = result.stdout.str() + result.stderr.str()
    assert words in shown
    assert "INTERNALERROR" not in shown


def test_only_the_latest_samples_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "MOST_KEPT", 2)
    made: list[str] = []

    def make(name: str) -> Sample:
        made.append(name)
        return Sample(id=name, input=name)

    one, two, three = LazySamples("123", make).list_samples()
    assert [each.sample.id for each in (one, one, two, three, three, one)] == ["1", "1", "2", "3", "3", "1"]
    assert made == ["1", "2", "3", "1"]
