r"""Finds the program, or the final answer in `\boxed{...}`, in a model's answer.

Many models mark programs by CommonMark's fences; others mark them in many different ways. All candidates for the
program are tried, from the strictest form to the most lenient. The first candidate that can be parsed, and that prints
or defines the requested names, is the program.
"""

import ast
import builtins
import html
import json
import re
import textwrap
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

ProgramForm: TypeAlias = Literal["fence", "lenient fence", "joined", "bare"]

# A fenced code block of CommonMark, which may be inside lists and quotes. The block ends at a line that consists of the
# fence's character, repeated at least as often. Possessive quantifiers keep the time linear for many backticks.
_FENCE = re.compile(
    r"^(?P<margin>[ \t>]*+)(?P<fence>(?P<sign>[`~])(?P=sign){2,}+)[ \t]*+\{?\.?(?P<language>[\w+-]*+)[^\n]*+\n"
    r"(?P<code>.*?)(?:^(?:(?P=margin))?[ \t>]{0,3}(?P=fence)(?P=sign)*+[ \t\r]*+$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_PYTHON = ("python", "py", "python3")
# Match a whole run of backticks or tildes, because trying each part of it would take quadratic time.
_RUN = r"(?:(?<!`)`{3,}+|(?<!~)~{3,}+)"
# A block marked as Python. Text may precede the opening fence, and follow the language's name and the closing fence.
_LENIENT = re.compile(
    _RUN + r"[ \t]*+\{?\.?(?:python3?|py3?|ipython3?|pycon|tool_code)\b\}?(?:[^\n`~]*+\n)?(?P<code>.*?)"
    r"(?:`{3}|~{3}|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_ONE_LINE = re.compile(_RUN + r"[ \t]*+(?:python3?|py)[ \t]++(?P<code>[^\n`~]+)(?:`{3}|~{3})", re.IGNORECASE)
_UNMARKED = re.compile(r"(?<!`)`{3,}+[ \t]*+\n(?P<code>.*?)(?:`{3}|\Z)", re.DOTALL)
# Tokens that chat templates put after an answer, and that may be left in its text. The pattern is written backwards and
# matches the reversed text, because a search at the end would take quadratic time for many blanks.
_END_SIGNS = re.compile(r"(?:\s|>[|\uff5c][\w\u2581]{1,20}[|\uff5c]<|>s/<|>soe<|>nrut_fo_dne<)*+")
_START_SIGNS = re.compile(r"(?:\s|<\|\w{1,20}\|>)*+")
_MAGIC = re.compile(r"^([ \t]*)[!%].*$", re.MULTILINE)
_TAG = re.compile(r"</?(?:pre|code)\b[^<>\n]*>", re.IGNORECASE)
_SPAN = re.compile(r"^[ \t]*`([^`\n]+)`[ \t\r]*$", re.MULTILINE)  # A line that consists of one inline code span.
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.)(?: |$)", re.MULTILINE)
_FIRST_LINE = re.compile(
    r"^(?P<margin>[ \t]*+)(?:import|from|def|class|for|with|print|[A-Za-z_]\w*[ \t]*=[^=]|>>> )", re.MULTILINE
)
LONGEST, MOST_BLOCKS, MOST_CUTS = 1 << 20, 50, 5
"""Maximum characters of an answer, maximum blocks to read, and maximum attempts to cut off lines after bare code."""


@dataclass(frozen=True, slots=True)
class FoundProgram:
    """A program that was found in an answer."""

    code: str  # Python source.
    # How it was found: `fence` (a CommonMark block), `lenient fence`, `joined` (several blocks) or `bare` (no fence).
    form: ProgramForm


def find_program(text: str, *, wanted_names: Collection[str] = (), allow_unfenced: bool = True) -> FoundProgram | None:
    """Find the program in a model's answer.

    Candidates are tried in this order: fenced blocks of CommonMark (the last block first), fences anywhere in a line,
    all blocks together, code without a fence. The program is the first candidate that can be parsed and that defines a
    name of `wanted_names`. If no names are wanted, the candidate must print or, in a fence, end in an expression.
    Without such a candidate, HTML's escapes are removed from the answer, and candidates are tried in the same order
    again. If there is still none, the last block is the program. Notebook commands such as `!pip` are removed from it.
    """
    text = text[:LONGEST]
    if (signs := _END_SIGNS.match(text[::-1])) and signs.end():
        text = f"{text[: -signs.end()]}\n"
    if signs := _START_SIGNS.match(text):
        text = text[signs.end() :] if "|" in signs[0] else text
    fallback: FoundProgram | None = None
    unescaped = _TAG.sub("\n", html.unescape(text))
    versions = (text,) if unescaped == text else (text, unescaped)
    candidates = (_list_candidates(each, wanted_names, allow_unfenced=allow_unfenced) for each in versions)
    for written, form in chain.from_iterable(candidates):
        code, tree = _parse_leniently(written, keep_margin=form == "bare")
        if tree is not None and _is_requested_program(tree, wanted_names, requires_print=form == "bare"):
            return FoundProgram(code, form)
        if wanted_names:  # Keep the margin, because the code may be the body of a function that the prompt begins.
            code, tree = _parse_leniently(written, keep_margin=True)
        if form == "bare" and not (wanted_names and tree is not None):
            continue
        if fallback is None or (tree is not None and _parse_leniently(fallback.code)[1] is None):
            fallback = FoundProgram(code, form)
    return fallback


def _list_candidates(
    text: str, wanted_names: Collection[str], *, allow_unfenced: bool
) -> Iterator[tuple[str, ProgramForm]]:
    """Yield all candidates for a program in an answer, the strictest form first."""
    fenced, unmarked = _list_fenced_blocks(text, _PYTHON), _list_fenced_blocks(text, ("",))
    lenient = [match["code"] for pattern in (_LENIENT, _ONE_LINE) for match in pattern.finditer(text)]
    groups: tuple[tuple[list[str], ProgramForm], ...] = (
        (fenced, "fence"),
        (lenient, "lenient fence"),
        (unmarked if not lenient else [], "fence"),
        ([match["code"] for match in _UNMARKED.finditer(text)], "lenient fence"),
    )
    for blocks, form in groups:
        few = blocks[-MOST_BLOCKS:]
        for number in reversed(range(len(few))):
            if number and _is_using_earlier_names(few[number], few[:number], wanted_names):
                yield "\n".join(few[: number + 1]), "joined"
            yield few[number], form
    for blocks, _ in groups:
        if len(blocks) > 1:
            yield "\n".join(blocks[-MOST_BLOCKS:]), "joined"
    if allow_unfenced and not (fenced or lenient):
        spans = "\n".join(_SPAN.findall(text))
        yield from ((code, "bare") for code in (text, *_list_json_strings(text), spans) if code)
        yield from ((code, "bare") for code in _cut_code_from_prose(text))


def _list_fenced_blocks(text: str, languages: Collection[str]) -> list[str]:
    return [
        _remove_margin(match["code"], match["margin"])
        for match in _FENCE.finditer(text)
        if match["language"].lower() in languages
    ]


def _remove_margin(code: str, margin: str) -> str:
    """Remove from every line of a block the margin (quote marks and blanks) that its opening fence has."""
    blanks = r"[ \t>]" if ">" in margin else r"[ \t]"
    return re.sub(rf"^{blanks}{{0,{len(margin)}}}", "", code, flags=re.MULTILINE)


def _list_json_strings(text: str) -> list[str]:
    """List the texts in the answer's first JSON object, because one of them may be a program."""
    try:
        found, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    except (ValueError, RecursionError):
        return []
    return [value for value in found.values() if isinstance(value, str)]


def _cut_code_from_prose(text: str) -> Iterator[str]:
    """Yield code found in prose: it starts at a line that looks like code, and stops before a syntax error."""
    first = _FIRST_LINE.search(text)
    lines = _remove_margin(text[first.start() :], first["margin"]).split("\n") if first else []
    for _ in range(MOST_CUTS):
        code = "\n".join(lines)
        if not code.strip():
            return
        try:
            _parse_without_warnings(code)
        except SyntaxError as error:
            lines = lines[: max(0, (error.lineno or 1) - 1)]
        except (ValueError, RecursionError, MemoryError):
            return
        else:
            yield code
            return


def _parse_without_warnings(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)


def _parse_leniently(written: str, *, keep_margin: bool = False) -> tuple[str, ast.Module | None]:
    """Parse code; if that fails, parse it without notebook commands, margin or `>>>` prompts. Keep unparseable code."""
    # An indented command is replaced by `pass`, because the block around it could otherwise be empty.
    kept_blocks = _MAGIC.sub(lambda line: f"{line[1]}pass" if line[1] else "", written)
    commands_removed = _MAGIC.sub("", written)
    typed = [_PROMPT.sub("", line) for line in written.split("\n") if _PROMPT.match(line)]
    blanks = commands_removed.replace("\N{NO-BREAK SPACE}", " ")
    dedented = blanks if keep_margin else textwrap.dedent(blanks)
    for code in dict.fromkeys((written, kept_blocks, commands_removed, dedented, "\n".join(typed) or written)):
        try:
            return code, _parse_without_warnings(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return written, None


def _is_requested_program(tree: ast.Module, wanted_names: Collection[str], *, requires_print: bool) -> bool:
    """Tell whether a program defines one of the requested names or, if none is requested, shows a result."""
    if wanted_names:
        return bool(set(wanted_names) & _list_defined_names(tree))
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant) and not requires_print:
        return True
    # Code without a fence must print, because even a single word or number of prose is valid Python.
    return any(
        isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Name) and node.func.id in {"print", "display"})
            or (isinstance(node.func, ast.Attribute) and node.func.attr in {"write", "print", "info"})
        )
        for node in ast.walk(tree)
    )


