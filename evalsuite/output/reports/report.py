"""The report of one run as sections: verdict and settings first, then one section per benchmark, then failures."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from heapq import nsmallest
from typing import Any

from evalsuite.core.errors import describe_error, describe_estimated_calls, shorten_to_ends, write_count
from evalsuite.core.json_codec import encode_usage
from evalsuite.core.types import SHARE, Usage
from evalsuite.decisions.comparison import BaselineComparison
from evalsuite.decisions.gates import GateDecision
from evalsuite.decisions.measured import select_cases
from evalsuite.decisions.verdict import Verdict, estimate_metric
from evalsuite.gateway.faults import TAG as FAULT_TAG
from evalsuite.gateway.faults import UNHARMED
from evalsuite.output.reports.case_block import OUTCOMES, format_case_block
from evalsuite.output.reports.generic import make_generic_section, tabulate_pass_at_k, warn_of_cut_off_judges
from evalsuite.output.reports.judges import format_judge_log, tabulate_signatures
from evalsuite.output.reports.section import Block, Cell, Passage, Section, Table, parse_columns
from evalsuite.results.runs import BenchmarkResults, Run
from evalsuite.results.tally import Estimate, RunView, Tally

LOWEST = 3  # How many of a benchmark's worst cases are shown.
LONGEST_TEXT = 500  # Maximum characters of each text in a worst case.
MOST_CAUSES = 20


def make_run_view(run: Run, name: str, label: str) -> RunView:
    """Make the view of one benchmark of a run, from which the benchmark's report section is built."""
    bench = run.benchmarks[name]
    judge = run.info.get("settings", {}).get("judge_model")
    return RunView(label, bench.tally, judge, bench.source, run.read, run.metrics(name), bench.derived)


def make_benchmark_section(name: str, views: Sequence[RunView], bench: BenchmarkResults) -> Section:
    """Build a benchmark's section; add tables of judges' signatures, truncated answers and repeated attempts."""
    section = _make_own_section(name, views, bench)
    cut = [note for view in views for note in warn_of_cut_off_judges(view)]
    added = [table for table in (tabulate_signatures(views), tabulate_pass_at_k(views)) if table is not None]
    blocks = section.blocks
    first_folded = next((at for at, block in enumerate(blocks) if block.folded), len(blocks))
    return Section(section.title, [*cut, *blocks[:first_folded], *added, *blocks[first_folded:]])


def _make_own_section(name: str, views: Sequence[RunView], bench: BenchmarkResults) -> Section:
    """Build the benchmark's own section; if its code fails, build the generic section and state the reason."""
    declared, why = bench.benchmark, bench.gone
    if declared is not None and declared.report is not None:
        try:
            return declared.report(views)
        except Exception as error:  # noqa: BLE001 - code of others; the rest of the report does not depend on it
            why = f"its own report failed: {describe_error(error)}"
    section = make_generic_section(bench.title or name, name, views, bench.primary)
    if not why:
        return section
    note = Passage("", f"This is the generic report of {name}, without what the benchmark itself adds: {why}.")
    return Section(section.title, [note, *section.blocks])


def build_report(run: Run, verdict: Verdict) -> list[Section]:
    """Build all sections of a run's report, without the heading."""
    sections = [_make_run_section(run, verdict)]
    if verdict.decisions:
        sections.append(_make_gates_section(verdict.decisions))
    sections += map(make_baseline_section, verdict.against)
    if len(run.benchmarks) > 1:
        sections.append(_make_benchmarks_section(run))
    by_name = {
        name: make_benchmark_section(name, [make_run_view(run, name, bench.model)], bench)
        for name, bench in run.benchmarks.items()
    }
    sections += by_name.values()
    sections += _make_fault_sections(run)
    sections += _make_error_sections(run)
    cases_shown = {
        name
        for name, section in by_name.items()
        if any(isinstance(block, Passage) and block.folded for block in section.blocks)
    }
    sections += _make_worst_cases_sections(run, cases_shown)
    sections.append(_make_signature_section(run))
    return sections


def _make_run_section(run: Run, verdict: Verdict) -> Section:
    info, settings = run.info, run.info.get("settings", {})
    usage, counts = info.get("usage") or {}, verdict.counts
    cost = f"${usage['cost']:.4f}" if usage.get("cost") else "nothing was charged"
    if unpriced := usage.get("unpriced"):
        cost += f"; no price of {write_count(unpriced, 'call')} is known"
    words = OUTCOMES | {"error": "error" if counts.get("error") == 1 else "errors"}
    outcomes = ", ".join(f"{counts.get(outcome, 0)} {word}" for outcome, word in words.items())  # type: ignore[call-overload] # all are outcomes
    models = {"model": info.get("model"), "judge": settings.get("judge_model"), "user": settings.get("user_model")}
    rows: list[list[Cell]] = [
        [role, _describe_model(role, name, settings)] for role, name in models.items() if name or role != "user"
    ]
    rows += [
        ["date", str(info.get("started", ""))],
        ["cases", f"{sum(counts.values())}: {outcomes}"],
        ["tokens", _describe_tokens(usage)],
        ["cost", cost],
    ]
    # The judge's usage includes stored answers.
    judging = sum((row.judge_usage for row in run.all_rows() if row.judge_usage.calls), Usage())
    if judging.calls:
        judging_cost = f", ${judging.cost:.4f}" if judging.cost else ""
        rows.append(["of these, for judging", f"{_describe_tokens(encode_usage(judging))}{judging_cost}"])
    rows.append(["wall time", f"{info.get('seconds', 0):.1f} s"])
    return Section("This run", [Table("", parse_columns("what | value"), rows)])


