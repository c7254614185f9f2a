"""The same model against its own baseline: the verdict calls it worse no more often than it promises."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from evalsuite.decisions.verdict import Status, make_verdict
from evalsuite.results.run_folders import RunFolder
from evalsuite.results.runs import BenchmarkResults, Run
from evalsuite.results.tally import Row, Tally

REPETITIONS = 60
METRICS = ("right", "brief")


def scripted(rng: random.Random, often: dict[str, tuple[float, float]], epochs: int, shared: int) -> Run:
    """A run of a model that has each metric of each question with a probability; `shared` questions have a source."""
    rows = [
        Row(
            case=f"{name}-{epoch}",
            sample=name,
            epoch=epoch,
            outcome="passed",
            tags={"cluster": f"c{int(name) // shared}"} if shared > 1 else {},
            scores={metric: float(rng.random() < chance) for metric, chance in zip(METRICS, chances, strict=True)},
        )
        for name, chances in often.items()
        for epoch in range(1, epochs + 1)
    ]
    gates = [f"answers.{metric} >= 0" for metric in METRICS]
    bench = BenchmarkResults(Tally.of(rows), "scripted", "m")
    return Run(
        RunFolder(Path("run")), {"settings": {"gate": gates}, "stopped": None, "seconds": 1.0}, {"answers": bench}, {}
    )


@pytest.mark.parametrize(("questions", "epochs", "shared"), [(60, 1, 1), (20, 3, 1), (60, 1, 3)])
def test_the_same_model_against_itself_is_called_worse_at_most_as_often_as_promised(
    questions: int, epochs: int, shared: int
) -> None:
    rng, worse = random.Random(questions * epochs + shared), 0
    for _ in range(REPETITIONS):
        # What a source has in common moves all its questions, as it does in both runs.
        sources = [rng.uniform(0.3, 1.0) for _ in range(questions)]
        often = {str(n): (sources[n // shared], sources[n // shared]) for n in range(questions)}
        verdict = make_verdict(scripted(rng, often, epochs, shared), scripted(rng, often, epochs, shared))
        assert verdict.status in {Status.GOOD, Status.REGRESSION}
        worse += verdict.status is Status.REGRESSION
    # 2.5% over both metrics together; three standard deviations beyond it are no chance.
    assert worse / REPETITIONS <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / REPETITIONS)


def test_a_model_that_lost_a_fifth_is_called_worse_almost_always() -> None:
    rng, worse = random.Random(8), 0
    for _ in range(20):
        often = {str(n): (0.95, 0.95) for n in range(100)}
        less = dict.fromkeys(often, (0.75, 0.95))
        verdict = make_verdict(scripted(rng, less, 1, 1), scripted(rng, often, 1, 1))
        worse += verdict.status is Status.REGRESSION
    assert worse >= 15
