"""Interrupted runs, dead workers, limits on spending: what was paid for is kept."""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.results.run_folders import RunFolder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import ChatServer
    from tests.plugin.conftest import Suite

MANY = """
import os, signal
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=str(n), input=str(n), target=str(n)) for n in range(30)]

@benchmark("many", SAMPLES, solver=generate(), scorers=[exact_match()])
def test_many(sample, scores):
    assert scores["exact_match"] == 1.0
"""


@pytest.fixture
def many(suite: Suite, chat_server: ChatServer) -> Suite:
    """Thirty cases against a server."""
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_many=MANY)
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    return suite


def kept(store: Path) -> int:
    """How many completions another process has stored by now."""
    try:
        with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as reader:
            return int(reader.execute("SELECT count(*) FROM answers").fetchone()[0])
    except sqlite3.OperationalError:  # Not there yet, or not yet with its table.
        return 0


def test_after_a_kill_of_the_whole_run_only_what_is_missing_is_asked(many: Suite, chat_server: ChatServer) -> None:
    answered: set[str] = set()
    first = threading.Lock()

    def reply(body: dict[str, Any]) -> Any:
        text = body["messages"][-1]["content"]
        with first:
            if len(answered) < 12:
                answered.add(text)
        return chat_server.say(text, delay=0.0 if text in answered else 30.0)

    chat_server.reply = reply
    with many.start("--run=r", "--max-connections=4") as process:
        deadline = time.monotonic() + 60
        store = many.path / "reports" / "r" / "journal.sqlite"
        while (kept(store) < 12 or len(chat_server.bodies) < 16) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    chat_server.bodies.clear()
    chat_server.reply = lambda body: chat_server.say(body["messages"][-1]["content"])
    many.run("--resume=last", model=False).assert_outcomes(passed=30)
    assert answered.isdisjoint(chat_server.asked())
    assert len(chat_server.bodies) == 18
    assert len({record["case"] for record in many.records("r")}) == 30
    assert len(many.runs()) == 1


def test_a_resumed_run_keeps_the_selection_unless_told_otherwise(many: Suite, chat_server: ChatServer) -> None:
    many.run("--run=r", "--limit=5", "-k", "many").assert_outcomes(passed=5)
    chat_server.bodies.clear()
    many.run("--resume=r", model=False).assert_outcomes(passed=5)
    assert not chat_server.bodies
    many.run("--resume=r", "--limit=8", model=False).assert_outcomes(passed=8)
    assert len(chat_server.bodies) == 3


def test_another_model_is_another_run(many: Suite) -> None:
    many.run("--run=r", "--limit=2")
    result = many.run("--resume=r", "--model=function:app:echo", model=False)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*another model is another run*"])


def test_a_replay_asks_nobody_and_fails_on_what_is_missing(many: Suite, chat_server: ChatServer) -> None:
    many.run("--run=r", "--limit=5")
    chat_server.bodies.clear()
    many.run("--replay=r", "-n", "2", model=False).assert_outcomes(passed=5)
    result = many.run("--replay=r", "--limit=6", "-v", model=False)
    result.assert_outcomes(passed=5, errors=1)
    result.stdout.fnmatch_lines(["*run r holds no answer of gpt-test to this request*"])
    assert not chat_server.bodies
    # The replayed run itself is as it was.
    assert len(many.records("r")) == 5


def test_a_replay_of_a_replay_reads_the_run_that_asked_the_model(many: Suite, chat_server: ChatServer) -> None:
    many.run("--limit=5")
    chat_server.bodies.clear()
    for workers in ("0", "2", "0"):
        many.run("--replay=last", "-n", workers, model=False).assert_outcomes(passed=5)
    assert not chat_server.bodies


def test_a_changed_parameter_is_another_request(many: Suite, chat_server: ChatServer) -> None:
    many.run("--run=r", "--limit=3")
    many.run("--resume=r", "--model-param=temperature=0.5", model=False).assert_outcomes(passed=3)
    assert len(chat_server.bodies) == 6
    assert chat_server.bodies[-1]["temperature"] == 0.5


def test_a_fresh_run_asks_again(many: Suite, chat_server: ChatServer) -> None:
    many.run("--limit=2")
    many.run("--limit=2")
    assert len(chat_server.bodies) == 4
    assert len(many.runs()) == 2


