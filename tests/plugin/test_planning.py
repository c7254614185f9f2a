"""`pytest --plan` and `evalsuite plan`: what a suite will take, with nothing asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import ChatServer
    from tests.plugin.conftest import Suite

MANY = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=str(n), input="a" if n % 2 else "b", target="a") for n in range(40)]

@benchmark("letters", SAMPLES, solver=generate(max_tokens=8), scorers=[exact_match()])
def test_letters(scores):
    assert scores["exact_match"] == 1.0
"""


def test_a_plan_says_what_cases_take_and_which_loss_they_show(suite: Suite) -> None:
    suite.pytester.makepyfile(test_letters=MANY)
    assert suite.run("--run=before", "--epochs=2", "test_letters.py").ret == 1
    result = suite.run("--plan", "--baseline=before", "--epochs=2", "-oevalsuite_detect=0.05", "test_letters.py")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["letters *80 *80 *", "letters.exact_match *40 *2 *", "*0.05 needs * more questions (* instead of 40)*"]
    )
    assert [run.name for run in suite.runs()] == ["before"]


def test_a_plan_for_another_model_without_a_price_does_not_announce_the_baseline_s_dollars(
    suite: Suite, chat_server: ChatServer
) -> None:
    suite.model = ("--model=known", f"--model-base-url={chat_server.url}")
    suite.run("--run=before", "--price=known=1000/1000")
    again = suite.run("--plan", "--baseline=before").stdout.str()
    suite.model = ("--model=unknown", f"--model-base-url={chat_server.url}")
    other = suite.run("--plan", "--baseline=before").stdout.str()
    note = "dollars are unknown where a model has no price: --price MODEL=PROMPT/COMPLETION"
    assert ("US dollars" in again, note in again) == (True, False), again
    assert ("US dollars" in other, note in other) == (False, True), other


def test_a_plan_without_a_baseline_counts_cases_and_says_what_is_missing(suite: Suite) -> None:
    result = suite.run("--plan")
    result.stdout.fnmatch_lines(["capitals *3*", "*--baseline RUN"])
    assert not suite.runs()


def test_the_command_is_the_same_plan(suite: Suite) -> None:
    suite.run("--run=before")
    result = suite.pytester.run("evalsuite", "plan", ".", "--baseline=before", "--model=function:app:echo")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["capitals *3 *3 *"])


def test_a_baseline_that_is_not_there_is_one_message(suite: Suite) -> None:
    result = suite.run("--plan", "--baseline=never")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*no run 'never'*"])


def test_a_loss_of_everything_is_no_loss_to_plan_for(suite: Suite) -> None:
    result = suite.run("--plan", "-oevalsuite_detect=1")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*evalsuite_detect 1: it lies between 0 and 1*"])


def test_the_command_plans_each_of_several_models(suite: Suite) -> None:
    result = suite.pytester.run("evalsuite", "plan", ".", "--model=function:app:echo", "--model=gpt-4")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*model 1 of 2: function:app:echo", "capitals *3*", "*model 2 of 2: gpt-4"])
    assert not suite.runs()
