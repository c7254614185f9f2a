"""Runs further sessions of pytest: one per model if there are several, and one per part of a very large run."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from evalsuite.core.declarations import Declarations, is_run_folder
from evalsuite.core.errors import SettingsError
from evalsuite.engine.preparation import MODELS, prepare_run
from evalsuite.plugin.listener import INCOMPLETE, LISTENER
from evalsuite.plugin.options import is_only_listing, read_command_line, read_config_settings
from evalsuite.plugin.process import PART, PROCESS
from evalsuite.results.run_folders import RunFolder, explain_interruption, shorten_model_name


def run_session_per_model(config: pytest.Config, models: Sequence[str]) -> int:
    """Run pytest once per model with the other arguments unchanged, then compare the runs.

    Returns:
        The highest exit status of the sessions. If one is interrupted or terminated, no other starts.
    """
    settings = read_config_settings(config)
    for name in ("resume", "replay"):
        if getattr(settings, name):
            raise SettingsError(f"--{name} continues the run of one model; name one model, not {' and '.join(models)}")
    reports = config.rootpath / settings.reports
    stem = settings.run or f"{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    runs = [f"{stem}-{shorten_model_name(model)}" for model in models]
    if len(set(runs)) < len(runs):
        runs = [f"{run}-{number}" for number, run in enumerate(runs, 1)]
    roles = {name for name in MODELS if config.getoption(f"evalsuite_{name}") is not None}
    for model, run in zip(models, runs, strict=True):
        # Check all models now, so that a mistake in the last one is reported before the first one is paid.
        own_settings = replace(settings, model=model, run=run)
        prepare_run(own_settings, config.rootpath, "", {}, given_models=roles, runs_cases=not is_only_listing(config))
    given = read_command_line(config)
    own = ("--model", "--run")
    others = [arg for before, arg in pairwise(("", *given)) if before not in own and arg.partition("=")[0] not in own]
    status: int = 0
    for number, (model, run) in enumerate(zip(models, runs, strict=True), 1):
        sys.stdout.write(f"evalsuite: model {number} of {len(models)}: {model}\n")
        sys.stdout.flush()
        own_files = _name_own_files(config, f"model{number}") if number > 1 else []
        ended, signals = _run_session(config, [*others, *own_files, f"--model={model}", f"--run={run}"])
        status = max(status, ended)
        if signals or ended == int(pytest.ExitCode.INTERRUPTED):
            return status
    folders = [RunFolder(reports / run) for run in runs if is_run_folder(reports / run)]
    if len(folders) > 1:
        from evalsuite.output.reports.compare import write_comparison

        target = reports / ("compare-" + "-".join(folder.name for folder in folders))[:120]
        sys.stdout.write(f"\n{write_comparison(folders, target, Declarations(target.parent))}")
    return status


def run_further_parts(config: pytest.Config, folder: RunFolder) -> int:
    """Run the parts after this process's part, each in a new session; return the last session's status.

    A session that does not end as planned ends the run, too. If the suite's code ends a session with status 0 before
    the run's verdict, the status is INCOMPLETE.
    """
    args = [str(arg) for arg in config.invocation_params.args]
    # Free the items and reports of this process's session, because the process only waits for further sessions.
    del config.stash[PROCESS], config.stash[LISTENER]
    for name in ("session", "terminalreporter", "evalsuite-listener", "dsession", "lfplugin", "nfplugin"):
        if config.pluginmanager.has_plugin(name):
            config.pluginmanager.unregister(name=name)
    gc.unfreeze()
    gc.collect()
    status, part, info = 0, 1, folder.info()
    signals: list[int] = []
    while status == 0 and not signals and (info.get("next_part") or {}).get("number", 0) > part:
        part += 1
        further = [*args, *_name_own_files(config, f"part{part}")]
        status, signals = _run_session(config, further, {PART: str(folder.path.resolve())})
        info = folder.info()
    return status or (INCOMPLETE if explain_interruption(info) else 0)


FILES = {
    "xmlpath": "--junit-xml",
    "htmlpath": "--html",
    "json_report_file": "--json-report-file",
    "report_log": "--report-log",
}
"""Options of pytest and other plugins that name a file, by their attribute in `config.option`."""


def _name_own_files(config: pytest.Config, suffix: str) -> list[str]:
    """Return options that give a further session its own files, because earlier sessions' files must remain."""
    given = {option: getattr(config.option, name, None) for name, option in FILES.items()}
    paths = {option: Path(path) for option, path in given.items() if path}
    return [f"{option}={path.with_suffix('')}-{suffix}{path.suffix}" for option, path in paths.items()]


def _run_session(
    config: pytest.Config, args: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[int, list[int]]:
    """Run pytest with other arguments; return the session's status and the signals that this process received."""
    given = [str(arg) for arg in config.invocation_params.args]
    is_command = bool(given) and sys.orig_argv[-len(given) :] == given
    start = sys.orig_argv[: -len(given)] if is_command else [sys.executable, "-m", "pytest"]
    sys.stdout.flush()
    variables = {**os.environ, **(environment or {})}
    received: list[int] = []
    with subprocess.Popen([*start, *args], cwd=config.invocation_params.dir, env=variables) as session:  # noqa: S603

        def handle_signal(number: int, _frame: object) -> None:
            received.append(number)
            if number == signal.SIGTERM:  # At Ctrl-C, the terminal itself signals the session.
                session.terminate()

        former = {number: signal.signal(number, handle_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            session.wait()
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
    return abs(session.returncode), received
