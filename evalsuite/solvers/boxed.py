r"""The final answer of a model that writes it as `\boxed{answer}`, with or without LaTeX around its words."""

from __future__ import annotations

import re

_BOX = r"\boxed{"
# Boxes, braces and escaped characters; a backslash right before a box escapes nothing.
_SIGNS = re.compile(r"\\boxed\{|\\(?!\\boxed\{).|[{}]", re.DOTALL)
# Styles and fonts, which do not change the words in them. The innermost ones are removed first.
_STYLED = re.compile(
    r"\\(?:text(?:bf|it|rm|tt|sf|sc|normal)?|math(?:bf|it|rm|tt|sf|bb)?|mbox|operatorname)\s*\{([^{}]*)\}"
)
_MATH = re.compile(r"\s*(?:\$\$?(.+?)\$\$?|\\\((.+?)\\\)|\\\[(.+?)\\\])\s*", re.DOTALL)
_THIN_SPACE = re.compile(r"(?<=\d)(?:\\[,;:! ]|\{,\}|~)(?=\d{3}(?!\d))")
_SPACE = re.compile(r"\\[,;: ]|~")
_ESCAPED = re.compile(r"\\([%$&_#])")


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last complete `\boxed{...}`, without counting escaped braces; None without one."""
    opened: list[int | None] = []  # For each open brace where its content starts, if it is a box's.
    start, end = -1, -1
    for sign in _SIGNS.finditer(text):
        if sign[0] in ("{", _BOX):
            opened.append(sign.end() if sign[0] == _BOX else None)
        elif sign[0] == "}" and opened:
            content = opened.pop()
            if content is not None and content > start:
                start, end = content, sign.start()
    return None if start < 0 else text[start:end].strip()


def last_boxed_answer(text: str) -> str | None:
    r"""Return the last box's answer in plain words: `\boxed{\text{Paris}}` is Paris, `\boxed{1{,}234}` is 1,234."""
    boxed = last_boxed(text)
    return None if boxed is None else plain_words(boxed)


def unbox(text: str) -> str:
    r"""Return a boxed answer, with or without math signs around it, in plain words; any other unchanged."""
    bare = text.strip("$. \n")
    return last_boxed_answer(bare) or "" if bare.startswith(_BOX) and _closes_last(bare) else text


def _closes_last(text: str) -> bool:
    """Return whether the last character closes the box that opens at the start."""
    depth = 0
    for sign in re.finditer(r"\\[{}]|[{}]", text):
        depth += {"{": 1, "}": -1}.get(sign[0], 0)
        if not depth:
            return sign.end() == len(text)
    return False


def plain_words(latex: str) -> str:
    """Strip math signs, fonts, thin spaces and escapes from an answer in LaTeX; formulas stay as they are."""
    whole = _MATH.fullmatch(latex)
    text = next((part for part in whole.groups() if part is not None), "") if whole else latex
    while (unstyled := _STYLED.sub(r"\1", text)) != text:
        text = unstyled
    text = _THIN_SPACE.sub(lambda space: "," if space[0] == "{,}" else "", text).replace(r"\!", "")
    return _ESCAPED.sub(r"\1", _SPACE.sub(" ", text)).strip()
