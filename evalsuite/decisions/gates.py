"""Parse and decide gates (conditions on metrics that users write), without I/O.

head_to_tail.accuracy >= 0.30             a mean over the benchmark's cases
head_to_tail[tail].hallucination <= 0.2   a mean over the cases with a tag of this value
treb[skill=TU].rouge_l >= 0.2             a mean over the cases with this value of the named tag
struc_bench.table_content >= 0.85 @95%    the bound of the 95% interval must meet the condition
treb.* >= 0.5                             every metric of the benchmark
judge.kappa >= 0.6 @95%                   the agreement of the run's judges with people's labels
qa.corrected_faithful >= 0.8 @95%         a judged mean, corrected by people's labels
accuracy no worse than main by 0.02       against the baseline `main`: a loss of 0.02 is excluded
cost per case <= $0.01, latency p95 <= 4 s, accuracy >= 80%, accuracy ≥ 0.8

The benchmark may be left out if the suite has only one benchmark, or if the metric is cost, tokens, calls or latency.

A case has no score if it was skipped before it was scored, or ended in an error. A met gate gets `no data` instead if
it would be missed with the metric's worst value in every case without a score.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from evalsuite.core.errors import SettingsError, SpendLimitReached, describe_estimated_calls, write_count
from evalsuite.core.option_values import NO_WORSE_THAN
from evalsuite.core.types import PASS_RATE
from evalsuite.decisions.measured import DERIVED_CONFIDENCE, MeasuredBenchmark, list_tags, select_cases
from evalsuite.results.built_in import AMOUNTS, count_estimated_calls, find_built_in_metric, is_resource_metric
from evalsuite.results.judge_labels import explain_missing_metric
from evalsuite.results.tally import UNMEASURED, Estimate, Row, Tally

if TYPE_CHECKING:
    from evalsuite.core.types import Metric
    from evalsuite.results.runs import Run

COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
NUMBER = r"-?(?:\d+(?:\.\d+)?|\.\d+)"
SUBJECT = re.compile(
    r"""\s*(?:(?P<benchmark>[a-z][a-z0-9_]*|\*)\s*(?:\[(?:(?P<tag>[^\]=]+)=)?(?P<value>[^\]]+)\])?\s*\.\s*)?
        (?P<metric>[\w@^-]+|\*)(?P<words>\ +per\ +case|\ +p\d{1,2})?\s*""",
    re.VERBOSE,
)
CONDITION = re.compile(
    rf"""(?:(?P<comparison>>=|<=|≥|≤|>|<)\s*|{NO_WORSE_THAN}(?:\s+by\s+|(?P<usual_loss>(?!\S|\s+by\s))))
        (?(usual_loss)|(?P<dollars>\$)?\s*(?P<number>{NUMBER})\s*(?P<unit>[%$]|ms\b|s(?:ec(?:onds?)?)?\b)?)""",
    re.VERBOSE,
)
CONFIDENCE = re.compile(r"\s*(?:@\s*(?P<confidence>\d+(?:\.\d+)?)\s*%)?\s*")
# Factors that convert a threshold's unit (such as %) to the metric's own scale; the factor of other units is 1.
UNITS = {"%": 0.01, "ms": 0.001}
FREQUENT_MISTAKES = {
    "=>": ">=",
    "=<": "<=",
    r"(is )?at least": ">=",
    r"(is )?at most": "<=",
    r"(not|no) worse (then|than|as)": "no worse than",
    r"(?<=\d),(?=\d)(?!\d{3}\b)": ".",
    "\N{MINUS SIGN}": "-",
    r"\(?(at |@)?\s*(\d\d+(\.\d+)?)\s*%?\)?$": r"@\2%",
}
"""Patterns of frequent mistakes in the text of a gate, each with its correction."""
FORM = (
    "benchmark.metric >= 0.5, benchmark[tag].metric <= 0.2, with the interval's bound benchmark.metric >= 0.5 @95%, or "
    "against a baseline benchmark.metric no worse than RUN by 0.02"
)
NO_WORSE = "no worse"  # `Gate.comparison` has this value if the gate is against a baseline.
JUDGE = "judge"  # A gate whose benchmark is named `judge` tests the run's judges, on all cases that people labelled.


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition on a metric."""

    text: str
    benchmark: str  # The benchmark's name; `*` for all benchmarks.
    tag: str | None  # The tag's name, if the gate has one.
    value: str | None  # The tag's value; None means all cases.
    metric: str  # The metric's name; `*` for all metrics.
    comparison: str  # One of `COMPARISONS`, or `NO_WORSE`.
    threshold: float  # The threshold on the metric's scale; for `NO_WORSE`, the margin, or nan if none is given.
    # The interval's confidence, in (0, 1); None means that the estimate decides without an interval.
    confidence: float | None
    than: str = ""  # With `NO_WORSE`, the name of the baseline.
    bare: bool = False  # Whether the gate's text omits the benchmark's name.
    per_case: bool = False  # Whether the gate's text says `per case`, so that the metric is an amount and not a score.

    @property
    def is_higher_better(self) -> bool:
        """Whether the gate requires high values rather than low values."""
        return not self.comparison.startswith("<")

    @property
    def selection(self) -> str:
        """The gate's tag as in its text: `tag=value`, a bare value, or empty for all cases."""
        return f"{self.tag}={self.value}" if self.tag else self.value or ""

    def covers_benchmark(self, benchmark: str) -> bool:
        return self.benchmark in {"*", benchmark}

    def is_met_by(self, estimate: Estimate) -> bool:
        """Tell whether an estimate meets the gate; with a confidence, the interval's worse bound must meet it."""
        value: float | None = estimate.value
        if self.confidence is not None:
            value = estimate.low if self.is_higher_better else estimate.high
        return value is not None and bool(COMPARISONS[self.comparison](value, self.threshold))


