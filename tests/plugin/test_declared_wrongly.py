"""What a declaration gets wrong is one message, before any case begins, without workers and with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

HEAD = """
from evalsuite import Benchmark, Dataset, Sample, benchmark, contains, exact_match, generate
from evalsuite.judges import single, panel
from evalsuite.solvers import application
from evalsuite.benchmarks.head_to_tail import HEAD_TO_TAIL
from evalsuite.benchmarks.treb import TREB

SAMPLES = [Sample(id="fr", input="Paris", target="Paris")]

def crash(setup):
    return 1 / 0

"""
TEST = "\ndef test_it(scores): pass\n"


def run(suite: Suite, workers: tuple[str, ...], declaration: str) -> pytest.RunResult:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_it=HEAD + declaration + TEST)
    return suite.run(*workers)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (
            (
                "OWN = Benchmark(name='own', title='Own', load=lambda s: Dataset(SAMPLES, 'here'), solver=crash,"
                " scorers=lambda s: [])\n@benchmark(OWN)"
            ),
            "benchmark own: its solver cannot be made: ZeroDivisionError: division by zero",
        ),
        (
            (
                "OWN = Benchmark(name='own', title='Own', load=lambda s: Dataset(SAMPLES, 'here'),"
                " solver=lambda s: generate(), scorers=crash)\n@benchmark(OWN)"
            ),
            "benchmark own: its scorers cannot be made: ZeroDivisionError: division by zero",
        ),
        (
            "@benchmark('own', SAMPLES, solver=generate(), scorers=exact_match())",
            "benchmark own: scorers must be a list; write scorers=[...] around TargetScorer",
        ),
        (
            "@benchmark('own', SAMPLES, solver=generate(), scorers=[exact_match(), exact_match()])",
            "benchmark own: two scorers give the score 'exact_match'",
        ),
        (
            "@benchmark(HEAD_TO_TAIL, max_tokns=64)",
            "Head-to-Tail takes no argument 'max_tokns'; did you mean max_tokens?",
        ),
    ],
)
def test_what_a_factory_raises_is_one_message_at_its_test(
    suite: Suite, workers: tuple[str, ...], declaration: str, message: str
) -> None:
    result = run(suite, workers, declaration)
    text = result.stdout.str()
    assert message in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    assert "evalsuite/plugin" not in text
    assert result.ret in {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED}


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (
            "@benchmark('own', SAMPLES, solver=generate(max_tokns=8))",
            "generate() takes no argument 'max_tokns'; did you mean max_tokens?",
        ),
        (
            "@benchmark('own', SAMPLES, scorers=[single(aspect=['depth'])])",
            "single() takes no argument 'aspect'; did you mean aspects?",
        ),
        (
            "@benchmark('own', SAMPLES, scorer=[exact_match()])",
            "benchmark() takes no argument 'scorer'; did you mean scorers?",
        ),
        (
            "@benchmark('own', SAMPLES, solver=generate(zzz=8))",
            "generate() takes no argument 'zzz'; it takes system, template, and generation parameters",
        ),
        ("@benchmark('own', SAMPLES, epochs=1, at_least=2)", "at_least=2 must be between 1 and epochs=1"),
        ("@benchmark('own', SAMPLES, epochs='2')", "epochs='2' is not a whole number"),
        ("@benchmark('own', SAMPLES, epochs=3, at_least=1.5)", "at_least=1.5 is not a whole number"),
        (
            "@benchmark('own', SAMPLES, solver=generate(template='{inpt}'))",
            "without {input}, all samples would be asked",
        ),
        (
            "@benchmark('own', SAMPLES, solver=application(url='ftp://x'))",
            "give an address like http://127.0.0.1:8000/ask",
        ),
        ("@benchmark('Own', SAMPLES)", "a name is lower-case letters"),
        ("@benchmark", "@benchmark needs arguments: write @benchmark('name', samples"),
        ("@benchmark('own', SAMPLES)\n@benchmark('other', SAMPLES)", "test_it has a benchmark already"),
        ("@benchmark('own', SAMPLES)\n@type", "belongs on a test function, not on <"),
        ("@benchmark('own', 'own.csv')", "samples is the path 'own.csv'; write load_samples(...)"),
        ("@benchmark('own_one')", "no installed package offers a benchmark of this name; there are head_to_tail"),
    ],
)
def test_a_typo_in_the_test_file_is_one_message_with_its_line(suite: Suite, declaration: str, message: str) -> None:
    result = run(suite, (), declaration)
    text = result.stdout.str()
    line = HEAD.count("\n")
    assert f"test_it.py:{line}: " in text
    assert message in text
    assert "Traceback" not in text
    assert "evalsuite/plugin" not in text


@pytest.mark.parametrize("metrics", ["['short']", "{'short': (0, 1)}", "{3: Metric()}"])
def test_a_scorer_that_declares_its_metrics_in_another_form_is_refused(suite: Suite, metrics: str) -> None:
    scorer = f"from evalsuite import Metric\ndef short(sample, transcript):\n    return 1\nshort.metrics = {metrics}\n"
    result = run(suite, (), f"{scorer}@benchmark('own', SAMPLES, solver=generate(), scorers=[short])")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["benchmark own: short.metrics is *; write {'quality': Metric(range=(0, 1))}"])


def test_a_single_fault_need_not_be_a_list(suite: Suite) -> None:
    result = run(suite, (), "@benchmark('own', SAMPLES, solver=generate(), faults='cut=100%')")
    result.assert_outcomes(passed=1)
    assert suite.records()[0]["tags"]["fault"] == "cut"


def test_a_benchmark_on_a_method_that_unittest_runs_is_refused(suite: Suite) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(
        test_it=f"import unittest\n{HEAD}class TestIt(unittest.TestCase):\n"
        "    @benchmark('own', SAMPLES)\n    def test_own(self):\n        pass\n"
    )
    result = suite.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*@benchmark on TestIt.test_own: unittest runs this method, which can have no cases*"])


def test_a_static_method_may_have_a_benchmark(suite: Suite) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(
        test_it=f"{HEAD}class TestIt:\n    @benchmark('own', SAMPLES, solver=generate(), scorers=[contains()])\n"
        "    @staticmethod\n    def test_own(scores):\n        assert scores['contains']\n"
    )
    suite.run().assert_outcomes(passed=1)


def test_a_parameter_of_a_server_s_own_is_passed_on_as_it_is(suite: Suite) -> None:
    suite.pytester.makepyfile(
        app="def echo(messages, my_parameter, max_tokens):\n    return f'{my_parameter} {max_tokens}'"
    )
    result = run(
        suite,
        (),
        "@benchmark('own', SAMPLES, solver=generate(max_tokens=8, params={'my_parameter': 7}), scorers=[contains()])",
    )
    assert result.ret == 0
    assert suite.records()[0]["transcript"]["answer"] == "7 8"


def test_a_missing_judge_is_one_message_before_anything_is_asked(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(
        app="""
