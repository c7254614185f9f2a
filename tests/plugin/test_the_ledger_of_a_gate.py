"""What is missing is never green: sessions whose gate was met although scores were missing."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.cli import main

if TYPE_CHECKING:
    from tests.conftest import ChatServer, Reply
    from tests.plugin.conftest import Suite

LENIENT = """
import pytest
from evalsuite import Sample, benchmark, generate

def lenient(sample, transcript):
    if int(sample.id) < 3:
        return {"right": 1.0}
    RESULT

@benchmark("numbers", [Sample(id=str(n), input=str(n)) for n in range(10)], solver=generate(), scorers=[lenient])
def test_numbers(scores):
    assert scores
"""
FAILING = """
from evalsuite import Sample, benchmark, generate

def broken(tally):
    return 1 / 0

@benchmark("numbers", [Sample(id="1", input="1")], solver=generate(), scorers=[lambda sample, transcript: {"m": 1.0}],
           metrics=[broken])
def test_numbers(scores):
    assert scores["m"] == 1.0
"""


@pytest.mark.parametrize("result", ["return {}", "return {'wrong': 1.0}", "pytest.skip('no answer')"])
def test_a_scorer_that_gives_no_score_where_the_answer_is_wrong_does_not_meet_a_gate(
    suite: Suite, workers: tuple[str, ...], result: str
) -> None:
    suite.pytester.makepyfile(test_numbers=LENIENT.replace("RESULT", result))
    ended = suite.run(*workers, "test_numbers.py", "--gate=numbers.right >= 0.9")
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*numbers.right >= 0.9*3 of 10 cases scored*bad end of its range*"])


def test_a_gate_that_holds_whatever_the_missing_scores_are_is_met_and_says_so(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=LENIENT.replace("RESULT", "return {}"))
    ended = suite.run("test_numbers.py", "--gate=numbers.right >= 0.3")
    assert ended.ret == 0
    ended.stdout.fnmatch_lines(["*met*3 of 10 cases scored, 7 without this score*it holds with these at 0, too*"])


@pytest.mark.parametrize("gate", ["numbers.* >= 0.9", "* >= 0.9"])
def test_a_gate_on_every_metric_has_no_data_where_no_case_has_a_score(suite: Suite, gate: str) -> None:
    text = LENIENT.replace('return {"right": 1.0}', "return {}").replace("RESULT", "return {}")
    suite.pytester.makepyfile(test_numbers=text.replace("assert scores", "pass"))
    ended = suite.run("test_numbers.py", f"--gate={gate}")
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*no data*numbers.*: no case has a score"])


def test_scores_that_went_missing_since_the_baseline_leave_the_comparison_undone(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=LENIENT.replace("RESULT", "return {'right': 1.0}"))
    suite.run("test_numbers.py", "--run=before")
    suite.pytester.makepyfile(test_numbers=LENIENT.replace("RESULT", "return {}"))
    ended = suite.run("test_numbers.py", "--baseline=before", "-oevalsuite_accept_changes=scorers")
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*7 of 10 questions that the baseline scored have no score in this run*"])


ALL_COMPARED = "--gate=* no worse than baseline by 0.9"


@pytest.mark.parametrize("gates", [(), (ALL_COMPARED,)])
def test_a_benchmark_that_lost_all_its_scores_leaves_the_comparison_undone(
    suite: Suite, gates: tuple[str, ...]
) -> None:
    text = LENIENT.replace("assert scores", "pass")
    suite.pytester.makepyfile(test_numbers=text.replace("RESULT", "return {'right': 1.0}"))
    suite.run("--run=before")
    suite.pytester.makepyfile(test_numbers=text.replace('{"right": 1.0}', "{}").replace("RESULT", "return {}"))
    ended = suite.run("--baseline=before", "-oevalsuite_accept_changes=scorers", *gates)
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*numbers.right*0 cases have this score in both runs*"])


def test_another_score_does_not_replace_a_main_score_that_is_lost(suite: Suite) -> None:
    text = LENIENT.replace("RESULT", "return {'right': 1.0, 'short': 1.0}")
    suite.pytester.makepyfile(test_numbers=text)
    suite.run("--run=before")
    suite.pytester.makepyfile(test_numbers=text.replace('"right": 1.0', '"short": 1.0').replace("'right': 1.0, ", ""))
    ended = suite.run("--baseline=before", "-oevalsuite_accept_changes=scorers", ALL_COMPARED)
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*no data*numbers.right: 0 cases have this score in both runs*"])


def test_the_pass_rate_of_a_benchmark_without_scores_is_compared(suite: Suite) -> None:
    """The gate on every metric covers the benchmark, so its failed cases do not fail the session by themselves."""
    text = "from evalsuite import Sample, benchmark, generate\n\n" + LENIENT[LENIENT.index("@benchmark") :]
    text = text.replace(", scorers=[lenient]", "").replace("(scores)", "(transcript)")
    suite.pytester.makepyfile(test_numbers=text.replace("assert scores", "assert transcript"))
    suite.run("--run=before")
    assert suite.run("--baseline=before", ALL_COMPARED).ret == 0
    suite.pytester.makepyfile(test_numbers=text.replace("assert scores", "assert not transcript"))
    ended = suite.run("--baseline=before", ALL_COMPARED)
    assert ended.ret == 10
    ended.stdout.fnmatch_lines(["*missed*numbers.pass_rate: -1.0000*"])


@pytest.mark.parametrize(("gates", "status"), [((), 1), (("--gate=numbers.broken >= 0",), 12)])
def test_a_metric_that_raises_is_told_on_the_last_lines_and_is_red(
    suite: Suite, gates: tuple[str, ...], status: int
) -> None:
    suite.pytester.makepyfile(test_numbers=FAILING)
    ended = suite.run("test_numbers.py", *gates)
    assert ended.ret == status
    ended.stdout.fnmatch_lines(["*numbers.broken could not be computed: its function raised ZeroDivisionError*"])


def test_a_metric_whose_exception_has_no_readable_message_is_told_too(suite: Suite) -> None:
    wordless = "class Wordless(Exception):\n    def __str__(self):\n        raise RuntimeError\n\n"
    suite.pytester.makepyfile(test_numbers=wordless + FAILING.replace("return 1 / 0", "raise Wordless"))
    ended = suite.run("test_numbers.py")
    assert ended.ret == 1
    ended.stdout.fnmatch_lines(["*could not be computed: its function raised Wordless: its message cannot be read*"])


def gate_capitals(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.pytest]\nevalsuite_gates = ['capitals.exact_match >= 0.6']\n")


@pytest.mark.parametrize(
    ("selection", "count"), [(("-k", "fr"), 1), (("test_capitals.py::test_capitals[fr]",), 1), (("-m", "no"), 0)]
)
def test_a_gate_is_not_decided_on_selected_cases(
    suite: Suite, workers: tuple[str, ...], selection: tuple[str, ...], count: int
) -> None:
    ini = "[tool.pytest]\nmarkers = ['no']\nevalsuite_gates = ['capitals.exact_match >= 0.6']\n"
    suite.pytester.makepyprojecttoml(ini)
    other = "import pytest\n" + LENIENT.replace("RESULT", "return {'right': 1.0}")
    suite.pytester.makepyfile(test_other=other.replace("@benchmark", "@pytest.mark.no\n@benchmark"))
    ended = suite.run(*workers, *selection)
    assert ended.ret == 12
    ended.stdout.fnmatch_lines([f"*not decided: {count} of 3 cases of capitals selected*--partial*"])


def test_a_gate_on_the_command_line_is_not_decided_on_selected_cases_either(suite: Suite) -> None:
    ended = suite.run("-k", "fr", "--gate=capitals.exact_match >= 0.6")
    assert ended.ret == 12
    assert suite.rendered().splitlines()[0].endswith("not decided: 1 of 3 cases of capitals selected")


@pytest.mark.parametrize(("case", "status"), [("fr", 0), ("jp", 1)])
def test_selected_cases_that_are_meant_as_such_decide_alone(
    suite: Suite, workers: tuple[str, ...], case: str, status: int
) -> None:
    gate_capitals(suite)
    assert suite.run(*workers, "-k", case, "--partial").ret == status


def test_a_partial_run_is_not_gated_afterwards(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.run("-k", "fr", "--partial", "--run=part")
    assert main(["gate", "part", "--gate=capitals.exact_match >= 0.6"]) == 12
    assert "was run with --partial" in capsys.readouterr().out


def test_partial_shards_are_not_merged(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    for part in (1, 2):
        suite.run("--partial", f"--shard={part}/2", f"--run=s{part}")
    assert main(["runs", "merge", "s1", "s2", "--to=whole"]) != 0
    assert "was run with --partial" in capsys.readouterr().err


def test_selected_cases_stay_undecided_when_their_shards_are_merged(suite: Suite) -> None:
    gate_capitals(suite)
    for part in (1, 2):
        suite.run("-k", "not jp", f"--shard={part}/2", f"--run=s{part}")
    assert main(["runs", "merge", "s1", "s2", "--to=whole"]) == 0
    assert main(["gate", "whole"]) == 12


def test_a_function_named_by_its_id_is_the_whole_benchmark(suite: Suite) -> None:
    gate_capitals(suite)
    assert suite.run("test_capitals.py::test_capitals").ret == 0


def test_a_gate_says_of_how_many_samples_it_saw_those_that_were_drawn(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(test_numbers=LENIENT.replace("RESULT", "return {'right': 1.0}"))
    ended = suite.run(*workers, "test_numbers.py", "--limit=5", "--gate=numbers.right >= 0.9")
    assert ended.ret == 0
    ended.stdout.fnmatch_lines(["*met*numbers.right >= 0.9*5 of 10 samples, drawn by seed 0*"])


def test_a_gate_on_the_command_line_keeps_those_of_the_ini_file(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.pytest]\nevalsuite_gates = ['capitals.exact_match >= 0.9']\n")
    gate = "capitals.exact_match >= 0.6"
    assert suite.run(f"--gate={gate}").ret == 10
    assert suite.run(f"--only-gate={gate}").ret == 0


def test_a_gate_on_the_command_line_leaves_gates_of_other_suites_to_these(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.pytest]\nevalsuite_gates = ['numbers.right >= 0.5']\n")
    suite.pytester.makepyfile(test_numbers=LENIENT.replace("RESULT", "return {'right': 1.0}"))
    assert suite.run("test_capitals.py", "--gate=capitals.exact_match >= 0.6").ret == 0


def test_a_gate_is_not_decided_if_a_conftest_leaves_cases_out(suite: Suite, workers: tuple[str, ...]) -> None:
    gate_capitals(suite)
    suite.pytester.makeconftest(
        'pytest_plugins = ["evalsuite.plugin"]\n\ndef pytest_collection_modifyitems(items):\n    del items[-1]\n'
    )
    ended = suite.run(*workers)
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*not decided: 2 of 3 cases of capitals selected*"])


LEFT_OUT = {
    "a module that skips itself": ("import pytest\npytest.skip('no', allow_module_level=True)\n", ()),
    "a module that lacks a package": ("import pytest\npytest.importorskip('no_such_package')\n", ()),
    "an ignored file": ("", ("--ignore=test_capitals.py",)),
    "other names of files": ("", ("-o", "python_files=test_sums.py")),
    "-k": ("", ("-k", "test_sum")),
}


@pytest.mark.parametrize(("first", "options"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_a_session_that_was_to_decide_a_gate_and_has_no_case_is_red(
    suite: Suite, workers: tuple[str, ...], first: str, options: tuple[str, ...]
) -> None:
    gate_capitals(suite)
    file = suite.path / "test_capitals.py"
    file.write_text(first + file.read_text("utf-8"), "utf-8")
    suite.pytester.makepyfile(test_sums="def test_sum():\n    assert 1 + 1 == 2\n")
    ended = suite.run(*workers, *options)
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*no data*capitals.exact_match >= 0.6*"])
    assert suite.run(*workers, "test_sums.py").ret == 0


@pytest.mark.parametrize("key", ["evalsuite_gats", "evalsuite_gate_s", "evalsuite_baselines_"])
def test_a_misspelt_setting_is_refused(suite: Suite, key: str) -> None:
    suite.pytester.makepyprojecttoml(f"[tool.pytest]\n{key} = 'capitals.exact_match >= 0.9'\n")
    ended = suite.run()
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines([f"ERROR: {key}: no such setting*"])


def test_gates_are_refused_if_pytest_reads_a_file_of_a_subfolder_instead(suite: Suite) -> None:
    gate_capitals(suite)
    (suite.path / "cases").mkdir()
    for name in ("test_capitals.py", "conftest.py"):
        (suite.path / name).rename(suite.path / "cases" / name)
    (suite.path / "cases" / "pytest.ini").touch()
    ended = suite.run("cases")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines(
        ["ERROR: *pyproject.toml: settings of evalsuite stand here, but pytest reads pytest.ini*"]
    )


def test_two_functions_of_one_file_do_not_share_a_benchmark(suite: Suite, workers: tuple[str, ...]) -> None:
    text = LENIENT.replace("RESULT", "return {'right': 1.0}")
    suite.pytester.makepyfile(test_numbers=text + text[text.index("@benchmark") :].replace("test_numbers", "test_easy"))
    ended = suite.run(*workers, "test_numbers.py")
    assert ended.ret != 0
    assert "declared in test_numbers.py::test_numbers and in test_numbers.py::test_easy" in ended.stdout.str()


DERIVED = LENIENT.replace("scorers=[lenient]", "scorers=[lenient], metrics=METRICS").replace(
    "@benchmark",
    """
