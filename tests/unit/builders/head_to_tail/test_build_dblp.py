from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.builders.head_to_tail.dblp import DblpSource, read_credits
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evalsuite.builders.head_to_tail.workspace import Workspace

    Write = Callable[[Mapping[str, str | bytes]], Path]

PROLOGUE = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<!DOCTYPE dblp SYSTEM "dblp.dtd">\n'


def document(*records: str, prologue: str = PROLOGUE) -> str:
    return prologue + "<dblp>\n" + "\n".join(records) + "\n</dblp>\n"


def record(kind: str, year: int | str, people: str, title: str = "A Title.", *schools: str) -> str:
    authors = "".join(f'<author orcid="0000">{name}</author>' for name in people.split("; "))
    places = "".join(f"<school>{school}</school>" for school in schools)
    return (
        f'<{kind} mdate="2017-05-28" key="x/{abs(hash(title))}">{authors}'
        f"<title>{title}</title><year>{year}</year>{places}</{kind}>"
    )


RECORDS = [
    # Ann Arbor has 5 works and a doctoral thesis, with two schools.
    *(record("article", 2000 + n, "Ann Arbor; Bo Berg") for n in range(3)),
    record("inproceedings", 1999, "Ann Arbor; Ann Arbor"),  # named twice, one work
    record("phdthesis", 1998, "Ann Arbor", "On <i>k</i>-Means &amp; M&uuml;ll.", "ETH Z&uuml;rich", "EPFL"),
    # Bo Berg has 5 too: a master's thesis among them, and one as the editor of proceedings.
    record("mastersthesis", 1990, "Bo Berg", "Sorting", "MIT"),
    "<proceedings><editor>Bo Berg</editor><title>P</title><year>2001</year></proceedings>",
    # Carl Lind wrote two doctoral theses; which is meant is not clear.
    record("phdthesis", 2001, "Carl Lind", "First", "MIT"),
    record("phdthesis", 2002, "Carl Lind", "Second", "MIT"),
    # There are two Dora Mills.
    record("phdthesis", 2003, "Dora Mill 0001", "Third", "MIT"),
    record("article", 2003, "Dora Mill 0002"),
    # Egon Nord 0001 is the only one; his thesis gives its school away, and its title holds no school.
    record("phdthesis", 2004, "Egon Nord 0001", "The MIT Way", "MIT"),
    record("phdthesis", 2005, "Fay Otto; Gil Penn", "By Two", "MIT"),  # of two authors
    record("phdthesis", 2021, "Hal Quist", "Too Late", "MIT"),
    record("article", "undated", "Ira Ruiz"),
    record("phdthesis", 2006, "Jo Sand", "Unplaced"),  # no school
    '<www key="homepages/a/AnnArbor"><author>Ann Arbor</author><title>Home Page</title></www>',
]
ASKED = {
    (
        "head",
        "phd-title",
        "Ann Arbor",
        "What is the title of the Ph.D. thesis that Ann Arbor wrote in 1998 (ETH Zürich)?",
        ("On k-Means & Müll",),
    ),
    ("head", "phd-year", "Ann Arbor", "In which year did Ann Arbor complete a Ph.D. thesis (ETH Zürich)?", (1998,)),
    (
        "head",
        "phd-school",
        "Ann Arbor",
        'At which institution did Ann Arbor write the Ph.D. thesis "On k-Means & Müll"?',
        ("ETH Zürich", "EPFL"),
    ),
    (
        "head",
        "masters-title",
        "Bo Berg",
        "What is the title of the master's thesis that Bo Berg wrote in 1990 (MIT)?",
        ("Sorting",),
    ),
    ("head", "masters-year", "Bo Berg", "In which year did Bo Berg complete a master's thesis (MIT)?", (1990,)),
    (
        "head",
        "masters-school",
        "Bo Berg",
        'At which institution did Bo Berg write the master\'s thesis "Sorting"?',
        ("MIT",),
    ),
    (
        "tail",
        "phd-title",
        "Egon Nord 0001",
        "What is the title of the Ph.D. thesis that Egon Nord wrote in 2004 (MIT)?",
        ("The MIT Way",),
    ),
    ("tail", "phd-year", "Egon Nord 0001", "In which year did Egon Nord complete a Ph.D. thesis (MIT)?", (2004,)),
    (
        "tail",
        "phd-title",
        "Jo Sand",
        "What is the title of the Ph.D. thesis that Jo Sand wrote in 2006?",
        ("Unplaced",),
    ),
    ("tail", "phd-year", "Jo Sand", "In which year did Jo Sand complete a Ph.D. thesis?", (2006,)),
}


