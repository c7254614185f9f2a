"""The loader: the shipped queries, the published files, and what is wrong with a file."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalsuite.benchmarks.tool_eyes import TOOL_EYES
from evalsuite.benchmarks.tool_eyes.dataset import (
    DOCUMENTS,
    LIBRARY,
    SCENARIOS,
    ToolEyesOptions,
    load_dataset,
    read_documents,
)
from evalsuite.benchmarks.tool_eyes.episodes import ToolEyesSolver
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.protocols import Setup
from evalsuite.tools.execution import ASK_TO_USER, FINISH, Registry, Tool, ToolDocument

PUBLISHED = Path(__file__).parents[5] / "shared" / "data" / "tool_eyes"
QUERY = {"query": "What is it?", "path": "ToolEyes/Tool_Library/Cat/Sub", "scenario": "TG"}
SCHEMA = {"type": "object", "properties": {"x": {"type": "string", "description": "x"}}, "required": ["x"]}
TOOL = {"name": "look", "description": "Looks.", "parameters": SCHEMA}
needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the folder shared/data/tool_eyes is not beside the project"
)


def with_parameter(**about: Any) -> dict[str, Any]:
    return {**TOOL, "parameters": {**SCHEMA, "properties": {"x": {"type": "string", **about}}}}


def setup(data: Path | None = None, modes: tuple[str, ...] = ("paper",), **args: Any) -> Setup:
    return Setup("tested", data=data, modes=modes, args=args)


def is_control(document: ToolDocument) -> bool:
    return document.name in {ASK_TO_USER.name, FINISH.name}


@needs_published
def test_the_published_files_are_counted_as_the_paper_counts_them() -> None:
    subjects = read_documents(PUBLISHED / LIBRARY)
    tools = [document for subject in subjects.values() for document in subject if not is_control(document)]
    categories = {subject.split("/")[0] for subject in subjects}
    assert (len(tools), len(subjects), len(categories)) == (568, 95, 41)
    samples = load_dataset(setup(PUBLISHED)).samples
    found = Counter(sample.tags["scenario"] for sample in samples)
    # Table 1 of the paper, in its order.
    assert [found[scenario] for scenario in SCENARIOS] == [58, 49, 56, 70, 54, 45, 50]
    assert len(samples) == 382


@needs_published
def test_every_published_query_has_its_tools() -> None:
    for sample in load_dataset(setup(PUBLISHED)).samples:
        names = [document["name"] for document in sample.metadata["documents"]]
        assert names[-2:] == ["ask_to_user", "finish"]
        assert len(names) > 2


def test_the_shipped_queries_cover_what_they_should() -> None:
    samples = load_dataset(setup()).samples
    assert len(samples) == 28
    assert Counter(sample.tags["scenario"] for sample in samples) == dict.fromkeys(SCENARIOS, 4)
    tools = {
        (sample.metadata["subject"], document["name"])
        for sample in samples
        for document in sample.metadata["documents"][:-2]
    }
    assert len(tools) == 55
    assert sum(bool(sample.metadata["user"]) for sample in samples) == 1


def test_fewer_queries_of_each_scenario_can_be_asked_for_and_the_source_says_so() -> None:
    dataset = load_dataset(setup(queries=1))
    assert sorted(sample.tags["scenario"] for sample in dataset.samples) == sorted(SCENARIOS)
    assert dataset.source == "shipped queries, 7 of 28"


@pytest.mark.parametrize("model", ["local:smollm2", "gpt-4"])
def test_every_model_is_asked_alike(model: str) -> None:
    asked = Setup(model, modes=("paper",))
    assert load_dataset(asked).source == "shipped queries"
    loop = ToolEyesSolver(asked).loops["paper"]
    assert (loop.patience, loop.params["max_tokens"]) == (None, 512)


def test_several_modes_are_told_apart_by_tag_and_id() -> None:
    samples = load_dataset(setup(modes=("paper", "functions"))).samples
    assert [(sample.id, sample.tags["mode"]) for sample in samples[:2]] == [
        ("tg-1-paper", "paper"),
        ("tg-1-functions", "functions"),
    ]
    assert len({sample.id for sample in samples}) == 56


def test_every_mode_is_described() -> None:
    assert set(TOOL_EYES.modes) == {"paper", "paper_5shot", "functions", "released", "released_5shot"}
    assert TOOL_EYES.default_modes == ("paper",)


def folder(tmp_path: Path, queries: Any = (QUERY,), tools: Any = (TOOL,)) -> Path:
    place = tmp_path / LIBRARY / "Cat" / "Sub"
    place.mkdir(parents=True)
    (place / DOCUMENTS).write_text(tools if isinstance(tools, str) else json.dumps(tools))
    queries = queries if isinstance(queries, str) else json.dumps(queries)
    (tmp_path / "scenario_data_raw.json").write_text(queries)
    return tmp_path


def test_a_published_query_becomes_a_sample(tmp_path: Path) -> None:
    (sample,) = load_dataset(setup(folder(tmp_path))).samples
    assert (sample.id, sample.input, sample.target) == ("tg-1", "What is it?", None)
    assert sample.tags == {
        "scenario": "TG",
        "category": "Cat",
        "subcategory": "Sub",
        "mode": "paper",
        "cluster": "tg-1",
    }
    assert sample.metadata["documents"] == [TOOL]


def test_the_folder_of_the_authors_repository_is_read_too(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "Test_Data").mkdir()
    (tmp_path / "scenario_data_raw.json").rename(tmp_path / "Test_Data" / "scenario_data_raw.json")
    assert len(load_dataset(setup(tmp_path)).samples) == 1


def test_queries_whose_live_tools_execute_code_are_refused_run_or_left_out(tmp_path: Path) -> None:
    data = folder(tmp_path)
    harmless = {**QUERY, "path": "ToolEyes/Tool_Library/Cat/Other"}
    (data / "scenario_data_raw.json").write_text(json.dumps([QUERY, harmless]))
    other = data / LIBRARY / "Cat" / "Other"
    other.mkdir()
    (other / DOCUMENTS).write_text(json.dumps([TOOL]))
    (other / "tool.py").write_text("def look(x):\n    return x\n")
    (data / LIBRARY / "Cat" / "Sub" / "tool.py").write_text("def look(x):\n    return eval(x)\n")
    live: dict[str, Any] = {"executor": "live", "library": str(data / LIBRARY), "allow_network": True}
    with pytest.raises(SettingsError, match=r"the live tools of Cat/Sub execute code.*allow_code=False"):
        load_dataset(setup(data, **live))
    assert len(load_dataset(setup(data, allow_code=True, **live)).samples) == 2
    without_code = load_dataset(setup(data, allow_code=False, **live))
    assert [sample.metadata["subject"] for sample in without_code.samples] == ["Cat/Other"]
    assert without_code.source == "scenario_data_raw.json, 1 of 2"


def test_two_tools_of_one_name_are_counted_and_the_first_is_offered(tmp_path: Path) -> None:
    other = {**TOOL, "description": "Looks elsewhere."}
    (documents,) = read_documents(folder(tmp_path, tools=[TOOL, other]) / LIBRARY).values()
    tools = [document for document in documents if not is_control(document)]
    assert len(tools) == 2
    executor: Any = None
    registry = Registry(Tool(document, executor) for document in tools)
    assert [document.description for document in registry.documents] == ["Looks."]


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in QUERY.items() if key != name}


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ("[{", r"scenario_data_raw.json, line 1.*the end of the text"),
        ({}, r"the top of the file: found \{\}, expected a list"),
        ([], "found an empty list, expected at least one query"),
        (["x"], r'record 1: found "x", expected an object'),
        ([QUERY, without("path")], r"record 2: found only the fields 'query', 'scenario'.*'path'"),
        ([without("query")], "'query'"),
        ([{**QUERY, "query": 5}], "record 1, field 'query': found 5, expected a string"),
        ([{**QUERY, "scenario": "XX"}], "field 'scenario': found 'XX', expected one of TG, DU"),
        ([{**QUERY, "path": "Tool_Library/Cat"}], "field 'path'.*expected a path that ends in"),
        ([{**QUERY, "path": "Tool_Library/../secret"}], "field 'path'"),
        ([{**QUERY, "path": "x/Tool_Library/Cat/Other"}], "query tg-1.*'Cat/Other'.*one of the 1 subjects"),
        ([{**QUERY, "id": "a"}, {**QUERY, "id": "a"}], "record 2, field 'id': found 'a'"),
        ([{**QUERY, "query": " "}], "record 1, field 'query': found ' '"),
        ([{**QUERY, "user": "text"}], "field 'user'.*expected a list"),
        ([{**QUERY, "user": [1]}], "field 'user', element 1: found 1, expected a string"),
    ],
)
def test_what_is_wrong_with_a_file_of_queries_is_named(tmp_path: Path, queries: Any, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        load_dataset(setup(folder(tmp_path, queries)))


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ("[", "config_gpt4.json, line 1"),
        ([5], "tool 1: found 5, expected an object"),
        ([{"name": "x"}], r"tool 1 \(x\): found only the fields 'name'.*'parameters'"),
        ([{**TOOL, "description": None}], r"tool 1 \(look\), field 'description'"),
        ([{**TOOL, "parameters": {**SCHEMA, "required": ["y"]}}], "the required parameter 'y'"),
        (
            [{**TOOL, "parameters": {**SCHEMA, "properties": {"x": {"type": "str"}}}}],
            "parameter 'x': found the type 'str', expected one of array",
        ),
        ([{**TOOL, "parameters": {**SCHEMA, "properties": {"x": 1}}}], "parameter 'x': found 1"),
        ([], "config_gpt4.json: found an empty list, expected at least one tool"),
        ([{**TOOL, "name": " "}], "tool 1, field 'name': found ' ', expected 1 to 64 letters"),
        ([{**TOOL, "parameters": {**SCHEMA, "required": [["x"]]}}], "field 'required', element 1: found .*a string"),
        ([with_parameter(enum=3)], r"\(look\), \$\.properties\.x\.enum: found 3 is not of type 'array'"),
        ([with_parameter(items={"$ref": "#"})], r"found a reference \(\$ref\), expected a document that stands"),
    ],
)
def test_what_is_wrong_with_a_file_of_tools_is_named(tmp_path: Path, tools: Any, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        load_dataset(setup(folder(tmp_path, tools=tools)))


def test_missing_and_wrongly_encoded_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no tools"):
        load_dataset(setup(tmp_path))
    folder(tmp_path)
    (tmp_path / "scenario_data_raw.json").write_bytes(b'["\xff"]')
    with pytest.raises(DatasetError, match="byte 2: found the byte 0xff, expected UTF-8"):
        load_dataset(setup(tmp_path))


def test_options_that_do_not_exist_or_make_no_sense_are_refused() -> None:
    with pytest.raises(SettingsError, match="no argument 'querys'; did you mean queries"):
        load_dataset(setup(querys=3))
    for wrong in ({"queries": 0}, {"queries": "3"}, {"max_turns": None}, {"patience": 0}, {"max_tokens": True}):
        with pytest.raises(SettingsError, match="it must be a whole number of at least 1"):
            load_dataset(setup(**wrong))
    for unclear in ({"allow_code": "False"}, {"allow_network": "no"}, {"allow_network": None}, {"allow_code": 0}):
        with pytest.raises(SettingsError, match="it must be True or False"):
            load_dataset(setup(**unclear))


def test_the_paper_s_limits_hold_unless_others_are_given() -> None:
    options = ToolEyesOptions()
    assert (options.max_turns, options.patience, options.queries) == (9, None, None)


def test_the_modes_of_a_query_are_one_cluster() -> None:
    found = load_dataset(Setup("m", modes=("paper", "functions"))).samples
    assert len({sample.id for sample in found}) == 2 * len({sample.tags["cluster"] for sample in found}) == 56
