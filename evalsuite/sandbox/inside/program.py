"""Runs in a program's own process: loads the tables, runs the rounds, and reports how each round ended.

Nothing in this process can be trusted, because the program runs in it and may change anything. The warm interpreter
therefore reads only single status bytes from this process; false bytes harm only this program.
"""

import ast
import atexit
import builtins
import contextlib
import fcntl
import importlib
import inspect
import io
import json
import linecache
import math
import os
import platform
import random
import select
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NoReturn, TypeVar

from . import kernel
from .calls import AUDIT_ARCH, make_call_filter
from .files import TableFileProvider, guess_encoding, list_files, save_open_figures, send_changed_files
from .kernel import CHANNEL, FILES, PAYLOAD, STDERR, STDOUT

SHOWN_FRAMES, SHOWN_COLUMNS = 1000, 300
# Status bytes. LOADED precedes the program's first line; after LOADED, UNFIT and NO_TABLE are ignored, because the
# program could forge them.
LOADED, OK, RAISED, NO_TABLE, UNFIT = b"l", b"o", b"r", b"t", b"u"

T = TypeVar("T")
_first_process: set[int] = set()


def run_isolated(descriptors: dict[int, int], isolate: Callable[[], None], *, may_kill_all: bool = True) -> NoReturn:
    """Keep only these descriptors, isolate this process, and run a program's rounds; report if isolation fails.

    With `may_kill_all`, a signal to all processes ends the program's other processes after each round; the isolation
    must then keep the signal from processes that are not the program's.
    """
    try:  # The process must exit in any case, because it must never return to the code of its parent.
        kernel.close_other_descriptors(descriptors)
        try:
            isolate()
        except OSError as error:
            os.write(STDERR, str(error).encode())
            os.write(CHANNEL, UNFIT)
        else:
            _serve_rounds(may_kill_all=may_kill_all)
    finally:
        os._exit(1)


def _serve_rounds(*, may_kill_all: bool) -> NoReturn:
    """Run a program's rounds, which share the program's variables, until the host closes the channel."""
    variables = prepare_process()
    number = 0
    while True:
        number += 1
        status = run_round(variables, f"<program {number}>" if number > 1 else "<program>")
        if os.getpid() not in _first_process:
            os._exit(0)  # The program's code forked this process, so end it here.
        if may_kill_all:
            # Kill the program's other processes, because between rounds, the host can stop only the first process.
            with contextlib.suppress(OSError):  # The error means that no other process is left.
                os.kill(-1, signal.SIGKILL)
                while True:
                    os.waitpid(-1, 0)
        try:
            os.write(CHANNEL, status)
            go_on = os.read(CHANNEL, 1)
        except OSError:  # The program closed the channel.
            os._exit(0 if status == OK else 1)
        if not go_on:
            os._exit(0)


def prepare_process() -> dict[str, Any]:
    """Prepare this process to run a program; return the global variables with which the program begins."""
    _first_process.add(os.getpid())
    _reopen_standard_streams()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    variables = vars(module)
    sys.argv = ["program.py"]
    # Define `exit` and `quit`, which the module `site` would define if it were imported.
    vars(builtins).update(exit=sys.exit, quit=sys.exit)
    variables.update(__file__=sys.argv[0], display=_display_values)
    random.seed(0)
    if "numpy" in sys.modules:
        import numpy as np

        np.random.seed(0)  # noqa: NPY002 - the programs' generator, not ours
        variables["np"] = np
    if "pandas" in sys.modules:
        variables["pd"] = sys.modules["pandas"]
    return variables


def _reopen_standard_streams() -> None:
    # Also set `sys.__stdin__` and `sys.__stdout__`: these references keep a stream open if a program replaces it.
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    # Flush after each line, so that the output is complete even if the program is stopped.
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(  # type: ignore[misc] # it is final elsewhere
        io.BufferedWriter(io.FileIO(STDOUT, "w", closefd=False)), "utf-8", "backslashreplace", line_buffering=True
    )
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(STDERR, "w", closefd=False)), "utf-8", "backslashreplace", write_through=True
    )


