"""What the statistics promise, beside what they do in simulation: the table in perf/README.md.

    python perf/statistical_promises.py                # some minutes on one core
    python perf/statistical_promises.py --runs 200     # a first look

Every line is a setting in which the usual method goes wrong. `promised` is the coverage, or the share of wrong
decisions, that the method states; `simulated` is that of the method in use, `usual` that of the common one.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
from typing import TYPE_CHECKING

import numpy as np

from evalsuite import stats
from evalsuite.decisions.comparison import ComparedMetric
from evalsuite.decisions.early_stops import EarlyComparison, EarlyDecider, ResultSequencer, compute_final_confidence
from evalsuite.decisions.gates import parse_gate
from evalsuite.results.judge_labels import estimate_rho
from evalsuite.results.tally import Row
from evalsuite.stats.clustering import compute_jackknife_interval
from evalsuite.stats.correlation import compute_coefficient_replicates
from evalsuite.stats.power import DifferenceVariance, compute_dispersion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalsuite.stats.inputs import Array

    Line = tuple[str, str, str, str]

SEED = 20260101


def share(count: int, runs: int) -> str:
    return f"{count / runs:.1%}"


def fast_right_answers(runs: int) -> Iterator[Line]:
    """400 cases, 45% right, right ones forty times as fast, eight workers, a gate at 0.5 with an early stop."""
    wrong = {"planned": 0, "arrival": 0}
    for seed in range(runs // 4):
        rng = random.Random(seed)
        ids = [str(number) for number in range(400)]
        right = {item: rng.random() < 0.45 for item in ids}
        clocks, arrivals = [0.0] * 8, []
        for position, item in enumerate(ids):
            clocks[position % 8] += rng.expovariate(1) * (1 if right[item] else 40)
            arrivals.append((clocks[position % 8], item))
        heard = [item for _, item in sorted(arrivals)]
        for name, planned in (("planned", ids), ("arrival", heard)):
            order: ResultSequencer[str] = ResultSequencer(planned)
            stop = EarlyDecider([parse_gate("b.right >= 0.5")])
            for arriving in heard:
                for item in order.add_result(arriving, arriving):
                    stop.add_case("b", Row(item, item, 1, "passed", {}, {"right": float(right[item])}))
            wrong[name] += stop.gates[0].verdict == "met"
    done = runs // 4
    yield (
        "early stop, right answers fast: decided wrongly",
        "at most 5%",
        share(wrong["planned"], done),
        share(wrong["arrival"], done),
    )


def going_on(runs: int) -> Iterator[Line]:
    """A gate `@95%` on its very threshold: 20 cases and on to 300, for which the money lasts: falsely met.

    Beside it a run that looks at the ordinary interval after every ten cases.
    """
    gate, met, usual = parse_gate("b.right >= 0.8 @95%"), 0, 0
    for seed in range(runs):
        rng, stop = random.Random(seed), EarlyDecider([gate])
        rows = [
            Row(str(number), str(number), 1, "passed", {}, {"right": float(rng.random() < 0.8)})
            for number in range(300)
        ]
        for row in rows:
            stop.add_case("b", row)
        values = [row.scores["right"] for row in rows]
        met += (
            stop.gates[0].verdict == "met"
            if stop.decided
            else stats.share_interval(values, confidence=compute_final_confidence(0.95)).low >= 0.8
        )
        usual += any(stats.share_interval(values[:seen]).low >= 0.8 for seen in range(20, 301, 10))
    yield (
        "going on from 20 to 300 cases while a gate is open: falsely met",
        "at most 2.5%",
        share(met, runs),
        share(usual, runs),
    )


def going_on_against_a_baseline(runs: int) -> Iterator[Line]:
    """A model that lost exactly the margin of 10%, asked up to 400 questions: called no worse."""
    subject = ComparedMetric("b", None, None, "right", lower_is_better=False)
    passed = usual = 0
    for seed in range(runs // 4):
        rng = random.Random(seed)
        before = {str(number): float(rng.random() < 0.8) for number in range(400)}
        lost = {name: right if rng.random() > 0.125 else 0.0 for name, right in before.items()}
        one = EarlyComparison(
            "base", subject, {(name, ""): (right, {}) for name, right in before.items()}, 1.0, 0.1, 1.0
        )
        called = False
        for seen, (name, right) in enumerate(lost.items(), 1):
            if one.verdict == "open":
                one.add_case("b", Row(name, name, 1, "passed", {}, {"right": right}))
            if seen >= 20 and seen % 20 == 0 and not called:
                called = _no_worse(list(before.values())[:seen], list(lost.values())[:seen], 0.95)
        usual += called
        passed += (
            one.verdict == "no worse"
            if one.verdict != "open"
            else _no_worse(list(before.values()), list(lost.values()), compute_final_confidence(0.95))
        )
    yield (
        "going on from 20 to 400 questions against a baseline, the margin lost: no worse",
        "at most 2.5%",
        share(passed, runs // 4),
        share(usual, runs // 4),
    )


def _no_worse(before: list[float], after: list[float], confidence: float) -> bool:
    compared = stats.compare_paired(before, after, margin=0.1)
    return stats.verdicts([compared], confidence=confidence) == ["no worse"]


def rare_zeros(runs: int) -> Iterator[Line]:
    """Scores of 0.9 with 3% zeros: how often the lower bound is above the truth."""
    rng = np.random.default_rng(SEED)
    for n in (20, 50, 200):
        above = usual = 0
        for _ in range(runs):
            values = np.where(rng.random(n) < 0.03, 0.0, 0.9)
            above += stats.betting_interval(values).low > 0.873
            usual += stats.clustered_mean(values).interval(0.95).low > 0.873
        yield (f"{n} scores of 0.9, 3% zeros: falsely above", "at most 2.5%", share(above, runs), share(usual, runs))


def rare_failures(runs: int) -> Iterator[Line]:
    """Shares near 0: how often a bound excludes the truth on the wrong side."""
    rng = np.random.default_rng(SEED)
    for n in (50, 200):
        hits = rng.binomial(n, 0.02, runs)
        exact = sum(stats.count_interval(int(k), n).low > 0.02 for k in hits)
        usual = sum(stats.wilson_interval(int(k), n).low > 0.02 for k in hits)
        yield (f"{n} cases, 2% hits: lower bound too high", "at most 2.5%", share(exact, runs), share(usual, runs))


def unequal_clusters(runs: int) -> Iterator[Line]:
    """One cluster of 50 cases beside ten of 5: coverage of the mean, beside t with G - 1 degrees of freedom."""
    from scipy.special import stdtrit

    rng = np.random.default_rng(SEED)
    clusters = np.repeat(np.arange(11), [50] + [5] * 10)
    for common in (0.1, 0.3, 1.0):
        covered = usual = 0
        for _ in range(runs):
            shared = rng.normal(size=11)[clusters]
            values = np.sqrt(common) * shared + np.sqrt(1 - common) * rng.normal(size=100)
            estimate = stats.clustered_mean(values, clusters)
            interval = estimate.interval(0.95)
            covered += bool(interval.low <= 0 <= interval.high)
            usual += bool(abs(estimate.mean) <= stdtrit(10, 0.975) * estimate.error)
        yield (
            f"half the cases in one cluster, {common:.0%} in common: coverage",
            "95%",
            share(covered, runs),
            share(usual, runs),
        )


def few_labels(runs: int) -> Iterator[Line]:
    """Prediction-powered means with 1,000 judged answers: the least coverage over 1 to 20% failures."""
    rng = np.random.default_rng(SEED)
    for n in (30, 50, 100, 300):
        least, usual = 1.0, 1.0
        for failing in (0.01, 0.05, 0.1, 0.2):
            covered, plain = 0, 0
            for _ in range(runs):
                right = (rng.random(n + 1000) >= failing).astype(float)
                judged = np.where(rng.random(n + 1000) < 0.3, 1.0, right)
                estimate = stats.ppi_mean(right[:n], judged[:n], judged[n:])
                covered += bool(estimate.low <= 1 - failing <= estimate.high)
                rectified = right[:n] - estimate.tuning * judged[:n]
                reach = 1.96 * float(rectified.var() / n + estimate.tuning**2 * judged[n:].var() / 1000) ** 0.5
                plain += bool(abs(estimate.estimate - (1 - failing)) <= reach)
            least, usual = min(least, covered / runs), min(usual, plain / runs)
        yield (
            f"prediction-powered, {n} labels, 1 to 20% failures: least coverage",
            "at least 93%",
            f"{least:.1%}",
            f"{usual:.1%}",
        )


def corrected_bounds(runs: int) -> Iterator[Line]:
    """Prediction-powered means of shares: how often a bound of 95% excludes the truth, at worst over a grid."""
    rng, grid = np.random.default_rng(SEED), itertools.product((0.9, 0.96, 0.97, 0.98), (0.9, 1.0), (0.5, 0.7))
    worst = {n: [0.0, 0.0] for n in (30, 50, 75, 100, 200, 400)}
    for (passing, sensitivity, specificity), n in itertools.product(list(grid), worst):
        high = low = 0
        for _ in range(runs):
            right = (rng.random(n + 500) < passing).astype(float)
            says = np.where(right == 1, rng.random(n + 500) < sensitivity, rng.random(n + 500) >= specificity)
            found = stats.ppi_mean(right[:n], says[:n].astype(float), says[n:].astype(float))
            high, low = high + (found.low > passing), low + (found.high < passing)
        worst[n] = [max(worst[n][0], high / runs), max(worst[n][1], low / runs)]
    for n, (above, below) in worst.items():
        place = f"prediction-powered, {n} labels, 90 to 98% passes, specificity 50 to 70%"
        yield (f"{place}: lower bound above the truth", "at most 2.5%", f"{above:.1%}", "one guard only: up to 7.8%")
        yield (f"{place}: upper bound below the truth", "at most 2.5%", f"{below:.1%}", "")


def labelled_epochs(runs: int) -> Iterator[Line]:
    """Prediction-powered means of 60 labelled and 120 other samples, each with five equal epochs."""
    rng, labelled, others, epochs = np.random.default_rng(SEED), 60, 120, 5
    clusters = np.repeat(np.arange(labelled + others), epochs)
    cut = labelled * epochs
    covered = usual = 0
    for _ in range(runs):
        passing = rng.uniform(0.5, 0.9)
        right = rng.random(labelled + others) < passing
        says = np.where(right, rng.random(len(right)) < 0.9, rng.random(len(right)) < 0.3)
        truth, judged = (np.repeat(each, epochs).astype(float) for each in (right, says))
        given = truth[:cut], judged[:cut], judged[cut:]
        found = stats.ppi_mean(*given, clusters=(clusters[:cut].tolist(), clusters[cut:].tolist()))
        plain = stats.ppi_mean(*given)
        covered += found.low <= passing <= found.high
        usual += plain.low <= passing <= plain.high
    yield (
        "prediction-powered, 60 labelled samples of five equal epochs: coverage",
        "at least 93%",
        share(covered, runs),
        share(usual, runs),
    )


def moderate_correlations(runs: int) -> Iterator[Line]:
    """Marks from 1 to 5 with rho near 0.6: coverage and mean width of rho's interval, beside the plain jackknife."""
    rng = np.random.default_rng(SEED)

    def marks(n: int) -> tuple[list[float], list[float]]:
        one = rng.standard_normal(n)
        other = 0.65 * one + (1 - 0.65**2) ** 0.5 * rng.standard_normal(n)
        return tuple(np.clip(np.rint(3 + x), 1, 5).tolist() for x in (one, other))

    truth = stats.spearman(*marks(400_000)).statistic
    for n in (30, 60, 120):
        covered, widths, plain, usual = 0, [], 0, []
        for _ in range(runs):
            x, y = marks(n)
            found = estimate_rho(list(zip(x, y, strict=True)))
            interval = compute_jackknife_interval(*compute_coefficient_replicates(x, y, range(n), "spearman"))
            assert found is not None and found.low is not None and found.high is not None  # noqa: PT018 - one condition
            covered, plain = (
                covered + (found.low <= truth <= found.high),
                plain + (interval.low <= truth <= interval.high),
            )
            widths.append(found.high - found.low)
            usual.append(interval.high - interval.low)
        yield (
            f"rho, {n} pairs of marks at {truth:.2f}: coverage and mean width",
            "95%",
            f"{covered / runs:.1%}, {float(np.mean(widths)):.3f}",
            f"{plain / runs:.1%}, {float(np.mean(usual)):.3f}",
        )


