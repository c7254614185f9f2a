"""The paper's results for its 16 models, and the comparison of a run's results with the paper's results.

Source: Sun et al. 2024 (arXiv 2308.10168v2), Tables 2, 10 and 14; Tables 3, 4 and 7 are parts of Table 14.
`published/*.csv` contains percentages as printed, which this module converts to shares.

The paper's own questions were never published. A run is comparable if it uses the paper's prompt and the paper's mix of
questions (Table 2). The mix is the number of templates and of questions per domain. Head, torso and tail questions are
equally frequent. `evalsuite build head-to-tail --mix paper` makes questions in the paper's mix.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evalsuite import stats
from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.output.reports.section import Block, Cell, Passage, Table, parse_columns
from evalsuite.results.tally import Estimate, Tally

JUDGE, MODE = "gpt-3.5-turbo-0301", "paper"  # The judge and the mode of the paper's main results.


@dataclass(frozen=True, slots=True)
class DomainMix:
    """A domain's numbers of templates and questions in the paper (Table 2)."""

    templates: int
    questions: int
    leeway: float = 0.05  # The share by which the numbers of a comparable run may deviate.


# DBpedia has a larger leeway, because the paper's own templates are unknown; the 435 published templates are by another
# model.
PAPER_MIX = {
    "open": DomainMix(393, 9132, leeway=0.12),
    "movie": DomainMix(13, 3093),
    "book": DomainMix(4, 3000),
    "academics": DomainMix(13, 2946),
}


def list_mix_differences(tally: Tally, domain: str) -> list[str]:
    """Describe how one domain's questions, including those that ended in errors, deviate from the paper's mix."""
    mix, tags = PAPER_MIX[domain], list({row.sample: row.tags for row in tally.where(domain=domain)}.values())
    if not tags:
        return [f"nothing is asked about {domain}"]
    differences = []
    templates = len({each.get("template") for each in tags})
    if abs(templates - mix.templates) > mix.leeway * mix.templates:
        differences.append(f"{templates:,} templates of {domain} questions instead of {mix.templates:,}")
    if abs(len(tags) - mix.questions) > mix.leeway * mix.questions:
        differences.append(f"{len(tags):,} {domain} questions instead of {mix.questions:,}")
    shares = [sum(each.get("bucket") == bucket for each in tags) for bucket in BUCKETS]
    if max(shares) - min(shares) > mix.leeway * max(shares):
        counts = ", ".join(f"{count:,} {bucket}" for count, bucket in zip(shares, BUCKETS, strict=True))
        differences.append(f"{domain} questions are {counts} instead of equally many")
    return differences


_TUNING_PAIRS = (("LLaMA", "Vicuna", "7B", "13B"), ("Falcon", "Falcon-Instruct", "7B", "40B"))
_NOTE = (
    "arXiv 2308.10168, Table 14: answers of 2023 to the authors' 18,171 questions, judged by ChatGPT. A dash: not "
    "reported."
)


@cache
def read_published_rates(table: str) -> Mapping[tuple[str, str], Mapping[str, float]]:
    """Read `table_14`, or `table_10` on natural questions only, by popularity (`all` or a bucket) and model.

    The rates are shares, such as `A_LM`, `H_EM`, `M` and `A_movie`; rates that the paper does not report are left out.
    """
    with (Path(__file__).parent / "published" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row.pop("popularity", "all"), row.pop("model")): {
                name: round(float(text) / 100, 6) for name, text in row.items() if text
            }
            for row in csv.DictReader(file)
        }


def list_models() -> list[str]:
    """List the paper's 16 models in the paper's order."""
    return [model for popularity, model in read_published_rates("table_14") if popularity == "all"]


def list_published_tuning_effects() -> list[list[Cell]]:
    """List how instruction tuning changes the paper's accuracy, hallucination and missing rate, by popularity."""
    pairs = [(f"{base} ({size})", f"{tuned} ({size})") for base, tuned, *sizes in _TUNING_PAIRS for size in sizes]
    rates = read_published_rates("table_14")
    return [
        [
            f"{tuned} against {base} (published)",
            part,
            *(rates[part, tuned][rate] - rates[part, base][rate] for rate in ("A_LM", "H_LM", "M")),
        ]
        for base, tuned in pairs
        for part in ("all", *BUCKETS)
    ]


def compare_with_published(label: str, tally: Tally, judge: str | None) -> list[Block]:
    """Compare the accuracy of one run and mode with the paper's; `judge` is None if the run has no judge."""
    by_domain = {domain: list_mix_differences(tally, domain) for domain in PAPER_MIX}
    differing = [text for differences in by_domain.values() for text in differences]
    mode = next((row.tags.get("mode", "") for row in tally), "")
    if mode != MODE:
        differing.append(f"asked by the mode {mode or 'of its own'}, not by the paper's Prompt 3")
    # Compare even if the judges differ, because the paper's judge has been retired.
    if judge is None:
        differing.append("decided by exact match, and compared with the paper's exact match")
    elif judge != JUDGE:
        differing.append(f"judged by {judge}, not by {JUDGE}")
    passage = Passage("", f"How {label} differs from the paper's own runs: {'; '.join(differing) or 'nothing'}.")
    similar = [domain for domain, differences in by_domain.items() if not differences and mode == MODE]
    if not similar:
        return [passage]
    parts = ["all", *similar] if len(similar) == len(PAPER_MIX) else similar
    if judge is None:
        parts = [part for part in parts if part == "all"]  # The paper has no results by domain for exact match.
    rows = [
        [model, *(_estimate_accuracy_gap(tally, part, model, judged=judge is not None) for part in parts)]
        for model in list_models()
    ]
    columns = parse_columns("Model (published)", (f"A against it, {part}" for part in parts))
    note = (
        f"Accuracy of {label} minus the published one, with 95% intervals for different questions that are drawn in "
        "the same way."
    )
    return [Table("Against the published results", columns, rows, note), passage]


def _estimate_accuracy_gap(tally: Tally, domain: str, model: str, *, judged: bool) -> Cell:
    """Estimate the run's accuracy minus the model's published accuracy; None without an interval."""
    cases = tally if domain == "all" else tally.where(domain=domain)
    own = cases.estimate("accuracy_lm" if judged else "accuracy_em")
    if own is None or own.low is None or own.high is None:
        return None
    whole = sum(mix.questions for name, mix in PAPER_MIX.items() if domain in {"all", name})
    theirs = read_published_rates("table_14")["all", model][
        ("A_LM" if judged else "A_EM") if domain == "all" else f"A_{domain}"
    ]
    around = stats.wilson_interval(theirs * whole, whole)
    low, high = stats.unpaired_difference(own.value, stats.Interval(own.low, own.high), theirs, around)
    return Estimate(own.value - theirs, low, high, own.n)


def make_published_table() -> Table:
    """Make the paper's Table 14, over all questions and by popularity, and mark it as published."""
    rules = {"EM": "exact match", "F1": "token F1", "RL": "ROUGE-L", "LM": "judge"}
    pairs = [(rate, part) for part in (*rules, *PAPER_MIX) for rate in "AH"]
    names = [*(f"{rate}_{part}" for rate, part in pairs), "M"]
    titles = [*(f"{rate}, {rules.get(part, part)}" for rate, part in pairs), "Missing"]
    rows: list[list[Cell]] = [
        [model, part, *map(read_published_rates("table_14")[part, model].get, names)]
        for part in ("all", *BUCKETS)
        for model in list_models()
    ]
    columns = parse_columns("Model (published) | Popularity", titles)
    return Table("Published results", columns, rows, _NOTE, folded=True)
