"""Tables on their way into the sandbox: always as bytes, never as a path of this machine."""

from __future__ import annotations

import json
import pickle
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from evalsuite.core.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    TableSource: TypeAlias = "TableFile | Path | str | pd.DataFrame"
else:
    TableSource = object


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table as comma-separated values, which become a pandas DataFrame inside the sandbox.

    Attributes:
        content: CSV in UTF-8, with or without a byte-order mark, or in GB18030; invalid bytes become U+FFFD.
        header_rows: how many rows at the top name the columns: 0 (they are numbered from 0), 1, or more
            (the columns are then a MultiIndex).
    """

    content: bytes
    header_rows: int = 1

    @classmethod
    def read(cls, path: Path | str, header_rows: int = 1) -> TableFile:
        """Read a CSV file of this machine.

        Raises:
            SandboxError: it cannot be read.
        """
        try:
            return cls(Path(path).read_bytes(), header_rows)
        except OSError as error:
            raise SandboxError(f"the table {path} cannot be read: {error.strerror or error}") from error


def payload(
    code: str,
    tables: Mapping[str, TableSource],
    *,
    last: bool,
    same_pandas: bool = True,
    earlier: Sequence[str] = (),
    stdin: bytes | None = None,
) -> bytes:
    """Encode what one round needs, in the form that `inside/program.py` reads.

    Args:
        code: Python source.
        tables: each table by the name of its variable.
        last: no other round follows, so the program ends as Python ends: after its threads.
        same_pandas: whether the program has this process's pandas, by which a DataFrame keeps its types and index;
            another version gets it as comma-separated values.
        earlier: code of the rounds before, to be run once more where no process has kept their variables.
        stdin: the program's standard input; None leaves it empty.

    Raises:
        SandboxError: a value is not a table, or its name is not a valid variable name.
    """
    packed = [(name, *_pack(name, source, same_pandas=same_pandas)) for name, source in tables.items()]
    header = json.dumps(
        {
            "code": code,
            "earlier": list(earlier),
            "last": last,
            "stdin": None if stdin is None else len(stdin),
            "tables": [
                {"name": name, "format": kind, "header_rows": rows, "size": len(content)}
                for name, kind, content, rows in packed
            ],
        }
    ).encode()
    return b"".join((len(header).to_bytes(8, "big"), header, *(content for _, _, content, _ in packed), stdin or b""))


def _pack(name: str, source: TableSource, *, same_pandas: bool) -> tuple[Literal["csv", "pickle"], bytes, int]:
    if not re.fullmatch(r"[^\W\d]\w*", name):
        raise SandboxError(f"a table is called {name!r}, which cannot name a variable")
    if isinstance(source, (str, Path)):
        source = TableFile.read(source)
    if isinstance(source, TableFile):
        return "csv", source.content, source.header_rows
    pandas = sys.modules.get("pandas")  # whoever holds a frame has loaded it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        if not same_pandas:
            return "csv", source.to_csv(index=False).encode(), source.columns.nlevels
        # Unpickled within the sandbox.
        return "pickle", pickle.dumps(source, protocol=5), 0
    kind = type(source).__name__
    raise SandboxError(f"the table {name!r} is a {kind}: give a path, a Table or a pandas DataFrame")
