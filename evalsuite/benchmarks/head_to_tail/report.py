"""Head-to-Tail's section of the report: accuracy, hallucination and missing answers by rule, domain and popularity."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from evalsuite import stats
from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS, DOMAINS, is_shipped_source
from evalsuite.benchmarks.head_to_tail.paper_results import (
    compare_with_published,
    list_models,
    list_published_tuning_effects,
    make_published_table,
    read_published_rates,
)
from evalsuite.benchmarks.head_to_tail.prompts import DEFAULT_MODE
from evalsuite.core.errors import write_count
from evalsuite.decisions.measured import select_cases
from evalsuite.metrics.text import normalise_answer
from evalsuite.output.reports.section import (
    Block,
    Cell,
    Chart,
    Column,
    Passage,
    Section,
    Series,
    Table,
    parse_columns,
    split_by_mode,
)
from evalsuite.results.tally import Estimate, Row, RunView, Tally, estimate_clustered_mean

TITLE = "Head-to-Tail: what is known of the popular and of the rest"
PREFACE = (
    "Accuracy A is the share of questions answered right, M the share left unanswered or answered "
    '"unsure", and H = 100 - A - M what was made up. Brackets hold 95% intervals.'
)
# Suffixes of score names, keyed by the rule or judge that decides whether an answer is right.
_RULES = {"exact match": "_em", "token F1": "_f1", "ROUGE-L": "_rl"}
VERDICTS = {"judge": "_lm", **_RULES}
_RATES = ("accuracy", "hallucination", "missing")
MakeCells = Callable[[Tally], Sequence[Cell]]
RATES = "Questions: count | Accuracy: percent | Hallucination: percent | Missing: percent"


def make_report(views: Sequence[RunView]) -> Section:
    """Build the section for one run, or for several runs side by side."""
    lines = split_by_mode(views, name_run=False)
    found = {domain for line in lines for domain in line.tally.groups("domain")}
    domains = [*filter(found.__contains__, DOMAINS), *sorted(found.difference(DOMAINS))]
    tags = {"Popularity": ("bucket", BUCKETS), "Domain": ("domain", domains)}
    several = len(lines) > 1
    labels = [Column("Run" if len(views) > 1 else "Mode")] if several else []
    rates = parse_columns(RATES)

    def tabulate(title: str, heading: str, make_cells: MakeCells, columns: Sequence[Column] = rates) -> Table:
        """Make a table with a row per value of a tag and run or, if there is only one run, per value and mode."""
        tag, values = tags[heading]
        parts = [(value, line.label, line.tally.where(None, **{tag: value})) for value in values for line in lines]
        rows = [[value, *([label] if several else []), *make_cells(tally)] for value, label, tally in parts]
        return Table(title, [Column(heading), *labels, *columns], rows)

    by_verdict = [
        [verdict, *([line.label] if several else []), *_make_rate_cells(line.tally, suffix)]
        for verdict, suffix in VERDICTS.items()
        for line in lines
    ]
    by_rule = [Column(f"{rate}, {rule}", "percent") for rule in _RULES for rate in "AH"]
    blocks: list[Block] = [
        _make_preface(views, lines),
        Table("Right, made up, missing", [Column("Right by"), *labels, *rates], by_verdict),
        tabulate("By popularity", "Popularity", _make_rate_cells),
        tabulate("By domain", "Domain", _make_rate_cells),
        tabulate("By popularity and rule", "Popularity", _make_rule_cells, by_rule),
        *(
            tabulate(
                f"{rate.capitalize()} by domain and popularity",
                "Domain",
                partial(_estimate_rate_by_bucket, rate=rate),
                [Column(bucket, "percent") for bucket in BUCKETS],
            )
            for rate in _RATES[:2]
        ),
        _draw_figure(lines, domains),
        *make_study_blocks(views, only_shipped=all(is_shipped_source(view.source) for view in views)),
    ]
    return Section(TITLE, blocks)


def _make_preface(views: Sequence[RunView], lines: Sequence[RunView]) -> Passage:
    sentences = [PREFACE]
    sentences += [f"Questions of {view.label}: {view.source or 'not recorded'}." for view in views]
    deciders: dict[str, list[str]] = {}
    for line in lines:
        decider = f"the judge {line.judge or 'of the run'}" if line.tally.values("accuracy_lm") else "exact match"
        deciders.setdefault(decider, []).append(line.label)
    for decider, labels in deciders.items():
        where = f" for {', '.join(labels)}" if len(deciders) > 1 else ""
        sentences.append(f"Right is what {decider} says{where}.")
    for line in lines:
        if lost := sum(row.outcome == "error" for row in line.tally):
            sentences.append(f"{line.label}: errors in {lost} of {write_count(len(line.tally), 'case')}, left out.")
    return Passage("", "\n\n".join(sentences))


def _make_rate_cells(tally: Tally, suffix: str = "") -> list[Cell]:
    """Return the number of scored questions, then accuracy, hallucination and missing answers as shares."""
    accuracy = f"accuracy{suffix}"
    scored = tally.scored(accuracy)
    return [len(scored), *(scored.share(rate) for rate in (accuracy, f"hallucination{suffix}", "missing"))]


def _make_rule_cells(tally: Tally) -> list[Cell]:
    """Make the table cells of accuracy and hallucination for each rule, as in the paper's Table 14."""
    return [cell for suffix in _RULES.values() for cell in _make_rate_cells(tally, suffix)[1:3]]