def parse_gates(texts: Iterable[str] | None) -> tuple[Gate, ...]:
    """Parse the gates in a run's settings, in order."""
    return tuple(map(parse_gate, texts or ()))


def read_gates(run: Run) -> tuple[Gate, ...]:
    """Parse the gates in a run's settings."""
    return parse_gates(run.info.get("settings", {}).get("gate"))


@cache
def parse_gate(text: str) -> Gate:
    """Parse a gate's text; raise SettingsError if it is not valid."""
    subject = SUBJECT.match(text)
    condition = CONDITION.match(text, subject.end()) if subject else None
    ending = CONFIDENCE.fullmatch(text, condition.end()) if condition else None
    if not subject or not condition or not ending:
        fault, meant = _locate_syntax_error(text, subject, condition), _suggest_correction(text)
        raise SettingsError(f"gate {text!r:.200} cannot be read{fault}{meant}; write {FORM}")
    tag, value = (subject[part] and subject[part].strip() for part in ("tag", "value"))
    if "" in {tag, value}:
        raise SettingsError(f"gate {text!r} cannot be read: a tag or its value is empty; write {FORM}")
    confidence = float(ending["confidence"]) / 100 if ending["confidence"] else None
    if confidence is not None and not 0.5 <= confidence < 1:
        raise SettingsError(f"gate {text!r}: a confidence is at least 50% and below 100%")
    if condition["than"] and confidence is not None:
        raise SettingsError(f"gate {text!r}: comparisons with baselines have one joint confidence, 95%; drop the @")
    return Gate(
        text=text.strip(),
        benchmark=subject["benchmark"] or "*",
        tag=tag,
        value=value,
        metric=_read_metric_name(subject),
        comparison={"≥": ">=", "≤": "<="}.get(condition["comparison"], condition["comparison"] or NO_WORSE),
        threshold=_read_threshold(text, _read_metric_name(subject), condition),
        confidence=confidence,
        than=condition["than"] or "",
        bare=not subject["benchmark"],
        per_case=(subject["words"] or "").strip().startswith("per"),
    )


def replace_metric_name(text: str) -> str:
    """Replace the metric in a valid gate's text by a name that does not exist in any benchmark."""
    subject = SUBJECT.match(text)
    end = subject.end("metric") if subject else 0
    return f"{text[:end]}_other{text[end:]}"


def _suggest_correction(text: str) -> str:
    """Correct one frequent mistake in a gate's text; return "" if the corrected text is not a valid gate."""
    for pattern, right in FREQUENT_MISTAKES.items():
        near = re.sub(pattern, right, text)
        subject = SUBJECT.match(near) if near != text else None
        condition = CONDITION.match(near, subject.end()) if subject else None
        if condition and CONFIDENCE.fullmatch(near, condition.end()):
            return f" (did you mean {near!r:.200}?)"
    return ""


