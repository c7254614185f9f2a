"""A file that cannot be collected is named where a gate waited for its cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite


@pytest.mark.parametrize("workers", [(), ("-n", "0"), ("-n", "2")])
def test_the_report_says_what_could_not_be_collected(suite: Suite, workers: tuple[str, ...]) -> None:
    (suite.path / "test_broken.py").write_text("import no_such_module\n")
    result = suite.run("--gate=capitals.exact_match >= 0.1", *workers)
    report = (suite.runs()[-1] / "report.md").read_text("utf-8")
    text = result.stdout.str() + report
    assert "keyboard" not in text
    assert "an error while collecting: test_broken.py: ModuleNotFoundError: No module named 'no_such_module'" in text
    assert result.ret == pytest.ExitCode.INTERRUPTED
    # None of the other cases was paid for.
    assert "Interrupted: 1 error during collection" in result.stdout.str()
    assert not suite.records()


def test_who_wants_to_goes_on_with_what_could_be_collected(suite: Suite) -> None:
    (suite.path / "test_broken.py").write_text("import no_such_module\n")
    suite.run("-n", "2", "--continue-on-collection-errors")
    assert len(suite.records()) == 3