def perfect_agreement(runs: int) -> Iterator[Line]:
    """Kappa and rho where raters nearly always agree: how often the lower bound is above the truth."""
    rng = np.random.default_rng(SEED)
    for n, rare, differ in ((20, 0.5, 0.03), (50, 0.5, 0.03), (50, 0.1, 0.03), (100, 0.5, 0.01)):
        above = usual = 0
        mean = rare * (1 - differ) + differ / 2
        truth = 1 - differ / (2 * mean * (1 - mean))
        for _ in range(runs):
            labels, first_says = rng.random(n) < rare, rng.random(n) < 0.5
            apart = rng.random(n) < differ
            a, b = np.where(apart, first_says, labels), np.where(apart, ~first_says, labels)
            above += stats.clustered_kappa(a.tolist(), b.tolist()).low > truth
            usual += _fleiss_low(a, b) > truth
        yield (
            f"kappa, {n} items, {rare:.0%} of one label, {differ:.0%} differ: falsely above",
            "at most 2.5%",
            share(above, runs),
            share(usual, runs),
        )


def _fleiss_low(a: Array, b: Array) -> float:
    """The lower bound of Fleiss, Cohen and Everitt's normal interval (1969), which perfect agreement leaves at 1."""
    shares = np.array([[((a == x) & (b == y)).mean() for y in (False, True)] for x in (False, True)])
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    chance, kappa = float(rows @ columns), stats.cohen_kappa(a.tolist(), b.tolist())
    if math.isnan(kappa) or kappa == 1:
        return kappa
    habits = columns[:, None] + rows[None, :]
    spread = float((shares * (np.eye(2) - habits * (1 - kappa)) ** 2).sum()) - (kappa - chance * (1 - kappa)) ** 2
    return kappa - 1.959964 * math.sqrt(max(spread, 0.0) / len(a)) / (1 - chance)


