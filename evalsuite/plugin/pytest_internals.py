"""Access to private parts of pytest, one function per part.

For each function, tests/unit/plugin/test_internals_of_others.py shows what would fail without it.
"""

import contextlib
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest

from evalsuite.core.errors import escape_for_terminal


def compile_keywords(text: str, definition: pytest.Function) -> Callable[[str], bool] | None:
    """Compile a `-k` expression; None if pytest would refuse the expression, or if this pytest has other internals.

    Without this function, pytest makes an item for every case before `-k` selects items.
    """
    try:
        from _pytest.mark import KeywordMatcher
        from _pytest.mark.expression import Expression

        expression, around = Expression.compile(text), KeywordMatcher.from_item(definition)
    except Exception:  # noqa: BLE001 - a wrong expression is pytest's to report
        return None

    def is_selected(name: str) -> bool:
        lowered = name.lower()

        def is_word_in_name(word: str, /, **more: Any) -> bool:
            return word.lower() in lowered or bool(around(word, **more))

        return bool(expression.evaluate(is_word_in_name))

    return is_selected


def list_ini_keys(config: pytest.Config) -> set[str]:
    """Return the keys of the ini file and of `-o`.

    Without this function, pytest would only warn of a removed setting, and the setting would have no effect.
    """
    keys = getattr(config, "_inicfg", None)  # For pytest 9.1 and later, in which `inicfg` is deprecated.
    overridden = (text.partition("=")[0] for text in config.option.override_ini or ())
    return {*(config.inicfg if keys is None else keys), *overridden}


def skip_conftests_of_data(manager: Any, is_data: Callable[[Path], bool]) -> None:
    """Keep pytest from importing a conftest.py of a folder of data, even if the command line names the folder.

    Without this function, pytest imports the file before any hook could refuse the folder.
    """
    considered = manager._is_in_confcutdir  # noqa: SLF001

    def is_folder_considered(folder: Path) -> bool:
        root = manager._confcutdir  # noqa: SLF001
        inside = root is not None and root in folder.parents
        return bool(considered(folder)) and not (inside and is_data(folder))

    manager._is_in_confcutdir = is_folder_considered  # noqa: SLF001


def guard_conftests(manager: Any, get_status: Callable[[], int]) -> None:
    """End the session with the result of `get_status` if an imported conftest.py calls `sys.exit(0)`.

    Without this function, pytest ends with 0 before any hook is called.
    """
    load = manager._importconftest  # noqa: SLF001

    def load_conftest(path: Path, *arguments: Any, **named: Any) -> Any:
        try:
            return load(path, *arguments, **named)
        except SystemExit as ending:
            if not ending.code and (own := get_status()):
                ending.code = own
                sys.stderr.write(f"evalsuite: {path} ended the session while it was imported; the status is {own}\n")
            raise

    manager._importconftest = load_conftest  # noqa: SLF001


def has_parameters(metafunc: pytest.Metafunc) -> bool:
    """Tell whether the names of a test's items contain other parameters than the case.

    evalsuite needs this to apply `-k` before items are made.
    """
    if any(metafunc.definition.iter_markers("parametrize")):
        return True
    fixtures = metafunc._arg2fixturedefs  # noqa: SLF001
    return any(definition.params for definitions in fixtures.values() for definition in definitions)


def collect_items(config: pytest.Config) -> list[pytest.Item]:
    """Collect the items that a command selects, without output and without a session; return [] if this fails.

    Without this function, `evalsuite doctor` cannot tell whether the suite runs programs.
    """
    from _pytest.main import Session

    config.option.collectonly = True
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            config._do_configure()  # noqa: SLF001
            session = Session.from_config(config)
            config.hook.pytest_sessionstart(session=session)
            session.perform_collect()
        except Exception:  # noqa: BLE001 - whatever is wrong with the suite, a run will report it
            return []
        finally:
            config._ensure_unconfigure()  # noqa: SLF001
    return [] if session.testsfailed else session.items


def is_kept_from_running(item: pytest.Item) -> bool:
    """Tell whether a mark keeps an item from running; false if the mark cannot be evaluated (pytest reports it)."""
    from _pytest.outcomes import Failed
    from _pytest.skipping import evaluate_skip_marks, evaluate_xfail_marks

    try:
        expected = None if item.config.option.runxfail else evaluate_xfail_marks(item)
        return evaluate_skip_marks(item) is not None or (expected is not None and not expected.run)
    except (Exception, Failed):  # noqa: BLE001 - a condition is anybody's code
        return False


def is_traceback(longrepr: object) -> bool:
    """Tell whether a report's failure is pytest's `ExceptionRepr`, because only this class accepts sections."""
    from _pytest._code.code import ExceptionRepr

    return isinstance(longrepr, ExceptionRepr)


def escape_traceback(part: Any) -> Any:
    """Sanitise all texts of an `ExceptionRepr`, in place, because an exception's message may quote a model's answer."""
    if isinstance(part, str):
        return escape_for_terminal(part)
    if isinstance(part, list | tuple):
        return type(part)(map(escape_traceback, part))
    if is_dataclass(part):
        for name, value in vars(part).items():
            setattr(part, name, escape_traceback(value))
    return part


def make_failure_repr(lines: Sequence[str], path: str, line: int, message: str) -> Any:
    """Make a failure object whose text a report shows in place of a traceback.

    pytest's own classes are used, because xdist serialises sections only for these classes.
    """
    from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback

    trace = ReprTraceback([ReprEntryNative(list(lines))], None, "native")
    return ReprExceptionInfo(trace, ReprFileLocation(path, line, message))


def replace_text_in_failure(longrepr: Any, text: str, replacement: str) -> None:
    """Replace a text in a report's failure and in the line for the short summary.

    Without this function, the reason for ending the session early is repeated for each affected case.
    """
    if is_traceback(longrepr):
        longrepr.sections[:] = [(name, shown.replace(text, replacement), sep) for name, shown, sep in longrepr.sections]
        if longrepr.reprcrash is not None:
            longrepr.reprcrash.message = longrepr.reprcrash.message.replace(text, replacement)


def remove_unknown_lines(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Remove a traceback's entries that have no line number.

    A signal that arrives between two lines of source leaves such an entry. Without this function, pytest would fail
    with a TypeError when it shows the entry, and the session would end with status 1.
    """
    excinfo.traceback = excinfo.traceback.filter(
        lambda entry: entry._rawentry.tb_lineno is not None  # noqa: SLF001
    )


def get_terminal_file(terminal: pytest.TerminalReporter) -> TextIO:
    """Return pytest's output file; the live line needs its descriptor."""
    return terminal._tw._file  # noqa: SLF001


def replace_terminal_file(terminal: pytest.TerminalReporter, file: Any) -> None:
    """Let pytest write to another file, which erases the live line first."""
    terminal._tw._file = file  # noqa: SLF001


def add_to_last_failed(config: pytest.Config, cases: Sequence[str]) -> None:
    """Make `--lf` also run these cases."""
    last_failed: Any = config.pluginmanager.get_plugin("lfplugin")
    if hasattr(last_failed, "lastfailed"):
        last_failed.lastfailed.update(dict.fromkeys(cases, True))
