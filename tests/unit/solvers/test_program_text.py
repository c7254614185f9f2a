"""The program in a model's answer, in the forms in which models write it."""

from __future__ import annotations

import html
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.solvers.program_text import find_program

CODE = "total = sum([1, 2])\nprint(total)"
SIGNS = "total = sum(n for n in [1, 2] if n > 0 and n < 9)\nprint(f'{total}')"
FORMS = {
    "a fence of CommonMark": f"```python\n{CODE}\n```",
    "a fence that says py": f"```py\n{CODE}\n```",
    "a fence in capitals": f"```Python\n{CODE}\n```",
    "a fence that says Python 3": f"```python3\n{CODE}\n```",
    "a fence that says nothing": f"```\n{CODE}\n```",
    "tildes": f"~~~python\n{CODE}\n~~~",
    "four backticks": f"````python\n{CODE}\n````",
    "a fence in a list": f"1. So:\n   ```python\n   {CODE.replace(chr(10), chr(10) + '   ')}\n   ```",
    "a fence in a quote": f"> ```python\n> {CODE.replace(chr(10), chr(10) + '> ')}\n> ```",
    "an unclosed fence": f"```python\n{CODE}\n",
    "Windows line ends": f"```python\n{CODE}\n```".replace("\n", "\r\n"),
    "a blank before the language": f"``` python\n{CODE}\n```",
    "a file name after the language": f"```python:main.py\n{CODE}\n```",
    "attributes after the language": f"```python title=main\n{CODE}\n```",
    "R Markdown": f"```{{python}}\n{CODE}\n```",
    "IPython": f"```ipython\n{CODE}\n```",
    "the code tool of a model": f"```tool_code\n{CODE}\n```",
    "text before the fence": f"Here it is: ```python\n{CODE}\n```",
    "Chinese text before the fence": f"答案如下：```python\n{CODE}\n```",
    "text before the fence and after the block": f"Here: ```python\n{CODE}\n```\nDone",
    "a closing fence with a full stop": f"```python\n{CODE}\n```.",
    "a closing fence with a sentence": f"```python\n{CODE}\n``` This adds them.",
    "a closing fence with a box": f"```python\n{CODE}\n``` \\boxed{{1}}",
    "a closing fence with the end of a sequence": f"```python\n{CODE}\n```</s>",
    "a closing fence with the end of a message": f"```python\n{CODE}\n```<|im_end|>",
    "no closing fence and the end of a message": f"```python\n{CODE}<|im_end|>",
    "a closing fence on the last line of code": f"```python\n{CODE}```",
    "a block of output after it": f"```python\n{CODE}\n```\nOutput:\n```\n3\n```",
    "a block of another language after it": f"```python\n{CODE}\n```\n```bash\npip install numpy\n```",
    "an installation before it": f"```bash\npip install numpy\n```\n```python\n{CODE}\n```",
    "two blocks that need each other": "```python\ntotal = sum([1, 2])\n```\nThen\n```python\nprint(total)\n```",
    "a command of a notebook": f"```python\n!pip install numpy\n%matplotlib inline\n{CODE}\n```",
    "a command of a notebook in a block": (
        f"```python\ntry:\n    import json\nexcept ImportError:\n    !pip install json\n{CODE}\n```"
    ),
    "a command of a notebook after a blank": f"```python\n !pip install numpy\n{CODE}\n```",
    "a block of output that says Python": f"```python\n{CODE}\n```\nOutput:\n```python\n3\n```",
    "a block with a margin": f"```python\n    {CODE.replace(chr(10), chr(10) + '    ')}\n```",
    "a fence after a list's sign": f"- ```python\n  {CODE.replace(chr(10), chr(10) + '  ')}\n  ```",
    "blanks that do not break": f"```python\n{CODE.replace(' ', chr(160))}\n```",
    "prompts of the interpreter": f"```python\n>>> {CODE.replace(chr(10), chr(10) + '>>> ')}\n3\n```",
    "prompts of the interpreter alone": f"So:\n>>> {CODE.replace(chr(10), chr(10) + '>>> ')}\n3",
    "the end of a sentence in DeepSeek": f"```python\n{CODE}<｜end▁of▁sentence｜>",
    "the tag of a model": f"<|python_tag|>{CODE}<|eom_id|>",
    "indented code": f"So:\n\n    {CODE.replace(chr(10), chr(10) + '    ')}\n\nThat is all.",
    "code alone": CODE,
    "code after a sentence": f"This adds them:\n\n{CODE}",
    "HTML's escapes": f"```python\n{html.escape(SIGNS)}\n```",
    "an element of HTML": f"So: <pre><code class='x'>{html.escape(SIGNS)}</code></pre> It adds.",
    "fences as HTML's escapes": f"&#96;&#96;&#96;python\n{html.escape(SIGNS)}\n&#96;&#96;&#96;",
    "a text of a JSON object": json.dumps({"thought": "a sum", "code": SIGNS}),
    "a code span on each line": "So:\n`" + CODE.replace("\n", "`\n`") + "`\nIt adds.",
    "attributes in a quote": "> ```{.python}\n> " + CODE.replace("\n", "\n> ") + "\n> ```",
    "no fence before a block of output": f"So:\n\n{CODE}\n\nOutput:\n```\n3\n```",
    "code between sentences": f"This adds them:\n\n{CODE}\n\nIt prints the sum, three.",
}


@pytest.mark.parametrize("answer", FORMS.values(), ids=FORMS)
def test_the_program_of_an_answer_is_found_in_any_usual_form(answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = find_program(answer)
    assert found is not None
    exec(compile(found.code, "<test>", "exec"), {})
    assert capsys.readouterr().out == "3\n"


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        (FORMS["a fence of CommonMark"], "fence"),
        (FORMS["text before the fence"], "lenient fence"),
        (FORMS["two blocks that need each other"], "joined"),
        (FORMS["code alone"], "bare"),
    ],
)
def test_the_form_of_a_program_is_told(answer: str, form: str) -> None:
    found = find_program(answer)
    assert found is not None
    assert found.form == form


@pytest.mark.parametrize("answer", ["42", "Paris", "The answer is 42.", "", "a = 3", "\\boxed{7}", "`print(1)` prints"])
def test_prose_is_not_a_program(answer: str) -> None:
    assert find_program(answer) is None


def test_code_without_a_fence_may_be_excluded() -> None:
    assert find_program(CODE, allow_unfenced=False) is None


def test_a_block_that_does_not_parse_is_the_program_if_there_is_none_that_does() -> None:
    found = find_program("```python\nprint(1\n```")
    assert found is not None
    assert (found.code, found.form) == ("print(1\n", "fence")


ADD = "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(
    "answer",
    [
        f"```python\n{ADD}```\nFor example:\n```python\nprint(add(1, 2))\n```",
        f"```python\n{ADD}```\nTests:\n```python\nassert add(1, 2) == 3\n```",
        f"So: ```python\n{ADD}```.",
        ADD,
    ],
)
def test_the_block_that_defines_what_is_asked_for_is_found(answer: str) -> None:
    found = find_program(answer, wanted_names=["add"])
    assert found is not None
    assert found.code.strip().startswith("def add")


@given(st.text(alphabet="`~p python\n>print(1)=#!%", max_size=200))
def test_any_answer_has_a_program_or_none(answer: str) -> None:
    find_program(answer)