def _draw_figure(lines: Sequence[RunView], domains: Sequence[str]) -> Chart:
    """Draw the paper's Figure 1; if it has a single curve, add a curve per domain, without intervals."""
    series = [Series(line.label, _estimate_rate_by_bucket(line.tally, "accuracy")) for line in lines]
    if len(lines) == 1:
        for domain in domains:
            estimates = _estimate_rate_by_bucket(lines[0].tally.where(domain=domain), "accuracy")
            series.append(Series(domain, [each and each.value for each in estimates]))
    name, title = "head_to_tail_by_popularity", "Accuracy from head to tail"
    return Chart("lines", name, title, BUCKETS, series, "percent", (0.0, 1.0), "popularity", "accuracy")


def _estimate_rate_by_bucket(tally: Tally, rate: str) -> list[Estimate | None]:
    return [tally.where(bucket=bucket).estimate(rate) for bucket in BUCKETS]


# The paper's studies. Each function below returns a table, or None if the runs lack the needed data. Comparing rules
# with the judge needs several runs, stability needs several epochs, and prompts need several modes. The tables of very
# popular entities and of predicates need files that only `evalsuite build` writes.

# Domains in the table of natural questions; like the paper, it leaves out the open domain.
_NATURAL_DOMAINS = ("movie", "book", "academics")
_FEWEST_RUNS = 3  # With only two runs, every correlation would be 1 or -1.


def make_study_blocks(views: Sequence[RunView], *, only_shipped: bool) -> list[Block]:
    """Make the tables of those studies for which the runs have data; add the paper's results unless `only_shipped`."""
    tables = (
        compare_rules_with_judge(views),
        tabulate_answer_stability(views),
        compare_modes_with_default(views),
        compare_runs_with_first(views, only_shipped=only_shipped),
        tabulate_top_tenth_of_head(views),
        tabulate_predicates(views),
        tabulate_natural_questions(views, only_shipped=only_shipped),
    )
    blocks: list[Block] = [table for table in tables if table]
    if not only_shipped:
        for line in split_by_mode(views, name_run=True):
            judge = (line.judge or "a judge") if line.tally.values("accuracy_lm") else None
            blocks += compare_with_published(line.label, line.tally, judge)
        blocks.append(make_published_table())
    return blocks


def compare_rules_with_judge(views: Sequence[RunView]) -> Table | None:
    """Compare rules and the judge in ranking and rating models (Table 8); None for fewer than three judged runs.

    For each domain and popularity bucket, the runs' rates by a rule are correlated (Spearman, Pearson) with their rates
    by the judge. The table shows the minimum and the mean of these correlations over domains and buckets. If all runs
    have equal rates, no correlation is computed. A run in several modes counts once, with its default mode, because its
    modes share one model.
    """
    judged = [tally for tally in map(_select_default_mode_cases, views) if tally.values("accuracy_lm")]
    if len(judged) < _FEWEST_RUNS:
        return None
    rows: list[list[Cell]] = [
        [rate.capitalize(), rule, *_summarise_correlations(judged, f"{rate}_lm", f"{rate}{suffix}")]
        for rate in ("accuracy", "hallucination")
        for rule, suffix in _RULES.items()
    ]
    heads = ("Spearman, least", "Spearman, mean", "Pearson, least", "Pearson, mean")
    columns = parse_columns("Rate | By rule | Combinations: count", heads, "number 3")
    note = (
        f"Over {len(judged)} runs, for each combination of domain and popularity. The paper has, over 16 "
        "models, means of 0.92 to 0.95 and 0.97 for accuracy, 0.99 to 1.00 for hallucination (Table 8)."
    )
    return Table("Rule against judge", columns, rows, note)


