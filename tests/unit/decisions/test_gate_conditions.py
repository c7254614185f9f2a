"""Gates: how conditions are read, and how they are decided."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import SettingsError
from evalsuite.core.types import Metric
from evalsuite.decisions.gates import (
    COMPARISONS,
    Gate,
    GateDecision,
    decide_gates,
    parse_gate,
    replace_metric_name,
    suggest_names,
)
from evalsuite.decisions.measured import MeasuredBenchmark, list_tags
from evalsuite.results.tally import Estimate, Row, Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.core.types import Outcome

word = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
letters = st.characters(exclude_characters="[]=", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"])
label = st.text(letters, min_size=1, max_size=6)
number = st.decimals(-1000, 1000, places=3).map(str)
spaces = st.sampled_from(["", " ", "  "])


conditions = st.fixed_dictionaries(
    {
        "benchmark": word | st.just("*"),
        "tag": st.none() | label,
        "value": st.none() | label,
        "metric": word | st.just("*") | st.just("pass@1") | st.just("h-content"),
        "comparison": st.sampled_from(sorted(COMPARISONS)),
        "threshold": number,
        "confidence": st.none() | st.integers(50, 99) | st.just(97.5),
    }
)


@given(conditions, spaces)
@settings(max_examples=120, deadline=None)
def test_a_condition_is_read_as_it_is_written(parts: dict[str, Any], space: str) -> None:
    tag, value, confidence = parts["tag"], parts["value"], parts["confidence"]
    named = f"{tag}{space}={space}" if tag else ""
    cases = f"[{space}{named}{value}{space}]" if value else ""
    bound = f"{space}@{space}{confidence}{space}%" if confidence else ""
    condition = f"{parts['comparison']}{space}{parts['threshold']}{bound}"
    gate = parse_gate(f"{space}{parts['benchmark']}{cases}.{parts['metric']}{space}{condition}{space}")
    assert (gate.benchmark, gate.metric) == (parts["benchmark"], parts["metric"])
    assert (gate.tag, gate.value) == ((tag, value) if value else (None, None))
    assert (gate.comparison, gate.threshold) == (parts["comparison"], float(parts["threshold"]))
    assert gate.confidence == (None if confidence is None else float(confidence) / 100)
    assert parse_gate(gate.text) == gate


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "a.b", "a.b >=", "a.b 0.5", ".b >= 0.5", "a. >= 0.5", "A.b >= 0.5", "a.b == 0.5",
        "a.b => 0.5", "a.b >= high", "a.b >= 0.5 95%", "a.b >= 0.5 @95", "a[].b >= 0.5", "a[x.b >= 0.5",
        "a[ ].b >= 0.5", "a[ =x].b >= 0.5", "a.b >= 0.5 and a.c >= 0.5", "a.b >= 1e", "a.b >= nan", "a.b no worse main",
        "a.b no worse than", "a.b no worse than x by", "a.b >= 4 h", "a.b >= 0.5 €", "latency p955 <= 4",
    ],
)  # fmt: skip
def test_what_is_no_condition_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(SettingsError, match=r"cannot be read: .*; write benchmark\.metric >= 0\.5"):
        parse_gate(text)


@pytest.mark.parametrize(
    ("text", "column", "wanted"),
    [
        ("quality == 0.5", 9, "'no worse than RUN' is expected, not '=='"),
        ("quality >= high", 12, "a number is expected, not 'high'"),
        ("qa.quality >= 0.5 95%", 19, "the end, or @95% is expected, not '95%'"),
        ("", 1, "a metric is expected, not the end"),
        ("quality no worse than main by much", 31, "a number is expected, not 'much'"),
    ],
)
def test_the_message_names_the_column_of_the_fault(text: str, column: int, wanted: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_gate(text)
    assert f"at column {column} " in str(caught.value)
    assert wanted in str(caught.value)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("cost per case <= $0.01", "*.cost <= 0.01"),
        ("qa.judge_cost <= $ .5", "qa.judge_cost <= 0.5"),
        ("latency p95 <= 4 s", "*.latency_p95 <= 4"),
        ("qa.latency p50 < 250ms", "qa.latency_p50 < 0.25"),
        ("tokens per case <= 300", "*.tokens <= 300"),
        ("qa.accuracy >= 80%", "qa.accuracy >= 0.8"),
        ("qa . accuracy ≥ 0.8 @ 95 %", "qa.accuracy >= 0.8 @95%"),
        ("accuracy ≤ 0.8", "*.accuracy <= 0.8"),
        ("cost per case <= 0.01 $", "*.cost <= 0.01"),
        ("latency p95 <= 4 seconds", "*.latency_p95 <= 4"),
        ("qa.cost per case no worse than main by $0.01", "qa.cost no worse than main by 0.01"),
        ("qa.latency p95 no worse than main by 250 ms", "qa.latency_p95 no worse than main by 0.25"),
    ],
)
def test_a_gate_may_be_written_as_people_write_it(text: str, plain: str) -> None:
    gate = parse_gate(text)
    assert replace(gate, text=plain, bare=False, per_case=False) == parse_gate(plain)
    assert (gate.bare, gate.per_case) == (plain.startswith("*"), "per case" in text)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("qa.quality => 0.8", "qa.quality >= 0.8"),
        ("quality =< 0.8 @95%", "quality <= 0.8 @95%"),
        ("quality is at least 0.8", "quality >= 0.8"),
        ("quality not worse than main by 0.02", "quality no worse than main by 0.02"),
        ("quality no worse then main", "quality no worse than main"),
        ("quality >= 0,8", "quality >= 0.8"),
        ("quality >= 0.8 at 95%", "quality >= 0.8 @95%"),
        ("quality >= 0.8 (95%)", "quality >= 0.8 @95%"),
        ("quality >= 0.8 @95", "quality >= 0.8 @95%"),
    ],
)
def test_a_refusal_suggests_the_nearest_gate_that_can_be_read(text: str, near: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_gate(text)
    assert f"(did you mean '{near}'?)" in str(caught.value)
    assert parse_gate(near).text == near


def test_a_refusal_suggests_nothing_where_nothing_is_near() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_gate("quality is good")
    assert "did you mean" not in str(caught.value)


def test_a_separator_of_thousands_is_not_taken_for_a_decimal_point() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_gate("tokens per case <= 1,000")
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("qa[tail].accuracy >= 80%", "qa[tail].accuracy_other >= 80%"),
        ("tokens per case <= 3", "tokens_other per case <= 3"),
        ("latency p95 <= 4 s", "latency_other p95 <= 4 s"),
    ],
)
def test_a_mistyped_gate_still_reads_as_a_gate(text: str, other: str) -> None:
    assert replace_metric_name(text) == other
    assert "_other" in parse_gate(other).metric


@given(word, st.sampled_from(["main", "reports/base", "v1.2"]), st.floats(0.001, 10), spaces)
@settings(deadline=None)
def test_a_gate_against_a_baseline_is_read_as_it_is_written(metric: str, than: str, loss: float, space: str) -> None:
    gate = parse_gate(f"qa[tail].{metric} no {space}worse than {than} by {loss:.4f}{space}")
    assert (gate.metric, gate.than, gate.threshold) == (metric, than, float(f"{loss:.4f}"))
    assert (gate.benchmark, gate.value, gate.confidence) == ("qa", "tail", None)
    assert parse_gate(gate.text) == gate
    assert math.isnan(parse_gate(f"{metric} no worse than {than}").threshold)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("accuracy <= $3", "dollars belong to a cost"),
        ("accuracy <= 3 s", "seconds belong to a latency"),
        ("accuracy no worse than main by $3", "dollars belong to a cost"),
        ("accuracy <= 3$", "dollars belong to a cost"),
        ("cost per case no worse than main by 5%", "% belongs to a share, and cost is an amount"),
        ("latency p95 <= 80%", "% belongs to a share, and latency_p95 is an amount"),
        ("accuracy no worse than main by 0", "above 0"),
        ("accuracy no worse than main by 0.1 @95%", "one joint confidence"),
    ],
)
def test_units_that_do_not_belong_to_the_metric_are_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_gate(text)


@pytest.mark.parametrize("confidence", ["0", "49.9", "100", "950"])
def test_a_confidence_is_at_least_a_half_and_below_certainty(confidence: str) -> None:
    with pytest.raises(SettingsError, match="a confidence is at least 50% and below 100%"):
        parse_gate(f"a.b >= 0.5 @{confidence}%")


@pytest.mark.parametrize(
    ("condition", "value", "met"),
    [
        (">= 0.5", 0.5, True), (">= 0.5", 0.49, False), ("> 0.5", 0.5, False), ("> 0.5", 0.51, True),
        ("<= 0.5", 0.5, True), ("<= 0.5", 0.51, False), ("< 0.5", 0.5, False), ("< 0.5", 0.49, True),
        (">= -1", -1.0, True), ("< -1", -1.5, True),
    ],
)  # fmt: skip
def test_each_comparison_means_what_it_says(condition: str, value: float, *, met: bool) -> None:
    assert parse_gate(f"a.b {condition}").is_met_by(Estimate(value, value - 0.1, value + 0.1, 9)) is met


def test_with_a_confidence_the_bound_that_could_fail_must_hold() -> None:
    estimate = Estimate(0.5, 0.4, 0.6, 9)
    assert parse_gate("a.b >= 0.4 @95%").is_met_by(estimate)
    assert not parse_gate("a.b >= 0.45 @95%").is_met_by(estimate)
    assert parse_gate("a.b <= 0.6 @95%").is_met_by(estimate)
    assert not parse_gate("a.b <= 0.55 @95%").is_met_by(estimate)
    assert not parse_gate("a.b >= 0 @95%").is_met_by(Estimate(0.5))


def row(number: int, outcome: Outcome = "passed", score: float = 1.0, **tags: str) -> Row:
    return Row(f"c{number}", f"s{number}", 1, outcome, tags, {"m": score})


def one(
    text: str, rows: list[Row], derived: dict[str, Callable[[Tally], Any]] | None = None, share: float = 0.01
) -> GateDecision:
    (decision,) = decide_gates([parse_gate(text)], {"bench": MeasuredBenchmark(Tally.of(rows), derived or {})}, share)
    return decision


ROWS = [row(n, score=float(n < 6), region="eu" if n < 4 else "asia", size="small") for n in range(8)]


@pytest.mark.parametrize(
    ("text", "verdict", "value", "n"),
    [
        ("bench.m >= 0.75", "met", 0.75, 8),
        ("bench.m > 0.75", "missed", 0.75, 8),
        ("bench[eu].m >= 1", "met", 1.0, 4),
        ("bench[asia].m >= 1", "missed", 0.5, 4),
        ("bench[region=asia].m <= 0.5", "met", 0.5, 4),
        ("bench[ region = asia ].m <= 0.5", "met", 0.5, 4),
        ("*[small].m >= 0.75", "met", 0.75, 8),
        ("bench.pass_rate >= 1", "met", 1.0, 8),
        ("bench.m >= 0.5 @95%", "missed", 0.75, 8),
        ("bench.m >= 0.5 @50%", "met", 0.75, 8),
    ],
)
def test_a_gate_looks_at_its_cases_alone(text: str, verdict: str, value: float, n: int) -> None:
    decision = one(text, ROWS)
    assert decision.verdict == verdict
    assert decision.estimate is not None
    assert (decision.estimate.value, decision.estimate.n) == (value, n)


def test_gates_on_equal_values_of_two_tags_have_different_subjects() -> None:
    rows = [row(n, score=float(n < 2), level=str(n % 2), group=str(n % 2)) for n in range(4)]
    assert one("bench[level=1].m >= 0", rows).subject == "bench[level=1].m"
    assert one("bench[group=1].m >= 0", rows).subject == "bench[group=1].m"
    assert one("bench[1].m >= 0", rows).subject == "bench[1].m"


def test_a_star_stands_for_every_metric_and_every_benchmark() -> None:
    rows = [Row("c", "s", 1, "passed", {}, {"m": 1.0, "k": 0.2})]
    measured = {
        "b": MeasuredBenchmark(Tally.of(rows), {"d": lambda _: Estimate(0.9)}),
        "a": MeasuredBenchmark(Tally.of(rows), {}),
    }
    decisions = decide_gates([parse_gate("*.* >= 0.5")], measured)
    assert [(one.subject, one.verdict) for one in decisions] == [
        ("a.m", "met"),
        ("a.k", "missed"),
        ("a.pass_rate", "met"),
        ("b.m", "met"),
        ("b.k", "missed"),
        ("b.d", "met"),
        ("b.pass_rate", "met"),
    ]


def test_the_pass_rate_counts_neither_errors_nor_skipped_cases() -> None:
    rows = [row(1), row(2, "failed"), row(3, "error"), row(4, "skipped")]
    decision = one("bench.pass_rate >= 0.25", rows, share=0.5)
    assert decision.estimate is not None
    assert (decision.verdict, decision.estimate.value, decision.estimate.n) == ("met", 0.5, 2)


@pytest.mark.parametrize(
    ("errors", "share", "verdict"),
    [(1, 0.1, "met"), (2, 0.1, "too many errors"), (0, 0.0, "met"), (1, 0.0, "too many errors"), (10, 1.0, "no data")],
)
def test_a_gate_puts_up_with_so_many_errors_and_no_more(errors: int, share: float, verdict: str) -> None:
    rows = [row(n, "error" if n < errors else "passed") for n in range(10)]
    assert one("bench.m >= 0.9", rows, share=share).verdict == verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("bench.m >= 0.3", "met"),
        ("bench.m >= 0.4", "no data"),
        ("bench.m <= 1", "met"),
        ("bench.m <= 0.6", "missed"),
        ("bench.pass_rate >= 0.9", "met"),
    ],
)
def test_a_score_that_is_missing_counts_at_the_bad_end_of_the_range(text: str, verdict: str) -> None:
    rows = [row(n) for n in range(3)] + [replace(row(n), scores={}) for n in range(3, 10)]
    assert one(text, rows).verdict == verdict


def test_a_gate_that_hangs_on_missing_cases_says_how_many_and_which() -> None:
    rows = [row(1), row(2), replace(row(3, "skipped"), scores={}), replace(row(4), scores={"other": 1.0})]
    assert one("bench.m >= 0.9", rows).reason == (
        "2 of 4 cases scored, 1 skipped, 1 without this score (c3, c4); with these at 0, the bad end of its range, "
        "the gate would be missed"
    )


def test_without_a_declared_range_a_missing_score_is_not_bounded() -> None:
    rows = [row(1, score=7.0), row(2, score=9.0), replace(row(3), scores={})]
    decision = one("bench.m >= 1", rows)
    assert decision.verdict == "no data"
    assert "m has no declared range" in decision.reason
    measured = MeasuredBenchmark(Tally.of(rows), {}, {"m": Metric(range=(0, 10))})
    assert [one.verdict for one in decide_gates([parse_gate("bench.m >= 5")], {"bench": measured})] == ["met"]


@given(
    scores=st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=1, max_size=12),
    threshold=st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0]),
    comparison=st.sampled_from([">=", "<=", ">", "<"]),
)
def test_a_gate_is_met_only_if_it_is_met_whatever_the_missing_scores_are(
    scores: list[float | None], threshold: float, comparison: str
) -> None:
    rows = [replace(row(n), scores={} if score is None else {"m": score}) for n, score in enumerate(scores, 10)]
    measured = MeasuredBenchmark(Tally.of(rows), {}, {"m": Metric(range=(0, 1))})
    (decision,) = decide_gates([parse_gate(f"bench.m {comparison} {threshold}")], {"bench": measured})
    means = [math.fsum(end if one is None else one for one in scores) / len(scores) for end in (0.0, 1.0)]
    holds = all(COMPARISONS[comparison](mean, threshold) for mean in means)
    has_score = any(score is not None for score in scores)
    assert (decision.verdict == "met") == (holds and has_score)


def test_errors_are_counted_among_the_gates_own_cases() -> None:
    rows = [row(n, "error" if n == 0 else "passed", half="a" if n < 5 else "b") for n in range(10)]
    assert one("bench[b].m >= 1", rows).verdict == "met"
    decision = one("bench[a].m >= 1", rows)
    assert decision.verdict == "too many errors"
    assert decision.reason == "errors in 1 of 5 cases, more than 1.0%"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("benhc.m >= 1", "no case of benhc ran; did you mean bench?"),
        ("zzz.m >= 1", "no case of zzz ran; available: bench"),
        ("bench.n >= 1", "no such metric; available: m, pass_rate"),
        ("bench.pas_rate >= 1", "no such metric; did you mean pass_rate?"),
        ("bench[ue].m >= 1", "no case has the tag ue; available: asia, eu, small"),
        ("bench[asai].m >= 1", "no case has the tag asai; did you mean asia?"),
        ("bench[size=eu].m >= 1", "no case has the tag size=eu; available: region=asia, region=eu, size=small"),
    ],
)
def test_a_gate_about_nothing_says_what_there_is(text: str, reason: str) -> None:
    decision = one(text, ROWS)
    assert (decision.verdict, decision.reason, decision.estimate) == ("no data", reason, None)


def test_no_benchmark_at_all_is_no_data() -> None:
    (decision,) = decide_gates([parse_gate("*.m >= 0")], {})
    assert (decision.verdict, decision.reason) == ("no data", "no case of * ran")


def test_a_score_of_cases_that_were_all_skipped_is_not_called_unknown() -> None:
    assert one("bench.m >= 0", [row(1, "skipped").with_scores({})]).reason == "all cases were skipped"


def test_a_metric_that_no_case_has_measured_is_no_data() -> None:
    assert one("bench.kappa >= 0", ROWS, {"kappa": lambda _: None}).reason == "not measured"
    assert one("bench.m >= 0", [row(1, "skipped").with_scores({})], {"m": lambda _: None}).reason == "not measured"


def test_a_gate_on_a_score_that_could_not_be_measured_gives_the_cases_reason() -> None:
    cases = [replace(row(1, "passed").with_scores({}), facts={"unmeasured": {"m": "no TeX here"}})]
    assert (one("bench.m >= 0", cases).verdict, one("bench.m >= 0", cases).reason) == ("no data", "no TeX here")


def test_a_metric_that_is_undefined_on_these_cases_is_no_data() -> None:
    decision = one("bench.kappa <= 1", ROWS, {"kappa": lambda _: Estimate(math.nan)})
    assert (decision.verdict, decision.reason) == ("no data", "undefined on these cases")


def test_a_derived_metric_is_read_off_the_gates_cases_and_at_its_own_confidence() -> None:
    derived = {"share": lambda cases: Estimate(len(cases) / 8, 0.4, 0.6, len(cases))}
    assert one("bench[eu].share >= 0.5", ROWS, derived).verdict == "met"
    assert one("bench[eu].share >= 0.4 @95%", ROWS, derived).verdict == "met"


def test_a_derived_metric_without_an_interval_at_this_confidence_has_the_jackknifes() -> None:
    rows = [row(number, score=float(number % 4 > 0)) for number in range(40)]
    derived = {"share": lambda cases: Estimate(cases.mean("m") or 0.0, n=len(cases))}
    wide, narrow = (one(f"bench.share >= 0.5 @{level}%", rows, derived).estimate for level in (99, 90))
    assert wide is not None
    assert narrow is not None
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low < narrow.low < 0.75


def test_a_derived_metric_that_nothing_changes_has_an_interval_if_its_range_is_declared() -> None:
    rows = [row(number, score=1.0) for number in range(40)]
    derived = {"share": lambda cases: Estimate(1.0, n=len(cases))}
    (decision,) = decide_gates(
        [parse_gate("bench.share >= 0.9 @95%")],
        {"bench": MeasuredBenchmark(Tally.of(rows), derived, {"share": Metric(range=(0.0, 1.0))})},
    )
    assert decision.verdict == "met"
    assert decision.estimate is not None
    assert decision.estimate.low == pytest.approx(0.025 ** (1 / 40))
    undeclared = one("bench.share >= 0.9 @95%", rows, derived)
    assert undeclared.verdict == "no data"
    assert "Metric(range=(0, 1))" in undeclared.reason


def test_a_bound_that_cannot_be_had_is_no_data() -> None:
    decision = one("bench.m >= 0 @95%", [row(1, score=0.5)])
    assert (decision.verdict, decision.reason) == (
        "no data",
        (
            "no interval can be given for it from so few cases, or from cases that are all the same; "
            "a declared range, Metric(range=(0, 1)), bounds what varies"
        ),
    )


def test_many_names_are_not_all_listed() -> None:
    names = [f"name{letter}" for letter in "abcdefghijklmnop"]
    assert suggest_names("zzzzzzz", names).endswith("namel, ...")
    assert suggest_names("namea", names).startswith("; did you mean namea")
    assert suggest_names("x", []) == ""


def test_all_tags_with_all_values() -> None:
    assert list_tags(Tally.of(ROWS)) == {("region", "eu"), ("region", "asia"), ("size", "small")}


def test_a_gate_covers_its_benchmark_or_all() -> None:
    gate: Gate = parse_gate("a.b > 0")
    assert gate.covers_benchmark("a")
    assert not gate.covers_benchmark("ab")
    assert parse_gate("*.b > 0").covers_benchmark("ab")


def test_a_gate_without_a_benchmark_is_about_the_only_one() -> None:
    rows = [row(number) for number in range(4)]
    both = {"first": MeasuredBenchmark(Tally.of(rows), {}), "second": MeasuredBenchmark(Tally.of(rows), {})}
    assert one("m >= 0.5", rows).subject == "bench.m"
    (decision,) = decide_gates([parse_gate("m >= 0.5")], both)
    assert decision.verdict == "no data"
    assert "there are several benchmarks; name one: first.m, second.m" in decision.reason
    assert [each.subject for each in decide_gates([parse_gate("cost per case <= $1")], both)] == [
        "first.cost",
        "second.cost",
    ]


READERS: dict[str, Callable[[Any], Any]] = {
    "get": lambda scores: [scores.get("right")],
    "in": lambda scores: [scores["right"]] if "right" in scores else [],
    "iteration": lambda scores: [scores[name] for name in scores],
    "items": lambda scores: [value for _, value in scores.items()],
    "values": lambda scores: list(scores.values()),
    "a copy": lambda scores: [scores.copy().get("right")],
    "a dict": lambda scores: [dict(scores).get("right")],
    "unpacking": lambda scores: [{**scores}.get("right")],
    "union": lambda scores: [({"other": None} | scores).get("right"), (scores | {}).get("right")],
    "truth": lambda scores: [scores["right"]] if scores else [],
    "length": lambda scores: [scores["right"]] if len(scores) else [],
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_derived_metric_misses_the_cases_without_a_score_however_it_reads_the_scores(
    read: Callable[[Any], Any],
) -> None:
    rows = tuple(Row(f"c{n}", f"s{n}", 1, "passed", {}, {"right": 1.0} if n < 3 else {}) for n in range(10))

    def quality(tally: Tally) -> Estimate | None:
        found = [value for row in tally for value in read(row.scores) if value is not None]
        return Estimate.of(sum(found) / len(found), math.nan, math.nan, len(found))

    missing = MeasuredBenchmark(Tally(rows), {"quality": quality}).find_unscored_cases("quality", Tally(rows))
    assert [row.case for row in missing] == [f"c{n}" for n in range(3, 10)]
