"""Whatever `evalsuite` exports says what it is, and so does each of its public methods."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

import evalsuite

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPORTED = [name for name in dir(evalsuite) if not name.startswith("_")]


def undescribed(name: str, value: object) -> Iterator[str]:
    """Names of what has no docstring: the object, or a function that its class defines itself."""
    if (inspect.isclass(value) or inspect.isfunction(value)) and not inspect.getdoc(value):
        yield name
    if inspect.isclass(value):
        methods = [method for method in vars(value) if not method.startswith("_")]
        for method in methods:
            if inspect.isfunction(vars(value)[method]) and not inspect.getdoc(getattr(value, method)):
                yield f"{name}.{method}"


@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_name_and_its_methods_are_described(name: str) -> None:
    assert list(undescribed(name, getattr(evalsuite, name))) == []


def test_a_method_without_words_is_found() -> None:
    class Mute:
        """Says something of itself."""

        def speak(self) -> None: ...

    assert list(undescribed("Mute", Mute)) == ["Mute.speak"]
