"""`evalsuite gate`: decide gates on a finished run, or post a verdict as a `comment` from a CI job."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalsuite.commands.report import remake_report
from evalsuite.core.errors import EvalsuiteError, SettingsError, escape_for_terminal
from evalsuite.core.option_values import declare_arguments, list_named_baselines
from evalsuite.decisions.gates import parse_gates
from evalsuite.decisions.verdict import Verdict
from evalsuite.output.reports.markdown import escape_markdown, format_decision_line
from evalsuite.output.reports.write import MARKER, append_to_github_files, format_comment
from evalsuite.results.run_folders import COMMENT, REPORT, SUMMARY


@declare_arguments("""
    --reports RUN
    --gate CONDITION*  gate that replaces the run's own; may be repeated
    --baseline RUN*    baseline that replaces the run's own; may be repeated
    --code --to
""")
def run_gate(options: argparse.Namespace) -> int:
    """Print the decisions and the verdict's id, and return the exit status; the run itself does not change."""
    parse_gates(options.gate)
    baselines = [*(options.baseline or ()), *list_named_baselines(options.gate or ())]
    given = {name: value for name, value in (("gate", options.gate), ("baseline", baselines)) if value}
    report = remake_report(options, {**given, "decides": True})
    verdict = report.verdict
    failures = append_to_github_files(report.render_text(), format_comment(report), verdict)
    print_verdict(verdict, int(verdict.status), *failures)
    sys.stdout.write(f"verdict: {verdict.id}\n")
    if options.to is not None:
        sys.stdout.write(f"report: {options.to / REPORT}\n")
    return int(verdict.status)


def print_verdict(verdict: Verdict, status: int, *asides: str) -> None:
    """Print each gate, further reasons, and the headline."""
    for decision in verdict.decisions:
        sys.stdout.write(f"{format_decision_line(decision)}\n")
    for line in (*verdict.reasons_beyond_gates, *verdict.remarks, *asides):
        sys.stdout.write(f"{escape_for_terminal(line)}\n")
    sys.stdout.write(f"{verdict.headline} (exit status {status})\n")


SECONDS = 30.0  # Timeout of a request to the forge's API.
PER_PAGE, MOST_PAGES = 100, 20  # Number of comments per page, and maximum pages to search for an earlier comment.


@declare_arguments("""
    folder=FOLDER  a run's folder, or the folder of `gate --to`
    --verdict ID   id of the verdict, as `gate` printed it and the step's output `verdict` holds it; a folder with
        another verdict is refused

    On GitHub the token is GITHUB_TOKEN or GH_TOKEN; on GitLab it is GITLAB_TOKEN, a project access token with the scope
    `api`. Outside of a CI job the comment is printed.
""")
def run_comment(options: argparse.Namespace) -> int:
    """Post the verdict's comment, replacing the comment of an earlier commit.

    If the verdict is missing or invalid, replace even a comment that says "passed", and end with the exit status 2.
    Otherwise, return the verdict's exit status; the session's status proves nothing, because tested code could end it
    with 0. The command does not execute the folder's files, because the CI step has a secret token and must not run the
    pull request's code.
    """
    try:
        (body, status), refused = read_comment(options.folder, options.verdict), None
    except SettingsError as error:
        refused, status = error, 2
        body = f"# ⚠️ no verdict\n\n- {escape_markdown(str(error))}\n\n{MARKER}none -->\n"
    forge: CommentHost | str = ""
    try:
        if os.environ.get("GITHUB_ACTIONS") == "true":
            forge = _find_github_comment_host(os.environ)
        elif os.environ.get("GITLAB_CI") == "true":
            forge = _find_gitlab_comment_host(os.environ)
    except KeyError as missing:
        raise SettingsError(f"the comment cannot be posted: this job has no variable {missing.args[0]}") from missing
    if isinstance(forge, str):
        sys.stdout.write(f"{body}\n" if not forge else f"not posted: {forge}\n")
    else:
        sys.stdout.write(f"{forge.post_comment(body)}\n")
    if refused is not None:
        raise refused
    return status


