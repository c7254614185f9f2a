"""DBLP: computer scientists by their number of works, with questions about their theses.

dblp.xml is one XML document of hundreds of megabytes, with entities from a DTD. If the parser expanded entities, a
malicious file could expand to gigabytes or include other files. So before parsing, the document type is removed, and
each reference is replaced by its character's number. dblp's own DTD declares only characters.
"""

# ruff: noqa: S608 - queries consist of names in this package, never of text in a dump

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from html.entities import name2codepoint
from itertools import chain
from typing import TYPE_CHECKING, Any

from evalsuite.builders.head_to_tail.drawing import DumpSource, QuestionTemplate, cut_by_popularity
from evalsuite.builders.head_to_tail.dump_reader import decompress, locate
from evalsuite.builders.head_to_tail.workspace import rows_as_table
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from evalsuite.builders.head_to_tail.drawing import Answer, QuestionMaker, RawQuestion
    from evalsuite.builders.head_to_tail.workspace import Workspace


FILES = ("dblp.xml",)
LAST_YEAR = 2020
THESES = {"phdthesis": ("phd", "Ph.D. thesis"), "mastersthesis": ("masters", "master's thesis")}
_ASKED = ("title", "year", "school")
TEMPLATES = {
    QuestionTemplate(f"dblp-person-{short}-{asked}", "person"): (kind, asked)
    for kind, (short, _) in THESES.items()
    for asked in _ASKED
}
# DBLP numbers people who share a name: Wei Wang 0001.
_PLAIN = r"regexp_replace(name, ' \d{4}$', '')"
# Separates the schools of one thesis; this character cannot occur in XML.
_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class Thesis:
    """A person's only thesis of its kind."""

    person: str
    kind: str
    title: str
    year: int
    schools: tuple[str, ...]

    def question(self, subject: str) -> RawQuestion:
        """Make a question about the `title`, `year` or `school` of the thesis; return it with its answers."""
        word = THESES[self.kind][1]
        school = f" ({self.schools[0]})" if self.schools else ""
        questions: dict[str, tuple[str, Iterable[Answer | None]]] = {
            "title": (
                f"What is the title of the {word} that {self.person} wrote in {self.year}{school}?",
                [self.title],
            ),
            "year": (f"In which year did {self.person} complete a {word}{school}?", [self.year]),
            "school": (f'At which institution did {self.person} write the {word} "{self.title}"?', self.schools),
        }
        return questions[subject]


