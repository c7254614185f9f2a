"""The paper's numbers hold together, and a run stands beside them only where it asked the same mix."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.benchmarks.head_to_tail.paper_results import (
    PAPER_MIX,
    compare_with_published,
    list_models,
    make_published_table,
    read_published_rates,
)
from evalsuite.output.reports.section import Passage, Table
from evalsuite.results.tally import Estimate, Row, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What is printed to one digit may be off by half of the last one, here as a share.
_DIGIT = 0.001


def test_the_sixteen_models_have_a_row_overall_and_in_each_bucket() -> None:
    assert len(list_models()) == 16
    assert set(read_published_rates("table_14")) == {
        (part, model) for part in ("all", *BUCKETS) for model in list_models()
    }
    assert [model for _, model in read_published_rates("table_10")] == list_models()


@pytest.mark.parametrize("rule", ["EM", "F1", "RL", "LM"])
def test_accuracy_hallucination_and_missing_add_up_by_every_rule(rule: str) -> None:
    for row in read_published_rates("table_14").values():
        assert row[f"A_{rule}"] + row[f"H_{rule}"] + row["M"] == pytest.approx(1, abs=2.1 * _DIGIT)


def test_the_rates_over_all_questions_are_the_mean_of_the_buckets() -> None:
    for model, name in itertools.product(list_models(), read_published_rates("table_14")["all", "GPT-4"]):
        mean = sum(read_published_rates("table_14")[bucket, model][name] for bucket in BUCKETS) / 3
        assert read_published_rates("table_14")["all", model][name] == pytest.approx(mean, abs=1.1 * _DIGIT)


def test_the_rates_over_all_domains_are_those_of_the_domains_by_their_questions() -> None:
    whole = sum(mix.questions for mix in PAPER_MIX.values())
    assert whole == 18_171
    for row, rate in itertools.product(read_published_rates("table_14").values(), "AH"):
        mean = sum(mix.questions * row[f"{rate}_{domain}"] for domain, mix in PAPER_MIX.items()) / whole
        assert row[f"{rate}_LM"] == pytest.approx(mean, abs=1.1 * _DIGIT)


def test_the_published_table_has_a_cell_for_every_column() -> None:
    table = make_published_table()
    assert len(table.rows) == 4 * len(list_models())
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert all(0 <= cell <= 1 for row in table.rows for cell in row if isinstance(cell, float))


def asked(domains: Mapping[str, tuple[int, int]], right: float = 0.3, **tags: str) -> Tally:
    """A run with so many templates and questions of each domain; so many of each hundred are right."""

    def rows() -> Iterator[Row]:
        for domain, (templates, questions) in domains.items():
            for number in range(questions):
                value = float(number % 100 < 100 * right)
                scores = {"accuracy_lm": value, "accuracy_em": value, "missing": 0.0}
                shown = {
                    "mode": "paper",
                    "domain": domain,
                    "bucket": BUCKETS[number % 3],
                    "template": f"{domain}-{number % templates}",
                }
                sample = f"{domain}-{number}"
                yield Row(sample, sample, 1, "passed", shown | tags, scores)

    return Tally.of(rows())


PAPER = {domain: (mix.templates, mix.questions) for domain, mix in PAPER_MIX.items()}


def test_a_run_of_the_paper_s_mix_is_held_against_every_model() -> None:
    table, passage = compare_with_published("mine", asked(PAPER), "gpt-3.5-turbo-0301")
    assert isinstance(table, Table)
    assert isinstance(passage, Passage)
    assert passage.text.endswith("differs from the paper's own runs: nothing.")
    rows = {row[0]: row[1:] for row in table.rows}
    assert list(rows) == list_models()
    overall = rows["GPT-4"][0]
    assert isinstance(overall, Estimate)
    assert overall.value == pytest.approx(0.3 - 0.309, abs=0.003)
    # Two independent shares of about 18,000 each: 1.96 * sqrt(2 * 0.3 * 0.7 / 18171).
    assert overall.low == pytest.approx(overall.value - 0.0094, abs=3e-4)
    assert overall.high == pytest.approx(overall.value + 0.0094, abs=3e-4)


def test_without_a_judge_the_paper_s_exact_match_is_what_counts() -> None:
    table, passage = compare_with_published("mine", asked(PAPER), None)
    assert isinstance(table, Table)
    (difference,) = table.rows[0][1:]
    assert isinstance(difference, Estimate)
    assert difference.value == pytest.approx(0.3 - 0.233, abs=0.003)
    assert "decided by exact match" in passage.text  # type: ignore[union-attr]


def test_a_domain_of_the_paper_s_mix_is_compared_alone_where_the_others_differ() -> None:
    table, passage = compare_with_published("mine", asked(PAPER | {"open": (40, 400)}), "gpt-4o")
    assert isinstance(table, Table)
    assert [column.title for column in table.columns[1:]] == [
        "A against it, movie",
        "A against it, book",
        "A against it, academics",
    ]
    words = passage.text  # type: ignore[union-attr]
    assert "40 templates of open questions instead of 393; 400 open questions instead of 9,132" in words
    assert "judged by gpt-4o, not by gpt-3.5-turbo-0301" in words


@pytest.mark.parametrize(
    ("tally", "words"),
    [
        (asked(PAPER, mode="few_shot"), "asked by the mode few_shot, not by the paper's Prompt 3"),
        (asked({"movie": (11, 3093)}), "11 templates of movie questions instead of 13"),
        (asked({"movie": (13, 3093)}, bucket="head"), "3,093 head, 0 torso, 0 tail instead of equally many"),
        (asked({"movie": (11, 3000)}), "nothing is asked about book"),
    ],
)
def test_questions_that_are_not_alike_are_not_compared_and_the_report_says_what_differs(
    tally: Tally, words: str
) -> None:
    blocks = compare_with_published("mine", tally, "gpt-3.5-turbo-0301")
    assert [type(block) for block in blocks] == [Passage]
    assert words in blocks[0].text  # type: ignore[union-attr]