from evalsuite.output.reports.generic import CaseMetric

METRICS = [CaseMetric("quality", lambda tally: tally.estimate("right"), range=(0, 1))]

@benchmark""",
)


@pytest.mark.parametrize("result", ["return {}", "return {'wrong': 1.0}", "pytest.skip('no answer')", "return 1 / 0"])
def test_a_derived_metric_does_not_meet_a_gate_by_cases_without_a_score(
    suite: Suite, workers: tuple[str, ...], result: str
) -> None:
    suite.pytester.makepyfile(test_numbers=DERIVED.replace("RESULT", result))
    options = ("test_numbers.py", "-oevalsuite_max_error_share=1")
    ended = suite.run(*workers, *options, "--gate=numbers.quality >= 0.9")
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*numbers.quality >= 0.9*3 of 10 cases scored*bad end of its range*"])
    assert main(["gate", "last"]) == 12
    assert suite.run(*workers, *options, "--gate=numbers.quality >= 0.3").ret == 0


@pytest.mark.parametrize(
    ("first", "second", "refused"), [("", ", pool=True", True), (", pool=True", ", pool=True", False)]
)
def test_one_benchmark_in_two_files_is_refused_unless_both_pool_their_cases(
    suite: Suite, workers: tuple[str, ...], first: str, second: str, *, refused: bool
) -> None:
    for name, pool in (("a", first), ("b", second)):
        text = LENIENT.replace("RESULT", "return {'right': 1.0}").replace("[lenient]", f"[lenient]{pool}")
        suite.pytester.makepyfile(**{f"test_{name}": text})
    ended = suite.run(*workers, "--gate=numbers.right >= 0.9", "test_a.py", "test_b.py")
    assert (ended.ret != 0) == refused
    assert ("declared in test_a.py::test_numbers and in test_b.py::test_numbers" in ended.stdout.str()) == refused


UNASSERTED = LENIENT.replace("RESULT", "return {'right': 0.0}").replace("assert scores\n", "scores\n")
PRINTS = "print(f\"{scores['right']:.2f}\", len(scores))\n"


@pytest.mark.parametrize("body", ["scores\n", PRINTS])
def test_a_gate_on_the_pass_rate_of_a_test_that_asserts_nothing_is_refused(
    suite: Suite, workers: tuple[str, ...], body: str
) -> None:
    suite.pytester.makepyfile(test_numbers=UNASSERTED.replace("scores\n", body))
    ended = suite.run(*workers, "test_numbers.py", "--gate=numbers.pass_rate >= 0.5")
    assert ended.ret != 0
    assert "the test of numbers asserts nothing" in ended.stdout.str() + ended.stderr.str()


def test_every_metric_of_a_benchmark_whose_test_asserts_nothing_leaves_out_the_pass_rate(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=UNASSERTED)
    assert suite.run("test_numbers.py", "--gate=numbers.* <= 0.5").ret == 0
    assert main(["gate", "last", "--gate=numbers.pass_rate >= 0.5"]) == 12
    assert main(["gate", "last", "--gate=numbers.pass_at_1 >= 0.5"]) == 12


def test_estimated_tokens_are_marked_in_gates_and_wherever_they_are_shown(
    suite: Suite, chat_server: ChatServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        text = body["messages"][-1]["content"]
        message = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": text}}]}
        return chat_server.say(text, body=message if text == "Paris" else None)

    chat_server.reply = answer
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    server = ("--model=gpt-test", f"--model-base-url={chat_server.url}", "--price=gpt-test=1/1")
    ended = suite.run(*server, "--gate=capitals.cost <= 1", "--gate=capitals.calls <= 1", "--run=r", model=False)
    mark = "tokens estimated in 1 of 3 calls, because the server did not count them"
    lines = [line for line in ended.stdout.lines if "  capitals.c" in line]
    assert [mark in line for line in lines] == [True, False]
    assert f"written in 3 calls; {mark}" in suite.report("r")
    capsys.readouterr()
    assert main(["report", "case", "fr"]) == 0
    assert "(tokens estimated in 1 of 1 call, because" in capsys.readouterr().out


RANGED = """
from evalsuite import Sample, benchmark, generate
from evalsuite.core.types import Metric

