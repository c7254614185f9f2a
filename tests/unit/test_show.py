"""`evalsuite report case` prints one case, and the command that runs it again."""

from __future__ import annotations

from evalsuite.commands.report import _list_case_lines
from evalsuite.core.types import Record


def test_the_command_to_run_a_case_again_names_the_model_s_address() -> None:
    record = Record(
        case="test_it.py::test_it[a b]", benchmark="own", sample="a b", epoch=1, model="qwen", outcome="passed"
    )
    (*_, again) = _list_case_lines(record, "http://127.0.0.1:8000/v1", full=False)
    assert again.split(None, 1)[1] == (
        "pytest 'test_it.py::test_it[a b]' --model=qwen --model-base-url=http://127.0.0.1:8000/v1"
    )
