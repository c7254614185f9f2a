"""Which cases `-k` can keep, by their ids, before pytest makes an item of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

RENAMING = (
    "pytest_generate_tests",
    "pytest_itemcollected",
    "pytest_pycollect_makeitem",
    "pytest_collection_modifyitems",
)
"""Hooks by which a suite can give items further names before `-k` looks at them."""


def any_case(_id: str) -> bool:
    """Every case may match."""
    return True


def keyword_filter(metafunc: pytest.Metafunc) -> Callable[[str], bool]:
    """Whether `-k` may keep the case of an id; pytest itself decides over those that it may.

    Every case may match without `-k`, and where an item's names are not known before it is made: where the test is
    parametrized further, or where the suite's own hooks may add to them.
    """
    text = metafunc.config.option.keyword.strip()
    if not text or _is_parametrized(metafunc) or _is_renamed(metafunc.config):
        return any_case
    try:
        # Pytest's own, which have no public name; without them every item is made.
        from _pytest.mark import KeywordMatcher
        from _pytest.mark.expression import Expression

        expression, around = Expression.compile(text), KeywordMatcher.from_item(metafunc.definition)
    except Exception:  # noqa: BLE001 - a wrong expression is pytest's to report, another pytest's names are no error
        return any_case
    name = metafunc.definition.name

    def may_match(id_: str) -> bool:
        own = f"{name}[{id_}]".lower()

        def matches(word: str, /, **more: Any) -> bool:
            return word.lower() in own or bool(around(word, **more))

        return bool(expression.evaluate(matches))

    return may_match


def _is_parametrized(metafunc: pytest.Metafunc) -> bool:
    """Whether other parameters than the case stand in the items' names."""
    if any(metafunc.definition.iter_markers("parametrize")):
        return True
    fixtures = metafunc._arg2fixturedefs  # noqa: SLF001 - no public way to see a fixture's parameters
    return any(definition.params for definitions in fixtures.values() for definition in definitions)


def _is_renamed(config: pytest.Config) -> bool:
    """Whether a conftest has a hook that may change names or marks of items."""
    return any(
        str(getattr(implementation.plugin, "__file__", "")).endswith("conftest.py")
        for hook in RENAMING
        for implementation in getattr(config.hook, hook).get_hookimpls()
    )
