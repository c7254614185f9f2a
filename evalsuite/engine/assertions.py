"""Failed assertions of test functions: their statements and, where pytest does not rewrite them, their values."""

from __future__ import annotations

import ast
import builtins
import linecache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPERATORS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}

LONGEST_VALUE = 240  # characters of a value, as pytest bounds them


def statement_at(lines: Sequence[str], number: int) -> str:
    """Return the statement at a line, as it is written; the line alone if it cannot be parsed."""
    node = _find_statement(lines, number)
    if node is None:
        return lines[number - 1].strip() if number <= len(lines) else ""
    first, last = node.lineno, node.end_lineno or node.lineno
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        # The head of a compound statement.
        last = max(first, body[0].lineno - 1)
    return "".join(lines[first - 1 : last]).strip()


def _find_statement(lines: Sequence[str], number: int) -> ast.stmt | None:
    """Find the innermost statement that contains a line."""
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= number <= (node.end_lineno or node.lineno):
            # Walked from the outside to the inside.
            found = node
    return found


def describe_assertion(error: AssertionError) -> str:
    """Describe a failed assertion in the first line that pytest would show, such as `assert 0.0 == 1.0`.

    pytest rewrites assertions when it imports a test file. Elsewhere their messages are empty; the values of a simple
    comparison are then read from the frame that failed.
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if error.args or traceback is None:
        return str(error)
    frame = traceback.tb_frame
    node = _find_statement(linecache.getlines(frame.f_code.co_filename), traceback.tb_lineno)
    if not isinstance(node, ast.Assert):
        return ""
    names = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    try:
        return f"assert {_explain(node.test, names)}"
    except Exception:  # noqa: BLE001 - reading a value runs the user's code, which may raise anything
        return f"assert {ast.unparse(node.test)}"


def _explain(node: ast.expr, names: Mapping[str, Any]) -> str:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"not {_explain(node.operand, names)}"
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _explain(node.left, names), _explain(node.comparators[0], names)
        return f"{left} {OPERATORS[type(node.ops[0])]} {right}"
    text = repr(_read_value(node, names))
    if len(text) <= LONGEST_VALUE:
        return text
    first = (LONGEST_VALUE - 3) // 2
    return f"{text[:first]}...{text[len(text) - (LONGEST_VALUE - 3 - first) :]}"


def _read_value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Read the value of an expression that calls nothing."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Attribute):
        return getattr(_read_value(node.value, names), node.attr)
    if isinstance(node, ast.Subscript):
        return _read_value(node.value, names)[_read_value(node.slice, names)]
    raise LookupError(ast.unparse(node))
