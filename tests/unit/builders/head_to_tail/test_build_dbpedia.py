from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.builders.head_to_tail import run_build
from evalsuite.builders.head_to_tail.dbpedia import TEMPLATES, UNFIT, DbpediaSource, read_templates
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.option_values import ARGUMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalsuite.builders.head_to_tail.workspace import Workspace

    Write = Callable[[Mapping[str, str | bytes]], Path]

FILE = "mappingbased-objects_lang=en.ttl.bz2"
ONTOLOGY = "http://dbpedia.org/ontology/"
PUBLISHED = Path(__file__).parents[5] / "shared/data/other/dbpedia_question_templates.json"


def triple(subject: str, predicate: str, value: str) -> str:
    iris = (
        f"http://dbpedia.org/resource/{subject}",
        predicate if ":" in predicate else ONTOLOGY + predicate,
        value if ":" in value else f"http://dbpedia.org/resource/{value}",
    )
    return " ".join(f"<{iri}>" for iri in iris) + " .\n"


# Triples by entity: Eli 13, Oslo 7, Norway 7, Ann 5, Dag 3, Bergen 2, Bo Berg 2, and 1 of 19 others. Of 58 in
# all, a third is reached with Oslo and Norway, two thirds with Bergen and Bo Berg.
TRIPLES = [
    "# started 2022-03-24T17:26:03Z\n",
    triple("Oslo", "country", "Norway"),
    triple("Oslo", "mayor", "Ann"),  # dynamic
    triple("Bergen", "country", "Norway"),
    triple("Ann", "birthPlace", "Oslo"),
    triple("Ann", "deathPlace", "Norway"),
    triple("Ann", "deathPlace", "Oslo"),  # two places are right
    triple("Ann", "award", "List_of_medals"),  # no thing, but an article about many
    triple("Bo_Berg_(actor)", "birthPlace", "M%C3%BCnchen_(town)"),
    triple("Bo_Berg_(actor)", "spouse", "Eva_Berg__Marriage__1"),  # a node between entities
    triple("Norway", "capital", "Oslo"),
    triple("Norway_Spain", "country", "Norway"),  # its name holds the answer
    triple("List_of_towns", "country", "Norway"),
    triple("apple", "country", "Oslo"),  # the same in other letters
    triple("Apple", "country", "Norway"),
    triple("Dag", "birthPlace", "http://example.org/place"),  # no entity
    triple("Dag", "http://www.w3.org/2000/01/rdf-schema#seeAlso", "Oslo"),  # unspecific
    triple("Dag", "unknownPredicate", "Bergen"),
    *(triple("Eli", "award", f"Medal_{n}") for n in range(13)),  # too many are right
    "# completed 2022-03-24T17:28:41Z\n",
]
QUESTIONS = {
    f"<{ONTOLOGY}country>": "In which country is _?",
    f"<{ONTOLOGY}birthPlace>": "Where was _ born?",
    f"<{ONTOLOGY}deathPlace>": "Where did _ die?",
    f"<{ONTOLOGY}award>": "Which award has _?",
    f"<{ONTOLOGY}spouse>": "Who is married to _?",
    f"<{ONTOLOGY}capital>": "What is the capital of _?",
    f"<{ONTOLOGY}mayor>": "Who is the mayor of _?",
    "<http://www.w3.org/2000/01/rdf-schema#seeAlso>": "What else than _ is there?",
    f"<{ONTOLOGY}neverUsed>": "What of _?",
}
ASKED = {
    # Mayors change: the question asks for one who is or was, in our words.
    ("head", "mayor", "Oslo", "Name someone who is or was the mayor of Oslo.", ("Ann",)),
    ("head", "country", "Oslo", "In which country is Oslo?", ("Norway",)),
    ("torso", "country", "Bergen", "In which country is Bergen?", ("Norway",)),
    ("head", "capital", "Norway", "What is the capital of Norway?", ("Oslo",)),
    ("torso", "birthPlace", "Ann", "Where was Ann born?", ("Oslo",)),
    ("torso", "deathPlace", "Ann", "Where did Ann die?", ("Norway", "Oslo")),
    ("torso", "birthPlace", "Bo_Berg_(actor)", "Where was Bo Berg (actor) born?", ("München", "München (town)")),
}


@pytest.fixture
def source(dump: Write, workspace: Workspace) -> DbpediaSource:
    folder = dump({FILE: "".join(TRIPLES), "questions.json": json.dumps(QUESTIONS)})
    return DbpediaSource(workspace, folder, folder / "questions.json")


def test_all_that_the_rules_allow_is_asked_and_nothing_else(
    source: DbpediaSource, candidates: Callable[[DbpediaSource], set[tuple[object, ...]]]
) -> None:
    found = candidates(source)
    assert found == {(bucket, f"<{ONTOLOGY}{name}>", *rest) for bucket, name, *rest in ASKED}


def test_popularity_is_the_number_of_triples_that_an_entity_stands_in(source: DbpediaSource) -> None:
    shares = source.partitions["entity"].compute_bucket_totals()
    assert shares == {"head": (3, 27), "torso": (4, 12), "tail": (19, 19)}


def test_predicates_have_a_popularity_of_their_own(source: DbpediaSource) -> None:
    assert source.template_popularity[f"<{ONTOLOGY}country>"] == 6
    assert source.template_popularity[f"<{ONTOLOGY}capital>"] == 1


