"""The workflows in docs/ci, run as a forge runs them: exit status, comment and artifacts say the same."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.workflows.conftest import ROOT, TOKEN, GitHub, GitLab

if TYPE_CHECKING:
    from tests.conftest import ChatServer
    from tests.workflows.conftest import Comments, Machine

COUNTRIES = 12
CASES = f"""
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=str(n), input=f"question {{n}}", target=f"answer {{n}}") for n in range({COUNTRIES})]

@benchmark("questions", SAMPLES, solver=generate(max_tokens=8), scorers=[exact_match()])
def test_questions(scores):
    assert scores["exact_match"] == 1.0
"""
FILES = {
    "conftest.py": 'pytest_plugins = ["evalsuite.plugin"]\n',
    "cases/test_questions.py": CASES,
    "pytest.toml": '[pytest]\nevalsuite_gates = ["questions.exact_match >= 0.2"]\n',
    "requirements.txt": "evalsuite\n",
}
FORGED = "# ✅ gpt-4: passed\n\n<!-- evalsuite verdict 0123456789abcdef -->\n"
FORGED_SUMMARY = '{"verdict_id": "0123456789abcdef", "status": 0, "verdict": "passed"}'


@pytest.fixture
def project(machine: Machine, chat_server: ChatServer) -> Machine:
    """A repository whose model answers all questions, and a baseline of it."""
    machine.environment |= {"OPENAI_BASE_URL": chat_server.url, "OPENAI_API_KEY": "key"}
    answer(chat_server, COUNTRIES)
    machine.commit(FILES)
    assert machine.shell("pytest cases --model=gpt-4 --run=baseline", machine.home / "origin") == 0, machine.log
    kept = machine.home / "origin" / "reports" / "baseline"
    for file in kept.iterdir():
        if file.name not in {"run.json", "records.jsonl", "summary.json"}:
            file.unlink()
    machine.commit({})
    return machine


def answer(server: ChatServer, known: int) -> None:
    """Lets the model know the answers to the first questions."""

    def reply(body: dict[str, Any]) -> Any:
        number = body["messages"][-1]["content"].split()[1]
        return server.say(f"answer {number}" if int(number) < known else "no idea")

    server.reply = reply


def github(machine: Machine, comments: Comments, file: str = "github.yml") -> GitHub:
    event = machine.home / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"repo": {"full_name": "me/it"}}}}))
    machine.environment |= {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "me/it",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_API_URL": comments.url,
        "GITHUB_STEP_SUMMARY": str(machine.home / "step.md"),
    }
    workflow = yaml.safe_load((ROOT / "docs/ci" / file).read_text("utf-8"))
    return GitHub(machine, workflow, {"github.token": TOKEN, "secrets.OPENAI_API_KEY": "key"})


def gitlab_variables(comments: Comments) -> dict[str, str]:
    return {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": comments.url,
        "CI_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_IID": "7",
        "GITLAB_TOKEN": TOKEN,
    }


def verdict_everywhere(folder: Any, *texts: str) -> tuple[str, int]:
    """The verdict's id and status, once all artifacts and the given texts carry it."""
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    id_ = summary["verdict_id"]
    files = [(folder / name).read_text("utf-8") for name in ("comment.md", "report.md", "report.html")]
    assert all(id_ in text and summary["verdict"] in text for text in (*files, *texts))
    assert all("Against baseline" in text for text in (*files, *texts))
    return id_, summary["status"]


@pytest.mark.parametrize(("known", "status", "words"), [(12, 0, "passed"), (4, 11, "a regression")])
def test_the_github_workflow_comments_what_its_gate_decided(
    project: Machine, comments: Comments, chat_server: ChatServer, known: int, status: int, words: str
) -> None:
    # What a change brings along under the names of a verdict is not posted.
    project.commit({"verdict/comment.md": FORGED, "verdict/summary.json": FORGED_SUMMARY})
    answer(chat_server, known)
    runner = github(project, comments)
    for shard in runner.workflow["jobs"]["cases"]["strategy"]["matrix"]["shard"]:
        runner.run("cases", shard=shard)
    for name, text in {"comment.md": FORGED, "summary.json": FORGED_SUMMARY}.items():
        (project.artifacts / "shard-1" / name).write_text(text, "utf-8")
    assert runner.run("gate") is (status == 0), project.log
    assert status in next(codes for job, codes in runner.outcome.items() if job.startswith("gate"))
    (comment,) = comments.kept
    shown = (project.home / "step.md").read_text("utf-8")
    assert verdict_everywhere(project.artifacts / "verdict", comment["body"], shown)[1] == status
    assert f"gpt-4: {words}" in comment["body"].splitlines()[0]
    assert comments.tokens - {""} == {f"Bearer {TOKEN}"}
    assert TOKEN not in project.log
    assert {file.name for file in (project.artifacts / "run").iterdir()} == {
        "run.json", "records.jsonl", "journal.sqlite"
    }  # fmt: skip


