"""pytest's options and ini keys, made from the table of settings, and the settings that the user gave."""

import argparse
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal

import pytest

from evalsuite.core.declarations import is_run_folder, is_suite_file
from evalsuite.core.errors import SettingsError
from evalsuite.core.settings import OPTIONS, Settings, make_settings
from evalsuite.plugin.pytest_internals import list_ini_keys

CONFIGURATION = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Files in which pytest looks for its configuration; pytest reads only one of these files."""

REPLACED_SETTINGS = {
    "margin": "'quality no worse than baseline by 0.5'",
    "max_regression": "'* no worse than baseline by 0.02', a share of each metric's range",
    "on_undecided": "'* no worse than baseline', which too few cases leave without data (12)",
}
"""Removed settings, each with the gate that replaces it."""
# The names that pytest gives to the types of ini values.
INI: dict[type, Literal["string", "int", "float", "bool"]] = {str: "string", int: "int", float: "float", bool: "bool"}


def add_options(parser: pytest.Parser) -> None:
    """Declare every setting as an ini key; also declare it as an option, unless it concerns the whole project.

    A project's setting is changed for one run with `-o`, as in `-o evalsuite_min_paired=0.5`. Project settings that
    used to be options are still accepted as options.
    """
    group = parser.getgroup("evalsuite", "evalsuite: language-model benchmarks as cases")
    for name in REPLACED_SETTINGS:
        group.addoption(f"--{name.replace('_', '-')}", dest=f"evalsuite_{name}", default=None, help=argparse.SUPPRESS)
    for option in OPTIONS:
        how: dict[str, Any] = {"action": "store_true"}
        if option.kind is not bool:
            how = {"action": "append" if option.repeat else "store", "metavar": option.metavar}
        shown = argparse.SUPPRESS if option.per_project else option.help
        group.addoption(option.flag, dest=f"evalsuite_{option.name}", default=None, help=shown, **how)
        explanation = option.help.replace("%%", "%") if option.per_project else f"default of {option.flag}"
        if option.repeat:
            # In an ini file, the key of a list has a plural `s`, unless another option already has this key.
            free = all(other.ini_key != f"{option.ini_key}s" for other in OPTIONS)
            name, aliases = (f"{option.ini_key}s", [option.ini_key]) if free else (option.ini_key, [])
            parser.addini(name, f"{explanation}, a list", type="linelist", default=None, aliases=aliases)
        else:
            parser.addini(option.ini_key, explanation, type=INI[option.kind], default=None)


def describe_former_options(config: pytest.Config) -> list[str]:
    """Return a line for each option of this command that has become a project setting."""
    return [
        f"evalsuite: {option.flag} is {option.now} now"
        if option.now
        else f"evalsuite: {option.flag} is a setting of the project now: write {option.ini_key} into the ini file, or "
        f"-o {option.ini_key}={option.metavar or 'true'} for one run"
        for option in OPTIONS
        if option.per_project and config.getoption(f"evalsuite_{option.name}") is not None
    ]


def list_models(config: pytest.Config) -> list[str]:
    """List the distinct models that the command line names with `--model` or, if none, PYTEST_ADDOPTS or `addopts`."""
    given = read_command_line(config)
    # With stored answers or an earlier run, the command line decides which model answered.
    decides = {word.partition("=")[0] for word in given} & {"--answers", "--replay", "--resume"}
    for args in (given, *([] if decides else _list_added_options(config))):
        named = [
            arg.removeprefix("--model=")
            for before, arg in pairwise(("", *args))
            if before == "--model" or arg.startswith("--model=")
        ]
        if named:
            return list(dict.fromkeys(named))
    return []


def read_command_line(config: pytest.Config) -> list[str]:
    """Return the command line's arguments, with the lines of `@FILE` in place of this argument."""
    return _read_argument_files(list(map(str, config.invocation_params.args)))


def _read_argument_files(args: Sequence[str]) -> list[str]:
    files = {arg: Path(arg[1:]).read_text("utf-8", "surrogateescape").splitlines() for arg in args if arg[:1] == "@"}
    return [word for arg in args for word in files.get(arg, [arg])]


def _list_added_options(config: pytest.Config) -> list[list[str]]:
    added = shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), config.getini("addopts")
    return list(map(_read_argument_files, added))


def is_requesting_cases(config: pytest.Config) -> bool:
    """Tell whether the command line requests cases, by one of evalsuite's options or by the id of a test.

    Without a request, as with plain `pytest` in a project with unit tests, cases are skipped if no model is available.
    """
    is_option_given = any(config.getoption(f"evalsuite_{option.name}") is not None for option in OPTIONS)
    return is_option_given or any("::" in arg for arg in config.args)


