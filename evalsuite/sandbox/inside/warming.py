"""Work that is done once in the warm interpreter, so that no program pays for what its packages put off."""

from __future__ import annotations

import io
import os
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def exercise(module: str) -> None:
    """Does what programs do most with a module; what it loads and caches is there after a fork."""
    if module == "pandas":
        _reckon()
    elif module == "matplotlib.pyplot":
        _draw()


@contextmanager
def writing_to(folder: str) -> Iterator[None]:
    """Lets packages that write a cache or a temporary file when they are imported do so in a folder."""
    before, tempfile.tempdir = tempfile.tempdir, folder
    # Otherwise matplotlib makes a folder that each program would remove as it ends.
    os.environ["MPLCONFIGDIR"] = folder
    try:
        yield
    finally:
        tempfile.tempdir = before
        del os.environ["MPLCONFIGDIR"]


def _draw() -> None:
    from matplotlib import pyplot as plt

    plt.plot([1, 2])
    plt.title("Sales")
    plt.savefig(io.BytesIO(), format="png")
    plt.close("all")


def _reckon() -> None:
    import pandas as pd

    frame = pd.read_csv(io.StringIO("a,b,c\n1,x,2020-01-01\n2,y,2020-01-02\n3,x,\n"))
    frame.info(buf=io.StringIO())
    results = [
        frame,
        frame.dtypes,
        frame.describe(),
        frame["b"].value_counts(),
        frame.groupby("b")["a"].agg(["sum", "mean", "max"]),
        frame.sort_values("a", ascending=False).head(2),
        frame[frame["a"] > 1].iloc[0],
        frame.loc[frame["b"].str.contains("x"), "a"].median(),
        frame[["a"]].corr(),
        pd.to_datetime(frame["c"]),
        pd.to_numeric(frame["b"], errors="coerce").std(),
        frame.merge(frame, on="a"),
        frame.pivot_table(index="b", values="a"),
        frame["a"].apply(str),
    ]
    "".join(map(str, results))
