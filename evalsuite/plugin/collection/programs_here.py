"""Checks, before a run's first call, that this machine can run the programs of its cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.core.counted_nouns import number_of
from evalsuite.core.errors import SandboxUnavailable
from evalsuite.plugin.collection.refusal import refuse
from evalsuite.plugin.marks import case_of
from evalsuite.plugin.session.process_state import PROCESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pytest

    from evalsuite.core.settings import Settings
    from evalsuite.plugin.collection.cases import Case
    from evalsuite.sandbox import Sandbox


def check_sandboxes(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Tries each kind of sandbox that the chosen cases need, once in each process.

    Raises:
        pytest.UsageError: one of them does not work here (see `refuse`).
    """
    option = session.config.option
    if option.collectonly or option.setupplan:
        return
    cases = [case for item in items if (case := case_of(item)) is not None]
    problem = _problem(cases, session.config.stash[PROCESS].settings)
    if problem:
        refuse(session, items, problem)


def _problem(cases: Iterable[Case], settings: Settings) -> str:
    """Why programs cannot be run here; empty where they can, or where there are none."""
    needing: dict[Sandbox, list[Case]] = {}
    for case in cases:
        for sandbox in sandboxes(case):
            needing.setdefault(sandbox, []).append(case)
    if not needing:
        return ""
    import asyncio

    from evalsuite.sandbox.environments import environment
    from evalsuite.sandbox.tiers import TIERS, tiers_of

    tried = set()
    for sandbox, affected in needing.items():
        try:
            sandbox.prefer(environment(settings.program_env), tiers_of(settings.sandbox))
            # Each sandbox has to learn what is installed on a remote machine.
            elsewhere = not set(sandbox.tiers) & set(TIERS)
            if elsewhere or (sandbox.tiers, sandbox.environment.packages) not in tried:
                asyncio.run(sandbox.probe())
        except SandboxUnavailable as error:
            return _message(affected, error)
        tried.add((sandbox.tiers, sandbox.environment.packages))
    return ""


def _message(affected: Sequence[Case], error: SandboxUnavailable) -> str:
    names = ", ".join(sorted({case.bound.name for case in affected}))
    return (
        f"programs that a model writes run in {number_of(len(affected), 'case')} of {names}: {error}\n"
        "Nothing was asked and nothing was paid. `evalsuite doctor` says what works here; to run the other cases "
        "alone, deselect these with -k, or choose a mode without programs (--mode treb=tcot)."
    )


def sandboxes(case: Case) -> Iterator[Sandbox]:
    """Where a case's programs would run: the sandboxes of its solver and its scorers."""
    for part in (case.bound.solver, *case.bound.scorers):
        sandbox_for = getattr(part, "sandbox_for", None)
        sandbox = sandbox_for(case.sample) if sandbox_for is not None else None
        if sandbox is not None:
            yield sandbox
