"""Parts of the solvers that run a model's programs: prompts over tables, endings and events of programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SandboxError
from evalsuite.core.types import Message, Sample
from evalsuite.sandbox.execution import as_event

if TYPE_CHECKING:
    from evalsuite.sandbox import Execution, Sandbox, TableSource

# A template in which `{input}` and `{tables}` stand for the sample's input and for its tables' description,
# or a function of (sample, description) that returns the user's message or a whole conversation.
Prompt = str | Callable[[Sample, str], "str | Sequence[Message]"]
# The tables of a sample, by the names of the variables that a program finds them in.
Tables = Callable[[Sample], "Mapping[str, TableSource]"]
# The program that describes tables, given the names of their variables; what it prints is the description.
Describe = Callable[[Sequence[str]], str]

# A name with a dot is not a missing package: its parent exists, so the model is wrong about it.
_MISSING_PACKAGE = re.compile(
    r"ModuleNotFoundError: No module named '([^'.]+)'$"
    r"|ImportError: Missing optional dependency '([^'.]+)'|ImportError: `Import ([^`.]+)` failed"
)
_DESCRIBE = """
for _name in {names!r}:
    _table = globals()[_name]
    _small = _table.shape[0] < 50 and _table.shape[1] < 20
    print(f"`{{_name}}` has {{_table.shape[0]}} rows and {{_table.shape[1]}} columns.")
    print("Column names:", list(_table.columns))
    _table.info(memory_usage=False)  # ends without a newline
    print()
    print("The whole table:" if _small else "Its first ten rows:")
    print((_table if _small else _table.head(10)).to_csv(sep="\t", index=False), end="")
"""


def metadata_tables(sample: Sample) -> Mapping[str, TableSource]:
    """Return the tables that the sample's metadata name, as `{"tables": {"df": "path/to.csv"}}`."""
    tables: Mapping[str, TableSource] = sample.metadata.get("tables", {})
    return tables


def read_tables(tables: Tables, sample: Sample) -> dict[str, TableSource]:
    """Read a sample's tables; files become their content."""
    from evalsuite.sandbox import TableFile

    return {
        name: TableFile.read(source) if isinstance(source, (str, Path)) else source
        for name, source in tables(sample).items()
    }


def describe_tables(names: Sequence[str]) -> str:
    """Write a program that prints each table's shape, columns and `info()`, then all or its first ten rows.

    A table is shown whole below 50 rows and 20 columns, as in TReB (arXiv 2506.18421, section 4).
    """
    return _DESCRIBE.format(names=list(names))


async def description(sandbox: Sandbox, tables: Mapping[str, TableSource], describe: Describe | None) -> str:
    """Describe what can be imported, and the tables by the output of `describe`; empty if that is None."""
    if describe is None:
        return ""
    installed = f"Programs run in {sandbox.environment.mentioned}; nothing can be installed."
    if not tables:
        return installed
    execution = await sandbox.run(describe(list(tables)), tables)
    if execution.error is not None:
        raise SandboxError(f"the tables {', '.join(tables)} could not be described: {execution.error}")
    described = execution.stdout.rstrip("\n")
    return f"{installed}\n\n{described}"


def make_messages(prompt: Prompt, sample: Sample, tables: str) -> tuple[Message, ...]:
    """Make the messages; a template fills the last message of an input that is a conversation."""
    if callable(prompt):
        request = prompt(sample, tables)
        return (Message("user", request),) if isinstance(request, str) else tuple(request)
    if isinstance(sample.input, str):
        return (Message("user", _fill(prompt, sample.input, tables)),)
    *before, last = sample.input
    return (*before, Message(last.role, _fill(prompt, last.content, tables)))


def _fill(template: str, question: str, tables: str) -> str:
    # In one pass and not by str.format: all three texts may hold braces of their own.
    values = {"{input}": question, "{tables}": tables}
    return re.sub(r"\{(?:input|tables)\}", lambda match: values[match[0]], template)


def verdict(execution: Execution) -> str:
    """Say how a program ended: `ok`, `printed nothing`, `failed`, `package missing` or `timed out`."""
    if execution.timed_out:
        return "timed out"
    if execution.error is None:
        return "ok" if execution.stdout.strip() else "printed nothing"
    return "package missing" if missing_package(execution) else "failed"


def missing_package(execution: Execution) -> str:
    """Name the package whose absence ended a program, by the last line of its traceback; else empty."""
    last = (execution.error or "").strip().rpartition("\n")[2]
    package = _MISSING_PACKAGE.match(last)
    return next(filter(None, package.groups())) if package else ""


def ending(execution: Execution) -> dict[str, Any]:
    """Say how a program ended, for the facts of its transcript.

    `program` is its verdict, `sandbox` the tier that held it, `package` the one that it lacked, `files` the names of
    those that it wrote.
    """
    package, files = missing_package(execution), [file.name for file in execution.files]
    return {
        "program": verdict(execution),
        "sandbox": execution.tier,
        **({"package": package} if package else {}),
        **({"files": ", ".join(files)} if files else {}),
    }


def named_environment(sandbox: Sandbox) -> dict[str, str]:
    """Name the environment of programs for the facts of a transcript, unless it is this process's own."""
    environment = sandbox.environment
    return {} if environment.is_own else {"environment": environment.name}


def event(code: str, execution: Execution) -> Mapping[str, Any]:
    """Describe a program that was run, for `Transcript.events`."""
    return {
        "kind": "program",
        "code": code,
        "stdout": execution.stdout,
        "error": execution.error,
        "timed_out": execution.timed_out,
        "seconds": execution.seconds,
        "tier": execution.tier,
        **as_event(execution.files),
    }
