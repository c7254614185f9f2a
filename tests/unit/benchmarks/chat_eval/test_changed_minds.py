"""Secret ballots: how often debaters change their mind, towards people's verdict or away from it."""

from __future__ import annotations

from typing import Any

from evalsuite.benchmarks.chat_eval.agreement import list_run_judges
from evalsuite.benchmarks.chat_eval.report import pair_ballots, tabulate_changed_minds
from evalsuite.results.tally import Row, RunView, Tally

MODE = "paper:one_by_one:3turns:ballots"


def ballot(turn: int, verdict: str | None, judge: str = "critic", **scores: float) -> dict[str, Any]:
    return {"turn": turn, "judge": judge, "model": "m", "swapped": False, "verdict": verdict, "scores": scores}


def case(at: int, *verdicts: str, human: str = "first") -> Row:
    """A debate of two debaters, of whom the first never changes its mind; secret ballots after all turns but one."""
    *interim, last = (ballot(turn, verdict) for turn, verdict in enumerate(verdicts, 1))
    firm = [ballot(turn, "tie", "public") for turn in range(1, len(verdicts) + 1)]
    final = [{name: value for name, value in one.items() if name != "turn"} for one in (firm[-1], last)]
    facts = {"human": human, "verdict": verdicts[-1], "interim": [*firm[:-1], *interim], "ballots": final}
    tags = {"task": "pairs", "mode": MODE}
    return Row(f"{at}", f"{at}", 1, "passed", tags, {"parsed": 1.0}, facts)


def test_ballots_that_changed_are_counted_by_turn_and_by_what_people_say() -> None:
    tally = Tally.of(
        [case(1, "second", "first", "first"), case(2, "first", "first", "second"), case(3, "tie", "second", "tie")]
    )
    table = tabulate_changed_minds(list_run_judges([RunView("m", tally)]))
    assert table is not None
    rows: dict[Any, list[Any]] = {row[2]: list(row[3:]) for row in table.rows}
    shares = {turns: [cell.value for cell in cells[:3]] for turns, cells in rows.items()}
    assert shares == {
        "1 to 2": [1 / 3, 1 / 6, 0.0],
        "2 to 3, nothing new": [0.0, 0.0, 0.0],
        "2 to 3": [2 / 3, 0.0, 1 / 3],
    }
    assert rows["1 to 2"][-1] == 6
    assert [informed for _, informed, *_ in pair_ballots(tally.rows[0], 3, simultaneous=True)] == [True, False] * 2


def test_of_responses_all_scores_are_compared_and_a_missing_ballot_makes_no_change() -> None:
    facts = {
        "human": {"coherence": 2.0},
        "interim": [ballot(1, None, coherence=2.0), ballot(1, None, "public", coherence=3.0)],
        "ballots": [ballot(2, None, coherence=3.0)],
    }
    row = Row("d", "d", 1, "passed", {"task": "dialogues", "mode": MODE}, {}, facts)
    assert list(pair_ballots(row, turns=2)) == [(1, False, {"coherence": 2.0}, {"coherence": 3.0})]


def test_a_judge_without_secret_ballots_has_no_row(judged: Any) -> None:
    run = judged(lambda _: "Score of answer 1: 8\nScore of answer 2: 3", "paper:single")
    assert tabulate_changed_minds(list_run_judges([run.view])) is None