def run_round(variables: dict[str, Any], title: str) -> bytes:
    """Run one round; return its status byte. Tracebacks show `title` instead of a file name."""
    try:
        code, earlier, is_last = _load_payload(variables)
    except ModuleNotFoundError as error:
        advice = "pip install 'evalsuite[sandbox]', or add it to the file that evalsuite_program_env names"
        _report_error(f"{error}: {advice}")
        return NO_TABLE
    except Exception as error:  # noqa: BLE001 - pandas may raise anything for a table
        _report_error(f"{type(error).__name__}: {error}")
        return NO_TABLE
    with contextlib.suppress(OSError):  # The program may have closed the channel in an earlier round.
        os.write(CHANNEL, LOADED)
    _rerun_earlier_rounds(earlier, variables)
    linecache.cache[title] = (len(code), None, code.splitlines(keepends=True), title)
    before = list_files()
    value, error_of_code = _run_and_catch(partial(_run_code, code, title, variables))

    def show_value() -> None:
        if is_last:
            _flush_output()
            if os.fstat(STDOUT).st_size:  # Raises OSError if the program has closed its output.
                return  # The program's output is what it has printed.
        if value is not None:
            print(value)  # noqa: T201 - the program's output

    steps: list[Callable[[], None]] = [lambda: save_open_figures(before)]
    if is_last:
        # Do what Python does before it exits: wait for threads, then call functions registered with `atexit`.
        steps += [threading._shutdown, atexit._run_exitfuncs]  # type: ignore[attr-defined]  # noqa: SLF001
    # Flushing can also raise errors, because the program may have replaced or closed its output.
    later_errors = [_run_and_catch(step)[1] for step in [*steps, show_value, _flush_output]]
    errors = list(filter(None, [error_of_code, *later_errors]))
    if os.getpid() in _first_process:
        send_changed_files(before)
    if errors:
        _report_error(errors[0])
    return RAISED if errors else OK


def _rerun_earlier_rounds(earlier: list[str], variables: dict[str, Any]) -> None:
    """Run the earlier rounds again without output, to restore variables that some hosts lose between rounds."""
    if not earlier:
        return
    printed, nowhere = os.dup(STDOUT), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    for number, code in enumerate(earlier, 1):
        _run_and_catch(partial(_run_code, code, f"<program {number}>", variables))
        _run_and_catch(_flush_output)
    os.dup2(printed, STDOUT)


def _run_and_catch(step: Callable[[], T]) -> tuple[T | None, str]:
    """Run one step of the program; return its result, and the error as text, or "" on success."""
    try:
        return step(), ""
    except SystemExit as ending:
        return None, "" if ending.code is None or ending.code == 0 else f"SystemExit: {ending.code}"
    except BaseException as error:  # noqa: BLE001 - a program may raise anything
        return None, _format_traceback(error)


