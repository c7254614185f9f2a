"""Writes docs/api.md from the docstrings of the public names.

    python docs/make_api.py

`--check` writes nothing and ends with status 1 where the page on the disk is not what would be written.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evalsuite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE = Path(__file__).parent / "api.md"
HEAD = """# API

Made from the docstrings by `python docs/make_api.py`. Names without a module are imported from `evalsuite`.
"""

GROUPS = {
    "Cases": (
        "evalsuite.plugin.collection",
        "evalsuite.samples.files",
        "evalsuite.samples.lazy",
        "evalsuite.samples.content",
    ),
    "Solvers": ("evalsuite.solvers",),
    "Scorers": ("evalsuite.scorers",),
    "Judges": ("evalsuite.judges",),
    "Tools, worlds and simulated users": ("evalsuite.tools",),
    "Applications under test": ("evalsuite.applications",),
    "Metrics over all cases": ("evalsuite.output.reports.case_metrics",),
    "Runs, tallies and reports": ("evalsuite.results", "evalsuite.output.reports.section"),
    "Benchmarks and models of your own": ("evalsuite.core.protocols", "evalsuite.models"),
    "Data": ("evalsuite.core.types",),
    "Errors": ("evalsuite.core.errors",),
}
"""Headings, and the homes of what `evalsuite` exports at its top; the first that fits counts."""

ROOMS = {
    "Statistics: `evalsuite.stats`": "evalsuite.stats",
    "Text metrics: `evalsuite.metrics.text`": "evalsuite.metrics.text",
    "Number metrics: `evalsuite.metrics.numbers`": "evalsuite.metrics.numbers",
    "Table metrics: `evalsuite.metrics.tables`": "evalsuite.metrics.tables",
    "Ready rubrics: `evalsuite.judges`": "evalsuite.judges",
    "The sandbox: `evalsuite.sandbox`": "evalsuite.sandbox",
}
"""Headings of further modules, whose public names are listed whole."""

SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$")
ENTRY = re.compile(r"^ {4}([*\w.]+(?:, [\w.]+)*): ?(.*)$")


def page() -> str:
    """The page's text."""
    parts = [(heading, list(_at_the_top(heading))) for heading in GROUPS]
    top = [entry.value for _, entries in parts for entry in entries]
    for heading, module in ROOMS.items():
        others = (entry for entry in _of_module(module) if not any(entry.value is one for one in top))
        parts.append((heading, list(others)))
    anchors = _anchors(entry.title for _, entries in parts for entry in entries)
    lines = [*HEAD.splitlines(), ""]
    for heading, entries in parts:
        links = ", ".join(f"[`{entry.name}`](#{next(anchors)})" for entry in entries)
        lines.append(f"- {heading}: {links}")
    for heading, entries in parts:
        lines += ["", f"## {heading}"]
        for entry in entries:
            lines += ["", *entry.lines()]
    return "\n".join(lines) + "\n"


def _anchors(titles: Iterable[str]) -> Iterator[str]:
    """The anchors of headings as GitHub names them: lower case, no dots, numbered where they repeat."""
    seen: Counter[str] = Counter()
    for title in titles:
        anchor = title.lower().replace(".", "")
        yield f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor
        seen[anchor] += 1


