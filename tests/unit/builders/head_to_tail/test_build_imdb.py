from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalsuite.builders.head_to_tail.imdb import DEPARTMENT, JOB, SPECIALTY, ImdbSource, is_character, parse_professions
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from evalsuite.builders.head_to_tail.workspace import Workspace

Write = Callable[[Mapping[str, str | bytes]], Path]

BASICS = (
    "tconst", "titleType", "primaryTitle", "originalTitle", "isAdult", "startYear", "endYear",
    "runtimeMinutes", "genres",
)  # fmt: skip
NAMES = ("nconst", "primaryName", "birthYear", "deathYear", "primaryProfession", "knownForTitles")
PRINCIPALS = ("tconst", "ordering", "nconst", "category", "job", "characters")


def table(heads: Sequence[str], *rows: Sequence[object]) -> str:
    r"""The rows as IMDb writes them, None as \N."""
    lines = [heads, *(["\\N" if cell is None else str(cell) for cell in row] for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def title(
    number: int, kind: str, name: str, year: int | None, minutes: object = None, end: int | None = None
) -> list[object]:
    return [f"tt{number:07d}", kind, name, name, 0, year, end, minutes, "Drama"]


# Titles are cut at 700 and 1400 of 2100: the head ends with Alpha, the torso with Beta and its equal.
TITLES = [
    title(1, "movie", "Alpha", 1990, 100),  # 1000 votes
    title(2, "tvSeries", "Beta", 2000, None, 2005),  # 500 votes
    title(3, "tvMiniSeries", "Gamma", 2001, 45, 2021),  # 500 votes; its end is too late, and 45 minutes of what?
    title(4, "movie", "Delta", 1999, 80),  # 93 votes; another Delta
    title(5, "short", "delta", 2005, 7),  # not rated
    title(6, "movie", "Echo", 2001, 90),  # twice in one year
    title(7, "tvMovie", "Echo", 2001, 91),
    title(8, "movie", "1984", 1984, 110),  # its year is its name
    title(9, "movie", "Omega", 2021, 120),  # 9000 votes, but too late
    title(10, "movie", "Lost", None, 60),  # no year
    title(11, "movie", "Zeta 12", 2010, 12),  # its minutes stand in its name
    title(12, "movie", "Eta Mann Story", 2011, "Reality-TV"),  # minutes that are none, as IMDb has a few
]
RATINGS = [("tt0000001", 7.5, 1000), ("tt0000002", 8, 500), ("tt0000003", 6, 500), ("tt0000004", 5, 93)]
CREW = [
    ("tt0000001", "nm0000001,nm0000002", "nm0000003"),
    ("tt0000002", "nm0000099", None),  # a director of whom nothing else is known
    ("tt0000004", "nm0000004", "nm0000003,nm0000099"),
    ("tt0000006", "nm0000001", "nm0000001"),
    ("tt0000009", "nm0000001", "nm0000001"),
    ("tt0000012", "nm0000006", None),  # her name is in the title
]
CAST = [
    ("tt0000001", 1, "nm0000001", "actress", None, '["Queen"]'),
    ("tt0000001", 2, "nm0000002", "actor", None, '["Queen","King"]'),  # a second Queen
    ("tt0000001", 3, "nm0000003", "self", None, '["Self"]'),
    ("tt0000001", 4, "nm0000004", "actor", None, '["Self - Guest"]'),
    ("tt0000002", 1, "nm0000099", "actor", None, '["Nobody Known"]'),
    ("tt0000003", 1, "nm0000003", "actor", None, '["Beata Klein"]'),  # plays herself
    ("tt0000004", 1, "nm0000001", "director", None, None),
    ("tt0000005", 1, "nm0000001", "actress", None, '["Elf"]'),
    ("tt0000009", 1, "nm0000001", "actress", None, '["Empress"]'),
]
PEOPLE = [
    ("nm0000001", "Anna Groß", 1960, 2019, "actress,producer", "tt0000001,tt0000004"),
    ("nm0000002", "Bert Holm", 1950, 2021, "camera_department", "tt0000004"),  # died too late to be asked
    ("nm0000003", "Beata Klein", 1990, None, "miscellaneous", "tt0000001"),
    ("nm0000010", "Gerd Pohl", None, None, None, "tt0000010,tt0000012,tt0000099"),  # one is not known
    ("nm0000004", "Carl Lind", None, None, None, "tt0000006,tt0000007"),  # known for what is not clear
    ("nm0000005", "anna groß", 1970, None, "writer", "tt0000005"),  # not the only one of the name
    ("nm0000006", "Eta Mann", 1980, None, "director", "tt0000012"),
    ("nm0000007", "Dora Mill", 1950, None, "actor", "tt0000009"),  # known for what came too late
    ("nm0000008", "Egon Nord", 1951, None, "editor", None),
    ("nm0000009", "Fritz Otto", 1984, None, "editor", "tt0000008,tt0000009"),
]
FILES = {
    "title.basics.tsv.gz": table(BASICS, *TITLES),
    "title.ratings.tsv.gz": table(["tconst", "averageRating", "numVotes"], *RATINGS),
    "title.crew.tsv.gz": table(["tconst", "directors", "writers"], *CREW),
    "title.principals.tsv.gz": table(PRINCIPALS, *CAST),
    "name.basics.tsv.gz": table(NAMES, *PEOPLE),
}
A, B, G = "tt0000001", "tt0000002", "tt0000003"
ASKED = {
    ("torso", "start-year", B, 'In which year did the TV series "Beta" first go on air?', (2000,)),
    ("torso", "start-year", G, 'In which year did the TV mini-series "Gamma" first go on air?', (2001,)),
    ("head", "release-year", A, 'In which year did the film "Alpha" come out?', (1990,)),
    ("tail", "release-year", "tt0000011", 'In which year did the film "Zeta 12" come out?', (2010,)),
    ("tail", "release-year", "tt0000012", 'In which year did the film "Eta Mann Story" come out?', (2011,)),
    ("torso", "end-year", B, 'In which year did the TV series "Beta" end?', (2005,)),
    ("head", "running-time", A, 'How many minutes does the film "Alpha" run?', (100,)),
    ("tail", "running-time", "tt0000004", 'How many minutes does the film "Delta" (1999) run?', (80,)),
    ("tail", "running-time", "tt0000005", 'How many minutes does the short film "delta" (2005) run?', (7,)),
    ("tail", "running-time", "tt0000008", 'How many minutes does the film "1984" run?', (110,)),
    ("head", "director", A, 'Who directed the film "Alpha"?', ("Anna Groß", "Bert Holm")),
    ("tail", "director", "tt0000004", 'Who directed the film "Delta" (1999)?', ("Carl Lind",)),
    ("head", "writer", A, 'Who wrote the film "Alpha"?', ("Beata Klein",)),
    ("head", "character", A, 'Which actor or actress played Queen in the film "Alpha"?', ("Anna Groß", "Bert Holm")),
    ("head", "character", A, 'Which actor or actress played King in the film "Alpha"?', ("Bert Holm",)),
    (
        "tail",
        "character",
        "tt0000005",
        'Which actor or actress played Elf in the short film "delta" (2005)?',
        ("Anna Groß",),
    ),
}
# People's votes: Anna Groß 1093, Beata Klein 1000, Bert Holm 93, and 2, 1, 1, 1, 1 for those of unrated titles;
# of 2192 in all, a third is reached with the first and two thirds with the second.
ASKED_OF_PEOPLE = {
    ("torso", "birth-year", "nm0000003", 'In which year was Beata Klein, known for "Alpha", born?', (1990,)),
    ("tail", "birth-year", "nm0000002", 'In which year was Bert Holm, known for "Delta" (1999), born?', (1950,)),
    ("tail", "birth-year", "nm0000006", 'In which year was Eta Mann, known for "Eta Mann Story", born?', (1980,)),
    (
        "tail",
        "profession",
        "nm0000002",
        'What is the profession of Bert Holm, known for "Delta" (1999)?',
        ("camera department",),
    ),
    (
        "tail",
        "profession",
        "nm0000006",
        'What is the profession of Eta Mann, known for "Eta Mann Story"?',
        ("director",),
    ),
    ("tail", "profession", "nm0000009", 'What is the profession of Fritz Otto, known for "1984"?', ("editor",)),
    ("torso", "known-for", "nm0000003", "Name a work that Beata Klein is known for.", ("Alpha",)),
    ("tail", "known-for", "nm0000002", "Name a work that Bert Holm is known for.", ("Delta",)),
    ("tail", "known-for", "nm0000004", "Name a work that Carl Lind is known for.", ("Echo",)),
    ("tail", "known-for", "nm0000006", "Name a work that Eta Mann is known for.", ("Eta Mann Story",)),
    ("tail", "known-for", "nm0000009", "Name a work that Fritz Otto is known for.", ("1984", "Omega")),
}


def test_all_that_the_rules_allow_is_asked_and_nothing_else(
    dump: Write, workspace: Workspace, candidates: Callable[[ImdbSource], set[tuple[object, ...]]]
) -> None:
    found = candidates(ImdbSource(workspace, dump(FILES)))
    titles = {(bucket, f"imdb-title-{name}", *rest) for bucket, name, *rest in ASKED}
    people = {(bucket, f"imdb-person-{name}", *rest) for bucket, name, *rest in ASKED_OF_PEOPLE}
    assert found == titles | people


def test_the_paper_s_mix_asks_for_an_only_profession_in_three_ways(dump: Write, workspace: Workspace) -> None:
    people = [*PEOPLE, ("nm0000011", "Hans Quell", None, None, "stunts", "tt0000008")]
    source = ImdbSource(workspace, dump(FILES | {"name.basics.tsv.gz": table(NAMES, *people)}))
    assert len(source.paper_templates) == 13
    drawn = source.draw_questions(dict.fromkeys(source.paper_templates, 100))
    asked = {
        one.question: one.answers
        for template in (JOB, DEPARTMENT, SPECIALTY)
        for found, _ in drawn[template].values()
        for one in found
    }
    assert asked == {
        'What is the job of Eta Mann, known for "Eta Mann Story"?': ("director",),
        'What is the job of Fritz Otto, known for "1984"?': ("editor",),
        'In which department does Bert Holm, known for "Delta" (1999), work?': ("camera department",),
        'What is the line of work of Hans Quell, known for "1984"?': ("stunts",),
    }


def test_popularity_is_votes_and_people_have_the_votes_of_what_they_are_known_for(
    dump: Write, workspace: Workspace
) -> None:
    partitions = ImdbSource(workspace, dump(FILES)).partitions
    # Alpha; Beta and Gamma; Delta and six titles without votes, which count one each.
    assert partitions["title"].compute_bucket_totals() == {"head": (1, 1000), "torso": (2, 1000), "tail": (7, 99)}
    # Omega and Lost are not among the titles; Dora Mill and Egon Nord are known for none of them.
    assert partitions["person"].compute_bucket_totals() == {"head": (1, 1093), "torso": (1, 1000), "tail": (6, 99)}


def test_columns_may_stand_in_any_order_with_others_between(
    dump: Write, workspace: Workspace, candidates: Callable[[ImdbSource], set[tuple[object, ...]]]
) -> None:
    turned = table(["numVotes", "new", "tconst"], *((votes, "x", id_) for id_, _, votes in RATINGS))
    found = candidates(ImdbSource(workspace, dump(FILES | {"title.ratings.tsv.gz": turned})))
    assert len(found) == len(ASKED) + len(ASKED_OF_PEOPLE)


def test_a_title_is_asked_about_its_characters_one_by_one_before_any_comes_twice(
    dump: Write, workspace: Workspace
) -> None:
    cast = [(f"tt{n:07d}", 1, "nm0000001", "actor", None, f'["First {n}","Second {n}"]') for n in (3, 4, 11, 12)]
    source = ImdbSource(workspace, dump(FILES | {"title.principals.tsv.gz": table(PRINCIPALS, *cast)}))
    character = next(template for template in source.templates if template.id == "imdb-title-character")
    drawn, _ = source.draw_questions(dict.fromkeys(source.templates, 100))[character]["tail"]
    assert [one.turn for one in drawn] == [0, 0, 0, 1, 1, 1]
    assert len({one.entity for one in drawn[:3]}) == 3


def test_what_is_drawn_first_is_the_beginning_of_what_is_drawn_in_all(dump: Write, workspace: Workspace) -> None:
    titles = [title(n, "movie", f"Film {n:03d}", 1950, n) for n in range(1, 200)]
    source = ImdbSource(workspace, dump(FILES | {"title.basics.tsv.gz": table(BASICS, *titles)}))
    few, all_ = (source.draw_questions(dict.fromkeys(source.templates, size)) for size in (10, 1000))
    for template in source.templates[:4]:
        (part, _), (whole, exhausted) = few[template]["tail"], all_[template]["tail"]
        assert part == whole[: len(part)]
        assert exhausted
    assert few[source.templates[3]]["tail"][1] is False


def test_a_character_must_have_a_name_of_its_own() -> None:
    assert all(map(is_character, ["Queen", "Selfridge", "Extraordinary Man", "Voice of God"]))
    assert not any(map(is_character, ["Self", "Self - Host", "Himself", "various", "Additional Voices", "Extra", " "]))


def test_professions_are_words_and_an_actress_is_an_actor_too() -> None:
    assert parse_professions("actress,camera_department") == ["actress", "camera department", "actor"]
    assert parse_professions("soundtrack,miscellaneous,archive_footage") == []
    assert parse_professions(None) == []


def _failure(folder: Path, workspace: Workspace) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        ImdbSource(workspace, folder).draw_questions(dict.fromkeys(ImdbSource.templates, 10))
    return caught.value


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(dump: Write, workspace: Workspace, name: str) -> None:
    folder = dump(FILES)
    (folder / name).unlink()
    error = _failure(folder, workspace)
    assert (Path(error.path).name, error.found) == (name, "no such file")


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_named_with_the_byte_at_which_it_ends(dump: Write, workspace: Workspace, name: str) -> None:
    folder = dump(FILES)
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) - 12])
    error = _failure(folder, workspace)
    assert (Path(error.path).name, error.where) == (name, f"byte {len(whole) - 12}")


