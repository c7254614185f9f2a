"""Builds questions about predicates of DBpedia; an entity's popularity is its number of triples.

A model may draft question templates for further predicates.

As in the paper, predicates are left out if they are too vague or only concern the source itself. A predicate is also
left out if its values change over time or are not text.
"""

# ruff: noqa: S608 - queries consist of names in this package, never of text in a dump

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from evalsuite.builders.head_to_tail.drawing import (
    QuestionMaker,
    QuestionSource,
    QuestionTemplate,
    RawQuestion,
    add_namesake_counts,
    draw_entities,
)
from evalsuite.builders.head_to_tail.workspace import Workspace, quote_sql, read_triples
from evalsuite.builders.model_session import open_session
from evalsuite.core.errors import DatasetError, JudgeError
from evalsuite.core.protocols import Model
from evalsuite.core.settings import Settings
from evalsuite.judges.asking import ask_until_parsed
from evalsuite.judges.prompts import mark_sections
from evalsuite.samples.items import read_json, require_type

TEMPLATES = Path(__file__).parent / "dbpedia_questions.json"
_RESOURCE = "<http://dbpedia.org/resource/"
_MORE = 4  # Oversampling factor, because an entity with several values is drawn several times.
_BRACKETS = re.compile(r"\s+\([^()]*\)$")  # Matches "(planet)" in "Mercury (planet)"; answers may omit it.