def _locate_syntax_error(text: str, subject: re.Match[str] | None, condition: re.Match[str] | None) -> str:
    """Tell at which column parsing a gate fails, and which text is expected there."""
    at = condition.end() if condition else subject.end() if subject else 0
    wanted = "the end, or @95%" if condition else ">=, <=, >, < or 'no worse than RUN'" if subject else "a metric"
    if subject and not condition and (sign := re.match(rf">=|<=|≥|≤|>|<|{NO_WORSE_THAN}\s+by\b", text[at:])):
        at, wanted = at + sign.end(), "a number"
    rest = text[at:].split()
    column = len(text) - len(text[at:].lstrip()) + 1
    return f": at column {column} {wanted} is expected, not {f'{rest[0]!r:.40}' if rest else 'the end'}"


def _read_metric_name(subject: re.Match[str]) -> str:
    """Return the name of a gate's metric: `latency_p95` for `latency p95`, and `cost` for `cost per case`."""
    words = (subject["words"] or "").strip()
    return subject["metric"] if words.startswith("per") or not words else f"{subject['metric']}_{words}"


def _read_threshold(text: str, metric: str, condition: re.Match[str]) -> float:
    """Read the threshold or margin at the end of a gate's text, on the metric's own scale; nan if the text has none."""
    if condition["number"] is None:
        return math.nan
    unit = "$" if condition["dollars"] else condition["unit"] or ""
    if unit == "$" and not metric.endswith("cost"):
        raise SettingsError(f"gate {text!r}: dollars belong to a cost, and {metric} is not a cost")
    if unit.startswith(("s", "ms")) and not (metric == "seconds" or metric.startswith("latency_")):
        raise SettingsError(f"gate {text!r}: seconds belong to a latency such as latency p95, and {metric} is not one")
    if unit == "%" and is_resource_metric(metric) and metric != "calls":  # The scorer `tool_calls` has a score `calls`.
        raise SettingsError(f"gate {text!r}: % belongs to a share, and {metric} is an amount")
    number = float(condition["number"])
    if unit == "%" and 0 < number < 1 and condition["comparison"] in {">=", ">", "≥"}:
        raise SettingsError(f"gate {text!r}: {number:g}% is {number / 100:g}; write {number:g} or {number:.0%}")
    threshold = number * UNITS.get(unit, 1.0)
    if condition["than"] and threshold <= 0:
        raise SettingsError(f"gate {text!r}: a loss that matters is above 0")
    if condition["than"] and metric == "*" and threshold >= 1:
        raise SettingsError(f"gate {text!r}: for all metrics the loss is a share of their ranges, so it is below 1")
    return threshold


def explain_misspelling(gate: Gate, benchmark: str, metrics: Iterable[str]) -> str:
    """Explain that a gate's metric may be misspelt, because the first case lacks the metric; otherwise return "".

    Report a name only if it closely resembles an existing name, because later cases may have further scores.
    """
    names = {*metrics, PASS_RATE}
    if gate.benchmark != benchmark or gate.metric in {*names, "*"} or find_built_in_metric(gate.metric) is not None:
        return ""
    close = difflib.get_close_matches(gate.metric, names, n=1, cutoff=0.8)
    return f"gate '{gate.text}': no such metric{suggest_names(gate.metric, names)}" if close else ""


def explain_missing_benchmark(gate: Gate, benchmarks: Iterable[str]) -> str:
    """Explain that a gate must name its benchmark because the suite has several; return "" if it need not."""
    names = sorted(benchmarks)
    if not gate.bare or is_resource_metric(gate.metric) or gate.metric == "*" or len(names) < 2:
        return ""
    return f"there are several benchmarks; name one: {', '.join(f'{name}.{gate.metric}' for name in names[:6])}"


def suggest_names(name: str, candidates: Iterable[str]) -> str:
    """Write the end of a message: names similar to `name` or, if none is similar, the first twelve names."""
    names: Sequence[str] = sorted(candidates)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; available: {shown}" if names else ""


GateOutcome = Literal["met", "missed", "no data", "too many errors"]
SKIPPED_OVER_BUDGET = ("skipped", SpendLimitReached.__name__)
"""Outcome and cause of a case that --until-decided skipped because the spending limit was reached."""

ROUNDING = 1e-12  # An interval with a smaller relative width counts as a single point, because of rounding errors.