def _run_code(code: str, title: str, variables: dict[str, Any]) -> Any:
    """Run the code of one round, which may contain `await` outside of functions, as in a notebook.

    Return the value of its last expression; None if it ends with another statement.
    """
    tree = ast.parse(code, title)
    if "pip" in code:
        _ignore_installations()
    if "plt" in code and "plt" not in variables and "matplotlib" not in code:
        with contextlib.suppress(ImportError):
            variables["plt"] = importlib.import_module("matplotlib.pyplot")
    if "IPython" in code or "get_ipython" in code:
        _install_notebook_functions(variables)
    parts: list[tuple[ast.Module | ast.Expression, str]] = [(tree, "exec")]
    if tree.body and isinstance(final := tree.body[-1], ast.Expr):
        parts.append((ast.Expression(final.value), "eval"))
        tree.body.pop()
    value = None
    for part, mode in parts:
        compiled = compile(part, title, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        value = eval(compiled, variables)  # noqa: S307 - this is the sandbox
        if compiled.co_flags & inspect.CO_COROUTINE:
            import asyncio

            value = asyncio.run(value)
    return value


def _display_values(*values: Any) -> None:
    for value in values:
        print(value)  # noqa: T201 - the program's output


def _install_notebook_functions(variables: dict[str, Any]) -> None:
    """Provide IPython's `display` module if IPython is missing, and a `get_ipython` whose methods do nothing."""

    class NotebookShell:
        """Stands in for IPython's shell; all of its methods do nothing."""

        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *_, **_options: None

    variables["get_ipython"] = NotebookShell
    try:
        import IPython  # type: ignore[import-not-found] # noqa: F401
    except ImportError:
        package: Any = types.ModuleType("IPython")
        package.display = display = types.ModuleType("IPython.display")
        vars(display).update(display=_display_values, clear_output=lambda **_: None, HTML=str, Markdown=str)
        package.get_ipython = NotebookShell
        sys.modules.update({"IPython": package, "IPython.display": display})


@cache
def _ignore_installations() -> None:
    """Make `pip install` succeed without any effect if the package is already installed."""
    import subprocess

    popen, system = subprocess.Popen.__init__, os.system

    def start_process(self: Any, args: Any, *others: Any, **options: Any) -> None:
        if _installs_only_installed_packages(args):
            args, options = [sys.executable, "-I", "-S", "-c", ""], {**options, "shell": False}
        popen(self, args, *others, **options)

    subprocess.Popen.__init__ = start_process  # type: ignore[method-assign]
    os.system = lambda command: 0 if _installs_only_installed_packages(command) else system(command)


def _installs_only_installed_packages(command: Any) -> bool:
    import re
    from importlib.metadata import PackageNotFoundError, distribution

    words = command.split() if isinstance(command, str) else list(map(str, command))
    if "install" not in words or not any(re.search(r"(^|/)pip[\d.]*$", word) for word in words[:4]):
        return False
    packages = [word for word in words[words.index("install") + 1 :] if not word.startswith("-")]
    try:
        for package in packages:
            distribution(re.split(r"[<>=!~\[]", package.strip("'\""))[0])
    except (PackageNotFoundError, ValueError):
        return False
    return bool(packages)


def _flush_output() -> None:
    """Flush standard output; if the program has replaced it, also flush the original stream."""
    with contextlib.suppress(Exception):
        if sys.__stdout__ is not None and sys.__stdout__ is not sys.stdout:
            sys.__stdout__.flush()
    if sys.stdout is not None and not getattr(sys.stdout, "closed", False):  # Python also does this before it exits
        sys.stdout.flush()


def _load_payload(variables: dict[str, Any]) -> tuple[str, list[str], bool]:
    """Load the payload's tables and input; return the round's code, earlier code, and whether the round is the last."""
    place = int.from_bytes(os.pread(PAYLOAD, 8, 0), "big")
    facts, at = json.loads(os.pread(PAYLOAD, os.fstat(PAYLOAD).st_size - place, place)), 8
    files: dict[str, bytes | None] = {}
    frames: dict[str, Callable[[], Any]] = {}
    for table in facts["tables"]:
        content, name = os.pread(PAYLOAD, table["size"], at), table["name"]
        frames[name] = partial(_make_data_frame, content, table["format"], table["header_rows"])
        variables[name] = frames[name]()
        files[name] = content if table["format"] == "csv" else None
        at += table["size"]
    if files:
        TableFileProvider(files, frames).install_tables()
    if facts["stdin"] is not None:
        _provide_stdin(os.pread(PAYLOAD, facts["stdin"], at))
    return str(facts["code"]), list(facts["earlier"]), bool(facts["last"])


def _provide_stdin(content: bytes) -> None:
    """Make `content` the standard input (descriptor 0), so that every way of reading it works."""
    with open(".stdin", "w+b") as file:  # noqa: PTH123 - without pathlib
        file.write(content)
        file.seek(0)
        os.dup2(file.fileno(), 0)
    os.unlink(".stdin")  # noqa: PTH108 - as above
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    usual = builtins.open

    def open_input(file: Any, *args: Any, **kwargs: Any) -> Any:
        # Open a copy of descriptor 0: the three paths lead to /proc, which is hidden from programs.
        is_input = not isinstance(file, int) and os.fspath(file) in {"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}
        return usual(os.dup(0) if is_input else file, *args, **kwargs)

    builtins.open = io.open = open_input


def _make_data_frame(content: bytes, kind: str, header_rows: int) -> Any:
    import pandas as pd

    if kind == "pickle":
        import pickle

        # The host wrote this pickle for the program; the host itself never unpickles a program's data.
        return pickle.loads(content)  # noqa: S301
    header = {0: None, 1: 0}.get(header_rows, list(range(header_rows)))
    return pd.read_csv(io.BytesIO(content), header=header, encoding=guess_encoding(content), encoding_errors="replace")


def _format_traceback(error: BaseException) -> str:
    """Format the traceback without frames of other files, because they show paths of this machine."""
    try:
        trace = traceback.TracebackException.from_exception(error, limit=-SHOWN_FRAMES, compact=True)
        link: traceback.TracebackException | None = trace
        while link is not None:
            _drop_foreign_frames(link)
            before = link.__cause__ or link.__context__
            if before is not None and not _drop_foreign_frames(before):
                # Omit an earlier error that a library raised and handled itself.
                link.__cause__ = link.__context__ = None
            link = link.__cause__ or link.__context__
        return "\n".join(
            line if len(line) <= SHOWN_COLUMNS else f"{line[: SHOWN_COLUMNS - 105]} ... {line[-100:]}"
            for line in "".join(trace.format()).strip().split("\n")
        )
    except BaseException:  # noqa: BLE001 - the program may define exceptions that cannot be formatted
        return type(error).__name__


def _drop_foreign_frames(trace: traceback.TracebackException) -> bool:
    """Remove the frames of other files; return whether a frame of the program is left."""
    own = [frame for frame in trace.stack if frame.filename.startswith("<program")]
    trace.stack = traceback.StackSummary.from_list(own)
    return bool(own)


def _report_error(text: str) -> None:
    """Replace the content of standard error by `text`, which the host reads as the error message."""
    if os.getpid() not in _first_process:
        return  # Ignore an error in a process that the program itself forked.
    try:
        os.ftruncate(STDERR, 0)
        os.write(STDERR, text.encode("utf-8", "backslashreplace"))
    except OSError:
        pass  # The program closed standard error, so the error has no message.


CHECK_SECONDS = 0.05


def run_in_child(payload_path: str, result_path: str, seconds: float, most_bytes: tuple[int, int, int]) -> NoReturn:
    """Run a payload's program in a child process; write its ending, output, error and files to the result.

    The child cannot forge the result: it has no descriptor of the result's file and no access to this process.

    Args:
        result_path: path of the file to which the result is written; if empty, the result goes to standard output.
        most_bytes: maximum bytes of the output, of the error text (the end is kept), and of all files.
    """
    # Prevent other processes of the same user from reading this process's memory or stopping it.
    kernel.set_process_option(kernel.DUMPABLE, 0)
    channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.ExitStack() as opened:
        outputs = [opened.enter_context(tempfile.TemporaryFile()).fileno() for _ in most_bytes]
        for output in outputs:
            fcntl.fcntl(output, fcntl.F_SETFL, os.O_APPEND)
        program = os.open(payload_path, os.O_RDONLY)
        os.unlink(payload_path)  # noqa: PTH108 - the program must not find it
        if not (pid := os.fork()):
            numbers = (STDOUT, STDERR, CHANNEL, PAYLOAD, FILES)
            opened_for_child = (*outputs[:2], theirs.fileno(), program, outputs[2])
            # Without namespaces, a signal to all processes would also reach the parent.
            run_isolated(dict(zip(numbers, opened_for_child, strict=True)), _confine_child, may_kill_all=False)
        theirs.close()
        started = time.monotonic()
        ending = _await_ending(pid, channel, outputs[0], seconds, most_bytes[0])
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED)
        end = os.fstat(outputs[1]).st_size
        begins = (0, max(0, end - most_bytes[1]), 0)
        out, error, files = map(os.pread, outputs, most_bytes, begins)
    facts = {"ending": ending, "seconds": time.monotonic() - started, "sizes": [len(out), len(error), len(files)]}
    header = json.dumps(facts).encode()
    if result_path:
        with contextlib.suppress(OSError):
            os.unlink(result_path)  # noqa: PTH108 - without pathlib
    with open(result_path or STDOUT, "xb" if result_path else "wb") as target:  # noqa: PTH123 - as above
        target.write(len(header).to_bytes(8, "big") + header + out + error + files)
    os._exit(0)


def _confine_child() -> None:
    """Isolate the program from its parent: a new process group, no privileges, a new folder."""
    os.setsid()
    kernel.set_process_option(kernel.PARENT_DEATH_SIGNAL, signal.SIGKILL)
    kernel.drop_capabilities()
    if platform.machine() in AUDIT_ARCH:
        # Install evalsuite's filter as well, because the filters of container engines differ. Podman's filter, for
        # example, allows programs to make namespaces and mount in them.
        calls = make_call_filter(platform.machine(), own_pid=os.getpid(), landlock_blocks_signals=False)
        kernel.install_seccomp_filter(calls)
    os.chdir(tempfile.mkdtemp())


def _await_ending(pid: int, channel: socket.socket, output: int, seconds: float, most_output: int) -> str:
    """Wait until the program ends or exceeds a limit; return its ending, as listed in `forking.py`."""
    loaded, deadline = False, math.inf
    while True:
        # Look for the process's end before reading: then no status byte of an ended process is missed.
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        status = channel.recv(1) if select.select([channel], [], [], 0 if end else CHECK_SECONDS)[0] else b""
        if status == LOADED:
            loaded, deadline = True, min(deadline, time.monotonic() + seconds)
        elif status and loaded:
            return "ok" if status == OK else "raised"
        elif status:
            return "unfit" if status == UNFIT else "table"
        elif end:
            ending = f"{'exit' if end.si_code == os.CLD_EXITED else 'signal'} {end.si_status}"
            return ending if loaded else f"early {ending}"
        else:
            time.sleep(CHECK_SECONDS)  # On a closed channel, `select` returns at once instead of waiting.
        if time.monotonic() >= deadline:
            return "timeout"
        if os.fstat(output).st_size > most_output:
            return "output"
