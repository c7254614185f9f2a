"""Parse and evaluate gates, that is, conditions on metrics as users write them.

head_to_tail.accuracy >= 0.30             a mean over the benchmark's cases
head_to_tail[tail].hallucination <= 0.2   over the cases with a tag of this value
treb[skill=TU].rouge_l >= 0.2             the same, naming the tag as well
struc_bench.table_content >= 0.85 @95%    the interval's bound must hold, not the point
treb.* >= 0.5                             every metric of the benchmark
judge.kappa >= 0.6 @95%                   the agreement of the run's judges with people's labels
qa.corrected_faithful >= 0.8 @95%         a judged mean, corrected by people's labels
"""

from __future__ import annotations

import difflib
import operator
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from evalsuite.core.errors import SettingsError
from evalsuite.decisions.measured import PASS_RATE
from evalsuite.results.built_in import built_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Estimate

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
CONDITION = re.compile(
    r"""\s*(?P<benchmark>[a-z][a-z0-9_]*|\*)
        (?:\[(?:(?P<tag>[^\]=]+)=)?(?P<value>[^\]]+)\])?
        \.(?P<metric>[\w@^-]+|\*)
        \s*(?P<comparison>>=|<=|>|<)
        \s*(?P<threshold>-?\d+(?:\.\d+)?|-?\.\d+)
        \s*(?:@\s*(?P<confidence>\d+(?:\.\d+)?)\s*%)?\s*""",
    re.VERBOSE,
)
FORM = "benchmark.metric >= 0.5, benchmark[tag].metric <= 0.2, or with the interval's bound: ... >= 0.5 @95%"

JUDGE = "judge"  # stands in place of a benchmark for all cases of the run that people have labelled


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition."""

    text: str
    benchmark: str  # The benchmark's name; `*` for all benchmarks.
    tag: str | None  # The tag's name, if the gate has one.
    value: str | None  # The tag's value; None for all cases.
    metric: str  # The metric's name; `*` for all metrics.
    comparison: str  # One of `COMPARISONS`.
    threshold: float  # The limit, on the metric's own scale.
    confidence: float | None  # A number in (0, 1); None if the point estimate decides.

    @property
    def wants_more(self) -> bool:
        """Whether higher values meet the gate."""
        return self.comparison.startswith(">")

    def covers(self, benchmark: str) -> bool:
        """Tell whether the gate applies to a benchmark."""
        return self.benchmark in {"*", benchmark}

    def holds(self, estimate: Estimate) -> bool:
        """Tell whether the estimate meets the gate: by its point, or with a confidence by the relevant bound."""
        value: float | None = estimate.value
        if self.confidence is not None:
            value = estimate.low if self.wants_more else estimate.high
        return value is not None and COMPARISONS[self.comparison](value, self.threshold)


def parse_gates(texts: Iterable[str] | None) -> tuple[Gate, ...]:
    """Parse the gates in a run's settings, in order."""
    return tuple(map(parse_gate, texts or ()))


def gates_of(run: Run) -> tuple[Gate, ...]:
    """Read the gates that a run was started with."""
    return parse_gates(run.info.get("settings", {}).get("gate"))


@cache
def parse_gate(text: str) -> Gate:
    """Parse a gate; results are cached."""
    match = CONDITION.fullmatch(text)
    tag, value = (match[part] and match[part].strip() for part in ("tag", "value")) if match else ("", "")
    if not match or "" in {tag, value}:
        raise SettingsError(f"gate {text!r} cannot be read; write {FORM}")
    confidence = float(match["confidence"]) / 100 if match["confidence"] else None
    if confidence is not None and not 0.5 <= confidence < 1:
        raise SettingsError(f"gate {text!r}: a confidence is at least 50% and below 100%")
    return Gate(
        text=text.strip(),
        benchmark=match["benchmark"],
        tag=tag,
        value=value,
        metric=match["metric"],
        comparison=match["comparison"],
        threshold=float(match["threshold"]),
        confidence=confidence,
    )


def misspelt(gate: Gate, benchmark: str, metrics: Iterable[str]) -> str:
    """Explain what is wrong with a gate's metric, given the scores of the benchmark's first case; empty if fine.

    Other cases may have further scores, so only a name that closely resembles an existing one counts as misspelt.
    """
    names = {*metrics, PASS_RATE}
    if gate.benchmark != benchmark or gate.metric in {*names, "*"} or built_in(gate.metric) is not None:
        return ""
    if not difflib.get_close_matches(gate.metric, names, n=1, cutoff=0.8):
        return ""
    return f"gate '{gate.text}': no such metric{near(gate.metric, names)}"


def near(name: str, candidates: Iterable[str]) -> str:
    """Suggest similar names for the end of a message, or list the first dozen names if none is similar."""
    names: Sequence[str] = sorted(candidates)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; available: {shown}" if names else ""
