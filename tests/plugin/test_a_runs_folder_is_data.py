"""An artifact of a run unpacked below a suite, with a test file that its records name: nothing imports it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

# A session in this process forgets its imports, and these modules cannot be imported twice.
import duckdb  # noqa: F401
import pandas as pd  # noqa: F401
import pytest

from evalsuite import cli
from evalsuite.cli import main

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

EVIL = """
from pathlib import Path
from evalsuite import Sample, benchmark

Path("sprung").touch()

@benchmark("capitals", [Sample(id="fr", input="x")])
def test_evil():
    pass
"""

COMMANDS = """
report art
report case 1 --run=art --full
report page art --no-open
report page --no-open
gate art --to=again
gate art --baseline=own
gate own --baseline=art
gate attack art
gate comment reports/art
baseline art
baseline promote art --to=kept --why=x
compare own art
compare cases own art --answers
compare history own art
runs
runs merge art own --to=merged
runs verify art
runs prune --keep=1
export art --to=csv -o out.csv
export art --to=parquet -o out.parquet
export art --to=latex -o out.tex
export art --to=jsonl -o out.jsonl
export art --to=inspect -o inspect
export art --to=lm-eval -o lm_eval.json
export cases art -o cases.jsonl
export paper own art --to=paper
export bundle art -o out.zip
export submission treb art -o submission.jsonl
judge art --judge=function:app:echo --criteria=x
judge rank art --against=own --judge=function:app:echo --criteria=x
judge sheet art -o sheet.html --criteria=x
plan test_capitals.py --baseline=art
score traces reports/art/records.jsonl --suite=test_capitals.py --to=traces.jsonl
"""
"""Every command that reads a run."""
WITHOUT_RUNS = {
    *("init", "doctor", "compare tables", "score", "score benchmark", "score metrics", "build", "gateway", "ray")
}
WITH_CODE = re.compile(
    r"report (?!case)|gate (?!attack|comment)|compare (?!cases)|runs (?:merge|verify)|export (?!cases|b|s)"
)


@pytest.fixture(params=["art/test_evil.py", "test_evil.py", "art/deeper/test_evil.py"])
def artifact(suite: Suite, request: pytest.FixtureRequest) -> Suite:
    """A run of the suite's own, and a foreign one whose records name a test file that came with it."""
    suite.run("--run=own")
    suite.run("--run=art")
    evil = suite.path / "reports" / request.param
    evil.parent.mkdir(exist_ok=True)
    evil.write_text(EVIL, "utf-8")
    for file in (suite.path / "reports" / "art").glob("records.jsonl"):
        place = f"reports/{request.param}::test_evil"
        lines = [json.loads(line) | {"declared": place} for line in file.read_text("utf-8").splitlines()]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return suite


def list_commands() -> list[str]:
    """The commands, then again with the suite's code where they take it."""
    commands = COMMANDS.strip().splitlines()
    return [*commands, *(f"{command} --code=." for command in commands if WITH_CODE.match(command))]


def test_every_command_that_reads_a_run_is_tried_here() -> None:
    forms = {f"{command} {word}".strip() for command, forms in cli.COMMANDS.items() for word in forms}
    tried = {max((form for form in forms if f"{line} ".startswith(f"{form} ")), key=len) for line in list_commands()}
    assert tried == forms - WITHOUT_RUNS


def test_no_command_imports_a_file_that_came_with_a_run(artifact: Suite) -> None:
    for command in list_commands():
        main(command.split())
        assert not (artifact.path / "sprung").exists(), command


