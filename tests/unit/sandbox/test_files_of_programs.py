"""Files that programs write: the harmless ones are kept, and what a program hands over is never trusted."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.sandbox import TableFile
from evalsuite.sandbox.execution import MOST_BYTES, MOST_FILES, encode_files, read_program_files
from evalsuite.sandbox.inside.files import HEAD

Lab = Any
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 3, 2) + b"rest"


def handed_over(*files: tuple[str, bytes]) -> bytes:
    parts = (HEAD.pack(len(name.encode()), len(content)) + name.encode() + content for name, content in files)
    return b"".join(parts)


def test_pictures_and_texts_that_a_program_writes_are_kept(tier_lab: Lab) -> None:
    execution = tier_lab.run(
        "open('total.txt', 'w').write('42')\n"
        "open('rows.csv', 'w').write('a\\n1\\n')\n"
        "open('page.html', 'w').write('<script>alert(1)</script>')\n"
        "open('drawing.svg', 'w').write('<svg onload=\"alert(1)\"/>')\n"
        "print('done')"
    )
    assert [(file.name, file.content) for file in execution.files] == [("rows.csv", b"a\n1\n"), ("total.txt", b"42")]


def test_a_figure_that_is_only_shown_becomes_a_picture(tier_lab: Lab) -> None:
    pytest.importorskip("matplotlib", reason="pip install 'evalsuite[plots]'")
    execution = tier_lab.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    (figure,) = execution.files
    assert (figure.name, execution.error) == ("figure_1.png", None)
    assert base64.b64decode(encode_files(execution.files)["figures"][0]["png"]) == figure.content


def test_each_round_of_a_session_has_its_own_files(lab: Lab) -> None:
    codes = ("open('a.txt', 'w').write('1')", "print(1)", "open('a.txt', 'w').write('12')")
    rounds = lab.rounds(*codes)
    assert [[file.content for file in each.files] for each in rounds] == [[b"1"], [], [b"12"]]


def test_tables_that_were_given_are_no_files_of_the_program(lab: Lab) -> None:
    execution = lab.run("print(open('df.csv').read())", {"df": TableFile(b"a\n1\n")})
    assert (execution.stdout, execution.files) == ("a\n1\n\n", ())


def test_what_a_program_writes_where_its_files_are_read_does_no_harm(bare: Lab) -> None:
    execution = bare.run("import os; os.write(5, b'\\xff' * 9000); os.close(5); print(1)")
    assert (execution.stdout, execution.error, execution.files) == ("1\n", None, ())


@pytest.mark.parametrize(
    "file",
    [
        ("drawing.svg", b"<svg/>"),
        ("page.html", b"<p>"),
        ("fake.png", b"<script>"),
        ("short.png", PNG[:20]),
        ("huge.png", PNG[:16] + struct.pack(">II", 100_000, 100_000)),
        ("binary.txt", b"a\0b"),
        ("latin.csv", b"caf\xe9"),
        ("long.txt", b"x" * (1 << 17)),
    ],
)
def test_other_kinds_false_pictures_and_binary_texts_are_left_out(file: tuple[str, bytes]) -> None:
    assert read_program_files(handed_over(file, ("ok.txt", b"kept")))[0].name == "ok.txt"


def test_no_more_is_kept_than_the_limits_allow() -> None:
    many = read_program_files(handed_over(*((f"{n}.txt", b"1") for n in range(20))))
    assert len(many) == MOST_FILES
    heavy = read_program_files(handed_over(*((f"{n}.png", PNG + bytes(MOST_BYTES // 2)) for n in range(4))))
    assert len(heavy) == 1


@pytest.mark.parametrize(
    ("written", "kept"),
    [("../../etc/cron.txt", "_.._etc_cron.txt"), ("Über uns.TXT", "über_uns.txt"), (".hidden.txt", "hidden.txt")],
)
def test_names_are_letters_digits_and_dots(written: str, kept: str) -> None:
    assert read_program_files(handed_over((written, b"1")))[0].name == kept


@given(st.binary(max_size=400))
def test_whatever_is_handed_over_is_read_without_an_error(data: bytes) -> None:
    for file in read_program_files(data):
        assert file.name.endswith((".png", ".csv", ".txt"))
        assert "/" not in file.name


def test_names_in_other_scripts_stay_apart(lab: Lab) -> None:
    execution = lab.run("for name in ('销售.csv', '利润.csv', 'Ärger.txt'):\n    open(name, 'w').write(name)\nprint(1)")
    assert [(file.name, file.content.decode()) for file in execution.files] == [
        ("Ärger.txt".lower(), "Ärger.txt"),
        ("利润.csv", "利润.csv"),
        ("销售.csv", "销售.csv"),
    ]


def test_two_names_that_become_one_are_told_apart() -> None:
    handed_over = b"".join(HEAD.pack(5, 1) + name + b"x" for name in (b"a?.md", b"a?csv", b"a.csv", b"A.csv"))
    assert [file.name for file in read_program_files(handed_over)] == ["a.csv", "2_a.csv"]


@pytest.mark.parametrize(
    "make", ["os.symlink('nowhere', 'x.csv')", "os.mkfifo('x.csv')", "os.symlink('/dev/zero', 'x.csv')"]
)
def test_a_link_or_a_pipe_among_the_files_is_left_out(lab: Lab, make: str) -> None:
    first, second = lab.rounds(f"import os\n{make}\nprint(1)", "open('y.csv', 'w').write('a')\nprint(2)")
    assert (first.error, first.files, second.stdout) == (None, (), "2\n")
    assert [file.name for file in second.files] == ["y.csv"]
