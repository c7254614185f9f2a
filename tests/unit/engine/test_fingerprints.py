"""Fingerprints of scorers: equal in every process, whatever its hash seed."""

from __future__ import annotations

from dataclasses import dataclass, field

from evalsuite import contains
from evalsuite.engine.scoring import make_stable_repr

WORDS = ["finish", "ask_to_user", "book", "cancel", "search", "pay", "look", "wait"]
SORTED = "{" + ", ".join(sorted(map(repr, WORDS))) + "}"


@dataclass(frozen=True)
class Own:
    words: frozenset[str]
    inner: object = None
    hidden: int = field(default=1, repr=False)


def test_the_members_of_sets_are_sorted_at_every_depth() -> None:
    words = frozenset(WORDS)
    assert make_stable_repr(words) == SORTED
    assert make_stable_repr(Own(words, [{"a": set(WORDS)}])) == f"Own(words={SORTED}, inner=[{{'a': {SORTED}}}])"


def test_addresses_are_left_out_and_all_else_is_the_repr() -> None:
    assert make_stable_repr(object()) == "<object object>"
    assert make_stable_repr(1.5) == "1.5"
    assert make_stable_repr(contains()) == make_stable_repr(contains())
