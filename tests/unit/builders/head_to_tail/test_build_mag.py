from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalsuite.builders.head_to_tail.mag import COLUMNS, DOI, ISSN, MagSource
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalsuite.builders.head_to_tail.workspace import Workspace

    Write = Callable[[Mapping[str, str | bytes]], Path]

CONFERENCES, JOURNALS, PAPERS, AUTHORSHIPS, AUTHORS = COLUMNS


def rows(file: str, *records: Mapping[str, object], further: str = "\t2016-06-24") -> str:
    """Lines of a file without header: what a record does not say is empty; more columns follow."""
    columns = COLUMNS[file].split()
    lines = ("\t".join(str(record.get(name, "")) for name in columns) + further for record in records)
    return "".join(line + "\n" for line in lines)


def conference(id_: int, name: str, place: str, date: str, cited: int) -> dict[str, object]:
    return {
        "ConferenceInstanceId": id_, "NormalizedName": name.lower(), "DisplayName": name, "Location": place,
        "StartDate": date, "CitationCount": cited, "CreatedDate": "2016-06-24",
    }  # fmt: skip


def journal(id_: int, name: str, publisher: str, created: str, cited: object) -> dict[str, object]:
    return {
        "JournalId": id_, "DisplayName": name, "Issn": "1234-5678", "Publisher": publisher,
        "CitationCount": cited, "CreatedDate": created,
    }  # fmt: skip


def paper(id_: int, name: str, year: object, cited: int, **more: object) -> dict[str, object]:
    same = name.lower().rstrip(".")
    return {
        "PaperId": id_, "Rank": 9, "PaperTitle": same, "OriginalTitle": name, "Year": year,
        "CitationCount": cited,
    } | more  # fmt: skip


FILES = {
    CONFERENCES: rows(
        CONFERENCES,
        conference(1, "AAA 2001", "Vienna, Austria", "2001-05-01", 50),
        conference(2, "BBB Oslo", "Oslo", "2002-05-01", 30),  # its place is its name
        conference(3, "CCC 2003", "", "2003-05-01", 20),  # no place
        conference(4, "DDD", "Rome", "2004-05-01", 2),  # not the only one of the name
        conference(5, "ddd", "Pisa", "2005-05-01", 2),
        conference(6, "EEE 2021", "Kyoto", "2021-05-01", 900),  # too late
        conference(7, "FFF 1999", "Graz", "1999-05-01", 1),
    ),
    JOURNALS: rows(
        JOURNALS,
        journal(1, "Letters", "Orb", "2016-06-24", 10),
        journal(2, "Notes", "Lamp", "2016-06-24", ""),  # never cited
        journal(3, "News", "Mill", "2021-01-01", 70),  # too late
        journal(4, "Views", "", "2016-06-24", 4),  # no publisher
    ),
    PAPERS: rows(
        PAPERS,
        paper(1, "On Alpha.", 1990, 60, DocType="Journal", OriginalVenue="Letters", Publisher="Orb"),
        paper(2, "On Beta", 1991, 30, DocType="Book", Publisher="Orb"),
        paper(3, "on beta", 1992, 30, DocType="Thesis", OriginalVenue="Notes"),  # another Beta
        paper(4, "On Gamma", 1993, 3, OriginalVenue="Notes"),  # twice in one year
        paper(5, "On gamma.", 1993, 2, OriginalVenue="Notes"),
        paper(6, "On Delta", 2021, 900, OriginalVenue="Letters"),  # too late
        paper(7, "On Epsilon", "", 900, OriginalVenue="Letters"),  # no year
        paper(8, "Letters of 1994", 1994, 1, DocType="Patent", OriginalVenue="Letters"),  # gives both away
        paper(9, "On Zeta", 1995, 0, DocType="Conference"),
    ),
    AUTHORSHIPS: rows(
        AUTHORSHIPS,
        *(
            {"PaperId": paper_, "AuthorId": author, "AffiliationId": at, "AuthorSequenceNumber": place}
            for paper_, author, at, place in (
                (1, 12, "", 2),
                (1, 11, 7, 1),
                (1, 11, 8, 1),  # a second affiliation
                (2, 11, "", 1),
                (3, 12, "", 1),
                (3, 19, "", 2),  # of whom nothing else is known
                (9, 13, "", 1),
            )
        ),
    ),
    AUTHORS: rows(
        AUTHORS,
        {"AuthorId": 11, "Rank": 5, "NormalizedName": "ann arbor", "DisplayName": "Ann Arbor"},
        {"AuthorId": 12, "Rank": 5, "NormalizedName": "bo berg"},
        {"AuthorId": 13, "Rank": 5, "DisplayName": "Zeta"},  # in the title of the paper
    ),
}
ASKED = {
    ("head", "mag-conference-location", "1", 'Where was the conference "AAA 2001" held?', ("Vienna, Austria",)),
    ("tail", "mag-conference-location", "7", 'Where was the conference "FFF 1999" held?', ("Graz",)),
    ("head", "mag-journal-publisher", "1", 'Who publishes "Letters"?', ("Orb",)),
    ("tail", "mag-journal-publisher", "2", 'Who publishes "Notes"?', ("Lamp",)),
    ("head", "mag-paper-year", "1", 'In which year did the paper "On Alpha" appear?', (1990,)),
    ("tail", "mag-paper-year", "9", 'In which year did the paper "On Zeta" appear?', (1995,)),
    (
        "head",
        "mag-paper-venue",
        "1",
        'In which journal or at which conference did the paper "On Alpha" appear?',
        ("Letters",),
    ),
    (
        "torso",
        "mag-paper-venue",
        "3",
        'In which journal or at which conference did the thesis "on beta" (1992) appear?',
        ("Notes",),
    ),
    ("head", "mag-paper-publisher", "1", 'Who is the publisher of the paper "On Alpha"?', ("Orb",)),
    ("torso", "mag-paper-publisher", "2", 'Who is the publisher of the book "On Beta" (1991)?', ("Orb",)),
    ("head", "mag-paper-author", "1", 'Name an author of the paper "On Alpha".', ("Ann Arbor", "bo berg")),
    ("torso", "mag-paper-author", "2", 'Name an author of the book "On Beta" (1991).', ("Ann Arbor",)),
}