NO_LABELS = (
    "no case has both a judge's score and people's label; a sample's metadata brings labels under 'human', and "
    "there are judge.accuracy, sensitivity, specificity, kappa and ac1 of verdicts, and judge.weighted_kappa, alpha "
    "and rho of scores; `evalsuite judge` measures judge.detects_* and judge.resists_*"
)


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The decision on a gate for one metric of one benchmark."""

    gate: Gate
    subject: str  # The benchmark, tag and metric that were checked.
    verdict: GateOutcome  # `met`, or another verdict that tells why the gate is not met.
    estimate: Estimate | None = None  # The metric's estimate; None without data.
    reason: str = ""  # The reason for the verdict if estimate and threshold do not show it; otherwise empty.


def decide_gates(
    gates: Iterable[Gate], measured: Mapping[str, MeasuredBenchmark], error_share: float = 0.01
) -> list[GateDecision]:
    """Decide gates on a run; `error_share` is the tolerated share of errors among a benchmark's cases, in [0, 1]."""
    return [decision for gate in gates for decision in _decide_gate(gate, measured, error_share)]


def _decide_gate(gate: Gate, measured: Mapping[str, MeasuredBenchmark], error_share: float) -> list[GateDecision]:
    """Return one decision per benchmark and metric that a gate covers; `no data` if it covers none."""
    names = sorted(measured) if gate.benchmark == "*" else [gate.benchmark]
    if not names or names[0] not in measured:
        reason = f"no case of {gate.benchmark} ran{suggest_names(gate.benchmark, measured)}"
        reason = NO_LABELS if gate.benchmark == JUDGE else reason
        return [GateDecision(gate, gate.benchmark, "no data", reason=reason)]
    if reason := explain_missing_benchmark(gate, measured):
        return [GateDecision(gate, gate.metric, "no data", reason=reason)]
    return [decision for name in names for decision in _decide_on_benchmark(gate, name, measured[name], error_share)]


def _decide_on_benchmark(gate: Gate, name: str, measured: MeasuredBenchmark, error_share: float) -> list[GateDecision]:
    """Decide a gate on each of its metrics, or only once if no case has its tag or too many cases have errors."""
    cases = select_cases(measured.tally, gate.tag, gate.value)
    place = f"{name}[{gate.selection}]" if gate.value else name
    if gate.value and not len(cases):
        values = {f"{tag}={value}" if gate.tag else value for tag, value in list_tags(measured.tally)}
        reason = f"no case has the tag {gate.selection}{suggest_names(gate.selection, values)}"
        return [GateDecision(gate, place, "no data", reason=reason)]
    errors = cases.count("error")
    if errors > error_share * len(cases):
        reason = f"errors in {errors} of {write_count(len(cases), 'case')}, more than {error_share:.1%}"
        return [GateDecision(gate, f"{place}.{gate.metric}", "too many errors", reason=reason)]
    metrics = measured.list_metrics() if gate.metric == "*" else (gate.metric,)
    decisions = [] if metrics else [GateDecision(gate, f"{place}.*", "no data", reason="no case has a score")]
    for metric in metrics:
        decision = _decide_on_metric(gate, place, metric, measured, cases)
        reasons = (decision.reason, describe_estimated_calls(*count_estimated_calls(metric, cases)))
        decisions.append(replace(decision, reason="; ".join(filter(None, reasons))))
    return decisions


