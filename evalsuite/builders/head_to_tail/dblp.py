"""DBLP: computer scientists by their number of works, with questions about their theses.

dblp.xml is one XML document of hundreds of megabytes, with entities from a DTD. Reading an unknown DTD is dangerous: a
malicious one can expand to gigabytes or include other files. For safety, the reader parses the file with a substitute
DTD, which declares only characters. Nothing is lost, because dblp's own DTD declares only characters, too.
"""

# ruff: noqa: S608 - queries consist of names in this package, never of text in a dump

import re
from collections.abc import Iterable, Iterator, Mapping
from html.entities import name2codepoint
from pathlib import Path
from typing import Any

from evalsuite.builders.head_to_tail.drawing import QuestionMaker, QuestionSource, QuestionTemplate, RawQuestion
from evalsuite.builders.head_to_tail.workspace import decompress_file, encode_tsv_rows
from evalsuite.core.errors import DatasetError

LAST_YEAR = 2020
THESES = {"phdthesis": ("phd", "Ph.D. thesis"), "mastersthesis": ("masters", "master's thesis")}
_ASKED = {
    "title": "What is the title of the {word} that {person} wrote in {year}{school}?",
    "year": "In which year did {person} complete a {word}{school}?",
    "school": 'At which institution did {person} write the {word} "{title}"?',
}
# Maps each template to the thesis's kind and to the column of the answer.
TEMPLATES = {
    QuestionTemplate(
        "person", f"dblp-person-{short}-{asked}", wording, f"id IN (SELECT id FROM thesis WHERE kind = '{kind}')"
    ): (kind, asked)
    for kind, (short, _) in THESES.items()
    for asked, wording in _ASKED.items()
}
_UNNUMBERED_NAME_SQL = r"regexp_replace(name, ' \d{4}$', '')"  # DBLP numbers shared names, as in Wei Wang 0001.
_SEPARATOR = "\x1f"  # Separates the schools of one thesis; XML cannot contain this character.


