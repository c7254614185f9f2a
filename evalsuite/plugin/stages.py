"""What each hook does, in the order of a session; light to import, as it is loaded with every session."""

from __future__ import annotations

import functools
import json
import random
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.errors import EvalsuiteError
from evalsuite.plugin.marks import FINDINGS, MARK, RECORD, case_of, started_sessions
from evalsuite.plugin.process import PROCESS, Process
from evalsuite.settings import Settings, parse_shard, restore

if TYPE_CHECKING:
    from evalsuite.gateway.gateway import Asker, Gateway
    from evalsuite.gateway.loop import BackgroundLoop
    from evalsuite.plugin.controller import Controller
    from evalsuite.types import Completion, Request


def prefer_worksteal(config: pytest.Config) -> None:
    """Sets --dist where -n is given without it."""
    option = config.option
    if getattr(option, "numprocesses", None) and getattr(option, "dist", None) == "no":
        option.dist = "worksteal"


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

    def connect(background: BackgroundLoop) -> Asker:
        from evalsuite.gateway.channel import ChannelAsker

        return ChannelAsker(given["evalsuite_channel"], background, stop)

    config.stash[PROCESS] = Process(settings, plain["model"], given["workercount"], _new_loop, connect)
    _select_again(config, plain["selection"])


def _new_loop() -> BackgroundLoop:
    from evalsuite.gateway.loop import BackgroundLoop

    return BackgroundLoop()


def _start_controller(config: pytest.Config) -> None:
    from evalsuite.plugin.options import settings_of

    settings, selection = settings_of(config), _selection(config)
    reports = config.rootpath / settings.reports
    if settings.resume or settings.replay:
        from evalsuite.plugin.earlier import adopt

        settings, selection = adopt(settings, reports, selection)
        _select_again(config, selection)
    _make_importable(config, settings)
    if settings.given:
        from evalsuite.plugin.choice import check_given

        named = {name for name in ("model", "judge_model") if config.getoption(f"evalsuite_{name}")}
        check_given(settings, config.rootpath, set() if config.option.collectonly else named)
    listener = Listener(config, settings, selection)
    config.stash[LISTENER] = listener
    config.pluginmanager.register(listener, "evalsuite-listener")
    config.stash[PROCESS] = Process(
        settings,
        listener.model,
        1,
        lambda: listener.controller.background,
        lambda _: LocalAsker(listener.controller),
    )


class Listener:
    """The controlling process's ear: light, and without a `Controller` until something is to be kept.

    Args:
        config: of the session.
        settings: of the run.
        selection: which tests the command line asks for.
    """

    def __init__(self, config: pytest.Config, settings: Settings, selection: dict[str, Any]) -> None:
        self._config, self.settings, self.selection = config, settings, selection
        self.model = settings.model
        if self.model is None:
            from evalsuite.plugin.choice import default_model

            self.model = default_model()
        self.planned = 0
        self._channels: list[Any] = []

    @cached_property
    def controller(self) -> Controller:
        """Made when the first case asks, or leaves its record."""
        from evalsuite.plugin.controller import Controller
        from evalsuite.plugin.origin import command_line

        return Controller(
            self.settings,
            self.model,
            self._config.rootpath,
            command_line(self._config.invocation_params.args),
            self.selection,
            narrowed=is_narrowed(self._config),
            stop=self._stop,
        )

    @property
    def begun(self) -> bool:
        """Whether any case asked, or left a record."""
        return "controller" in self.__dict__

    def attach(self, node: Any) -> None:
        """Gives a worker, before it starts, the settings and a way to the gateway."""
        channel = node.gateway.newchannel()
        node.workerinput["evalsuite"] = {
            "settings": json.dumps(self.settings.plain()),
            "model": self.model,
            "selection": self.selection,
        }
        node.workerinput["evalsuite_channel"] = channel
        self._channels.append(channel)
        channel.setcallback(functools.partial(self._hear_worker, channel), endmarker=None)

    def _stop(self, reason: str) -> None:
        _stop_session(self._config, reason)
        for channel in self._channels:
            self.controller.stop_worker(channel, reason)

    def _hear_worker(self, channel: Any, text: str | None) -> None:
        # The first request brings with it the code that answers it.
        if text is not None or self.begun:
            self.controller.hear_worker(channel, text)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the record that rides on the report, or that a dead worker cannot send."""
        if hasattr(report, RECORD) or str(report.when) == "???":
            self.controller.hear(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """How many cases there were, as a worker found."""
        found = getattr(node, "workeroutput", {})
        self.planned = max(self.planned, found.get("evalsuite_planned", 0))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """How many cases there are, without workers."""
        self.planned = count_cases(session.items)


LISTENER: pytest.StashKey[Listener] = pytest.StashKey()


class LocalAsker:
    """The way to the gateway within its own process.

    Args:
        controller: makes the gateway when it is asked first.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def ask(self, request: Request) -> Completion:
        """See `Asker.ask`."""
        gateway: Gateway = self._controller.gateway
        return await gateway.ask(request)


