"""An artifact of a run unpacked below a suite, with a test file that its records name: nothing imports it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

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

COMMANDS = (
    ("report", "art"),
    ("gate", "art", "--gate=capitals.exact_match >= 0.5"),
    ("compare", "own", "art"),
    ("compare", "history", "own", "art"),
    ("runs", "verify", "art"),
    ("export", "art", "--to=csv", "-o", "out.csv"),
    ("plan", "test_capitals.py", "--baseline=art"),
    ("gate", "attack", "art"),
    ("judge", "sheet", "art"),
    ("judge", "art", "--judge=function:app:echo"),
    ("report", "case", "fr"),
    ("runs",),
    ("baseline", "promote", "art", "--to=kept", "--why=x"),
)
WITH_CODE = {"report", "gate", "compare", "export", "runs"}


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


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_imports_a_file_that_came_with_a_run(artifact: Suite, command: tuple[str, ...]) -> None:
    main(list(command))
    if len(command) > 1 and command[0] in WITH_CODE and command[1] not in {"attack", "case"}:
        main([*command, "--code=."])
    assert not (artifact.path / "sprung").exists()


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