class DbpediaSource(QuestionSource):
    """DBpedia's dump, read into the database of a `Workspace`; the file `templates` maps predicates to questions."""

    files, target, paper_cap = ("mappingbased-objects_lang=en.ttl.bz2",), 3000, 10

    def __init__(self, workspace: Workspace, folder: Path, templates: Path | None = None) -> None:
        self.templates, self.dropped = read_templates(templates or TEMPLATES)
        self.paper_templates = self.templates
        super().__init__(workspace, folder)
        self.partitions = {**self.partitions, "predicate": self._partition("predicate")}
        self.template_popularity = dict(workspace.run_sql("SELECT id, popularity FROM predicate"))

    def find_predicate_examples(self, predicate_count: int) -> dict[str, list[tuple[str, str]]]:
        """Find up to three examples (subject, object) for each of the most frequent predicates without a template."""
        known = {template.id for template in self.templates} | UNFIT.keys()
        rows = self._workspace.run_sql("""
            SELECT predicate, list((subject, object) ORDER BY subject, object)[:3]
            FROM triple JOIN predicate ON predicate.id = triple.predicate
            WHERE object IS NOT NULL AND NOT contains(subject || object, '__')
            GROUP BY ALL ORDER BY max(popularity) DESC, predicate
        """)
        drafted = [(predicate, pairs) for predicate, pairs in rows if predicate not in known][:predicate_count]
        return {predicate: [(_decode_name(a), _decode_name(b)) for a, b in pairs] for predicate, pairs in drafted}

    def _draw_entities(self, entity_counts: Mapping[QuestionTemplate, int]) -> None:
        pool = "(FROM asked JOIN entity ON entity.id = asked.subject)"
        more = {template: size * _MORE for template, size in entity_counts.items()}
        draw_entities(self._workspace, pool, self.partitions["entity"], more)

    def _load_question_maker(self, entity_counts: Mapping[QuestionTemplate, int]) -> QuestionMaker:  # noqa: ARG002 - all templates
        rows = self._workspace.run_sql("""
            SELECT template, subject, list(object ORDER BY object)
            FROM asked SEMI JOIN drawn ON drawn.template = asked.template AND drawn.id = asked.subject
            GROUP BY ALL
        """)
        values = {(template, subject): objects for template, subject, objects in rows}
        # Leave out entities whose name equals another entity's name, ignoring case.
        shown = "SELECT DISTINCT id, lower(id) AS called, NULL AS year FROM drawn"
        counts = add_namesake_counts(self._workspace, shown, "(SELECT lower(id) AS called, NULL AS year FROM entity)")
        left_out = {id_ for id_, _, namesakes, _ in counts if namesakes > 1}

        def list_questions(template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
            if entity not in left_out and not _is_list_page(name := _decode_name(entity)):
                yield template.wording.replace("_", name), _list_names(values[template.id, entity])

        return list_questions

    def _create_tables(self) -> None:
        """Read the triples; remove the common prefix of the entities' IRIs, and read other objects as null."""
        skip = len(_RESOURCE)
        query = f"""
            CREATE TABLE triple AS
            SELECT subject[{skip + 1}:-2] AS subject, predicate,
                   CASE WHEN starts_with(object, '{_RESOURCE}') THEN object[{skip + 1}:-2] END AS object
            FROM $dump WHERE starts_with(subject, '{_RESOURCE}')
        """
        read_triples(self._workspace, query, self._find_file(self.files[0]))
        # A name with two successive underscores is not an entity, but an intermediate node of DBpedia's extraction.
        self._workspace.run_sql("""
            CREATE TABLE entity AS
            SELECT id, count(*) AS popularity, shuffle_key(id) AS lot
            FROM (
                SELECT subject AS id FROM triple
                UNION ALL SELECT object FROM triple WHERE object IS NOT NULL AND object <> subject
            )
            WHERE NOT contains(id, '__') GROUP BY id
        """)
        self._workspace.run_sql("""
            CREATE TABLE predicate AS
            SELECT predicate AS id, count(*) AS popularity FROM triple GROUP BY predicate
        """)
        wanted = ", ".join(f"({quote_sql(template.id)})" for template in self.templates)
        self._workspace.run_sql(f"""
            CREATE VIEW asked AS
            SELECT predicate AS template, subject, object
            FROM triple SEMI JOIN (VALUES {wanted}) AS wanted (predicate) USING (predicate)
        """)


DRAFT = """\
Each line below is a fact: subject | property | object. All lines have the same property.

{facts}

Write one question in English about the property that asks for the object. Write _ in place of the subject, and do \
not name any object. The question must make sense for other subjects, too. Answer with the question alone.
"""
PARAMETERS: Mapping[str, Any] = {"max_tokens": 64, "temperature": 0.0}


def draft_templates(
    examples: Mapping[str, list[tuple[str, str]]], settings: Settings, answers: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Ask a model for a question template per predicate, given up to three pairs of subject and object of each.

    The prompt paraphrases the paper's Prompt 1; the file `answers` stores the model's answers. Return the templates by
    predicate, and the reasons why other predicates have no template.
    """
    templates: dict[str, str] = {}
    failures: dict[str, str] = {}

    async def draft_template(predicate: str, pairs: list[tuple[str, str]], model: Model) -> None:
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.split(r"[/#]", predicate.strip("<>"))[-1]).lower()
        facts = "\n".join(f"{subject} | {name} | {object_}" for subject, object_ in pairs)
        prompt = DRAFT.format(facts=mark_sections([("facts", facts)]))
        try:
            answer = await ask_until_parsed(model, prompt, lambda text: _parse_template(text, pairs), **PARAMETERS)
            templates[predicate] = answer.value
        except JudgeError as error:
            failures[predicate] = str(error).removeprefix("judge ")

    with open_session(settings, answers) as opened:
        opened.run_coroutines(draft_template(*example, opened.model) for example in examples.items())
    return {name: templates[name] for name in examples if name in templates}, failures


def _parse_template(text: str, examples: list[tuple[str, str]]) -> str:
    """Return the question template in a model's answer; raise ValueError if it is malformed or names an example."""
    question = text.strip()
    if "\n" in question or not question.endswith("?"):
        raise ValueError("The answer is not one question on one line.")
    if len(re.findall(r"(?<!\w)_(?!\w)", question)) != 1 or question.count("_") != 1:
        raise ValueError("The question does not hold _ exactly once, as a word of its own.")
    for example in examples:
        for name in example:
            if name.casefold() in question.casefold():
                raise ValueError(f"The question names {name!r}, so it does not fit other subjects.")
    return question


def read_templates(path: Path) -> tuple[tuple[QuestionTemplate, ...], dict[str, str]]:
    """Read questions by predicate, in the published format `{"<predicate's IRI>": "Who directed _?"}`.

    A predicate whose value changes over time (`CHANGING`) gets the shipped question, which asks for past and present
    values. Unsuitable predicates (`UNFIT`) are left out; the second result maps them to the reason.
    """
    templates, dropped = [], {}
    lasting = json.loads(TEMPLATES.read_text(encoding="utf-8"))
    for predicate, question in read_json(path, dict).items():
        place = repr(predicate)
        if not re.fullmatch(r"<[^<>\s']+>", predicate):
            raise DatasetError(path, place, "this key", "a predicate's IRI in angle brackets")
        if "_" not in require_type(question, str, path, place):
            raise DatasetError(path, place, repr(question), "a question with _ in place of the entity")
        if predicate in UNFIT:
            dropped[predicate] = UNFIT[predicate]
        else:
            wording = lasting[predicate] if predicate in CHANGING else question
            templates.append(QuestionTemplate("entity", predicate, wording))
    if not templates:
        raise DatasetError(path, "", "no question that may be asked", "a question for one predicate at least")
    return tuple(templates), dropped


def _decode_name(entity: str) -> str:
    return unquote(entity).replace("_", " ").strip()


def _is_list_page(name: str) -> bool:
    return name.startswith(("List of ", "Lists of ", "Index of ", "Outline of "))


def _list_names(objects: list[str | None]) -> list[str | None]:
    """Return the names of all values; return [] if any value is not an entity or lacks a name."""
    if any(each is None or "__" in each or _is_list_page(_decode_name(each)) for each in objects):
        return []
    names = [_decode_name(each) for each in objects if each]
    return [variant for name in names for variant in (_BRACKETS.sub("", name), name)]


_ONTOLOGY = "<http://dbpedia.org/ontology/{}>"
_REASONS = {
    "unspecific": (
        "associate", "category", "comparable", "isPartOf", "related", "relation", "subject", "type", "title",
    ),
    "dynamic": (
        "championInDouble", "currentMember", "currentRank", "currentRecord", "currentSeason", "currentStatus",
        "currentTeam", "currentTeamMember", "currentWorldChampion", "currentlyUsedFor", "generalManager",
        "incumbent", "lastLaunchRocket", "lastRace", "lastSeason",
    ),
    "specific to the source": (
        "page", "wikiPageDisambiguates", "wikiPageExternalLink", "wikiPageInterLanguageLink", "wikiPageRedirects",
        "wikiPageUsesTemplate", "wikiPageWikiLink",
    ),
    "no text": (
        "logo", "map", "mapCaption", "picture", "signature", "soundRecording", "thumbnail", "webcast",
    ),
}  # fmt: skip
_ELSEWHERE = {
    "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>": "unspecific",
    "<http://www.w3.org/2000/01/rdf-schema#seeAlso>": "unspecific",
    "<http://www.w3.org/2002/07/owl#differentFrom>": "unspecific",
    "<http://purl.org/dc/terms/subject>": "unspecific",
    "<http://www.w3.org/2002/07/owl#sameAs>": "specific to the source",
    "<http://xmlns.com/foaf/0.1/page>": "specific to the source",
    "<http://xmlns.com/foaf/0.1/depiction>": "no text",
    "<http://xmlns.com/foaf/0.1/homepage>": "no text",
    "<http://xmlns.com/foaf/0.1/logo>": "no text",
}
# Unsuitable predicates with their reasons.
UNFIT = {_ONTOLOGY.format(name): reason for reason, names in _REASONS.items() for name in names} | _ELSEWHERE
# Predicates whose values change over time, and `class`, whose values are of several kinds. The shipped questions are
# worded so that each of these values is a right answer.
CHANGING = {
    _ONTOLOGY.format(name)
    for name in (
        "bandMember", "ceo", "chairman", "chairperson", "class", "coach", "currentPartner", "dean", "deputy",
        "formerPartner", "head", "leader", "leaderName", "leaderParty", "manager", "mayor", "monarch", "owner",
        "owningCompany", "partner", "president", "primeMinister", "principal", "provost", "rector", "residence",
        "secretaryGeneral", "spokesperson", "tenant", "viceChancellor", "vicePresident",
    )
}  # fmt: skip