def is_verdict_expected(config: pytest.Config) -> bool:
    """Tell whether the session names a model or one of evalsuite's options, and will run tests.

    The command line is read as text, because pytest parses it completely only after it has imported conftests.
    """
    words = {arg.partition("=")[0] for arg in chain(read_command_line(config), *_list_added_options(config))}
    named = any(option.flag in words for option in OPTIONS) or "evalsuite_model" in list_ini_keys(config)
    return named and not is_only_listing(config)


def is_only_listing(config: pytest.Config) -> bool:
    """Tell whether the session only lists tests, fixtures or the contents of pytest's cache."""
    listing = ("collectonly", "showfixtures", "show_fixtures_per_test", "cacheshow", "setupplan")
    return any(config.getoption(name, default=False) for name in listing)


def read_config_settings(config: pytest.Config) -> Settings:
    """Read the settings that the user gave; the command line takes precedence over ini files."""
    keys = list_ini_keys(config)
    for name, gate in REPLACED_SETTINGS.items():
        if config.getoption(f"evalsuite_{name}") is not None or {f"evalsuite_{name}", f"evalsuite_{name}s"} & keys:
            raise SettingsError(f"evalsuite_{name} is gone: write the gate {gate}")
    # Refuse unknown ini keys: pytest would only warn, and a gate under a misspelt key would never be decided.
    known = {name for each in OPTIONS for name in (each.ini_key, *([f"{each.ini_key}s"] if each.repeat else ()))}
    if unknown := sorted(key for key in keys if key.startswith("evalsuite_") and key not in known):
        near = get_close_matches(unknown[0], sorted(known))
        raise SettingsError(f"{unknown[0]}: no such setting{f'; did you mean {near[0]}?' if near else ''}")
    if config.getoption("evalsuite_partial") and read_command_line_gates(config):
        raise SettingsError("--partial and --gate exclude each other: with --partial the cases alone decide")
    if config.getoption("evalsuite_gate") and config.getoption("evalsuite_only_gate"):
        raise SettingsError(
            "--gate and --only-gate exclude each other: the first adds to the gates of the ini file, the second "
            "replaces them; write only one of them, as often as there are gates"
        )
    values = {}
    for option in OPTIONS:
        value = config.getoption(f"evalsuite_{option.name}")
        values[option.name] = _read_ini(config, option.ini_key) if value is None else value
    command_gates = tuple(config.getoption("evalsuite_gate") or ())
    values["gate"] = tuple(dict.fromkeys([*(config.getini("evalsuite_gates") or ()), *command_gates]))
    return replace(make_settings(values), command_gate=command_gates)


def _read_ini(config: pytest.Config, name: str) -> Any:
    """Read a key of the ini file or of `-o`; name the key in errors, because pytest does so only for TOML files."""
    try:
        return config.getini(name)
    except (pytest.UsageError, ValueError) as error:
        raise SettingsError(str(error) if name in str(error) else f"{name}: {error}") from error


def refuse_unread_settings(config: pytest.Config) -> None:
    """Refuse settings in a file or section that pytest does not read, because a gate there would have no effect."""
    if config.option.inifilename:
        # Accept the file, because the user chose it with `-c`.
        return
    root, here = config.rootpath, config.invocation_params.dir
    folders = [root, *(folder for folder in root.parents if folder.is_relative_to(here))]
    for file in (folder / name for folder in folders for name in CONFIGURATION):
        text = file.read_text("utf-8", errors="replace") if file.is_file() else ""
        if re.search(r"^\s*\[(tool\.)?evalsuite[].]", text, re.MULTILINE):
            raise SettingsError(
                f"{file}: nothing reads the section [tool.evalsuite]; write its settings in pytest's section with the "
                "prefix evalsuite_, for example evalsuite_gates = [...]"
            )
        if file != config.inipath and re.search(r"^\s*evalsuite_\w+\s*=", text, re.MULTILINE):
            read = f"reads {config.inipath.name}" if config.inipath else "reads no configuration file here"
            raise SettingsError(f"{file}: settings of evalsuite stand here, but pytest {read}; move them or the file")


def refuse_run_folders(config: pytest.Config, selected_paths: Sequence[str]) -> None:
    """Refuse to collect tests from a run's folder, even if the command names it, because runs may come from anybody.

    Args:
        selected_paths: the paths that a replayed or resumed run selects, which must belong to this suite.
    """
    root, here = config.rootpath, config.invocation_params.dir
    for arg in config.args:
        path = here / arg.partition("::")[0]
        if any(is_run_folder(folder) for folder in (path, *path.parents) if root in folder.parents):
            raise SettingsError(f"{arg}: a run's folder holds data alone, so no test in it is collected")
    for arg in selected_paths:
        if not is_suite_file(here / arg.partition("::")[0], root):
            raise SettingsError(f"{arg}: the run names tests outside of this suite; name the suite on the command line")


def read_command_line_gates(config: pytest.Config) -> list[str]:
    """Return the gates of the command line, which apply to the cases of this session."""
    return [*(config.getoption("evalsuite_gate") or ()), *(config.getoption("evalsuite_only_gate") or ())]
