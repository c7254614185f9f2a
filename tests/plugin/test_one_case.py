"""The way of one case, as its user sees it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.results.run_folders import RunFolder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from tests.conftest import ChatServer
    from tests.plugin.conftest import Suite


def test_a_case_that_misses_its_threshold_fails_like_any_test(suite: Suite, workers: tuple[str, ...]) -> None:
    result = suite.run(*workers)
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*test_capitals[[]jp[]]*", "*report: *report.md"])


@pytest.mark.own_interpreter
def test_every_case_leaves_one_record(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.run(*workers)
    records = suite.records()
    assert [record["case"] for record in records] == [
        f"test_capitals.py::test_capitals[{sample}]" for sample in ("fr", "it", "jp")
    ]
    assert [record["outcome"] for record in records] == ["passed", "passed", "failed"]
    assert [record["scores"] for record in records] == [{"exact_match": score} for score in (1.0, 1.0, 0.0)]
    assert records[2]["transcript"]["answer"] == "Osaka"
    assert records[2]["target"] == "Tokyo"
    assert records[0]["tags"] == {"region": "eu"}
    assert records[0]["model"] == "function:app:echo"
    assert records[0]["usage"]["calls"] == 1


def test_the_same_answers_give_the_same_report_whatever_n_was(suite: Suite) -> None:
    suite.run("--run", "first")
    suite.run("--replay", "first", "--run", "none", model=False)
    suite.run("--replay", "first", "--run", "two", "-n", "2", model=False)

    def stable(run: str) -> list[str]:
        lines = suite.report(run).split("\n")
        return [line for line in lines if not line.startswith(("| date", "| wall time", "`pytest", "Made with"))]

    assert stable("none") == stable("two")


def test_a_call_to_a_server_is_one_request_a_case(
    suite: Suite, workers: tuple[str, ...], chat_server: ChatServer
) -> None:
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    suite.run(*workers).assert_outcomes(passed=2, failed=1)
    assert sorted(chat_server.asked()) == ["Osaka", "Paris", "Rome"]
    assert chat_server.bodies[0]["model"] == "gpt-test"
    assert chat_server.bodies[0]["max_tokens"] == 8


def test_calls_in_flight_never_pass_the_limit_over_all_workers(suite: Suite, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say("x", delay=0.02)
    suite.pytester.makepyfile(
        test_many="""
        from evalsuite import Sample, benchmark, generate
        @benchmark("many", [Sample(id=str(n), input=str(n)) for n in range(40)], solver=generate())
        def test_many(transcript):
            assert transcript.answer == "x"
        """
    )
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    suite.run("-n", "2", "--max-connections", "3", "test_many.py").assert_outcomes(passed=40)
    assert 2 <= chat_server.most <= 3
    assert len(chat_server.bodies) == 40


def test_epochs_are_cases_and_requests_of_their_own(suite: Suite, workers: tuple[str, ...]) -> None:
    result = suite.run(*workers, "--epochs", "2", "-k", "fr")
    assert result.parseoutcomes()["passed"] == 2
    records = suite.records()
    assert [record["case"].partition("[")[2] for record in records] == ["fr-e1]", "fr-e2]"]
    assert [record["epoch"] for record in records] == [1, 2]
    assert suite.summary()["usage"]["calls"] == 2


def test_scores_stand_in_junit_as_properties(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.run(*workers, "--junit-xml=junit.xml")
    root = ET.parse(suite.path / "junit.xml").getroot()  # our own file
    found = {
        case.attrib["name"]: {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}
        for case in root.iter("testcase")
    }
    assert found["test_capitals[jp]"] == {"exact_match": "0.0"}


def test_a_transcript_of_300_kb_reaches_the_record_whole(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_long="""
        from evalsuite import Sample, benchmark, generate
        @benchmark("long", [Sample(id="one", input="é" * 300_000)], solver=generate())
        def test_long(transcript):
            assert len(transcript.answer) == 300_000
        """
    )
    suite.run("-n", "2", "test_long.py").assert_outcomes(passed=1)
    assert suite.records()[0]["transcript"]["answer"] == "é" * 300_000


def test_summary_and_records_agree(suite: Suite) -> None:
    suite.run()
    summary = suite.summary()
    run = load_run(RunFolder(suite.runs()[-1]))
    found = summary["benchmarks"]["capitals"]["metrics"]["exact_match"]
    assert found["value"] == run.benchmarks["capitals"].tally.mean("exact_match")
    assert found["n"] == 3
    assert summary["cases"] == {"failed": 1, "passed": 2}
    assert json.loads((suite.runs()[-1] / "run.json").read_text())["model"] == "function:app:echo"


def test_fixtures_give_sample_transcript_scores_and_models(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(
        test_fixtures="""
        from evalsuite import Sample, benchmark, exact_match, generate
        @benchmark("all", [Sample(id="a", input="hello", target="hello")], solver=generate(), scorers=[exact_match()])
        def test_all(sample, transcript, scores, model, judge):
            assert sample.id == "a" and transcript.answer == "hello" and dict(scores) == {"exact_match": 1.0}
            assert model.chat("and you?").text == "and you?"
            assert judge.chat([{"role": "user", "content": "judge"}]).text == "judge"
            assert judge.name == "function:app:echo"
        """
    )
    suite.run(*workers, "--judge-model=function:app:echo", "test_fixtures.py").assert_outcomes(passed=1)
    assert suite.records()[0]["usage"]["calls"] == 3


def test_a_benchmark_without_solver_leaves_the_asking_to_the_test(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_own="""
        from evalsuite import Sample, benchmark
        @benchmark("own", [Sample(id="a", input="hello")])
        def test_own(sample, model):
            assert model.chat(sample.input).text == "hello"
        """
    )
    suite.run("test_own.py").assert_outcomes(passed=1)
    assert suite.records()[0]["usage"]["calls"] == 1


def test_a_plain_test_may_ask_the_model_too(suite: Suite) -> None:
    suite.pytester.makepyfile(test_plain="def test_plain(model):\n    assert model.chat('hi').text == 'hi'\n")
    suite.run("test_plain.py").assert_outcomes(passed=1)


def test_on_github_the_report_is_appended_to_the_jobs_page(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(suite.path / "step.md"))
    suite.run()
    assert "cases failed" in (suite.path / "step.md").read_text("utf-8")


def test_a_jobs_page_that_cannot_be_written_changes_no_status(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(suite.path / "no" / "step.md"))
    result = suite.run("--gate=capitals.exact_match >= 0.5")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["the report is not on the job's page: *step.md: No such file or directory"])


def test_a_record_carries_fingerprints_that_tell_what_was_asked_and_how_it_was_scored(suite: Suite) -> None:
    suite.run("--run=a")
    suite.run("--run=b", "--model-param=temperature=0.5")
    file = suite.path / "test_capitals.py"
    file.write_text(file.read_text().replace('input="Rome"', 'input="Roma"').replace("8", "9"))
    suite.run("--run=c")
    first, warmer, changed = (suite.records(run) for run in "abc")
    names = {"input", "target", "scorers", "model", "prompt", "params", "requests"}
    assert all(set(record["fingerprints"]) == names for record in first)

    def differing(case: int, other: list[dict[str, Any]]) -> set[str]:
        before, after = first[case]["fingerprints"], other[case]["fingerprints"]
        return {name for name in names if before[name] != after[name]}

    assert differing(0, warmer) == {"model", "params", "requests"}
    assert differing(0, changed) == {"params", "requests"}
    assert differing(1, changed) == {"input", "prompt", "params", "requests"}


def test_further_epochs_ask_only_what_was_not_asked(
    suite: Suite, chat_server: ChatServer, workers: tuple[str, ...]
) -> None:
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    suite.pytester.makepyfile(
        test_many="""
        import pytest
        from evalsuite import Sample, benchmark, generate

        SAMPLES = [Sample(id="a", input="A"), Sample(id="a-e1", input="A"), Sample(id="é", input="A")]

        @benchmark("many", SAMPLES, solver=generate(temperature=1.0))
        def test_plain(scores):
            pass

        @pytest.mark.parametrize("more", ["a-e1", "b"])
        @benchmark("more", SAMPLES, solver=generate(temperature=1.0))
        def test_further(scores, more):
            pass
        """
    )
    suite.run(*workers, "--run=first", "test_many.py").assert_outcomes(passed=9)
    assert len(chat_server.bodies) == 9
    suite.run(*workers, "--resume=first", "--epochs=2", "test_many.py").assert_outcomes(passed=18)
    assert len(chat_server.bodies) == 18