def tabulate_answer_stability(views: Sequence[RunView]) -> Table | None:
    """Count questions whose answers change between epochs (section 3.5), ignoring case, punctuation and articles."""
    rows: list[list[Cell]] = []
    for view in views:
        for mode, tally in _group_cases_by_mode(view).items():
            by_sample: dict[str, list[Row]] = defaultdict(list)
            for row in tally.scored("accuracy"):
                by_sample[row.sample].append(row)
            if repeated := [asked for asked in by_sample.values() if len(asked) > 1]:
                # Read one question's transcripts at a time, because those of a whole run may not fit into memory.
                given = ([view.read(row.case).transcript for row in asked] for asked in repeated)
                differ = [len({normalise_answer(each.answer if each else "") for each in texts}) > 1 for texts in given]
                verdicts = [len({row.scores["accuracy"] for row in asked}) > 1 for asked in repeated]
                clusters = [asked[0].cluster for asked in repeated]
                sides = (zip(map(float, side), clusters, strict=True) for side in (differ, verdicts))
                shares = map(estimate_clustered_mean, sides)
                rows.append([view.label, mode, len(repeated), max(map(len, repeated)), *shares])
    heads = "Run | Mode | Questions: count | Epochs: count | Answers differ: percent | Verdicts differ: percent"
    note = (
        "Only questions that were asked in several epochs. The paper saw ChatGPT change 18% of its answers when "
        "asked neither to be brief nor to say unsure (mode neither), 4% when only asked to be brief (brief_only), and "
        "1% when asked for both with examples (few_shot)."
    )
    return _make_run_table("Stability of answers", heads, rows, note)


def compare_modes_with_default(views: Sequence[RunView]) -> Table | None:
    """Compare the rates of each mode with the default mode's on the same questions (Table 9)."""
    rows: list[list[Cell]] = []
    for view in views:
        modes, first = _group_cases_by_mode(view), _select_default_mode_cases(view)
        for bucket in (None, *BUCKETS) if len(modes) > 1 else ():
            for mode, tally in modes.items():
                part, base = (select_cases(each, "bucket", bucket) for each in (tally, first))
                changes = [None if tally == first else _compute_paired_change(base, part, rate) for rate in _RATES[:2]]
                rows.append([view.label, bucket or "all", mode, *_make_rate_cells(part), *changes])
    changes_heads = " | ".join(f"{rate} against {DEFAULT_MODE}: percent" for rate in "AH")
    note = (
        "The paper reports of ChatGPT that zero-shot prompts change little, that in-domain examples raise accuracy "
        "and hallucination by 6 to 10 points each (Table 9), that without leave to be unsure hallucination rises by "
        "13 points (section 3.5), and that gaps instead of questions change little: 50.8, 46.1 and 6.8% right in "
        "place of 51.3, 46.4 and 6.4% of head, torso and tail movies (Table 11). Asked for its best guess about the "
        "top tenth of the head's movies, GPT-4 had 68.8% right and 16.7% made up in place of 63.5 and 13.5% (Table 13)."
    )
    return _make_run_table("Robustness of prompts", f"Run | Popularity | Mode | {RATES} | {changes_heads}", rows, note)


def compare_runs_with_first(views: Sequence[RunView], *, only_shipped: bool) -> Table | None:
    """Compare each run with the first run, per mode, on the questions of both (Table 7); None if they share none."""
    rows: list[list[Cell]] = []
    first = _group_cases_by_mode(views[0])
    for view in views[1:]:
        own = _group_cases_by_mode(view)
        mode = next((each for each in (DEFAULT_MODE, *first) if each in first and each in own), None)
        for bucket in (None, *BUCKETS) if mode is not None else ():
            base, part = (select_cases(modes[mode or ""], "bucket", bucket) for modes in (first, own))
            if any(changes := [_compute_paired_change(base, part, rate) for rate in _RATES]):
                rows.append([f"{view.label} against {views[0].label}", bucket or "all", *changes])
    if rows and not only_shipped:
        rows += list_published_tuning_effects()
    columns = parse_columns("Runs | Popularity", (f"{rate} against it" for rate in "AHM"))
    note = (
        "Each run minus the first, on the same questions. With a base model as the first run and its instruction-tuned "
        "model as the second, this is the paper's Table 7. The published differences are of 18,171 questions."
    )
    return Table("Models on the same questions", columns, rows, note) if rows else None


def tabulate_top_tenth_of_head(views: Sequence[RunView]) -> Table | None:
    """Tabulate the most popular tenth of the head (Tables 5 and 12); None if the questions are not sorted."""
    rows: list[list[Cell]] = []
    for line in split_by_mode(views, name_run=True):
        top = line.tally.where(top="10%")
        for domain in (None, *top.groups("domain")) if len(top) else ():
            part, head = (select_cases(each, "domain", domain) for each in (top, line.tally.where(bucket="head")))
            own, others = part.mean("accuracy"), head.mean("accuracy")
            gain = None if own is None or others is None else own - others
            rows.append([line.label, domain or "all", *_make_rate_cells(part), gain])
    note = (
        "The paper has 46.0% for GPT-4 (5.7 points above its whole head) and 18.7% for Llama 2 (2.5 points "
        "above), so great popularity helps little (Table 5)."
    )
    return _make_run_table(
        "The top tenth of the head", f"Run | Domain | {RATES} | A against the head: percent", rows, note
    )


