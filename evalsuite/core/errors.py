"""The exceptions of evalsuite, and functions that write or shorten messages. All lengths are in characters.

Each message says what failed, the value that caused the failure, the reason, and the remedy. Code that calls another
library converts the library's exceptions to these classes with `raise ... from`.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class EvalsuiteError(Exception):
    """Base class of evalsuite's exceptions. The user sees the message alone, without a traceback."""


class SettingsError(EvalsuiteError):
    """An option, a gate or a benchmark's declaration is invalid."""


class DatasetError(EvalsuiteError):
    """A file of samples does not have the expected contents.

    Args:
        path: the file.
        where: line, record or key within the file; empty if the error concerns the whole file.
        found: the contents of the file at `where`.
        expected: the contents that should be at `where`.
    """

    def __init__(self, path: Path | str, where: str, found: str, expected: str) -> None:
        self.path, self.where, self.found, self.expected = path, where, found, expected
        place = f"{path}, {where}" if where else str(path)
        # If a file is missing, write "no such file" instead of "found no such file".
        problem = found if found.startswith("no such ") else f"found {found}"
        super().__init__(f"{place}: {problem}, expected {expected}")

    def __reduce__(self) -> "tuple[type[DatasetError], tuple[Path | str, str, str, str]]":
        """Make copies and pickles of the error keep `path`, `where`, `found` and `expected`."""
        return (type(self), (self.path, self.where, self.found, self.expected))


class RunError(EvalsuiteError):
    """A run's folder is missing or damaged, or cannot be written."""


class InternalError(EvalsuiteError):
    """Evalsuite itself failed because of a mistake in its own code; no user's input can cause this error."""


NEVER_EXCUSED = frozenset({RunError.__name__, InternalError.__name__})
"""Error classes that `evalsuite_max_error_share` never tolerates, because model, judge and suite do not cause them."""


class ModelError(EvalsuiteError):
    """A model call failed permanently: it will not be retried."""


class BackendUnavailable(ModelError):  # noqa: N818 - reads as what it says
    """The model cannot be reached at all: a Python extra, an API key or the server is missing."""


class RequestRefused(ModelError):  # noqa: N818
    """The server rejected the request permanently; the message quotes the server."""


class CallFailed(ModelError):  # noqa: N818
    """Every retry failed."""


class SpendLimitReached(ModelError):  # noqa: N818
    """The next call would exceed the spend limit."""


class ReplayMiss(ModelError):  # noqa: N818
    """A replayed run does not contain this completion."""


class BatchNotAwaited(ModelError):  # noqa: N818
    """The request is in an unfinished batch, for which this session does not wait."""


class SolverError(EvalsuiteError):
    """A solver returned something that is not an answer, or a solver's application failed."""


class JudgeError(EvalsuiteError):
    """A judge's answers could not be parsed, even after repeated requests.

    Args:
        message: the name of the judge, and the problem with its last answer.
        log: the whole conversation with the judge, as JSON data.
    """

    def __init__(self, message: str, log: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.log = log


class ScoringError(EvalsuiteError):
    """A scorer crashed, or a score is unknown or not a finite number."""


class ToolError(EvalsuiteError):
    """A tool could not be run at all. If a tool runs but fails, the model is told and no ToolError is raised."""


class SandboxError(EvalsuiteError):
    """A program could not be run. If a program runs and fails, `Execution.error` describes the failure instead."""


class SandboxUnavailable(SandboxError):  # noqa: N818
    """No kind of sandbox works on this machine; the message says how to get a working sandbox."""


CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor, set its colours or reverse the text's direction; not tabs and line ends."""


def escape_for_terminal(text: str) -> str:
    """Sanitise a server's or model's text: remove terminal escape sequences and commands to the CI service.

    GitHub's runner finds `::set-output ...::` at the start of a line, and `##[set-output ...]` anywhere in it. A line
    also starts after U+2028 and U+2029, because `splitlines` splits there.

    A lone surrogate becomes a question mark, because it cannot be encoded for terminals or other processes.
    """
    whole = text.encode("utf-8", "replace").decode("utf-8")
    clean = re.sub(r"(^|[\n\u2028\u2029])(\s*)::", r"\1\2: :", CONTROL.sub("", whole))
    return re.sub(r"##(?=\w*\[)", "# #", clean)


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters that make a spreadsheet treat a cell as a formula; an apostrophe is put before such a text."""


def escape_formula(value: Any) -> Any:
    """Escape a text that a spreadsheet would run as a formula; leave numbers unchanged."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def get_message(error: BaseException) -> str:
    """Return an exception's message; if its `__str__` raises, return a text that states this."""
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - whatever the user's code raises
        return f"its message cannot be read: __str__ raised {type(failure).__name__}"


def describe_error(error: BaseException) -> str:
    """Write an exception's type and message, even if its `__str__` raises."""
    message = get_message(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def describe_exception(error: EvalsuiteError | OSError) -> str:
    """Describe an error for a user; for an operating system's error, name the problem and the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


MARK = " ..."  # The end of a text that was cut.


def write_count(count: int, noun: str) -> str:
    """Write a number with its noun: `1 case`, `2,000 cases`. The noun's plural must end in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def write_number(value: float, form: str) -> str:
    """Write a number in a form of `format`; a number that rounds to zero has no minus sign."""
    text = format(value, form)
    return text if re.search("[1-9a-z]", text) else text.lstrip("-")


def describe_estimated_calls(estimated: int, calls: int) -> str:
    """State how many calls have estimated token counts; return an empty text if no call has."""
    share = f"{estimated:,} of {write_count(calls, 'call')}"
    return f"tokens estimated in {share}, because the server did not count them" if estimated else ""


def shorten_to_beginning(text: str, longest: int) -> str:
    """Shorten a text to its beginning and `MARK`, together at most `longest` characters."""
    return text if len(text) <= longest else f"{text[: max(0, longest - len(MARK))]}{MARK}"


def shorten_with_note(text: str, longest: int) -> str:
    """Shorten a text to its beginning and a note of its full length, together at most `longest` characters."""
    if len(text) <= longest:
        return text
    note = f" [cut: {len(text):,} characters in all]"
    return (text[: max(0, longest - len(note))] + note)[:longest]


def shorten_to_ending(text: str, longest: int) -> str:
    """Shorten a text to dots and its last `longest` characters, because a traceback's end matters most."""
    return text if len(text) <= longest else f"...{text[len(text) - longest :]}"


def shorten_line(line: str, longest: int) -> str:
    """Replace the middle of a line by `MARK` if the line is longer than `longest` characters."""
    if len(line) <= longest:
        return line
    half = max(0, longest - len(MARK) - 1) // 2
    return f"{line[:half]}{MARK} {line[len(line) - half :]}"


def shorten_to_ends(text: str, longest: int) -> str:
    """Shorten a text to `longest` characters: two thirds from its beginning and one third from its end.

    A line between the beginning and the end states the number of missing characters.
    """
    if len(text) <= longest:
        return text
    head, tail = longest * 2 // 3, longest // 3
    return f"{text[:head]}\n[... {len(text) - head - tail:,} characters ...]\n{text[len(text) - tail :]}"
