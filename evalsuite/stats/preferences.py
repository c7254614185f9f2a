"""Statistics of preferences between two answers: Bradley-Terry ratings, and length-controlled win rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from evalsuite.stats.inputs import (
    Array,
    Labels,
    Values,
    check_probability,
    check_range,
    check_same_length,
    convert_to_floats,
)

POINTS = 400 / math.log(10)  # Elo's scale: a model with 400 points more than another wins ten of eleven comparisons.
MEAN_RATING = 1000.0  # The mean of all ratings, as usual in Elo's system.
STEPS = 100  # Maximum steps of Newton's method, which needs fewer than ten.


@dataclass(frozen=True, slots=True)
class WinRate:
    """A share of comparisons won, with its interval, all in [0, 1]."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class EloRating:
    """A rating on Elo's scale, with its interval.

    Attributes:
        points: the rating. The mean of all ratings is 1000; a player with 400 points more has odds of ten to one.
        low: lower bound of the rating's interval.
        high: upper bound of the rating's interval.
        rank: 1 plus the number of players whose lower bound is above this player's upper bound.
    """

    points: float
    low: float
    high: float
    rank: int


def controlled_win_rate(
    wins: Values, lengths: Values, rival_lengths: Values, *, clusters: Labels | None = None, confidence: float = 0.95
) -> WinRate:
    """Estimate the share of comparisons that an answer would win against a rival's answer of equal length.

    A logistic regression predicts the outcomes from tanh(difference of lengths / its standard deviation). The share of
    wins is the regression's prediction for a length difference of zero, as in length-controlled AlpacaEval (Dubois et
    al., arXiv 2404.04475, section 3). AlpacaEval's term for an instruction's difficulty is left out, because estimating
    this term takes many models.

    Args:
        wins: one number per comparison (1 for a win, 0.5 for a tie, 0 for a loss).
        lengths: the length of each answer, in characters or tokens.
        rival_lengths: the length of the rival's answer.
        clusters: the cluster of each comparison, such as its sample; None if all are independent.
        confidence: the interval's confidence. By simulation, 95% intervals of 10 to 200 comparisons cover the true
            win rate in 94% to 100%.

    Raises:
        ValueError: the list is empty, lists differ in length, an outcome is outside [0, 1], or a number is not finite.
    """
    check_probability(confidence, "confidence")
    outcomes = check_range(convert_to_floats(wins, "wins"), 0, 1, "wins")
    check_same_length(outcomes, lengths, "wins and lengths")
    check_same_length(outcomes, rival_lengths, "wins and rival_lengths")
    differences = convert_to_floats(lengths, "lengths") - convert_to_floats(rival_lengths, "rival_lengths")
    spread = float(differences.std())
    # Add a quarter of a win and a quarter of a loss at both extreme differences of lengths. Otherwise, the coefficient
    # of length would be infinite if the longer answer always won.
    ends = np.array([[1.0, 1.0], [1.0, -1.0]])
    control = np.tanh(differences / spread) if spread else np.zeros(len(outcomes))
    design = np.column_stack([np.ones(len(outcomes)), control])
    estimate = _fit_logistic_regression(design, outcomes, clusters, ends, confidence)
    centre, reach = estimate(np.array([1.0, 0.0]))
    return WinRate(*(1 / (1 + math.exp(-logit)) for logit in (centre, centre - reach, centre + reach)))


