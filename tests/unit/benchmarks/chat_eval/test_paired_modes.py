"""Paired tests between the modes of one run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalsuite.benchmarks.chat_eval.agreement import compare_modes
from evalsuite.benchmarks.chat_eval.dataset import ASPECT_NAMES
from evalsuite.results.tally import Row, RunView, Tally
from evalsuite.stats import spearman


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
    (table,) = compare_modes([view(*single, *panel)])
    ((one, other, gained, p, kappa, kappa_p, n),) = table.rows
    found: Any = kappa
    assert (one, other) == ("m, paper:one_by_one", "m, paper:single")
    assert gained == -0.5
    assert p == pytest.approx(2 * 0.5**8)
    assert found.value == pytest.approx(-1.0)
    assert n == 16
    assert kappa_p is None or 0.0 <= float(str(kappa_p)) <= 1.0


def test_epochs_of_a_comparison_do_not_add_evidence_for_a_mode() -> None:
    people = ["first", "second"] * 4
    once = [
        row(mode, at, said, "first" if mode == "single" else said)
        for mode in ("mec", "single")
        for at, said in enumerate(people)
    ]
    again = [
        replace(
            one, case=f"{one.case}-{epoch}", epoch=epoch, tags={**one.tags, "cluster": one.sample.rpartition("-")[0]}
        )
        for one in once
        for epoch in range(1, 6)
    ]
    ((*_, before, _, before_kappa, _),) = compare_modes([view(*once)])[0].rows
    ((*_, after, _, after_kappa, _),) = compare_modes([view(*again)])[0].rows
    # As many comparisons favour the other mode, however often each is judged: the sign test of 4 comparisons, or t.
    assert before == 2 * 0.5**4
    assert float(str(after)) > 0.02
    assert before_kappa == pytest.approx(after_kappa)


def test_one_mode_alone_is_compared_with_nothing() -> None:
    assert compare_modes([view(row("single", 1, "first", "first"))]) == []


def response(mode: str, at: int, human: float, score: float) -> Row:
    tags = {"task": "dialogues", "mode": mode}
    sample = f"dialogue-{at}-{mode}"
    facts = {
        "human": dict.fromkeys(ASPECT_NAMES, human),
        "judged": dict.fromkeys(ASPECT_NAMES, score),
        "dialogue": at // 2,
        "verdict": None,
    }
    return Row(sample, sample, 1, "passed", tags, {"parsed": 1.0}, facts)


def test_the_gain_in_rank_correlation_is_the_difference_on_the_same_responses_by_conversation() -> None:
    people = [float(at * 7 % 10) for at in range(40)]
    noisy = [float(at * 3 % 10) for at in range(40)]
    rows = [response("mec", at, human, human + (at % 3)) for at, human in enumerate(people)]
    rows += [response("single", at, human, noise) for at, (human, noise) in enumerate(zip(people, noisy, strict=True))]
    (table,) = compare_modes([view(*rows, response("mec", 99, 1.0, 1.0))])
    ((*_, rho, p, n),) = table.rows
    gain: Any = rho
    expected = (
        spearman(noisy, people).statistic - spearman([h + at % 3 for at, h in enumerate(people)], people).statistic
    )
    assert gain.value == pytest.approx(expected)
    assert gain.low < gain.value < gain.high
    assert n == 40, "the response that one mode alone has scored is left out"
    assert (float(str(p)) < 0.05) is (gain.high < 0), "interval and p-value are of one test"
