"""BFCL: its published form, and when a call is right."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.bfcl import BFCL, are_accepted_arguments, matches_accepted_value
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Completion, Request, ToolCall
from evalsuite.gateway.handle import ModelHandle

if TYPE_CHECKING:
    from pathlib import Path

PLAY = {
    "name": "music.play",
    "description": "Plays songs.",
    "parameters": {
        "type": "dict",
        "properties": {
            "artist": {"type": "string", "description": "whose"},
            "minutes": {"type": "float"},
            "shuffle": {"type": "boolean"},
            "where": {"type": "dict", "properties": {"room": {"type": "string"}}},
            "tags": {"type": "array", "items": {"type": "any"}},
        },
        "required": ["artist"],
    },
}
TRUTH = [
    {"music.play": {"artist": ["Ada"], "minutes": [20.0], "shuffle": ["", False]}},
    {"music.play": {"artist": ["Bob", "B. Obb"], "minutes": [5.5]}},
]


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    question = [[{"role": "user", "content": "Play Ada for 20 minutes, then Bob."}]]
    record = {"question": question, "function": [PLAY]}
    (tmp_path / "BFCL_v4_parallel.json").write_text(lines({"id": "parallel_0", **record}))
    (tmp_path / "BFCL_v4_irrelevance.json").write_text(lines({"id": "irrelevance_0", **record}))
    (tmp_path / "BFCL_v4_live_relevance.json").write_text(lines({"id": "relevance_0", **record}))
    (tmp_path / "possible_answer").mkdir()
    answers = tmp_path / "possible_answer" / "BFCL_v4_parallel.json"
    answers.write_text(lines({"id": "parallel_0", "ground_truth": TRUTH}))
    return tmp_path


def test_a_function_called_finish_is_called(folder: Path) -> None:
    assert score(folder, "irrelevance", ("finish", "{}"))[:2] == (0.0, "no function fits; 1 call made")


def score(folder: Path, category: str, *calls: tuple[str, str]) -> tuple[float, str, Request]:
    asked: list[Request] = []

    class Backend:
        async def ask(self, request: Request) -> Completion:
            asked.append(request)
            made = (ToolCall(str(n), *call) for n, call in enumerate(calls))
            return Completion("", tool_calls=tuple(made))

    setup = Setup("m", data=folder, args={"categories": [category]})
    (sample,) = BFCL.load(setup).samples
    transcript: Any = asyncio.run(BFCL.solver(setup)(sample, ModelHandle(Backend(), "m")))
    (scorer,) = BFCL.scorers(setup)
    result: Any = scorer(sample, transcript)  # type: ignore[operator]
    return result["correct"].value, result["correct"].note, asked[0]


ADA = ("music_play", '{"artist": "ada", "minutes": 20}')
BOB = ("music_play", '{"artist": "b obb", "minutes": 5.5}')


@pytest.mark.parametrize(
    ("category", "calls", "value", "note"),
    [
        ("parallel", [BOB, ADA], 1.0, ""),
        ("parallel", [ADA], 0.0, "1 of 2 calls right"),
        ("parallel", [ADA, BOB, BOB], 0.0, "2 of 2 calls right"),
        ("parallel", [ADA, ("music_play", "{")], 0.0, "cannot be read"),
        ("irrelevance", [], 1.0, ""),
        ("irrelevance", [ADA], 0.0, "no function fits; 1 call made"),
        ("live_relevance", [ADA], 1.0, ""),
        ("live_relevance", [], 0.0, "nothing was called"),
    ],
)
def test_calls_are_scored_by_category(
    folder: Path, category: str, calls: list[tuple[str, str]], value: float, note: str
) -> None:
    got, why, _ = score(folder, category, *calls)
    assert got == value
    assert note in why


def test_the_note_shows_only_the_calls_that_are_wrong(folder: Path) -> None:
    _, note, _ = score(folder, "parallel", ADA, ("music_play", '{"artist": "Eve"}'))
    assert '- music_play(artist="Bob", minutes=5.5)' in note
    assert '+ music_play(artist="Eve")' in note
    assert '+ music_play(artist="Ada"' not in note
    assert '- music_play(artist="Ada"' not in note
    _, note, _ = score(folder, "parallel", BOB)
    assert '- music_play(artist="Ada", minutes=20.0)' in note
    assert '- music_play(artist="Bob"' not in note


def test_of_two_functions_with_one_name_the_first_counts(folder: Path) -> None:
    file = folder / "BFCL_v4_parallel.json"
    record = json.loads(file.read_text())
    other = {**PLAY, "parameters": {"type": "dict", "properties": {}, "required": ["album"]}}
    file.write_text(lines({**record, "function": [PLAY, other]}))
    assert score(folder, "parallel", ADA, BOB)[0] == 1.0
    file.write_text(lines({**record, "function": [other, PLAY]}))
    assert score(folder, "parallel", ADA, BOB)[0] == 0.0


def test_functions_are_offered_as_json_schemas(folder: Path) -> None:
    (tool,) = score(folder, "parallel", ADA)[2].tools
    assert tool["function"]["name"] == "music_play"
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "artist": {"type": "string", "description": "whose"},
            "minutes": {"type": "number"},
            "shuffle": {"type": "boolean"},
            "where": {"type": "object", "properties": {"room": {"type": "string"}}},
            "tags": {"type": "array", "items": {}},
        },
        "required": ["artist"],
    }


@pytest.mark.parametrize(
    ("value", "accepted", "right"),
    [
        ("April 1, 2024", "april 1 2024", True),
        ("it's", 'it"s', True),
        (5, 5.0, True),
        (5.0, 5, False),
        (True, 1, False),
        (["a", "B"], ["A", "b"], True),
        (["b", "a"], ["a", "b"], False),
        ([1.5, 2.0], [1.5, 2.0], True),
        ([1.5, 2], [1.5, 2.0], False),
        ({"x": 1}, {"x": [1, 2], "y": ["", 3]}, True),
        ({"x": 3}, {"x": [1, 2]}, False),
        ([{"x": 1}], [{"x": [1]}], True),
    ],
)
def test_a_value_is_right_by_the_leaderboard_s_rules(value: Any, accepted: Any, right: bool) -> None:  # noqa: FBT001
    assert matches_accepted_value(value, accepted) == right


NUMBER, WHOLE = {"type": "number"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "value", "accepted", "right"),
    [
        (NUMBER, 5.0, 5, True),
        (NUMBER, 5.5, 5, False),
        (NUMBER, 1.0, True, False),
        (WHOLE, 5.0, 5, False),
        ({"type": "array", "items": NUMBER}, [1.0, 2.0], [1, 2], True),
        ({"type": "array", "items": NUMBER}, [1, 2], [1.0, 2.0], False),
        ({"type": "array", "items": WHOLE}, [1.0, 2.0], [1, 2], False),
    ],
)
def test_a_float_equals_an_accepted_int_only_where_a_float_is_declared(
    folder: Path,
    schema: dict[str, Any],
    value: Any,
    accepted: Any,
    right: bool,  # noqa: FBT001
) -> None:
    assert matches_accepted_value(value, accepted, schema) == right
    truth = [{"music.play": {"artist": ["Ada"], "minutes": [accepted]}}]
    (folder / "possible_answer" / "BFCL_v4_parallel.json").write_text(
        lines({"id": "parallel_0", "ground_truth": truth})
    )
    file = folder / "BFCL_v4_parallel.json"
    record = json.loads(file.read_text())
    record["function"][0]["parameters"]["properties"]["minutes"] = schema
    file.write_text(lines(record))
    call = ("music_play", json.dumps({"artist": "Ada", "minutes": value}))
    assert score(folder, "parallel", call)[0] == right


def test_optional_arguments_may_be_left_out_and_unknown_ones_not_be_given() -> None:
    accepted: dict[str, list[Any]] = {"a": [1], "b": ["", 2]}
    assert [
        are_accepted_arguments(accepted, given) for given in ({"a": 1}, {"a": 1, "b": 2}, {"b": 2}, {"a": 1, "c": 1})
    ] == [True, True, False, False]


@pytest.mark.parametrize(("parameter", "right"), [("artist", 1.0), ("minutes", 0.0), ("shuffle", 0.0)])
def test_a_parameter_that_may_be_missing_accepts_an_empty_text_only_if_it_is_a_text(
    folder: Path, parameter: str, right: float
) -> None:
    truth = [{"music.play": {"artist": ["Ada", ""], "minutes": [20.0, ""], "shuffle": ["", False]}}]
    (folder / "possible_answer" / "BFCL_v4_parallel.json").write_text(
        lines({"id": "parallel_0", "ground_truth": truth})
    )
    call = ("music_play", json.dumps({"artist": "Ada", parameter: ""}))
    assert score(folder, "parallel", call)[0] == right


HEADWAY: dict[str, Any] = {
    "ego": [{"position": [{"lateral": 10.5, "longitudinal": 50}], "orientation": [30]}],
    "boxes": [[{"x": [60.2], "lit": [True]}]],
}
"""Fields of an object below an object have one value instead of a list, as in `live_multiple_121-46-0`."""


@pytest.mark.parametrize(
    ("position", "orientation", "right"),
    [
        ({"lateral": 10.5, "longitudinal": 50}, 30, True),
        ({"lateral": 10.5, "longitudinal": 50.0}, 30.0, True),
        ({"lateral": 10.5, "longitudinal": 51}, 30, False),
        ({"lateral": 10.5}, 30, False),
        (None, 30, False),
    ],
)
def test_values_within_objects_are_equal_as_numbers(position: Any, orientation: float, right: bool) -> None:  # noqa: FBT001
    ego = {"position": position, "orientation": orientation}
    assert are_accepted_arguments(HEADWAY, {"ego": ego, "boxes": [{"x": 60.2, "lit": True}]}) is right


def test_what_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(SettingsError, match="no shipped samples"):
        BFCL.load(Setup("m"))
    with pytest.raises(SettingsError, match="no category 'java'"):
        BFCL.load(Setup("m", data=folder, args={"categories": ["java"]}))
    with pytest.raises(DatasetError, match=r"BFCL_v4_multiple\.json"):
        BFCL.load(Setup("m", data=folder, args={"categories": ["multiple"]}))
    assert {sample.tags["category"] for sample in BFCL.load(Setup("m", data=folder)).samples} == {
        "parallel",
        "irrelevance",
        "live_relevance",
    }
    (folder / "possible_answer" / "BFCL_v4_parallel.json").write_text("")
    with pytest.raises(DatasetError, match="id 'parallel_0': found no answer"):
        BFCL.load(Setup("m", data=folder))


@pytest.mark.parametrize(
    ("accepted", "parameters", "message"),
    [
        ({"artist": "Ada"}, {}, """field 'music.play', field 'artist': found "Ada", expected a list"""),
        (["Ada"], {}, "field 'ground_truth', element 1, field 'music.play': found"),
        (
            {},
            {"required": "artist"},
            """function 'music.play', field 'parameters', field 'required': found "artist", expected a list""",
        ),
        ({}, {"properties": ["artist"]}, "function 'music.play', field 'parameters', field 'properties': found"),
        ({}, {"properties": {"artist": "string"}}, "field 'parameters', field 'properties', field 'artist': found"),
    ],
)
def test_a_field_of_another_type_is_named_with_its_line(
    folder: Path, accepted: Any, parameters: dict[str, Any], message: str
) -> None:
    schema: Any = PLAY["parameters"]
    function = {**PLAY, "parameters": {**schema, **parameters}}
    question = {"id": "parallel_0", "question": [[{"role": "user", "content": "Play."}]], "function": [function]}
    (folder / "BFCL_v4_parallel.json").write_text(lines(question))
    answer = {"id": "parallel_0", "ground_truth": [{"music.play": accepted}]}
    (folder / "possible_answer" / "BFCL_v4_parallel.json").write_text(lines(answer))
    with pytest.raises(DatasetError) as error:
        BFCL.load(Setup("m", data=folder, args={"categories": ["parallel"]}))
    assert "BFCL_v4_parallel.json, line 1" in str(error.value)
    assert message in str(error.value)
