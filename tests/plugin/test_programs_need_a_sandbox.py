"""A run whose cases need a sandbox that cannot be had stops with one message before it asks anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.sandbox.environments import get_own_environment
from tests.wheels import needs_uv, write_wheel

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

PROGRAMS = """
from evalsuite import Sample, benchmark, exact_match, generate
from evalsuite.solvers import program_of_thought
from evalsuite.sandbox import Sandbox

SAMPLES = [Sample(id=str(n), input=f"```python\\nprint({n})\\n```", target=str(n)) for n in range(3)]

@benchmark("words", SAMPLES, solver=generate(), scorers=[exact_match()])
def test_words(scores):
    pass

PROGRAMS = program_of_thought(prompt="{input}", sandbox=Sandbox(tiers=TIERS))

@benchmark("programs", SAMPLES, solver=PROGRAMS, scorers=[exact_match()])
def test_programs(scores):
    assert scores["exact_match"] == 1.0
"""


def run(suite: Suite, *args: str, tiers: str = "()") -> pytest.RunResult:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_it=PROGRAMS.replace("TIERS", tiers))
    return suite.run(*args)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_without_a_sandbox_nothing_is_asked_and_one_message_says_why(
    suite: Suite, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest then leaves long messages whole in its short summary, where this one would stand a second time.
    monkeypatch.setenv("CI", "true")
    result = run(suite, *workers)
    text = result.stdout.str().partition("short test summary info")[0] + result.stderr.str()
    assert "programs that a model writes run in 3 cases of programs" in text
    assert "Sandbox(tiers=()) names no tier" in text
    assert text.count("Nothing was asked") == 1
    assert "evalsuite doctor" in text
    assert "INTERNALERROR" not in text
    assert result.ret != 0
    assert suite.runs() == []


def test_a_sandbox_that_there_is_not_is_one_message(suite: Suite) -> None:
    result = run(suite, "--sandbox", "gvisor")
    text = result.stdout.str() + result.stderr.str()
    assert "--sandbox gvisor: this is not a tier; use auto, bubblewrap, landlock, docker:IMAGE" in text
    assert "INTERNALERROR" not in text
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_cases_that_are_not_chosen_need_no_sandbox(suite: Suite) -> None:
    run(suite, "-k", "words").assert_outcomes(passed=3)


def test_collecting_alone_needs_no_sandbox(suite: Suite) -> None:
    assert run(suite, "--collect-only", "-q").ret == 0


def test_where_there_is_a_sandbox_programs_run(suite: Suite) -> None:
    tiers = "('bubblewrap', 'landlock')"
    run(suite, "-k", "programs", tiers=tiers).assert_outcomes(passed=3)


TOOLS = """
from evalsuite import Sample, benchmark, exact_match
from evalsuite.solvers import program_of_thought

PROGRAM = "import ruler; print(ruler.LENGTH); open('length.txt', 'w').write(ruler.LENGTH)"
SAMPLES = [Sample(id="one", input=f"```python\\n{PROGRAM}\\n```", target="1.0")]

@benchmark("tools", SAMPLES, solver=program_of_thought(prompt="{tables}\\n{input}"), scorers=[exact_match()])
def test_tools(scores):
    assert scores["exact_match"] == 1.0
"""


@needs_uv
@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_named_environment_is_in_prompt_record_and_report_and_files_are_kept(
    suite: Suite, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSUITE_CACHE", str(suite.path / "cache"))
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_it=TOOLS)
    (suite.path / "programs.txt").write_text(f"{write_wheel(suite.path)}\n")
    suite.run("-oevalsuite_program_env=programs.txt", *workers, fresh=True).assert_outcomes(passed=1)
    named = suite.records()[0]
    assert "Programs run in Python 3." in named["transcript"]["messages"][0]["content"]
    assert "programs.txt (Python 3." in suite.rendered()
    assert named["fingerprints"]["programs"] != get_own_environment().fingerprint
    (artefact,) = (suite.runs()[-1] / "artefacts").iterdir()
    assert artefact.name.endswith("-1-length.txt")
    assert artefact.read_text() == "1.0"
    assert named["transcript"]["events"][0]["files"] == [{"name": "length.txt", "text": "1.0"}]


def test_without_the_environment_the_program_lacks_its_package_and_the_record_shows_it(suite: Suite) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_it=TOOLS)
    suite.run().assert_outcomes(failed=1)
    (own,) = suite.records()
    assert own["facts"]["program"] == "package missing"
    assert own["facts"]["package"] == "ruler"
    assert own["fingerprints"]["programs"] == get_own_environment().fingerprint


@needs_uv
@pytest.mark.parametrize(
    ("option", "outcome", "environment"),
    [((), "passed", "programs.txt"), (("-oevalsuite_program_env=own",), "failed", None)],
)
def test_a_solver_names_the_usual_environment_of_its_programs_and_the_option_overrides_it(
    suite: Suite, option: tuple[str, ...], outcome: str, environment: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSUITE_CACHE", str(suite.path / "cache"))
    (suite.path / "test_capitals.py").unlink()
    own = 'solver=program_of_thought(prompt="{tables}\\n{input}", sandbox=Sandbox(usual="programs.txt"))'
    tools = TOOLS.replace('solver=program_of_thought(prompt="{tables}\\n{input}")', own)
    suite.pytester.makepyfile(test_it=f"from evalsuite.sandbox import Sandbox\n{tools}")
    (suite.path / "programs.txt").write_text(f"{write_wheel(suite.path)}\n")
    suite.run(*option, fresh=True).assert_outcomes(**{outcome: 1})
    (record,) = suite.records()
    assert record["facts"].get("environment") == environment


def test_an_unknown_environment_is_one_message(suite: Suite) -> None:
    result = suite.run("-oevalsuite_program_env=treb-1999", fresh=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "evalsuite_program_env treb-1999: no environment has this name (own, treb-2025)" in result.stderr.str()
    assert suite.runs() == []
