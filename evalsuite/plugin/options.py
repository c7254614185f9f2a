"""pytest's options and ini keys, made from the table of settings, and read back from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from evalsuite.core.given_settings import read_settings
from evalsuite.core.settings import OPTIONS, Settings

if TYPE_CHECKING:
    import pytest

# The types of values by the names that pytest's ini files have for them.
INI: dict[type, Literal["string", "int", "float", "bool"]] = {
    str: "string",
    int: "int",
    float: "float",
    bool: "bool",
}


def add_options(parser: pytest.Parser) -> None:
    """Declares every option on the command line and as an ini key."""
    group = parser.getgroup("evalsuite", "evalsuite: language-model benchmarks as cases")
    for option in OPTIONS:
        taken: dict[str, Any] = {"action": "store_true"}
        if option.kind is not bool:
            taken = {"action": "append" if option.repeat else "store", "metavar": option.metavar}
        dest = f"evalsuite_{option.name}"
        group.addoption(option.flag, dest=dest, default=None, help=option.help, **taken)
        if option.repeat:
            # In an ini file several values are a list, whose name is better in the plural.
            explanation = f"default of {option.flag}, a list"
            parser.addini(f"{option.ini}s", explanation, type="linelist", default=None, aliases=[option.ini])
        else:
            parser.addini(option.ini, f"default of {option.flag}", type=INI[option.kind], default=None)


def settings_of(config: pytest.Config) -> Settings:
    """The settings that the user gave; the command line takes precedence over ini files.

    Raises:
        SettingsError: a value is malformed, or the file of prices cannot be read.
    """
    values = {}
    for option in OPTIONS:
        value = config.getoption(f"evalsuite_{option.name}")
        values[option.name] = config.getini(option.ini) if value is None else value
    settings = read_settings(values)
    if settings.prices is None:
        return settings
    from evalsuite.gateway.spend import prices_of_file

    # The run records the prices themselves, so that a resumed run does not depend on the file.
    listed = prices_of_file(config.rootpath / settings.prices)
    return replace(settings, price=(*listed, *settings.price), given=settings.given | {"price"})