def read_comment(folder: Path, verdict_id: str | None) -> tuple[str, int]:
    """Read the comment and the exit status in a folder; refuse a comment with another verdict than the summary has.

    Args:
        verdict_id: the id of the verdict that the folder must contain; None accepts any id.
    """
    if verdict_id is not None and not re.fullmatch(r"[0-9a-f]{16}", verdict_id):
        raise SettingsError(
            f"--verdict={verdict_id!r:.40} is not an id: the step that decides ended without a verdict, and the step's "
            "log says why"
        )
    try:
        body = (folder / COMMENT).read_text("utf-8")
        summary = json.loads((folder / SUMMARY).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(
            f"{folder} holds no verdict: pytest, or `evalsuite gate --to={folder}`, ended without one; the log of "
            "that step says why"
        ) from error
    id_, status = (summary.get(name) if isinstance(summary, dict) else None for name in ("verdict_id", "status"))
    marked = re.search(rf"^{MARKER}(\w+) -->$", body, re.MULTILINE)
    found = marked[1] if marked else None
    if not isinstance(id_, str) or not isinstance(status, int) or found != id_ or verdict_id not in {None, id_}:
        raise SettingsError(
            f"{folder} holds the verdict {found} in {COMMENT} and {id_} in {SUMMARY}, not {verdict_id or 'one verdict'}"
            "; post from the folder that `evalsuite gate --to` wrote"
        )
    return body, status


@dataclass(frozen=True, slots=True)
class CommentHost:
    """Access to the comments of one pull request or merge request."""

    comments: str  # The URL that lists the comments of the pull request or merge request.
    one: str  # The URL of a comment, without the comment's id at the end.
    headers: Mapping[str, str]
    edit: str  # The HTTP method that replaces a comment.
    own: Callable[[Mapping[str, Any]], bool]  # Tells whether a comment (JSON data) may be one of evalsuite's.

    def post_comment(self, body: str) -> str:
        """Replace the earlier comment that contains the `MARKER`, or add a comment; describe what was done."""
        for number in range(1, MOST_PAGES + 1):
            page = self._call_api("GET", f"{self.comments}?per_page={PER_PAGE}&page={number}")
            for comment in page:
                if MARKER in str(comment.get("body")) and self.own(comment):
                    self._call_api(self.edit, f"{self.one}/{int(comment['id'])}", {"body": body})
                    return f"replaced comment {comment['id']}"
            if len(page) < PER_PAGE:
                break
        self._call_api("POST", self.comments, {"body": body})
        return "posted a comment"

    def _call_api(self, method: str, url: str, content: Mapping[str, str] | None = None) -> Any:
        import httpx2

        headers = {**self.headers, "User-Agent": "evalsuite"}
        try:
            # Do not follow a redirect, because the token would be sent to another host.
            answer = httpx2.request(method, url, json=content, headers=headers, timeout=SECONDS)
            answer.raise_for_status()
            return answer.json()
        except httpx2.HTTPStatusError as error:
            status, reason = error.response.status_code, error.response.reason_phrase
            advice = (
                "the token may not write comments: on GitHub the job needs `permissions: pull-requests: write`, on "
                "GitLab the token needs the scope `api`"
                if status in {401, 403, 404}
                else "the forge's own message is in the job's log"
            )
            raise EvalsuiteError(f"{method} {url} was answered with {status} {reason}: {advice}") from None
        except (httpx2.HTTPError, ValueError) as error:
            raise EvalsuiteError(f"{method} {url} failed: {error}; run this job again") from None


def _find_github_comment_host(environment: Mapping[str, str]) -> CommentHost | str:
    """Find the host of this CI job's comments; if no comment can be posted, return the reason."""
    repository = environment["GITHUB_REPOSITORY"]
    event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text("utf-8"))
    pull = event.get("pull_request")
    if pull is None:
        return "this job is not for a pull request; the verdict is on the job's page"
    if ((pull.get("head") or {}).get("repo") or {}).get("full_name") != repository:
        return "GitHub gives a pull request from a fork no token that may comment; the verdict is on the job's page"
    token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN")
    if not token:
        raise SettingsError("GITHUB_TOKEN is not set: add `env: GITHUB_TOKEN: ${{ github.token }}` to this step")
    api = f"{environment.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{repository}/issues"
    return CommentHost(
        f"{api}/{int(pull['number'])}/comments",
        f"{api}/comments",
        {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
        "PATCH",
        lambda comment: (comment.get("user") or {}).get("type") == "Bot",
    )


def _find_gitlab_comment_host(environment: Mapping[str, str]) -> CommentHost | str:
    number = environment.get("CI_MERGE_REQUEST_IID")
    if not number:
        return "this job is not for a merge request; its artifacts hold the report"
    if environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != environment["CI_PROJECT_ID"]:
        return "a merge request from a fork has no token that may comment; the job's artifacts hold the report"
    token = environment.get("GITLAB_TOKEN")
    if not token:
        raise SettingsError(
            "GITLAB_TOKEN is not set: make a project access token with the scope `api`, and store it as a masked "
            "CI/CD variable of this name"
        )
    notes = f"{environment['CI_API_V4_URL']}/projects/{environment['CI_PROJECT_ID']}/merge_requests/{number}/notes"
    return CommentHost(notes, notes, {"PRIVATE-TOKEN": token}, "PUT", lambda comment: comment.get("system") is False)
