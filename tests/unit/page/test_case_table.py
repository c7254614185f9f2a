"""The page's rows, which are written piece by piece, against the same rows written at once."""

from __future__ import annotations

import base64
import json
import re
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.output.page.document import PARTS, CaseTable, ChunkStore

if TYPE_CHECKING:
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


@given(st.lists(ROWS, max_size=6))
@settings(max_examples=100, deadline=None)
def test_rows_written_in_pieces_are_the_latest_of_each_case_in_order(rows: list[dict[str, Any]]) -> None:
    latest = {row["case"]: row | {"at": row["at"] and list(row["at"])} for row in rows}
    with closing(CaseTable()) as table:
        for row in rows:
            table.add_row(row)
        for case, row in latest.items():
            assert table.find_row(case) == row
        assert table.find_row("no such case") is None
        ordered = sorted(latest.values(), key=lambda row: (row["benchmark"], row["case"]))
        names, *stored = json.loads(b"".join(table.encode_rows_in_pieces()))
        assert [dict(zip(names, row, strict=True)) for row in stored] == ordered


def test_halves_of_surrogate_pairs_cost_no_page() -> None:
    with closing(CaseTable()) as table:
        table.add_row(dict.fromkeys(PARTS, "\ud800"))
        assert json.loads(b"".join(table.encode_rows_in_pieces()))[1] == ["?"] * len(PARTS)


@given(st.lists(st.text(max_size=50)))
@settings(max_examples=30, deadline=None)
def test_a_chunk_packed_in_pieces_reads_as_one_packed_whole(tmp_path_factory: Any, pieces: list[str]) -> None:
    folder: Path = tmp_path_factory.mktemp("page")
    chunks = ChunkStore(folder, beside=True)
    chunks.add_chunk("index-0", (piece.encode() for piece in pieces))
    assert not chunks.inside
    text = (folder / "page" / "index-0.js").read_text()
    packed = re.fullmatch(r'keepChunk\("index-0","([A-Za-z0-9+/=]*)"\)\n', text)
    assert packed
    assert zlib.decompress(base64.b64decode(packed[1], validate=True)) == "".join(pieces).encode()
    within = ChunkStore(folder, beside=False)
    within.add_chunk("index-0", ["".join(pieces).encode()])
    assert zlib.decompress(base64.b64decode(within.inside[0][1])) == "".join(pieces).encode()
