"""What evalsuite uses of pytest and pytest-xdist although it is private; each test says what breaks without it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import execnet
import pytest
from xdist.workermanage import WorkerController

from evalsuite.core.declarations import FIXTURE
from evalsuite.plugin import pytest_internals, xdist

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_without_keyword_matching_every_case_becomes_an_item_before_k_picks(request: pytest.FixtureRequest) -> None:
    keeps = pytest_internals.compile_keywords("tokyo and not osaka", cast("Any", request.node))
    assert keeps is not None
    assert keeps("test_capitals[Tokyo]")
    assert not keeps("test_capitals[tokyo-osaka]")
    assert pytest_internals.compile_keywords("tokyo and", cast("Any", request.node)) is None


def test_without_the_evaluation_of_marks_a_skipped_case_is_paid_for(request: pytest.FixtureRequest) -> None:
    assert not pytest_internals.is_kept_from_running(request.node)
    request.node.add_marker(pytest.mark.xfail("no such name", run=False))
    assert not pytest_internals.is_kept_from_running(request.node)
    request.node.own_markers[:] = [pytest.mark.skipif("True", reason="so").mark]
    assert pytest_internals.is_kept_from_running(request.node)
    request.node.own_markers.clear()


def test_without_the_keys_of_the_ini_file_a_setting_that_is_gone_would_be_ignored(
    request: pytest.FixtureRequest,
) -> None:
    assert {"testpaths", "xfail_strict"} & pytest_internals.list_ini_keys(request.config)


def test_without_the_fixtures_of_a_function_parametrized_tests_lose_cases_to_k() -> None:
    definition = SimpleNamespace(iter_markers=lambda _: iter(()))
    fixtures = {"model": [SimpleNamespace(params=None)], "language": [SimpleNamespace(params=["de"])]}
    metafunc: Any = SimpleNamespace(definition=definition, _arg2fixturedefs=fixtures)
    assert pytest_internals.has_parameters(metafunc)
    del fixtures["language"]
    assert not pytest_internals.has_parameters(metafunc)


def test_without_pytests_failure_classes_a_worker_loses_the_explanation_of_a_case() -> None:
    shown = pytest_internals.make_failure_repr(["test_x.py:3: assert x\n"], "test_x.py", 3, "assert x")
    shown.addsection("evalsuite", "answer  Osaka", "-")
    report = pytest.TestReport("test_x.py::test_x", ("test_x.py", 2, "test_x"), {}, "failed", shown, "call")
    sent = report._to_json()
    back = pytest.TestReport._from_json(sent)
    assert pytest_internals.is_traceback(back.longrepr)
    assert "answer  Osaka" in str(back.longrepr)


def test_without_the_parts_of_a_failure_a_reason_stands_once_more_for_each_case() -> None:
    shown = pytest_internals.make_failure_repr(["test_x.py:3: assert x\n"], "test_x.py", 3, "401: wrong key")
    shown.addsection("evalsuite", "error  401: wrong key", "-")
    pytest_internals.replace_text_in_failure(shown, "401: wrong key", "see below")
    assert "wrong key" not in f"{shown} {shown.reprcrash}"
    assert "error  see below" in str(shown)


def test_without_the_terminals_file_there_is_no_live_line_and_without_its_session_no_plan(
    request: pytest.FixtureRequest,
) -> None:
    terminal = request.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:
        pytest.skip("a worker has no terminal")
    assert callable(pytest_internals.get_terminal_file(terminal).write)
    assert terminal.config.pluginmanager.get_plugin("session") is request.session


def test_without_the_memory_of_failures_lf_does_not_run_the_cases_behind_a_gate() -> None:
    plugin = SimpleNamespace(lastfailed={})
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _: plugin))
    pytest_internals.add_to_last_failed(config, ["test_x.py::test_x[1]"])
    assert plugin.lastfailed == {"test_x.py::test_x[1]": True}


def test_without_a_channel_to_the_worker_no_case_on_it_can_ask_a_model() -> None:
    received: list[tuple[Any, str | None]] = []
    channel = SimpleNamespace(setcallback=lambda call, endmarker: call(endmarker))
    gateway = SimpleNamespace(newchannel=lambda: channel)
    node = SimpleNamespace(gateway=gateway, workerinput={"workercount": 2}, sendcommand=None)
    given = xdist.connect_worker(node, {"model": "m"}, lambda *got: received.append(got))
    assert received == [(given, None)]
    worker: Any = SimpleNamespace(workerinput=node.workerinput)
    assert xdist.is_worker(worker)
    assert xdist.get_worker_data(worker) == ({"model": "m"}, channel, 2)


@pytest.fixture
def gateways() -> Iterator[execnet.Group]:
    """A group of its own that ends before the interpreter does, because Python 3.12.1 starts no threads at its end."""
    group = execnet.Group()
    yield group
    group.terminate()


def test_without_the_method_that_sends_commands_a_command_to_a_dead_worker_ends_the_session(
    gateways: execnet.Group,
) -> None:
    node: Any = object.__new__(WorkerController)
    node.gateway, node.workerinput, node.log = gateways.makegateway(), {}, lambda _: None
    xdist.connect_worker(node, {}, lambda *_: None)
    node.channel = node.gateway.remote_exec("import os; os._exit(9)")
    with pytest.raises(EOFError):
        node.channel.receive()
    # The worker's end of the pipe may stay open for a moment after its output has ended.
    node.gateway._io.wait()
    with pytest.raises(OSError, match="cannot send"):
        node.channel.send("steal")
    node.send_steal([1])
    node.send_runtest_some([1])


def test_without_the_queue_of_a_worker_it_looks_ahead_by_one_case() -> None:
    plugins = [SimpleNamespace(), SimpleNamespace(torun=SimpleNamespace(lock=None), sendevent=print)]
    session: Any = SimpleNamespace(
        items=[], config=SimpleNamespace(pluginmanager=SimpleNamespace(get_plugins=lambda: plugins))
    )
    assert isinstance(xdist.find_worker_queue(session), xdist.WorkerQueue)
    del plugins[1]
    with pytest.warns(UserWarning, match="looks ahead by one"):
        queue = xdist.find_worker_queue(session)
    case = SimpleNamespace(bound=SimpleNamespace(solver=object()))
    item: Any = SimpleNamespace(callspec=SimpleNamespace(params={FIXTURE: case}))
    queue.move_to(item, item)
    assert list(queue(8)) == [case]
    assert list(queue(8)) == []


def test_without_the_boundary_of_conftests_one_in_a_runs_folder_is_imported(tmp_path: Path) -> None:
    manager: Any = pytest.PytestPluginManager()
    manager._confcutdir = tmp_path
    pytest_internals.skip_conftests_of_data(manager, lambda folder: "art" in folder.parts)
    kept = [manager._is_in_confcutdir(folder) for folder in (tmp_path, tmp_path / "cases", tmp_path / "art")]
    assert kept == [True, True, False]