def _list_defined_names(tree: ast.Module) -> set[str]:
    """List the names that a program defines at its top level; imported names do not count."""
    own = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return list_bound_names(ast.Module(own, []))


def list_bound_names(tree: ast.Module) -> set[str]:
    """List all names to which a program gives a value, at any level."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return names


def list_unbound_names(tree: ast.Module) -> set[str]:
    """List the names that a program uses without defining them; built-in names do not count."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return used - list_bound_names(tree) - arguments - set(dir(builtins))


def _is_using_earlier_names(block: str, earlier_blocks: list[str], wanted_names: Collection[str]) -> bool:
    """Tell whether a block uses a name that only an earlier block defines."""
    tree = _parse_leniently(block)[1]
    if tree is None or (wanted_names and not set(wanted_names) & _list_defined_names(tree)):
        return False  # The earlier block defines the requested names; this block only calls or tests them.
    before = [other for code in earlier_blocks if (other := _parse_leniently(code)[1]) is not None]
    return any(list_unbound_names(tree) & list_bound_names(other) for other in before)


_BOX = r"\boxed{"
# Boxes, braces and escaped characters in LaTeX; a backslash directly before `\boxed` is not an escape.
_SIGNS = re.compile(r"\\boxed\{|\\(?!\\boxed\{).|[{}]", re.DOTALL)
# LaTeX macros for styles and fonts; the text inside them is kept. Of nested macros, the inner one is removed first.
_STYLED = re.compile(
    r"\\(?:text(?:bf|it|rm|tt|sf|sc|normal)?|math(?:bf|it|rm|tt|sf|bb)?|mbox|operatorname)\s*\{([^{}]*)\}"
)
_MATH = re.compile(r"\s*(?:\$\$?(.+?)\$\$?|\\\((.+?)\\\)|\\\[(.+?)\\\])\s*", re.DOTALL)
_THIN_SPACE = re.compile(r"(?<=\d)(?:\\[,;:! ]|\{,\}|~)(?=\d{3}(?!\d))")
_SPACE = re.compile(r"\\[,;: ]|~")
_ESCAPED = re.compile(r"\\([%$&_#])")