def test_all_that_the_rules_allow_is_asked_and_nothing_else(
    dump: Write, workspace: Workspace, candidates: Callable[[DblpSource], set[tuple[object, ...]]]
) -> None:
    found = candidates(DblpSource(workspace, dump({"dblp.xml": document(*RECORDS)})))
    assert found == {(bucket, f"dblp-person-{name}", *rest) for bucket, name, *rest in ASKED}


def test_popularity_is_the_number_of_works_up_to_2020(dump: Write, workspace: Workspace) -> None:
    shares = DblpSource(workspace, dump({"dblp.xml": document(*RECORDS)})).partitions["person"].compute_bucket_totals()
    # Five works each of Ann Arbor and Bo Berg, two of Carl Lind, one of six others: a third of 18 is 6.
    assert shares == {"head": (2, 10), "torso": (1, 2), "tail": (6, 6)}


def test_the_file_may_lie_there_as_it_is_downloaded(dump: Write, workspace: Workspace) -> None:
    assert DblpSource(workspace, dump({"dblp.xml.gz": document(*RECORDS)})).partitions["person"].total == 18


def _works(
    tmp_path: Path, text: str | bytes, size: int = 7, dtd: str | None = None
) -> list[tuple[str | int | None, ...]]:
    data = text.encode() if isinstance(text, str) else text
    if dtd is not None:
        (tmp_path / "dblp.dtd").write_text(dtd)
    return list(read_credits((data[i : i + size] for i in range(0, len(data), size)), tmp_path / "dblp.xml"))


@given(st.integers(1, 400))
@settings(max_examples=25)
def test_works_do_not_depend_on_where_blocks_are_cut(size: int) -> None:
    text = document(record("phdthesis", 1998, "J&ouml;rg &Ouml;sterreich", "&lt;A&gt; &alpha; b", "T&#252;"))
    assert _works(Path("nowhere"), text, size) == [("Jörg Österreich", "phdthesis", "<A> α b", "Tü", 1998)]


def test_characters_declared_beside_or_within_the_file_are_known(tmp_path: Path) -> None:
    within = '<?xml version="1.0"?>\n<!DOCTYPE dblp [<!ENTITY sharp "&#x266F;">\n<!ENTITY star \'*\'>]>\n'
    text = document(record("phdthesis", 2000, "A", "&sharp; &star; &house;"), prologue=within)
    assert _works(tmp_path, text, dtd='<!ENTITY house "&#8962;" >')[0][2] == "\u266f * \u2302"


@pytest.mark.parametrize(
    "declared",
    [
        # A billion laughs, another file, another host: none of them is a character.
        '<!ENTITY lol "lol"><!ENTITY lols "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">',
        '<!ENTITY lols SYSTEM "file:///etc/passwd">',
        '<!ENTITY lols SYSTEM "http://127.0.0.1:9/x">',
        "<!ENTITY % p \"<!ENTITY lols 'expanded'>\"> %p;",
    ],
)
def test_an_entity_that_is_no_character_is_refused_with_its_line(tmp_path: Path, declared: str) -> None:
    prologue = f'<?xml version="1.0"?>\n<!DOCTYPE dblp [{declared}]>\n'
    text = document(record("article", 2000, "A"), record("article", 2000, "A", "&lols;"), prologue=prologue)
    with pytest.raises(DatasetError, match=r"line 5: found the entity &lols;"):
        _works(tmp_path, text)


