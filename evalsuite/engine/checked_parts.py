"""Checks that the solver and the scorers of a benchmark are what their names say, before a case begins."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from evalsuite.core.errors import SettingsError
from evalsuite.core.protocols import JudgedScorer, ModelScorer
from evalsuite.engine.scorer_kinds import name_of


def check_parts(benchmark: str, solver: object, scorers: Any) -> None:
    """Checks that a benchmark's solver and scorers can be called, and that no two scorers give one score.

    Raises:
        SettingsError: with what is wrong and what to write instead.
    """
    try:
        _check_solver(solver)
        _check_scorers(scorers)
        _check_names(scorers)
        if scorers and solver is None:
            raise SettingsError(
                "it has scorers but no solver, so nothing would be scored; add solver=generate(), or leave out scorers"
            )
    except SettingsError as error:
        raise SettingsError(f"benchmark {benchmark}: {error}") from error


def _check_solver(solver: object) -> None:
    if solver is not None and not callable(solver):
        raise SettingsError(f"{_shown(solver)} is not a solver; a solver is called with (sample, model)")
    _check_call(solver, "a solver takes (sample, model)")


def _check_scorers(scorers: object) -> None:
    if not isinstance(scorers, Sequence) or isinstance(scorers, str):
        raise SettingsError(f"scorers must be a list; write scorers=[...] around {_shown(scorers)}")
    for scorer in scorers:
        if isinstance(scorer, (JudgedScorer, ModelScorer)) and not inspect.isclass(scorer):
            continue
        if not callable(scorer):
            raise SettingsError(
                f"{_shown(scorer)} is not a scorer; a scorer is called with (sample, transcript)"
            )
        _check_call(scorer, "a scorer takes (sample, transcript)")


def _check_call(part: object, wanted: str) -> None:
    """Sees that a callable takes two arguments, as far as Python can tell."""
    if not callable(part):
        return
    try:
        signature = inspect.signature(part)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        makes = getattr(part, "__module__", "").startswith("evalsuite.")
        hint = f"; write {name_of(part)}(), with parentheses" if makes else ""
        raise SettingsError(f"{wanted}; {name_of(part)} takes {signature}{hint}") from error


def _check_names(scorers: Sequence[object]) -> None:
    """Only names that are declared can be compared before anything is asked; the others are when they come."""
    given_by: dict[str, object] = {}
    for scorer in scorers:
        for name in getattr(scorer, "metrics", None) or ():
            if given_by.setdefault(name, scorer) is not scorer and "*" not in name:
                raise SettingsError(
                    f"two scorers give the score {name!r}; give one of them another name, or leave it out"
                )


def _shown(part: object) -> str:
    name = name_of(part)
    return name if name != "function" else repr(part)
