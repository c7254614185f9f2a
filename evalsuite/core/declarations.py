"""Describe where a benchmark was declared, and find its code when a run is read.

Scores can be tallied without the benchmark's code, but the benchmark's report, derived metrics, primary metric and
title need the code. Each record stores where its benchmark was declared, in one of two forms:

    proverbs.benchmark:PROVERBS            registered by evalsuite or an installed package, see `entry_points`
    cases/test_capitals.py::test_capitals  the test function that carries `@benchmark(Benchmark(...))`

A run's folder may come from a stranger, so its contents never decide which code is imported. From an installed package,
evalsuite loads only the object that the package registers under the benchmark's name. A test file is imported only if
the user names the file or its folder (`--code`). The test file must lie below the user's root directory, outside of
folders that are runs or contain runs. The test file must be named like a test file, and its source must declare a
benchmark in the named function. A test file that the session's own worker process reports is imported without checks.
"""

import ast
import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from evalsuite.core.entry_points import find_import_target, load_import_target
from evalsuite.core.errors import SettingsError, describe_error
from evalsuite.core.protocols import Benchmark

DECLARATION = "__evalsuite__"  # Name of the attribute in which a test function stores its benchmark's declaration.
FIXTURE = "evalsuite_case"
"""Name of the parametrised fixture whose parameter is a case; every benchmark's test function uses this fixture."""


def is_demonstration(benchmark: Benchmark, model: str, data: Path | None, modes: Sequence[str]) -> bool:
    """Tell whether a `local:` model (run by llama.cpp) answers the shipped samples in the default modes."""
    return data is None and modes == benchmark.default_modes and model.startswith("local:")


being_imported: list[Path] = []
"""Test files that are being imported for their declarations, outside of any pytest session."""

started_sessions: list[str] = []  # root directories of this process's pytest sessions that have loaded the plugin
TEST_FILES = ("test_*.py", "*_test.py")
RUN_FILES = ("records.jsonl", "run.json", "journal.sqlite")  # A folder with any of these files is a run's folder.


def is_run_folder(folder: Path) -> bool:
    """Tell whether a folder contains a run, even a run that has only just started."""
    return any(os.path.isfile(folder / name) for name in RUN_FILES)  # noqa: PTH113 - never raises an OSError


def _is_in_run_folder(path: Path, root: Path) -> bool:
    """Tell whether a path is, or lies in, a run's folder or a folder of runs; ignore the root and folders above it."""
    folders = [each for each in (path, *path.parents) if each.is_relative_to(root) and each != root and each.is_dir()]
    return any(is_run_folder(folder) or any(map(is_run_folder, folder.iterdir())) for folder in folders)


def is_suite_file(path: Path, root: Path) -> bool:
    """Tell whether a path that a run names lies below the root directory, but not in a folder of runs."""
    path, root = path.resolve(), root.resolve()
    return path.is_relative_to(root) and not _is_in_run_folder(path, root)


def format_declaration_place(benchmark: Benchmark, nodeid: str) -> str:
    """Describe where a benchmark was declared, in the form that records store.

    The description is empty if records can be read without the benchmark's code.
    """
    plain = benchmark.title == benchmark.name and benchmark.primary is None
    if plain and benchmark.report is None and not benchmark.derived:
        return ""
    target = find_import_target("evalsuite.benchmarks", benchmark.name)
    return target if target and load_import_target(target) is benchmark else nodeid


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of benchmarks that records name; a benchmark's code is imported only if this is allowed."""

    root: Path | None = None  # The directory whose test files may be imported; None forbids importing test files.
    # This session's declarations, by the node id of the test function.
    live: Mapping[str, Benchmark] = field(default_factory=dict)
    trusted: AbstractSet[str] = frozenset()  # Node ids of tests whose files are imported without checks.
    code: Path | None = None  # The file or folder of test files that a command may import.

    def find_benchmark(self, name: str, place: str) -> tuple[Benchmark | None, str]:
        """Return a record's benchmark and ""; without its code, None and the reason ("" if no code is needed)."""
        if not place or place in self.live:
            return self.live.get(place), ""
        try:
            if "::" in place:
                declared = getattr(self._import_declaration(place), "benchmark", None)
            elif target := find_import_target("evalsuite.benchmarks", name):
                declared = load_import_target(target)
            else:
                return None, f"no installed package offers the benchmark {name}"
        except SettingsError as error:
            return None, str(error)
        if not isinstance(declared, Benchmark) or declared.name != name:
            return None, f"{place} no longer declares {name}"
        return declared, ""

    def find_declared_arguments(self, place: str, *, in_demonstration: bool) -> dict[str, Any]:
        """Find the arguments that a test file passes to a benchmark; return no arguments if the code is missing."""
        try:
            declaration = self._import_declaration(place) if "::" in place else None
        except SettingsError:
            return {}
        over = getattr(declaration, "shipped", {}) if in_demonstration else {}
        return {**getattr(declaration, "args", {}), **over}

    def _import_declaration(self, place: str) -> object:
        """Import a test function's declaration, if the file may be imported; None if the function has none."""
        path, *function = place.split("::")
        if self.root is None:
            raise SettingsError(f"{place} is not among the installed packages")
        file = (self.root / path).resolve()
        if not file.is_file():
            raise SettingsError(f"{path} is not in {self.root}")
        if place not in self.trusted:
            if self.code is None:
                raise SettingsError(
                    f"a run is data, so its code is imported only where a command names it: --code {path}"
                )
            if not file.is_relative_to(self.code.resolve()):
                raise SettingsError(f"{path} is not in --code {self.code}")
            _require_declaration(self.root, file, place, function)
        found: Any = _import_test_file(file, self.root)
        for name in function:
            found = getattr(found, name, None)
        return getattr(found, DECLARATION, None)


