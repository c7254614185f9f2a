"""Paired tests between the modes of one run."""

from __future__ import annotations

from typing import Any

import pytest

from evalsuite.benchmarks.chat_eval.paired_modes import paired_modes
from evalsuite.results.tally import Row, RunView, Tally


def row(mode: str, at: int, human: str, verdict: str) -> Row:
    tags = {"task": "pairs", "mode": mode}
    sample = f"pair-{at}-{mode.replace(':', '-')}"
    return Row(sample, sample, 1, "passed", tags, {"parsed": 1.0}, {"human": human, "verdict": verdict})


def view(*rows: Row) -> RunView:
    return RunView("m", Tally.of(rows))


def test_the_other_modes_gain_is_measured_on_the_same_comparisons() -> None:
    people = ["first", "second"] * 8
    single = [row("paper:single", at, said, "first") for at, said in enumerate(people)]
    panel = [row("paper:one_by_one", at, said, said) for at, said in enumerate(people)]
    table = paired_modes([view(*single, *panel)])
    assert table is not None
    ((one, other, gained, p, kappa, n),) = table.rows
    found: Any = kappa
    assert (one, other) == ("m, paper:one_by_one", "m, paper:single")
    assert gained == -0.5
    assert p == pytest.approx(2 * 0.5**8)
    assert found.value == pytest.approx(-1.0)
    assert n == 16


def test_one_mode_alone_is_compared_with_nothing() -> None:
    assert paired_modes([view(row("single", 1, "first", "first"))]) is None