def test_an_entity_declared_to_be_more_than_a_character_hides_the_known_one(tmp_path: Path) -> None:
    prologue = '<!DOCTYPE dblp [<!ENTITY uuml "&lol;&lol;">]>\n'
    with pytest.raises(DatasetError, match="entity &uuml;"):
        _works(tmp_path, document(record("article", 2000, "M&uuml;"), prologue=prologue))


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize(
    "literal", ["<!-- &nobody; knows & -- > this -->", "<note><![CDATA[&nobody; ]] > knows]]></note>"]
)
def test_a_reference_within_a_comment_or_cdata_refers_to_nothing(tmp_path: Path, literal: str, size: int) -> None:
    text = document(RECORDS[4], literal.replace(" -- >", " - >"), record("article", 2000, "M&uuml;ll")).encode()
    blocks = (text[start : start + size] for start in range(0, len(text), size))
    assert [person for person, *_ in read_credits(blocks, tmp_path / "dblp.xml")] == ["Ann Arbor", "Müll"]


def test_a_file_that_breaks_off_is_told_with_its_line(tmp_path: Path) -> None:
    text = document(*RECORDS)
    with pytest.raises(DatasetError, match=r"dblp\.xml, line \d+: found .*, expected well-formed XML"):
        _works(tmp_path, text[: len(text) // 2], 1 << 16)


def test_a_fault_is_told_with_its_line_in_the_file(tmp_path: Path) -> None:
    text = document(record("article", 2000, "A"), "<article><author>B</article>")
    with pytest.raises(DatasetError, match=r"line 5\b"):
        _works(tmp_path, text, 1 << 16)


def test_bytes_of_another_encoding_are_told_with_their_line(tmp_path: Path) -> None:
    prologue = b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE dblp SYSTEM "dblp.dtd">\n'
    text = prologue + b"<dblp>\n<article><author>J\xf6rg</author></article>\n</dblp>"
    with pytest.raises(DatasetError, match=r"line 4\b"):
        _works(tmp_path, text, 1 << 16)


@pytest.mark.parametrize("year", ["undated", "-200", "20000", "9" * 5000])
def test_a_year_that_is_none_is_as_good_as_missing(tmp_path: Path, year: str) -> None:
    text = document(record("article", year, "Ann Arbor"), record("article", 2001, "Bo Berg"))
    assert [person for person, *_ in read_credits([text.encode()], tmp_path / "dblp.xml")] == ["Bo Berg"]


@pytest.mark.parametrize("text", ["", "name\tyear\n", "<html><body/></html>", "x" * (3 << 20)])
def test_a_file_that_is_something_else_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(DatasetError, match="expected an XML document of <dblp>"):
        _works(tmp_path, text, 1 << 16)


def test_a_document_without_end_and_without_records_is_given_up(tmp_path: Path) -> None:
    endless = itertools.chain([b"<dblp>"], itertools.repeat(b"<x>y</x>" * 10_000))
    with pytest.raises(DatasetError, match="MB without a record"):
        next(read_credits(endless, tmp_path / "dblp.xml"))


def test_what_has_been_read_leaves_the_memory(tmp_path: Path) -> None:
    article = record("article", 2000, "Ann Arbor", "x" * 1000).encode()

    def blocks() -> Iterator[bytes]:
        yield PROLOGUE.encode() + b"<dblp>"
        yield from (article for _ in range(60_000))
        yield b"</dblp>"

    used = [
        int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        for number, _ in enumerate(read_credits(blocks(), tmp_path / "dblp.xml"))
        if number % 5000 == 0
    ]
    # All of it together would be 70 MB and more.
    assert max(used) - used[0] < 20e6
