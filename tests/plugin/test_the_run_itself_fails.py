"""Errors of the run itself are never excused, however few they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

CASES = """
from evalsuite import Sample, benchmark, exact_match, generate

LINES = [Sample(id=f"{n:03}", input=str(n), target=str(n)) for n in range(200)]

@benchmark("lines", LINES, solver=generate(), scorers=[exact_match()])
def test_lines(scores):
    assert scores["exact_match"] == 1.0
"""

GATEWAY = """
from evalsuite.gateway.gateway import Gateway

persist = Gateway._send_request_with_retries

async def fail_once(self, key, upstream, request, price):
    if request.messages[-1].content == "57":
        raise RuntimeError("Lock is bound to a different event loop")
    return await persist(self, key, upstream, request, price)

Gateway._send_request_with_retries = fail_once
"""

JOURNAL = '''
from evalsuite.journal.journal import Journal

plan = Journal.store_plan

def plan_and_refuse_one(self, *args):
    plan(self, *args)
    self.database.write(("""
        CREATE TRIGGER full BEFORE INSERT ON answers WHEN NEW.completion LIKE '%57%'
        BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END
    """, ()))

Journal.store_plan = plan_and_refuse_one
'''


FAILED = "(InternalError), among them test_lines.py::test_lines[057]: the gateway failed on a request to "


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (GATEWAY, f"{FAILED}function:app:echo: RuntimeError: Lock is bound to a different event loop"),
        (JOURNAL, "journal.sqlite: disk I/O error"),
    ],
    ids=["gateway", "journal"],
)
def test_one_error_of_the_run_itself_in_two_hundred_cases_ends_with_status_12(
    suite: Suite, workers: tuple[str, ...], fault: str, message: str
) -> None:
    conftest = suite.path / "conftest.py"
    conftest.write_text(conftest.read_text() + fault)
    suite.pytester.makepyfile(test_lines=CASES)
    result = suite.run(*workers, "--gate=lines.exact_match >= 0.5", "test_lines.py", fresh=True)
    assert result.ret == 12
    verdict = [line for line in result.stdout.str().partition("= evalsuite =")[2].splitlines()[1:] if line]
    assert verdict[0].startswith("the run itself failed")
    assert verdict[0].endswith(message)
    assert "the run itself failed: no decision (exit status 12)" in verdict
    assert message in suite.rendered().split("## This run")[0]
