"""Agreement among debaters, repeats and epochs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalsuite.output.reports.judges import make_judge_tables
from evalsuite.output.reports.judges.agreement import (
    measure_epoch_agreement,
    measure_judge_agreement,
    tabulate_agreement,
)
from evalsuite.output.reports.judges.ballots import read_judged_cases
from evalsuite.results.tally import RunView
from evalsuite.stats import cohen_kappa


def panel(made: Any, name: str, **verdicts: str) -> Any:
    return made.row(name, "tie", [made.ballot(verdict, judge) for judge, verdict in verdicts.items()])


def test_debaters_who_agree_have_alpha_and_kappa_one(made: Any) -> None:
    rows = [panel(made, f"s{at}", a=said, b=said) for at, said in enumerate(["first", "second", "tie"] * 3)]
    (found,) = measure_judge_agreement(read_judged_cases(made.tally(rows)))
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(1.0)
    assert [kappa for *_, kappa in found.kappas] == [pytest.approx(1.0)]


@pytest.mark.parametrize("ballots", ["none", [1, 2], {"a": 1}, 5, [{"judge": "a"}]])
@pytest.mark.parametrize("facts", [{}, {"verdict": "first"}])
def test_facts_of_a_users_scorer_named_ballots_are_not_a_judges(made: Any, ballots: Any, facts: dict[str, str]) -> None:
    own = {**facts, "ballots": ballots}
    rows = [replace(made.row("s1", None, []), facts=own), replace(made.row("s2", None, []), facts={"own": own})]
    assert make_judge_tables([RunView("run", made.tally(rows))]) == []


def test_kappa_is_that_of_the_two_debaters_over_both_orders(made: Any) -> None:
    def both(name: str, a: str, b: str, swapped_a: str, swapped_b: str) -> Any:
        return made.row(
            name,
            "tie",
            [
                made.ballot(a, "a"),
                made.ballot(b, "b"),
                made.ballot(swapped_a, "a", swapped=True),
                made.ballot(swapped_b, "b", swapped=True),
            ],
        )

    rows = [both("s1", "first", "first", "second", "first"), both("s2", "tie", "tie", "first", "first")]
    (found,) = measure_judge_agreement(read_judged_cases(made.tally(rows)))
    a, b = ["first", "second", "tie", "first"], ["first", "first", "tie", "first"]
    assert [kappa for *_, kappa in found.kappas] == [pytest.approx(cohen_kappa(a, b))]
    assert found.alpha is not None
    assert found.alpha.n == 4, "each order is a thing of its own"


def test_direct_scores_agree_on_each_aspect_by_themselves(made: Any) -> None:
    def scored(name: str, a: float, b: float) -> Any:
        ballots = [made.ballot(None, "a", clear=a, deep=a), made.ballot(None, "b", clear=a, deep=b)]
        return made.row(name, None, ballots)

    rows = [scored("s1", 1, 5), scored("s2", 5, 1), scored("s3", 2, 4)]
    found = {one.question: one.alpha for one in measure_judge_agreement(read_judged_cases(made.tally(rows)))}
    assert found["clear"] is not None
    assert found["clear"].value == pytest.approx(1.0)
    assert found["deep"] is not None
    assert found["deep"].value < 0


def test_one_judge_has_nobody_to_agree_with(made: Any) -> None:
    tally = made.tally([panel(made, "s1", a="first"), panel(made, "s2", a="second")])
    assert measure_judge_agreement(read_judged_cases(tally)) == []
    assert tabulate_agreement("Agreement", [("mine", tally)]) is None


def test_verdicts_that_are_all_the_same_leave_agreement_undefined_not_perfect(made: Any) -> None:
    (found,) = measure_judge_agreement(read_judged_cases(made.tally([panel(made, "s1", a="first", b="first")])))
    assert found.alpha is None
    assert found.kappas == (("a", "b", None),)


def test_epochs_are_raters_of_the_same_sample(made: Any) -> None:
    verdicts = [("s1", "first"), ("s2", "second"), ("s3", "tie")]
    rows = [made.row(name, said, [made.ballot(said)], epoch=epoch) for name, said in verdicts for epoch in (1, 2)]
    (found,) = measure_epoch_agreement(read_judged_cases(made.tally(rows)))
    assert found.raters == ("epoch 1", "epoch 2")
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(1.0)


def test_direct_scores_are_compared_over_epochs_by_the_mean_of_each_case(made: Any) -> None:
    given = {"s1": ((1, 5), (3, 3)), "s2": ((4, 4), (5, 3)), "s3": ((2, 4), (1, 5))}
    rows = [
        made.row(
            name, None, [made.ballot(None, judge, clear=score) for judge, score in zip("ab", scores, strict=True)],
            epoch=epoch,
        )
        for name, epochs in given.items()
        for epoch, scores in enumerate(epochs, 1)
    ]  # fmt: skip
    (found,) = measure_epoch_agreement(read_judged_cases(made.tally(rows)))
    assert (found.question, found.raters) == ("clear", ("epoch 1", "epoch 2"))
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(1.0), "the means are the same, whatever the judges said"
    table = tabulate_agreement("Agreement", [("mine", made.tally(rows))])
    assert table is not None
    assert [row[2] for row in table.rows] == ["all 2 judges", "all 2 epochs"]


def test_the_table_names_all_raters_and_then_each_two(made: Any) -> None:
    rows = [panel(made, f"s{at}", a=said, b=said, c="tie") for at, said in enumerate(["first", "second", "tie"])]
    table = tabulate_agreement("Agreement", [("mine", made.tally(rows))])
    assert table is not None
    assert [row[2] for row in table.rows] == ["all 3 judges", "a, b", "a, c", "b, c"]
