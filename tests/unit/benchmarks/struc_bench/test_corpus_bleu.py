"""BLEU over a corpus, from counts that each case leaves behind."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from evalsuite.benchmarks.struc_bench.scoring import FACT, compute_corpus_bleu, count_bleu_matches
from evalsuite.results.tally import Row, Tally

TEXTS = st.lists(st.sampled_from(["|", "Gulls", "Otters", "7", "88", "the", ".", "\n", "12:00", "5%"])).map(" ".join)
PAIRS = [
    ("| Gulls | 7 | 88 |\n| Otters | 4 | 81 |", "| Gulls | 7 | 88 |\n| Otters | 5 | 81 |"),
    ("There is no table in this text.", "| Gulls | 7 |"),
    ("", "<td>nothing</td>"),
    ("\\textbf{Shop} & 1,250 \\\\", "\\textbf{Shop} & 1,250 \\\\ \\hline"),
]


def row(place: int, prediction: str, reference: str) -> Row:
    facts = json.loads(json.dumps({FACT: count_bleu_matches(prediction, reference)}))  # as a record keeps them
    return Row(f"case[{place}]", str(place), 1, "passed", {}, {"bleu": 0.5}, facts)


def tally(pairs: list[tuple[str, str]]) -> Tally:
    return Tally.of(row(place, *pair) for place, pair in enumerate(pairs))


def published(pairs: list[tuple[str, str]]) -> float:
    said, wanted = zip(*pairs, strict=True)
    return float(BLEU().corpus_score(said, [wanted]).score) / 100


def test_it_is_what_sacrebleu_says_of_the_whole_corpus() -> None:
    found = compute_corpus_bleu(tally(PAIRS))
    assert found
    assert found.value == pytest.approx(published(PAIRS), abs=1e-12)
    assert found.n == 4
    assert found.value != pytest.approx(sum(published([pair]) for pair in PAIRS) / 4, abs=0.01), (
        "it is no mean of sentences"
    )


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_it_equals_sacrebleu_on_any_texts(pairs: list[tuple[str, str]]) -> None:
    found = compute_corpus_bleu(tally(pairs))
    assert found
    assert found.value == pytest.approx(published(pairs), abs=1e-12)
    assert 0.0 <= found.value <= 1.0


def test_a_corpus_equal_to_its_references_has_one() -> None:
    found = compute_corpus_bleu(tally([(wanted, wanted) for _, wanted in PAIRS]))
    assert found
    assert found.value == 1.0


def test_errors_and_cases_without_a_score_do_not_count() -> None:
    counts = {FACT: count_bleu_matches("a b c d", "x y z")}
    error = Row("case[8]", "8", 1, "error", {}, {"bleu": 0.0}, counts)
    unscored = Row("case[9]", "9", 1, "passed", {}, {"rouge_l": 0.0}, counts)
    assert compute_corpus_bleu(Tally.of([*tally(PAIRS), error, unscored])) == compute_corpus_bleu(tally(PAIRS))
    assert compute_corpus_bleu(Tally.of([error, unscored])) is None
    assert compute_corpus_bleu(Tally()) is None
