"""The published results as shipped, against what can be said of them from the paper (arXiv 2506.18421)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from evalsuite.benchmarks.treb.report import list_columns, read_published_results

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "published"
FILES = {
    "rouge_l": "treb_table2_rouge_l.csv",
    "judge": "treb_table3_llm_judge.csv",
    "exact_match": "treb_table5_exact_match.csv",
}


@pytest.mark.parametrize(("metric", "models"), [("rouge_l", 26), ("judge", 21), ("exact_match", 26)])
def test_each_table_has_its_models_and_columns(metric: str, models: int) -> None:
    rows = read_published_results()[metric][1]
    assert len(rows) == models
    columns = [*map(" ".join, list_columns(metric)), "Overall"]
    assert all(list(row) == columns for row in rows.values())


def test_the_overall_is_the_plain_mean_of_the_columns_but_for_two_rows() -> None:
    far = {}
    for metric, (_, rows) in read_published_results().items():
        for model, row in rows.items():
            columns = [value for name, value in row.items() if name != "Overall"]
            distance = 100 * (sum(columns) / len(columns) - row["Overall"])
            if abs(distance) > 0.01:
                far[metric, model] = round(distance, 2)
    assert far == {("rouge_l", "Deepseek-R1-Distill-Llama-8B"): -0.12, ("exact_match", "Qwen2.5-72B-Instruct"): -0.2}


def test_exact_match_in_table_understanding_is_a_mean_over_two_subtasks() -> None:
    """Half a share of 130, to the paper's rounding: one of the two subtasks with programs has no numbers."""
    halves = [round(round(100 * right / 130, 2) / 2 + 1e-9, 2) for right in range(131)]
    for row in read_published_results()["exact_match"][1].values():
        for name in ("TU PoT", "TU ICoT"):
            assert any(abs(100 * row[name] - half) < 0.006 for half in halves)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the folder shared/data/published is not beside the project")
@pytest.mark.parametrize("metric", FILES)
def test_the_shipped_values_are_those_of_the_papers_tables(metric: str) -> None:
    shipped = read_published_results()[metric][1]
    with (PUBLISHED / FILES[metric]).open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            row = {name: float(value) / 100 for name, value in line.items() if name != "model"}
            assert shipped[line["model"]] == pytest.approx(row, abs=1e-12)