@pytest.mark.parametrize("name", FILES)
def test_a_file_without_a_column_is_named_with_the_column(dump: Write, workspace: Workspace, name: str) -> None:
    lines = FILES[name].splitlines()
    error = _failure(dump(FILES | {name: "\n".join(line.partition("\t")[2] for line in lines)}), workspace)
    assert (Path(error.path).name, error.where) == (name, "line 1")
    assert repr(lines[0].partition("\t")[0]) in error.expected


@pytest.mark.parametrize("readable", [" 5", "1_000", "5.0", f"{7:040d}"])
def test_a_number_that_the_database_can_read_is_not_called_malformed(
    dump: Write, workspace: Workspace, readable: str
) -> None:
    votes = f"tconst\tnumVotes\ntt1\t{readable}\ntt2\tmany\n"
    assert _failure(dump(FILES | {"title.ratings.tsv.gz": votes}), workspace).where == "line 3"


@pytest.mark.parametrize("name", FILES)
def test_a_line_with_a_column_too_few_is_named(dump: Write, workspace: Workspace, name: str) -> None:
    lines = FILES[name].splitlines()
    lines[2] = lines[2].rpartition("\t")[0]
    error = _failure(dump(FILES | {name: "\n".join(lines)}), workspace)
    assert (Path(error.path).name, error.where) == (name, "line 3")
    assert error.found == f"{len(lines[0].split()) - 1} columns"


