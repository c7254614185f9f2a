"""The rules of writing that a program can check; CONTRIBUTING.md has them all."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import evalsuite

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(evalsuite.__file__).parent
DOCS = PACKAGE.parent / "docs"
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef

# A function does something, so its docstring begins with a verb; none of these words is one.
NOT_A_VERB = re.compile(
    r"(?:a|all|an|any|as|at|both|by|each|every|for|from|how|if|in|it|its|none|of|on|one|only|same|several|some|such|"
    r"that|the|their|these|this|those|to|two|under|what|when|where|whether|which|who|whose|with|without)\b",
    re.IGNORECASE,
)
# An entry of `Args:` stands alone; with one of these words first it would continue the parameter's name.
ENTRY = re.compile(
    r"^ {4,8}\w+: (?:about|after|among|as|at|before|behind|below|beside|between|by|for|from|in|into|of|on|over|since|"
    r"than|that|to|under|until|where|which|who|whose|with|within|without)\b.*",
    re.MULTILINE,
)
IS_NO = re.compile(r"\b(?:is|are|was|were|be) no (?!longer|more|less|fewer|matter)\w", re.IGNORECASE)
A_FOR_PER = re.compile(
    r"\b(?:one|two|once|twice|calls|requests|tokens|lines?|files?|bytes|seconds|milliseconds|ms|cost|costs) an? "
    r"(?:case|sample|run|row|cell|line|minute|second|hour|day|call|request|benchmark|worker|process|file|token|"
    r"metric|model|judge|question|table|program)\b"
)
PARTICIPLE = re.compile(
    r"(?!(?:judged|scored|tagged|weighted|embed|exceed|feed|need|proceed|seed|shed|speed|succeed|interleaved|poisoned)$)[a-z]+ed"
)


class Finding(NamedTuple):
    """A place that breaks a rule."""

    rule: str
    room: str
    where: str
    text: str


def find_in_module(file: Path) -> Iterator[Finding]:
    """Find what breaks a rule in the docstrings, comments and names of a file."""
    room, name = file.relative_to(PACKAGE).parts[0].removesuffix(".py"), str(file.relative_to(PACKAGE))
    text = file.read_text("utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, FUNCTION):
            yield from (Finding(rule, room, f"{name}:{node.lineno}", words) for rule, words in find_in_function(node))
        if isinstance(node, FUNCTION | ast.ClassDef):
            arguments = (ast.get_docstring(node) or "").partition("Args:")[2].partition("Raises:")[0]
            for entry in ENTRY.findall(arguments):
                yield Finding("an entry of Args stands alone", room, f"{name}:{node.lineno}", entry.strip())
    for number, line in enumerate(text.splitlines(), 1):
        yield from (Finding(rule, room, f"{name}:{number}", line.strip()) for rule in find_in_line(line))


def find_in_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """Find the rules that a function's docstring and name break."""
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    is_value = any("property" in decorator or "fixture" in decorator for decorator in decorators)
    docstring = ast.get_docstring(node) or ""
    if NOT_A_VERB.match(docstring) and not is_value:
        yield "a function's docstring begins with a verb", f"{node.name}: {docstring.partition(chr(10))[0]}"
    name = node.name.strip("_")
    if not is_value and PARTICIPLE.fullmatch(name):
        yield "a function's name is a verb", node.name


def find_in_line(line: str) -> Iterator[str]:
    """Find the rules that a line of code or docs breaks."""
    if IS_NO.search(line):
        yield '"is not a", never "is no"'
    if A_FOR_PER.search(line):
        yield '"per", not "a"'


@cache
def findings() -> tuple[Finding, ...]:
    """Find all places of the package and of the docs that break a rule."""
    found = [finding for file in sorted(PACKAGE.rglob("*.py")) for finding in find_in_module(file)]
    for page in sorted(DOCS.rglob("*.md")):
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            found += [Finding(rule, "docs", f"{page.name}:{number}", line) for rule in find_in_line(line)]
    return tuple(found)


ROOMS = sorted({path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.name[0] != "_"} | {"docs"})


@pytest.mark.parametrize("room", ROOMS)
def test_the_sentences_of_a_room_keep_the_rules(room: str) -> None:
    broken = [f"{finding.where}: {finding.rule}: {finding.text}" for finding in findings() if finding.room == room]
    assert broken == []


@pytest.mark.parametrize(
    ("line", "rule"), [("made what is no solver", '"is not a", never "is no"'), ("one line a case", '"per", not "a"')]
)
def test_a_line_that_breaks_a_rule_is_found(line: str, rule: str) -> None:
    assert list(find_in_line(line)) == [rule]


def test_a_function_that_is_named_by_a_participle_is_found() -> None:
    node = ast.parse('def loaded(): "What was loaded."').body[0]
    assert isinstance(node, FUNCTION)
    assert [rule for rule, _ in find_in_function(node)] == [
        "a function's docstring begins with a verb",
        "a function's name is a verb",
    ]


def missing_places(text: str) -> list[str]:
    """List the places in code (`room/file.py` or `room/file.name`) that a text names and the package lacks."""
    named = re.findall(r"`((?:[a-z_]+/)+)([a-z_]+)(?:\.(\w+))?`", text)
    texts = {
        (folder, module): (PACKAGE / folder / f"{module}.py").read_text("utf-8")
        for folder, module, _ in named
        if (PACKAGE / folder / f"{module}.py").is_file()
    }
    return [
        f"{folder}{module}.{name}"
        for folder, module, name in named
        if name
        and (PACKAGE / folder).is_dir()
        and not ((folder, module) in texts and (name == "py" or re.search(rf"\b{name}\b", texts[folder, module])))
    ]


def test_every_place_in_code_that_the_architecture_names_exists() -> None:
    assert missing_places((PACKAGE.parent / "ARCHITECTURE.md").read_text("utf-8")) == []


def test_a_name_that_a_file_lacks_is_found() -> None:
    text = "`core/types.Sample` is read by `core/types.read_sample`, not by `core/type.py`."
    assert missing_places(text) == ["core/types.read_sample", "core/type.py"]
