"""A newcomer's way: `evalsuite init`, the first run, and the commands that look at it."""

from __future__ import annotations

import re
import shlex
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from evalsuite.cli import main
from evalsuite.commands import init
from evalsuite.commands.init import choose_install_commands
from evalsuite.results.run_folders import find_run_folder
from tests.warm_python import run_as_copy

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite
    from tests.warm_python import WarmPython

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "start.md").read_text("utf-8")


@pytest.fixture
def project(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, warm_python: WarmPython
) -> Suite:
    # What `init --ci` starts are copies, as what pytester starts.
    monkeypatch.setattr(subprocess, "run", partial(run_as_copy, subprocess.run, warm_python.open()))
    # The home folder of pytester's sessions is the project's.
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path_factory.mktemp("fonts")))
    for file in suite.path.iterdir():
        if file.is_file():
            file.unlink()
    monkeypatch.chdir(suite.path)
    (suite.path / "my_app.py").write_text(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0])
    suite.model = ("--model=function:my_app:answer",)
    return suite


def know_kenya(project: Suite) -> None:
    """Give the model the answer that it lacks."""
    app = project.path / "my_app.py"
    app.write_text(app.read_text().replace('"Tokyo"', '"Tokyo", "Kenya": "Nairobi"'))


def test_the_start_page_is_true(project: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    result = project.run("evals", "--run", "first")
    assert result.ret == 10
    told = next(line.strip() for line in PAGE.splitlines() if line.startswith("  missed"))
    assert told in result.stdout.str()
    capsys.readouterr()
    assert main(["report", "case", "ke"]) == 0
    assert "answer    I do not know.\ntarget    Nairobi\nscore     contains 0.0000" in capsys.readouterr().out
    know_kenya(project)
    assert project.run("evals", "--run", "better", fresh=True).ret == 0
    capsys.readouterr()
    assert main(["compare", "cases", "first", "better"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"failed -> passed  \+1\.0000  evals/test_first\.py::test_capitals\[ke\]", out)
    assert "1 with another outcome" in out
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["better", "first"]
    assert main(["runs", "prune", "--keep", "1"]) == 0
    assert (project.path / "reports" / "first").is_dir()
    assert main(["runs", "prune", "--keep", "1", "--yes"]) == 0
    assert [folder.name for folder in (project.path / "reports").iterdir()] == ["better"]


HEADERS = [
    ("pytest.ini", "[pytest]"),
    ("pyproject.toml", "[tool.pytest]"),
    ("pyproject.toml", "[tool.pytest.ini_options]"),
    ("tox.ini", "[pytest]"),
    ("setup.cfg", "[tool:pytest]"),
]


@pytest.mark.parametrize(("name", "header"), HEADERS, ids=lambda text: text)
def test_init_leaves_a_project_s_settings_alone_and_prints_the_gate_in_their_format(
    project: Suite, capsys: pytest.CaptureFixture[str], name: str, header: str
) -> None:
    quiet = '["-q"]' if "[tool." in header else "-q"
    (project.path / name).write_text(f"{header}\naddopts = {quiet}\n")
    before = (project.path / name).read_text()
    assert main(["init"]) == 0
    assert (project.path / name).read_text() == before
    assert not (project.path / "pytest.toml").exists()
    told = capsys.readouterr().out
    assert f"add this gate below {header} yourself" in told
    gate = told.partition("yourself:\n")[2].partition("\n\nRun it")[0]
    (project.path / name).write_text(before.replace(header, f"{header}\n{gate}"))
    result = project.run("evals", fresh=True)
    assert result.ret == 10, result.stdout.str() + result.stderr.str()
    assert main(["init"]) == 0
    assert f"{name}: it has gates" in capsys.readouterr().out


def test_init_leaves_settings_that_pytest_cannot_read_to_pytest(
    project: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.path / "pyproject.toml").write_text('[[tool.pytest]]\naddopts = ["-q"]\n')
    assert main(["init"]) == 0
    assert "add this gate below [tool.pytest] yourself" in capsys.readouterr().out


def test_init_says_which_line_an_own_conftest_lacks(project: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    (project.path / "conftest.py").write_text("# mine\n")
    assert main(["init"]) == 0
    assert (project.path / "conftest.py").read_text() == "# mine\n"
    assert 'add this line yourself:  pytest_plugins = ["evalsuite.plugin"]' in capsys.readouterr().out


def test_init_ci_proves_its_workflow_green_and_red_and_leaves_nothing_behind(
    project: Suite, capfd: pytest.CaptureFixture[str]
) -> None:
    (project.path / "my_app.py").unlink()
    assert main(["init", "--ci"]) == 0
    told = capfd.readouterr().out
    assert re.search(r"green: exit status 0, comment “✅ .*: passed”, verdict=[0-9a-f]{16}", told)
    assert re.search(r"red: +exit status 10, comment “❌ .*: a gate is missed”, verdict=[0-9a-f]{16}", told)
    assert files_of(project.path) == {
        ".github/workflows/evals.yml", "conftest.py", "evals/test_first.py", "pytest.toml"
    }  # fmt: skip
    assert decide_step(project.path / ".github" / "workflows" / "evals.yml") == (
        "pytest evals/ --model=gpt-4 --max-cost=5 --run=pr"
    )


def test_init_ci_with_a_model_writes_the_first_baseline_and_compares_with_it(
    project: Suite, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["init"]) == 0
    know_kenya(project)
    assert main(["init", "--ci", "--model=function:my_app:answer"]) == 0
    assert files_of(project.path / "evals") == {
        "test_first.py", "baseline/run.json", "baseline/records.jsonl", "baseline/summary.json"
    }  # fmt: skip
    command = decide_step(project.path / ".github" / "workflows" / "evals.yml")
    assert command == (
        "pytest evals/ --model=function:my_app:answer --run=pr --baseline=evals/baseline "
        "'--gate=* no worse than baseline'"
    )
    # Three questions cannot show that nothing was lost.
    ended = project.run(*shlex.split(command)[1:], model=False, fresh=True)
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(
        ["*no data  * no worse than baseline *too few cases to see a loss of 0.02*needed", "incomplete: no decision (*"]
    )
    assert "Against baseline" in project.report("pr")


def test_init_ci_takes_no_red_run_for_the_first_baseline(project: Suite, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    assert main(["init", "--ci", "--model=function:my_app:answer"]) == 0
    assert "only a run that passed becomes a baseline" in capfd.readouterr().out
    assert not (project.path / "evals" / "baseline").exists()


def test_init_ci_that_cannot_be_proven_says_why(project: Suite, capfd: pytest.CaptureFixture[str]) -> None:
    (project.path / "conftest.py").write_text("# mine\n")
    assert main(["init", "--ci"]) == 1
    told = capfd.readouterr().out
    assert "add this line yourself" in told
    assert "not proven: pytest ended with status 4" in told


def files_of(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def decide_step(file: Path) -> str:
    """The command that decides, of a workflow that GitHub would read."""
    workflow = yaml.safe_load(file.read_text())
    (job,) = workflow["jobs"].values()
    command: str = next(step["run"] for step in job["steps"] if step.get("id") == "decide")
    return command


@pytest.mark.parametrize(
    ("file", "text", "install", "prefix"),
    [
        ("requirements.txt", "evalsuite[plots]>=1\n", "pip install -r requirements.txt", ""),
        ("requirements.txt", "pandas\n", "pip install -r requirements.txt evalsuite", ""),
        ("uv.lock", 'name = "evalsuite"\n', "pip install uv && uv sync --locked", "uv run --no-sync "),
        ("poetry.lock", 'name = "evalsuite"\n', "pip install poetry && poetry install", "poetry run "),
        ("pyproject.toml", '[project]\nname = "mine"\n', "pip install . evalsuite", ""),
        ("README.md", "", "pip install evalsuite", ""),
    ],
)
def test_the_workflow_installs_by_the_project_s_lock_or_requirements(
    tmp_path: Path, file: str, text: str, install: str, prefix: str
) -> None:
    (tmp_path / file).write_text(text)
    found = choose_install_commands(tmp_path)
    assert (found.install, found.prefix, found.lacking) == (install, prefix, "")


def test_a_project_file_in_another_encoding_does_not_end_init_ci(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndescription = "\xe9"\n', "latin-1")
    assert choose_install_commands(tmp_path).install == "pip install . evalsuite"


def test_a_lock_without_evalsuite_says_how_it_is_added(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text('name = "pandas"\n')
    assert choose_install_commands(tmp_path).lacking == "uv add --dev evalsuite"


@pytest.mark.parametrize("forge", ["github", "gitlab"])
@pytest.mark.parametrize("folder", ["chat: v2, #1", "[chat]"])
def test_a_workflow_is_valid_yaml_whatever_the_names_of_its_folder_and_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forge: str, folder: str
) -> None:
    (tmp_path / ".git").mkdir()
    part = tmp_path / folder
    part.mkdir()
    monkeypatch.chdir(part)
    monkeypatch.setattr(init, "_prove_workflow", lambda *_: 0)
    monkeypatch.setattr(init, "_make_first_baseline", lambda *_: ())
    assert main(["init", "--ci", forge, "--model=local:/a: b #1.gguf"]) == 0
    (file,) = (*tmp_path.glob(".github/workflows/*"), *tmp_path.glob(".gitlab/*"))
    text = yaml.safe_load(file.read_text())
    decide = "pytest evals/ '--model=local:/a: b #1.gguf' --run=pr"
    if forge == "github":
        job = text["jobs"][file.stem]
        assert job["defaults"]["run"]["working-directory"] == folder
        assert job["steps"][-1]["with"]["path"] == f"{folder}/reports/pr"
        assert job["steps"][3]["run"] == decide
    else:
        job = text[file.stem]
        assert job["before_script"][0] == f"cd {shlex.quote(folder)}"
        assert job["script"][0] == decide
        assert job["artifacts"]["paths"] == [f"{folder}/reports/pr"]


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_a_workflow_of_a_subfolder_is_written_where_the_forge_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forge: str
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text("evalsuite\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    part = tmp_path / "services" / "chat"
    part.mkdir(parents=True)
    monkeypatch.chdir(part)
    monkeypatch.setattr(init, "_prove_workflow", lambda *_: 0)
    assert main(["init", "--ci", forge]) == 0
    assert not (part / ".github").exists()
    # The settings of the whole repository stay in force.
    assert not (part / "pytest.toml").exists()
    if forge == "github":
        text = (tmp_path / ".github" / "workflows" / "evals-services-chat.yml").read_text()
        job = yaml.safe_load(text)["jobs"]["evals-services-chat"]
        assert job["defaults"]["run"]["working-directory"] == "services/chat"
        assert job["steps"][-1]["with"]["path"] == "services/chat/reports/pr"
        assert "pip install -r ../../requirements.txt" in text
    else:
        include = yaml.safe_load((tmp_path / ".gitlab-ci.yml").read_text())["include"]
        job = yaml.safe_load((tmp_path / include[0]["local"]).read_text())["evals-services-chat"]
        # A run that was committed does not stand in for the job's own.
        assert job["before_script"] == [
            "cd services/chat",
            "rm -rf reports/pr",
            "pip install -r ../../requirements.txt",
        ]


def test_a_part_of_several_ids_names_them(project: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init"])
    project.run("evals")
    capsys.readouterr()
    assert main(["report", "case", "test_capitals"]) == 2
    assert "test_capitals[fr]" in capsys.readouterr().err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("evalsuite 0.")


def test_a_run_that_tries_out_some_cases_does_not_become_the_last(suite: Suite) -> None:
    suite.run("--run", "whole")
    suite.run("-k", "jp")
    assert find_run_folder(suite.path / "reports", "last").name == "whole"
    suite.run("-k", "jp", "--run", "named")
    assert find_run_folder(suite.path / "reports", "last").name == "named"


def test_an_interrupted_run_says_how_to_go_on(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(wrong="def answer(messages): return 'x'")
    result = suite.run(*workers, "-x", "--run", "cut", "--model=function:wrong:answer", model=False)
    result.stdout.fnmatch_lines(["go on with it: --resume cut *"])
