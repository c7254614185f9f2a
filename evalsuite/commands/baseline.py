"""`evalsuite baseline`: show where a baseline comes from, or `promote` a run that passed."""

import argparse
import getpass
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evalsuite.core.errors import RunError, escape_for_terminal
from evalsuite.core.option_values import declare_arguments, make_int_parser
from evalsuite.output.reports.write import make_report
from evalsuite.results import run_folders
from evalsuite.results.run_folders import INFO, JOURNAL, SUMMARY, RunFolder
from evalsuite.results.runs import load_run

BASELINE_FILES = (INFO, "records.jsonl", SUMMARY)  # The files of a run that a comparison needs.
USERS = ("GITHUB_ACTOR", "GITLAB_USER_LOGIN")  # Environment variables that name the user who started a CI job.


@declare_arguments(
    """
    --reports
    name=RUN?  the baseline (default: baseline)
    """,
    name="baseline",
)
def run_baseline(options: argparse.Namespace) -> int:
    """Print a baseline's origin: its run, model, verdict and promotion."""
    folder = run_folders.find_run_folder(options.reports, options.name)
    info = folder.info()
    rows = {"model": info.get("model"), "started": info.get("started"), "verdict": folder.summary().get("verdict")}
    promoted = dict(info.get("promoted") or {"promoted": "never"})
    if promoted.pop("files", None):
        changed = run_folders.list_changed_files(folder.path, info)
        promoted["files"] = f"changed since: {', '.join(changed)}" if changed else "as they were promoted"
    for name, value in (rows | promoted).items():
        sys.stdout.write(f"{name:<10}{escape_for_terminal(str(value))}\n")
    return 0


@declare_arguments(
    """
    --reports RUN
    --to DIR    folder of the baseline, which is replaced (default: REPORTS/baseline)
    --why TEXT  reason, which the baseline keeps
    --days N    days for which the baseline holds; a run that starts later is not compared with it (default: no limit)

    Only a finished run of all cases whose exit status was 0 becomes a baseline. Its run.json, records.jsonl and
    summary.json are copied; run.json also gets who promoted it, when, why, and a hash of each file.
    """,
    required=("why",),
    days=make_int_parser(1),
)
def run_promote(options: argparse.Namespace) -> int:
    """Decide a passed run again from its records, and copy it to the baseline's folder with a note of its origin."""
    folder = run_folders.find_run_folder(options.reports, options.name)
    info = folder.info()
    refuse_unfit_run(folder, info)
    verdict = make_report(load_run(folder)).verdict
    if verdict.status:
        raise RunError(f"{folder.name} passed by its {SUMMARY}, but not by its records: {verdict.headline}")
    target = options.to or options.reports / "baseline"
    now = datetime.now(UTC)
    promoted = {"run": folder.name, "by": _find_user(), "when": now.isoformat(timespec="seconds"), "why": options.why}
    if options.days is not None:
        try:
            promoted["until"] = f"{now.date() + timedelta(days=options.days)}"
        except OverflowError as error:
            raise RunError(f"--days {options.days} ends after the year 9999: leave --days out for no limit") from error
    hashes = run_folders.hash_baseline_files(folder.path, info)
    write_baseline(folder, target, info | {"promoted": promoted | {"files": hashes}})
    sys.stdout.write(f"{folder.path} is the baseline {target}: commit {', '.join(BASELINE_FILES)}\n")
    return 0


def refuse_unfit_run(folder: RunFolder, info: dict[str, Any]) -> None:
    """Refuse a run that is unfinished, incomplete or not green."""
    settings, summary = info.get("settings", {}), folder.summary()
    if stopped := run_folders.explain_interruption(info):
        raise RunError(f"{folder.name} is not finished ({stopped}): go on with it with --resume {folder.name}")
    if settings.get("shard"):
        raise RunError(f"{folder.name} is a shard: join all shards with `evalsuite runs merge`, and promote that run")
    chosen = [name for name, each in info.get("collected", {}).items() if each["selected"] < each["cases"]]
    if settings.get("partial") or chosen:
        raise RunError(f"{folder.name} holds chosen cases only: run all cases of the suite, and promote that run")
    if (status := summary.get("status")) != 0:
        verdict = f"ended with status {status}, {summary.get('verdict')}" if summary else f"has no {SUMMARY}"
        raise RunError(f"{folder.name} {verdict}: only a run that passed becomes a baseline")


def write_baseline(folder: RunFolder, target: Path, info: dict[str, Any]) -> None:
    """Copy the files of a run that a comparison needs into a baseline's folder."""
    if target.resolve() == folder.path.resolve() or (target / JOURNAL).exists():
        raise RunError(f"{target} holds a run, which the baseline would overwrite: name another folder with --to")
    target.mkdir(parents=True, exist_ok=True)
    for name in BASELINE_FILES:
        shutil.copy(folder.path / name, target)
    RunFolder(target).write_info(info)


def _find_user() -> str:
    """Return the name of the user who promotes a run, or the user's number if the user has no name."""
    named = next((os.environ[name] for name in USERS if os.environ.get(name)), "")
    try:
        return named or getpass.getuser()
    except (KeyError, OSError):
        # In a container, the user may have no name.
        return f"user {os.getuid()}"