def _describe_model(role: str, model: str | None, settings: Mapping[str, Any]) -> str:
    base_url, params = settings.get(f"{role}_base_url"), settings.get(f"{role}_param")
    where = f" at {base_url}" if base_url else ""
    with_ = f" with {', '.join(params)}" if params else ""
    return f"{model or 'none'}{where}{with_}"


def _describe_tokens(usage: Mapping[str, Any]) -> str:
    if not usage:
        return "unknown"
    calls = write_count(usage["calls"], "call")
    counted = f"{usage['prompt_tokens']:,} read and {usage['completion_tokens']:,} written in {calls}"
    return "; ".join(filter(None, (counted, describe_estimated_calls(usage.get("estimated", 0), usage["calls"]))))


def _make_gates_section(decisions: Sequence[GateDecision]) -> Section:
    marks = {"met": "✅ met", "missed": "❌ missed"}
    columns = parse_columns("verdict | gate | looked at | measured: number 4 | cases: count | reason")
    rows: list[list[Cell]] = []
    for decision in decisions:
        verdict, estimate = marks.get(decision.verdict, f"⚠️ {decision.verdict}"), decision.estimate
        measured: list[Cell] = [estimate, estimate.n if estimate else None]
        rows.append([verdict, decision.gate.text, decision.subject, *measured, decision.reason])
    if not any(decision.estimate for decision in decisions):
        columns, rows = [*columns[:3], columns[5]], [[*row[:3], row[5]] for row in rows]
    return Section("Gates", [Table("", columns, rows)])


def _make_benchmarks_section(run: Run) -> Section:
    rows: list[list[Cell]] = []
    for name, bench in run.benchmarks.items():
        primary, cases = bench.primary, bench.tally
        found = estimate_metric(run, name, primary)
        scored = found.n if found else None
        rows.append([name, len(cases), cases.count("error"), primary, scored, found, bench.source])
    columns = parse_columns(
        "benchmark | cases: count | errors: count | metric | scored: count | mean with 95% interval: number 3 | samples"
    )
    return Section("Benchmarks", [Table("", columns, rows)])


def _make_fault_sections(run: Run) -> list[Section]:
    """Tabulate each primary metric by kind of injected fault; cases without faults have a row of their own."""
    rows: list[list[Cell]] = []
    for name, bench in run.benchmarks.items():
        kinds = Counter(row.tags[FAULT_TAG] for row in bench.tally if FAULT_TAG in row.tags)
        for kind in sorted(kinds, key=lambda kind: (kind != UNHARMED, kind)):
            part = select_cases(bench.tally, FAULT_TAG, kind)
            found = estimate_metric(run, name, bench.primary, part)
            rows.append([name, kind, len(part), part.count("error"), bench.primary, found])
    columns = parse_columns(
        "benchmark | fault | cases: count | errors: count | metric | mean with 95% interval: number 3"
    )
    note = "Cases by the faults of the model that were played on purpose; a gate names them by tag: `[fault=status]`."
    return [Section("Faults on purpose", [Table("", columns, rows, note)])] if rows else []


def _make_error_sections(run: Run) -> list[Section]:
    """Group errors by cause, and show one message for each cause."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for row in run.all_rows():
        if row.outcome == "error":
            record = run.read(row.case)
            message = record.error or ""
            # Remove what differs between cases: numbers, addresses, long quotations.
            kind = re.sub(r"\d[\d.,:]*", "#", re.sub(r"'[^']{40,}'", "'...'", message))
            groups[record.cause or "unknown", kind].append((message, row.case))
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    rows: list[list[Cell]] = [
        [len(alike), cause, shorten_to_ends(alike[0][0], 300), alike[0][1]]
        for (cause, _), alike in ranked[:MOST_CAUSES]
    ]
    left = sum(len(alike) for _, alike in ranked[MOST_CAUSES:])
    note = f"{left} further errors of other causes are in records.jsonl." if left else ""
    columns = parse_columns("cases: count | cause | message | for example")
    return [Section("Errors", [Table("", columns, rows, note)])] if rows else []


def _make_worst_cases_sections(run: Run, benchmarks_to_skip: Collection[str]) -> list[Section]:
    """Show a benchmark's worst cases, unless its own section already shows cases."""
    blocks: list[Block] = []
    for name, bench in run.benchmarks.items():
        primary = bench.primary
        if primary is None or name in benchmarks_to_skip:
            continue
        scored: Tally = bench.tally.scored(primary)
        sign = -1 if run.lower_is_better(name, primary) else 1
        low, high = (run.metrics(name).get(primary) or SHARE).range or (0.0, 1.0)
        # Compare scores as they are printed, because a listed case must not show the best score.
        best = f"{low if sign < 0 else high:.3f}"
        # Iterate without a list, because the rows of a large run do not fit into memory.
        worse = (row for row in scored if f"{row.scores[primary]:.3f}" != best)
        # Failed cases come first, then the worst scores.
        ranked = ((row.outcome != "failed", sign * row.scores[primary], row.case) for row in worse)
        for *_, case in nsmallest(LOWEST, ranked):
            record = run.read(case)
            short = case.rpartition("::")[2]
            title = f"{short}: {primary} {record.scores[primary]:.3f}"
            blocks.append(Passage(title, format_case_block(record, max_length=LONGEST_TEXT), folded=True))
            for score, log in sorted(record.logs.items()):
                title = f"{short}: {score}, what was said"
                blocks.append(Passage(title, format_judge_log(log), folded=True, whole=True))
    return [Section("Lowest scores", blocks)] if blocks else []