class _Entry:
    """One public name and where its definition stands."""

    def __init__(self, name: str, value: Any, module: str = "") -> None:
        self.name, self.value = name, value
        self.title = f"{module}.{name}" if module else name
        self._node = _definition(value)

    def lines(self) -> Iterator[str]:
        yield f"### {self.title}"
        if isinstance(self.value, partial):
            keywords = ", ".join(f"{name}={value!r}" for name, value in self.value.keywords.items())
            words = (repr(argument) for argument in self.value.args)
            yield from _code(
                f"{self.name} = partial({self.value.func.__name__}, {', '.join([*words, keywords])})"
            )
            return
        if isinstance(self._node, ast.ClassDef):
            yield from self._class(self._node)
        elif isinstance(self._node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _code(_signature(self._node, self.name))
            yield from _prose(inspect.getdoc(self.value))
        else:
            spelt = _spelt(self.value)
            yield from [] if spelt.startswith("<") else _code(f"{self.name} = {spelt}")

    def _class(self, node: ast.ClassDef) -> Iterator[str]:
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        fields = [_field(one) for one in node.body if isinstance(one, ast.AnnAssign)]
        if _is_dataclass(node) and fields:
            yield from _code(f"{self.name}({', '.join(fields)})")
        else:
            yield from _code(f"class {self.name}{f'({bases})' if bases else ''}")
        yield from _prose(inspect.cleandoc(ast.get_docstring(node) or ""))
        methods = [
            method
            for method in node.body
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
            and not method.name.startswith("_")
            and ast.get_docstring(method)
        ]
        if methods:
            yield from ("", "**Methods**", "")
        for method in methods:
            summary = (ast.get_docstring(method) or "").split("\n\n")[0].replace("\n", " ")
            yield f"- `{_signature(method, method.name)}`: {summary}"


def _at_the_top(heading: str) -> Iterator[_Entry]:
    """The names of a group, those that `evalsuite` itself offers."""
    for name in evalsuite.__all__:
        value = getattr(evalsuite, name)
        home = evalsuite._HOME_OF.get(name, "")  # noqa: SLF001 - the table of where each name lives
        fitting = (one for one, homes in GROUPS.items() if home.startswith(homes))
        if next(fitting, None) == heading:
            yield _Entry(name, value)


def _of_module(module: str) -> Iterator[_Entry]:
    imported = importlib.import_module(module)
    public = getattr(imported, "__all__", None) or [
        name for name, value in vars(imported).items() if getattr(value, "__module__", None) == module
    ]
    for name in public:
        if not name.startswith("_"):
            yield _Entry(name, getattr(imported, name), module)


def _definition(value: Any) -> ast.AST | None:
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(value)))
    except (TypeError, OSError):
        return None
    return ast.parse(source).body[0]


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    given = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(: [^,]*)?(, |$)", "", given)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{name}({arguments}){returns}"


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(one) for one in node.decorator_list)


def _field(node: ast.AnnAssign) -> str:
    default = "" if node.value is None else f" = {ast.unparse(node.value)}"
    factory = re.fullmatch(r" = field\(default_factory=(\w+)\)", default)
    default = f" = {factory[1]}()" if factory else default
    return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}{default}"


def _spelt(value: Any) -> str:
    """A constant or an alias of types, on every version of Python alike."""
    return re.sub(r"\b(typing|collections\.abc|evalsuite(\.\w+)*)\.(?=\w)", "", str(value))


def _code(text: str) -> list[str]:
    if len(text) > 100 and "(" in text:
        head, _, rest = text.partition("(")
        arguments, _, returns = rest.rpartition(")")
        text = f"{head}(\n" + "".join(f"    {one},\n" for one in _apart(arguments)) + f"){returns}"
    return ["", "```python", text, "```", ""]


def _apart(arguments: str) -> Iterator[str]:
    """Arguments, divided at the commas that stand in no bracket and no quotation."""
    depth, start, quoted = 0, 0, ""
    for at, sign in enumerate(arguments):
        if quoted or sign in "'\"":
            quoted = "" if sign == quoted else quoted or sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == "," and depth == 0:
            yield arguments[start:at].strip()
            start = at + 1
    yield arguments[start:].strip()


def _prose(docstring: str | None) -> Iterator[str]:
    """A docstring as Markdown: the lists of arguments, attributes and errors become lists."""
    section = ""
    for line in (docstring or "").split("\n"):
        heading, entry = SECTION.match(line), ENTRY.match(line) if section else None
        if heading:
            section = heading[1]
            yield from (f"**{section}**", "")
        elif section and line and not line.startswith("    "):
            section = ""
            yield line
        elif entry:
            yield f"- `{entry[1]}`: {entry[2]}"
        else:
            yield line.removeprefix("    ").rstrip() if section else line.rstrip()


def main(arguments: Iterable[str]) -> int:
    """Writes the page, or looks whether it is up to date."""
    text = page()
    if "--check" not in arguments:
        PAGE.write_text(text, "utf-8")
        return 0
    return 0 if PAGE.is_file() and PAGE.read_text("utf-8") == text else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
