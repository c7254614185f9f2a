"""What threads share in a session is made once, whichever of them asks first."""

from __future__ import annotations

import ast
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

import evalsuite
from evalsuite.applications.case_model import CaseModel
from evalsuite.applications.endpoint import get_loopback_server
from evalsuite.core.errors import RunError
from evalsuite.core.settings import Settings
from evalsuite.engine.preparation import RunSpec
from evalsuite.gateway.loop import BackgroundLoop
from evalsuite.plugin.listener import ReportListener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGE = Path(evalsuite.__file__).parent
THREADS = 8

IN_SESSIONS = ("applications", "batches", "engine", "gateway", "journal", "models", "plugin", "service")
"""Rooms whose objects live while a session runs, with the event loop and a thread per worker beside the tests."""


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    """Threads take turns after a few instructions, as on a machine under load."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def asked_by_threads(ask: Callable[[], object]) -> list[Any]:
    """What each of several threads gets that ask at once: a result or an exception."""
    barrier, results = threading.Barrier(THREADS), list[Any]()

    def run() -> None:
        barrier.wait()
        try:
            results.append(ask())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def spec_of(root: Path) -> RunSpec:
    return RunSpec(settings=Settings(model="gpt-test"), model="gpt-test", root=root)


def test_workers_that_ask_at_once_get_one_run_one_loop_and_one_gateway(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    listener = ReportListener(pytestconfig, spec_of(tmp_path))
    asked = asked_by_threads(lambda: listener.run.gateway)
    listener.run.close()
    assert len(asked) == THREADS
    assert len({id(one) for one in asked}) == 1
    assert len(list((tmp_path / "reports").iterdir())) == 1


def test_where_no_run_can_be_made_every_thread_is_told_the_same(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    (tmp_path / "reports").touch()
    listener = ReportListener(pytestconfig, spec_of(tmp_path))
    told = asked_by_threads(lambda: listener.run)
    assert {type(error) for error in told} == {RunError}
    assert {str(error) for error in told} == {listener.broken}
    assert not listener.has_opened_run


def test_threads_of_one_case_share_its_api_and_the_listener_of_its_loop() -> None:
    model, background = CaseModel(cast("Any", None), "m", None, 1, {}), BackgroundLoop()
    try:
        assert len({id(api) for api in asked_by_threads(lambda: model.api)}) == 1
        assert len({id(one) for one in asked_by_threads(lambda: get_loopback_server(background.loop))}) == 1
    finally:
        background.close()


def lazily_made(tree: ast.AST) -> Iterator[str]:
    """Attributes that are made when they are first asked for, without a lock."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            if any(ast.unparse(decorator).endswith("cached_property") for decorator in node.decorator_list):
                yield node.name
        elif isinstance(node, ast.Compare | ast.Call):
            text = ast.unparse(node)
            if text.endswith("self.__dict__") or text.startswith("hasattr(self, "):
                yield text


@pytest.mark.parametrize("room", IN_SESSIONS)
def test_nothing_that_lives_in_a_session_is_made_lazily_without_a_lock(room: str) -> None:
    # Since Python 3.12, functools.cached_property lets two threads make the same attribute twice.
    found = {
        f"{file.relative_to(PACKAGE)}: {name}"
        for file in (PACKAGE / room).rglob("*.py")
        for name in lazily_made(ast.parse(file.read_text("utf-8")))
    }
    assert not found
