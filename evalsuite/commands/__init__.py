"""Parts that several commands of `evalsuite` share."""

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import SettingsError

AGAIN = "again"  # The subfolder of a run's folder for judgements that are made after the run.


def make_declarations(code: Path | None) -> Declarations:
    """Return the `Declarations` of installed packages and, if given, of the file or folder `code`."""
    if code is not None and not code.exists():
        raise SettingsError(f"--code {code}: no such file or folder")
    return Declarations(Path.cwd(), code=code)


def require_suite(*paths: str) -> None:
    """Refuse a test path whose file or folder does not exist; the path may end in a case's id, as in pytest."""
    for path in paths:
        if not Path(path.partition("::")[0]).exists():
            raise SettingsError(f"{path}: no such file or folder")


def print_lines(lines: Iterable[object]) -> None:
    """Write each line to standard output."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def print_at_once(line: str) -> None:
    """Write a line to standard output, and flush it so that a user or a program sees it before the command ends."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run_pytest(*arguments: str) -> int:
    """Run pytest with the user's own suite and options, and return its exit status."""
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode  # noqa: S603


def run_own_command(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one of evalsuite's own commands; standard output and standard error are returned as one text."""
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
