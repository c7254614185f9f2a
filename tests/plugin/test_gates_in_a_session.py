"""What gates do to a session: outcomes, exit statuses, and the words that say why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

CRASHING = """
from evalsuite import Sample, benchmark, generate

def bad(sample, transcript):
    if sample.id == "2":
        raise RuntimeError("scorer fell over")
    return {"quality": 1.0}

@benchmark("crashing", [Sample(id=str(n), input=str(n)) for n in range(NUMBER)], solver=generate(), scorers=[bad])
def test_crashing(scores):
    assert scores["quality"] == 1.0
"""


def test_a_gated_case_below_its_threshold_is_an_xfail_and_the_gate_decides(
    suite: Suite, workers: tuple[str, ...]
) -> None:
    result = suite.run(*workers, "--gate=capitals.exact_match >= 0.6")
    result.assert_outcomes(passed=2, xfailed=1)
    assert result.ret == 0
    assert [record["outcome"] for record in suite.records()] == ["passed", "passed", "failed"]


def test_a_missed_gate_ends_with_status_10_and_says_what_was_found(suite: Suite, workers: tuple[str, ...]) -> None:
    result = suite.run(*workers, "--gate=capitals.exact_match >= 0.9")
    assert result.ret == 10
    result.stdout.fnmatch_lines(["*missed*capitals.exact_match >= 0.9*0.6667*", "*exit status 10*"])
    assert "gate capitals.exact_match >= 0.9 is missed" in suite.rendered().split("## This run")[0]


@pytest.mark.parametrize(
    ("gate", "status"),
    [
        ("capitals[eu].exact_match >= 1", 0),
        ("capitals[region=eu].exact_match >= 1", 0),
        ("capitals[asia].exact_match > 0", 10),
        ("capitals.exact_match >= 0.5 @95%", 10),
        ("capitals.exact_match <= 0.995 @95%", 0),
        ("capitals.pass_rate >= 0.6", 0),
        ("capitals.* >= 0.6", 0),
        ("*.exact_match >= 0.7", 10),
    ],
)
def test_a_gate_may_look_at_a_tag_an_interval_or_every_metric(suite: Suite, gate: str, status: int) -> None:
    assert suite.run(f"--gate={gate}").ret == status


@pytest.mark.parametrize(
    ("gate", "words", "status"),
    [
        ("capitols.exact_match >= 0.5", "did you mean capitals?", 12),
        ("capitals[ue].exact_match >= 0.5", "no case has the tag ue; available: asia, eu", 12),
    ],
)
def test_a_misspelt_gate_of_the_project_is_red_and_lists_the_near_names(
    suite: Suite, gate: str, words: str, status: int
) -> None:
    result = suite.run("-o", f"evalsuite_gates={gate}")
    assert result.ret == status
    result.stdout.fnmatch_lines([f"*{words}*"])


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ("capitols.exact_match >= 0.5", "no case of capitols was collected; did you mean capitals?"),
        ("capitals[ue].exact_match >= 0.5", "no case of capitals has the tag ue; available: asia, eu"),
        ("capitals.exact_macth >= 0.5", "no such metric; did you mean exact_match?"),
        ("capitals.exact_match <= 20", "exact_match is declared to lie in [0, 1]"),
        ("capitals[area=eu].exact_match >= 0.5", "no case of capitals has the tag area=eu; did you mean region=eu?"),
    ],
)
def test_a_gate_of_the_command_about_nothing_is_told_before_a_case_is_paid(
    suite: Suite, workers: tuple[str, ...], gate: str, words: str
) -> None:
    result = suite.run(*workers, f"--gate={gate}")
    assert result.ret != 0
    assert words in result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert not any((run / "records.jsonl").read_text("utf-8") for run in suite.runs())


def test_a_gate_about_every_metric_says_which_one_missed_it(suite: Suite) -> None:
    result = suite.run("--gate=capitals.* >= 0.9")
    result.stdout.fnmatch_lines(["  missed  capitals.[*] >= 0.9   capitals.exact_match: *"])


def test_a_gate_that_cannot_be_read_stops_the_session_before_it_begins(suite: Suite) -> None:
    result = suite.run("--gate=capitals >= much")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*gate 'capitals >= much' cannot be read: at column 13 a number is expected, not 'much'; write*"]
    )
    assert not suite.runs()


def test_gates_stand_in_pyproject_too(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyprojecttoml("[tool.pytest]\nevalsuite_gates = ['capitals.exact_match >= 0.9']\n")
    assert suite.run(*workers).ret == 10


def test_too_many_errors_make_a_run_incomplete(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(test_crashing=CRASHING.replace("NUMBER", "10"))
    result = suite.run(*workers, "--gate=crashing.quality >= 0.5", "test_crashing.py")
    result.assert_outcomes(passed=9, failed=1, errors=1)  # the gate, and the case
    assert result.ret == 12
    assert "errors in 1 of 10 cases, more than 1.0%" in suite.rendered()


def test_errors_within_the_allowed_share_do_not_fail_a_gated_run(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(test_crashing=CRASHING.replace("NUMBER", "10"))
    gate = ("--gate=crashing.quality >= 0.5", "-oevalsuite_max_error_share=0.1", "test_crashing.py")
    assert suite.run(*workers, *gate).ret == 0


def test_a_failing_plain_test_beside_met_gates_still_fails_the_session(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(test_plain="def test_plain():\n    raise RuntimeError\n")
    result = suite.run(*workers, "--gate=capitals.exact_match >= 0.6")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["other tests failed (exit status 1)"])
    comment = (suite.runs()[-1] / "comment.md").read_text("utf-8")
    assert comment.splitlines()[0].endswith("other tests failed")


def test_an_error_is_no_score(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(test_crashing=CRASHING.replace("NUMBER", "4"))
    assert suite.run(*workers, "test_crashing.py").ret == 1
    broken = suite.records()[2]
    assert (broken["outcome"], broken["cause"], broken["scores"]) == ("error", "RuntimeError", {})
    assert suite.summary()["benchmarks"]["crashing"]["metrics"]["quality"]["n"] == 3


def test_a_gate_without_any_case_is_red(suite: Suite) -> None:
    suite.pytester.makepyfile(test_plain="def test_plain():\n    pass\n")
    assert suite.run("--gate=capitals.exact_match >= 0.6", "test_plain.py").ret == 12


def test_gates_of_an_ini_file_wait_only_for_what_chosen_cases_hold(suite: Suite, workers: tuple[str, ...]) -> None:
    gates = "['capitals.exact_match >= 0.6', 'elsewhere.accuracy >= 0.5']"
    suite.pytester.makepyprojecttoml(f"[tool.pytest]\nevalsuite_gates = {gates}\n")
    assert suite.run(*workers, "test_capitals.py").ret == 12, "nothing declares elsewhere: it may be a typo"
    suite.pytester.makepyfile(test_elsewhere=CRASHING.replace("NUMBER", "1").replace('"crashing"', '"elsewhere"'))
    assert suite.run(*workers, "test_capitals.py").ret == 0
    assert "leaves undecided: elsewhere.accuracy >= 0.5" in suite.rendered()
    assert suite.run(*workers).ret == 12


SUITE_B = """
from evalsuite import Sample, benchmark, generate

