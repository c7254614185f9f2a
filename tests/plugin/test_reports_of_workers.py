"""What other plugins see of a worker's reports in the controlling process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

CONFTEST = """
pytest_plugins = ["evalsuite.plugin"]

# What pytest and xdist add or leave out on the way, and what evalsuite takes off.
ASIDE = {"item_index", "worker_id", "testrun_uid", "node", "evalsuite_record", "longrepr", "_id", "$report_type"}

def pytest_configure(config):
    global where
    where = "worker" if hasattr(config, "workerinput") else "controller"

def pytest_runtest_logreport(report):
    facts = {key: value for key, value in vars(report).items() if key not in ASIDE}
    with open(f"reports.{where}", "a") as file:
        print(dict(sorted(facts.items())) | {"longrepr": str(report.longrepr)}, file=file)
"""

OTHERS = """
import pytest

def test_prints(record_property):
    record_property("pair", (1, 2))
    record_property("whole", True)
    print("printed")

def test_fails():
    assert 1 == 2

def test_skips():
    pytest.skip("not today")

@pytest.mark.xfail(reason="known")
def test_is_known_to_fail():
    assert 1 == 2
"""


def test_they_are_field_by_field_what_the_worker_has(suite: Suite) -> None:
    suite.pytester.makeconftest(CONFTEST)
    suite.pytester.makepyfile(test_others=OTHERS)
    suite.run("-n", "2")
    worker, controller = (
        sorted((suite.path / f"reports.{where}").read_text("utf-8").splitlines())
        for where in ("worker", "controller")
    )
    assert len(worker) == 7 * 3
    assert controller == worker
