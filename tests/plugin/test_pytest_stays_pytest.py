"""pytest's own options and manners hold for cases as they do for tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import ChatServer
    from tests.plugin.conftest import Suite


def test_collect_only_lists_the_cases_and_asks_nobody(suite: Suite, chat_server: ChatServer) -> None:
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    result = suite.run("--collect-only", "-q")
    result.stdout.fnmatch_lines([f"test_capitals.py::test_capitals[[]{sample}[]]" for sample in ("fr", "it", "jp")])
    assert not chat_server.bodies
    assert not suite.runs()


@pytest.mark.parametrize("option", ["--fixtures", "--fixtures-per-test", "--cache-show", "--setup-plan"])
def test_a_session_that_only_lists_starts_no_run(suite: Suite, option: str, workers: tuple[str, ...]) -> None:
    result = suite.run(option, *workers, "--gate=capitals.exact_match >= 0.9")
    assert result.ret == 0
    assert "exit status" not in result.stdout.str()
    assert not suite.runs()


@pytest.mark.parametrize("plugin", ["terminal", "capture", "debugging", "setupplan"])
def test_gates_are_decided_without_a_plugin_of_pytest(suite: Suite, plugin: str) -> None:
    assert suite.run(f"-pno:{plugin}", "--gate=capitals.exact_match >= 0.9", fresh=True).ret == 10
    assert suite.run(f"-pno:{plugin}", "--gate=capitals.exact_match >= 0.5", fresh=True).ret == 0


def test_k_selects_cases_and_only_those_are_asked(
    suite: Suite, workers: tuple[str, ...], chat_server: ChatServer
) -> None:
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    assert suite.run(*workers, "-k", "jp or fr").parseoutcomes()["passed"] == 1
    assert sorted(chat_server.asked()) == ["Osaka", "Paris"]


def test_x_stops_at_the_first_failure_with_status_1(suite: Suite) -> None:
    suite.pytester.makepyfile(test_zz="def test_never():\n    pass\n")
    result = suite.run("-x", "--gate=capitals.exact_match >= 0.9")
    # A run that was cut short has decided nothing, so its gate is no second failure.
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["incomplete: no decision (exit status 1)"])
    assert "the run was stopped" in suite.report()


def test_lf_runs_the_failed_cases_again(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.run(*workers)
    assert suite.run(*workers, "--lf").parseoutcomes()["failed"] == 1
    assert [record["sample"] for record in suite.records()] == ["jp"]


def test_a_single_case_runs_by_its_id(suite: Suite) -> None:
    suite.run("test_capitals.py::test_capitals[fr]").assert_outcomes(passed=1)


def test_marks_on_a_benchmark_select_its_cases(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.pytest]\nstrict = true\nmarkers = ['slow: takes long']\n")
    file = suite.path / "test_capitals.py"
    file.write_text("import pytest\n" + file.read_text().replace("@benchmark", "@pytest.mark.slow\n@benchmark"))
    suite.run("-m", "slow").assert_outcomes(passed=2, failed=1)
    suite.run("-m", "not slow").assert_outcomes(deselected=3)


def test_a_skipped_case_is_recorded_as_skipped(suite: Suite, workers: tuple[str, ...]) -> None:
    file = suite.path / "test_capitals.py"
    file.write_text(
        "import pytest\n" + file.read_text().replace("    assert", "    pytest.skip('not today')\n    assert")
    )
    suite.run(*workers).assert_outcomes(skipped=3)
    assert {record["outcome"] for record in suite.records()} == {"skipped"}


def test_a_users_own_xfail_stays_an_xfail_and_the_record_says_failed(suite: Suite) -> None:
    file = suite.path / "test_capitals.py"
    text = file.read_text().replace("@benchmark", "@pytest.mark.xfail(strict=False)\n@benchmark")
    file.write_text("import pytest\n" + text)
    suite.run().assert_outcomes(xpassed=2, xfailed=1)
    assert [record["outcome"] for record in suite.records()] == ["passed", "passed", "failed"]


def test_what_a_case_prints_is_captured_and_shown_when_it_fails(suite: Suite) -> None:
    file = suite.path / "test_capitals.py"
    file.write_text(file.read_text().replace("    assert", "    print('said by the test')\n    assert"))
    result = suite.run()
    # Once, as captured: in place of the source the case explains itself.
    assert result.stdout.str().count("said by the test") == 1


def test_pdb_stops_in_the_case_that_fails(suite: Suite) -> None:
    pytest.importorskip("pexpect", reason="pip install pexpect, which drives the terminal of a debugger")
    child = suite.pytester.spawn_pytest(f"--pdb {' '.join(suite.model)}", expect_timeout=60)
    child.expect("Pdb")
    child.sendline("p dict(scores)")
    child.expect("'exact_match': 0.0")
    child.sendline("q")
    child.expect("1 failed, 2 passed")


def test_without_the_xdist_plugin_nothing_is_missing(suite: Suite) -> None:
    suite.run("-p", "no:xdist.plugin").assert_outcomes(passed=2, failed=1)


def test_with_n_and_no_dist_each_worker_knows_its_share_at_once(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        pytest_plugins = ["evalsuite.plugin"]
        def pytest_report_header(config):
            return f"dist is {config.option.dist}"
        """
    )
    suite.run("-n", "2").stdout.fnmatch_lines(["dist is worksteal"])
    suite.run("-n", "2", "--dist=loadfile").stdout.fnmatch_lines(["dist is loadfile"])


