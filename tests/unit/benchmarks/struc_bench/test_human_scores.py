"""What people gave to outputs, and how each metric agrees with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from evalsuite.benchmarks.struc_bench.abilities import ERROR_TYPES
from evalsuite.benchmarks.struc_bench.items import load_dataset, read_human_scores
from evalsuite.benchmarks.struc_bench.report import tabulate_agreement, tabulate_errors
from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import Setup
from evalsuite.results.tally import Estimate, Row
from evalsuite.stats import krippendorff_alpha

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

METRICS = {"table_content": "Content", "bleu": "SacreBLEU", "p_content": "Content P-Score"}


def read(folder: Path, content: Any, model: str = "gpt-4") -> dict[str, dict[str, Any]]:
    path = folder / "human_scores.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_human_scores(path, model)


def rating(sample: str, content: float, form: float, **more: Any) -> dict[str, Any]:
    return {"sample": sample, "content": content, "format": form, **more}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"html-003": 4}, "a list"),
        (["html-003"], "item 0"),
        ([{"sample": "html-003", "content": 4}], "the field 'format'"),
        ([{"sample": "html-003", "content": "4", "format": 1}], "item 0, field 'content'"),
        ([{"sample": "html-003", "content": True, "format": 1}], "item 0, field 'content'"),
        ([{"sample": 3, "content": 4, "format": 1}], "item 0, field 'sample'"),
        ([{"sample": "html-003", "content": 4, "format": 1, "model": None}], "item 0, field 'model'"),
        ([{"sample": "html-003", "content": 4, "format": 1, "errors": "none"}], "item 0, field 'errors'"),
        ([{"sample": "html-003", "content": 4, "format": 1, "errors": ["typo"]}], "structure_error, naming_error"),
        ([{"sample": "html-003", "content": 4, "format": 1, "errors": [["typo"]]}], "field 'errors', element 1: found"),
        ('[{"sample": "html-003", "content": NaN, "format": 1}]', "a finite number"),
        ('[{"sample": "html-003", "content": 4, "format": -Infinity}]', "item 0, field 'format'"),
        (f'[{{"sample": "html-003", "content": 1{"0" * 400}, "format": 1}}]', "a finite number"),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path: Path, content: Any, told: str) -> None:
    with pytest.raises(DatasetError) as error:
        read(tmp_path, content)
    assert "human_scores.json" in str(error.value)
    assert told in str(error.value)


def test_a_model_has_its_own_scores_and_those_for_every_model(tmp_path: Path) -> None:
    scores = [
        rating("a", 1, 1, model="gpt-4"),
        rating("b", 2, 2, model="llama"),
        rating("c", 3, 3),
        rating("d", 4, 4),
        rating("d", 9, 9, model="gpt-4"),
    ]
    assert {name: one["content"] for name, one in read(tmp_path, scores, "gpt-4").items()} == {"a": 1, "c": 3, "d": 9}
    assert {name: one["content"] for name, one in read(tmp_path, scores, "llama").items()} == {"b": 2, "c": 3, "d": 4}
    assert set(read(tmp_path, scores, "")) == {"c", "d"}


def test_of_several_peoples_ratings_of_an_output_the_mean_is_taken(tmp_path: Path) -> None:
    scores = [rating("a", 1, 5), rating("b", 7, 7), rating("a", 2, 3), rating("a", 6, 4)]
    assert read(tmp_path, scores) == {
        "a": {"content": 3.0, "format": 4.0, "raters": {}, "errors": {}},
        "b": {"content": 7.0, "format": 7.0, "raters": {}, "errors": {}},
    }


def test_people_are_numbers_and_their_labels_of_errors_are_shares(tmp_path: Path) -> None:
    scores = [
        rating("a", 1, 5, rater="Ann", errors=["naming_error"]),
        rating("a", 3, 5, rater="Bo", errors=[]),
        rating("b", 2, 2, rater="Bo"),
    ]
    both = read(tmp_path, scores)
    assert both["a"]["raters"] == {"1": (1, 5), "2": (3, 5)}
    assert both["a"]["errors"] == {**dict.fromkeys(ERROR_TYPES, 0.0), "naming_error": 0.5}
    assert (both["b"]["raters"], both["b"]["errors"]) == ({"2": (2, 2)}, {})


def rated(folder: Path, sample: str, modes: tuple[str, ...]) -> dict[str, Any]:
    """What people gave the outputs of a folder's one item in these modes, by the output's id."""
    item = {"instruction": "i", "input": "t", "output": "<td>x</td>", "format_description": "One cell."}
    (folder / "html_test.json").write_text(json.dumps([item]), encoding="utf-8")
    read(folder, [{"sample": sample, "content": 4, "format": 2}])
    samples = load_dataset(Setup("gpt-4", modes=modes, data=folder)).samples
    return {one.id: one.metadata.get("people") for one in samples}


def test_a_rating_is_of_an_item_or_of_its_output_in_one_mode(tmp_path: Path) -> None:
    given = {"content": 4.0, "format": 2.0, "raters": {}, "errors": {}}
    both = ("direct", "format_cot")
    assert rated(tmp_path, "html-000", ("direct",)) == {"html-000": given}
    assert rated(tmp_path, "html-000", both) == {"html-000-direct": given, "html-000-format_cot": given}
    assert rated(tmp_path, "html-000-direct", both) == {"html-000-direct": given, "html-000-format_cot": None}
    assert rated(tmp_path, "html-000-format_cot", ("direct",)) == {"html-000": None}


@pytest.mark.parametrize("sample", ["html-001", "html-0", "html-000-pot", "latex-000", ""])
def test_a_rating_of_an_item_that_there_is_not_is_an_error(tmp_path: Path, sample: str) -> None:
    with pytest.raises(DatasetError, match=r"human_scores\.json.*html-000 say, or its output in a mode"):
        rated(tmp_path, sample, ("direct",))


def output(scores: dict[str, float], content: float, form: float, place: int = 0, **people: Any) -> Row:
    facts = {"people": {"content": content, "format": form, **people}}
    return Row(f"case[{place}]", f"html-{place:03}", 1, "passed", {"format": "html"}, scores, facts)


def values(line: Sequence[Any]) -> list[Any]:
    return [round(cell.value, 9) if isinstance(cell, Estimate) else cell for cell in line]


def test_agreement_is_scipys_over_the_outputs_that_have_the_metric() -> None:
    rows = [
        output({"table_content": 0.9, "bleu": 0.5}, 5, 3, 0),
        output({"table_content": 0.4, "bleu": 0.5}, 2, 4, 1),
        output({"table_content": 0.7, "bleu": 0.5}, 4, 1, 2),
        output({"bleu": 0.5}, 1, 1, 3),
    ]
    table = tabulate_agreement("Agreement", METRICS, rows)
    expected = [
        round(float(test(*side).statistic), 9)
        for side in (([0.9, 0.4, 0.7], [5, 2, 4]), ([0.9, 0.4, 0.7], [3, 4, 1]))
        for test in (pearsonr, spearmanr, kendalltau)
    ]
    assert values(table.rows[0]) == ["Content", 3, *expected]
    assert values(table.rows[1]) == ["SacreBLEU", 4, *[None] * 6], "a constant agrees with nothing"
    assert len(table.rows) == 2, "no output has a P-Score, and nobody else rated"
    assert [column.title for column in table.columns] == [
        "Metric", "Outputs", "Content: Pearson", "Content: Spearman", "Content: Kendall",
        "Format: Pearson", "Format: Spearman", "Format: Kendall",
    ]  # fmt: skip


def test_two_outputs_are_too_few_and_without_any_there_is_no_row() -> None:
    table = tabulate_agreement("Agreement", METRICS, [output({"bleu": 0.1}, 1, 2), output({"bleu": 0.9}, 2, 1)])
    assert values(table.rows[0]) == ["SacreBLEU", 2, *[None] * 6]
    assert list(tabulate_agreement("Agreement", METRICS, []).rows) == []


def test_people_are_compared_with_each_other_as_metrics_are_with_them() -> None:
    marks = [(1, 2, 3), (2, 1, 2), (3, 4, 2), (4, 3, 4), (5, 5, 5)]
    rows = [
        output(
            {"bleu": sum(row)}, sum(row) / 3, 1, at, raters={str(rater): [mark, 1.0] for rater, mark in enumerate(row)}
        )
        for at, row in enumerate(marks)
    ]
    table = tabulate_agreement("Agreement", METRICS, rows)
    name, count, *agreements = values(table.rows[-1])
    columns = list(zip(*marks, strict=True))
    expected = [
        pearsonr(one, [sum(row) - own for row, own in zip(marks, one, strict=True)]).statistic for one in columns
    ]
    assert (name, count) == ("A person and the mean of the others", 5)
    assert agreements[0] == pytest.approx(sum(expected) / 3, abs=1e-8)
    assert agreements[3:] == [None] * 3, "all gave the same for format"
    alpha = krippendorff_alpha([list(column) for column in columns], level="interval")
    assert f"among 3 people: {alpha:.3f} for content and undefined for format." in table.note


def test_computed_types_of_errors_are_compared_with_peoples_labels() -> None:
    labels = [(1.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.0, 0.0)]
    rows = [
        output({"element_error": computed}, 1, 1, at, errors=dict.fromkeys(ERROR_TYPES, people))
        for at, (computed, people) in enumerate(labels)
    ]
    table = tabulate_errors("Errors", [*rows, output({"element_error": 1.0}, 1, 1, 9)])
    assert table
    assert values(table.rows[0]) == ["Element error", 4, 0.25, 0.5, 0.5]
    assert tabulate_errors("Errors", [output({"element_error": 1.0}, 1, 1)]) is None


def test_outputs_of_one_item_count_as_one_in_the_interval_of_kappa() -> None:
    labels = [(1.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    once = [
        output({"element_error": computed}, 1, 1, at, errors=dict.fromkeys(ERROR_TYPES, people))
        for at, (computed, people) in enumerate(labels)
    ]
    kappas = []
    for rows in (once, once * 4):
        table = tabulate_errors("Errors", rows)
        assert table
        kappas.append(table.rows[0][4])
    assert isinstance(kappas[0], Estimate)
    assert isinstance(kappas[1], Estimate)
    assert (kappas[1].low, kappas[1].high) == pytest.approx((kappas[0].low, kappas[0].high))
