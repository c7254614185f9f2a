"""Slices: which tag value lost most, with p-values that know how many were looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evalsuite.decisions.baseline import compare_to_baselines
from evalsuite.decisions.comparison import ComparisonRules
from evalsuite.decisions.gates import parse_gate
from evalsuite.engine.case_record import select_grouping_metadata
from evalsuite.output.reports.markdown import render_sections
from evalsuite.output.reports.report import make_baseline_section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.decisions.comparison import BaselineComparison
    from evalsuite.results.runs import Run
    from tests.unit.conftest import Desk


def against(desk: Desk, before: Sequence[float], after: Sequence[float], values: int) -> BaselineComparison:
    """Two runs of 0/1 scores whose questions have one of so many values of the tag `skill`."""
    old, new = (
        desk.run(
            [
                desk.record(f"{n:03}", {"m": float(score)}, tags={"skill": f"s{n % values}", "cluster": f"{n}"})
                for n, score in enumerate(scores)
            ],
            name,
        )
        for name, scores in (("before", before), ("after", after))
    )
    return compare_to_baselines([old], new, [parse_gate("capitals.m >= 0.5")], ComparisonRules())[0]


def test_the_slice_that_lost_most_comes_first_with_a_corrected_p(desk: Desk) -> None:
    found = against(desk, [1.0] * 100, [float(n % 5 != 2) for n in range(100)], 5)
    first = found.slices[0]
    assert (first.tag, first.value, first.n, first.before, first.after) == ("skill", "s2", 20, 1.0, 0.0)
    assert first.pvalue == 5 * 2 / 2**20  # McNemar's of 20 losses, times five slices
    assert {one.tag for one in found.slices} == {"skill"}
    assert "skill=s2" in render_sections([make_baseline_section(found)], [])


def test_metadata_make_slices_like_tags(desk: Desk) -> None:
    def run(name: str, lost: str) -> Run:
        sources = {n: f"wiki{n % 4}" for n in range(80)}
        return desk.run(
            [
                desk.record(f"{n:03}", {"m": float(source != lost)}, facts={"metadata": {"source": source}})
                for n, source in sources.items()
            ],
            name,
        )

    old, new = run("before", "none"), run("after", "wiki1")
    first = compare_to_baselines([old], new, [parse_gate("capitals.m >= 0.5")], ComparisonRules())[0].slices[0]
    assert (first.tag, first.value, first.n, first.after) == ("source", "wiki1", 20, 0.0)


def test_what_can_be_grouped_by_is_short_and_plain() -> None:
    metadata = {"source": "wiki", "hops": 2, "hard": True, "text": "x" * 41, "list": [1], "none": None, "no": ""}
    assert select_grouping_metadata(metadata) == {"source": "wiki", "hops": "2", "hard": "True"}


def test_a_value_that_all_questions_have_is_no_slice(desk: Desk) -> None:
    assert not against(desk, [1.0] * 10, [0.0] * 10, 1).slices


def test_two_equal_models_seldom_have_any_slice_that_lost(desk: Desk) -> None:
    rng, alarms = np.random.default_rng(2), 0
    for _ in range(20):
        before, after = ((rng.random(200) < 0.7).astype(float).tolist() for _ in range(2))
        alarms += any(one.pvalue <= 0.05 for one in against(desk, before, after, 10).slices)
    assert alarms <= 4  # 5% of 20 is 1; more than 4 has a chance of 0.3%
