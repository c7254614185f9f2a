"""The table of options: from the command line and ini files to settings, through files, and over to a later run."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import SettingsError
from evalsuite.core.option_values import Option, parse_shard
from evalsuite.core.settings import OPTIONS, Settings, make_settings, merge_earlier_settings, restore_settings

TEXT = {
    "shard": "2/3",
    "model_param": ["temperature=0.5", "stop=a"],
    "judge_param": ["max_tokens=2048", "stop=a"],
    "accept_change": ["prompt,scorers"],
    "price": ["gpt-4=1/2", "x=0/0"],
    "mode": ["treb=pot", "single"],
    "gate": ["a.b >= 0.5", "a.c <= 0.1 @95%"],
}
# These exclude others.
ALONE = {"replay", "resume", "shard", "stop_when_decided", "answers", "gateway", "partial", "only_gate"}
# And these need one.
COMPANY: dict[str, dict[str, Any]] = {"detach": {"batch": True}, "until_decided": {"max_cost": 1.0}}


def some(option: Option) -> Any:
    """A value that is not the default."""
    if option.kind is bool:
        return True
    if option.kind is int:
        return 7
    if option.kind is float:
        return 0.25
    return TEXT.get(option.name, ["a", "b"] if option.repeat else f"some-{option.name}")


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_each_option_is_read_and_known_to_be_given(option: Option) -> None:
    value = some(option)
    as_text = value if option.repeat or option.kind is bool else str(value)
    for form in (value, as_text):
        read = make_settings({option.name: form, **COMPANY.get(option.name, {})})
        assert getattr(read, option.name) == (tuple(value) if option.repeat else value)
        # Ready-made answers stand in for a model.
        more = {"model"} if option.name == "answers" else set(COMPANY.get(option.name, ()))
        assert read.given == {option.name} | more


def test_nothing_given_leaves_the_defaults() -> None:
    nothings: list[Any] = [None, (), [], False] * len(OPTIONS)
    empty = dict(zip((option.name for option in OPTIONS), nothings, strict=False))
    assert make_settings(empty) == make_settings({}) == Settings()
    assert make_settings(empty).given == frozenset()


@pytest.mark.parametrize("name", ["max_cost", "max_error_share", "seed"])
@pytest.mark.parametrize("zero", [0, 0.0, "0"], ids=["int", "float", "text"])
def test_a_zero_is_a_value_and_not_nothing(name: str, zero: Any) -> None:
    read = make_settings({name: zero})
    assert getattr(read, name) == 0
    assert read.given == {name}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("max_connections", "0", "--max-connections 0: not a whole number of at least 1"),
        ("max_connections", "1.5", "--max-connections 1.5: not a whole number of at least 1"),
        ("max_connections", "many", "--max-connections many: not a whole number of at least 1"),
        ("limit", "-3", "--limit -3: not a whole number of at least 1"),
        ("epochs", "0", "--epochs 0: not a whole number of at least 1"),
        ("seed", "x", "--seed x: not a whole number of at least 0"),
        ("max_rpm", "0", "--max-rpm 0: not a number of at least 0.001"),
        ("max_tpm", "-1", "--max-tpm -1: not a number of at least 0.001"),
        ("max_cost", "nan", "--max-cost nan: not a number of at least 0"),
        ("max_cost", "", "--max-cost : not a number of at least 0"),
        ("max_cost", "$5", "--max-cost $5: not a number of at least 0"),
        ("max_error_share", "1.5", "evalsuite_max_error_share 1.5: a share is at most 1"),
        ("detect", "0", "evalsuite_detect 0: it lies between 0 and 1"),
        ("detect", "1", "evalsuite_detect 1: it lies between 0 and 1"),
        ("shard", "0/3", "--shard 0/3: write K/N with K from 1 to N"),
        ("model_param", ["temperature"], "--model-param temperature: write NAME=VALUE"),
        ("model_param", ["=1"], "--model-param =1: write NAME=VALUE"),
    ],
)
def test_a_value_that_makes_no_sense_is_told_with_the_option(name: str, value: Any, words: str) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(words)}"):
        make_settings({name: value})


@pytest.mark.parametrize("name", ["gateway", "resume", "replay", "shard", "answers"])
def test_an_empty_value_is_refused_where_the_run_would_pay_for_more_without_it(name: str) -> None:
    """An unset variable of a shell, as in `--replay=$RUN`, leaves the value empty."""
    with pytest.raises(SettingsError, match=f"--{name}: its value is empty"):
        make_settings({name: ""})


@pytest.mark.parametrize(
    "pair", [("resume", "replay"), ("shard", "stop_when_decided"), ("partial", "stop_when_decided")]
)
def test_options_that_contradict_each_other_are_refused_together(pair: tuple[str, str]) -> None:
    given = {option.name: some(option) for option in OPTIONS if option.name in pair}
    with pytest.raises(SettingsError, match="exclude"):
        make_settings(given)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("temperature=0.5", 0.5),
        ("temperature=1", 1),
        ("temperature=null", None),
        ("temperature=true", True),
        ("temperature=high", "high"),
        ("temperature=a=b", "a=b"),
        ("temperature=", ""),
        ('temperature=["a","b"]', ["a", "b"]),
        ('temperature={"type":"json_object"}', {"type": "json_object"}),
    ],
)
def test_a_parameter_is_json_where_it_can_be_and_else_text(text: str, value: Any) -> None:
    assert make_settings({"model_param": [text]}).model_params == {"temperature": value}


@given(st.integers(1, 99), st.integers(1, 99))
@settings(max_examples=30, deadline=None)
def test_a_shard_is_a_part_of_so_many(part: int, parts: int) -> None:
    if part <= parts:
        assert parse_shard(f"{part}/{parts}") == (part, parts)
    else:
        with pytest.raises(SettingsError, match="write K/N"):
            parse_shard(f"{part}/{parts}")


@pytest.mark.parametrize("text", ["", "/", "1", "1/", "/2", "-1/2", "1/2/3", "a/b", "1.0/2", " 1/2"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="write K/N"):
        parse_shard(text)


EVERYTHING = make_settings({option.name: some(option) for option in OPTIONS if option.name not in ALONE})


def test_settings_come_back_equal_from_a_file() -> None:
    back = restore_settings(json.loads(json.dumps(EVERYTHING.plain())))
    assert back == EVERYTHING
    assert back.given == EVERYTHING.given
    assert hash(back) == hash(EVERYTHING)


def test_settings_of_another_version_are_read_as_far_as_they_are_known() -> None:
    assert restore_settings({"model": "m", "mood": "good", "gate": ["a.b > 0"]}) == Settings(
        model="m", gate=("a.b > 0",)
    )
    assert restore_settings({}) == Settings()


def test_a_later_run_takes_over_what_it_is_not_told_and_keeps_what_it_is() -> None:
    later = make_settings({"resume": "last", "limit": 3, "seed": 0})
    taken = merge_earlier_settings(later, EVERYTHING)
    assert taken.limit == 3
    assert taken.seed == 0
    for option in OPTIONS:
        if option.name in later.given:
            assert getattr(taken, option.name) == getattr(later, option.name)
        elif option.kept:
            assert getattr(taken, option.name) == getattr(EVERYTHING, option.name), option.name
        else:
            assert getattr(taken, option.name) == getattr(Settings(), option.name), option.name


def test_places_and_the_run_itself_are_not_taken_over_and_the_spend_limit_is() -> None:
    assert next(option.kept for option in OPTIONS if option.name == "max_cost")
    assert {"run", "reports", "resume", "replay"} <= {option.name for option in OPTIONS if not option.kept}


@pytest.fixture
def parsed(pytester: pytest.Pytester) -> Any:
    """Reads settings as a session does, without one."""

    def parsed(*args: str) -> Settings:
        from evalsuite.plugin.options import read_config_settings

        return read_config_settings(pytester.parseconfig("-p", "evalsuite.plugin", *args))

    return parsed


CHOSEN = [option for option in OPTIONS if option.name not in ALONE]


def test_every_option_is_read_from_the_command_line(parsed: Any) -> None:
    args = []
    for option in CHOSEN:
        values = some(option) if option.repeat else [some(option)]
        args += [option.flag if option.kind is bool else f"{option.flag}={value}" for value in values]
    assert parsed(*args) == EVERYTHING


@pytest.mark.parametrize("form", ["ini", "toml", "native toml"])
def test_every_option_is_read_from_a_file(pytester: pytest.Pytester, parsed: Any, form: str) -> None:
    lines = {"ini": "[pytest]", "toml": "[tool.pytest.ini_options]", "native toml": "[tool.pytest]"}[form] + "\n"
    for option in CHOSEN:
        value = some(option)
        if form == "ini":
            shown = "".join(f"\n    {one}" for one in value) if option.repeat else str(value)
        elif form == "toml":
            shown = json.dumps(value if option.repeat else str(value))
        else:
            shown = json.dumps(value)
        lines += f"{option.ini_key} = {shown}\n"
    (pytester.path / ("pytest.ini" if form == "ini" else "pyproject.toml")).write_text(lines)
    read = parsed()
    assert read == EVERYTHING
    assert read.given == EVERYTHING.given


def test_several_values_may_be_named_in_the_plural(pytester: pytest.Pytester, parsed: Any) -> None:
    pytester.makepyprojecttoml("[tool.pytest]\nevalsuite_gates = ['a.b > 0', 'a.c > 0']\n")
    assert parsed().gate == ("a.b > 0", "a.c > 0")


def test_the_command_line_goes_before_a_file(pytester: pytest.Pytester, parsed: Any) -> None:
    pytester.makepyprojecttoml("[tool.pytest]\nevalsuite_limit = 5\nevalsuite_model = 'm'\n")
    read = parsed("--limit=6")
    assert (read.limit, read.model) == (6, "m")


GATES = "[tool.pytest]\nevalsuite_gates = ['a.b > 0', 'a.c > 0']\n"


@pytest.mark.parametrize(
    ("args", "gates"),
    [
        (["--gate=a.d > 0", "--gate=a.b > 0"], ("a.b > 0", "a.c > 0", "a.d > 0")),
        (["--only-gate=a.d > 0"], ("a.d > 0",)),
        (["--partial"], ()),
    ],
)
def test_gates_of_the_command_line_add_to_those_of_a_file_unless_they_are_to_be_the_only_ones(
    pytester: pytest.Pytester, parsed: Any, args: list[str], gates: tuple[str, ...]
) -> None:
    pytester.makepyprojecttoml(GATES)
    assert parsed(*args).gate == gates


@pytest.mark.parametrize("other", ["--only-gate=a.d > 0", "--partial"])
def test_gates_to_add_exclude_other_ways_to_choose_gates(parsed: Any, other: str) -> None:
    with pytest.raises(SettingsError, match="exclude each other"):
        parsed("--gate=a.b > 0", other)


def test_a_limit_of_nothing_in_a_file_is_one(pytester: pytest.Pytester, parsed: Any) -> None:
    pytester.makepyprojecttoml("[tool.pytest]\nevalsuite_max_cost = 0.0\nevalsuite_max_error_share = 0.0\n")
    assert (parsed().max_cost, parsed().max_error_share) == (0.0, 0.0)
