from __future__ import annotations

import argparse
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import termios
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.head_to_tail.dataset import read_items
from evalsuite.benchmarks.head_to_tail.paper_results import PAPER_MIX
from evalsuite.builders.building import open_build_folder
from evalsuite.builders.head_to_tail import run_build
from evalsuite.builders.head_to_tail.dblp import DblpSource
from evalsuite.builders.head_to_tail.goodreads import GoodreadsSource
from evalsuite.builders.head_to_tail.imdb import ImdbSource
from evalsuite.builders.head_to_tail.mag import MagSource
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.option_values import ARGUMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Write = Callable[[Mapping[str, str | bytes]], Path]
    Build = Callable[..., dict[str, list[list[Any]]]]

FILE = "mappingbased-objects_lang=en.ttl.bz2"
TRIPLE = "<http://dbpedia.org/resource/{}> <http://dbpedia.org/ontology/{}> <http://dbpedia.org/resource/{}> .\n"
OUTSIDE = "<http://dbpedia.org/resource/{}> <http://dbpedia.org/ontology/x> <http://example.org/x> .\n"
PREDICATES = ("country", "birthPlace", "genre")
COMMAND = """
import argparse, sys
from evalsuite.builders.head_to_tail import run_build
from evalsuite.core.option_values import ARGUMENTS
parser = argparse.ArgumentParser()
ARGUMENTS[run_build](parser)
sys.exit(run_build(parser.parse_args()))
"""


# However fast the machine is, there is time to do something while it reads.
SLOWLY = """
import time
from evalsuite.builders.building import BuildProgress
advance = BuildProgress.advance
BuildProgress.advance = lambda self, count: (advance(self, count), time.sleep(0.2))
"""


def popularity(town: int) -> int:
    return 3 + 400 // (town + 1)


def triples() -> list[str]:
    """600 towns, popular by what lies outside of the encyclopedia, each in three of 30 countries."""
    return [
        line
        for town in range(600)
        for line in (
            *(
                TRIPLE.format(f"Town_{town}", name, f"Land_{(7 * town + 11 * number) % 30}")
                for number, name in enumerate(PREDICATES)
            ),
            *[OUTSIDE.format(f"Town_{town}")] * (popularity(town) - 3),
        )
    ]


@pytest.fixture
def folder(dump: Write) -> Path:
    return dump({FILE: "".join(triples())})


def test_the_paper_s_mix_is_capped_as_its_scripts_are_and_says_what_asks_nothing(
    folder: Path, build: Build, tmp_path: Path
) -> None:
    names = {"country": "Where is _?", "page": "Which page is of _?", "genre": "What is _?", "spouse": "Who of _?"}
    templates = {f"<http://dbpedia.org/ontology/{name}>": words for name, words in names.items()}
    (folder / "templates.json").write_text(json.dumps(templates), encoding="utf-8")
    built = build("dbpedia", folder, "--mix", "paper", "--templates", str(folder / "templates.json"))
    counts = [Counter(question[1] for question in built[bucket]) for bucket in ("head", "torso", "tail")]
    assert counts[0] == counts[1] == counts[2]
    assert set(counts[0]) == set(list(templates)[::2])
    assert 0 < max(counts[0].values()) <= 10
    page = (tmp_path / "built.stats.md").read_text(encoding="utf-8")
    asks_nothing = page[page.index("## Templates that ask nothing") :]
    assert "| `<http://dbpedia.org/ontology/page>` | specific to the source |" in asks_nothing
    assert (
        "ontology/spouse>` | no question about an entity in head or torso or tail that the rules allow" in asks_nothing
    )


def test_the_paper_s_templates_are_as_many_as_its_table_2_says() -> None:
    counts = {"movie": len(ImdbSource.paper_templates), "book": len(GoodreadsSource.paper_templates)}
    counts["academics"] = len(MagSource.paper_templates) + len(DblpSource.paper_templates)
    assert counts == {domain: PAPER_MIX[domain].templates for domain in counts}