def _make_importable(config: pytest.Config, settings: Settings) -> None:
    """A function named as model is looked for from the root directory, as the tests themselves are."""
    root = str(config.rootpath)
    names = (settings.model or "", settings.judge_model or "")
    if any(name.startswith("function:") for name in names) and root not in sys.path:
        sys.path.insert(0, root)


def _selection(config: pytest.Config) -> dict[str, Any]:
    """Which tests the command line asks for, if it says."""
    by_path = config.args_source is pytest.Config.ArgsSource.ARGS
    return {
        "args": list(config.args) if by_path else [],
        "keyword": config.option.keyword,
        "markexpr": config.option.markexpr,
    }


def is_narrowed(config: pytest.Config) -> bool:
    """Whether the command line picks cases: by -k, -m, --lf, a file or an id.

    Gates of an ini file speak of the whole suite, and then wait only for the benchmarks that are there. A
    gate of the command line is meant for this run, and always waits.
    """
    if config.getoption("evalsuite_gate"):
        return False
    option = config.option
    picked = option.keyword or option.markexpr or getattr(option, "lf", False)
    return bool(picked) or any("::" in arg or arg.endswith(".py") for arg in config.args)


def _select_again(config: pytest.Config, selection: dict[str, Any]) -> None:
    """Makes a session collect what an earlier one did; what is given now is in the selection already."""
    if selection["args"]:
        config.args = selection["args"]
        config.args_source = pytest.Config.ArgsSource.ARGS
    config.option.keyword = selection["keyword"]
    config.option.markexpr = selection["markexpr"]


def _stop_session(config: pytest.Config, reason: str) -> None:
    """Ends the session after the test that runs; xdist has a mark of its own for it."""
    distributing = config.pluginmanager.get_plugin("dsession")
    if distributing is not None:
        distributing.shouldstop = reason
    session = config.stash[PROCESS].session
    if session is not None:
        session.shouldstop = reason


def watch(config: pytest.Config) -> None:
    """Shows what goes on, in the controlling process."""
    listener = config.stash.get(LISTENER, None)
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if listener is not None and terminal is not None and terminal.isatty:
        from evalsuite.plugin.progress import show_progress

        show_progress(config, listener, terminal)


def announce(config: pytest.Config) -> str | None:
    """Says which model will be asked, where anything was said about evalsuite."""
    process = config.stash[PROCESS]
    if not process.settings.given:
        return None
    judge = process.settings.judge_model
    return f"evalsuite: model {process.model_name}{f', judge {judge}' if judge else ''}"


def check_hosts(config: pytest.Config, specs: list[Any]) -> None:
    """Refuses plain connections to other hosts, before anything is sent there.

    Raises:
        pytest.UsageError: there is one, and it was not allowed.
    """
    if not config.stash[PROCESS].settings.allow_plain_workers:
        import execnet

        from evalsuite.plugin.hosts import refuse_plain

        proxies = [execnet.XSpec(text) for text in config.getoption("px")]
        refuse_plain([*specs, *proxies])


def start_node(node: Any) -> None:
    """Hands a worker what it needs."""
    node.config.stash[LISTENER].attach(node)


def make_items(metafunc: pytest.Metafunc) -> None:
    """Gives a benchmark's function its cases, once it is clear that they can be asked.

    Raises:
        pytest.Collector.CollectError: with one clear message.
    """
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None:
        return
    from evalsuite.plugin.cases import generate
    from evalsuite.plugin.choice import check_model

    process = metafunc.config.stash[PROCESS]
    settings, name = process.settings, process.model_name
    try:
        # A function is imported in the controlling process alone.
        if not (
            settings.replay or metafunc.config.option.collectonly or (name or "").startswith("function:")
        ):
            check_model(name, settings.model_base_url)
        generate(metafunc, mark.args[0], settings, name or "")
    except EvalsuiteError as error:
        raise pytest.Collector.CollectError(str(error)) from error


