"""What this process does before the first case: read settings, take its part, connect to other processes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import EvalsuiteError, SettingsError
from evalsuite.core.settings import Settings, restore
from evalsuite.plugin.collection.selection import select_again, selection_of
from evalsuite.plugin.marks import MARK, started_sessions
from evalsuite.plugin.session.listener import LISTENER, Listener
from evalsuite.plugin.session.process_state import PROCESS, Process
from evalsuite.plugin.session.signals import listen

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.decisions.quarantine import Quarantine
    from evalsuite.gateway.asker import CaseAsker
    from evalsuite.gateway.loop import BackgroundLoop


def prefer_worksteal(config: pytest.Config) -> None:
    """Sets --dist where -n is given without it."""
    option = config.option
    if getattr(option, "numprocesses", None) and getattr(option, "dist", None) == "no":
        option.dist = "worksteal"


def only_plan(config: pytest.Config) -> None:
    """With --plan, nothing is run."""
    if config.getoption("evalsuite_plan"):
        config.option.collectonly = True


def start(config: pytest.Config) -> None:
    """Prepares this process for its part.

    Raises:
        pytest.UsageError: an option makes no sense, or the model cannot be asked.
    """
    config.addinivalue_line("markers", f"{MARK}(declaration): a benchmark's test function, set by @benchmark")
    started_sessions.append(str(config.rootpath))
    try:
        if hasattr(config, "workerinput"):
            _start_worker(config, config.workerinput)
        else:
            _start_controller(config)
    except EvalsuiteError as error:
        raise pytest.UsageError(str(error)) from error


def _start_worker(config: pytest.Config, given: dict[str, Any]) -> None:
    plain = given["evalsuite"]
    settings = restore(json.loads(plain["settings"]))

    def stop(reason: str) -> None:
        config.stash[PROCESS].stopping = reason

    def connect(background: BackgroundLoop) -> CaseAsker:
        from evalsuite.gateway.channel import ChannelAsker

        return ChannelAsker(given["evalsuite_channel"], background, stop)

    process = Process(settings, plain["model"], given["workercount"], _new_loop, connect)
    config.stash[PROCESS] = process
    if plain["quarantine"]:
        from evalsuite.decisions.quarantine import restore_quarantine

        process.quarantine = restore_quarantine(plain["quarantine"])
    select_again(config, plain["selection"])
    # So that one that a scorer raises can be told from the user's.
    listen("SIGINT")


def _new_loop() -> BackgroundLoop:
    from evalsuite.gateway.loop import BackgroundLoop

    return BackgroundLoop()


def _start_controller(config: pytest.Config) -> None:
    from evalsuite.plugin.options import settings_of

    settings, selection = _with_prices(settings_of(config), config.rootpath), selection_of(config)
    lease = None
    reports = config.rootpath / settings.reports
    if settings.resume or settings.replay:
        from evalsuite.engine.resume import adopt, take_lease

        settings, selection = adopt(settings, reports, selection)
        lease = take_lease(settings)
        select_again(config, selection)
    make_importable(config, settings)
    if not config.option.collectonly:
        prepare_programs(settings)
        if "reports" in settings.given:
            from evalsuite.engine.model_check import check_reports

            check_reports(reports)
    if settings.given:
        from evalsuite.engine.model_check import check_given
        from evalsuite.engine.resume import MODELS

        named = {name for name in MODELS if config.getoption(f"evalsuite_{name}") is not None}
        check_given(settings, config.rootpath, set() if config.option.collectonly else named)
    listener = Listener(config, settings, selection)
    listener.lease = lease
    listener.quarantine = quarantine_now(config, settings)
    config.stash[LISTENER] = listener
    config.pluginmanager.register(listener, "evalsuite-listener")
    if getattr(config.option, "tx", None) and not config.option.collectonly:
        listener.import_client()
    config.stash[PROCESS] = Process(
        settings,
        listener.model,
        1,
        lambda: listener.open().asked.background,
        lambda _: listener.controller.asked.gateway,
    )
    config.stash[PROCESS].quarantine = listener.quarantine


def _with_prices(settings: Settings, root: Path) -> Settings:
    """Add the prices of the user's file, which the run records, so that a resumed run does not need the file."""
    if settings.prices is None:
        return settings
    from evalsuite.gateway.spend import prices_of_file

    listed = prices_of_file(root / settings.prices)
    return replace(settings, price=(*listed, *settings.price), given=settings.given | {"price"})


def quarantine_now(config: pytest.Config, settings: Settings) -> Quarantine | None:
    """The quarantine that holds today; None where the run names no file of it.

    Raises:
        SettingsError: the file cannot be read, or is not of its form.
    """
    if settings.quarantine is None:
        return None
    from datetime import datetime

    from evalsuite.decisions.quarantine import read_quarantine

    return read_quarantine(config.rootpath / settings.quarantine, datetime.now().astimezone())


def prepare_programs(settings: Settings) -> None:
    """Builds the named environment of programs before any worker needs it.

    Raises:
        SettingsError: there is none of that name, or no sandbox, or programs run where another one is installed.
        SandboxUnavailable: it cannot be built.
    """
    if settings.sandbox != Settings().sandbox:
        from evalsuite.sandbox.tiers import TIERS, tiers_of

        elsewhere = not set(tiers_of(settings.sandbox)) & set(TIERS)
        if elsewhere and settings.program_env != Settings().program_env:
            raise SettingsError(
                f"--program-env {settings.program_env} and --sandbox {settings.sandbox} exclude each other: there, "
                "programs find what is installed there"
            )
    if settings.program_env != Settings().program_env:
        from evalsuite.sandbox.environments import environment

        environment(settings.program_env, lambda text: print(f"evalsuite: {text}", file=sys.stderr))  # noqa: T201


def make_importable(config: pytest.Config, settings: Settings) -> None:
    """A function named as model is looked for from the root directory, as the tests themselves are."""
    root = str(config.rootpath)
    names = (settings.model or "", settings.judge_model or "", settings.user_model or "")
    if any(name.startswith("function:") for name in names) and root not in sys.path:
        sys.path.insert(0, root)


def watch(config: pytest.Config) -> None:
    """Shows what goes on, in the controlling process."""
    listener = config.stash.get(LISTENER, None)
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    # A line that is drawn anew would break the debugger's prompt.
    if listener is not None and terminal is not None and not config.option.usepdb:
        from evalsuite.plugin.terminal.live_line import show_progress

        show_progress(config, listener, terminal)


def announce(config: pytest.Config) -> str | None:
    """Says which model will be asked, where anything was said about evalsuite."""
    process = config.stash[PROCESS]
    if not process.settings.given:
        return None
    asked = {
        "model": process.model_name,
        "judge": process.settings.judge_model,
        "user": process.settings.user_model,
    }
    return f"evalsuite: {', '.join(f'{role} {name}' for role, name in asked.items() if name) or 'no model'}"


def check_hosts(config: pytest.Config, specs: list[Any]) -> None:
    """Refuses plain connections to other hosts, before anything is sent there.

    Raises:
        pytest.UsageError: there is one, and it was not allowed.
    """
    if not config.stash[PROCESS].settings.allow_plain_workers:
        import execnet

        from evalsuite.plugin.session.hosts import refuse_plain

        proxies = [execnet.XSpec(text) for text in config.getoption("px")]
        refuse_plain([*specs, *proxies])


def start_node(node: Any) -> None:
    """Hands a worker what it needs."""
    node.config.stash[LISTENER].attach(node)