@benchmark("b", [Sample(id="1", input="1")], solver=generate(), scorers=[lambda sample, transcript: {"m": 1.0}])
def test_b(scores):
    pass
"""


@pytest.mark.parametrize(
    ("gate", "status"), [("b.m >= 0.5", 0), ("renamed.m >= 0.5", 12), ("capitols.exact_match >= 0.5", 12)]
)
def test_a_gate_of_another_suite_of_the_project_is_left_to_that_suite(
    suite: Suite, workers: tuple[str, ...], gate: str, status: int
) -> None:
    for name in ("a", "b"):
        (suite.path / name).mkdir()
    (suite.path / "test_capitals.py").rename(suite.path / "a" / "test_capitals.py")
    (suite.path / "b" / "test_b.py").write_text(SUITE_B, encoding="utf-8")
    gates = f"['capitals.exact_match >= 0.6', '{gate}']"
    suite.pytester.makepyprojecttoml(f"[tool.pytest]\nevalsuite_gates = {gates}\n")
    assert suite.run(*workers, "a").ret == status
    assert suite.run(*workers, ".").ret == status


def test_a_picked_case_does_not_make_a_misspelt_gate_of_the_project_green(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.pytest]\nevalsuite_gates = ['capitols.exact_match >= 0.6']\n")
    assert suite.run("-k", "fr").ret == 12


def test_a_runs_folder_cannot_make_a_gate_belong_elsewhere(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.pytest]\nevalsuite_gates = ['b.m >= 0.5']\n")
    (suite.path / "reports").mkdir()
    (suite.path / "reports" / "test_b.py").write_text(SUITE_B, encoding="utf-8")
    assert suite.run("test_capitals.py").ret == 12


def test_gates_of_an_ini_file_do_nothing_to_a_session_of_plain_tests(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.pytest]\nevalsuite_gates = ['capitals.exact_match >= 0.6']\n")
    suite.pytester.makepyfile(test_plain="def test_plain():\n    pass\n")
    assert suite.run("test_plain.py").ret == 0
    assert not suite.runs()


def test_x_stops_at_the_first_case_below_its_threshold_gated_or_not(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(test_crashing=CRASHING.replace("NUMBER", "20").replace("== 1.0", "> 2"))
    result = suite.run(*workers, "-x", "--gate=crashing.quality >= 0.5", "test_crashing.py")
    assert result.ret != 0
    assert len(suite.records()) < 20


def test_runxfail_shows_gated_cases_as_failures(suite: Suite) -> None:
    result = suite.run("--runxfail", "--gate=capitals.exact_match >= 0.6")
    result.assert_outcomes(passed=2, failed=1)
    assert 'assert scores["exact_match"] == 1.0' in result.stdout.str()


def test_pdb_opens_in_a_gated_case_below_its_threshold(suite: Suite) -> None:
    child = suite.pytester.spawn_pytest(
        f"--pdb -p no:hypothesispytest '--gate=capitals.exact_match >= 0.1' {' '.join(suite.model)}", expect_timeout=60
    )
    child.expect("Pdb")
    child.sendline("q")
    child.wait()


@pytest.mark.parametrize(
    "condition", ['call.when == "call" and report.passed', 'call.when == "teardown" and item.nodeid in missed']
)
def test_a_gate_does_not_excuse_the_failure_that_another_plugin_reports(
    suite: Suite, workers: tuple[str, ...], condition: str
) -> None:
    suite.pytester.makeconftest(
        f"""
        import pytest

        pytest_plugins = ["evalsuite.plugin"]
        missed = set()

        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            if call.excinfo is not None:
                missed.add(item.nodeid)
            if {condition}:
                report.outcome, report.longrepr = "failed", "it left a file open"
            return report
        """
    )
    result = suite.run("--gate=capitals.pass_rate >= 0.5", *workers)
    assert result.ret == 1
    assert "other than" in result.stdout.str()
