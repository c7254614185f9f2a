"""One program, run: what is asked, which block runs, what becomes of each kind of ending."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SandboxError
from evalsuite.core.types import Message, Sample
from evalsuite.sandbox import Limits, Sandbox, TableFile
from evalsuite.solvers.program_text import find_program
from evalsuite.solvers.programs import describe_tables, make_messages, program_of_thought

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from evalsuite.core.types import Transcript

CITIES = TableFile(b"city,people\nOslo,709\nBergen,291\n")


@pytest.fixture
def solve(program_runner: Any, scripted: Any) -> Callable[..., Transcript]:
    """Solves one sample over the cities' table with a model that says this."""
    runner, sandbox = program_runner

    def one(text: str, sample: Sample | None = None, **options: Any) -> Transcript:
        asked = sample or Sample("s", "How many?", metadata={"tables": {"df": CITIES}})
        transcript: Transcript = runner.run(program_of_thought(sandbox=sandbox, **options)(asked, scripted(text)))
        return transcript

    return one


def block(code: str) -> str:
    return f"I shall add them up.\n```python\n{code}\n```\nThat is all."


def test_what_the_program_prints_is_the_answer(solve: Callable[..., Transcript]) -> None:
    transcript = solve(block("print(df.people.sum())"))
    assert transcript.answer == "1000"
    assert transcript.facts == {
        "program": "ok",
        "sandbox": transcript.events[0]["tier"],
        "form": "fence",
        "finish": "stop",
    }
    assert transcript.reasoning == "thought"
    event = dict(transcript.events[0])
    assert event.pop("seconds") > 0
    assert event.pop("tier") in {"bubblewrap", "landlock"}
    assert event == {
        "kind": "program",
        "code": "print(df.people.sum())\n",
        "stdout": "1000\n",
        "error": None,
        "timed_out": False,
    }
    assert [message.role for message in transcript.messages] == ["user", "assistant"]


def test_the_model_is_shown_question_and_tables_and_no_path(solve: Callable[..., Transcript], tmp_path: Any) -> None:
    path = tmp_path / "cities.csv"
    path.write_bytes(CITIES.content)
    sample = Sample("s", "How {many} {tables}?", metadata={"tables": {"towns": str(path)}})
    transcript = solve(block("print(1)"), sample)
    prompt = transcript.messages[0].content
    assert "Question: How {many} {tables}?" in prompt
    assert "`towns` has 2 rows and 2 columns." in prompt
    assert "1   people  2 non-null      int64" in prompt
    assert "Bergen\t291" in prompt
    assert str(tmp_path) not in prompt


def test_generation_parameters_reach_the_model(program_runner: Any, scripted: Any) -> None:
    runner, sandbox = program_runner
    model = scripted("no program")
    runner.run(program_of_thought(sandbox=sandbox, max_tokens=9, temperature=0)(Sample("s", "?"), model))
    assert model.params == {"max_tokens": 9, "temperature": 0}


def test_a_large_table_is_shown_by_its_first_ten_rows(solve: Callable[..., Transcript]) -> None:
    table = TableFile(b"n\n" + b"".join(b"%d\n" % (1000 + n) for n in range(50)))
    transcript = solve(block("print(1)"), Sample("s", "?", metadata={"tables": {"df": table}}))
    assert "Its first ten rows:" in transcript.messages[0].content
    assert "1009" in transcript.messages[0].content
    assert "1010" not in transcript.messages[0].content


@pytest.mark.parametrize(
    ("text", "state", "error"),
    [
        ("It is 1000.", "missing", None),
        ("```sql\nSELECT 1\n```", "missing", None),
        (block("print(df.persons.sum())"), "failed", "has no attribute 'persons'"),
        (block("print(1000"), "failed", "SyntaxError"),
        (block("print(1000)\nimport os; os._exit(1)"), "failed", "ended with status 1"),
        (block("print(1000)\nwhile True: pass"), "timed out", "stopped after 3 s"),
        (block("while True: print('1' * 9999)"), "failed", "were printed"),
        (block("import no_such_package"), "package missing", "no_such_package"),
        (block("import pandas.no_such_module"), "failed", "no_such_module"),
        (block("try:\n    import no_such_package\nexcept ImportError:\n    1 / 0"), "failed", "ZeroDivision"),
    ],
)
def test_without_a_program_that_ends_well_the_answer_is_empty_and_the_facts_say_why(
    solve: Callable[..., Transcript], text: str, state: str, error: str | None
) -> None:
    transcript = solve(text, timeout=3)
    assert transcript.answer == ""
    assert transcript.facts["program"] == state
    assert transcript.facts.get("package") == ("no_such_package" if state == "package missing" else None)
    assert [error in event["error"] for event in transcript.events] == ([True] if error else [])


@pytest.mark.parametrize(
    "code",
    [
        "df = pd.read_csv('cities.csv') if __import__('os').path.exists('cities.csv') else df\nprint(len(df))",
        "print(len(df))\nexit()",
        "import os\nos.system('pip install pandas')\nprint(len(df))",
    ],
)
def test_no_program_is_filtered_for_what_it_says(solve: Callable[..., Transcript], code: str) -> None:
    assert solve(block(code)).answer.splitlines()[-1] == "2"


def test_the_prompt_may_be_a_function_and_tables_may_come_from_anywhere(solve: Callable[..., Transcript]) -> None:
    def prompt(sample: Sample, tables: str) -> list[Message]:
        return [Message("system", "Program."), Message("user", f"{sample.input} {tables!r}")]

    options = {"prompt": prompt, "tables": lambda _: {"towns": CITIES}, "describe": None}
    transcript = solve(block("print(towns.city[0])"), Sample("s", "Which?"), **options)
    assert transcript.messages[:2] == (Message("system", "Program."), Message("user", "Which? ''"))
    assert transcript.answer == "Oslo"


