"""Long texts made short; a mark always shows where something is missing. All lengths are in characters."""

from __future__ import annotations

MARK = " ..."


def beginning(text: str, longest: int) -> str:
    """The text, or as much of its beginning as fits with a mark into `longest` characters."""
    return text if len(text) <= longest else f"{text[: max(0, longest - len(MARK))]}{MARK}"


def beginning_and_length(text: str, longest: int) -> str:
    """The text, or its beginning with a note that says how long the whole is; at most `longest` characters."""
    if len(text) <= longest:
        return text
    note = f" [cut: {len(text):,} characters in all]"
    return (text[: max(0, longest - len(note))] + note)[:longest]


def ending(text: str, longest: int) -> str:
    """The text, or its last `longest` characters after a mark: of a traceback, the end tells most."""
    return text if len(text) <= longest else f"...{text[len(text) - longest :]}"


def ends_of_line(line: str, longest: int) -> str:
    """The line, or the two halves of what fits into `longest` characters with a mark between them."""
    if len(line) <= longest:
        return line
    half = max(0, longest - len(MARK) - 1) // 2
    return f"{line[:half]}{MARK} {line[len(line) - half :]}"


def both_ends(text: str, longest: int) -> str:
    """The text, or two thirds of `longest` from its beginning and one third from its end.

    A line between them says how many characters are missing.
    """
    if len(text) <= longest:
        return text
    head, tail = longest * 2 // 3, longest // 3
    return f"{text[:head]}\n[... {len(text) - head - tail:,} characters ...]\n{text[len(text) - tail :]}"
