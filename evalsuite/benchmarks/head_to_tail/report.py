"""Head-to-Tail's section of the report: right, made up and missing, by judge or rule, domain and popularity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS, DOMAINS, is_shipped
from evalsuite.benchmarks.head_to_tail.studies import studies
from evalsuite.core.phrases import number_of
from evalsuite.output.reports.section import Chart, Column, Passage, Section, Series, Table, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evalsuite.output.reports.section import Block, Cell, LabelledCases
    from evalsuite.results.tally import Estimate, RunView, Tally

TITLE = "Head-to-Tail: what is known of the popular and of the rest"
PREFACE = (
    "Accuracy A is the share of questions answered right, M the share left unanswered or answered "
    '"unsure", and H = 100 - A - M what was made up. Brackets hold 95% intervals.'
)
# The suffixes of the scores by who decides what is right.
VERDICTS = {"judge": "_lm", "exact match": "_em", "token F1": "_f1", "ROUGE-L": "_rl"}
_RULES = ("exact match", "token F1", "ROUGE-L")
RATES_BY_DOMAIN = {
    "accuracy": "Accuracy by domain and popularity",
    "hallucination": "Hallucination by domain and popularity",
}
RATES = (Column("Accuracy", "percent"), Column("Hallucination", "percent"), Column("Missing", "percent"))
COUNT = Column("Questions", "count")


def report(views: Sequence[RunView]) -> Section:
    """Build the section for one run, or for several side by side."""
    lines = [line for view in views for line in lines_of(view, alone=len(views) == 1)]
    blocks: list[Block] = [
        _preface(views, lines),
        _by_verdict(lines),
        _by_tag("By popularity", "Popularity", "bucket", BUCKETS, lines),
        _by_tag("By domain", "Domain", "domain", _domains(lines), lines),
        _rules_by_popularity(lines),
        *(_domain_by_bucket(title, rate, lines) for rate, title in RATES_BY_DOMAIN.items()),
        _figure(lines),
        *studies(views, shipped=all(is_shipped(view.source) for view in views)),
    ]
    return Section(TITLE, blocks)


def _decided_by(line: LabelledCases) -> str:
    """Say who decides `accuracy` and `hallucination`."""
    return (
        f"the judge {line.view.judge or 'of the run'}" if line.tally.values("accuracy_lm") else "exact match"
    )


def _preface(views: Sequence[RunView], lines: Sequence[LabelledCases]) -> Passage:
    sentences = [PREFACE]
    sentences += [f"Questions of {view.label}: {view.source or 'not recorded'}." for view in views]
    deciders = dict.fromkeys(map(_decided_by, lines))
    for decider in deciders:
        whose = [line.label for line in lines if _decided_by(line) == decider]
        where = f" for {', '.join(whose)}" if len(deciders) > 1 else ""
        sentences.append(f"Right is what {decider} says{where}.")
    for line in lines:
        if lost := sum(row.outcome == "error" for row in line.tally):
            sentences.append(
                f"{line.label}: errors in {lost} of {number_of(len(line.tally), 'case')}, left out."
            )
    return Passage("", "\n\n".join(sentences))


def _cells(tally: Tally, suffix: str = "") -> list[Cell]:
    """Return the number of questions, and their A, H and M."""
    accuracy = f"accuracy{suffix}"
    scored = tally.scored(accuracy)
    rates = (accuracy, f"hallucination{suffix}", "missing")
    # The t intervals of soft rules may leave [0, 1].
    estimates = [scored.estimate(rate) for rate in rates]
    return [len(scored), *(each and each.within(0.0, 1.0) for each in estimates)]


def _by_verdict(lines: Sequence[LabelledCases]) -> Table:
    rows = _rows(VERDICTS, lines, lambda verdict, line: _cells(line.tally, VERDICTS[verdict]))
    return Table("Right, made up, missing", _columns("Right by", lines, (COUNT, *RATES)), rows)


def _by_tag(
    title: str, heading: str, tag: str, values: Iterable[str], lines: Sequence[LabelledCases]
) -> Table:
    def cells(value: str, line: LabelledCases) -> list[Cell]:
        return _cells(line.tally.where(lambda row: row.tags.get(tag) == value))

    return Table(title, _columns(heading, lines, (COUNT, *RATES)), _rows(values, lines, cells))


def _rules_by_popularity(lines: Sequence[LabelledCases]) -> Table:
    """Tabulate accuracy and hallucination by each rule, from head to tail: Table 14's columns."""

    def cells(bucket: str, line: LabelledCases) -> list[Cell]:
        part = line.tally.where(bucket=bucket)
        return [cell for rule in _RULES for cell in _cells(part, VERDICTS[rule])[1:3]]

    columns = _columns(
        "Popularity", lines, [Column(f"{rate}, {rule}", "percent") for rule in _RULES for rate in "AH"]
    )
    return Table("By popularity and rule", columns, _rows(BUCKETS, lines, cells))


def _domain_by_bucket(title: str, rate: str, lines: Sequence[LabelledCases]) -> Table:
    def cells(domain: str, line: LabelledCases) -> list[Cell]:
        return [line.tally.where(domain=domain, bucket=bucket).estimate(rate) for bucket in BUCKETS]

    columns = _columns("Domain", lines, [Column(bucket, "percent") for bucket in BUCKETS])
    return Table(title, columns, _rows(_domains(lines), lines, cells))


def _figure(lines: Sequence[LabelledCases]) -> Chart:
    """Draw Figure 1 of the paper; a single run is also drawn by domain, without intervals."""
    series = [Series(line.label, _by_bucket(line.tally)) for line in lines]
    if len(lines) == 1:
        tally = lines[0].tally
        series += [
            Series(domain, [each and each.value for each in _by_bucket(tally.where(domain=domain))])
            for domain in _domains(lines)
        ]
    return Chart(
        kind="lines",
        name="head_to_tail_by_popularity",
        title="Accuracy from head to tail",
        labels=BUCKETS,
        series=series,
        unit="percent",
        limits=(0.0, 1.0),
        x_title="popularity",
        y_title="accuracy",
    )


def _by_bucket(tally: Tally) -> list[Estimate | None]:
    return [tally.where(bucket=bucket).estimate("accuracy") for bucket in BUCKETS]


def _columns(heading: str, lines: Sequence[LabelledCases], rest: Sequence[Column]) -> list[Column]:
    kind = "Mode" if lines and all(line.view is lines[0].view for line in lines) else "Run"
    run = [Column(kind)] if len(lines) > 1 else []
    return [Column(heading), *run, *rest]


def _rows(
    values: Iterable[str], lines: Sequence[LabelledCases], cells: Callable[[str, LabelledCases], list[Cell]]
) -> list[list[Cell]]:
    return [
        [value, *([line.label] if len(lines) > 1 else []), *cells(value, line)]
        for value in values
        for line in lines
    ]


def _domains(lines: Sequence[LabelledCases]) -> list[str]:
    domains = {row.tags["domain"] for line in lines for row in line.tally if "domain" in row.tags}
    return sorted(domains, key=lambda name: (DOMAINS.index(name) if name in DOMAINS else len(DOMAINS), name))