def test_what_is_built_can_be_asked(folder: Path, build: Build, tmp_path: Path) -> None:
    built = build("dbpedia", folder)
    items = read_items(tmp_path / "built.json")
    assert len(items) == sum(map(len, built.values())) > 60
    assert [item.question for item in items if item.bucket == "torso"] == [one[2] for one in built["torso"]]


def test_every_template_has_equally_many_questions_in_every_bucket(folder: Path, build: Build) -> None:
    built = build("dbpedia", folder)
    counts = {
        bucket: {one[1]: sum(other[1] == one[1] for other in built[bucket]) for one in built[bucket]}
        for bucket in built
    }
    assert counts["head"] == counts["torso"] == counts["tail"]
    assert len(counts["head"]) == 3


def test_no_template_has_more_questions_than_it_may(folder: Path, build: Build) -> None:
    built = build("dbpedia", folder, "--per-template", "2")
    assert [len(built[bucket]) for bucket in ("head", "torso", "tail")] == [6, 6, 6]


def test_no_question_stands_there_twice(folder: Path, build: Build) -> None:
    questions = [one[2] for asked in build("dbpedia", folder).values() for one in asked]
    assert len(questions) == len(set(questions))


def test_the_most_popular_come_first(folder: Path, build: Build) -> None:
    built = build("dbpedia", folder)
    for asked in built.values():
        order = [popularity(int(one[0].removeprefix("Town_"))) for one in asked]
        assert order == sorted(order, reverse=True)
    assert built["head"][0][0] == "Town_0"


def test_the_same_seed_gives_the_same_bytes_whatever_the_order_of_lines(
    dump: Write, build: Build, tmp_path: Path
) -> None:
    lines = triples()
    build("dbpedia", dump({FILE: "".join(lines)}), to="a.json")
    random.Random(1).shuffle(lines)
    build("dbpedia", dump({FILE: "".join(lines)}), to="b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    for suffix in (".stats.md", ".predicates.tsv"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_another_seed_asks_other_questions(folder: Path, build: Build) -> None:
    one, other = (build("dbpedia", folder, "--per-template", "3", "--seed", seed) for seed in ("1", "2"))
    assert one != other
    assert {bucket: len(asked) for bucket, asked in one.items()} == {
        bucket: len(asked) for bucket, asked in other.items()
    }


def test_the_page_beside_the_questions_counts_entities_and_questions(
    folder: Path, build: Build, tmp_path: Path
) -> None:
    built = build("dbpedia", folder)
    page = (tmp_path / "built.stats.md").read_text(encoding="utf-8")
    count = len(built["head"])
    assert f"| 3 | {count} | {count} | {count} | {3 * count} |" in page
    shares = [line.split(" | ") for line in page.splitlines() if line.startswith("| entity")]
    assert [row[1] for row in shares] == ["head", "torso", "tail"]
    assert sum(float(row[3].rstrip("%")) for row in shares) == pytest.approx(100, abs=0.05)
    assert sum(float(row[4].rstrip("%")) for row in shares) == pytest.approx(100, abs=0.05)
    assert float(shares[0][4].rstrip("%")) >= 33.3


def test_the_popularity_of_predicates_stands_beside_the_questions(folder: Path, build: Build, tmp_path: Path) -> None:
    build("dbpedia", folder)
    rows = [line.split("\t") for line in (tmp_path / "built.predicates.tsv").read_text().splitlines()]
    assert rows[0] == ["template", "popularity", "bucket"]
    assert {row[0]: row[1] for row in rows[1:]} == {
        f"<http://dbpedia.org/ontology/{name}>": "600" for name in PREDICATES
    }


def test_templates_of_the_user_are_asked(folder: Path, build: Build, tmp_path: Path) -> None:
    questions = {"<http://dbpedia.org/ontology/genre>": "What sort is _?"}
    (tmp_path / "mine.json").write_text(json.dumps(questions))
    built = build("dbpedia", folder, "--templates", str(tmp_path / "mine.json"))
    assert {one[2].split(" Town")[0] for asked in built.values() for one in asked} == {"What sort is"}


def test_templates_go_with_dbpedia_only(dump: Write, build: Build, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="dbpedia only"):
        build("dblp", dump({"dblp.xml": "<dblp></dblp>"}), "--templates", str(tmp_path / "mine.json"))


def test_a_dump_that_nothing_can_be_asked_about_is_an_error_and_writes_nothing(
    dump: Write, build: Build, tmp_path: Path
) -> None:
    folder = dump({FILE: TRIPLE.format("A", "country", "B")})
    with pytest.raises(DatasetError, match="no template with a question for each"):
        build("dbpedia", folder)
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]


