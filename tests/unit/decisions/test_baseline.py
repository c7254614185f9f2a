"""A run against its baseline: which cases are paired, which metrics are compared, what is shown."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite import stats
from evalsuite.core.types import SHARE
from evalsuite.decisions.baseline import compare_to_baselines
from evalsuite.decisions.comparison import BaselineComparison, ComparedMetric, ComparisonRules, list_compared_metrics
from evalsuite.decisions.early_stops import EarlyDecider
from evalsuite.decisions.gates import parse_gate
from evalsuite.decisions.verdict import Status, make_verdict
from evalsuite.output.reports.markdown import render_sections
from evalsuite.output.reports.report import make_baseline_section
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.types import Outcome, Record
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Tally
    from tests.unit.conftest import Desk


def scored(desk: Desk, values: Sequence[float], name: str = "m", **more: Any) -> list[Record]:
    return [desk.record(f"{n:03}", {name: float(value)}, **more) for n, value in enumerate(values)]


SCALE = {"capitals": {name: {"range": [0, 1], "better": "higher"} for name in ("m", "k")}}


class Pair:
    """Two runs, compared; their metrics lie in [0, 1] unless declared otherwise."""

    def __init__(
        self, desk: Desk, before: list[Record], after: list[Record], name: str = "", metrics: Any = None, **info: Any
    ) -> None:
        declared = SCALE if metrics is None else metrics
        self.baseline = desk.run(before, f"{name}before", metrics=declared)
        self.run = desk.run(after, f"{name}after", metrics=declared, **info)

    def against(self, *gates: str, margin: float = 0.02, **rules: Any) -> BaselineComparison:
        given = ComparisonRules(margin, **{"min_paired": 0.5, **rules})
        return compare_to_baselines([self.baseline], self.run, [parse_gate(gate) for gate in gates], given)[0]


def test_shares_are_compared_case_by_case_by_mcnemars_test(desk: Desk) -> None:
    # 10 lost, 2 won, 88 alike.
    before, after = [1] * 60 + [0] * 40, [1] * 50 + [0] * 10 + [1] * 2 + [0] * 38
    against = Pair(desk, scored(desk, before), scored(desk, after)).against("capitals.m >= 0")
    ((subject, one, verdict),) = against.found
    assert str(subject) == "capitals.m"
    assert one == stats.compare_paired(before, after, margin=0.02)
    assert one.pvalue == stats.mcnemar(before, after)
    assert (one.n, one.baseline, one.candidate, one.difference) == (100, 0.6, 0.52, -0.08)
    assert verdict == "worse"
    assert against.list_regressions() == [f"capitals.m is worse than in before: 0.52 after 0.6 (p = {one.pvalue:.2g})"]


def test_the_pass_rate_of_repeated_samples_is_compared_by_samples_as_gates_read_it(desk: Desk) -> None:
    def epochs(passed: Sequence[int]) -> list[Record]:
        return [
            desk.record(f"{n:03}", {}, "passed" if epoch <= held else "failed", epoch=epoch, facts={"at_least": 3})
            for n, held in enumerate(passed)
            for epoch in range(1, 5)
        ]

    # Three of four cases pass in both runs, but afterwards every other sample misses its three of four.
    pair = Pair(desk, epochs([3] * 40), epochs([4, 2] * 20))
    ((_, one, verdict),) = pair.against("capitals.pass_rate no worse than before by 0.05").found
    assert (one.n, one.baseline, one.candidate, verdict) == (40, 1.0, 0.5, "worse")
    # First epochs decide nothing early, whatever the margin.
    gate = parse_gate("capitals.pass_rate no worse than before by 0.9")
    early = EarlyDecider([gate], [pair.baseline], ComparisonRules(0.9))
    for row in pair.run.all_rows():
        early.add_case("capitals", row)
    assert [each.verdict for each in early.comparisons] == ["open"]


def test_a_repeated_sample_that_was_skipped_has_no_pass_rate_to_compare(desk: Desk) -> None:
    def epochs(outcome: Outcome) -> list[Record]:
        names = [f"{n:03}" for n in range(20)]
        return [
            desk.record(name, {}, outcome if name < "001" else "passed", epoch=epoch, facts={"at_least": 2})
            for name in names
            for epoch in (1, 2, 3)
        ]

    pair = Pair(desk, epochs("skipped"), epochs("passed"))
    ((_, one, _),) = pair.against("capitals.pass_rate no worse than before by 0.05").found
    assert (one.n, one.baseline, one.candidate) == (19, 1.0, 1.0)


def test_other_scores_are_compared_by_the_paired_t_test(desk: Desk) -> None:
    before = [0.1 + n % 7 / 10 for n in range(40)]
    after = [value + 0.01 * (n % 3) for n, value in enumerate(before)]
    against = Pair(desk, scored(desk, before), scored(desk, after)).against("capitals.m >= 0", margin=0.2)
    ((_, one, verdict),) = against.found
    assert one == stats.compare_paired(before, after, margin=0.2)
    assert one.method == "paired t test"
    plain = stats.paired_difference(before, after)
    assert (one.difference, one.low, one.high) == (plain.difference, plain.low, plain.high)
    assert verdict == "no worse"
    assert not against.list_regressions()


def test_where_less_is_better_a_rise_is_a_loss(desk: Desk) -> None:
    pair = Pair(desk, scored(desk, [0] * 100), scored(desk, [1] * 20 + [0] * 80))
    assert [verdict for *_, verdict in pair.against("capitals.m <= 1").found] == ["worse"]
    assert [verdict for *_, verdict in pair.against("capitals.m >= 0").found] == ["no worse"]
    assert pair.against("capitals.m <= 1").flips[0].loss == 1.0
    assert pair.against("capitals.m >= 0").flips[0].loss == -1.0


def test_the_epochs_of_a_sample_are_averaged_whatever_their_number(desk: Desk) -> None:
    before = [desk.record(f"{n}", {"m": float(n % 2)}) for n in range(40)]
    after = [desk.record(f"{n}", {"m": float((n + epoch) % 2)}, epoch=epoch) for n in range(40) for epoch in (1, 2)]
    ((_, one, _),) = Pair(desk, before, after).against("capitals.m >= 0").found
    assert (one.n, one.baseline, one.candidate) == (40, 0.5, 0.5)


def test_questions_are_paired_whatever_the_file_and_the_folder(desk: Desk) -> None:
    before = scored(desk, [1, 0, 1])
    after = [replace(one, case=f"elsewhere/test_other.py::test[{one.sample}]") for one in before]
    ((_, one, _),) = Pair(desk, before, after).against("capitals.m >= 0").found
    assert one.n == 3


def test_a_second_mode_leaves_the_first_ones_pairs_as_they_are(desk: Desk) -> None:
    before = [desk.record(f"{n}", {"m": 1.0}, tags={"mode": "single"}) for n in range(9)]
    after = [
        desk.record(f"{n}-{mode}", {"m": float(mode == "single")}, tags={"mode": mode})
        for n in range(9)
        for mode in ("single", "panel")
    ]
    found = Pair(desk, before, after).against("capitals[single].m >= 0").found
    assert [(one.n, one.candidate) for _, one, _ in found] == [(9, 1.0)]


def test_other_questions_under_the_same_names_are_not_compared(desk: Desk) -> None:
    before = scored(desk, [1] * 10, fingerprints={"input": "a", "target": "b", "prompt": "c"})
    after = scored(desk, [0] * 10, fingerprints={"input": "x", "target": "b", "prompt": "d"})
    against = Pair(desk, before, after).against("capitals.m >= 0")
    assert not against.found
    (reason,) = against.list_incomparable_metrics()
    assert "10 have another input or target than in before" in reason
    assert against.remarks == ["capitals: since before, of 10 questions have changed: input or target of 10 (left out)"]


@pytest.mark.parametrize("changed", ["scorers", "prompt", "params"])
def test_other_scorers_prompts_or_parameters_make_runs_incomparable_unless_accepted(desk: Desk, changed: str) -> None:
    same = {"input": "a", "scorers": "s", "prompt": "c", "params": "p", "judge": "j"}
    before = scored(desk, [1] * 10, fingerprints=same)
    after = scored(desk, [1] * 10, fingerprints={**same, changed: "another", "judge": "k"})
    pair = Pair(desk, before, after)
    against = pair.against("capitals.m >= 0")
    assert not against.found
    (reason,) = against.list_incomparable_metrics()
    assert f"{changed} of 10 of 10 questions have changed" in reason
    assert f"evalsuite_accept_changes={changed}" in reason
    accepted = pair.against("capitals.m >= 0", accepted=frozenset({changed}))
    assert len(accepted.found) == 1
    assert accepted.remarks == [f"capitals: since before, of 10 questions have changed: {changed} of 10, judge of 10"]


def test_too_few_common_questions_are_no_comparison(desk: Desk) -> None:
    pair = Pair(desk, scored(desk, [1] * 20), scored(desk, [1] * 10))
    assert pair.against("capitals.m > 0", min_paired=0.5).found
    (reason,) = pair.against("capitals.m > 0", min_paired=0.9).list_incomparable_metrics()
    assert "10 of 20 questions are the same in both runs, fewer than evalsuite_min_paired 0.9" in reason
    # A run that was asked for ten cases has not lost the others.
    limited = Pair(desk, scored(desk, [1] * 20), scored(desk, [1] * 10), "limited", settings={"limit": 10})
    assert limited.against("capitals.m > 0", min_paired=0.9).found


def test_a_metric_without_a_range_needs_a_margin_of_its_own(desk: Desk) -> None:
    # One case that scores 60 must not hide a fall from 1.03 to 0.67.
    before, after = [1.03] * 40 + [60.0], [0.67] * 40 + [60.0]
    pair = Pair(desk, scored(desk, before), scored(desk, after), metrics={})
    (reason,) = pair.against("capitals.m > 0").list_incomparable_metrics()
    assert "gate capitals.m no worse than baseline by 0.05" in reason
    for margins in ({"m": 0.1}, {"capitals.m": 0.1}):
        ((_, one, verdict),) = pair.against("capitals.m > 0", margins=margins).found
        assert (verdict, round(one.difference, 2)) == ("worse", -0.35)


def test_scores_outside_of_the_declared_range_are_not_compared(desk: Desk) -> None:
    (reason,) = (
        Pair(desk, scored(desk, [0.5, 1.5]), scored(desk, [0.5, 1]))
        .against("capitals.m > 0")
        .list_incomparable_metrics()
    )
    assert "m is declared to lie in [0, 1], and 1.5 does not" in reason


def test_without_gates_the_declared_direction_counts(desk: Desk) -> None:
    toxic = {"capitals": {"m": {"range": [0, 1], "better": "lower"}}}
    pair = Pair(desk, scored(desk, [0.5] * 40), scored(desk, [0.0] * 40), metrics=toxic)
    assert not pair.against().list_regressions()
    turned = Pair(desk, scored(desk, [0.0] * 40), scored(desk, [0.5] * 40), "turned", metrics=toxic)
    assert turned.against().list_regressions()


def test_errors_among_the_pairs_are_told(desk: Desk) -> None:
    before = [*scored(desk, [1] * 18), *(desk.record(f"e{n}", {}, "error") for n in range(2))]
    after = [*scored(desk, [1] * 18), *(desk.record(f"e{n}", {"m": 0.0}) for n in range(2))]
    against = Pair(desk, before, after).against("capitals.m > 0")
    assert against.remarks == ["capitals.m: questions left out because of errors: 2 in before"]


def test_a_derived_metric_is_compared_by_leaving_out_clusters(desk: Desk) -> None:
    def spread(tally: Tally) -> Estimate | None:
        values = tally.values("m")
        return Estimate(max(0.0, 1 - 4 * statistics.pvariance(values))) if len(values) > 1 else None

    desk.declare("capitals", derived={"evenness": spread}, metrics={"evenness": SHARE})
    before = scored(desk, [0.4, 0.6, 0.5] * 40)
    after = scored(desk, [0.0, 1.0, 0.5] * 40)
    ((subject, one, verdict),) = Pair(desk, before, after).against("capitals.evenness > 0").found
    assert (str(subject), verdict) == ("capitals.evenness", "worse")
    assert one.method.startswith("jackknife")
    same = Pair(desk, before, before, "same").against("capitals.evenness > 0", margin=0.2).found
    assert [verdict for *_, verdict in same] == ["no worse"]


def test_a_known_improvement_and_a_hopeless_sample_are_told_apart(desk: Desk) -> None:
    few = Pair(desk, scored(desk, [1, 0, 1]), scored(desk, [1, 0, 0])).against("capitals.m >= 0")
    assert [verdict for *_, verdict in few.found] == ["undecided"]
    assert few.list_undecided_metrics()[0].startswith(
        "capitals.m is undecided against before: 0.3333 after 0.6667; 3 cases could"
    )


def test_metrics_share_the_error(desk: Desk) -> None:
    def both(m: Sequence[float], k: Sequence[float]) -> list[Record]:
        return [
            desk.record(f"{n:03}", {"m": float(a), "k": float(b)}) for n, (a, b) in enumerate(zip(m, k, strict=True))
        ]

    # Six of six changed cases lost: p = 2 * 0.5^6 = 0.031, which is not enough where there are two metrics.
    lost = [0] * 6 + [1] * 30
    other = [1] * 30 + [0, 0, 0, 1, 1, 1]
    pair = Pair(desk, both([1] * 36, [1] * 33 + [0] * 3), both(lost, other))
    assert [verdict for *_, verdict in pair.against("capitals.m >= 0", margin=0.001).found] == ["worse"]
    alone = pair.against("capitals.m >= 0", "capitals.k >= 0", margin=0.001)
    assert [verdict for *_, verdict in alone.found] == ["undecided", "undecided"]


def test_without_gates_the_metric_that_stands_for_each_benchmark_is_compared(desk: Desk) -> None:
    made = [desk.record("1", {"k": 1.0, "m": 0.5}), desk.record("2", {"k": 0.0, "m": 0.5})]
    pair = Pair(desk, made, made)
    assert [str(subject) for subject, *_ in pair.against().found] == ["capitals.k"]
    desk.declare("capitals", primary="m")
    pair = Pair(desk, made, made, "chosen")
    assert [str(subject) for subject, *_ in pair.against().found] == ["capitals.m"]


def names(run: Run, *gates: str) -> list[str]:
    return [str(subject) for subject in list_compared_metrics(run, map(parse_gate, gates))]


def test_each_gated_metric_is_compared_once_in_the_order_of_the_gates(desk: Desk) -> None:
    made = [desk.record("1", {"k": 1.0, "m": 0.5}, tags={"region": "eu", "lang": "eu"})]
    run = desk.run([*made, desk.record("1", {"m": 1.0}, benchmark="rivers")])
    gates = ("capitals.m >= 0.5", "capitals.m >= 0.5 @95%", "capitals[eu].k > 0", "capitals.* > 0")
    assert names(run, *gates) == ["capitals.m", "capitals[eu].k", "capitals.k"]
    assert names(run, "*.m > 0") == ["capitals.m", "rivers.m"]
    # One value, two tags: two sets of cases.
    assert names(run, "capitals[region=eu].m > 0", "capitals[lang=eu].m > 0") == [
        "capitals[region=eu].m",
        "capitals[lang=eu].m",
    ]


def test_a_gate_about_some_cases_compares_those(desk: Desk) -> None:
    def made(low: float) -> list[Record]:
        return [
            desk.record(f"{n}", {"m": low if n % 2 else 1.0}, tags={"half": "odd" if n % 2 else "even"})
            for n in range(60)
        ]

    pair = Pair(desk, made(1.0), made(0.0))
    against = pair.against("capitals[odd].m > 0", "capitals[half=even].m > 0", margin=0.2)
    assert {str(subject): verdict for subject, _, verdict in against.found} == {
        "capitals[odd].m": "worse",
        "capitals[half=even].m": "no worse",
    }


def test_the_pass_rate_can_be_compared_too(desk: Desk) -> None:
    def made(passing: int, *more: Outcome) -> list[Record]:
        outcomes: list[Outcome] = [*["passed"] * passing, *["failed"] * (40 - passing), *more]  # type: ignore[list-item] # all are outcomes
        return [desk.record(f"{n:02}", {"m": 1.0}, outcome) for n, outcome in enumerate(outcomes)]

    against = Pair(desk, made(40, "passed", "error"), made(20, "error", "passed")).against(
        "capitals.pass_rate > 0", margin=0.03
    )
    ((_, one, verdict),) = against.found
    assert (one.n, one.baseline, one.candidate, verdict) == (40, 1.0, 0.5, "worse")


def test_cases_without_a_score_on_either_side_are_no_pairs(desk: Desk) -> None:
    before = [*scored(desk, [1, 1, 1, 1]), desk.record("old", {"m": 1.0})]
    after = [*scored(desk, [1, 1, 1]), desk.record("003", {"m": 0.0}, "error"), desk.record("new", {"m": 0.0})]
    against = Pair(desk, before, after).against("capitals.m > 0", margin=0.3)
    ((_, one, _),) = against.found
    assert (one.n, one.baseline, one.candidate) == (3, 1.0, 1.0)
    assert {side: [case[-6:] for case in cases] for side, cases in against.left_out.items()} == {
        "only in the baseline": ["old-1]"],
        "only in this run": ["new-1]"],
    }


@pytest.mark.parametrize(("lost", "compared"), [(2, True), (3, False)])
def test_lost_scores_that_may_hide_a_loss_that_matters_leave_nothing_compared(
    desk: Desk, lost: int, *, compared: bool
) -> None:
    # Each lost score may have fallen by the whole range: 2 of 100 hide at most the margin of 0.02, 3 may hide more.
    after = [*scored(desk, [1] * (100 - lost)), *(desk.record(f"{n:03}", {}) for n in range(100 - lost, 100))]
    against = Pair(desk, scored(desk, [1] * 100), after).against("capitals.m > 0")
    assert bool(against.found) == compared
    assert bool(against.not_compared) != compared


def test_a_benchmark_that_this_run_did_not_touch_is_no_loss(desk: Desk) -> None:
    before = [*scored(desk, [1, 1]), *scored(desk, [1, 1], benchmark="rivers")]
    against = Pair(desk, before, scored(desk, [1, 1])).against("capitals.m > 0")
    assert against.left_out == {"only in the baseline": [], "only in this run": []}


@pytest.mark.parametrize("gate", ["capitals.kappa > 0", "capitals[nowhere].m > 0", "capitals.missing > 0"])
def test_what_no_two_cases_have_is_said_not_to_be_compared(desk: Desk, gate: str) -> None:
    against = Pair(desk, scored(desk, [1, 1]), scored(desk, [1, 1])).against(gate)
    assert not against.found
    assert list(map(str, against.not_compared)) == [gate.removesuffix(" > 0")]
    (line,) = against.list_incomparable_metrics()
    assert line.startswith(f"{gate.removesuffix(' > 0')} is not compared with before: ")
    assert "Not compared: " in render_sections([make_baseline_section(against)], ())


def test_a_baseline_without_the_benchmark_has_nothing_to_compare(desk: Desk) -> None:
    against = Pair(desk, scored(desk, [1, 1], benchmark="rivers"), scored(desk, [1, 1])).against()
    (line,) = against.list_incomparable_metrics()
    assert line.startswith("capitals.m is not compared with before: before holds no such case (it holds rivers)")


def test_the_margin_is_a_share_of_the_declared_range(desk: Desk) -> None:
    before, after = [10.0, 1.0, 5.0] * 10, [10.0, 1.0, 4.5] * 10
    marks = {"capitals": {"m": {"range": [1, 10], "better": "higher"}}}
    pair = Pair(desk, scored(desk, before), scored(desk, after), metrics=marks)
    ((_, one, _),) = pair.against("capitals.m > 0", margin=0.1).found
    assert one == stats.compare_paired(before, after, margin=0.9, scale=9.0)


def test_flips_are_shown_the_greatest_losses_first(desk: Desk) -> None:
    pair = Pair(desk, scored(desk, [1, 0.5, 0.2, 0.9, 1]), scored(desk, [0.9, 0.5, 0.9, 0.1, 0.9]))
    against = pair.against("capitals.m > 0")
    assert [(flip.case[-6:-3], flip.before, flip.after) for flip in against.flips] == [
        ("003", 0.9, 0.1),
        ("000", 1, 0.9),
        ("004", 1, 0.9),
        ("002", 0.2, 0.9),
    ]


def test_the_section_shows_verdicts_numbers_and_the_first_of_many_flips(desk: Desk) -> None:
    against = Pair(desk, scored(desk, [1] * 60), scored(desk, [0] * 30 + [1] * 30)).against("capitals.m > 0")
    text = render_sections([make_baseline_section(against)], ())
    assert text.startswith("## Against before")
    assert "❌ worse" in text
    assert "1.0000" in text
    assert "0.5000" in text
    assert text.count("::test\\_capitals") == 12
    assert "18 more changed." in text


def test_a_subject_names_its_cases() -> None:
    assert str(ComparedMetric("b", None, None, "m", lower_is_better=False)) == "b.m"
    assert str(ComparedMetric("b", None, "v", "m", lower_is_better=False)) == "b[v].m"
    assert str(ComparedMetric("b", "t", "v", "m", lower_is_better=False)) == "b[t=v].m"


def test_a_slow_fall_is_a_regression_against_the_oldest_of_several_baselines(desk: Desk) -> None:
    old, last, now = (scored(desk, [1.0] * right + [0.0] * (100 - right)) for right in (90, 80, 78))
    runs = [desk.run(records, name) for records, name in ((old, "protected"), (last, "last"), (now, "now"))]
    gates = [parse_gate("capitals.m >= 0")]
    against = compare_to_baselines(runs[:2], runs[2], gates, ComparisonRules())
    assert [each.name for each in against] == ["protected", "last"]
    assert [[verdict for *_, verdict in each.found] for each in against] == [["worse"], ["undecided"]]
    settings = {"gate": ["capitals.m >= 0"], "baseline": ["protected", "last"]}
    verdict = make_verdict(replace(runs[2], info={**runs[2].info, "settings": settings}), *runs[:2])
    assert verdict.status is Status.REGRESSION
    assert [line.partition(" is ")[0] for line in verdict.reasons] == ["capitals.m"]
    assert any("undecided against last" in line for line in verdict.asides)


def test_a_gate_that_names_a_baseline_otherwise_than_the_option_says_so(desk: Desk) -> None:
    old, now = (desk.run(scored(desk, [1.0, 0.0]), name) for name in ("main", "now"))
    settings = {"gate": ["capitals.m no worse than main by 0.1"], "baseline": ["kept/main"]}
    verdict = make_verdict(replace(now, info={**now.info, "settings": settings}), old)
    reason = "main is not among the baselines kept/main: name it as --baseline does"
    assert [decision.reason for decision in verdict.decisions] == [reason]


def test_verdicts_against_several_baselines_are_corrected_together(desk: Desk) -> None:
    # A fall that one comparison shows alone, beside nine with other runs that happen to be no better.
    before, after = scored(desk, [1.0] * 9 + [0.0] * 91), scored(desk, [1.0] * 3 + [0.0] * 97)
    base, run = desk.run(before, "base"), desk.run(after, "now")
    gates = [parse_gate("capitals.m >= 0")]
    alone = compare_to_baselines([base], run, gates, ComparisonRules())[0].found[0]
    assert (alone[1].pvalue < 0.05, alone[2]) == (True, "worse")
    rng = random.Random(4)
    noise = [desk.run(scored(desk, [float(rng.random() < 0.05) for _ in range(100)]), f"n{at}") for at in range(9)]
    among = compare_to_baselines([base, *noise], run, gates, ComparisonRules())
    assert among[0].found[0][2] == "undecided"