class Quality:
    metrics = {"PATTERN": Metric(range=(0, 1))}

    def __call__(self, sample, transcript):
        return {"other": 1.0, "quality": VALUE if sample.id == "1" else 1.0}

@benchmark("rated", [Sample(id=str(n), input="x") for n in range(10)], solver=generate(), scorers=[Quality()])
def test_rated(scores):
    assert scores["other"]
"""


@pytest.mark.parametrize("pattern", ["quality", "q*"])
def test_a_score_outside_its_declared_range_is_an_error_of_the_case(suite: Suite, pattern: str) -> None:
    suite.pytester.makepyfile(test_rated=RANGED.replace("VALUE", "5.0").replace("PATTERN", pattern))
    ended = suite.run("test_rated.py", "--gate=rated.quality >= 0.8", "-oevalsuite_max_error_share=0.5")
    assert ended.ret == 0
    record = next(record for record in suite.records() if record["sample"] == "1")
    assert (record["outcome"], record["scores"]) == ("error", {"other": 1.0})
    assert "the score quality is 5, and it is declared to lie in [0, 1]" in record["error"]


def test_a_score_that_rounding_carries_beyond_its_range_counts_as_the_ranges_end(suite: Suite) -> None:
    suite.pytester.makepyfile(test_rated=RANGED.replace("VALUE", "1.0 + 1e-12").replace("PATTERN", "quality"))
    assert suite.run("test_rated.py", "--gate=rated.quality >= 1").ret == 0
    assert {record["scores"]["quality"] for record in suite.records()} == {1.0}


def test_a_function_meets_a_gate_on_costs_only_with_a_price_of_its_own(suite: Suite) -> None:
    gate = "--gate=capitals.cost <= 1"
    ended = suite.run(gate, "--run=unpriced")
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*no price of 3 of 3 calls is known: run with --price MODEL=PROMPT/COMPLETION*"])
    assert "nothing was charged; no price of 3 calls is known" in suite.report()
    assert suite.run("--replay=unpriced", gate, model=False).ret == 12
    assert suite.run(gate, "--price=function:app:echo=0/0").ret == 0
    assert suite.run(gate, "--price=function:app:echo=1000000/0").ret == 10


ECHO = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=str(n), input=str(n), target=str(min(n, 8))) for n in range(10)]

@benchmark("numbers", SAMPLES, solver=generate(), scorers=[exact_match()])
def test_numbers(scores):
    pass
"""
INI = "[pytest]\nevalsuite_gate = numbers.exact_match >= {}\n"
STRICT = "numbers.exact_match >= 0.95"


