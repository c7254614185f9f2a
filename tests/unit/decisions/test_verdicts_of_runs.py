"""The verdict on a run: what goes before what, and what is said about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.types import PASS_RATE, Usage
from evalsuite.decisions.comparison import compute_mean_score
from evalsuite.decisions.gates import decide_gates, parse_gate
from evalsuite.decisions.measured import MeasuredBenchmark, estimate_pass_rate
from evalsuite.decisions.verdict import Status, list_failed_samples, make_verdict
from evalsuite.output.reports.write import format_heading
from evalsuite.results.runs import load_run
from evalsuite.results.tally import Row, Tally

if TYPE_CHECKING:
    from evalsuite.core.types import Outcome, Record
    from tests.unit.conftest import Desk


def records(desk: Desk, *, good: int = 8, bad: int = 2, errors: int = 0, **more: Any) -> list[Record]:
    """Cases of which some miss their threshold and some are errors."""
    made = [desk.record(f"g{n}", {"m": 1.0}, **more) for n in range(good)]
    made += [desk.record(f"b{n}", {"m": 0.0}, "failed", **more) for n in range(bad)]
    return made + [desk.record(f"e{n}", {}, "error", **more) for n in range(errors)]


def settings(*gates: str, **more: Any) -> dict[str, Any]:
    return {"gate": list(gates), **more}


@pytest.mark.parametrize(
    ("gates", "stopped", "status", "headline"),
    [
        ([], None, Status.FAILED, "cases failed"),
        (["capitals.m >= 0.8"], None, Status.GOOD, "passed"),
        (["capitals.m >= 0.9"], None, Status.GATE_MISSED, "a gate is missed"),
        (["capitals.m >= 0.9", "capitals.m > 1"], None, Status.GATE_MISSED, "gates are missed"),
        (["capitals.m >= 0.9", "capitals.k > 1"], None, Status.INCOMPLETE, "incomplete: no decision"),
        (["other.m > 1"], None, Status.INCOMPLETE, "incomplete: no decision"),
        (["capitals.m >= 0.8"], "interrupted", Status.INCOMPLETE, "incomplete: no decision"),
    ],
)
def test_gates_and_interruptions_decide_on_a_run(
    desk: Desk, gates: list[str], stopped: str | None, status: Status, headline: str
) -> None:
    run = desk.run(records(desk), settings=settings(*gates), stopped=stopped)
    verdict = make_verdict(run)
    assert (verdict.status, verdict.headline) == (status, headline)


def test_what_is_lacking_goes_before_a_missed_gate_a_missed_gate_before_a_regression_and_that_before_failures(
    desk: Desk,
) -> None:
    better = desk.run(records(desk, good=40, bad=0), "better")
    made = records(desk, good=20, bad=20)
    # The same cases, half of them lost.
    made = [desk.record(f"g{n}", {"m": float(n < 20)}, "passed" if n < 20 else "failed") for n in range(40)]
    made += [desk.record("x", {"m": 0.0}, "failed", benchmark="ungated")]

    def status(*gates: str) -> Status:
        return make_verdict(desk.run(made, settings=settings(*gates)), better).status

    assert status("capitals.m >= 0.5", "capitals.m >= 0.9", "capitals.k > 0") is Status.INCOMPLETE
    assert status("capitals.m >= 0.5", "capitals.m >= 0.9") is Status.GATE_MISSED
    assert status("capitals.m >= 0.5") is Status.REGRESSION
    verdict = make_verdict(desk.run(made, settings=settings("capitals.m >= 0.5")))
    assert verdict.status is Status.FAILED
    assert verdict.reasons == ("ungated, which no gate covers: 1 below threshold among 1 case",)


def test_statuses_are_those_of_the_documentation() -> None:
    assert {status.name: int(status) for status in Status} == {
        "GOOD": 0,
        "FAILED": 1,
        "GATE_MISSED": 10,
        "REGRESSION": 11,
        "INCOMPLETE": 12,
        "DETACHED": 13,
    }


def test_a_run_that_was_killed_decides_nothing(desk: Desk) -> None:
    folder = desk.folder(records(desk), settings=settings("capitals.m >= 0.8"))
    info = folder.info()
    del info["seconds"], info["version"]
    folder.write_info(info)
    verdict = make_verdict(load_run(folder))
    assert verdict.status is Status.INCOMPLETE
    assert verdict.reasons == ("the run was stopped: it was killed, or it still goes on",)


def test_reasons_stand_in_the_order_of_their_weight(desk: Desk) -> None:
    gates = ("capitals.m >= 0.9", "capitals.k > 0", "other.m > 0")
    made = [*records(desk), desk.record("x", {}, "error", benchmark="ungated")]
    verdict = make_verdict(desk.run(made, settings=settings(*gates), stopped="interrupted"))
    assert verdict.reasons == (
        "the run was stopped: interrupted",
        "gate capitals.k > 0: no such metric; available: m, pass_rate",
        "gate other.m > 0: no case of other ran; available: capitals, ungated",
        "gate capitals.m >= 0.9 is missed",
        "ungated, which no gate covers: 1 error among 1 case",
    )
    assert verdict.counts == {"passed": 8, "failed": 2, "error": 1}


def test_errors_beyond_the_share_that_is_put_up_with_leave_no_decision(desk: Desk) -> None:
    made = records(desk, bad=0, errors=1)
    strict = make_verdict(desk.run(made, settings=settings("capitals.m >= 0.8")))
    assert strict.status is Status.INCOMPLETE
    lenient = settings("capitals.m >= 0.8", max_error_share=0.2)
    assert make_verdict(desk.run(made, settings=lenient)).status is Status.GOOD


def test_a_shard_decides_no_gate_and_says_when_they_are(desk: Desk) -> None:
    made = records(desk)
    verdict = make_verdict(desk.run(made, settings=settings("capitals.m >= 0.9", shard="1/2")))
    assert verdict.status is Status.GOOD
    assert not verdict.decisions
    assert verdict.remarks == ["shard 1/2: gates are decided when `evalsuite runs merge` has joined all shards"]


def test_a_gate_is_not_decided_on_one_shard_alone(desk: Desk) -> None:
    given = settings("capitals.m >= 0.5", shard="1/2", decides=True)
    verdict = make_verdict(desk.run(records(desk), settings=given))
    assert verdict.status is Status.INCOMPLETE
    assert verdict.reasons[0].startswith("shard 1/2 alone decides nothing")


def test_a_run_of_chosen_cases_leaves_gates_about_others_undecided(desk: Desk) -> None:
    given = settings("capitals.m >= 0.8", "other.m > 0")
    verdict = make_verdict(desk.run(records(desk), settings=given, narrowed=True))
    assert verdict.status is Status.GOOD
    assert [one.gate.text for one in verdict.decisions] == ["capitals.m >= 0.8"]
    assert verdict.remarks == [
        "a gate is decided where its benchmark is collected, which leaves undecided: other.m > 0"
    ]


@pytest.mark.parametrize(("elsewhere", "status"), [(["other"], Status.GOOD), ([], Status.INCOMPLETE)])
@pytest.mark.parametrize("narrowed", [True, False])
def test_a_gate_without_cases_is_left_out_only_if_another_part_of_the_project_declares_its_benchmark(
    desk: Desk, elsewhere: list[str], status: Status, *, narrowed: bool
) -> None:
    given = settings("capitals.m >= 0.8", "other.m > 0")
    run = desk.run(records(desk), settings=given, narrowed=narrowed, elsewhere=elsewhere)
    assert make_verdict(run).status is status


def test_a_gate_on_a_tag_of_cases_that_were_not_chosen_is_left_undecided(desk: Desk) -> None:
    chosen = [desk.record("fr", {"m": 1.0}, tags={"region": "eu"})]
    given = {"gate": ["capitals[eu].m > 0", "capitals[asia].m > 0"]}
    verdict = make_verdict(desk.run(chosen, settings=given, narrowed=True))
    assert [one.gate.text for one in verdict.decisions] == ["capitals[eu].m > 0"]
    assert verdict.remarks == [
        "a gate is decided where its benchmark is collected, which leaves undecided: capitals[asia].m > 0"
    ]


@pytest.mark.parametrize(("partial", "status"), [(True, Status.GOOD), (False, Status.INCOMPLETE)])
def test_a_run_whose_gates_are_all_left_undecided_is_good_only_with_partial(
    desk: Desk, status: Status, *, partial: bool
) -> None:
    given = settings("other.misspelt > 0", partial=partial)
    verdict = make_verdict(
        desk.run([desk.record("fr", {"m": 1.0})], settings=given, narrowed=True, elsewhere=["other"])
    )
    assert verdict.status is status
    assert any("no gate covers a case of this run" in reason for reason in verdict.reasons) is not partial


@pytest.mark.parametrize(("said", "status"), [("met", Status.GOOD), ("missed", Status.GATE_MISSED)])
def test_what_was_decided_early_stands(desk: Desk, said: str, status: Status) -> None:
    # The plain means say the opposite of what the sequences said.
    gate = "capitals.m >= 0.9" if said == "met" else "capitals.m >= 0.7"
    early = {"cases": 10, "planned": 40, "gates": [{"gate": gate, "verdict": said}]}
    verdict = make_verdict(desk.run(records(desk), settings=settings(gate), early=early))
    assert verdict.status is status
    assert verdict.decisions[0].reason == "decided early"
    assert verdict.remarks == ["stopped early, as every gate was decided: 10 of 40 cases ran, 75% of them were saved"]


def test_an_early_decision_does_not_make_up_for_missing_data(desk: Desk) -> None:
    early = {"cases": 10, "planned": 40, "gates": [{"gate": "capitals.k > 0", "verdict": "met"}]}
    verdict = make_verdict(desk.run(records(desk), settings=settings("capitals.k > 0"), early=early))
    assert verdict.status is Status.INCOMPLETE


@pytest.mark.parametrize("excuse", ["gate", "epochs", "xfail"])
def test_an_excused_failure_does_not_fail_the_run(desk: Desk, excuse: str) -> None:
    run = desk.run([desk.record("1", {"m": 0.0}, "failed", excused=excuse), desk.record("2", {"m": 1.0})])
    assert make_verdict(run).status is Status.GOOD


def epochs(*outcomes: Outcome, needed: int, sample: str = "s") -> list[Row]:
    return [
        Row(f"{sample}{number}", sample, number, outcome, {}, {}, {"at_least": needed})
        for number, outcome in enumerate(outcomes)
    ]


def test_a_sample_holds_if_enough_of_its_epochs_do_and_errors_leave_it_open() -> None:
    rows = [
        *epochs("passed", "passed", "failed", needed=2, sample="enough"),
        *epochs("passed", "failed", "failed", needed=2, sample="short"),
        *epochs("passed", "error", "skipped", needed=2, sample="unsure"),
        Row("other", "other", 1, "failed", {}, {}),
    ]
    assert list_failed_samples(Tally.of(rows)) == ["short"]


def test_a_sample_whose_skipped_epochs_could_decide_it_has_no_pass_rate_and_does_not_fail() -> None:
    rows = Tally.of(
        [
            *epochs("skipped", "skipped", "skipped", needed=2, sample="left out"),
            *epochs("passed", "failed", "skipped", needed=2, sample="open"),
            *epochs("passed", "passed", "skipped", needed=2, sample="held"),
        ]
    )
    assert list_failed_samples(rows) == []
    found = estimate_pass_rate(rows)
    assert found is not None
    assert (found.value, found.n) == (1.0, 1)
    gate = decide_gates([parse_gate("s.pass_rate >= 0.5")], {"s": MeasuredBenchmark(rows, {})})[0]
    assert gate.verdict == "no data"
    assert "4 of 9 cases scored, 5 skipped" in gate.reason


def test_an_epoch_whose_process_died_leaves_its_repeated_sample_undecided() -> None:
    died = Row("s-", "s", 1, "error", {}, {})  # The record of a crash has no facts.
    rows = Tally.of([died, *epochs("failed", "passed", needed=2)])
    assert list_failed_samples(rows) == []
    assert estimate_pass_rate(rows) is None
    assert compute_mean_score(rows.rows, PASS_RATE) is None
    filled = MeasuredBenchmark(rows, {}).fill_missing_scores(PASS_RATE, rows, 1.0)
    assert estimate_pass_rate(filled) == estimate_pass_rate(Tally.of(epochs("passed", needed=1)))


def test_a_sample_that_holds_in_too_few_epochs_fails_the_run_by_name(desk: Desk) -> None:
    made = [desk.record("s", {"m": 0.0}, "failed", epoch=n, excused="epochs", facts={"at_least": 1}) for n in (1, 2)]
    verdict = make_verdict(desk.run(made))
    assert verdict.status is Status.FAILED
    assert verdict.reasons == (
        "capitals, which no gate covers: 1 sample with too few epochs that hold (s) among 2 cases",
    )


@pytest.mark.parametrize(
    ("gate", "status"), [("capitals.m >= 0", Status.FAILED), ("capitals.pass_rate >= 0", Status.GOOD)]
)
def test_too_few_epochs_fail_the_run_under_a_gate_too_unless_it_is_about_them(
    desk: Desk, gate: str, status: Status
) -> None:
    made = [desk.record("s", {"m": 1.0}, "failed", epoch=n, excused="gate", facts={"at_least": 1}) for n in (1, 2)]
    assert make_verdict(desk.run(made, settings={"gate": [gate]})).status is status


def test_the_pass_rate_counts_samples_where_some_of_their_epochs_may_fail(desk: Desk) -> None:
    made = [
        desk.record(f"s{sample}", {}, "passed" if epoch <= right else "failed", epoch=epoch, facts={"at_least": 2})
        for sample, right in enumerate((3, 2, 1, 0))
        for epoch in (1, 2, 3)
    ]
    found = estimate_pass_rate(desk.run(made).benchmarks["capitals"].tally)
    assert found is not None
    assert (found.value, found.n) == (0.5, 4)


def test_what_could_not_be_compared_leaves_the_run_incomplete(desk: Desk) -> None:
    baseline = desk.run([desk.record("1", {"m": 1.0}, benchmark="rivers")], "base")
    run = desk.run([desk.record(f"{n}", {"m": 1.0}) for n in range(9)], settings={"gate": ["capitals.m >= 0"]})
    verdict = make_verdict(run, baseline)
    assert verdict.status is Status.INCOMPLETE
    assert "capitals.m is not compared with base" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("more", "status", "headline"),
    [
        ([], Status.GOOD, "passed"),
        (["* no worse than baseline"], Status.INCOMPLETE, "incomplete: no decision"),
        (["capitals.* no worse than base"], Status.INCOMPLETE, "incomplete: no decision"),
    ],
)
def test_what_few_cases_leave_undecided_passes_unless_a_gate_wants_it_shown(
    desk: Desk, more: list[str], status: Status, headline: str
) -> None:
    baseline = desk.run([desk.record(f"{n}", {"m": 1.0}) for n in range(5)], "base")
    settings = {"gate": ["capitals.m >= 0", *more], "baseline": ["base"]}
    run = desk.run([desk.record(f"{n}", {"m": 0.0}) for n in range(5)], settings=settings)
    verdict = make_verdict(run, baseline)
    assert verdict.status is status
    shortage = "too few cases to see a loss of 0.02 (they see none): 650 needed"
    assert verdict.headline == (headline if more else f"{headline}; {shortage}")
    assert [each.reason for each in verdict.decisions if each.gate.than] == [shortage] * len(more)
    assert any("undecided against base" in line for line in verdict.remarks) is not bool(more)
    # The report's table of gates states it once more.
    assert format_heading(verdict, None).count(shortage) == (not more)


@pytest.mark.parametrize("gate", ["* no worse than base by 0.5", "capitals.* no worse than base by 0.5"])
def test_a_gate_on_all_metrics_names_the_loss_as_a_share_of_their_ranges(desk: Desk, gate: str) -> None:
    before = [desk.record(f"{n}", {"m": 1.0, "unused": 0.0}) for n in range(60)]
    after = [desk.record(f"{n}", {"m": float(n > 3), "unused": 0.0}) for n in range(60)]
    run = desk.run(after, settings={"gate": ["capitals.m >= 0", gate], "baseline": ["base"]})
    verdict = make_verdict(run, desk.run(before, "base"))
    assert [(each.subject, each.verdict) for each in verdict.decisions if each.gate.than] == [("capitals.m", "met")]
    assert verdict.status is Status.GOOD


@pytest.mark.parametrize(
    ("count", "lost", "won", "status"), [(100, 2, 1, Status.GOOD), (1000, 19, 9, Status.REGRESSION)]
)
def test_a_comparison_that_enough_cases_leave_undecided_is_not_green(
    desk: Desk, count: int, lost: int, won: int, status: Status
) -> None:
    before = [desk.record(f"{n}", {"m": float(n >= won)}) for n in range(count)]
    after = [desk.record(f"{n}", {"m": float(n < count - lost)}) for n in range(count)]
    verdict = make_verdict(desk.run(after, settings={"gate": ["capitals.m >= 0"]}), desk.run(before, "base"))
    assert verdict.status is status
    if status is Status.GOOD:
        assert re.search(r"too few cases to see a loss of 0\.02 \(they see 0\..*\): \S+ needed", verdict.headline)
    else:
        assert verdict.headline == "undecided against the baseline, with enough cases to decide"
        assert not any("undecided against" in line for line in verdict.remarks)


@pytest.mark.parametrize(
    ("metric", "status"), [("cost", Status.INCOMPLETE), ("total_cost", Status.INCOMPLETE), ("judge_cost", Status.GOOD)]
)
def test_a_gate_on_costs_has_no_data_where_no_price_is_known(desk: Desk, metric: str, status: Status) -> None:
    unpriced = records(desk, good=1, bad=0, usage=Usage(1, 10, 5, unpriced=1))
    run = desk.run([*unpriced, *records(desk, good=0)], settings=settings(f"capitals.{metric} <= 0.5"))
    verdict = make_verdict(run)
    assert verdict.status is status
    assert any("no price of 1 of 3 calls is known" in line for line in verdict.reasons) == bool(status)


def test_a_gate_on_tokens_has_no_data_where_calls_count_none(desk: Desk) -> None:
    run = desk.run(records(desk, good=3, bad=0, usage=Usage(1, 0, 0)), settings=settings("capitals.tokens <= 9"))
    verdict = make_verdict(run)
    assert verdict.status is Status.INCOMPLETE
    assert "no tokens were counted in 3 of 3 calls" in verdict.reasons[0]
