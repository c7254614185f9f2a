"""Repeated attempts in a report: pass@k and pass^k, worked out by hand."""

from __future__ import annotations

import pytest

from evalsuite.output.reports.generic import tabulate_pass_at_k
from evalsuite.results.tally import Estimate, Row, RunView, Tally


def view(label: str, **samples: str) -> RunView:
    """Samples with one letter an attempt: p passed, f failed, e an error."""
    outcomes = {"p": "passed", "f": "failed", "e": "error"}
    return RunView(
        label,
        Tally.of(
            Row(f"{sample}-{epoch}", sample, epoch, outcomes[letter], {}, {})  # type: ignore[arg-type]
            for sample, letters in samples.items()
            for epoch, letter in enumerate(letters, 1)
        ),
    )


def test_the_chances_of_k_attempts_are_means_over_samples() -> None:
    table = tabulate_pass_at_k([view("m", a="ppp", b="pff", c="fff")])
    assert table is not None
    assert [column.title for column in table.columns] == ["run", "pass@1", "pass@2", "pass@3", "pass^2", "pass^3"]
    (cells,) = table.rows
    # Of b's three attempts one passed: two of three draws of two hold it, none is of passes alone.
    expected = [(1 + 1 / 3) / 3, (1 + 2 / 3) / 3, 2 / 3, 1 / 3, 1 / 3]
    assert [cell.value for cell in cells[1:] if isinstance(cell, Estimate)] == pytest.approx(expected)
    assert all(cell.low is not None for cell in cells[1:] if isinstance(cell, Estimate))


def test_what_was_not_repeated_has_no_table_and_a_shorter_run_has_dashes() -> None:
    assert tabulate_pass_at_k([view("m", a="p", b="f")]) is None
    assert tabulate_pass_at_k([view("m", a="pe", b="pp")]) is None
    assert tabulate_pass_at_k([]) is None
    table = tabulate_pass_at_k([view("m", a="pp"), view("n", a="p")])
    assert table is not None
    assert [cell is None for cell in table.rows[1]] == [False, False, True, True]
