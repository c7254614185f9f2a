"""One word, one meaning: no two public types share a name, and docs/glossary.md defines each public noun once."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evalsuite
import evalsuite.judges
import evalsuite.scorers
import evalsuite.solvers
import evalsuite.tools

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUSE = Path(evalsuite.__file__).parent
GLOSSARY = HOUSE.parent / "docs" / "glossary.md"
# A class's name; constants are written in capitals throughout.
CAMEL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")


def public_types(module: Path) -> Iterator[str]:
    """Names of the classes and type aliases that a module defines at its top level."""
    for statement in ast.parse(module.read_text("utf-8")).body:
        if isinstance(statement, ast.ClassDef):
            names = [statement.name]
        elif isinstance(statement, ast.Assign):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names = [statement.target.id]
        else:
            continue
        yield from (name for name in names if CAMEL_CASE.fullmatch(name))


def shared_names(house: Path) -> dict[str, list[str]]:
    modules: dict[str, list[str]] = {}
    for module in sorted(house.rglob("*.py")):
        for name in public_types(module):
            modules.setdefault(name, []).append(str(module.relative_to(house)))
    return {name: where for name, where in modules.items() if len(where) > 1}


def glossary_entries() -> list[str]:
    return re.findall(r"^\*\*(.+?)\*\*", GLOSSARY.read_text("utf-8"), re.MULTILINE)


def test_no_two_public_types_share_a_name() -> None:
    assert shared_names(HOUSE) == {}


def test_a_class_and_a_type_alias_of_one_name_are_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Table: ...\nLIMIT = 3\nclass _Row: ...\n")
    (tmp_path / "two.py").write_text("Table = list[str]\nLIMIT = 4\nclass _Row: ...\n")
    assert shared_names(tmp_path) == {"Table": ["one.py", "two.py"]}


def test_the_glossary_defines_each_word_once_in_alphabetical_order() -> None:
    words = glossary_entries()
    assert [word for word, count in Counter(words).items() if count > 1] == []
    assert words == sorted(words, key=str.casefold)


def test_the_glossary_defines_every_type_that_evalsuite_exports() -> None:
    types = {
        name
        for name in evalsuite.__all__
        if isinstance(value := getattr(evalsuite, name), type) and not issubclass(value, BaseException)
    }
    assert sorted(types - set(glossary_entries())) == []


def test_a_name_that_has_moved_works_and_names_its_namespace() -> None:
    with pytest.warns(DeprecationWarning, match=r"evalsuite\.react is now evalsuite\.solvers\.react"):
        moved = evalsuite.react  # type: ignore[attr-defined]
    assert moved is evalsuite.solvers.react


def test_a_name_that_was_renamed_works_and_names_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match=r"evalsuite\.calls is now evalsuite\.scorers\.tool_calls"):
        moved = evalsuite.calls  # type: ignore[attr-defined]
    assert moved is evalsuite.scorers.tool_calls
    with pytest.warns(DeprecationWarning, match=r"evalsuite\.solvers\.functions is now evalsuite\.solvers\.tool_loop"):
        renamed = evalsuite.solvers.functions  # type: ignore[attr-defined]
    assert renamed is evalsuite.solvers.tool_loop
    with pytest.warns(DeprecationWarning, match=r"judges\.conversation is now evalsuite\.judges\.each_turn"):
        renamed = evalsuite.judges.conversation  # type: ignore[attr-defined]
    assert renamed is evalsuite.judges.each_turn


def test_no_two_namespaces_export_one_name() -> None:
    namespaces = (evalsuite.judges, evalsuite.scorers, evalsuite.solvers, evalsuite.tools)
    counts = Counter(name for namespace in namespaces for name in namespace.__all__)
    assert [name for name, count in counts.items() if count > 1] == []


def test_the_top_level_has_at_most_twenty_names() -> None:
    assert len(evalsuite.__all__) + len({"__version__"}) <= 20
