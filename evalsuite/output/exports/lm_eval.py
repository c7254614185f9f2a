"""A run as the results JSON of lm-evaluation-harness, which its leaderboards and tables read.

Source of the format: `simple_evaluate`'s results, in the harness's docs/interface.md.
"""

from __future__ import annotations

from importlib.metadata import version
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from evalsuite.decisions.verdict import estimate_of

if TYPE_CHECKING:
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Estimate

WIDTH = 2 * NormalDist().inv_cdf(0.975)
"""Standard errors that a 95% interval is wide."""


def lm_eval_results(run: Run) -> dict[str, Any]:
    """All benchmarks of a run; a standard error is read off the 95% interval, so that clusters count."""
    benches = run.benchmarks
    return {
        "results": {name: {"alias": name, **_values(run, name)} for name in benches},
        "configs": {name: {"task": name, "dataset_path": bench.source} for name, bench in benches.items()},
        "versions": dict.fromkeys(benches, 0),
        "n-samples": {
            name: {
                "original": len(bench.tally),
                "effective": sum(row.outcome != "error" for row in bench.tally),
            }
            for name, bench in benches.items()
        },
        "higher_is_better": {
            name: {metric: not run.lower_is_better(name, metric) for metric in bench.tally.metrics()}
            for name, bench in benches.items()
        },
        "config": {"model": run.info.get("model"), "evalsuite_version": version("evalsuite")},
        "date": run.info.get("started"),
    }


def _values(run: Run, name: str) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    for metric in run.benchmarks[name].tally.metrics():
        estimate = estimate_of(run, name, metric)
        if estimate is not None:
            values[f"{metric},none"] = estimate.value
            values[f"{metric}_stderr,none"] = _standard_error(estimate)
    return values


def _standard_error(estimate: Estimate) -> float | str:
    if estimate.low is None or estimate.high is None:
        return "N/A"
    return (estimate.high - estimate.low) / WIDTH
