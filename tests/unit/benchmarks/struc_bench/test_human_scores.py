"""What people gave to outputs, and how each metric agrees with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from evalsuite.benchmarks.struc_bench.dataset import load
from evalsuite.benchmarks.struc_bench.human_scores import (
    HumanScores,
    agreement_table,
    of_model,
    read_human_scores,
)
from evalsuite.errors import DatasetError
from evalsuite.protocols import Setup

if TYPE_CHECKING:
    from pathlib import Path

METRICS = {"h_content": "Content H-Score", "bleu": "SacreBLEU", "p_content": "Content P-Score"}


def read(folder: Path, content: Any) -> list[HumanScores]:
    path = folder / "human_scores.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_human_scores(path)


def test_scores_are_read_with_or_without_a_model(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [
            {"sample": "html-003", "content": 4, "format": 2.5},
            {"sample": "html-004", "content": 1, "format": 0, "model": "gpt-4"},
        ],
    )
    assert found == [HumanScores("html-003", 4.0, 2.5), HumanScores("html-004", 1.0, 0.0, "gpt-4")]


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


def test_a_model_has_its_own_scores_and_those_for_every_model() -> None:
    scores = [
        HumanScores("a", 1, 1, "gpt-4"),
        HumanScores("b", 2, 2, "llama"),
        HumanScores("c", 3, 3),
        HumanScores("d", 4, 4),
        HumanScores("d", 9, 9, "gpt-4"),
    ]
    assert {name: one.content for name, one in of_model(scores, "gpt-4").items()} == {"a": 1, "c": 3, "d": 9}
    assert {name: one.content for name, one in of_model(scores, "llama").items()} == {"b": 2, "c": 3, "d": 4}
    assert set(of_model(scores, "")) == {"c", "d"}


def test_of_several_peoples_ratings_of_an_output_the_mean_is_taken() -> None:
    scores = [HumanScores("a", 1, 5), HumanScores("b", 7, 7), HumanScores("a", 2, 3), HumanScores("a", 6, 4)]
    assert of_model(scores, "gpt-4") == {"a": HumanScores("a", 3.0, 4.0), "b": HumanScores("b", 7.0, 7.0)}


def rated(folder: Path, sample: str, modes: tuple[str, ...]) -> dict[str, Any]:
    """What people gave the outputs of a folder's one item in these modes, by the output's id."""
    item = {"instruction": "i", "input": "t", "output": "<td>x</td>", "format_description": "One cell."}
    (folder / "html_test.json").write_text(json.dumps([item]), encoding="utf-8")
    read(folder, [{"sample": sample, "content": 4, "format": 2}])
    samples = load(Setup("gpt-4", modes=modes, data=folder)).samples
    return {one.id: one.metadata.get("people") for one in samples}


def test_a_rating_is_of_an_item_or_of_its_output_in_one_mode(tmp_path: Path) -> None:
    given = {"content": 4.0, "format": 2.0}
    both = ("direct", "format_cot")
    assert rated(tmp_path, "html-000", ("direct",)) == {"html-000": given}
    assert rated(tmp_path, "html-000", both) == {"html-000-direct": given, "html-000-format_cot": given}
    assert rated(tmp_path, "html-000-direct", both) == {"html-000-direct": given, "html-000-format_cot": None}
    assert rated(tmp_path, "html-000-format_cot", ("direct",)) == {"html-000": None}


@pytest.mark.parametrize("sample", ["html-001", "html-0", "html-000-pot", "latex-000", ""])
def test_a_rating_of_an_item_that_there_is_not_is_an_error(tmp_path: Path, sample: str) -> None:
    with pytest.raises(DatasetError, match=r"human_scores\.json.*html-000 say, or its output in a mode"):
        rated(tmp_path, sample, ("direct",))


def outputs(
    rows: list[tuple[dict[str, float], float, float]],
) -> list[tuple[dict[str, float], dict[str, float]]]:
    return [(scores, {"content": content, "format": form}) for scores, content, form in rows]


def test_agreement_is_scipys_pearson_over_the_outputs_that_have_the_metric() -> None:
    table = agreement_table(
        "Agreement",
        METRICS,
        outputs(
            [
                ({"h_content": 0.9, "bleu": 0.5}, 5, 3),
                ({"h_content": 0.4, "bleu": 0.5}, 2, 4),
                ({"h_content": 0.7, "bleu": 0.5}, 4, 1),
                ({"bleu": 0.5}, 1, 1),
            ]
        ),
    )
    heading, count, content, form = table.rows[0]
    assert (heading, count) == ("Content H-Score", 3)
    # By hand: means 2/3 and 11/3; r = 0.7667 / sqrt(0.126667 * 4.666667).
    assert content == pytest.approx(0.766666667 / (0.126666667 * 4.666666667) ** 0.5)
    assert form == pytest.approx(pearsonr([0.9, 0.4, 0.7], [3, 4, 1]).statistic)
    assert list(table.rows[1]) == ["SacreBLEU", 4, None, None], "a constant agrees with nothing"
    assert len(table.rows) == 2, "no output has a P-Score"
    assert [column.title for column in table.columns] == [
        "Metric",
        "Outputs",
        "Content: Pearson",
        "Format: Pearson",
    ]


def test_two_outputs_are_too_few() -> None:
    table = agreement_table("Agreement", METRICS, outputs([({"bleu": 0.1}, 1, 2), ({"bleu": 0.9}, 2, 1)]))
    assert [list(row) for row in table.rows] == [["SacreBLEU", 2, None, None]]


def test_without_outputs_there_is_no_row() -> None:
    assert list(agreement_table("Agreement", METRICS, []).rows) == []


@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 10), st.integers(0, 10)), min_size=3, max_size=12
    ).filter(lambda rows: all(len({row[place] for row in rows}) > 1 for place in range(3)))
)
def test_agreement_equals_scipys_on_any_ratings(rows: list[tuple[int, int, int]]) -> None:
    rated = outputs([({"bleu": value / 100}, content, form) for value, content, form in rows])
    found = agreement_table("Agreement", METRICS, rated).rows[0]
    values, *people = zip(*rows, strict=True)
    assert found[2:] == pytest.approx([pearsonr(values, given).statistic for given in people], abs=1e-9)
