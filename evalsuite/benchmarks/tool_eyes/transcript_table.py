"""The worst episode and a typical one, as tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.tool_eyes.capabilities import OVERALL
from evalsuite.core.shortening import beginning
from evalsuite.output.reports.section import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from evalsuite.core.types import Record, Transcript
    from evalsuite.results.rows import Row
    from evalsuite.results.tally import Tally

LONGEST = 240
COLUMNS = (Column("Turn"), Column("What the model said"), Column("What came of it"))


def episode_tables(label: str, tally: Tally, read: Callable[[str], Record]) -> list[Table]:
    """The worst episode and, where there is another one, a typical one.

    The worst one has the lowest overall score or, without a judge, the lowest format alignment. The typical one has
    the median score. Cases with equal scores are taken in their order.

    Args:
        label: the run's label.
        tally: the run's cases.
        read: loads the whole record of a case.
    """
    metric = OVERALL if tally.values(OVERALL) else "format_alignment"
    ranked = sorted(tally.scored(metric), key=lambda row: row.scores[metric])
    if not ranked:
        return []
    chosen = {"The worst episode": ranked[0]}
    if len(ranked) > 1:
        chosen["A typical episode"] = ranked[len(ranked) // 2]
    return [_table(f"{title}, {label}", row, read(row.case)) for title, row in chosen.items()]


def _table(title: str, row: Row, record: Record) -> Table:
    rows = [("request", _one_line(record.input), "")]
    if record.transcript:
        rows += _turns(record.transcript)
    return Table(f"{title}: {row.sample}", COLUMNS, rows)


def _turns(transcript: Transcript) -> list[tuple[str, str, str]]:
    turns = [event for event in transcript.events if event["kind"] == "turn"]
    texts = [message.content for message in transcript.messages if message.role == "assistant"][-len(turns) :]
    cells = [_cells(turn, text, transcript.events) for turn, text in zip(turns, texts, strict=True)]
    return [
        (str(turn["turn"]), _one_line(words), _one_line(came))
        for turn, (words, came) in zip(turns, cells, strict=True)
    ]


def _cells(turn: Mapping[str, Any], message: str, events: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    if turn["fault"] is not None:
        return message or json.dumps(turn["native_calls"], ensure_ascii=False), f"Refused: {turn['words']}"
    calls = [event for event in events if event["kind"] == "call" and event["turn"] == turn["turn"]]
    written = "; ".join(
        f"{call['tool']} {json.dumps(call['arguments'], ensure_ascii=False)}" for call in calls
    )
    return f"{turn['thought']} \u2192 {written}", "; ".join(call["observation"] for call in calls)


def _one_line(text: str) -> str:
    return beginning(" ".join(text.split()), LONGEST)
