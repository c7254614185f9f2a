"""The commands of `evalsuite`, and the arguments that several commands share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import SettingsError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence


def add_reports_folder(parser: argparse.ArgumentParser) -> None:
    """Add `--reports`, the folder that contains the runs."""
    parser.add_argument(
        "--reports", type=Path, default=Path("reports"), metavar="DIR", help="folder of the runs (default: reports)"
    )


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Add the name of an existing run, and `--reports`."""
    add_reports_folder(parser)
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`")


def add_code_option(parser: argparse.ArgumentParser) -> None:
    """Add `--code`; a command without this option imports no file of the suite."""
    parser.add_argument(
        "--code",
        type=Path,
        metavar="PATH",
        help="file or folder of the suite that may be imported, for a benchmark's own report and for derived metrics "
        "of parts of a run; without --code no test file is imported, since a run may come from anybody",
    )


def make_declarations(code: Path | None) -> Declarations:
    """Return the declarations of installed packages and of the test files that the user names."""
    if code is not None and not code.exists():
        raise SettingsError(f"--code {code}: no such file or folder")
    return Declarations(Path.cwd(), code=code)


def demand_suite(*paths: str) -> None:
    """Refuse a suite whose file or folder does not exist; a path may end in a case's id, as in pytest."""
    for path in paths:
        if not Path(path.partition("::")[0]).exists():
            raise SettingsError(f"{path}: no such file or folder")


def write_lines(lines: Iterable[object]) -> None:
    """Write each line to standard output."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def run_program(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one of evalsuite's own commands; its output and its errors become one text."""
    return subprocess.run(  # noqa: S603 - the command is the caller's own
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
