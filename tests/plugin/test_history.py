"""`evalsuite compare history`: releases in a table, and a status that says whether the newest has drifted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite


def test_finished_runs_are_releases_in_the_order_of_time(suite: Suite) -> None:
    for name in ("b-first", "a-second"):
        suite.run(f"--run={name}", "--gate=capitals.exact_match >= 0.5")
    result = suite.pytester.run("evalsuite", "compare", "history", "b-first", "a-second")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["No drift*", "| b-first*", "| a-second*", "history: *history.md"])
    assert (suite.path / "reports" / "history" / "comparison.html").is_file()


def test_one_release_has_no_history_and_a_damaged_run_is_left_out(suite: Suite) -> None:
    suite.run("--run=only")
    damaged = suite.path / "reports" / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text("{")
    result = suite.pytester.run("evalsuite", "compare", "history")
    assert result.ret == 2
    result.stderr.fnmatch_lines(
        [
            "damaged is left out: *run.json cannot be read*",
            "evalsuite: a history needs two releases or more; reports holds 1 finished run",
        ]
    )
    named = suite.pytester.run("evalsuite", "compare", "history", "only")
    named.stderr.fnmatch_lines(["evalsuite: a history needs two releases or more; only alone was named"])