def check_modes(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sees that every bare mode is known to a benchmark of this session.

    Raises:
        pytest.UsageError: one is not; the message lists those there are.
    """
    bare = [mode for mode in config.stash[PROCESS].settings.mode if "=" not in mode]
    cases = [case for item in items if (case := case_of(item)) is not None] if bare else []
    found = {case.bound.name: case.bound.declaration.benchmark for case in cases}
    for mode in bare:
        # A benchmark may know more modes than it lists: those with numbers in them.
        if found and not any(mode in benchmark.modes for benchmark in found.values()):
            lines = [
                f"  {name}={one}: {what}"
                for name, known in found.items()
                for one, what in known.modes.items()
            ]
            there_are = "\n".join(lines) or "  none"
            raise pytest.UsageError(
                f"--mode {mode}: no benchmark of this run knows the mode {mode!r}. There are:\n{there_are}"
            )


def count_cases(items: list[pytest.Item]) -> int:
    """How many of the items are cases."""
    return sum(case_of(item) is not None for item in items)


def choose_items(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves this shard's cases, and brings them into random order where the run may stop early."""
    settings = config.stash[PROCESS].settings
    if settings.shard:
        part, parts = parse_shard(settings.shard)
        cases = {item: case for item in items if (case := case_of(item)) is not None}
        # A sample's epochs stay together, as some benchmarks decide over them.
        samples = list(dict.fromkeys((case.bound.name, case.sample.id) for case in cases.values()))
        mine = set(samples[part - 1 :: parts])
        others = [item for item, case in cases.items() if (case.bound.name, case.sample.id) not in mine]
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=others)
    if settings.stop_when_decided:
        # Of one seed, so that every worker has the same order. Plain tests first: no early stop passes them over.
        random.Random(settings.seed).shuffle(items)  # noqa: S311 - an order, no secret
        items.sort(key=lambda item: case_of(item) is not None)
    if hasattr(config, "workeroutput"):
        config.workeroutput["evalsuite_planned"] = count_cases(items)


def begin_item(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Moves the queue on."""
    process = item.config.stash[PROCESS]
    if case_of(item) is not None:
        from evalsuite.plugin.outcomes import Findings

        item.stash[FINDINGS] = Findings()
    process.item_begins(item, nextitem)
    if process.stopping and (nextitem is None or case_of(nextitem) is not None):
        item.session.shouldstop = process.stopping


def note_report(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Takes note of one phase of an item."""
    if isinstance(getattr(call.excinfo, "value", None), EvalsuiteError):
        assert call.excinfo is not None  # noqa: S101 - for the type checker; it has a value
        report.longrepr = str(call.excinfo.value)
    case = case_of(item)
    if case is not None:
        from evalsuite.plugin.outcomes import note_phase

        gated = item.config.stash[PROCESS].gated(case.bound.name)
        excuse = "gate" if gated else "epochs" if case.bound.declaration.at_least else None
        note_phase(item.stash[FINDINGS], call, report, excuse)


def close_item(item: pytest.Item, report: pytest.TestReport) -> None:
    """Puts the finished record on the item's last report."""
    case = case_of(item)
    if case is None or report.when != "teardown":
        return
    from evalsuite.plain import dumps, plain_record

    findings = item.stash[FINDINGS]
    process = item.config.stash[PROCESS]
    record = findings.record(item, case, process.model_name or "")
    setattr(report, RECORD, (dumps(plain_record(record)), record.benchmark, findings.failures))
    # Transcripts are large, and pytest keeps its items to the end.
    del item.stash[FINDINGS]


def conclude(session: pytest.Session) -> None:
    """Writes the report and sets the exit status."""
    config = session.config
    config.stash[PROCESS].give_up()
    listener = config.stash.get(LISTENER, None)
    # A gate named here and now waits for cases even where none ran.
    if listener is None or not (listener.begun or config.getoption("evalsuite_gate")):
        return
    controller = listener.controller
    stopped = False if controller.decided_early else session.shouldfail or session.shouldstop
    if not (stopped or controller.decided_early) and session.exitstatus == pytest.ExitCode.INTERRUPTED:
        stopped = "interrupted from the keyboard"
    controller.conclude(str(stopped) if stopped else None, listener.planned)
    session.exitstatus = exit_status(session, controller, stopped=bool(stopped))


def exit_status(session: pytest.Session, controller: Controller, *, stopped: bool) -> int:
    """Pytest's own status, unless the verdict says otherwise."""
    from evalsuite.reporting.verdict import Status

    verdict, own = controller.verdict, int(session.exitstatus)
    if controller.decided_early and own == pytest.ExitCode.INTERRUPTED:
        # Stopping was the point.
        own = 1 if session.testsfailed else 0
    if verdict is None or stopped or own not in {0, 1, 5}:
        return own
    if verdict.status >= 10:
        return int(verdict.status)
    if verdict.status is Status.FAILED:
        return int(Status.FAILED)
    # Errors that a gate puts up with are no failures of the session.
    only_covered = own == 1 and session.testsfailed <= controller.covered
    return 0 if only_covered else own


def show_summary(terminal: pytest.TerminalReporter) -> None:
    """Shows the verdict."""
    listener = terminal.config.stash.get(LISTENER, None)
    if listener is not None and listener.begun and listener.controller.verdict is not None:
        from evalsuite.plugin.terminal import summarise

        summarise(terminal, listener.controller.folder, listener.controller.verdict)


def stop(config: pytest.Config) -> None:
    """Closes what is open."""
    process = config.stash.get(PROCESS, None)
    if process is not None:
        process.give_up()
    listener = config.stash.get(LISTENER, None)
    if listener is None:
        if process is not None:
            process.close()
    elif listener.begun:
        listener.controller.close()
