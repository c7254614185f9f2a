"""Where a build works: a database in memory that spills into a folder."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evalsuite.builders.head_to_tail.dump_reader import piped
from evalsuite.core.errors import EvalsuiteError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from evalsuite.builders.build_progress import BuildProgress

# Half of the 2 GB that a build may take: Python, buffers of the readers and pages in flight need the rest.
MEMORY = "1GB"


class Workspace:
    """A database and what it needs to read dumps.

    Args:
        folder: private; see `benchmarks.building`.
        progress: told of what is read.
        seed: of every draw.
    """

    def __init__(self, folder: Path, progress: BuildProgress, seed: int = 0) -> None:
        self.folder, self.progress, self.seed = folder, progress, seed
        self._pipes = 0
        self._database = _connect(folder)

    def close(self) -> None:
        """Gives memory and spilled data back."""
        self._database.close()

    def sql(self, query: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Runs a query and returns its rows.

        Raises:
            EvalsuiteError: the database failed.
        """
        import duckdb

        try:
            return self._database.execute(query, values).fetchall()  # type: ignore[no-any-return]
        except duckdb.Error as error:
            raise EvalsuiteError(f"the build's database failed: {error}") from error

    @contextmanager
    def stream(self, blocks: Iterable[bytes], relation: Callable[[str], str]) -> Iterator[str]:
        """What to write behind FROM, in exactly one query of the body, to read blocks of bytes.

        Args:
            blocks: see `piped`.
            relation: makes the SQL from the quoted path of a file.
        """
        self._pipes += 1
        pipe = self.folder / f"pipe-{self._pipes}"
        with piped(blocks, pipe):
            yield relation(quoted(str(pipe)))


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _connect(folder: Path) -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise SettingsError(
            "building Head-to-Tail needs duckdb; install the extra: pip install 'evalsuite[build]'"
        ) from error
    database = duckdb.connect(
        config={
            "memory_limit": MEMORY,
            "temp_directory": str(folder / "spill"),
            "preserve_insertion_order": False,
            # A build opens no socket.
            "autoinstall_known_extensions": False,
        }
    )
    # The planner knows nothing of the size of a stream and would hold it in memory rather than the few
    # rows that it is joined with. Queries here name the larger side first.
    database.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    return database
