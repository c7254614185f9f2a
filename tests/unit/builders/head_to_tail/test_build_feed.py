from __future__ import annotations

import bz2
import gzip
import resource
from functools import partial
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalsuite.builders.head_to_tail.drawing import compute_shuffle_key
from evalsuite.builders.head_to_tail.workspace import (
    decompress_file,
    drop_comments,
    find_dump_file,
    open_pipe,
    quote_sql,
    read_json_rows,
    read_triples,
    read_tsv,
    split_lines,
)
from evalsuite.core.errors import DatasetError, EvalsuiteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evalsuite.builders.head_to_tail.workspace import Workspace

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.compress,
    ".xml": bytes,
}
IN_PLACE = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("suffix", COMPRESS)
@given(parts=st.lists(st.binary(max_size=300), min_size=1, max_size=4))
@IN_PLACE
def test_streams_one_after_the_other_come_out_as_one(tmp_path: Path, suffix: str, parts: list[bytes]) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(b"".join(map(COMPRESS[suffix], parts)))
    read: list[int] = []
    assert b"".join(decompress_file(path, read.append)) == b"".join(parts)
    assert sum(read) == path.stat().st_size


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_small_file_made_to_fill_the_memory_comes_out_little_by_little(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(COMPRESS[suffix](bytes(1 << 26)))
    sizes = [len(block) for block in decompress_file(path, int)]
    assert sum(sizes) == 1 << 26
    assert max(sizes) <= 1 << 25


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_damaged_data_are_told_with_the_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(b"This is no compressed file at all.")
    with pytest.raises(DatasetError, match=rf"file\{suffix}, about byte 0: found"):
        list(decompress_file(path, int))


def test_a_window_of_two_gigabytes_is_no_obstacle(tmp_path: Path) -> None:
    # MAG's files are packed like that.
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    path = tmp_path / "file.zst"
    path.write_bytes(zstandard.ZstdCompressor(compression_params=parameters).compress(b"x" * 1000))
    assert b"".join(decompress_file(path, int)) == b"x" * 1000


@pytest.mark.parametrize("there", ["a.tsv.gz", "a.tsv", "a.tsv.zst"])
def test_a_file_may_be_compressed_as_the_user_likes(tmp_path: Path, there: str) -> None:
    (tmp_path / there).touch()
    assert find_dump_file(tmp_path, "a.tsv.gz") == tmp_path / there


def test_the_file_as_it_is_downloaded_comes_first(tmp_path: Path) -> None:
    for name in ("a.xml", "a.xml.gz"):
        (tmp_path / name).touch()
    assert find_dump_file(tmp_path, "a.xml").name == "a.xml"


def test_a_pipe_whose_reader_never_comes_is_given_up(tmp_path: Path) -> None:
    with open_pipe([b"x" * 10**6], tmp_path / "pipe"):
        pass
    assert not (tmp_path / "pipe").exists()


def test_a_reader_may_stop_early(tmp_path: Path) -> None:
    with open_pipe((b"x" * 1000 for _ in range(10**6)), tmp_path / "pipe"), (tmp_path / "pipe").open("rb") as file:
        assert file.read(3) == b"xxx"
    assert not (tmp_path / "pipe").exists()


def test_what_breaks_off_the_blocks_counts_for_more_than_what_their_reader_says_of_it(tmp_path: Path) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"half a li"
        raise DatasetError("file", "byte 9", "the end", "more")

    def read() -> None:
        with open_pipe(blocks(), tmp_path / "pipe"):
            (tmp_path / "pipe").read_bytes()
            raise ValueError("this line is not whole")

    with pytest.raises(DatasetError, match="byte 9"):
        read()


def test_what_goes_wrong_while_reading_is_not_hidden(tmp_path: Path) -> None:
    def read() -> None:
        with open_pipe([b"x"], tmp_path / "pipe"):
            raise ValueError("of the reader")

    with pytest.raises(ValueError, match="of the reader"):
        read()


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data), size))


@given(st.lists(st.sampled_from([b"a", b"#", b"\n", b"\n", b"b c"])).map(b"".join), st.integers(1, 9))
@settings(max_examples=100)
def test_comments_go_wherever_blocks_are_cut(data: bytes, size: int) -> None:
    kept = [line for line in data.split(b"\n") if not line.startswith(b"#")]
    cut = b"".join(drop_comments(_cut(data, size)))
    assert [line for line in cut.split(b"\n") if line] == [line for line in kept if line]


