"""A case in quarantine fails no session, with and without workers, gated or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema

import evalsuite

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

FILE = """
[[case]]
benchmark = "capitals"
sample = "jp"
reason = "the atlas is out of date"
until = 2999-12-31
"""


def test_a_case_in_quarantine_is_asked_and_shown_and_fails_nothing(suite: Suite, workers: tuple[str, ...]) -> None:
    (suite.path / "quarantine.toml").write_text(FILE, encoding="utf-8")
    result = suite.run(*workers, "-oevalsuite_quarantine=quarantine.toml", "-rx")
    assert result.ret == 0
    result.assert_outcomes(passed=2, xfailed=1)
    result.stdout.fnmatch_lines(["*in quarantine until 2999-12-31: 1 case of capitals jp*"])
    assert [record["excused"] for record in suite.records()] == [None, None, "quarantine"]
    schema = json.loads((Path(evalsuite.__file__).parent / "schemas" / "record.json").read_text("utf-8"))
    for record in suite.records():
        jsonschema.validate(record, schema)
    assert "the atlas is out of date" in suite.rendered()


def test_a_gate_and_an_early_stop_leave_it_out(suite: Suite) -> None:
    (suite.path / "quarantine.toml").write_text(FILE, encoding="utf-8")
    gate = "--gate=capitals.exact_match >= 1"
    assert suite.run(gate).ret == 10
    result = suite.run(gate, "-oevalsuite_quarantine=quarantine.toml", "--until-decided")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*met  capitals.exact_match >= 1*1.0000*"])


def test_a_benchmark_whose_cases_are_all_in_quarantine_says_so(suite: Suite) -> None:
    (suite.path / "quarantine.toml").write_text(FILE.replace('"jp"', '"*"'), encoding="utf-8")
    result = suite.run("-oevalsuite_quarantine=quarantine.toml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["passed; nothing decides capitals: *, and all its cases are in quarantine (*"])
    result = suite.run("-oevalsuite_quarantine=quarantine.toml", "--gate=capitals.exact_match >= 1")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*no data*capitals.exact_match: 3 cases in quarantine; no case is left to decide it"])


def test_a_file_that_cannot_be_read_stops_before_anything_is_asked(suite: Suite) -> None:
    result = suite.run("-oevalsuite_quarantine=nowhere.toml")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*evalsuite_quarantine *nowhere.toml: No such file*"])
    assert not suite.runs()