@pytest.mark.parametrize("option", ["--gate", "--only-gate"])
@pytest.mark.parametrize("again", ["--resume", "--replay"])
def test_a_run_that_goes_on_keeps_the_gates_of_its_command(suite: Suite, option: str, again: str) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO)
    suite.pytester.makefile(".ini", pytest=INI.format(0.5))
    assert suite.run("test_numbers.py", "--run=r", f"{option}={STRICT}").ret == 10
    for _ in range(2):
        ended = suite.run("test_numbers.py", f"{again}=r")
        assert ended.ret == 10
        ended.stdout.fnmatch_lines([f"*missed*{STRICT}*"])


def test_a_run_that_goes_on_reads_the_gates_of_the_ini_file_anew(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO)
    suite.pytester.makefile(".ini", pytest=INI.format(0.95))
    assert suite.run("test_numbers.py", "--run=r").ret == 10
    suite.pytester.makefile(".ini", pytest=INI.format(0.8))
    assert suite.run("test_numbers.py", "--resume=r").ret == 0


def test_gates_of_a_resuming_command_replace_those_of_the_command_before(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO)
    assert suite.run("test_numbers.py", "--run=r", f"--gate={STRICT}").ret == 10
    assert suite.run("test_numbers.py", "--resume=r", "--gate=numbers.exact_match >= 0.8").ret == 0


