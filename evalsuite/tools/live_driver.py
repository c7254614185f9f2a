"""Runs inside the sandbox: imports one published tool.py, and calls one of its functions.

Standard input is `{"module": ..., "name": ..., "arguments": {...}, "executes_code": ...}`. Standard output gets two
lines: one when the driver starts, one with `{"result": ...}` or `{"error": ...}`. If the file, or a package that it
imports, is missing, the second line is `{"missing": ...}` instead. This file imports nothing of evalsuite, because the
host passes it to the sandbox as source text.
"""

import importlib
import json
import os
import resource
import sys
from typing import Any

MEMORY, FILE, PROCESSOR_SECONDS = 2 << 30, 32 << 20, 60


def _call_published_function(call: dict[str, Any]) -> dict[str, object]:
    # The errors that mean that this machine lacks a module. While the file is imported, these are all ImportErrors.
    # During the call, they are ModuleNotFoundErrors; if the tool runs the model's code, no error has this meaning,
    # because the model may have invented the module.
    missing: type[ImportError] | tuple[()] = ImportError
    try:
        module = importlib.import_module(call["module"])
        missing = () if call["executes_code"] else ModuleNotFoundError
        return {"result": getattr(module, call["name"])(**call["arguments"])}
    except missing as error:
        return {"missing": str(error)}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a published file raises
        return _make_error_answer(error)


def _make_error_answer(error: BaseException) -> dict[str, object]:
    return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Set limits, run the call, and write the answer to a stream that does not contain the tool's output."""
    for kind, limit in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, FILE),
        (resource.RLIMIT_CPU, PROCESSOR_SECONDS),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    answers.write("started\n")
    answers.flush()
    sys.path[:0] = ["/library"]
    answer = _call_published_function(json.loads(sys.stdin.buffer.read()))
    try:
        line = json.dumps(answer, default=str)
    except Exception as error:  # noqa: BLE001 - a result that JSON cannot hold, whose text may raise anything
        line = json.dumps(_make_error_answer(error))
    answers.write(line + "\n")
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