def test_a_missing_folder_is_named(build: Build, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such folder"):
        build("dbpedia", tmp_path / "nowhere")


def test_an_output_that_cannot_be_written_is_named(folder: Path, build: Build, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"cannot write .*file/built\.json"):
        build("dbpedia", folder, to="file/built.json")


def test_a_build_needs_duckdb_and_says_how_to_get_it(
    folder: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(SettingsError, match=r"pip install 'evalsuite\[build\]'"):
        build("dbpedia", folder)


@pytest.mark.parametrize("number", ["0", "-3", "many"])
def test_so_many_questions_a_template_must_be_a_positive_number(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    ARGUMENTS[run_build](parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["imdb", "--from", "x", "--to", "y", "--per-template", number])
    assert f"--per-template: '{number}' is not a whole number of at least 1" in capsys.readouterr().err


def test_two_builds_of_one_file_do_not_meet(folder: Path, build: Build, tmp_path: Path) -> None:
    with open_build_folder(tmp_path / "built.json"), pytest.raises(SettingsError, match="another build is writing"):
        build("dbpedia", folder)
    assert build("dbpedia", folder)


def test_a_finished_build_leaves_its_files_and_nothing_else(folder: Path, build: Build, tmp_path: Path) -> None:
    build("dbpedia", folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "built.json",
        "built.predicates.tsv",
        "built.stats.md",
        "dump",
    ]


def _started(folder: Path, target: Path, code: str = COMMAND, **streams: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, "dbpedia", "--from", str(folder), "--to", str(target)]
    return subprocess.Popen(command, **streams)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_killed_build_leaves_the_old_file_and_the_next_one_clears_up(
    dump: Write, build: Build, tmp_path: Path, number: signal.Signals
) -> None:
    # Decompressed, and large enough to be read in many blocks.
    folder, target = dump({FILE.removesuffix(".bz2"): "".join(triples()) * 3}), tmp_path / "built.json"
    target.write_text("old")
    with _started(folder, target, SLOWLY + COMMAND, stderr=subprocess.DEVNULL) as process:
        while not list(tmp_path.glob(".built.json.building/pipe-*")):
            time.sleep(0.01)
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(30) != 0
    assert target.read_text() == "old"
    left = {path.name for path in tmp_path.iterdir()} - {"dump", "built.json"}
    # Against the last of the three nothing can be done by the one who dies of it.
    assert left == ({".built.json.building"} if number == signal.SIGKILL else set())
    assert build("dbpedia", dump({FILE: "".join(triples())}))["head"]
    assert not list(tmp_path.glob(".*"))


def test_a_build_shows_rate_and_time_left_on_a_terminal_and_nothing_elsewhere(folder: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    shown = b""
    with _started(folder, tmp_path / "a.json", stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # How Linux says that nobody has the other end any more.
            pass
        os.close(ours)
        assert process.wait() == 0
    # What is read now, how far it has come, time passed and left, and the rate.
    assert re.search(rb"mappingbased.*100%.*\[\d\d:\d\d<\d\d:\d\d, .*B/s\]", shown)
    with _started(folder, tmp_path / "b.json", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.read() == b""