@pytest.mark.parametrize("option", ["--only-gate=numbers.exact_match >= 0.8", "--partial"])
def test_a_resuming_command_may_leave_out_the_gates_of_the_command_before(suite: Suite, option: str) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO)
    assert suite.run("test_numbers.py", "--run=r", f"--gate={STRICT}").ret == 10
    assert suite.run("test_numbers.py", "--resume=r", option).ret == 0


UNREAD = {
    "a section of its own": ({"pyproject.toml": '[tool.evalsuite]\ngates = ["{}"]\n'}, "nothing reads the section"),
    "an empty pytest.ini": (
        {"pyproject.toml": '[tool.pytest.ini_options]\nevalsuite_gates = ["{}"]\n', "pytest.ini": ""},
        "but pytest reads pytest.ini",
    ),
    "another tool's file": ({"setup.cfg": "[pytester]\nevalsuite_gate = {}\n"}, "stand here, but pytest reads"),
}


@pytest.mark.parametrize(("files", "message"), UNREAD.values(), ids=UNREAD)
def test_gates_that_pytest_does_not_read_are_refused(suite: Suite, files: dict[str, str], message: str) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO)
    for name, text in files.items():
        (suite.path / name).write_text(text.replace("{}", STRICT), encoding="utf-8")
    ended = suite.run("test_numbers.py")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines([f"ERROR: *{message}*"])