@given(st.lists(st.sampled_from([b"a", b"\n", b"bc"])).map(b"".join), st.integers(1, 9))
@settings(max_examples=100)
def test_lines_are_the_same_wherever_blocks_are_cut(data: bytes, size: int) -> None:
    assert list(split_lines(_cut(data, size))) == data.removesuffix(b"\n").split(b"\n") * bool(data)


@pytest.mark.parametrize(
    ("data", "found"), [(b"", "file"), (b"\r", "file"), (b"\na\tb\n", "line"), (b"\r\na\tb\r\n", "line")]
)
def test_a_table_that_begins_with_nothing_is_told(
    tmp_path: Path, workspace: Workspace, data: bytes, found: str
) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(data)
    with pytest.raises(DatasetError, match=f"line 1: found an empty {found}"):
        read_tsv(workspace, "FROM $dump", path, {"a": "VARCHAR"})


@pytest.mark.parametrize("name", ["bomb.tsv.gz", "bomb.json.gz", "bomb.ttl.gz"])
def test_a_line_without_end_is_an_error_before_it_fills_the_memory(
    tmp_path: Path, workspace: Workspace, name: str
) -> None:
    # 600 MB of one letter after a proper first line, in 600 kB.
    starts = {".tsv": b"a\tb\n", ".json": b'{"a": "1"}\n', ".ttl": b"<a> <b> <c> .\n"}
    path = tmp_path / name
    path.write_bytes(gzip.compress(starts[path.with_suffix("").suffix]) + gzip.compress(b"a" * 10**7) * 60)
    readers: dict[str, Callable[..., None]] = {
        ".tsv": partial(read_tsv, columns={"a": "VARCHAR"}),
        ".json": partial(read_json_rows, fields={"a": "VARCHAR"}),
        ".ttl": read_triples,
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DatasetError, match=rf"{name}, line 2: found"):
        readers[path.with_suffix("").suffix](workspace, "SELECT count(*) FROM $dump", path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000


@pytest.mark.parametrize("entity", ["tt0000001", "München_(town)", ""])
def test_the_database_draws_the_lots_that_python_draws(workspace: Workspace, entity: str) -> None:
    query = f"SELECT shuffle_key({quote_sql(entity)})"
    assert workspace.run_sql(query) == [(compute_shuffle_key(workspace.seed, entity),)]


def test_a_lot_is_what_it_was_when_earlier_questions_were_drawn() -> None:
    # The upper half, as a little-endian number, of the MD5 sum of "0:tt0000001": printf 0:tt0000001 | md5sum.
    assert compute_shuffle_key(0, "tt0000001") == int.from_bytes(bytes.fromhex("fe187c200e967684"), "little")


def test_a_database_that_fails_says_so(workspace: Workspace) -> None:
    with pytest.raises(EvalsuiteError, match=r"the build's database failed: .*no_such_table"):
        workspace.run_sql("FROM no_such_table")


def test_a_build_keeps_to_its_memory_and_spills_into_its_folder(workspace: Workspace) -> None:
    limit, spill = workspace.run_sql("SELECT current_setting('memory_limit'), current_setting('temp_directory')")[0]
    assert limit == "953.6 MiB"
    assert spill == str(workspace.folder / "spill")


def test_nothing_of_the_data_is_taken_for_sql(
    dump: Callable[..., Path], build: Callable[..., dict[str, list[list[str]]]]
) -> None:
    """Quotes and the like in names go through as they are, and in the path of the output too."""
    name = "Bobby');DROP_TABLE_triple;--"
    line = "<http://dbpedia.org/resource/{}> <http://dbpedia.org/ontology/country> <http://dbpedia.org/resource/{}> .\n"
    towns = [(name, 9), *((f"Town_{n}", 1 + n % 4) for n in range(40))]
    outside = "<http://dbpedia.org/resource/{}> <http://dbpedia.org/ontology/x> <http://example.org/x> .\n"
    text = "".join(line.format(town, f"Land_{town}"[::-1]) + outside.format(town) * more for town, more in towns)
    folder = dump({"mappingbased-objects_lang=en.ttl.bz2": text})
    built = build("dbpedia", folder, to="it's.json")
    assert "Bobby');DROP TABLE triple;--" in json_text(built)


def json_text(built: dict[str, list[list[str]]]) -> str:
    return " ".join(one[2] for asked in built.values() for one in asked)
