from __future__ import annotations

from typing import Any

import pytest

from evalsuite.benchmarks.treb.report import (
    LEADERBOARD_TITLE,
    RANKED,
    best_mode,
    leaderboard,
    report,
    skill_score,
)
from evalsuite.benchmarks.treb.submission import chosen, submitted
from evalsuite.core.errors import SettingsError
from evalsuite.core.types import Message, Record, Transcript
from evalsuite.output.reports.section import Table
from evalsuite.results.tally import Row, RunView, Tally

PLACES = {"TU": "Table Retrieval", "TBO": "Table Query", "TCO": "Table General Operations"}
PLACES |= {"DA": "Table Outlier Detection", "ADA": "Multi-step Retrieval"}


def row(subtask: str, mode: str, number: int = 1, judge: float | None = None, **more: Any) -> Row:
    tags = {"subtask": subtask, "skill": "TBO", "mode": mode, "cluster": f"{subtask}|{number}"}
    scores = {} if judge is None else {"judge": judge}
    sample = f"{subtask}|{number}|{mode}"
    outcome = more.pop("outcome", "passed")
    return Row(f"case[{sample}]", sample, more.pop("epoch", 1), outcome, tags | more.pop("tags", {}), scores)


def test_a_subtask_counts_in_its_best_mode_and_a_skill_is_the_mean_of_its_subtasks() -> None:
    tally = Tally.of(
        [
            row("Table Query", "tcot_markdown", judge=0.2),
            row("Table Query", "tcot_html", judge=0.6),
            row("Table Query", "pot", judge=0.5),
            row("Table Selection", "pot", judge=0.1),
            row("Table Selection", "icot", judge=0.9),
        ]
    )
    # Both formats of TCoT together are one mode.
    assert best_mode(tally, "Table Query") == (0.5, "PoT")
    assert skill_score(tally, "TBO") == pytest.approx((0.5 + 0.9) / 2)
    assert skill_score(tally, "DA") is None


def test_overall_is_the_mean_of_five_skills_and_a_dash_where_one_is_missing() -> None:
    rows = [row(subtask, "pot", judge=0.1 * place) for place, subtask in enumerate(PLACES.values(), 1)]
    (table,) = leaderboard([RunView("gpt", Tally.of(rows))], published=False)
    assert table.rows[0][1:7] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.3])
    (table,) = leaderboard([RunView("gpt", Tally.of(rows[1:]))], published=False)
    assert (table.rows[0][1], table.rows[0][6]) == (None, None)


def test_without_a_judge_there_is_no_leaderboard() -> None:
    assert list(leaderboard([RunView("gpt", Tally.of([row("Table Query", "pot")]))], published=True)) == []


def test_published_rows_have_their_date_and_stand_only_where_they_are_wanted() -> None:
    shown = row("Table Query", "pot", judge=1.0, tags={"published": "shown"})
    blocks = report([RunView("gpt", Tally.of([shown]))]).blocks
    tables = {block.title: block for block in blocks if isinstance(block, Table)}
    published = {str(line[0]): line for line in tables[LEADERBOARD_TITLE].rows[1:]}
    assert published["QwQ-32B (published 2025-09-01)"][1:7] == pytest.approx(
        [0.8322, 0.8198, 0.83275, 0.83275, 0.58595, 0.7815]
    )
    assert len(published) == 34
    assert len(RANKED) == 5
    # The house's own metrics are not the paper's.
    assert len(tables["ROUGE-L"].rows) == 1


def test_a_submission_has_one_answer_a_question_in_the_preferred_mode() -> None:
    tally = Tally.of(
        [
            row("Table Query", "pot"),
            row("Table Query", "icot"),
            row("Table Query", "icot", epoch=2),
            row("Table Summary", "tcot_markdown"),
        ]
    )
    modes = [line.tags["mode"] for line in chosen(tally, ["icot", "tcot_markdown"])]
    assert modes == ["icot", "tcot_markdown"]
    with pytest.raises(SettingsError, match="answers in several modes"):
        chosen(tally, [])
    with pytest.raises(SettingsError, match="--mode tcot_html: no question"):
        chosen(tally, ["tcot_html"])


def test_a_line_of_a_submission_has_the_fields_that_the_authors_take() -> None:
    said = (Message("user", "How many?"), Message("assistant", "It is 42."))
    record = Record(
        case="case[x]",
        benchmark="treb",
        sample="Table_Query|a|1#2|pot",
        epoch=1,
        model="gpt",
        outcome="passed",
        tags={"cluster": "Table_Query|a|1"},
        input="How many?",
        transcript=Transcript("42", said, "Let me see."),
    )
    assert submitted(record, "Own-7B") == {
        "id": "Table_Query|a|1",
        "model_name": "Own-7B",
        "question": "How many?",
        "generation": "<think>\nLet me see.\n</think>\n\nIt is 42.",
        "pred_answer": "42",
    }