@pytest.mark.parametrize("file", ["run.json", "records.jsonl"])
def test_no_command_writes_where_the_names_of_a_foreign_run_lead(
    suite: Suite, file: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    suite.run("--run=own")
    suite.run("--run=art")
    outside = tmp_path_factory.mktemp("outside")
    up = "../" * len(suite.path.parents) * 2
    changes = {
        "run.json": {"started": f"{up}{outside}/started", "run": f"{up}outside", "model": f"{outside}/model"},
        "records.jsonl": {"benchmark": f"{up}{outside}/x", "sample": str(outside), "tags": {str(outside): up}},
    }[file]
    hostile = suite.path / "reports" / "art" / file
    text = hostile.read_text("utf-8")
    lines = [json.loads(line) | changes for line in ([text] if file == "run.json" else text.splitlines())]
    hostile.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for command in list_commands():
        main(command.split())
        assert not list(outside.iterdir()), command


def test_no_command_follows_a_link_in_a_foreign_run(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> None:
    suite.run("--run=own")
    suite.run("--run=art")
    outside = tmp_path_factory.mktemp("outside")
    (outside / "own.js").write_text("kept", "utf-8")
    for name, target in ((".report.md.draft", outside / "own.js"), ("page", outside), ("artefacts", outside)):
        (suite.path / "reports" / "art" / name).symlink_to(target)
    for command in list_commands():
        main(command.split())
        assert [(file.name, file.read_text("utf-8")) for file in outside.iterdir()] == [("own.js", "kept")], command


def test_a_baseline_that_came_with_a_file_does_not_have_it_imported(artifact: Suite) -> None:
    artifact.run("test_capitals.py", "--baseline=art")
    assert not (artifact.path / "sprung").exists()


@pytest.mark.parametrize(
    "args",
    [
        ["reports/art/test_evil.py"],
        ["reports/art"],
        ["reports/beside/test_evil.py"],
        ["../test_evil.py"],
        ["-preports.art.test_evil"],
        ["--confcutdir=reports/art", "reports/art"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("again", ["--replay=art", "--resume=art", "attack"])
def test_paths_that_a_run_stores_lead_to_no_import(suite: Suite, args: list[str], again: str) -> None:
    suite.run("--run=art")
    run = suite.path / "reports" / "art"
    (run.parent / "beside").mkdir()
    for folder in (run, run.parent / "beside", suite.path.parent):
        for name in ("test_evil.py", "conftest.py"):
            (folder / name).write_text(EVIL.replace('"sprung"', repr(str(suite.path / "sprung"))), "utf-8")
    info = json.loads((run / "run.json").read_text("utf-8"))
    info["selection"]["args"] = args
    (run / "run.json").write_text(json.dumps(info), "utf-8")
    status = main(["gate", "attack", "art"]) if again == "attack" else suite.run(again).ret
    (suite.path.parent / "conftest.py").unlink()
    assert status != 0
    assert not (suite.path / "sprung").exists()


@pytest.mark.parametrize("again", ["--replay=art", "--resume=art"])
def test_packages_that_came_with_a_run_are_not_installed(suite: Suite, again: str) -> None:
    suite.run("--run=art")
    run = suite.path / "reports" / "art"
    (run / "packages.txt").write_text("./reports/art/evil\n", "utf-8")
    info = json.loads((run / "run.json").read_text("utf-8"))
    info["settings"]["program_env"] = "reports/art/packages.txt"
    (run / "run.json").write_text(json.dumps(info), "utf-8")
    result = suite.run(again)
    assert result.ret == 4
    assert "give --program-env=reports/art/packages.txt again" in result.stderr.str()


@pytest.mark.parametrize("arg", ["", "reports", "reports/art", "reports/art/test_evil.py", "reports/art/deeper"])
def test_a_conftest_in_a_runs_folder_is_not_imported(suite: Suite, arg: str) -> None:
    suite.run("--run=art")
    for folder in (suite.path / "reports" / "art", suite.path / "reports" / "art" / "deeper"):
        folder.mkdir(exist_ok=True)
        (folder / "conftest.py").write_text('from pathlib import Path\nPath("sprung").touch()\n', "utf-8")
        (folder / "test_evil.py").write_text(EVIL, "utf-8")
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --maxfail=7\n", "utf-8")
    suite.pytester.runpytest_subprocess("-c", "pyproject.toml", "--rootdir=.", *suite.model, *arg.split())
    assert not (suite.path / "sprung").exists()


def test_links_and_paths_out_of_the_suite_lead_to_no_import(suite: Suite) -> None:
    suite.run("--run=art")
    outside = suite.path.parent / "test_outside.py"
    outside.write_text(EVIL, "utf-8")
    (suite.path / "reports" / "art" / "test_evil.py").write_text(EVIL, "utf-8")
    (suite.path / "test_link.py").symlink_to(suite.path / "reports" / "art" / "test_evil.py")
    (suite.path / "linked").symlink_to(suite.path / "reports" / "art")
    records = suite.path / "reports" / "art" / "records.jsonl"
    lines = [json.loads(line) for line in records.read_text("utf-8").splitlines()]
    for file in ("test_link.py", "linked/test_evil.py", "../test_outside.py", str(outside)):
        place = f"{file}::test_evil"
        records.write_text("".join(json.dumps(line | {"declared": place}) + "\n" for line in lines), "utf-8")
        main(["report", "art", "--code=."])
        main(["report", "linked", "--code=."])
    assert not (suite.path / "sprung").exists()


@pytest.mark.parametrize("file", ["test_evil.py", "deeper/test_evil.py"])
@pytest.mark.parametrize("arg", ["", "reports", "reports/art", "reports/art/{file}", "reports/art/{file}::test_evil"])
def test_tests_in_a_runs_folder_are_not_collected(suite: Suite, file: str, arg: str) -> None:
    suite.run("--run=art")
    evil = suite.path / "reports" / "art" / file
    evil.parent.mkdir(exist_ok=True)
    evil.write_text(EVIL, "utf-8")
    result = suite.run(*arg.format(file=file).split())
    assert not (suite.path / "sprung").exists()
    assert ("holds data alone" in result.stderr.str()) == ("art" in arg)
    if not arg:
        result.assert_outcomes(passed=2, failed=1)
