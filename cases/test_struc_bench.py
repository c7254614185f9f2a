"""Struc-Bench: does the model write the table that a text holds, as text, LaTeX and HTML? See docs/struc_bench.md."""

from collections.abc import Mapping

from evalsuite import benchmark
from evalsuite.benchmarks.struc_bench import STRUC_BENCH


# The shipped items are a demonstration, in which a small embedded model is to come to an end.
@benchmark(STRUC_BENCH, shipped={"least_tokens": 0})
def test_struc_bench(scores: Mapping[str, float]) -> None:
    # Most of the cells in their places, and a form that could be mended.
    assert scores["table_content"] >= 0.7
    assert scores["table_form"] >= 0.5
