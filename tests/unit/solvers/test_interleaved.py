"""Rounds of code and results: what is fed back, when it ends, and which words are the answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.core.types import Sample
from evalsuite.sandbox import Execution, TableFile
from evalsuite.solvers.program_text import find_last_boxed_answer, strip_latex
from evalsuite.solvers.programs import format_result, interleaved

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.core.types import Transcript

SAMPLE = Sample("s", "How many people?", metadata={"tables": {"df": TableFile(b"city,people\nOslo,709\nBergen,291\n")}})


@pytest.fixture
def solve(program_runner: Any, scripted: Any) -> Callable[..., Transcript]:
    """Solves the sample with a model that says these texts, all of them."""
    runner, sandbox = program_runner

    def one(*texts: str, **options: Any) -> Transcript:
        model = scripted(*texts)
        transcript: Transcript = runner.run(interleaved(sandbox=sandbox, **options)(SAMPLE, model))
        assert model.texts == [], "the model was asked for everything that it had to say"
        return transcript

    return one


def step(code: str) -> str:
    return f"Next.\n```python\n{code}\n```"


def test_variables_live_from_round_to_round_and_the_boxed_words_are_the_answer(
    solve: Callable[..., Transcript],
) -> None:
    transcript = solve(step("total = df.people.sum()"), step("print(total)"), r"So it is \boxed{1000}.")
    assert transcript.answer == "1000"
    assert transcript.facts == {
        "rounds": 2,
        "program": "ok",
        "sandbox": transcript.events[0]["tier"],
        "form": "fence",
        "finish": "stop",
    }
    assert [event["stdout"] for event in transcript.events] == ["", "1000\n"]
    assert [message.role for message in transcript.messages] == ["user", "assistant"] * 3
    assert "The code printed nothing." in transcript.messages[2].content
    assert "The code printed:\n1000\n\nGo on" in transcript.messages[4].content


def test_a_failure_is_shown_and_can_be_mended_in_the_next_round(solve: Callable[..., Transcript]) -> None:
    transcript = solve(step("print(df.persons.sum())"), step("print(df.people.sum())"), r"\boxed{1000}")
    assert transcript.answer == "1000"
    assert transcript.facts["program"] == "ok"
    assert "AttributeError" in transcript.events[0]["error"]
    assert "It did not run to its end:\nTraceback" in transcript.messages[2].content
    assert "has no attribute 'persons'" in transcript.messages[2].content


def test_after_the_last_round_an_answer_without_code_is_asked_for(solve: Callable[..., Transcript]) -> None:
    transcript = solve(step("x = 1"), step("x += 1"), step("print(x)"), "It is 2.")
    assert transcript.answer == "It is 2."
    assert transcript.facts["rounds"] == 3
    told = [message.content for message in transcript.messages if message.role == "user"]
    assert ["Write no more code: give the final answer" in text for text in told] == [False, False, False, True]


def test_code_in_the_final_answer_is_not_run(solve: Callable[..., Transcript]) -> None:
    transcript = solve(step("print(1)"), step("print(2)"), rounds=1)
    assert transcript.facts["rounds"] == 1
    assert transcript.answer == step("print(2)")


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_an_answer_without_code_ends_the_conversation_at_once(solve: Callable[..., Transcript], rounds: int) -> None:
    transcript = solve(r"\boxed{1000}", rounds=rounds)
    assert (transcript.answer, transcript.events) == ("1000", ())
    assert transcript.facts == {"rounds": 0, "program": "missing", "finish": "stop"}


def test_a_guess_before_the_last_result_is_not_the_answer(solve: Callable[..., Transcript]) -> None:
    assert solve(r"I guess \boxed{999}." + step("print(df.people.sum())"), "It is 1000.").answer == "It is 1000."


def test_a_round_that_hangs_is_told_and_the_next_starts_afresh_with_the_tables(
    solve: Callable[..., Transcript],
) -> None:
    texts = (step("x = 1\nwhile True: pass"), step("print('x' in globals(), len(df))"), "done")
    transcript = solve(*texts, timeout=3)
    assert [event["timed_out"] for event in transcript.events] == [True, False]
    assert transcript.events[1]["stdout"] == "False 2\n"
    assert "stopped after 3 s" in transcript.messages[2].content


def test_a_last_round_that_fails_is_in_the_facts(solve: Callable[..., Transcript]) -> None:
    assert solve(step("1/0"), "no idea", rounds=1).facts["program"] == "failed"
    assert solve(step("while True: pass"), "no idea", rounds=1, timeout=2).facts["program"] == "timed out"


def test_prompt_and_results_may_be_the_callers_words(solve: Callable[..., Transcript]) -> None:
    def result(execution: Execution, left: int) -> str:
        return f"out={execution.stdout!r} left={left}"

    transcript = solve(
        step("print(1)"), step("print(2)"), "end", rounds=2, prompt="Q: {input}", result=result, describe=None
    )
    assert [message.content for message in transcript.messages if message.role == "user"] == [
        "Q: How many people?",
        "out='1\\n' left=1",
        "out='2\\n' left=0",
    ]


def test_long_results_are_shown_by_their_beginning_and_end() -> None:
    shown = format_result(Execution("a" * 5000 + "z" * 5000, None, timed_out=False, seconds=1), 1)
    assert "a" * 2666 + "\n[... 6,001 characters ...]\n" + "z" * 1333 in shown
    assert len(shown) < 4300


@pytest.mark.parametrize(
    ("text", "boxed"),
    [
        (r"\boxed{42}", "42"),
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{ {a} {b{c}} }", "{a} {b{c}}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{a\}}", r"a\}"),
        (r"\boxed{\boxed{7}}", "7"),
        (r"$\boxed{Oslo}$.", "Oslo"),
        ("\\boxed{two\nlines}", "two\nlines"),
        (r"\boxed{}", ""),
        (r"\boxed{5} and \boxed{cut off", "5"),
        (r"\boxed{never closed", None),
        (r"\boxed 5", None),
        ("nothing", None),
    ],
)
def test_the_last_complete_box_is_read_with_its_nested_braces(text: str, boxed: str | None) -> None:
    assert find_last_boxed_answer(text) == (None if boxed is None else strip_latex(boxed))


nested = st.recursive(
    st.text("ab 1,", max_size=5),
    lambda inner: st.lists(inner, max_size=3).map(lambda xs: "{" + "".join(xs) + "}"),
    max_leaves=8,
)


@given(content=nested, before=st.text("ab{}\\ ", max_size=10), after=st.text("ab} ", max_size=10))
def test_any_balanced_content_comes_out_of_its_box(content: str, before: str, after: str) -> None:
    assert find_last_boxed_answer(f"{before}\\boxed{{{content}}}{after}") == strip_latex(content.strip())


def test_conversations_at_the_same_time_do_not_share_variables(program_runner: Any, scripted: Any) -> None:
    runner, sandbox = program_runner
    solver = interleaved(sandbox=sandbox, describe=None, rounds=2)

    async def three() -> list[Transcript]:
        texts = (step("x = globals().get('x', 0) + 1"), step("print(x)"), "end")
        return await asyncio.gather(*(solver(SAMPLE, scripted(*texts)) for _ in range(3)))

    assert [transcript.events[1]["stdout"] for transcript in runner.run(three())] == ["1\n"] * 3


def test_any_number_of_boxes_that_never_close_is_read_once() -> None:
    endless = r"\boxed{" * 200_000
    assert find_last_boxed_answer(endless) is None
    assert find_last_boxed_answer(r"\boxed{7} " + endless) == "7"


def test_a_box_behind_a_line_break_of_latex_is_a_box() -> None:
    assert find_last_boxed_answer(r"so \\\boxed{a\\}") == r"a\\"


@pytest.mark.parametrize(
    ("latex", "words"),
    [
        (r"1{,}234", "1,234"),
        (r"1\,234", "1234"),
        (r"12.5\%", "12.5%"),
        ("12.5% of it", "12.5% of it"),
        ("$5$", "5"),
        (r"\(5\)", "5"),
        ("$5 or $6", "$5 or $6"),
        (r"\$5", "$5"),
        (r"\text{Paris}", "Paris"),
        (r"\textbf{\text{New~York}}", "New York"),
        (r"\frac{1}{2}", r"\frac{1}{2}"),
        ("{a, b}", "{a, b}"),
        ("巴黎", "巴黎"),
    ],
)
def test_a_boxed_answer_is_read_without_what_only_sets_it(latex: str, words: str) -> None:
    assert find_last_boxed_answer(rf"so \boxed{{{latex}}}.") == words


@given(text=st.text("abc 123.,:;!?", max_size=40))
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert strip_latex(text) == text.strip()
