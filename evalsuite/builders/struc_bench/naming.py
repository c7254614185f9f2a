"""What a file of items is called: its name tells its format to whatever reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.items import format_of
from evalsuite.errors import DatasetError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.metrics.tables import Format

NAMES: dict[Format, str] = {
    "markdown": "table_test.json",
    "html": "html_test.json",
    "latex": "latex_test.json",
}


def must_tell(target: Path, written: Format) -> None:
    """Sees whether a file that is going to be written will be read as what it is.

    Raises:
        SettingsError: its name tells another format or none, or it is no JSON file.
    """
    if target.suffix != ".json" or format_of(target) != written:
        raise SettingsError(
            f"--to {target}: the name of a file of items tells its format; call it {NAMES[written]} or alike"
        )


def told(path: Path) -> Format:
    """The format that a file of items has by its name.

    Raises:
        DatasetError: its name tells none.
    """
    written = format_of(path)
    if written is None:
        raise DatasetError(path, "", "a name that tells no format", f"one like {', '.join(NAMES.values())}")
    return written