def test_the_shipped_templates_ask_about_many_predicates_once_each_and_about_no_unfit_one() -> None:
    templates, _ = read_templates(TEMPLATES)
    shipped = json.loads(TEMPLATES.read_text(encoding="utf-8"))
    assert len(templates) == len(shipped) >= 80
    assert len({template.wording.casefold() for template in templates}) == len(templates)
    assert all(template.wording.count("_") == 1 and template.wording[-1] in "?." for template in templates)


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the folder shared/data/other is not beside the project")
def test_the_published_templates_can_be_used_without_the_predicates_that_the_paper_leaves_out() -> None:
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    assert len(published) == 435
    used = {template.id for template in read_templates(PUBLISHED)[0]}
    assert used == {predicate for predicate in published if predicate not in UNFIT}
    shipped = json.loads(TEMPLATES.read_text(encoding="utf-8"))
    assert not {words.casefold() for words in shipped.values()} & {words.casefold() for words in published.values()}


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the folder shared/data/other is not beside the project")
def test_of_the_published_templates_ten_are_dropped_each_with_its_reason() -> None:
    templates, dropped = read_templates(PUBLISHED)
    assert {predicate.rpartition("/")[2].rstrip(">"): reason for predicate, reason in dropped.items()} == {
        "associate": "unspecific",
        "category": "unspecific",
        "comparable": "unspecific",
        "depiction": "no text",
        "homepage": "no text",
        "isPartOf": "unspecific",
        "lastRace": "dynamic",
        "map": "no text",
        "page": "specific to the source",
        "webcast": "no text",
    }
    assert len(templates) == 425


def test_a_predicate_whose_values_change_is_asked_about_in_words_that_stay_right(dump: Write) -> None:
    file = dump({"questions.json": json.dumps({f"<{ONTOLOGY}bandMember>": "Who is in _ now?"})}) / "questions.json"
    assert [template.wording for template in read_templates(file)[0]] == [
        "Name someone who is or was a member of the band _."
    ]


def _failure(folder: Path, workspace: Workspace) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        DbpediaSource(workspace, folder)
    return caught.value


def test_a_missing_file_of_dbpedia_is_named(dump: Write, workspace: Workspace) -> None:
    assert Path(_failure(dump({}), workspace).path).name == FILE


@pytest.mark.parametrize(
    ("damaged", "found"),
    [
        (b"<a> <b> <c>\n", "'<a> <b> <c>'"),
        (b'<a> <b> "a text" .\n', "'<a> <b> \"a text\" .'"),
        (b"<a> <b> <\xe9> .\n", "the byte 0xe9 as its byte 10"),
    ],
)
def test_a_line_that_is_no_triple_is_named(dump: Write, workspace: Workspace, damaged: bytes, found: str) -> None:
    error = _failure(dump({FILE: "".join(TRIPLES[:3]).encode() + damaged}), workspace)
    assert (error.where, error.found) == ("line 4", found)


def test_a_truncated_file_of_dbpedia_is_named(dump: Write, workspace: Workspace) -> None:
    folder = dump({FILE: "".join(TRIPLES)})
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:-8])
    assert _failure(folder, workspace).where.startswith("byte ")


def test_a_file_of_several_compressed_streams_is_read_to_its_end(dump: Write, workspace: Workspace) -> None:
    import bz2

    folder = dump({})
    (folder / FILE).write_bytes(b"".join(bz2.compress(line.encode()) for line in TRIPLES))
    assert DbpediaSource(workspace, folder).template_popularity[f"<{ONTOLOGY}country>"] == 6


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"country": "Where is _?"}', "this key"),
        ('{"<http://x/country>": "Where is it?"}', "'Where is it?'"),
        ('{"<http://x/country>": 3}', "3"),
        ("[]", "[]"),
        ("{}", "no question that may be asked"),
        ('{"<http://dbpedia.org/ontology/thumbnail>": "What is _?"}', "no question that may be asked"),
    ],
)
def test_templates_of_another_shape_are_told(dump: Write, text: str, found: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read_templates(dump({"questions.json": text}) / "questions.json")
    assert caught.value.found == found


def test_a_model_drafts_templates_for_the_commonest_predicates_without_one(
    dump: Write, tmp_path: Path, chat_server: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = {f"<{ONTOLOGY}country>": "In which country is _?"}
    folder = dump({FILE: "".join(TRIPLES), "questions.json": json.dumps(kept)})

    def reply(body: Any) -> Any:
        facts = body["messages"][0]["content"]
        # The first answer names an object; the second keeps to the form. No answer about birth places does.
        asked_again = len(body["messages"]) > 1
        if "| birth place |" in facts:
            return chat_server.say("Where?")
        return chat_server.say("Which award did _ get?" if asked_again else "Did _ get Medal 0?")

    chat_server.reply = reply
    target = tmp_path / "drafts.json"
    parser = argparse.ArgumentParser()
    ARGUMENTS[run_build](parser)
    words = ["dbpedia", "--from", str(folder), "--templates", str(folder / "questions.json"), "--to", str(target)]
    model = ["--model=gpt-4", f"--model-base-url={chat_server.url}", "--draft=2"]
    assert run_build(parser.parse_args([*words, *model])) == 1
    assert json.loads(target.read_text("utf-8")) == kept | {f"<{ONTOLOGY}award>": "Which award did _ get?"}
    assert [template.id for template in read_templates(target)[0]] == [f"<{ONTOLOGY}country>", f"<{ONTOLOGY}award>"]
    printed = capsys.readouterr()
    assert f"<{ONTOLOGY}birthPlace>: " in printed.err
    assert "1 of 2 templates drafted" in printed.out
    with pytest.raises(SettingsError, match="needs --model"):
        run_build(parser.parse_args([*words, "--draft=2"]))
