"""N one-line questions with known answers, for a server on loopback that knows them: nine in ten are right."""

import os

from evalsuite import Sample, benchmark, exact_match, generate

N = int(os.environ.get("N", "1000"))
SAMPLES = [Sample(id=str(n), input=f"ITEM {n} answer", target=f"A{n}") for n in range(N)]


@benchmark("fake", SAMPLES, solver=generate(), scorers=[exact_match()])
def test_fake(scores: dict[str, float]) -> None:
    assert scores["exact_match"] == 1.0