def _make_signature_section(run: Run) -> Section:
    """State the command, versions and samples of a run, and the command that replays it."""
    info, versions = run.info, run.info.get("versions", {})
    made_with = ", ".join(f"{name} {version}" for name, version in versions.items())
    sources = "; ".join(f"{name}: {bench.source}" for name, bench in run.benchmarks.items())
    text = (
        f"`{info.get('command', '')}`\n\nMade with {made_with}. Samples: {sources}. Run: {run.folder.name}. "
        f"The same answers again, without a model: `pytest ... --replay {run.folder.name}`."
    )
    return Section("Signature", [Passage("", text)])


MOST_SLICES = 5  # Maximum number of slices (questions with one tag value) that are shown, greatest losses first.
MOST_FLIPS = 12  # Maximum number of changed cases that are shown, greatest losses first.


def make_baseline_section(comparison: BaselineComparison) -> Section:
    """Build the report's section that compares the run with a baseline."""
    words = {"no worse": "✅ no worse", "worse": "❌ worse", "undecided": "undecided"}
    rows: list[list[Cell]] = []
    for subject, result, verdict in comparison.found:
        calibration = result.calibrate(comparison.strictest_confidence)
        rows.append(
            [
                words[verdict],
                str(subject),
                result.n,
                result.baseline,
                result.candidate,
                Estimate(result.difference, result.low, result.high, result.n),
                result.pvalue,
                result.detectable if math.isfinite(result.detectable) else None,
                calibration.equal_fails if calibration else None,
                calibration.loss_fails if calibration else None,
            ]
        )
    columns = parse_columns(
        "verdict | metric | cases: count | baseline: number 4 | now: number 4 | difference with 95% interval: number 4 "
        "| p: pvalue | could have shown (power 80%): number 4 | equal models fail (%): percent | the loss fails (%): "
        "percent"
    )
    left_out = [
        f"Left out: {write_count(len(cases), 'case')} {side} ({', '.join(cases[:5])}{', ...' * (len(cases) > 5)})."
        for side, cases in comparison.left_out.items()
        if cases
    ]
    not_compared = [f"Not compared: {subject}; {reason}." for subject, reason in comparison.not_compared.items()]
    note = (
        f"Paired by question, epochs averaged. `no worse`: a loss of {comparison.rules.margin:g} of the metric's range "
        "or more is excluded. `worse`: a loss is shown. `undecided`: neither; more cases would tell. Corrected for the "
        "number of rows, as far as they differ. The last two columns put candidates through the same verdict that are "
        "drawn from these pairs: equal models by exchanging the runs, and models that lost what matters."
    )
    note = " ".join((note, *left_out, *not_compared, *(f"{line}." for line in comparison.remarks)))
    shown = Table("", columns, rows, note) if rows else Passage("", note)
    details = (_tabulate_slices_with_losses(comparison), _tabulate_changed_cases(comparison))
    return Section(f"Against {comparison.name}", [shown, *(table for table in details if table.rows)])


def _tabulate_slices_with_losses(comparison: BaselineComparison) -> Table:
    lost = [each for each in comparison.slices if each.loss > 0]
    rows: list[list[Cell]] = [
        [f"{each.tag}={each.value}", str(each.subject), each.n, each.before, each.after, each.pvalue]
        for each in lost[:MOST_SLICES]
    ]
    columns = parse_columns(
        "slice | metric | questions: count | baseline: number 3 | now: number 3 | p, corrected: pvalue"
    )
    note = f"Corrected by Holm's method for all {len(comparison.slices)} slices that were looked at."
    return Table("Slices that lost most", columns, rows, note)


def _tabulate_changed_cases(comparison: BaselineComparison) -> Table:
    rows: list[list[Cell]] = [
        [flip.case, str(flip.subject), flip.before, flip.after] for flip in comparison.flips[:MOST_FLIPS]
    ]
    columns = parse_columns("case | metric | baseline: number 3 | now: number 3")
    more = len(comparison.flips) - len(rows)
    note = f"{more} more changed." if more > 0 else ""
    return Table("Cases that changed, the greatest losses first", columns, rows, note)
