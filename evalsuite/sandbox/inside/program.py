"""Within a program's own process: loads the tables, runs its rounds and says how each ended.

The program shares this process and may do to it what it likes; the warm interpreter believes nothing that
comes from here but one byte, which speaks for this program alone.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import linecache
import os
import random
import signal
import sys
import traceback
import types
from typing import Any, NoReturn

from .isolation import CHANNEL, PAYLOAD, STDERR, STDOUT

SHOWN_FRAMES, SHOWN_COLUMNS = 1000, 300
# LOADED comes before the program's first line; UNFIT and NO_TABLE count only where it has not come.
LOADED, OK, RAISED, NO_TABLE, UNFIT = b"l", b"o", b"r", b"t", b"u"


def serve() -> NoReturn:
    """Runs round after round in one namespace, until the channel closes."""
    _fresh_streams()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    names = vars(module)
    sys.argv = ["program.py"]
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # else the work of `site`, which is left out
    _same_chance_for_all(names)
    number = 0
    while True:
        number += 1
        status = _round(names, f"<program {number}>" if number > 1 else "<program>")
        if os.getpid() != 1:
            os._exit(0)  # a process that the program forked came out at the program's end
        _end_others()
        try:
            os.write(CHANNEL, status)
            told = os.read(CHANNEL, 1)
        except OSError:  # the program closed the channel
            os._exit(0 if status == OK else 1)
        if not told:
            os._exit(0)


def give_up(error: BaseException) -> NoReturn:
    """Says that this process could not be isolated, and ends."""
    os.write(STDERR, str(error).encode())
    os.write(CHANNEL, UNFIT)
    os._exit(1)


def _same_chance_for_all(names: dict[str, Any]) -> None:
    """Seeds what can be seeded, and names the usual packages where they are loaded."""
    random.seed(0)
    if "numpy" in sys.modules:
        import numpy as np

        np.random.seed(0)  # noqa: NPY002 - the programs' generator, not ours
        names["np"] = np
    if "pandas" in sys.modules:
        names["pd"] = sys.modules["pandas"]


def _fresh_streams() -> None:
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - the program's for its life
    # A line at a time, so that a program that is stopped has its output so far.
    sys.stdout = io.TextIOWrapper(
        io.FileIO(STDOUT, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True
    )
    sys.stderr = io.TextIOWrapper(
        io.FileIO(STDERR, "w", closefd=False), "utf-8", "backslashreplace", write_through=True
    )


def _end_others() -> None:
    """Ends the other processes that the program has started, as only this one is stopped between rounds."""
    try:
        os.kill(-1, signal.SIGKILL)
        while True:
            os.waitpid(-1, 0)
    except OSError:
        pass  # there are none, or none any more


def _round(names: dict[str, Any], title: str) -> bytes:
    try:
        code = _load(names)
    except ModuleNotFoundError as error:
        _say(f"{error}: pip install 'evalsuite[sandbox]'")
        return NO_TABLE
    except Exception as error:  # noqa: BLE001 - whatever pandas raises on a table
        _say(f"{type(error).__name__}: {error}")
        return NO_TABLE
    with contextlib.suppress(OSError):  # closed by the program in an earlier round
        os.write(CHANNEL, LOADED)
    try:
        linecache.cache[title] = (len(code), None, code.splitlines(keepends=True), title)
        exec(compile(code, title, "exec", dont_inherit=True), names)  # noqa: S102 - this is the sandbox
        status = OK
    except SystemExit as ending:
        status = _exit_status(ending)
    except BaseException as error:  # noqa: BLE001 - a program may raise anything
        _say(_shown(error))
        status = RAISED
    try:
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001 - the program may have replaced or closed it
        _say(_shown(error))
        return RAISED
    return status


def _load(names: dict[str, Any]) -> str:
    """Reads what the host left in the payload: the round's code, and tables where there are new ones."""
    size = int.from_bytes(os.pread(PAYLOAD, 8, 0), "big")
    header = json.loads(os.pread(PAYLOAD, size, 8))
    at = 8 + size
    for table in header["tables"]:
        content = os.pread(PAYLOAD, table["size"], at)
        names[table["name"]] = _frame(content, table["format"], table["header_rows"])
        at += table["size"]
    code: str = header["code"]
    return code


def _frame(content: bytes, kind: str, header_rows: int) -> Any:
    import pandas as pd

    if kind == "pickle":
        import pickle

        # Written by the host for this program; the other way, nothing is ever unpickled.
        return pickle.loads(content)  # noqa: S301
    header = {0: None, 1: 0}.get(header_rows, list(range(header_rows)))
    return pd.read_csv(io.BytesIO(content), header=header, encoding_errors="replace")


def _exit_status(ending: SystemExit) -> bytes:
    if ending.code is None or ending.code == 0:
        return OK
    _say(f"SystemExit: {ending.code}")
    return RAISED


def _shown(error: BaseException) -> str:
    """The traceback, with the program's own frames alone: others would name places of this machine."""
    try:
        trace = traceback.TracebackException.from_exception(error, limit=-SHOWN_FRAMES, compact=True)
        link: traceback.TracebackException | None = trace
        while link is not None:
            _keep_own_frames(link)
            before = link.__cause__ or link.__context__
            if before is not None and not _keep_own_frames(before):
                link.__cause__ = link.__context__ = None  # a library's affair with itself
            link = link.__cause__ or link.__context__
        lines = "".join(trace.format()).strip().split("\n")
        return "\n".join(map(_narrow, lines))
    except BaseException:  # noqa: BLE001 - an exception of the program's making that cannot be shown
        return type(error).__name__


def _narrow(line: str) -> str:
    """A line of source or of a message that nobody would read whole, by its beginning and end."""
    return line if len(line) <= SHOWN_COLUMNS else f"{line[: SHOWN_COLUMNS - 105]} ... {line[-100:]}"


def _keep_own_frames(trace: traceback.TracebackException) -> bool:
    own = [frame for frame in trace.stack if frame.filename.startswith("<program")]
    trace.stack = traceback.StackSummary.from_list(own)
    return bool(own)


def _say(text: str) -> None:
    """Leaves `text`, and nothing else, where the host looks for the error."""
    if os.getpid() != 1:
        return  # the error of a process that the program forked is not the program's
    try:
        os.ftruncate(STDERR, 0)
        os.write(STDERR, text.encode("utf-8", "backslashreplace"))
    except OSError:
        pass  # the program closed it: its error is then without words