def near_perfect_correlations(runs: int) -> Iterator[Line]:
    """Marks from 1 to 5 of which few are turned round: how often rho's interval misses."""
    rng = np.random.default_rng(SEED)

    def marks(n: int, turned: float) -> tuple[list[float], list[float]]:
        x = rng.integers(1, 6, n)
        return x.tolist(), np.where(rng.random(n) < turned, 6 - x, x).tolist()

    for n, turned in ((20, 0.05), (50, 0.03), (100, 0.02)):
        missed = usual = 0
        truth = stats.spearman(*marks(200_000, turned)).statistic
        for _ in range(runs):
            x, y = marks(n, turned)
            estimate = estimate_rho(list(zip(x, y, strict=True)))
            missed += estimate is not None and estimate.low is not None and estimate.low > truth
            usual += compute_jackknife_interval(*compute_coefficient_replicates(x, y, range(n), "spearman")).low > truth
            usual += stats.spearman(x, y).statistic > 1 - 1e-9
        yield (
            f"rho, {n} marks, {turned:.0%} turned round: falsely above",
            "at most 2.5%",
            share(missed, runs),
            share(usual, runs),
        )


def metrics_on_unequal_clusters(runs: int) -> Iterator[Line]:
    """Eight metrics of equal models, on sources of unequal sizes: how often any is called worse."""
    rng = np.random.default_rng(SEED)
    designs = {
        "12 sources, Zipf": [max(1, round(60 / rank)) for rank in range(1, 13)],
        "20 sources, Zipf": [max(1, round(60 / rank)) for rank in range(1, 21)],
        "sources of 60 and 20 x 3": [60] + [3] * 20,
        "20 sources of 5": [5] * 20,
    }
    for name, sizes in designs.items():
        labels, alarms = np.repeat(np.arange(len(sizes)), sizes), 0
        for _ in range(runs // 4):
            by_source = rng.normal(0, 0.1, (8, len(sizes)))[:, labels]
            changes = np.clip(by_source + rng.normal(0, 0.1, by_source.shape), -1, 1)
            compared = [
                stats.compare_paired(np.zeros(len(labels)), change, margin=0.02, clusters=labels) for change in changes
            ]
            alarms += "worse" in stats.verdicts(compared)
        yield f"eight metrics, {name}, nothing changed: any worse", "at most 2.5%", share(alarms, runs // 4), ""


def skewed_amounts(runs: int) -> Iterator[Line]:
    """Tokens, costs: how often the true mean lies above the upper bound; beside it, with Student's t."""
    rng = np.random.default_rng(SEED)
    for n in (30, 50, 200):
        missed = usual = 0
        for _ in range(runs):
            amounts = rng.lognormal(0, 1, n)
            missed += stats.amount_interval(amounts).high < math.exp(0.5)
            usual += stats.mean_interval(amounts).high < math.exp(0.5)
        yield f"{n} lognormal amounts: mean above the bound", "at most 2.5%", share(missed, runs), share(usual, runs)


def same_model(runs: int) -> Iterator[Line]:
    """A/A: a model of 80% against its own baseline, 200 cases of which one in ten flips at random."""
    rng = np.random.default_rng(SEED)
    worse = undecided = 0
    for _ in range(runs):
        base = rng.random(200) < 0.8
        flipped = rng.random(200) < 0.1
        other = np.where(flipped, rng.random(200) < 0.8, base)
        verdict = stats.verdicts([stats.compare_paired(base.astype(float), other.astype(float), margin=0.02)])[0]
        worse += verdict == "worse"
        undecided += verdict == "undecided"
    yield "the same model against itself: worse", "at most 2.5%", share(worse, runs), ""


def betting_or_mcnemar(runs: int) -> Iterator[Line]:
    """Why the comparison at the end is McNemar's: its power beside that of a test that may be read at any time."""
    rng = np.random.default_rng(SEED)
    shown = betting = 0
    for _ in range(runs // 10):
        change = rng.choice([-1.0, 0.0, 1.0], 300, p=[0.1, 0.86, 0.04])
        shown += stats.mcnemar((change < 0).astype(float), (change > 0).astype(float)) <= 0.05
        sequence = stats.BoundedSequence(-1, 1)
        for value in change.tolist():
            sequence.add(value)
        betting += sequence.high < 0
    done = runs // 10
    yield (
        "a loss of 6 points in 300 cases: shown (usual: by the sequence)",
        "power",
        share(shown, done),
        share(betting, done),
    )


def planned_questions(runs: int) -> Iterator[Line]:
    """Power of a plan's number of questions, for 30 random shares or scores, of which a loss changes the spread."""
    rng = np.random.default_rng(SEED)
    times = max(20, runs // 5)
    powers: dict[str, list[float]] = {"outcomes": [], "scores": []}
    for _ in range(30):
        right, loss = rng.uniform(0.55, 0.97), rng.uniform(0.03, 0.15)
        differing = min(rng.uniform(0.02, 0.3), 2 * (1 - right))
        n = DifferenceVariance(differing, 0.0, shares=True, dispersion=1.0).count_questions_needed(loss, 1, 1)
        cells = [right - differing / 2, differing / 2, differing / 2, 1 - right - differing / 2]
        drawn = rng.choice(4, (times, n), p=np.clip(cells, 0, 1))
        before, after = drawn <= 1, (drawn % 2 == 0) & (drawn < 3) & (rng.random((times, n)) > loss / right)
        pairs = list(zip(before.astype(float), after.astype(float), strict=True))
        powers["outcomes"].append(sum(stats.mcnemar(*pair) <= 0.05 for pair in pairs) / times)
        mean, narrow, loss = rng.uniform(0.5, 0.9), math.exp(rng.uniform(0, 4)), rng.uniform(0.02, 0.1)
        first, second = (rng.beta(mean * narrow, (1 - mean) * narrow, 4000) for _ in range(2))
        plan = DifferenceVariance(float((first - second).var()), 0.0, dispersion=compute_dispersion(first, 1.0))
        shape = times, plan.count_questions_needed(loss, 1, 1)
        scores = (rng.beta(m * narrow, (1 - m) * narrow, shape) for m in (mean, mean - loss))
        pairs = list(zip(*scores, strict=True))
        powers["scores"].append(sum(stats.paired_difference(*pair).high < 0 for pair in pairs) / times)
    for kind, found in powers.items():
        shown = f"{np.mean(found):.1%}, {min(found):.1%} to {max(found):.1%}"
        yield f"planned questions for a loss, 30 random {kind}: shown", "at least 78%", shown, ""


SIMULATIONS: tuple[Callable[[int], Iterator[Line]], ...] = (
    fast_right_answers,
    going_on,
    going_on_against_a_baseline,
    rare_zeros,
    rare_failures,
    unequal_clusters,
    few_labels,
    corrected_bounds,
    labelled_epochs,
    moderate_correlations,
    perfect_agreement,
    near_perfect_correlations,
    metrics_on_unequal_clusters,
    skewed_amounts,
    same_model,
    betting_or_mcnemar,
    planned_questions,
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulates what the statistics promise.")
    parser.add_argument("--runs", type=int, default=2000, help="repetitions per setting (default 2000)")
    runs = parser.parse_args().runs
    sys.stdout.write("| setting | promised | simulated | usual method |\n|---|---|---|---|\n")
    for simulation in SIMULATIONS:
        for line in simulation(runs):
            sys.stdout.write(f"| {' | '.join(line)} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