def test_a_case_that_has_begun_on_a_worker_does_not_begin_on_another(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_shared="""
        import asyncio
        from pathlib import Path
        from evalsuite import Sample, Transcript, benchmark

        async def wait_for_the_other_worker(sample, model):
            with Path("begun.txt").open("a") as file:
                file.write(f"{sample.id}\\n")
            while int(sample.id) < 10 and not Path("done.txt").exists():
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.5 if int(sample.id) < 10 else 0)
            return Transcript("fine")

        @benchmark("shared", [Sample(id=str(n), input="x") for n in range(20)], solver=wait_for_the_other_worker)
        def test_shared(sample, transcript):
            if sample.id == "18":
                # The other worker has one item left, so xdist asks for a share of the first worker's items.
                Path("done.txt").touch()
        """
    )
    assert suite.run("-n", "2", "test_shared.py").parseoutcomes() == {"passed": 20}
    begun = (suite.pytester.path / "begun.txt").read_text().split()
    assert sorted(begun, key=int) == [str(number) for number in range(20)]


def test_an_xdist_whose_queue_cannot_be_seen_still_runs_every_case_and_says_so(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.pytest]\n")
    # xdist itself needs the lock; so only our own look at it is blinded.
    suite.pytester.makeconftest(
        """
        pytest_plugins = ["evalsuite.plugin"]
        import evalsuite.plugin.xdist as ours
        ours.hasattr = lambda thing, name: name != "lock" and __builtins__["hasattr"](thing, name)
        """
    )
    result = suite.run("-n", "2", "-W", "default")
    assert result.parseoutcomes()["passed"] == 2
    result.stdout.fnmatch_lines(["*looks ahead by one*"])


