"""Names of files of items, by which readers know the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.items import format_of
from evalsuite.core.errors import DatasetError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.metrics.tables import Format

NAMES: dict[Format, str] = {
    "markdown": "table_test.json",
    "html": "html_test.json",
    "latex": "latex_test.json",
}


def must_tell(target: Path, written: Format) -> None:
    """Checks that a file about to be written will be read in its own format.

    Raises:
        SettingsError: its name stands for another format or none, or is not that of a JSON file.
    """
    if target.suffix != ".json" or format_of(target) != written:
        raise SettingsError(
            f"--to {target}: the name of a file of items stands for its format; call it {NAMES[written]} or similar"
        )


def format_by_name(path: Path) -> Format:
    """The format that the name of a file of items stands for.

    Raises:
        DatasetError: it stands for none.
    """
    written = format_of(path)
    if written is None:
        raise DatasetError(
            path, "", "a name that stands for no format", f"a name like {', '.join(NAMES.values())}"
        )
    return written