def find_last_boxed_answer(text: str) -> str | None:
    r"""Return the answer in the last complete box in plain words, such as Paris for `\boxed{\text{Paris}}`.

    The result is None without a box. Escaped braces do not count.
    """
    # One entry per open brace: where the box's content begins, or None if the brace does not open a box.
    opened: list[int | None] = []
    start, end = -1, -1
    for sign in _SIGNS.finditer(text):
        if sign[0] in ("{", _BOX):
            opened.append(sign.end() if sign[0] == _BOX else None)
        elif sign[0] == "}" and opened:
            content = opened.pop()
            if content is not None and content > start:
                start, end = content, sign.start()
    return None if start < 0 else strip_latex(text[start:end].strip())


def remove_box(text: str) -> str:
    r"""Convert a boxed answer to plain words, also if it is between math signs; return other text unchanged."""
    bare = text.strip("$. \n")
    return find_last_boxed_answer(bare) or "" if bare.startswith(_BOX) and _is_single_box(bare) else text


def _is_single_box(text: str) -> bool:
    """Tell whether a text that begins with a box has nothing after this box."""
    depth = 0
    for sign in re.finditer(r"\\[{}]|[{}]", text):
        depth += {"{": 1, "}": -1}.get(sign[0], 0)
        if not depth:
            return sign.end() == len(text)
    return False


def strip_latex(latex: str) -> str:
    """Remove math signs, fonts, thin spaces and escapes from an answer in LaTeX; do not change formulas."""
    whole = _MATH.fullmatch(latex)
    text = next((part for part in whole.groups() if part is not None), "") if whole else latex
    while (unstyled := _STYLED.sub(r"\1", text)) != text:
        text = unstyled
    text = _THIN_SPACE.sub(lambda space: "," if space[0] == "{,}" else "", text).replace(r"\!", "")
    return _ESCAPED.sub(r"\1", _SPACE.sub(" ", text)).strip()