def echo(messages, **params):
    open("asked", "a").write("x")
    return "Paris"
"""
    )
    declared = "@benchmark('own', SAMPLES, solver=generate(), scorers=[single()])"
    result = run(suite, workers, declared)
    # With CI in the environment pytest's last lines tell it again.
    text = result.stdout.str().partition("short test summary info")[0] + result.stderr.str()
    assert text.count("own: a scorer asks a judge, and this run has none: name one with --judge-model") == 1
    assert not (suite.path / "asked").exists()
    assert suite.run("--collect-only").ret == 0


def test_a_scorer_that_names_its_own_judge_needs_no_other(suite: Suite) -> None:
    suite.pytester.makepyfile(
        app="def echo(messages, **params):\n    return 'Paris'",
        own_judge="def answer(messages, **params):\n    return 'Score: 4'",
    )
    run(
        suite,
        (),
        "@benchmark('own', SAMPLES, solver=generate(), scorers=[single(['depth'], model='function:own_judge:answer')])",
    )
    assert suite.records()[0]["scores"] == {"depth": 4.0}


def test_arguments_for_a_demonstration_are_those_of_the_embedded_model_on_shipped_samples(suite: Suite) -> None:
    declared = "@benchmark('head_to_tail', temperature=0.5, shipped={'max_tokens': 3})"
    suite.pytester.makepyfile(
        app="def echo(messages, max_tokens, temperature):\n    return f'{max_tokens} {temperature}'"
    )
    run(suite, ("--limit=1", "--run=shipped"), declared)
    assert suite.records("shipped")[0]["transcript"]["answer"] == "32 0.5"
    suite.run("--limit=1", "--run=demonstration", "--model=local:smollm2", model=False)
    assert suite.records("demonstration")[0]["usage"]["completion_tokens"] == 3
    folder = suite.path / "data" / "head_to_tail"
    folder.mkdir(parents=True)
    (folder / "head_to_tail_movie.json").write_text(SMALL, encoding="utf-8")
    suite.run("--limit=1", "--run=official", "--data=data")
    assert suite.records("official")[0]["transcript"]["answer"] == "32 0.5"


SMALL = '{"head": [["Heat (1995)", "movie-director", "Who directed Heat?", "Michael Mann"]], "torso": [], "tail": []}'