@pytest.mark.parametrize(("option", "requests"), [((), 20), (("-oevalsuite_share_greedy=true",), 1)])
def test_equal_requests_of_several_cases_are_made_once_only_if_the_user_says_so(
    suite: Suite, chat_server: ChatServer, option: tuple[str, ...], requests: int
) -> None:
    suite.pytester.makepyfile(
        test_capitals="""
        from evalsuite import Sample, benchmark, generate
        @benchmark("same", [Sample(id=str(n), input="the same") for n in range(20)],
                   solver=generate(temperature=0))
        def test_same(transcript):
            assert transcript.answer == "the same"
        """
    )
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    suite.run("-n", "2", *option).assert_outcomes(passed=20)
    assert len(chat_server.bodies) == requests


def test_when_a_worker_dies_every_finished_case_is_in_the_report(many: Suite, chat_server: ChatServer) -> None:
    file = many.path / "test_many.py"
    file.write_text(
        file.read_text().replace(
            "    assert scores",
            "    if sample.id == '7':\n        os.kill(os.getpid(), signal.SIGKILL)\n    assert scores",
        )
    )
    result = many.run("-n", "2")
    assert result.ret == 1
    records = {record["sample"]: record for record in many.records()}
    assert len(records) == 30
    assert (records["7"]["outcome"], records["7"]["cause"]) == ("error", "WorkerDied")
    assert records["7"]["benchmark"] == "many"
    assert sum(record["outcome"] == "passed" for record in records.values()) == 29
    assert len(chat_server.bodies) == 30


def test_the_spend_limit_stops_before_the_call_that_would_pass_it(many: Suite, chat_server: ChatServer) -> None:
    # 15 tokens an answer at a dollar a million each; a call may cost at most what its bound says.
    many.pytester.makepyfile(test_many=MANY.replace("generate()", "generate(max_tokens=10)"))
    result = many.run("--price=gpt-test=1/1", "--max-cost=0.0002", "--max-connections=3")
    done = len(chat_server.bodies)
    assert 5 < done < 14
    assert many.summary()["usage"]["cost"] <= 0.0002
    assert sum(record["cause"] == "SpendLimitReached" for record in many.records()) == 30 - done
    result.stdout.fnmatch_lines(["*the spend limit is reached*--resume last*"])


def test_until_decided_ends_with_the_money_and_decides_by_what_was_asked(many: Suite, chat_server: ChatServer) -> None:
    many.pytester.makepyfile(test_many=MANY.replace("generate()", "generate(max_tokens=10)"))
    gate = "--gate=many.exact_match >= 0.99"
    result = many.run(gate, "--until-decided", "--price=gpt-test=1/1", "--max-cost=0.0002", "--max-connections=3")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*stopped, as the money is spent: * of 30 cases ran*many.exact_match >= 0.99*"])
    outcomes = [record["outcome"] for record in many.records()]
    assert outcomes.count("passed") == len(chat_server.bodies) > 5
    assert "error" not in outcomes
    assert many.summary()["usage"]["cost"] <= 0.0002


def test_the_spend_limit_holds_over_all_sessions_of_a_run(many: Suite, chat_server: ChatServer) -> None:
    many.pytester.makepyfile(test_many=MANY.replace("generate()", "generate(max_tokens=10)"))
    many.run("--run=r", "--price=gpt-test=1/1", "--max-cost=0.0002", "--max-connections=1")
    first = len(chat_server.bodies)
    assert 0 < first < 14
    # Neither the limit nor the price is given again.
    many.run("--resume=r", "--max-connections=1", model=False)
    assert len(chat_server.bodies) == first
    many.run("--resume=r", "--max-cost=0.0003", "--max-connections=1", model=False)
    assert first < len(chat_server.bodies) <= 20
    assert many.summary()["usage"]["cost"] <= 0.0003
    many.run("--resume=r", "--max-cost=1", model=False).assert_outcomes(passed=30)


