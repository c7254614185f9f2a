"""Agreement among debaters, repeats and epochs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalsuite.output.reports.judges import make_judge_tables, tabulate_agreement
from evalsuite.results.tally import Estimate, RunView
from evalsuite.stats import cohen_kappa


def agreement(made: Any, rows: list[Any], raters: str) -> dict[str, tuple[Estimate | None, list[float | None]]]:
    """Alpha and the kappas of pairs by question, among the raters of one kind."""
    table = tabulate_agreement("Agreement", [("mine", made.tally(rows))])
    found: dict[str, tuple[Estimate | None, list[float | None]]] = {}
    rated: Any = table.rows if table else ()
    for _, question, who, alpha, kappa, _ in rated:
        if who.startswith("all "):
            kind = who
            found |= {question: (alpha, [])} if kind.endswith(raters) else {}
        elif kind.endswith(raters):
            found[question][1].append(kappa)
    return found


def panel(made: Any, name: str, **verdicts: str) -> Any:
    return made.row(name, "tie", [made.ballot(verdict, judge) for judge, verdict in verdicts.items()])


def test_debaters_who_agree_have_alpha_and_kappa_one(made: Any) -> None:
    rows = [panel(made, f"s{at}", a=said, b=said) for at, said in enumerate(["first", "second", "tie"] * 3)]
    alpha, kappas = agreement(made, rows, "judges")["verdict"]
    assert alpha is not None
    assert alpha.value == pytest.approx(1.0)
    assert kappas == [pytest.approx(1.0)]


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
    alpha, kappas = agreement(made, rows, "judges")["verdict"]
    a, b = ["first", "second", "tie", "first"], ["first", "first", "tie", "first"]
    assert kappas == [pytest.approx(cohen_kappa(a, b))]
    assert alpha is not None
    assert alpha.n == 4, "each order is a thing of its own"


def test_direct_scores_agree_on_each_aspect_by_themselves(made: Any) -> None:
    def scored(name: str, a: float, b: float) -> Any:
        ballots = [made.ballot(None, "a", clear=a, deep=a), made.ballot(None, "b", clear=a, deep=b)]
        return made.row(name, None, ballots)

    rows = [scored("s1", 1, 5), scored("s2", 5, 1), scored("s3", 2, 4)]
    found = agreement(made, rows, "judges")
    clear, deep = found["clear"][0], found["deep"][0]
    assert clear is not None
    assert clear.value == pytest.approx(1.0)
    assert deep is not None
    assert deep.value < 0


def test_one_judge_has_nobody_to_agree_with(made: Any) -> None:
    tally = made.tally([panel(made, "s1", a="first"), panel(made, "s2", a="second")])
    assert tabulate_agreement("Agreement", [("mine", tally)]) is None


def test_verdicts_that_are_all_the_same_leave_agreement_undefined_not_perfect(made: Any) -> None:
    assert agreement(made, [panel(made, "s1", a="first", b="first")], "judges") == {"verdict": (None, [None])}


def test_epochs_are_raters_of_the_same_sample(made: Any) -> None:
    verdicts = [("s1", "first"), ("s2", "second"), ("s3", "tie")]
    rows = [made.row(name, said, [made.ballot(said)], epoch=epoch) for name, said in verdicts for epoch in (1, 2)]
    alpha, kappas = agreement(made, rows, "2 epochs")["verdict"]
    assert alpha is not None
    assert alpha.value == pytest.approx(1.0)
    assert len(kappas) == 1


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
    (alpha, kappas) = agreement(made, rows, "2 epochs")["clear"]
    assert alpha is not None
    assert kappas == []
    assert alpha.value == pytest.approx(1.0), "the means are the same, whatever the judges said"
    table = tabulate_agreement("Agreement", [("mine", made.tally(rows))])
    assert table is not None
    assert [row[2] for row in table.rows] == ["all 2 judges", "all 2 epochs"]


def test_the_table_names_all_raters_and_then_each_two(made: Any) -> None:
    rows = [panel(made, f"s{at}", a=said, b=said, c="tie") for at, said in enumerate(["first", "second", "tie"])]
    table = tabulate_agreement("Agreement", [("mine", made.tally(rows))])
    assert table is not None
    assert [row[2] for row in table.rows] == ["all 3 judges", "a, b", "a, c", "b, c"]