def _decide_on_metric(gate: Gate, place: str, metric: str, measured: MeasuredBenchmark, cases: Tally) -> GateDecision:
    """Decide a gate for one metric; `no data` if the metric or a required interval is undefined."""
    subject = f"{place}.{metric}"
    if gate.per_case and metric in measured.tally.metrics():
        return GateDecision(gate, subject, "no data", reason=f"{metric} is a score here, not an amount per case")
    look = measured.estimate_metric if gate.confidence is None else measured.estimate_with_interval
    estimate = look(metric, cases, gate.confidence or DERIVED_CONFIDENCE)
    if estimate is None:
        names = measured.list_metrics()
        reason = (
            measured.explain_failure(metric)
            or next((why for row in cases if (why := row.facts.get(UNMEASURED, {}).get(metric))), "")
            or (explain_missing_metric(metric, cases) if gate.benchmark == JUDGE else "")
            or ("" if len(cases) else "no case is left to decide it")
            or (
                "not measured"
                if metric in names
                else "all cases were skipped"
                if all(row.outcome == "skipped" for row in cases)
                else f"no such metric{suggest_names(metric, names)}{measured.gone and f' ({measured.gone})'}"
            )
        )
        return GateDecision(gate, subject, "no data", reason=reason)
    if math.isnan(estimate.value):
        return GateDecision(gate, subject, "no data", reason="undefined on these cases")
    if gate.confidence is not None and not _has_width(estimate):
        reason = "no interval can be given for it from so few cases, or from cases that are all the same"
        if metric in AMOUNTS and metric in measured.derived:
            reason = "an amount has no interval below 30 independent cases, or if all are equal; leave out the @"
        elif metric in measured.derived:
            reason += "; a derived metric needs a declared range for one, Metric(range=(0, 1))"
        elif metric not in measured.declared:
            reason += "; a declared range, Metric(range=(0, 1)), bounds what varies"
        return GateDecision(gate, subject, "no data", estimate, reason)
    if not gate.is_met_by(estimate):
        return GateDecision(gate, subject, "missed", estimate)
    warning = _warn_of_wrong_direction(gate, measured.declared.get(metric))
    is_score = metric in cases.metrics() and metric not in measured.derived
    if gate.confidence is not None and is_score and measured.find_range(metric, cases) is None:
        warning = "the bound is optimistic for few and skewed scores; declare the range: Metric(range=...)"
    met = GateDecision(gate, subject, "met", estimate, warning)
    unscored = measured.find_unscored_cases(metric, cases)
    missing = [row for row in unscored if (row.outcome, row.cause) != SKIPPED_OVER_BUDGET]
    return _decide_with_missing_scores(gate, met, metric, measured, cases, missing) if missing else met


def _warn_of_wrong_direction(gate: Gate, declared: Metric | None) -> str:
    """Warn if a gate asks for high values although low values are better, or the reverse; return "" otherwise."""
    if declared is None or declared.range is None or gate.is_higher_better == (declared.better == "higher"):
        return ""
    return f'the worst scores meet this gate, since {gate.metric} is declared with better="{declared.better}"'


def _decide_with_missing_scores(
    gate: Gate, decision: GateDecision, metric: str, measured: MeasuredBenchmark, cases: Tally, missing: Sequence[Row]
) -> GateDecision:
    """Change the verdict `met` to `no data` if the gate would be missed with the worst values for missing scores."""
    ledger = _describe_counted_cases(cases, missing)
    bounds = measured.find_range(metric, cases)
    if bounds is None:
        reason = f"{ledger}; {metric} has no declared range, Metric(range=(0, 1)), so what they hide is not bounded"
        return replace(decision, verdict="no data", reason=reason)
    end = bounds[0] if gate.is_higher_better else bounds[1]
    if metric in measured.derived and decision.estimate is not None:
        own, share = decision.estimate, len(missing) / len(cases)
        known = (math.nan if bound is None else bound for bound in (own.value, own.low, own.high))
        value, low, high = (bound + share * (end - bound) for bound in known)
        worst = Estimate.of(value, low, high, own.n)
    else:
        filled = measured.fill_missing_scores(metric, cases, end)
        worst = measured.estimate_metric(metric, filled, gate.confidence or DERIVED_CONFIDENCE)
    if worst is not None and gate.is_met_by(worst):
        return replace(decision, reason=f"{ledger}; it holds with these at {end:g}, too ({worst.value:.4f})")
    reason = f"{ledger}; with these at {end:g}, the bad end of its range, the gate would be missed"
    if all(row.outcome not in {"error", "skipped"} for row in missing):
        reason += "; where only some kinds of cases have this score, gate these by a tag: benchmark[tag].metric"
    return replace(decision, verdict="no data", reason=reason)


def _describe_counted_cases(cases: Tally, missing: Sequence[Row]) -> str:
    """State how many cases were scored and why the others were not; name the first three cases without a score."""
    errors, skipped = (sum(row.outcome == outcome for row in missing) for outcome in ("error", "skipped"))
    parts = [write_count(errors, "error")] if errors else []
    parts += [f"{skipped} skipped"] if skipped else []
    parts += [f"{unscored} without this score"] if (unscored := len(missing) - errors - skipped) else []
    names = ", ".join(row.case for row in missing[:3]) + (", ..." if len(missing) > 3 else "")
    scored = len(cases) - len(missing)
    return f"{scored} of {write_count(len(cases), 'case')} scored, {', '.join(parts)} ({names})"


def _has_width(estimate: Estimate) -> bool:
    """Tell whether an estimate has an interval that is wider than rounding errors; that of equal scores is a point."""
    if estimate.low is None or estimate.high is None:
        return False
    return estimate.high - estimate.low > ROUNDING * max(1.0, abs(estimate.value))
