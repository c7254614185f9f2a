"""Every public name has a docstring, and so has each public method."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMESPACES = [
    "",
    *(
        f".{name}"
        for name in (
            "applications",
            "case_metrics",
            "content",
            "errors",
            "models",
            "protocols",
            "reports",
            "results",
            "scorers",
            "solvers",
            "stats",
            "tools",
        )
    ),
]
EXPORTED = [
    pytest.param(getattr(module, name), id=f"{module.__name__}.{name}")
    for module in (import_module(f"evalsuite{namespace}") for namespace in NAMESPACES)
    for name in module.__all__
]


def undescribed(name: str, value: object) -> Iterator[str]:
    """Names of what has no docstring: the object, or a function that its class defines itself."""
    if (inspect.isclass(value) or inspect.isfunction(value)) and not inspect.getdoc(value):
        yield name
    if inspect.isclass(value):
        methods = [method for method in vars(value) if not method.startswith("_")]
        for method in methods:
            if inspect.isfunction(vars(value)[method]) and not inspect.getdoc(getattr(value, method)):
                yield f"{name}.{method}"


@pytest.mark.parametrize("value", EXPORTED)
def test_an_exported_name_and_its_methods_are_described(value: object) -> None:
    assert list(undescribed("it", value)) == []


def test_a_method_without_words_is_found() -> None:
    class Mute:
        """Says something of itself."""

        def speak(self) -> None: ...

    assert list(undescribed("Mute", Mute)) == ["Mute.speak"]
