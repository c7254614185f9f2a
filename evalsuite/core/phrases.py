"""Numbers with their nouns, and long texts shortened with a mark at the cut; lengths are in characters."""

from __future__ import annotations

MARK = " ..."


def number_of(count: int, noun: str) -> str:
    """Write a number with its noun: `1 case`, `2,000 cases`; for nouns with a plural in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def beginning(text: str, longest: int) -> str:
    """Keep as much of a text's beginning as fits with a mark into `longest` characters."""
    return text if len(text) <= longest else f"{text[: max(0, longest - len(MARK))]}{MARK}"


def beginning_and_length(text: str, longest: int) -> str:
    """Keep a text's beginning with a note of the whole length; at most `longest` characters."""
    if len(text) <= longest:
        return text
    note = f" [cut: {len(text):,} characters in all]"
    return (text[: max(0, longest - len(note))] + note)[:longest]


def ending(text: str, longest: int) -> str:
    """Keep a text's last `longest` characters after a mark, because the end of a traceback tells most."""
    return text if len(text) <= longest else f"...{text[len(text) - longest :]}"


def ends_of_line(line: str, longest: int) -> str:
    """Keep both ends of a line with a mark between them; at most `longest` characters."""
    if len(line) <= longest:
        return line
    half = max(0, longest - len(MARK) - 1) // 2
    return f"{line[:half]}{MARK} {line[len(line) - half :]}"


def both_ends(text: str, longest: int) -> str:
    """Keep two thirds of `longest` characters from a text's beginning and one third from its end.

    A line between them says how many characters are missing.
    """
    if len(text) <= longest:
        return text
    head, tail = longest * 2 // 3, longest // 3
    return f"{text[:head]}\n[... {len(text) - head - tail:,} characters ...]\n{text[len(text) - tail :]}"