def bradley_terry(
    comparisons: Sequence[tuple[str, str, float]], *, clusters: Labels | None = None, confidence: float = 0.95
) -> dict[str, EloRating]:
    """Rate players by the outcomes of their comparisons; a tie counts as half a win.

    The odds that a player wins are the ratio of both players' strengths (Bradley and Terry, "Rank analysis of
    incomplete block designs", Biometrika 39, 1952). Intervals are cluster-robust, as in Chatbot Arena (Chiang et
    al., arXiv 2403.04132, section 4). Half a win and half a loss are added for each pair that was compared, so that a
    player who won every comparison has a finite rating.

    Args:
        comparisons: first player, second player, and the outcome: 1 if the first wins, 0.5 for a tie, 0 for a loss.
        clusters: the cluster of each comparison, such as its sample; None if all are independent.
        confidence: the confidence of each interval. In simulations, 95% intervals of 10 to 100 samples cover the true
            rating in 94% or more. If one side wins 98% of the comparisons of most pairs, the coverage is only 90% to
            95%.

    Returns:
        The players' ratings, the best player first.

    Raises:
        ValueError: comparisons are missing, an outcome is outside [0, 1], a player is compared with itself, or the
            comparisons do not connect all players.
    """
    check_probability(confidence, "confidence")
    outcomes = check_range(convert_to_floats([outcome for *_, outcome in comparisons], "wins"), 0, 1, "wins")
    players = list(dict.fromkeys(name for first, second, _ in comparisons for name in (first, second)))
    place = {name: at for at, name in enumerate(players)}
    design = np.zeros((len(comparisons), len(players)))
    for row, (first, second, _) in zip(design, comparisons, strict=True):
        if first == second:
            raise ValueError(f"a player cannot be compared with itself; got {first!r} twice")
        row[place[first]], row[place[second]] = 1.0, -1.0
    # Ignore which player of a pair is named first.
    turned = [1.0 if place[first] < place[second] else -1.0 for first, second, _ in comparisons]
    pairs = np.unique(design * np.array(turned)[:, None], axis=0)
    if np.linalg.matrix_rank(pairs) < len(players) - 1:
        raise ValueError("ratings need comparisons that connect all players")
    # The outcomes determine only differences of strengths. The fit sets the last player's strength to zero, and all
    # strengths are centred afterwards.
    balanced = np.repeat(pairs[:, :-1], 2, axis=0)
    estimate = _fit_logistic_regression(design[:, :-1], outcomes, clusters, balanced, confidence)
    centred = np.eye(len(players)) - 1 / len(players)
    found = (estimate(contrast[:-1]) for contrast in centred)
    bounds = [[MEAN_RATING + POINTS * end for end in (value, value - reach, value + reach)] for value, reach in found]
    ratings = {
        name: EloRating(points, low, high, 1 + sum(other > high for _, other, _ in bounds))
        for name, (points, low, high) in zip(players, bounds, strict=True)
    }
    return dict(sorted(ratings.items(), key=lambda item: -item[1].points))


def _fit_logistic_regression(
    design: Array, outcomes: Array, clusters: Labels | None, balanced: Array, confidence: float
) -> Callable[[Array], tuple[float, float]]:
    """Fit a logistic regression with cluster-robust covariance (Liang and Zeger, Biometrika 73, 1986).

    The result is a function that takes the weights of a linear combination of the coefficients; it returns the
    combination's estimate and half the width of its interval.

    Args:
        balanced: rows that are added to the design matrix, each with a quarter of a win and a quarter of a loss. Each
            added row is a separate cluster, so that the interval has a width even if all outcomes are equal.
    """
    count = len(balanced)
    rows = np.vstack([design, balanced, balanced])
    values = np.concatenate([outcomes, np.ones(count), np.zeros(count)])
    weights = np.concatenate([np.ones(len(design)), np.full(2 * count, 0.25)])
    coefficients = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        shares = 1 / (1 + np.exp(-np.clip(rows @ coefficients, -30, 30)))
        information = rows.T @ (rows * (weights * shares * (1 - shares))[:, None])
        step = np.linalg.solve(information, rows.T @ (weights * (values - shares)))
        coefficients = coefficients + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-10:
            break
    scores = rows * (weights * (values - shares))[:, None]
    labels = range(len(design)) if clusters is None else clusters
    check_same_length(design, labels, "comparisons and clusters")
    place = {label: at for at, label in enumerate(dict.fromkeys(labels))}
    groups = np.concatenate([[place[label] for label in labels], len(place) + np.arange(2 * count)]).astype(int)
    totals = np.zeros((len(place) + 2 * count, rows.shape[1]))
    np.add.at(totals, groups, scores)
    bread = np.linalg.inv(information)
    number = len(place)
    correction = number / (number - 1) if number > 1 else 1.0
    robust = correction * bread @ (totals.T @ totals) @ bread
    quantile = float(stdtrit(max(number - 1, 1), (1 + confidence) / 2))

    def estimate_contrast(contrast: Array) -> tuple[float, float]:
        # Use the larger of the cluster-robust and the usual standard error, because the robust error is too small if
        # losses are rare.
        variance = max(float(contrast @ covariance @ contrast) for covariance in (robust, bread))
        return float(contrast @ coefficients), quantile * math.sqrt(variance)

    return estimate_contrast