@pytest.mark.parametrize("name", FILES)
def test_a_line_that_is_not_utf_8_is_named(dump: Write, workspace: Workspace, name: str) -> None:
    lines = FILES[name].encode().splitlines()
    lines[1] = b"\xff" + lines[1]
    error = _failure(dump(FILES | {name: b"\n".join(lines)}), workspace)
    assert (Path(error.path).name, error.where, error.expected) == (name, "line 2", "UTF-8 text")
    assert "0xff" in error.found


@pytest.mark.parametrize("count", ["many", "-93", "99999999999"])
def test_a_count_that_is_none_is_named_with_its_line(dump: Write, workspace: Workspace, count: str) -> None:
    ratings = FILES["title.ratings.tsv.gz"].replace("\t93\n", f"\t{count}\n")
    error = _failure(dump(FILES | {"title.ratings.tsv.gz": ratings}), workspace)
    assert (error.where, error.found) == ("line 5", f"'{count}' as numVotes")


@pytest.mark.parametrize("characters", ['["Queen', '"Queen"', "[1]", "[" * 100_000], ids=range(4))
def test_characters_that_are_no_list_are_named_with_their_title(
    dump: Write, workspace: Workspace, characters: str
) -> None:
    principals = FILES["title.principals.tsv.gz"].replace('["Queen"]', characters)
    error = _failure(dump(FILES | {"title.principals.tsv.gz": principals}), workspace)
    assert (Path(error.path).name, error.where) == ("title.principals.tsv.gz", "characters of tt0000001")


def test_a_file_may_lie_there_decompressed(dump: Write, workspace: Workspace) -> None:
    folder = dump(FILES)
    packed = folder / "title.crew.tsv.gz"
    packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    assert ImdbSource(workspace, folder).draw_questions(dict.fromkeys(ImdbSource.templates, 10))
