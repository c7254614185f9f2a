"""The command `evalsuite`, whatever its output can take and whatever it is given."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import evalsuite.commands.report as command
from evalsuite.cli import COMMANDS, main, parse_command
from evalsuite.commands.gateway import SHARED, make_upstream_options, read_given_settings
from evalsuite.core.option_values import declare_arguments

if TYPE_CHECKING:
    import argparse


def test_what_the_terminal_s_encoding_lacks_is_written_as_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    @declare_arguments("--reports RUN")
    def run(_: argparse.Namespace) -> int:
        sys.stdout.write("# ❌ missed, café\n")
        return 0

    monkeypatch.setattr(command, "run_report", run)
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
    assert main(["report", "last"]) == 0
    sys.stdout.flush()
    assert written.getvalue().decode("cp1252") == "# \\u274c missed, café\n"


@pytest.mark.parametrize("command", [["plan"], ["doctor"], ["ray", "--shards", "2"]])
def test_a_suite_that_is_not_there_is_one_message(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "nowhere/test_it.py::test_it[fr]"]) == 2
    assert capsys.readouterr().err == "evalsuite: nowhere/test_it.py::test_it[fr]: no such file or folder\n"


@pytest.mark.parametrize("form", ["--{}={}", "-oevalsuite_{}={}", "--override-ini=evalsuite_{}={}"])
def test_shards_on_ray_share_limits_and_addresses_however_they_are_given(form: str) -> None:
    def write(name: str, value: str) -> str:
        return form.format(name.replace("_", "-") if form.startswith("--{}") else name, value)

    limits = [write("connect_timeout", "3"), write("max_rpm", "60")]
    models = [write("user_model", "u"), write("user_base_url", "http://u/v1?a=b"), write("user_key_env", "USER_KEY")]
    values, rest = read_given_settings([*limits, "-k", "fr", *models, "-ocache_dir=c"], SHARED)
    assert {name: given for name, given in values.items() if given} == {"connect_timeout": ["3"], "max_rpm": ["60"]}
    assert rest[:2] == ["-k", "fr"]
    assert sorted(rest[2:]) == sorted([*(text.replace("--override-ini=", "-o") for text in models), "-ocache_dir=c"])
    assert make_upstream_options(rest) == ["--model=u", "--upstream=http://u/v1?a=b,USER_KEY"]


def test_every_form_of_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name, forms in COMMANDS.items():
        for word in forms:
            with pytest.raises(SystemExit) as ended:
                main([name, *word.split(), "--help"])
            assert ended.value.code == 0
            assert capsys.readouterr().out.startswith(f"usage: evalsuite {name} {word}".rstrip())


def test_a_command_by_its_earlier_name_works_and_names_the_new_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prune", f"--reports={tmp_path}"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "evalsuite prune is now: evalsuite runs prune\n"
    assert shown.out == "nothing to remove\n"


def test_runs_to_rank_against_are_named_with_and_without_the_form_of_the_command() -> None:
    for words in (["judge", "rank", "a"], ["judge", "a"]):
        options = parse_command([*words, "--against=b", "--judge=m"])
        assert (options.names, options.against) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("words", "name", "values"),
    [
        (["gate", "attack", "r", "--reports=runs", "cases"], "suite", ["cases"]),
        (["compare", "history", "a", "--reference=b", "c"], "names", ["a", "c"]),
        (["score", "traces", "a", "--suite=cases", "b", "-k", "fr"], "sources", [Path("a"), Path("b")]),
    ],
)
def test_an_option_may_stand_between_a_command_s_arguments(words: list[str], name: str, values: list[object]) -> None:
    options = parse_command(words)
    assert getattr(options, name) == values
    assert options.further == (["-k", "fr"] if "-k" in words else [])


def test_a_cluster_that_does_not_start_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.")  # noqa: TRY002 - Ray's own class

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    assert main(["ray", str(tmp_path), "--shards=2", f"--reports={tmp_path}"]) == 2
    assert capsys.readouterr().err == "evalsuite: --address local: The current node timed out during startup.\n"


def test_a_command_that_does_not_exist_is_refused_with_those_that_do(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["shw"])
    assert ended.value.code == 2
    assert "'report'" in capsys.readouterr().err