def test_a_table_that_cannot_be_loaded_is_an_error_of_the_case(solve: Callable[..., Transcript]) -> None:
    with pytest.raises(SandboxError, match=r"missing\.csv cannot be read"):
        solve(block("print(1)"), Sample("s", "?", metadata={"tables": {"df": "missing.csv"}}))


def test_a_table_is_described_once_until_its_file_changes(program_runner: Any, scripted: Any, tmp_path: Path) -> None:
    runner, sandbox = program_runner
    file = tmp_path / "cities.csv"
    file.write_bytes(b"city\nOslo\n")
    written = 0

    def describe(names: Sequence[str]) -> str:
        nonlocal written
        written += 1
        return describe_tables(names)

    solver = program_of_thought(sandbox=sandbox, describe=describe)

    async def ask_twice() -> list[Any]:
        model = scripted(*[block("print(1)")] * 2)
        samples = [Sample(name, "How many?", metadata={"tables": {"df": file}}) for name in ("a", "b")]
        await asyncio.gather(*(solver(sample, model) for sample in samples))
        return [asked[-1].content for asked in model.asked]

    first, second = runner.run(ask_twice())
    assert "Oslo" in first == second
    assert written == 1
    file.write_bytes(b"city\nBergen\n")
    assert all("Bergen" in prompt for prompt in runner.run(ask_twice()))
    assert written == 2


def test_a_description_that_fails_is_an_error_of_the_case(solve: Callable[..., Transcript]) -> None:
    with pytest.raises(SandboxError, match=r"the tables df could not be described: [\s\S]*ZeroDivisionError"):
        solve(block("print(1)"), describe=lambda names: "1/0")


def test_without_tables_only_what_is_installed_is_described(solve: Callable[..., Transcript]) -> None:
    transcript = solve(block("print(6 * 7)"), Sample("s", "6 x 7?"), prompt="{input}{tables}")
    assert transcript.answer == "42"
    assert str(transcript.messages[0].content).startswith("6 x 7?Programs run in Python 3.")


def test_a_template_fills_the_last_message_of_a_conversation() -> None:
    talk = (Message("system", "Be {input}."), Message("user", "How many?"))
    filled = make_messages("Q: {input} T: {tables}", Sample("s", talk), "{input}")
    assert filled == (Message("system", "Be {input}."), Message("user", "Q: How many? T: {input}"))


def test_closing_the_solver_ends_its_own_sandbox_and_no_other() -> None:
    async def closed() -> list[bool]:
        shared = Sandbox(limits=Limits(), preload=())
        await shared.run("pass")
        lent, own = program_of_thought(sandbox=shared), program_of_thought()
        own.sandbox.preload = ()
        await own.sandbox.run("pass")
        await lent.aclose()
        await own.aclose()
        state = [shared._state is None, own.sandbox._state is None]
        await shared.aclose()
        return state

    assert asyncio.run(closed()) == [False, True]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\na\n```", "a\n"),
        ("```python\na\n```\nno:\n```py\nb\n```", "b\n"),
        ("```Python3\na\n```", "a\n"),
        ("``` python title=x\na\n```", "a\n"),
        ("```python\na\n```\n```\noutput\n```", "a\n"),
        ("```\na\n```", "a\n"),
        ("```json\n{}\n```\n```\na\n```", "a\n"),
        ("~~~python\na\n~~~", "a\n"),
        ("````python\n'''\n```\n'''\n````", "'''\n```\n'''\n"),
        ("  ```python\n  a\n  ```", "a\n"),
        ("1. so:\n    ```python\n    if a:\n        b\n    ```", "if a:\n    b\n"),
        ("   ```python\n   a\n\n b\n   ```", "a\n\nb\n"),
        ("> ```python\n> a\n>\n> b\n> ```", "a\n\nb\n"),
        ("- x\n\t```python\n\ta\n\t```", "a\n"),
        ("```python\n'''\n```text\n'''\n```", "'''\n```text\n'''\n"),
        ("~~~~python\n'''\n~~~\n'''\n~~~~~", "'''\n~~~\n'''\n"),
        ("```python\nprint(1)", "print(1)"),
        ("text\r\n```python\r\na\r\n```\r\n", "a\r\n"),
        ("```python\n```", ""),
        ("```json\n{}\n```", None),
        ("print(1)", None),
        ("", None),
    ],
)
def test_the_last_python_block_is_the_program(text: str, code: str | None) -> None:
    found = find_program(text, allow_unfenced=False)
    assert (found.code if found else None) == code


def test_the_describing_program_names_each_table_by_its_variable(solve: Callable[..., Transcript]) -> None:
    code = describe_tables(["df", "other"])
    tables = {"df": CITIES, "other": TableFile(b"1,2\n", 0)}
    transcript = solve(block(code), Sample("s", "?"), tables=lambda _: tables)
    assert "`df` has 2 rows and 2 columns." in transcript.answer
    assert "`other` has 1 rows and 2 columns.\nColumn names: [0, 1]" in transcript.answer


@pytest.mark.parametrize("line", ["`" * 500_000, "~" * 500_000, " " * 500_000 + "``", "```" + " " * 500_000])
def test_a_line_without_end_holds_no_code(line: str) -> None:
    found = find_program(line, allow_unfenced=False)
    assert found is None or not found.code
