"""How far a build has come, on a terminal; nothing elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType


def bytes_of(files: Iterable[Path]) -> int:
    """Bytes of all files as they lie on the disk, one once for each time it is named; missing ones have none."""
    return sum(path.stat().st_size for path in files if path.is_file())


class BuildProgress:
    """A bar with rate and time left; none where tqdm is not installed.

    Args:
        total: how much there is to do.
        unit: of what; `B` is shown in kB and MB.
    """

    def __init__(self, total: int, unit: str) -> None:
        try:
            from tqdm import tqdm  # type: ignore[import-untyped]  # it ships no types
        except ImportError:
            self._bar = None
        else:
            # None shows the bar on a terminal only: a CI log stays quiet.
            self._bar = tqdm(total=total, unit=unit, unit_scale=unit == "B", disable=None, leave=False)

    def __enter__(self) -> Self:
        """The bar."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Shows how far it came, and takes the bar off the terminal."""
        # A bar draws itself at intervals, and a short build may end within the first.
        if self._bar is not None:
            self._bar.refresh()
            self._bar.close()

    def begin(self, stage: str) -> None:
        """Says what is being done now."""
        if self._bar is not None:
            self._bar.set_description(stage)

    def advance(self, count: int) -> None:
        """So much more is done."""
        if self._bar is not None:
            self._bar.update(count)
