"""Reading the final answer out of what a model wrote in TCoT mode."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from evalsuite.solvers.boxed import unboxed

# A reply that opens ever deeper objects costs time squared; no answer stands so far from the end.
LONGEST = 100_000
# A backslash of LaTeX's, which JSON does not know: `12.5\%`.
_LATEX = re.compile(r'(?<!\\)\\(?!["\\/bfnrtu])')
# And those that it takes for a backspace and a tab.
_READ_AS_SIGNS = (("\x08oxed{", "\\boxed{"), ("\text{", "\\text{"))
_JSON = json.JSONDecoder(strict=False)


def answer_in_words(text: str) -> tuple[str, bool]:
    """The answer, and whether it came in the JSON object that was asked for.

    The last JSON object with the key `answer` counts, within a longer text or not; where there is none, the
    text itself is the answer. Lists are joined by commas, and a box around the whole answer is taken off.
    """
    for written in (text, _LATEX.sub(r"\\\\", text)):
        for value in reversed(json_objects(written)):
            if "answer" in value:
                with suppress(RecursionError):  # hundreds of lists in each other are no answer
                    return unboxed(_as_text(value["answer"])), True
    return unboxed(text.strip()), False


def json_objects(text: str) -> list[dict[str, Any]]:
    """The outermost JSON objects of a text's last 100,000 characters, in their order."""
    text = text[-LONGEST:]
    objects, place = [], text.find("{")
    while place >= 0:
        try:
            value, end = _JSON.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            objects.append(value)
        place = text.find("{", end)
    return objects


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_as_text, value))
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    text: str = value
    for sign, latex in _READ_AS_SIGNS:
        text = text.replace(sign, latex)
    return text.strip()
