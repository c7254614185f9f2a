"""The layers of the package: a file imports from its own layer and from those below, imports for types included."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import evalsuite

PACKAGE = Path(evalsuite.__file__).parent

# From the lowest to the highest, as drawn in ARCHITECTURE.md; rooms of one layer may import each other. The highest
# holds names for users, which the package itself does not import.
LAYERS = (
    ("core",),
    ("samples", "metrics", "stats", "sandbox"),
    ("models", "journal"),
    ("gateway",),
    ("batches", "applications", "service"),
    ("tools", "solvers", "scorers", "judges"),
    ("results",),
    ("decisions",),
    ("output",),
    ("benchmarks",),
    ("builders", "metaeval", "clusters"),
    ("engine",),
    ("commands", "plugin", "cli", "__main__"),
    ("errors", "content", "case_metrics", "reports", "protocols"),
)
LAYER_OF = {room: layer for layer, rooms in enumerate(LAYERS) for room in rooms}
ROOMS = sorted(LAYER_OF)
DOORS = {"plugin", "commands"}
"""The rooms that may import pytest."""

UPWARD = {
    "evalsuite.core.protocols -> evalsuite.output.reports.section",
    "evalsuite.core.protocols -> evalsuite.results.tally",
}
"""Imports that still point up, as "file -> module"; none may be added."""

CIRCLES: set[str] = set()
"""Files that still import each other in a circle, by name within the package; none may be added."""


def module_name(file: Path) -> str:
    parts = [PACKAGE.name, *file.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in sorted(PACKAGE.rglob("*.py"))}


@cache
def imports(module: str) -> frozenset[str]:
    """List the names that a module imports anywhere in its file, those for type checkers included."""
    names = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


@cache
def internal_imports(module: str) -> frozenset[str]:
    """List the modules of the package that a module imports."""
    found = set()
    for name in imports(module):
        imported = name
        while imported and imported not in MODULES:
            imported = imported.rpartition(".")[0]
        found.add(imported)
    return frozenset(found - {"", PACKAGE.name, module})


def room_of(module: str) -> str:
    return module.split(".")[1]


def circles() -> set[frozenset[str]]:
    """Find the groups of modules that reach each other (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        open_modules.append(module)
        for other in sorted(internal_imports(module)):
            if other not in order:
                visit(other)
            if other in open_modules:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == order[module]:
            group = open_modules[open_modules.index(module) :]
            del open_modules[-len(group) :]
            if len(group) > 1:
                found.add(frozenset(group))

    for module in MODULES:
        if module not in order:
            visit(module)
    return found


def test_every_room_has_its_layer() -> None:
    assert sorted({room_of(module) for module in MODULES if module != PACKAGE.name}) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_a_file_imports_from_its_layer_or_from_below(room: str) -> None:
    upward = {
        f"{module} -> {other}"
        for module in MODULES
        if module != PACKAGE.name and room_of(module) == room
        for other in internal_imports(module)
        if LAYER_OF[room_of(other)] > LAYER_OF[room]
    }
    assert upward == {entry for entry in UPWARD if room_of(entry) == room}


def test_no_files_import_each_other_in_a_circle() -> None:
    found = {" ".join(sorted(module.removeprefix(f"{PACKAGE.name}.") for module in group)) for group in circles()}
    assert found == CIRCLES


@pytest.mark.parametrize("room", sorted(set(ROOMS) - DOORS))
def test_only_the_doors_import_pytest(room: str) -> None:
    offenders = {
        module
        for module in MODULES
        if module != PACKAGE.name
        and room_of(module) == room
        and any(name.split(".")[0] in {"pytest", "_pytest", "xdist"} for name in imports(module))
    }
    assert not offenders


@pytest.mark.parametrize("room", ["metrics", "stats"])
def test_pure_functions_import_the_core_alone(room: str) -> None:
    others = {
        room_of(other)
        for module in MODULES
        if module.startswith(f"evalsuite.{room}")
        for other in internal_imports(module)
    }
    assert others <= {room, "core"}


HEAVY = (
    "numpy",
    "scipy",
    "pandas",
    "matplotlib",
    "aiohttp",
    "bs4",
    "lxml",
    "sacrebleu",
    "tabulate",
    "asyncio",
    "sqlite3",
)
LIGHT = [
    "evalsuite",
    "evalsuite.plugin",
    "evalsuite.gateway.channel",
    "evalsuite.models",
    "evalsuite.core.settings",
    "evalsuite.decisions.gates",
]


@pytest.mark.parametrize("module", LIGHT)
def test_what_an_idle_session_imports_is_light(module: str) -> None:
    code = f"import sys; import pytest; before = set(sys.modules); import {module}; print(*set(sys.modules) - before)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in result.stdout.split()}
    assert loaded.isdisjoint(HEAVY)
