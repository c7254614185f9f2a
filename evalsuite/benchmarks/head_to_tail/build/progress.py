"""How far the reading of dumps has come, on a terminal; nothing elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType


class Progress:
    """A bar over the bytes of all files to read, as they lie on the disk, with rate and time left.

    Args:
        files: what is going to be read, a file once for each reading; missing ones count as empty.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        from tqdm import tqdm  # type: ignore[import-untyped]  # it ships no types

        total = sum(path.stat().st_size for path in files if path.is_file())
        # None shows the bar on a terminal only: a CI log stays quiet.
        self._bar = tqdm(total=total, unit="B", unit_scale=True, disable=None, leave=False)

    def __enter__(self) -> Self:
        """The bar."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Shows how far it came, and takes the bar off the terminal."""
        # A bar draws itself at intervals, and a short build may end within the first.
        self._bar.refresh()
        self._bar.close()

    def begin(self, what: str) -> None:
        """Says what is being done now."""
        self._bar.set_description(what)

    def advance(self, count: int) -> None:
        """So many bytes more have been read."""
        self._bar.update(count)