class Dblp(DumpSource):
    """DBLP's dump in a workspace."""

    templates = paper_templates = tuple(TEMPLATES)

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        super().__init__(workspace, folder)
        self._read(locate(folder, FILES[0]))
        self.partitions = {"person": cut_by_popularity(workspace, "person")}

    def _pool(self, template: QuestionTemplate) -> str:
        return f"(FROM person SEMI JOIN (FROM thesis WHERE kind = '{TEMPLATES[template][0]}') USING (id))"

    def _prepare_questions(self, sizes: Mapping[QuestionTemplate, int]) -> QuestionMaker:  # noqa: ARG002 - all theses
        rows = self._workspace.sql("""
            SELECT id, name, kind, title, year, schools
            FROM thesis SEMI JOIN drawn USING (id)
        """)
        theses = {
            (id_, kind): Thesis(name, kind, title, year, tuple(schools.split(_SEPARATOR) if schools else ()))
            for id_, name, kind, title, year, schools in rows
        }

        def ask(template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
            kind, subject = TEMPLATES[template]
            if thesis := theses.get((entity, kind)):
                yield thesis.question(subject)

        return ask

    def _read(self, path: Path) -> None:
        self._workspace.progress.begin(path.name)
        blocks = decompress(path, self._workspace.progress.advance)
        columns = dict.fromkeys(("name", "kind", "title", "schools"), "VARCHAR") | {"year": "INTEGER"}
        with rows_as_table(self._workspace, _list_credits(works(blocks, path)), columns) as stream:
            self._workspace.sql(f"CREATE TABLE credited AS FROM {stream}")
        self._workspace.sql(f"""
            CREATE TABLE person AS
            SELECT name AS id, count(*) AS popularity, {self._lot("name")} AS lot
            FROM credited GROUP BY name
        """)
        # Leave out people with a second thesis of the same kind, and people who share a name.
        self._workspace.sql(f"""
            CREATE TABLE thesis AS
            WITH author AS (
                     SELECT name AS id, {_PLAIN} AS name, kind, title, year, schools
                     FROM credited WHERE kind IS NOT NULL
                 ),
                 namesake AS (
                     SELECT called, count(*) AS many
                     FROM (SELECT lower({_PLAIN}) AS called FROM (SELECT id AS name FROM person))
                          SEMI JOIN (SELECT DISTINCT lower(name) AS called FROM author) USING (called)
                     GROUP BY called
                 )
            SELECT id, kind, min(name) AS name, min(title) AS title, min(year) AS year, min(schools) AS schools
            FROM author JOIN namesake ON lower(name) = called
            WHERE many = 1
            GROUP BY id, kind HAVING count(*) = 1
        """)


def _list_credits(works: Iterable[Work]) -> Iterator[tuple[str | int | None, ...]]:
    """Yield a row per person and work up to the last year, with all columns only for theses by one person."""
    for work in works:
        if work.year is None or work.year > LAST_YEAR:
            continue
        if work.kind in THESES and len(work.people) == 1 and work.title:
            schools = _SEPARATOR.join(work.schools) or None
            yield work.people[0], work.kind, work.title, schools, work.year
        else:
            for person in work.people:
                yield person, None, None, None, None


WORKS = ("article", "book", "data", "incollection", "inproceedings", "mastersthesis", "phdthesis", "proceedings")
# Elements that are not works, parsed only to free their memory.
_OTHERS = ("person", "www")
_PREDEFINED = {b"amp", b"apos", b"gt", b"lt", b"quot"}
_REFERENCE = re.compile(rb"&([A-Za-z][A-Za-z0-9]*);")
_DECLARATION = re.compile(rb"<!ENTITY\s+([A-Za-z][A-Za-z0-9]*)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>")
_OPENING = re.compile(rb"<!--|<!\[CDATA\[")
_CLOSING = {b"<!--": b"-->", b"<![CDATA[": b"]]>"}
_LONGEST_MARK = 9
_ROOT = re.compile(rb"<dblp[\s>]")
_LONGEST_REFERENCE = 64
_LONGEST_PROLOGUE = 1 << 20
# Maximum bytes without a complete record, because the parser keeps incomplete records in memory.
_LONGEST_RECORD = 1 << 23


@dataclass(frozen=True, slots=True)
class Work:
    """A publication."""

    kind: str  # Dblp's element name (`article`, `phdthesis`, ...).
    people: tuple[str, ...]  # Authors and editors; dblp adds numbers to names that several people share.
    title: str  # The title without markup and final full stop; empty if missing.
    year: int | None
    schools: tuple[str, ...]


def works(blocks: Iterable[bytes], path: Path) -> Iterator[Work]:
    """Yield the works in dblp.xml; a file `dblp.dtd` in the same folder may declare further characters."""
    from lxml import etree

    # Entities and the DTD have been removed from the input; these options are a second defence.
    parser = etree.XMLPullParser(
        events=("end",), tag=(*WORKS, *_OTHERS), resolve_entities=False, no_network=True, load_dtd=False
    )
    pending = 0
    try:
        for block in _number_characters(blocks, path):
            parser.feed(block)
            pending += len(block)
            for record in _take_records(parser):
                pending = 0
                if record:
                    yield record
            if pending > _LONGEST_RECORD:
                raise DatasetError(path, "", f"{pending >> 20} MB without a record", f"one of {', '.join(WORKS)}")
        parser.close()
    except etree.XMLSyntaxError as error:
        place = f"line {error.lineno}" if error.lineno else ""
        raise DatasetError(path, place, error.msg or "a fault", "well-formed XML") from error


def _take_records(parser: Any) -> Iterator[Work | None]:
    """Yield a work for each complete record in the parser, or None if the record is not a work."""
    for _, element in parser.read_events():
        yield _read_work(element) if element.tag in WORKS else None
        # Free the memory of the element and of its predecessors in the parent.
        element.clear()
        while (before := element.getprevious()) is not None:
            element.getparent().remove(before)


def _read_work(element: Any) -> Work:
    texts: dict[str, list[str]] = {"author": [], "editor": [], "title": [], "year": [], "school": []}
    for child in element:
        if child.tag in texts:
            texts[child.tag].append(" ".join("".join(child.itertext()).split()))
    people = tuple(name for name in dict.fromkeys(texts["author"] + texts["editor"]) if name)
    year = next((int(text) for text in texts["year"] if re.fullmatch(r"[0-9]{4}", text)), None)
    title = next(iter(texts["title"]), "").removesuffix(".")
    return Work(element.tag, people, title, year, tuple(filter(None, texts["school"])))


def _number_characters(blocks: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Yield the document without its DTD, and with a number in place of each named character."""
    prologue, blocks = _split_prologue(iter(blocks), path)
    declared = _read_declarations(prologue, path)
    head = prologue[: prologue.find(b"?>") + 2] if prologue.lstrip().startswith(b"<?xml") else b""
    # Keep the number of lines, so that the parser's line numbers match the file's.
    yield head + b"\n" * (line := prologue.count(b"\n"))
    for text, is_literal in _split_literals(blocks):
        number = partial(_number_reference, declared=declared, path=path, line=line)
        yield text if is_literal else _REFERENCE.sub(number, text)
        line += text.count(b"\n")


def _split_literals(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield pieces of text and whether each piece is literal (a comment or CDATA); tags and references stay whole."""
    closing, rest = b"", b""
    for block in chain(blocks, (b"",)):
        text, rest = rest + block, b""
        while text:
            if closing:
                end = text.find(closing)
                # Keep the last two bytes, because the closing mark may begin in them.
                cut = end + len(closing) if end >= 0 else len(text) - (min(len(text), 2) if block else 0)
                yield text[:cut], True
                text, rest = (text[cut:], b"") if end >= 0 else (b"", text[cut:])
                closing = b"" if end >= 0 else closing
            elif opening := _OPENING.search(text):
                yield text[: opening.start()], False
                yield opening[0], True
                text, closing = text[opening.end() :], _CLOSING[opening[0]]
            else:
                cut = _find_cut(text) if block else len(text)
                yield text[:cut], False
                text, rest = b"", text[cut:]


def _find_cut(text: bytes) -> int:
    """Find the start of an incomplete tag or reference at the end of the text, else the end of the text."""
    mark, reference = text.rfind(b"<", -_LONGEST_MARK), text.rfind(b"&", -_LONGEST_REFERENCE)
    begun = ((mark, b">"), (reference, b";"))
    return min((place for place, end in begun if place >= 0 and end not in text[place:]), default=len(text))


def _split_prologue(blocks: Iterator[bytes], path: Path) -> tuple[bytes, Iterator[bytes]]:
    start = b""
    for block in blocks:
        start += block
        if root := _ROOT.search(start):
            return start[: root.start()], chain((start[root.start() :],), blocks)
        if len(start) > _LONGEST_PROLOGUE:
            break
    beginning = repr(start[:40].decode("utf-8", "replace")) if start else "an empty file"
    raise DatasetError(path, "its beginning", beginning, "an XML document of <dblp>")


def _read_declarations(prologue: bytes, path: Path) -> Mapping[bytes, int]:
    """Map the names of characters in HTML and in the DTD to the characters' numbers."""
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
    return characters


def _number_reference(reference: re.Match[bytes], declared: Mapping[bytes, int], path: Path, line: int) -> bytes:
    name = reference[1]
    if name in _PREDEFINED:
        return reference[0]
    if name not in declared:
        number = line + reference.string.count(b"\n", 0, reference.start()) + 1
        expected = "an entity that stands for one character, as HTML or a dblp.dtd beside the file declare"
        raise DatasetError(path, f"line {number}", f"the entity &{name.decode()};", expected)
    return b"&#%d;" % declared[name]