def test_the_file_named_on_the_command_line_is_read_whatever_the_others_say(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO)
    (suite.path / "pytest.ini").write_text(INI.format(0.95), encoding="utf-8")
    (suite.path / "other.ini").write_text(INI.format(0.5), encoding="utf-8")
    assert suite.run("-c", "other.ini", "test_numbers.py").ret == 0


@pytest.mark.parametrize(("cases", "status"), [(12, 12), (60, 0)])
def test_a_bound_of_an_amount_is_decided_from_thirty_cases_on(suite: Suite, cases: int, status: int) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO.replace("range(10)", f"range({cases})"))
    ended = suite.run("test_numbers.py", "--gate=numbers.seconds <= 60 @95%")
    assert ended.ret == status
    if status:
        ended.stdout.fnmatch_lines(["*no data*numbers.seconds*no interval below 30 independent cases*"])


def test_a_benchmark_that_nothing_decides_is_told_on_the_first_line(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO)
    assert suite.run("test_numbers.py").ret == 0
    first = suite.rendered().splitlines()[0]
    assert first.endswith("nothing decides numbers: no gate covers it, and its test asserts nothing")


def test_a_gate_that_the_worst_scores_meet_says_so(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO)
    ended = suite.run("test_numbers.py", "--gate=numbers.exact_match <= 0.95")
    ended.stdout.fnmatch_lines(["*met*the worst scores meet this gate, since exact_match*"])


def test_a_bound_of_a_score_without_a_range_says_what_it_assumes(suite: Suite) -> None:
    graded = "scorers=[lambda sample, transcript: {'length': 1.0 + float(sample.id)}]"
    suite.pytester.makepyfile(test_numbers=ECHO.replace("scorers=[exact_match()]", graded))
    hint = "*met*numbers.length*the bound is optimistic for few and skewed scores; declare the range*"
    suite.run("test_numbers.py", "--gate=numbers.length >= 0.5 @95%").stdout.fnmatch_lines([hint])
    suite.run("test_numbers.py", "--gate=numbers.length >= 0.5").stdout.no_fnmatch_line(hint)


def test_a_gate_counts_the_cases_in_quarantine(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO)
    entry = "[[case]]\nbenchmark = 'numbers'\nsample = '9'\nreason = 'flaky'\nuntil = 2999-01-01\n"
    (suite.path / "held.toml").write_text(entry, "utf-8")
    ended = suite.run("test_numbers.py", f"--gate={STRICT}", "-oevalsuite_quarantine=held.toml")
    assert ended.ret == 0
    ended.stdout.fnmatch_lines([f"*met*{STRICT}*1 case in quarantine*"])