def tabulate_predicates(views: Sequence[RunView]) -> Table | None:
    """Show how accuracy depends on the predicate's popularity (Table 6); None if the popularity is unknown."""
    rows: list[list[Cell]] = [
        [line.label, bucket, *_make_rate_cells(line.tally.where(predicate=f"{bucket} predicate"))]
        for line in split_by_mode(views, name_run=True)
        if line.tally.groups("predicate")
        for bucket in BUCKETS
    ]
    note = "The paper found no common pattern over models (Table 6, where head and torso are one)."
    return _make_run_table("Predicates by their own popularity", f"Run | Predicates | {RATES}", rows, note)


def tabulate_natural_questions(views: Sequence[RunView], *, only_shipped: bool) -> Table | None:
    """Tabulate rates on natural questions (Table 10); None if no run also has other questions."""
    rows: list[list[Cell]] = []
    for line in split_by_mode(views, name_run=True):
        kinds = line.tally.groups("natural")
        if len(kinds) > 1:
            parts = [kinds["yes"].where(domain=domain) for domain in _NATURAL_DOMAINS]
            rows.append([line.label, *(part.estimate(rate) for part in parts for rate in _RATES[:2])])
    if rows and not only_shipped:
        names = [f"{rate}_{domain}" for domain in _NATURAL_DOMAINS for rate in "AH"]
        published = read_published_rates("table_10")
        rows += [[f"{model} (published)", *map(published["all", model].get, names)] for model in list_models()]
    columns = parse_columns("Run", (f"{rate}, {domain}" for domain in _NATURAL_DOMAINS for rate in "AH"))
    note = (
        "Without identifiers and other facts that people look up rather than know; the paper does not list what it "
        "leaves out (Table 10)."
    )
    return Table("Natural questions", columns, rows, note) if rows else None


def _group_cases_by_mode(view: RunView) -> dict[str, Tally]:
    return view.tally.groups("mode") or {"": view.tally}


def _select_default_mode_cases(view: RunView) -> Tally:
    modes = _group_cases_by_mode(view)
    return modes.get(DEFAULT_MODE) or next(iter(modes.values()))


def _make_run_table(title: str, heads: str, rows: list[list[Cell]], note: str) -> Table | None:
    """Make a table whose first column is the run; drop this column if there is a single run."""
    first = int(len({row[0] for row in rows}) == 1)
    return Table(title, parse_columns(heads)[first:], [row[first:] for row in rows], note) if rows else None


def _summarise_correlations(judged: Sequence[Tally], judge_metric: str, rule_metric: str) -> list[Cell]:
    """Return the number of correlations, and the minimum and mean of each coefficient (Spearman, Pearson)."""
    pairs = []
    for domain in sorted({domain for tally in judged for domain in tally.groups("domain")}):
        for bucket in BUCKETS:
            parts = [tally.where(domain=domain, bucket=bucket) for tally in judged]
            rates = [(part.mean(judge_metric), part.mean(rule_metric)) for part in parts]
            both = [(judge, rule) for judge, rule in rates if judge is not None and rule is not None]
            if len(both) >= _FEWEST_RUNS:
                pairs.append(([judge for judge, _ in both], [rule for _, rule in both]))
    cells: list[Cell] = []
    for correlation in (stats.spearman, stats.pearson):
        values = [value for pair in pairs if not math.isnan(value := correlation(*pair).statistic)]
        cells += [min(values), sum(values) / len(values)] if values else [None, None]
    return [len(values), *cells]


def _compute_paired_change(base: Tally, part: Tally, rate: str) -> Estimate | None:
    """Compute how a rate changes from `base` to `part` on their common questions; None if they share no question."""
    before, after = ({(row.question[0], row.epoch): row for row in tally.scored(rate)} for tally in (base, part))
    pairs = [(row, after[question]) for question, row in before.items() if question in after]
    if not pairs:
        return None
    clusters = [row.cluster for row, _ in pairs]
    change = stats.paired_difference(
        [one.scores[rate] for one, _ in pairs], [other.scores[rate] for _, other in pairs], clusters=clusters, scale=1
    )
    # If all questions are about a single entity, give no interval.
    low, high = (change.low, change.high) if len(set(clusters)) > 1 else (None, None)
    return Estimate(change.difference, low, high, len(pairs))