class DblpSource(QuestionSource):
    """DBLP's dump, read into the database of a `Workspace`."""

    files, paper_cap = ("dblp.xml",), 100
    templates = paper_templates = tuple(TEMPLATES)

    def _load_question_maker(self, entity_counts: Mapping[QuestionTemplate, int]) -> QuestionMaker:  # noqa: ARG002 - all theses
        rows = self._workspace.run_sql("""
            SELECT id, kind, name, title, year, schools
            FROM thesis SEMI JOIN drawn USING (id)
        """)
        theses = {(id_, kind): thesis for id_, kind, *thesis in rows}

        def list_questions(template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
            kind, subject = TEMPLATES[template]
            if (entity, kind) in theses:
                person, title, year, listed = theses[entity, kind]
                schools = listed.split(_SEPARATOR) if listed else []
                school = f" ({schools[0]})" if schools else ""
                question = template.wording.format(
                    word=THESES[kind][1], person=person, title=title, year=year, school=school
                )
                yield question, {"title": [title], "year": [year], "school": schools}[subject]

        return list_questions

    def _create_tables(self) -> None:
        path = self._find_file(self.files[0])
        blocks = decompress_file(path, self._workspace.progress.advance)
        columns = dict.fromkeys(("name", "kind", "title", "schools"), "VARCHAR") | {"year": "INTEGER"}
        rows = encode_tsv_rows(read_credits(blocks, path))
        self._workspace.read_dump("CREATE TABLE credited AS FROM $dump", path, rows, "\t", columns)
        self._workspace.run_sql("""
            CREATE TABLE person AS
            SELECT name AS id, count(*) AS popularity, shuffle_key(name) AS lot
            FROM credited GROUP BY name
        """)
        # Leave out people with several theses of one kind, and people with the same name as another person.
        self._workspace.run_sql(f"""
            CREATE TABLE thesis AS
            WITH author AS (
                     SELECT name AS id, {_UNNUMBERED_NAME_SQL} AS name, kind, title, year, schools
                     FROM credited WHERE kind IS NOT NULL
                 ),
                 namesake AS (
                     SELECT called, count(*) AS many
                     FROM (SELECT lower({_UNNUMBERED_NAME_SQL}) AS called FROM (SELECT id AS name FROM person))
                          SEMI JOIN (SELECT DISTINCT lower(name) AS called FROM author) USING (called)
                     GROUP BY called
                 )
            SELECT id, kind, min(name) AS name, min(title) AS title, min(year) AS year, min(schools) AS schools
            FROM author JOIN namesake ON lower(name) = called
            WHERE many = 1
            GROUP BY id, kind HAVING count(*) = 1
        """)


WORKS = ("article", "book", "data", "incollection", "inproceedings", "mastersthesis", "phdthesis", "proceedings")
_OTHER_ELEMENTS = ("person", "www")  # XML elements that are not works; they are only parsed to free their memory.
_PREDEFINED = {b"amp", b"apos", b"gt", b"lt", b"quot"}  # The character names that XML itself declares.
_DECLARATION = re.compile(rb"<!ENTITY\s+([A-Za-z][A-Za-z0-9]*)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>")
_UNKNOWN = re.compile(r"Entity '([^']+)' not defined")
_ROOT = re.compile(rb"<dblp[\s>]")
_LONGEST_PROLOGUE = 1 << 20
# Maximum bytes of one record, because the parser keeps incomplete records in memory.
_LONGEST_RECORD = 1 << 23


# The columns of the table `credited`: a person's name; then a thesis's kind, its title without the final full stop, its
# schools (joined by `_SEPARATOR`; None without schools), and its year. For works that are not a thesis by a single
# author, only the name is not None.
Credit = tuple[str | int | None, ...]


def read_credits(blocks: Iterable[bytes], path: Path) -> Iterator[Credit]:
    """Yield a row for each author and editor of each work up to `LAST_YEAR` in dblp.xml.

    A file `dblp.dtd` in the same folder may declare further characters.
    """
    from lxml import etree

    parser = etree.XMLPullParser(
        events=("end",), tag=(*WORKS, *_OTHER_ELEMENTS), resolve_entities="internal", no_network=True, load_dtd=False
    )
    pending = 0
    try:
        for block in _replace_document_type(blocks, path):
            parser.feed(block)
            pending += len(block)
            for _, element in parser.read_events():
                pending = 0
                if element.tag in WORKS:
                    yield from _list_credits(element)
                # Free the memory of the element and of its predecessors in the parent.
                element.clear()
                while (before := element.getprevious()) is not None:
                    element.getparent().remove(before)
            if pending > _LONGEST_RECORD:
                raise DatasetError(path, "", f"{pending >> 20} MB without a record", f"one of {', '.join(WORKS)}")
        parser.close()
    except etree.XMLSyntaxError as error:
        place = f"line {error.lineno}" if error.lineno else ""
        if unknown := _UNKNOWN.match(error.msg or ""):
            expected = "an entity that stands for one character, as HTML or a dblp.dtd beside the file declare"
            raise DatasetError(path, place, f"the entity &{unknown[1]};", expected) from error
        raise DatasetError(path, place, error.msg or "a fault", "well-formed XML") from error


def _list_credits(element: Any) -> Iterator[Credit]:
    texts: dict[str, list[str]] = {"author": [], "editor": [], "title": [], "year": [], "school": []}
    for child in element:
        if child.tag in texts:
            texts[child.tag].append(" ".join("".join(child.itertext()).split()))
    year = next((int(text) for text in texts["year"] if re.fullmatch(r"[0-9]{4}", text)), None)
    if year is None or year > LAST_YEAR:
        return
    people = [name for name in dict.fromkeys(texts["author"] + texts["editor"]) if name]
    title = next(iter(texts["title"]), "").removesuffix(".")
    if element.tag in THESES and len(people) == 1 and title:
        yield people[0], element.tag, title, _SEPARATOR.join(filter(None, texts["school"])) or None, year
    else:
        yield from ((person, None, None, None, None) for person in people)


def _replace_document_type(blocks: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Replace the DTD by one that declares only characters, without changing the line numbers."""
    blocks, start, root = iter(blocks), b"", None
    for block in blocks:
        start += block
        if (root := _ROOT.search(start)) or len(start) > _LONGEST_PROLOGUE:
            break
    if not root:
        beginning = repr(start[:40].decode("utf-8", "replace")) if start else "an empty file"
        raise DatasetError(path, "its beginning", beginning, "an XML document of <dblp>")
    prologue = start[: root.start()]
    head = prologue[: prologue.find(b"?>") + 2] if prologue.lstrip().startswith(b"<?xml") else b""
    # Escape an ampersand twice (`&#38;#38;`), because the parser reads a declared value twice.
    declared = [b'<!ENTITY %s "&#38;#%d;">' % character for character in _read_declarations(prologue, path).items()]
    yield head + b"<!DOCTYPE dblp [" + b"".join(declared) + b"]>" + b"\n" * prologue.count(b"\n")
    yield start[root.start() :]
    yield from blocks


def _read_declarations(prologue: bytes, path: Path) -> Mapping[bytes, int]:
    """Map character names such as `auml`, from HTML and from the DTD, to character numbers."""
    beside = path.with_name("dblp.dtd")
    dtd = beside.read_bytes() if beside.is_file() else b""
    characters = {name.encode(): number for name, number in name2codepoint.items()}
    for name, double, single in _DECLARATION.findall(dtd + prologue):
        value = (double or single).decode("utf-8", "replace")
        if number := re.fullmatch(r"&#(?:(\d{1,7})|x([0-9A-Fa-f]{1,6}));", value):
            characters[name] = int(number[1]) if number[1] else int(number[2], 16)
        elif len(value) == 1:
            characters[name] = ord(value)
        else:
            characters.pop(name, None)
    return {name: number for name, number in characters.items() if name not in _PREDEFINED}
