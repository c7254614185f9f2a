"""Cases beside the plugins that suites have anyway; `.ci/run` has a step that brings them all.

uv run --group plugins pytest -p no:asyncio -p no:randomly tests/plugin/test_beside_other_plugins.py
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

PLUGINS = ("pytest_rerunfailures", "pytest_randomly", "pytest_timeout", "pytest_asyncio", "pytest_html", "pytest_cov")
OPTIONS = (
    "--reruns=1",
    "-prandomly",
    "--timeout=300",
    "--asyncio-mode=auto",
    "--html=page.html",
    "--cov=app",
    # Their own warnings are not the subject here.
    "-oasyncio_default_fixture_loop_scope=function",
    "-Wdefault",
)

ASYNC = """

@benchmark("texts", SAMPLES, solver=lambda sample, model: "Paris", scorers=[exact_match()])
async def test_text(scores):
    assert scores["exact_match"] == 1.0
"""


pytestmark = [
    pytest.mark.skipif(
        any(find_spec(name) is None for name in PLUGINS), reason="uv sync --group plugins, and see the top of this file"
    ),
    pytest.mark.own_interpreter,
]


def test_all_of_them_run_in_one_session(
    suite: Suite, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other sessions of tests look for no plugins; this one is about those that load themselves.
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_PLUGINS")
    test = suite.path / "test_capitals.py"
    test.write_text(test.read_text() + ASYNC)
    result = suite.pytester.runpytest_subprocess(*suite.model, *OPTIONS, *workers)
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 3, "failed": 3, "rerun": 3}
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert len(suite.records()) == 6
    assert "target    Tokyo" in (suite.path / "page.html").read_text("utf-8")


def test_each_model_has_a_page_of_pytest_html(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_PLUGINS")
    app = suite.path / "app.py"
    app.write_text(app.read_text() + "\nother = echo\n")
    models = ("--model=function:app:echo", "--model=function:app:other")
    suite.pytester.runpytest_subprocess(*models, *OPTIONS, "--html=out/page.html")
    assert sorted(path.name for path in suite.path.glob("out/*.html")) == ["page-model2.html", "page.html"]
