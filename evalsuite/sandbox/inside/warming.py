"""Work that is done once in the warm interpreter, so that no program pays for what pandas puts off."""

from __future__ import annotations

import io


def exercise() -> None:
    """Does what programs over tables do most; what it loads and caches is there after a fork."""
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