def test_all_that_the_rules_allow_is_asked_and_nothing_else(
    dump: Write, workspace: Workspace, candidates: Callable[[MagSource], set[tuple[object, ...]]]
) -> None:
    assert candidates(MagSource(workspace, dump(FILES))) == ASKED


def test_the_paper_s_mix_asks_for_identifiers(dump: Write, workspace: Workspace) -> None:
    papers = rows(PAPERS, paper(1, "On Alpha.", 1990, 60, DocType="Journal", Doi="10.1/ALPHA"))
    source = MagSource(workspace, dump(FILES | {PAPERS: papers}))
    drawn = source.draw_questions(dict.fromkeys(source.paper_templates, 100))
    assert len(drawn) == 7
    asked = {
        one.question: one.answers for template in (ISSN, DOI) for found, _ in drawn[template].values() for one in found
    }
    assert asked == {
        'What is the ISSN of the journal "Letters"?': ("1234-5678",),
        'What is the ISSN of the journal "Notes"?': ("1234-5678",),
        'What is the ISSN of the journal "Views"?': ("1234-5678",),
        'What is the DOI of the paper "On Alpha"?': ("10.1/ALPHA",),
    }


def test_popularity_is_citations_up_to_2020_and_each_type_of_entity_is_cut_by_itself(
    dump: Write, workspace: Workspace
) -> None:
    shares = {name: cut.compute_bucket_totals() for name, cut in MagSource(workspace, dump(FILES)).partitions.items()}
    assert shares == {
        # A third of 105 is reached with 50, two thirds with 30 more.
        "conference": {"head": (1, 50), "torso": (1, 30), "tail": (4, 25)},
        # A third and two thirds of 14 are reached with 10.
        "journal": {"head": (1, 10), "torso": (0, 0), "tail": (2, 4)},
        # A third of 126 is reached with 60, two thirds with twice 30 more.
        "paper": {"head": (1, 60), "torso": (2, 60), "tail": (4, 6)},
    }


def _failure(folder: Path, workspace: Workspace) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        MagSource(workspace, folder).draw_questions(dict.fromkeys(MagSource.templates, 10))
    return caught.value


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_of_mag_is_named(dump: Write, workspace: Workspace, name: str) -> None:
    folder = dump(FILES)
    (folder / name).unlink()
    assert Path(_failure(folder, workspace).path).name == name


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_of_mag_is_named(dump: Write, workspace: Workspace, name: str) -> None:
    folder = dump(FILES)
    (folder / name).write_bytes((folder / name).read_bytes()[:-5])
    error = _failure(folder, workspace)
    assert Path(error.path).name == name
    assert error.where.startswith("byte ")


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_mag_with_too_few_columns_is_named(dump: Write, workspace: Workspace, name: str) -> None:
    error = _failure(dump(FILES | {name: "1\t2\t3\n"}), workspace)
    assert (Path(error.path).name, error.where, error.found) == (name, "line 1", "3 columns")


@pytest.mark.parametrize("name", FILES)
def test_a_line_of_mag_that_is_not_utf_8_is_named(dump: Write, workspace: Workspace, name: str) -> None:
    lines = FILES[name].encode().splitlines()
    columns = lines[1].split(b"\t")
    lines[1] = b"\t".join([b"\xff" + columns[0], *columns[1:]])
    error = _failure(dump(FILES | {name: b"\n".join(lines)}), workspace)
    assert (Path(error.path).name, error.where, error.expected) == (name, "line 2", "UTF-8 text")


def test_a_year_that_is_no_number_is_named_with_its_line(dump: Write, workspace: Workspace) -> None:
    error = _failure(dump(FILES | {PAPERS: FILES[PAPERS].replace("\t1991\t", "\tMCMXCI\t")}), workspace)
    assert (error.where, error.found) == ("line 2", "'MCMXCI' as Year")
