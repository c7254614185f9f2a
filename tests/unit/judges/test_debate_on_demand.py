"""Debate on demand: the panel is asked only where one judge disagrees with itself, and the report says if it paid."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite import Sample, benchmark, evaluate, generate
from evalsuite.core.errors import SettingsError
from evalsuite.core.types import Transcript
from evalsuite.judges import panel

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = Sample("sky", "Why is it blue?", metadata={"old": "Paint.", "human": "first"})
ANSWER = Transcript("Scattering.")


def debating(asked: Any) -> str:
    """One judge prefers the first place; debaters prefer scattering."""
    if "Verdict: " in asked.prompt:
        return "Verdict: 1"
    if "`Score of answer 1" not in asked.prompt:
        return "I see."
    one, two = (8, 3) if "<answer_1>\nScattering" in asked.prompt else (3, 8)
    return f"so\nScore of answer 1: {one}\nScore of answer 2: {two}"


def judged(model: Any) -> Any:
    return asyncio.run(panel(2, compare="old", on_demand=True).judged(SAMPLE, ANSWER, model))["preference"]


def test_a_judge_that_disagrees_with_itself_calls_the_panel(scripted: Any) -> None:
    score = judged(scripted(debating))
    assert (score.value, score.facts["calls"]) == (1.0, 2 + 2 * 2 * 2)
    assert score.facts["alone"] == {"verdict": "tie", "calls": 2}
    assert [ballot["judge"] for ballot in score.facts["ballots"]] == ["judge"] * 2 + ["general public", "critic"] * 2


def test_a_judge_that_agrees_with_itself_calls_nobody(scripted: Any) -> None:
    model = scripted(lambda asked: f"Verdict: {1 if '<answer_1>' + chr(10) + 'Paint' in asked.prompt else 2}")
    score = judged(model)
    assert (score.value, score.facts["calls"], score.facts["alone"]["verdict"]) == (0.0, 2, "second")


@pytest.mark.parametrize("options", [{}, {"compare": "old", "swap": False}])
def test_a_panel_on_demand_needs_two_answers_in_both_orders(options: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="both orders"):
        panel(on_demand=True, **options)


def judge(messages: Any) -> str:
    """Judge as the question says: one judge is divided on hard ones, where the panel is right or wrong."""
    asked = messages[-1]["content"]
    hard, right = "hard" in asked, "right" in asked
    good = 1 if re.search(r"<answer_1 [^>]*>\ngood", asked) else 2
    if "Verdict: " in asked:
        return f"Verdict: {1 if hard else good}"
    if "`Score of answer 1" not in asked:
        return "I see."
    better = good if right else 3 - good
    return f"so\nScore of answer {better}: 9\nScore of answer {3 - better}: 2"


def answer(_: Any) -> str:
    return "good"


def compare(tmp_path: Path, wrong: int, *, human: str = "first") -> dict[str, list[str]]:
    """Run 100 comparisons, 40 of them hard, of which the panel gets one in this many wrong.

    Returns the rows of the table on the debate in report.md, by the first column.
    """
    samples = [
        Sample(
            f"{at}",
            f"Question {at}, {'hard' if at % 5 < 2 else 'easy'}, {'wrong' if at % wrong == 0 else 'right'}",
            metadata={"old": "bad", "human": human},
        )
        for at in range(100)
    ]

    @benchmark("pairs", samples, solver=generate(), scorers=[panel(2, compare="old", on_demand=True)])
    def pairs(scores: Any) -> None:
        assert "preference" in scores

    run = evaluate(pairs, model=answer, judge=judge, reports=str(tmp_path))
    table = (run.folder.path / "report.md").read_text("utf-8").partition("Debate on demand of")[2]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    return {line[0]: line[1:] for line in lines if line[0] in ("decided by one judge", "debated", "all")}


def test_a_panel_that_is_right_where_one_judge_is_divided_earns_its_cost(tmp_path: Path) -> None:
    rows = compare(tmp_path, 20)
    assert rows["decided by one judge"] == ["60", "2.0", "60", "100.0", "100.0", "–", "–", "–"]
    number, calls, labelled, alone, joint, gain, price, earned = rows["debated"]
    assert (number, calls, labelled, alone) == ("40", "10.0", "40", "50.0"), "whoever is divided tosses a coin"
    assert (joint.split()[0], gain.split()[0], price, earned) == ("87.5", "37.5", "21", "yes")
    number, calls, labelled, alone, joint, gain, price, earned = rows["all"]
    assert (alone.split()[0], joint.split()[0], gain.split()[0], calls) == ("80.0", "95.0", "15.0", "5.2")
    assert (price, earned) == ("21", "yes"), "3.2 further calls per case for 0.15 of a verdict"


def test_a_panel_that_guesses_is_not_shown_to_earn_its_cost(tmp_path: Path) -> None:
    rows = compare(tmp_path, 2)
    assert rows["all"][5].split()[0] == "0.0"
    assert rows["all"][-1] == "not shown"


def test_without_peoples_choice_the_report_shows_the_calls_alone(tmp_path: Path) -> None:
    rows = compare(tmp_path, 2, human="yes")
    assert rows["debated"][:3] == ["40", "10.0", "0"]
    assert not any(cell.strip("–") for cell in rows["debated"][3:])