@pytest.mark.parametrize(("known", "status", "words"), [(12, 0, "passed"), (4, 11, "a regression")])
def test_the_gitlab_pipeline_comments_what_its_gate_decided(
    project: Machine, comments: Comments, chat_server: ChatServer, known: int, status: int, words: str
) -> None:
    answer(chat_server, known)
    pipeline = yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text("utf-8"))
    runner, variables = GitLab(project, pipeline), gitlab_variables(comments)
    total = pipeline["cases"]["parallel"]
    for index in range(1, total + 1):
        runner.run("cases", CI_NODE_INDEX=str(index), CI_NODE_TOTAL=str(total), **variables)
    assert runner.run("gate", **variables) is (status == 0), project.log
    assert [*runner.outcome.values()][-1] == [0, 0, status]
    (comment,) = comments.kept
    folder = project.artifacts / "gitlab" / "verdict"
    assert verdict_everywhere(folder, comment["body"])[1] == status
    assert f"gpt-4: {words}" in comment["body"].splitlines()[0]


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_committed_shards_do_not_decide(
    project: Machine, comments: Comments, chat_server: ChatServer, forge: str
) -> None:
    for shard in range(1, 5):
        command = f"pytest cases --model=gpt-4 --shard={shard}/4 --run=shard-{shard}"
        assert project.shell(command, project.home / "origin") == 0, project.log
    project.commit({})
    answer(chat_server, 0)
    if forge == "github":
        runner = github(project, comments)
        for shard in range(1, 5):
            runner.run("cases", shard=shard)
        assert not runner.run("gate"), project.log
    else:
        pipeline = GitLab(project, yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text("utf-8")))
        for shard in range(1, 5):
            pipeline.run("cases", CI_NODE_INDEX=str(shard), CI_NODE_TOTAL="4", **gitlab_variables(comments))
        assert not pipeline.run("gate", **gitlab_variables(comments)), project.log
    assert comments.kept[0]["body"].startswith("# ⚠️ no verdict")


@pytest.mark.parametrize(("known", "status", "words"), [(12, 0, "passed"), (4, 11, "a regression")])
def test_ten_lines_with_the_action_do_the_same(
    project: Machine, comments: Comments, chat_server: ChatServer, known: int, status: int, words: str
) -> None:
    answer(chat_server, known)
    runner = github(project, comments, "github-action.yml")
    assert runner.run("evals") is (status == 0), project.log
    (comment,) = comments.kept
    shown = (project.home / "step.md").read_text("utf-8")
    assert verdict_everywhere(project.artifacts / "evals", comment["body"], shown)[1] == status
    assert f"gpt-4: {words}" in comment["body"].splitlines()[0]
    lines = (ROOT / "docs/ci/github-action.yml").read_text("utf-8").splitlines()
    assert len([line for line in lines if not line.startswith("#")]) == 10


@pytest.mark.parametrize(("known", "status", "words"), [(12, 0, "passed"), (4, 11, "a regression")])
def test_a_line_with_the_component_does_the_same(
    project: Machine, comments: Comments, chat_server: ChatServer, known: int, status: int, words: str
) -> None:
    answer(chat_server, known)
    # A run that was committed does not stand in for the job's own.
    project.commit({"reports/pr/run.json": "{}"})
    used = yaml.safe_load((ROOT / "docs/ci/gitlab-component.yml").read_text("utf-8"))["include"][0]
    name = re.fullmatch(r"\$CI_SERVER_FQDN/OWNER/evalsuite/(\w+)@main", used["component"])
    assert name is not None
    text = (ROOT / "templates" / f"{name[1]}.yml").read_text("utf-8")
    header, _, jobs = text.partition("\n---\n")
    inputs = {key: spec.get("default") for key, spec in yaml.safe_load(header)["spec"]["inputs"].items()}
    assert set(used["inputs"]) <= set(inputs)
    given = inputs | used["inputs"]
    filled = re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: str(given[found[1]]), jobs)
    runner = GitLab(project, yaml.safe_load(filled))
    assert runner.run("evals", **gitlab_variables(comments)) is (status == 0), project.log
    (comment,) = comments.kept
    assert verdict_everywhere(project.artifacts / "gitlab/reports/pr", comment["body"])[1] == status
    assert f"gpt-4: {words}" in comment["body"].splitlines()[0]


def test_a_gate_that_ends_without_a_verdict_replaces_the_comment_on_an_earlier_commit(
    project: Machine, comments: Comments
) -> None:
    project.commit({"verdict/comment.md": FORGED, "verdict/summary.json": FORGED_SUMMARY})
    comments.kept.append({"id": 1, "body": FORGED, "system": False, "user": {"type": "Bot"}})
    runner = github(project, comments)
    assert not runner.run("gate")
    (comment,) = comments.kept
    assert comment["body"].startswith("# ⚠️ no verdict")
    assert re.search(r"\[2\]\n$", project.log)
