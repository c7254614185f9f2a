"""The house's rooms: each imports from those to its left only, and what is idle imports next to nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evalsuite

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUSE = Path(evalsuite.__file__).parent

# As drawn in ARCHITECTURE.md; rooms of one row may import each other.
ROWS = (
    ("types", "errors", "redaction"),
    (
        "protocols",
        "json_codec",
        "settings",
        "option_values",
        "given_settings",
        "threads",
        "heap",
        "vectors",
        "shortening",
        "counted_nouns",
        "content",
        "sample_readers",
        "sample_files",
        "lazy_samples",
        "keywords",
        "entry_points",
        "declarations",
    ),
    ("models", "journal"),
    ("gateway",),
    ("batches",),
    ("applications",),
    ("service",),
    ("metrics", "stats", "sandbox"),
    ("tools",),
    ("solvers", "judging", "scorers"),
    ("results",),
    ("decisions",),
    ("reporting", "page", "exports"),
    ("benchmarks",),
    ("builders", "metaeval", "clusters"),
    ("commands",),
    ("plugin", "workers", "cli", "__main__"),
)
ROW_OF = {room: row for row, rooms in enumerate(ROWS) for room in rooms}
# What works by itself: without pytest, without a run.
PURE = {"metrics", "stats"}


def rooms() -> list[str]:
    found = {path.stem if path.is_file() else path.name for path in HOUSE.iterdir() if is_room(path)}
    return sorted(found - {"__init__"})


def is_room(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").is_file()


def files(room: str) -> list[Path]:
    single = HOUSE / f"{room}.py"
    return [single] if single.is_file() else sorted((HOUSE / room).rglob("*.py"))


class Imports(ast.NodeVisitor):
    """Names of all modules that a file imports when it runs; those for type checkers do not count."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.names |= {alias.name for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        # A relative import stays in its room.
        if node.level == 0:
            self.names |= {f"{node.module}.{alias.name}" for alias in node.names}


def imported(file: Path) -> set[str]:
    visitor = Imports()
    visitor.visit(ast.parse(file.read_text("utf-8")))
    return visitor.names


def imported_rooms(room: str) -> Iterator[tuple[Path, str]]:
    for file in files(room):
        for name in sorted(imported(file)):
            parts = name.split(".")
            if parts[0] == "evalsuite" and len(parts) > 1 and parts[1] in ROW_OF:
                yield file, parts[1]


def test_every_room_has_its_place() -> None:
    assert rooms() == sorted(ROW_OF)


@pytest.mark.parametrize("room", rooms())
def test_a_room_imports_from_its_left_only(room: str) -> None:
    backwards = [
        f"{file.relative_to(HOUSE)} imports {other}"
        for file, other in imported_rooms(room)
        if ROW_OF[other] > ROW_OF[room]
    ]
    assert not backwards


@pytest.mark.parametrize("room", sorted(set(rooms()) - {"plugin", "workers"}))
def test_only_the_plugin_and_its_workers_know_pytest(room: str) -> None:
    offenders = [
        str(file.relative_to(HOUSE))
        for file in files(room)
        if any(name.split(".")[0] in {"pytest", "_pytest", "xdist"} for name in imported(file))
    ]
    assert not offenders


@pytest.mark.parametrize("room", sorted(PURE))
def test_pure_functions_import_nothing_else_but_the_words_of_the_house(room: str) -> None:
    assert {other for _, other in imported_rooms(room)} <= {room, "types", "errors"}


def test_the_visitor_sees_what_runs_and_passes_over_what_does_not(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text(
        "import a.b\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import no\n"
        "def f():\n    from c import d\n    from . import near\n    if x:\n        import e\n"
    )
    assert imported(file) == {"a.b", "typing.TYPE_CHECKING", "c.d", "e"}


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
    "evalsuite.settings",
    "evalsuite.decisions.conditions",
    "evalsuite.decisions.gates",
]


@pytest.mark.parametrize("module", LIGHT)
def test_what_an_idle_session_imports_is_light(module: str) -> None:
    code = f"import sys; import pytest; before = set(sys.modules); import {module}; print(*set(sys.modules) - before)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in result.stdout.split()}
    assert loaded.isdisjoint(HEAVY)
