"""Which cases a session runs: those the command line asks for, in this machine's shard, in this run's order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.settings import OPTIONS
from evalsuite.decisions.planned_order import spread
from evalsuite.plugin.marks import case_of
from evalsuite.plugin.session.process_state import PROCESS

if TYPE_CHECKING:
    from evalsuite.engine.deal import Deal


def selection_of(config: pytest.Config) -> dict[str, Any]:
    """Which tests the command line asks for, if any."""
    by_path = config.args_source is pytest.Config.ArgsSource.ARGS
    return {
        "args": list(config.args) if by_path else [],
        "keyword": config.option.keyword,
        "markexpr": config.option.markexpr,
    }


def select_again(config: pytest.Config, selection: dict[str, Any]) -> None:
    """Makes a session collect what an earlier one did; the selection already includes today's command line."""
    if selection["args"]:
        config.args = selection["args"]
        config.args_source = pytest.Config.ArgsSource.ARGS
    config.option.keyword = selection["keyword"]
    config.option.markexpr = selection["markexpr"]


def is_narrowed(config: pytest.Config) -> bool:
    """Whether the command line picks cases: by -k, -m, --lf, a file or an id.

    If so, gates of an ini file, which are meant for the whole suite, apply only to the benchmarks present. A
    gate on the command line is meant for this run and always applies.
    """
    if config.getoption("evalsuite_gate"):
        return False
    option = config.option
    picked = option.keyword or option.markexpr or getattr(option, "lf", False)
    return bool(picked) or any("::" in arg or arg.endswith(".py") for arg in config.args)


def is_asked_for(config: pytest.Config) -> bool:
    """Whether the command line asks for cases: by one of evalsuite's options, or by the id of a test.

    If not, as with plain `pytest` in a project with unit tests, cases without a model are skipped.
    """
    given = any(config.getoption(f"evalsuite_{option.name}") is not None for option in OPTIONS)
    return given or any("::" in arg for arg in config.args)


def count_cases(items: list[pytest.Item]) -> int:
    """How many of the items are cases."""
    return sum(case_of(item) is not None for item in items)


def _is_mine(deal: Deal, item: pytest.Item) -> bool:
    case = case_of(item)
    return case is None or deal.is_mine(case.bound.name, case.source.id)


def choose_items(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps this shard's cases, and shuffles them if the run may stop early."""
    process = config.stash[PROCESS]
    settings = process.settings
    if settings.shard:
        # Others' cases were not made, but for one where pytest would have said that a function has none.
        others = [item for item in items if not _is_mine(process.deal, item)]
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=others)
    if settings.may_end_early:
        # One seed, so that every worker has the same order. Plain tests come first, so that an early stop skips none.
        random.Random(settings.seed).shuffle(items)  # noqa: S311 - an order, no secret
        items.sort(key=lambda item: case_of(item) is not None)
    if settings.until_decided:
        # First what --limit chooses, then more questions, which say more than more epochs of the same ones.
        items.sort(key=_stage)
        items[:] = spread(items, getattr(config, "workerinput", {}).get("workercount", 1))
    if hasattr(config, "workeroutput"):
        config.workeroutput["evalsuite_planned"] = count_cases(items)


def _stage(item: pytest.Item) -> tuple[int, bool]:
    """A case's epoch, and whether it is beyond the limit; plain tests come before all cases."""
    case = case_of(item)
    return (case.epoch, case.beyond) if case is not None else (0, False)
