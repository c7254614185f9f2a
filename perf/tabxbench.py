"""Compare table metrics with TabXBench's rankings of changed tables.

    python perf/tabxbench.py FOLDER

FOLDER is `tabxbench` of the repository CoRAL-ASU/TabXEval (MIT): `tables.json` has five changed copies of each table,
and `gold_ranking.json` has five digits per table (paper: arXiv 2505.22176). The files do not state how the digits are
read: as copies from best to worst, or as the rank of each copy. So both readings are shown; the first fits the tables
better. Nothing in evalsuite is fitted to these rankings.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

from evalsuite.core.errors import ScoringError
from evalsuite.metaeval.agreement import FIRST, METRICS
from evalsuite.output.reports.markdown import render_table
from evalsuite.output.reports.section import Cell, Column, Table
from evalsuite.results.tally import Estimate
from evalsuite.stats import bootstrap_interval, kendall, spearman

OTHERS = ("teds", "teds_structure", "grits_content", "grits_topology", "rms", "cell_f1")
COPIES = 5
Measure = Callable[[Sequence[float], Sequence[float]], float]
Scores = dict[str, list[list[float]]]  # By metric, then by table, then by copy.


def share_ordered_right(scores: Sequence[float], ranks: Sequence[float]) -> float:
    """Compute the share of pairs that the scores order as the ranks do; a tie counts half."""
    pairs = [(one, two) for one in range(len(ranks)) for two in range(len(ranks)) if ranks[one] < ranks[two]]
    return fmean(1.0 if scores[one] > scores[two] else 0.5 * (scores[one] == scores[two]) for one, two in pairs)


MEASURES: dict[str, Measure] = {
    "Kendall within": lambda scores, ranks: -kendall(scores, ranks).statistic,
    "Spearman within": lambda scores, ranks: -spearman(scores, ranks).statistic,
    "Pairs ordered right": share_ordered_right,
}


def read_copies_best_first(digits: str) -> list[float]:
    first = min(map(int, digits))  # Some rankings count from 0, others from 1.
    return [float(digits.index(str(copy + first))) for copy in range(len(digits))]


def read_ranks_of_copies(digits: str) -> list[float]:
    return [float(digit) for digit in digits]


READINGS = {"copies from best to worst": read_copies_best_first, "the rank of each copy": read_ranks_of_copies}


def score_copies(name: str, table: dict[str, str]) -> list[float]:
    """Score each copy; 0 if the metric cannot compare the two tables."""
    scores = []
    for copy in range(COPIES):
        try:
            scores.append(METRICS[name](table[f"pertubation{copy}"], table["original"], "markdown"))
        except ScoringError as error:
            sys.stderr.write(f"{name}, copy {copy} of {table['original'][:40]!r}: {error}\n")
            scores.append(0.0)
    return scores


def measure(scores: Scores, gold: Sequence[str], read: Callable[[str], list[float]]) -> dict[str, list[list[float]]]:
    """Return each metric's agreement with each ranking, one list per entry of `MEASURES`."""
    ranks = list(map(read, gold))
    return {
        name: [[_compare(*pair) for pair in zip(column, ranks, strict=True)] for _compare in MEASURES.values()]
        for name, column in scores.items()
    }


def estimate_mean(values: Sequence[float]) -> Estimate | None:
    known = [0.0 if math.isnan(value) else value for value in values]  # NaN: the metric gives all copies one score.
    interval = bootstrap_interval(known)
    return Estimate.of(fmean(known), interval.low, interval.high)


def tabulate(found: dict[str, list[list[float]]], title: str) -> Table:
    rows: list[list[Cell]] = [[name, *map(estimate_mean, columns)] for name, columns in found.items()]
    for name in OTHERS:
        pairs = zip(found[FIRST], found[name], strict=True)
        differences = [[one - two for one, two in zip(*pair, strict=True)] for pair in pairs]
        rows.append([f"{FIRST} minus {name}", *map(estimate_mean, differences)])
    columns = [Column("Metric"), *(Column(name, "number", 3) for name in MEASURES)]
    return Table(title, columns, rows, "95% intervals by bootstrap over references; differences are paired.")


def main(folder: Path) -> int:
    tables, gold = (json.loads((folder / name).read_text("utf-8")) for name in ("tables.json", "gold_ranking.json"))
    if [table["original"] for table in tables] != [line["original"] for line in gold]:
        sys.stderr.write("tables.json and gold_ranking.json have different tables\n")
        return 2
    rankings = [line["rankings"] for line in gold]
    scores = {name: [score_copies(name, table) for table in tables] for name in (FIRST, "table_content", *OTHERS)}
    for reading, read in READINGS.items():
        title = f"{len(tables)} references; the digits are {reading}"
        print(render_table(tabulate(measure(scores, rankings, read), title)), end="\n\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