def _require_declaration(root: Path, file: Path, place: str, function: Sequence[str]) -> None:
    """Check that a test file is the user's own and declares a benchmark in the function that the run names."""
    if not file.is_relative_to(root.resolve()) or not any(fnmatch(file.name, form) for form in TEST_FILES):
        raise SettingsError(f"{place} is not a test file below {root}")
    if _is_in_run_folder(file, root.resolve()):
        raise SettingsError(f"{place} lies in a folder of runs, which are data, so it is not imported")
    try:
        body: Sequence[ast.stmt] = ast.parse(file.read_bytes()).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error
    for name in function[:-1]:
        body = [part for node in body if isinstance(node, ast.ClassDef) and node.name == name for part in node.body]
    if not any(_list_benchmark_decorators(node for node in body if getattr(node, "name", "") == function[-1])):
        raise SettingsError(f"{place} declares no benchmark any more")


def list_decorator_words(file: Path) -> set[str]:
    """List the words in a file's `@benchmark` decorators, among them benchmarks' names; the file is not imported."""
    decorators = _list_benchmark_decorators(ast.walk(_parse_benchmark_file(file)))
    return {word for decorator in decorators for word in re.findall(r"\w+", ast.unparse(decorator))}


def list_benchmark_names(file: Path) -> set[str]:
    """List the literal names in a file's `@benchmark` decorators outside of functions; the file is not imported."""

    def walk_outside_functions(node: ast.AST) -> Iterator[ast.AST]:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for child in ast.iter_child_nodes(node):
                yield from walk_outside_functions(child)

    decorators = _list_benchmark_decorators(walk_outside_functions(_parse_benchmark_file(file)))
    arguments = (getattr(decorator, "args", None) for decorator in decorators)
    return {str(args[0].value) for args in arguments if args and isinstance(args[0], ast.Constant)}


def _parse_benchmark_file(file: Path) -> ast.Module:
    """Parse a file; return an empty module if it cannot be parsed or lacks the word `benchmark`."""
    try:
        text = file.read_bytes()
        return ast.parse(text if b"benchmark" in text else b"")
    except (OSError, SyntaxError, ValueError):
        return ast.parse("")


def _list_benchmark_decorators(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if getattr(called, "attr", getattr(called, "id", "")) == "benchmark":
                    yield decorator


def _import_test_file(file: Path, root: Path) -> ModuleType:
    package = file.parent
    while (package / "__init__.py").is_file():
        package = package.parent
    # Append the file's folders to `sys.path`, because prepended folders could hide an installed package.
    sys.path += [folder for folder in dict.fromkeys((str(package), str(root))) if folder not in sys.path]
    being_imported.append(file)
    try:
        if package != file.parent:
            return import_module(".".join(file.relative_to(package).with_suffix("").parts))
        return _import_under_unique_name(file)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # A module may call pytest.skip or sys.exit, whose exceptions are not subclasses of Exception.
        raise SettingsError(f"{file} cannot be imported: {describe_error(error)}") from error
    finally:
        being_imported.pop()


def _import_under_unique_name(file: Path) -> ModuleType:
    """Import a file under a unique module name, so that files of the same name do not collide."""
    name = f"{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
