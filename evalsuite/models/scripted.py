"""A model with scripted answers (`function:evalsuite.models.scripted:answer`), to test a CI workflow at no cost."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MODEL = "function:evalsuite.models.scripted:answer"
SCRIPT = "EVALSUITE_SCRIPT"  # Environment variable with the path of the script: a JSON object of answers by question.
DEFAULT_ANSWER = "I do not know."


def answer(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the scripted answer to the longest scripted question that occurs in the conversation.

    The answer is `I do not know.` without a script, or if the conversation lacks a scripted question.
    """
    file = os.environ.get(SCRIPT)
    said = "\n".join(str(message.get("content")) for message in messages)
    script: dict[str, str] = json.loads(Path(file).read_text("utf-8")) if file else {}
    known = [question for question in script if question and question in said]
    return script[max(known, key=len)] if known else DEFAULT_ANSWER