@pytest.mark.parametrize("gates", [("--gate=* no worse than base by 0.5",), ()])
def test_a_benchmark_that_is_gone_since_the_baseline_leaves_the_comparison_undone(
    suite: Suite, gates: tuple[str, ...]
) -> None:
    suite.pytester.makepyfile(test_numbers=ECHO)
    suite.run("--run=base", "--only-gate=capitals.exact_match >= 0")
    (suite.path / "test_numbers.py").write_text("", "utf-8")
    ended = suite.run("--baseline=base", *gates)
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*numbers*this run has no case of it*"])
    assert "has no case of it" not in suite.run("test_capitals.py", "--baseline=base", *gates).stdout.str()


ENDINGS = {
    "_exit in a call": ("app.py", "\nimport os\n\ndef echo(messages): os._exit(0)\n"),
    "_exit at import": ("test_capitals.py", "import os\nos._exit(0)\n"),
    "execlp in a case": ("conftest.py", "def pytest_runtest_setup(item): os.execlp('true', 'true')\n"),
    "exit at configure": ("conftest.py", "def pytest_configure(config): pytest.exit('x', returncode=0)\n"),
    "exit at start": ("conftest.py", "def pytest_sessionstart(session): pytest.exit('x', returncode=0)\n"),
    "exit at collection": ("conftest.py", "def pytest_itemcollected(item): pytest.exit('x', returncode=0)\n"),
    "exit in a case": ("conftest.py", "def pytest_runtest_setup(item): pytest.exit('x', returncode=0)\n"),
    "status of a hook": ("conftest.py", "def pytest_sessionfinish(session): session.exitstatus = 0\n"),
    "sys.exit at the end": ("conftest.py", "def pytest_sessionfinish(session): sys.exit(0)\n"),
    "_exit at the end": ("conftest.py", "def pytest_unconfigure(config): os._exit(0)\n"),
}


@pytest.mark.parametrize(("file", "text"), ENDINGS.values(), ids=ENDINGS)
def test_a_session_with_a_missed_gate_that_ends_itself_with_0_is_red(
    suite: Suite, workers: tuple[str, ...], file: str, text: str
) -> None:
    with (suite.path / file).open("a", encoding="utf-8") as stream:
        stream.write(f"\nimport os, pytest, sys\n{text}" if file == "conftest.py" else text)
    assert suite.run(*workers, "--gate=capitals.exact_match >= 0.9", fresh=True).ret not in {0, 1}


MODEL_IN_INI = "[tool.pytest]\nevalsuite_model = 'function:app:echo'\n"
CONFTESTS = {
    "named on the command line": ("cases/conftest.py", ("cases", "--model=function:app:echo"), ""),
    "found at collection": ("cases/sub/conftest.py", ("cases",), MODEL_IN_INI),
    "of the root after -p": ("conftest.py", ("-pevalsuite.plugin",), MODEL_IN_INI),
}


@pytest.mark.parametrize("text", ["sys.exit(0)", "os._exit(0)"])
@pytest.mark.parametrize(("file", "options", "ini"), CONFTESTS.values(), ids=CONFTESTS)
def test_a_conftest_that_ends_the_session_while_it_is_imported_does_not_make_it_green(
    suite: Suite, text: str, file: str, options: tuple[str, ...], ini: str
) -> None:
    (suite.path / "cases" / "sub").mkdir(parents=True)
    (suite.path / "cases" / "sub" / "test_numbers.py").write_text(ECHO, "utf-8")
    (suite.path / "pyproject.toml").write_text(ini, "utf-8")
    (suite.path / file).write_text(f"import os, sys\n{text}\n", "utf-8")
    ended = suite.run(*options, model=False, fresh=True)
    assert ended.ret in {3, 12}
    assert "mainloop: caught unexpected SystemExit!" in (told := ended.stderr.str()) or "status is 12" in told


def test_a_conftest_may_end_a_session_without_a_model(suite: Suite) -> None:
    (suite.path / "unit").mkdir()
    (suite.path / "unit" / "conftest.py").write_text("import sys\nsys.exit(0)\n", "utf-8")
    assert suite.run("unit", model=False, fresh=True).ret == 0
    assert suite.run("unit", fresh=True).ret == 12


