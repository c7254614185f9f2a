"""Phrases for messages: numbers with their nouns, and shortened texts. All lengths in this file are in characters."""

from __future__ import annotations

MARK = " ..."


def write_count(count: int, noun: str) -> str:
    """Write a number with its noun: `1 case`, `2,000 cases`. The noun's plural must end in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def describe_estimates(estimated: int, calls: int) -> str:
    """State how many calls have estimated token counts; return an empty text if no call has."""
    share = f"{estimated:,} of {write_count(calls, 'call')}"
    return f"tokens estimated in {share}, because the server did not count them" if estimated else ""


def shorten_to_beginning(text: str, longest: int) -> str:
    """Shorten a text to its beginning and `MARK`, together at most `longest` characters."""
    return text if len(text) <= longest else f"{text[: max(0, longest - len(MARK))]}{MARK}"


def shorten_with_note(text: str, longest: int) -> str:
    """Shorten a text to its beginning and a note of its full length, together at most `longest` characters."""
    if len(text) <= longest:
        return text
    note = f" [cut: {len(text):,} characters in all]"
    return (text[: max(0, longest - len(note))] + note)[:longest]


def shorten_to_ending(text: str, longest: int) -> str:
    """Shorten a text to dots and its last `longest` characters, because a traceback's end matters most."""
    return text if len(text) <= longest else f"...{text[len(text) - longest :]}"


def shorten_line(line: str, longest: int) -> str:
    """Replace the middle of a line by `MARK` if the line is longer than `longest` characters."""
    if len(line) <= longest:
        return line
    half = max(0, longest - len(MARK) - 1) // 2
    return f"{line[:half]}{MARK} {line[len(line) - half :]}"


def shorten_to_ends(text: str, longest: int) -> str:
    """Shorten a text to `longest` characters: two thirds from its beginning and one third from its end.

    A line between the beginning and the end states the number of missing characters.
    """
    if len(text) <= longest:
        return text
    head, tail = longest * 2 // 3, longest // 3
    return f"{text[:head]}\n[... {len(text) - head - tail:,} characters ...]\n{text[len(text) - tail :]}"
