"""Repeated attempts at one sample: the probabilities that at least one attempt is right, and that all are."""

import math


def _check_attempt_counts(n: int, c: int, allowed: int) -> None:
    if not 1 <= allowed <= n:
        raise ValueError(f"the attempts allowed must lie between 1 and n={n}; got {allowed}")
    if not 0 <= c <= n:
        raise ValueError(f"the right attempts must lie between 0 and n={n}; got {c}")


def pass_at_k(n: int, c: int, k: int) -> float:
    """Estimate without bias the probability that at least one of k attempts is right: 1 - C(n-c, k) / C(n, k).

    Chen et al., "Evaluating Large Language Models Trained on Code" (arXiv 2107.03374, equation 1).

    Args:
        n: the number of attempts made.
        c: the number of right attempts.
        k: the number of attempts allowed, at most n.

    Raises:
        ValueError: k is not in [1, n], or c is not in [0, n].
    """
    _check_attempt_counts(n, c, k)
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Estimate without bias the probability that all of k attempts are right: C(c, k) / C(n, k).

    Yao et al., "tau-bench" (arXiv 2406.12045). `pass_at_k` describes the arguments and errors.
    """
    _check_attempt_counts(n, c, k)
    return math.comb(c, k) / math.comb(n, k)