@pytest.mark.own_interpreter
def test_loaded_without_a_case_nothing_is_opened_or_written(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(
        test_plain="""
        import sys, threading
        def test_plain():
            assert "asyncio" not in sys.modules or "xdist" in sys.modules
            assert "evalsuite.gateway.gateway" not in sys.modules
            assert not [one for one in threading.enumerate() if one.name == "evalsuite-loop"]
        """
    )
    suite.run(*workers, "test_plain.py", model=False, fresh=True).assert_outcomes(passed=1)
    assert not (suite.path / "reports").exists()


@pytest.mark.own_interpreter
def test_the_installed_package_does_nothing_to_a_suite_that_does_not_opt_in(suite: Suite) -> None:
    suite.pytester.makeconftest("def pytest_addoption(parser):\n    parser.addoption('--model', '--limit')\n")
    suite.pytester.makepyfile(test_plain="import sys\ndef test_plain():\n    assert 'evalsuite' not in sys.modules\n")
    suite.run("--model=mine", "test_plain.py", model=False, fresh=True).assert_outcomes(passed=1)


@pytest.mark.own_interpreter
def test_a_suite_that_forgot_the_line_is_told_in_one_sentence(suite: Suite) -> None:
    suite.pytester.makeconftest("")
    result = suite.run(model=False, fresh=True)
    result.stdout.fnmatch_lines(["*evalsuite's plugin is not loaded: add the line*conftest.py*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_help_teaches_every_option(suite: Suite) -> None:
    from evalsuite.core.settings import OPTIONS

    text = suite.run("--help", model=False).stdout.str()
    for option in OPTIONS:
        assert (f"{option.flag}=" in text or f"{option.flag} " in text) != option.per_project
        assert option.ini_key in text


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "n2"])
def test_an_option_that_became_a_setting_works_and_names_the_setting(suite: Suite, workers: tuple[str, ...]) -> None:
    result = suite.run("--max-error-share=0.5", "--min-paired=0.5", "--run=r", *workers)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "evalsuite: --min-paired is a setting *: write evalsuite_min_paired into the ini file, or -o *",
            "evalsuite: --max-error-share is a setting *-o evalsuite_max_error_share=SHARE for one run",
        ]
    )
    options = ("-oevalsuite_max_error_share=0.5", "-oevalsuite_min_paired=0.5")
    suite.run(*options, "--run=new", *workers).stdout.no_fnmatch_line("*is a setting*")
    runs = [json.loads((suite.path / "reports" / name / "run.json").read_text("utf-8")) for name in ("r", "new")]
    assert [run["settings"]["max_error_share"] for run in runs] == [0.5, 0.5]
    assert [run["settings"]["min_paired"] for run in runs] == [0.5, 0.5]


def test_a_slow_test_body_does_not_keep_the_others_from_being_asked(suite: Suite, chat_server: ChatServer) -> None:
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    suite.pytester.makepyfile(
        test_slow="""
        import sqlite3, time
        from contextlib import closing
        from evalsuite import Sample, benchmark, generate
        @benchmark("slow", [Sample(id=str(n), input=str(n)) for n in range(6)], solver=generate())
        def test_slow(sample, transcript, request):
            if sample.id == "0":
                with closing(sqlite3.connect("reports/r/journal.sqlite")) as store:
                    for _ in range(600):
                        count, = store.execute("SELECT count(*) FROM answers").fetchone()
                        if count == 6:
                            break
                        time.sleep(0.05)
                assert count == 6
        """
    )
    suite.run("--run=r", "test_slow.py").assert_outcomes(passed=6)


KEPT = """
pytest_plugins = ["evalsuite.plugin"]

def pytest_unconfigure(config):
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    kept = {name: len(reports) for name, reports in terminal.stats.items() if reports}
    print("kept", "in a worker" if hasattr(config, "workerinput") else "to be shown", kept)
"""


def test_reports_are_kept_only_as_far_as_they_are_shown(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makeconftest(KEPT)
    suite.run(*workers).stdout.fnmatch_lines(["*kept to be shown {'passed': 2, 'failed': 1}"])


def test_durations_show_setups_too(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.run(*workers, "--durations=0", "-vv").stdout.fnmatch_lines(["* setup *test_capitals.py::*"])


@pytest.mark.parametrize("mark", ["skip", "skipif('1 + 1 == 2', reason='so')", "xfail(run=False)"])
def test_a_case_that_a_mark_keeps_from_running_is_not_paid_for(
    suite: Suite, chat_server: ChatServer, workers: tuple[str, ...], mark: str
) -> None:
    test = suite.path / "test_capitals.py"
    test.write_text(f"import pytest\n{test.read_text()}".replace("\n@benchmark", f"\n@pytest.mark.{mark}\n@benchmark"))
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    outcomes = suite.run(*workers).parseoutcomes()
    assert outcomes.get("skipped", 0) + outcomes.get("xfailed", 0) == 3
    assert not chat_server.bodies