def test_a_call_that_a_killed_session_had_sent_counts_as_spent(many: Suite, chat_server: ChatServer) -> None:
    many.pytester.makepyfile(test_many=MANY.replace("generate()", "generate(max_tokens=10)"))
    chat_server.reply = lambda _: chat_server.say("x", delay=30.0)
    with many.start("--price=gpt-test=0/1", "--max-connections=4", "--run=r") as process:
        deadline = time.monotonic() + 60
        while len(chat_server.bodies) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    chat_server.bodies.clear()
    chat_server.reply = lambda body: chat_server.say(body["messages"][-1]["content"])
    # Four calls of ten tokens may have been billed; there is room for one more of five, but not of ten.
    result = many.run("--resume=r", "--max-cost=0.000045", model=False)
    assert not chat_server.bodies
    result.stdout.fnmatch_lines(["*$0.0000 of --max-cost $4.5e-05 is spent*"])


def test_a_keyboard_interrupt_leaves_a_report_of_what_was_done(many: Suite) -> None:
    file = many.path / "test_many.py"
    file.write_text(
        file.read_text().replace(
            "    assert scores", "    if sample.id == '7':\n        raise KeyboardInterrupt\n    assert scores"
        )
    )
    result = many.run(fresh=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert len(many.records()) == 7
    assert "interrupted" in many.report()


@pytest.mark.parametrize(("login", "query"), [("", ""), ("user:pa55word@", ""), ("", "?api-key=pa55word")])
def test_secrets_are_in_no_file_of_the_run(
    many: Suite, chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, login: str, query: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret")
    address = chat_server.url.replace("//", "//" + login) + query
    many.model = ("--model=gpt-test", f"--model-base-url={address}")
    many.run("--limit=2", "-n", "2").assert_outcomes(passed=2)
    sent = chat_server.headers[0]["Authorization"]
    assert sent == ("Basic dXNlcjpwYTU1d29yZA==" if login else "Bearer sk-verysecret")
    for file in many.runs()[0].iterdir():
        assert b"verysecret" not in file.read_bytes(), file
        assert b"pa55word" not in file.read_bytes(), file


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_key_is_in_no_traceback_no_junit_file_and_nothing_that_the_run_leaves(
    many: Suite, chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret-1234567890")
    chat_server.reply = lambda body: chat_server.say(status=400, body={"error": {"message": str(body)}})
    parameter = "--model-param=api_key=pa55word-1234567890"
    result = many.run(
        "--limit=3", "-vv", "--showlocals", "--tb=long", "--junitxml=junit.xml", parameter, *workers, fresh=True
    )
    result.assert_outcomes(errors=3)
    assert chat_server.headers[0]["Authorization"] == "Bearer sk-verysecret-1234567890"
    shown = [result.stdout.str().encode(), result.stderr.str().encode()]
    shown += [file.read_bytes() for file in many.path.rglob("*") if file.is_file() and "reports" in str(file)]
    shown.append((many.path / "junit.xml").read_bytes())
    for content in shown:
        assert b"verysecret" not in content
        # pytest itself prints the command of a session that it was given.
        assert b"pa55word" not in content.replace(parameter.encode(), b"")
    assert many.runs()[0].joinpath("run.json").read_text().count("sha256:") >= 2


def test_what_a_benchmark_knows_of_the_run_holds_no_login(suite: Suite) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(
        test_own="""
        from evalsuite import Benchmark, benchmark

        def load(setup):
            raise ValueError(repr(setup))

        OWN = Benchmark(name="own", title="Own", load=load, solver=lambda setup: None, scorers=lambda setup: [])

        @benchmark(OWN)
        def test_own(scores):
            pass
    """
    )
    result = suite.run("--judge-model=j", "--judge-base-url=http://user:pa55word@127.0.0.1:9/v1", "--showlocals")
    shown = result.stdout.str() + result.stderr.str()
    assert "127.0.0.1:9" in shown
    assert "pa55word" not in shown


def test_a_run_cut_short_in_the_middle_of_a_record_can_be_reported_and_resumed(many: Suite) -> None:
    many.run("--run=r", "--limit=3")
    records = many.path / "reports" / "r" / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-20])
    many.run("--resume=r", model=False).assert_outcomes(passed=3)
    assert len({record["case"] for record in many.records("r")}) == 3


def test_a_damaged_file_of_records_is_written_anew_by_a_resumed_run(many: Suite, chat_server: ChatServer) -> None:
    many.run("--run=r", "--limit=3")
    records = many.path / "reports" / "r" / "records.jsonl"
    whole = records.read_bytes()
    records.write_bytes(b"{broken\n" + whole[20:])
    chat_server.bodies.clear()
    many.run("--resume=r", model=False).assert_outcomes(passed=3)
    assert len(many.records("r")) == 3
    assert not chat_server.bodies


def test_a_resumed_run_saves_the_answers_of_a_journal_that_lacks_its_end(many: Suite, chat_server: ChatServer) -> None:
    # Long texts, so that the end holds answers and not the list of tables, without which no table can be read.
    many.pytester.makepyfile(test_many=MANY.replace("input=str(n)", "input=str(n).ljust(9000)"))
    many.run("--run=r")
    journal = many.path / "reports" / "r" / "journal.sqlite"
    os.truncate(journal, journal.stat().st_size * 3 // 4)
    chat_server.bodies.clear()
    result = many.run("--resume=r", model=False)
    result.assert_outcomes(passed=30)
    result.stdout.fnmatch_lines(["the journal was damaged and lost at least * was asked again"])
    assert len(chat_server.bodies) < 30


@pytest.mark.parametrize(("option", "status"), [("--resume=r", pytest.ExitCode.USAGE_ERROR), ("--replay=r", 12)])
def test_a_damaged_journal_is_told_before_anybody_is_asked(
    many: Suite, chat_server: ChatServer, option: str, status: int
) -> None:
    many.run("--run=r", "--limit=3")
    (many.path / "reports" / "r" / "journal.sqlite").write_bytes(b"nothing of SQLite's" * 1000)
    chat_server.bodies.clear()
    result = many.run(option)
    assert result.ret == status
    told = result.stderr.str() + result.stdout.str()
    assert "so the run cannot be replayed; once the file is moved away, --resume asks everything anew" in told
    assert not chat_server.bodies


@pytest.mark.parametrize("option", ["--resume=r", "--replay=r"])
def test_without_run_json_the_model_of_the_earlier_run_must_be_named(
    many: Suite, chat_server: ChatServer, option: str
) -> None:
    many.run("--run=r", "--limit=3")
    (many.path / "reports" / "r" / "run.json").unlink()
    chat_server.bodies.clear()
    result = many.run(option, model=False)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "run.json is missing, so that run's model is unknown: give --model" in result.stderr.str()
    assert not chat_server.bodies


TAGGED = """
import os, signal
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=f"s {n}", input=str(n), target=str(n), tags={"kind": "hard" if n < 3 else "easy"})
    for n in range(9)]

@benchmark("tagged", SAMPLES, solver=generate(), scorers=[exact_match()], epochs=2)
def test_tagged(sample, scores):
    if sample.id == "s 0":
        os.kill(os.getpid(), signal.SIGKILL)
    assert scores["exact_match"] == 1.0

def test_plain_that_dies():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_case_whose_worker_died_is_known_by_all_its_names(suite: Suite) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_tagged=TAGGED)
    result = suite.run("-n", "2", "--gate=tagged[hard].exact_match >= 0.5", "--max-worker-restart=9")
    assert result.ret == 12
    dead = [record for record in suite.records() if record["outcome"] == "error"]
    assert [(one["sample"], one["epoch"], one["tags"], one["benchmark"]) for one in dead] == [
        ("s 0", 1, {"kind": "hard"}, "tagged"),
        ("s 0", 2, {"kind": "hard"}, "tagged"),
    ]
    assert len(suite.records()) == 18
    assert set(suite.summary()["benchmarks"]) == {"tagged"}


def test_a_resumed_run_counts_what_the_suite_asks_now_and_says_what_it_leaves_out(many: Suite) -> None:
    many.run("--run=r", "--limit=4", "--gate=many.exact_match >= 1").assert_outcomes(passed=4)
    file = many.path / "test_many.py"
    file.write_text(file.read_text().replace("range(30)", "range(2)").replace("target=str(n)", "target='1'"))
    result = many.run("--resume=r", "--limit=30", model=False)
    assert result.ret == 10
    assert len(many.records("r")) == 2
    assert "of earlier sessions, no longer asked for in this way by this suite" in many.report("r")


def test_records_made_with_other_parameters_do_not_stand_in_for_cases_that_did_not_run(many: Suite) -> None:
    many.run("--run=r", "--limit=4").assert_outcomes(passed=4)
    file = many.path / "test_many.py"
    file.write_text(MANY.replace("    assert", "    import pytest\n    pytest.exit('enough')\n    assert"))
    many.run("--resume=r", "--model-param=temperature=1", model=False)
    assert not many.records("r")
    assert "left out: 4 cases of earlier sessions" in many.report("r")


def test_cases_that_a_resumed_run_leaves_out_by_k_still_count(many: Suite) -> None:
    many.run("--run=r", "--limit=4").assert_outcomes(passed=4)
    one = many.records("r")[0]["sample"]
    many.run("--resume=r", "-k", f"many and {one}", model=False)
    assert len(many.records("r")) == 4


def test_a_second_session_beside_a_living_one_is_refused_with_one_message(many: Suite, chat_server: ChatServer) -> None:
    many.run("--run=r", "--limit=2")
    chat_server.bodies.clear()
    refused = threading.Event()
    chat_server.reply = lambda _: chat_server.say(str(refused.wait(300)))
    with many.start("--resume=r", "--limit=9") as process:
        deadline = time.monotonic() + 60
        while len(chat_server.bodies) < 7 and time.monotonic() < deadline:
            time.sleep(0.05)
        result = many.run("--resume=r", "--limit=9", fresh=True)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert f"run r is being written to by another session (process {process.pid}" in result.stderr.str()
        assert len(chat_server.bodies) == 7
        process.kill()
        refused.set()


def test_a_killed_run_gets_its_records_from_its_journal_when_it_is_read(many: Suite, chat_server: ChatServer) -> None:
    killed = threading.Event()

    def reply(body: dict[str, Any]) -> Any:
        text = body["messages"][-1]["content"]
        if text == "20":
            killed.wait(300)
        return chat_server.say(text)

    chat_server.reply = reply
    with many.start("-v", "--run=r", stdout=subprocess.PIPE) as process:
        passed = 0
        while passed < 20:
            passed += b"PASSED" in next(process.stdout)
        process.kill()
        killed.set()
    assert not (many.path / "reports" / "r" / "records.jsonl").exists()
    run = load_run(RunFolder(many.path / "reports" / "r"))
    assert len(list(run.all_rows())) >= 19


def test_a_resumed_run_needs_its_function_and_its_login_again(many: Suite, chat_server: ChatServer) -> None:
    function = "--model=function:app:echo"
    many.run(function, "--run=f", "--maxfail=1", "--limit=3", model=False).assert_outcomes(passed=3)
    refused = many.run("--resume=f", model=False)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert f"give {function} again" in refused.stderr.str()
    assert "app" not in sys.modules
    many.run("--resume=f", function, model=False).assert_outcomes(passed=3)
    # A replay asks nobody, and so imports nothing.
    (many.path / "app.py").unlink()
    many.run("--replay=f", model=False).assert_outcomes(passed=3)
    address = chat_server.url.replace("//", "//user:pa55word@")
    many.run("--model=m", f"--model-base-url={address}", "--run=l", "--limit=1", model=False)
    refused = many.run("--resume=l", "--limit=2", model=False)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert "give --model-base-url again" in refused.stderr.str()
    result = many.run("--resume=l", "--limit=2", f"--model-base-url={address}", model=False)
    result.assert_outcomes(passed=2)
    assert [sent["Authorization"][:5] for sent in chat_server.headers] == ["Basic"] * 2


def test_a_hundred_calls_in_flight_never_cost_more_than_the_limit(suite: Suite, chat_server: ChatServer) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_many=MANY.replace("range(30)", "range(150)"))

    numbers, together = itertools.count(), threading.Barrier(100)

    def reply(body: dict[str, Any]) -> Any:
        # The first hundred are answered once all of them are there.
        if next(numbers) < 100:
            together.wait(60)
        # It writes as long as it may, and bills all of it.
        usage = {"prompt_tokens": 10, "completion_tokens": body["max_tokens"]}
        choice = {"message": {"content": body["messages"][-1]["content"]}, "finish_reason": "stop"}
        return chat_server.say(body={"choices": [choice], "usage": usage})

    chat_server.reply = reply
    suite.model = ("--model=m", f"--model-base-url={chat_server.url}", "--price=m=0/1000")
    result = suite.run("--max-cost=420", "--max-connections=100", "--gate=many.exact_match >= 0.5")
    assert result.ret == 12
    billed = sum(body["max_tokens"] for body in chat_server.bodies) * 1000 / 1e6
    assert chat_server.most >= 100
    assert 410 < billed <= 420
