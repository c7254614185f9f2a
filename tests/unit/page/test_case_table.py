"""The page's columns, which are written piece by piece, against the same made of all rows at once."""

from __future__ import annotations

import base64
import json
import re
import zlib
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.output.page.cases import PLAIN, CaseTable
from evalsuite.output.page.document import Chunks, pack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TEXTS = st.text(max_size=5)
ROWS = st.fixed_dictionaries(
    {
        "benchmark": st.sampled_from(["alpha", "beta"]),
        "case": st.text(st.sampled_from("ab\u00e9\U0001f600"), max_size=3),
        "outcome": st.integers(0, 3),
        "epoch": st.integers(1, 3),
        **dict.fromkeys(("sample", "asked", "answered", "expected"), TEXTS),
        **dict.fromkeys(("seconds", "cost"), st.floats(0, 9)),
        **dict.fromkeys(("tokens", "estimated"), st.integers(0, 9)),
        "tags": st.dictionaries(st.sampled_from("tu"), TEXTS),
        "scores": st.dictionaries(st.sampled_from("mn"), st.none() | st.floats(-9, 9)),
        "cause": st.none() | TEXTS,
        "needed": st.none() | st.integers(1, 2),
        "at": st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    }
)


def coded(values: Sequence[str | None]) -> dict[str, Any]:
    words = sorted({value for value in values if value is not None})
    return {"words": words, "codes": [-1 if value is None else words.index(value) for value in values]}


def expected(name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*(row["case"] for row in rows), strict=False))
    prefix = "".join(letters[0] for letters in same) if len(rows) > 1 else ""
    tags = sorted({tag for row in rows for tag in row["tags"]})
    needed = [row["needed"] for row in rows]
    return {
        "benchmark": name,
        "prefix": prefix,
        "case": [row["case"][len(prefix) :] for row in rows],
        **{key: [row[key] for row in rows] for key in PLAIN},
        **({"needed": needed} if any(value is not None for value in needed) else {}),
        "cause": coded([row["cause"] for row in rows]),
        "tags": {tag: coded([row["tags"].get(tag) for row in rows]) for tag in tags},
        "scores": {
            metric: [row["scores"].get(metric) for row in rows]
            for metric in dict.fromkeys(m for row in rows for m in row["scores"])
        },
        "chunk": [(row["at"] or (-1, -1))[0] for row in rows],
        "line": [(row["at"] or (-1, -1))[1] for row in rows],
    }


@given(st.lists(ROWS, max_size=6))
@settings(max_examples=100, deadline=None)
def test_columns_written_in_pieces_are_the_columns_of_all_rows(rows: list[dict[str, Any]]) -> None:
    latest = {row["case"]: row for row in rows}
    groups = {
        name: sorted((row for row in latest.values() if row["benchmark"] == name), key=lambda row: row["case"])
        for name in ("alpha", "beta")
    }
    with CaseTable() as table:
        for row in rows:
            table.add(row)
        for case, row in latest.items():
            assert table.get(case) == {**row, "at": row["at"] and list(row["at"])}
        assert table.get("no such case") is None
        # As text, in which the order of members counts, too.
        whole = [expected(name, group) for name, group in groups.items() if group]
        assert "".join(table.columns()) == json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def test_halves_of_surrogate_pairs_cost_no_page() -> None:
    row = dict.fromkeys(PLAIN, "\ud800") | {"benchmark": "b", "case": "\ud800", "at": None, "needed": None}
    with CaseTable() as table:
        table.add(row | {"cause": "\ud800", "tags": {"t": "\ud800"}, "scores": {}})
        assert json.loads("".join(table.columns()))[0]["asked"] == ["\ud800"]


@given(st.lists(st.text(max_size=50)))
@settings(max_examples=30, deadline=None)
def test_a_chunk_packed_in_pieces_reads_as_one_packed_whole(tmp_path_factory: Any, pieces: list[str]) -> None:
    folder: Path = tmp_path_factory.mktemp("page")
    with Chunks(folder, beside=True) as chunks:
        chunks.add_pieces("index-0", iter(pieces))
        assert not list(chunks.finish())
    text = (folder / "page" / "index-0.js").read_text()
    packed = re.fullmatch(r'keepChunk\("index-0","([A-Za-z0-9+/=]*)"\)\n', text)
    assert packed
    assert zlib.decompress(base64.b64decode(packed[1], validate=True)) == "".join(pieces).encode()
    assert base64.b64decode(pack(b"x"))
