"""How often debaters change their mind, by the secret ballots after each turn: the paper shows examples alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.output.reports.judges.shares import share
from evalsuite.output.reports.section import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalsuite.benchmarks.chat_eval.judge_settings import JudgeSetting
    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import Row

    Ballot = Mapping[str, Any]

COLUMNS = (
    Column("Judge"),
    Column("Task"),
    Column("Turns"),
    Column("Changed", "percent"),
    Column("To what people say", "percent"),
    Column("Away from it", "percent"),
    Column("Ballots", "count"),
)
NOTE = (
    "Of the secret ballots after a turn, the share that the same debater cast otherwise after the next, in the same "
    "order of the answers; the last ballot is the judgement itself. Of comparisons verdicts are compared, of dialogue "
    "responses all scores. Intervals allow for several ballots on one sample."
)


@dataclass(frozen=True, slots=True)
class TwoBallots:
    """What one debater said after a turn and after the next.

    Attributes:
        sample: what was judged.
        turn: the earlier turn, from 1.
        before: the verdict or the scores after it.
        after: the same after the next turn.
        people: people's verdict; None where responses were scored.
    """

    sample: str
    turn: int
    before: Any
    after: Any
    people: str | None

    @property
    def changed(self) -> bool:
        """Whether the debater said something else."""
        return bool(self.before != self.after)


def changed_minds(judges: Sequence[JudgeSetting]) -> Table | None:
    """A row for each judge with secret ballots, task and turn; None where there are none."""
    rows = [row for judge in judges for task in ("pairs", "dialogues") for row in _rows(judge, task)]
    return Table("Minds changed in the debate", COLUMNS, rows, NOTE) if rows else None


def _rows(judge: JudgeSetting, task: str) -> Iterator[tuple[Cell, ...]]:
    cases = judge.tally.where(
        lambda row: row.outcome != "error" and bool(row.facts.get("interim")), task=task
    )
    ballots = [two for row in cases for two in two_ballots(row, judge.mode.turns)]
    for turn in sorted({two.turn for two in ballots}):
        some = [two for two in ballots if two.turn == turn]
        samples = [two.sample for two in some]
        changed = [float(two.changed) for two in some]
        towards = [float(two.changed and two.after == two.people) for two in some]
        away = [float(two.changed and two.before == two.people) for two in some]
        compared = (share(towards, samples), share(away, samples)) if task == "pairs" else (None, None)
        yield (judge.name, task, f"{turn} to {turn + 1}", share(changed, samples), *compared, len(some))


def two_ballots(row: Row, turns: int) -> Iterator[TwoBallots]:
    """Every two successive ballots of one debater in one order.

    Args:
        row: of a case with secret ballots.
        turns: of its debate; the last one is the judgement itself.
    """
    ballots: dict[tuple[str, bool, int], Ballot] = {}
    for ballot in row.facts["interim"]:
        ballots[ballot["judge"], ballot["swapped"], ballot["turn"]] = ballot
    for ballot in row.facts.get("ballots", ()):
        ballots[ballot["judge"], ballot["swapped"], turns] = ballot
    human = row.facts["human"]
    people = human if isinstance(human, str) else None
    for (debater, swapped, turn), ballot in ballots.items():
        if following := ballots.get((debater, swapped, turn + 1)):
            yield TwoBallots(row.sample, turn, _opinion(ballot), _opinion(following), people)


def _opinion(ballot: Ballot) -> Any:
    return ballot["scores"] if ballot["verdict"] is None else ballot["verdict"]