def test_a_file_that_ends_every_worker_ends_the_session_with_the_first_workers(suite: Suite) -> None:
    (suite.path / "test_capitals.py").write_text("import os\nos._exit(0)\n", "utf-8")
    ended = suite.run("-n2", "--gate=capitals.exact_match >= 0.9", fresh=True)
    assert ended.ret == 12
    assert ended.stdout.str().count("replacing crashed worker") == 1


UNCOLLECTED = {
    "a file that skips itself": ("test_numbers.py", f"import pytest\npytest.importorskip('no_such')\n{ECHO}", ()),
    "an ignored file": ("test_numbers.py", ECHO, ("--ignore=test_numbers.py",)),
    "another name of the function": ("test_numbers.py", ECHO.replace("def test_", "def check_"), ()),
    "a condition": ("test_numbers.py", f"if False:\n{textwrap.indent(ECHO, '    ')}", ()),
}


@pytest.mark.parametrize(("file", "text", "options"), UNCOLLECTED.values(), ids=UNCOLLECTED)
def test_a_gate_on_every_benchmark_lacks_one_that_is_declared_but_not_collected(
    suite: Suite, workers: tuple[str, ...], file: str, text: str, options: tuple[str, ...]
) -> None:
    (suite.path / file).write_text(text, "utf-8")
    ended = suite.run(*workers, *options, "--gate=*.exact_match >= 0.1")
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*no case of numbers was collected*"])


def test_a_gate_covers_the_benchmarks_of_the_named_files_alone(suite: Suite) -> None:
    (suite.path / "test_numbers.py").write_text(f"import pytest\npytest.skip(allow_module_level=True)\n{ECHO}")
    assert suite.run("--gate=calls per case <= 5").ret == 12
    assert suite.run("--partial").ret == 1
    for path in ("test_capitals.py", "test_capitals.py::test_capitals"):
        assert suite.run(path, "--gate=calls per case <= 5").ret == 0
    assert suite.run("--gate=capitals.exact_match >= 0.1").ret == 0


@pytest.mark.parametrize("text", ["os._exit(0)", "sys.exit(0)"])
def test_hooks_choose_the_status_of_sessions_without_cases(suite: Suite, text: str) -> None:
    suite.pytester.makepyfile(test_sums="def test_sum():\n    assert 1 + 1 == 3\n")
    suite.pytester.makeconftest(
        f'pytest_plugins = ["evalsuite.plugin"]\n\nimport os, sys\n\ndef pytest_sessionfinish(session):\n    {text}\n'
    )
    assert suite.run("test_sums.py", model=False, fresh=True).ret == 0


def test_forked_children_and_met_gates_end_with_0(suite: Suite) -> None:
    suite.pytester.makeconftest(
        'pytest_plugins = ["evalsuite.plugin"]\n\nimport os\n\n'
        "def pytest_sessionfinish(session):\n    child = os.fork()\n    child or os._exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n    os._exit(0)\n"
    )
    assert suite.run("--gate=capitals.exact_match >= 0.6", fresh=True).ret == 0


UNSEEN = """
from opentelemetry.sdk.trace import TracerProvider
from evalsuite import Sample, benchmark, scorers
from evalsuite.solvers import application

TRACER = TracerProvider().get_tracer("own")

def answer(question):
    if question != "1":
        TRACER.start_span("step").end()
    return question

SAMPLES = [Sample(id=str(n), input=str(n)) for n in range(3)]

@benchmark("steps", SAMPLES, solver=application(answer, spans=True), scorers=[scorers.span("retrieve", count=0)])
def test_steps(scores):
    assert scores["span"] == 1.0
"""


def test_an_application_whose_spans_are_missing_meets_no_gate(suite: Suite) -> None:
    suite.pytester.makepyfile(test_steps=UNSEEN)
    ended = suite.run("test_steps.py", "--gate=steps.span >= 0.5", "--gate=steps.span_count <= 1")
    assert ended.ret == 12
    ended.assert_outcomes(passed=2, errors=1, failed=2)
    ended.stdout.fnmatch_lines([f"*{metric}: errors in 1 of 3 cases*" for metric in ("steps.span", "steps.span_count")])
