"""Submissions to the authors' leaderboard: one JSON line per question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.types import Record
    from evalsuite.results.tally import Row, Tally


def choose_rows(tally: Tally, modes: Sequence[str]) -> list[Row]:
    """Choose one row per question, from its first epoch and the first of these modes that it ran in.

    Raises:
        SettingsError: a question ran in several modes and none of them is named, or a named mode never ran.
    """
    ran = sorted({row.tags["mode"] for row in tally})
    if unknown := [mode for mode in modes if mode not in ran]:
        raise SettingsError(
            f"--mode {unknown[0]}: no question of this run has this mode; it has {', '.join(ran)}"
        )
    questions: dict[str, dict[str, Row]] = {}
    for row in tally:
        if row.epoch == 1:
            questions.setdefault(row.question[0], {})[row.tags["mode"]] = row
    return [_in_one_mode(question, by_mode, modes) for question, by_mode in questions.items()]


def _in_one_mode(question: str, by_mode: dict[str, Row], modes: Sequence[str]) -> Row:
    wanted = next((mode for mode in modes if mode in by_mode), None)
    if wanted is None and len(by_mode) > 1:
        raise SettingsError(
            f"{question} has answers in several modes ({', '.join(sorted(by_mode))}), and a submission has one answer: "
            "name it with --mode, repeated in order of preference (--mode icot --mode tcot_markdown)"
        )
    return by_mode[wanted] if wanted else next(iter(by_mode.values()))


def write_line(record: Record, model: str) -> dict[str, Any]:
    """Convert a record to a line of the submission: all messages of the model, reasoning first, and the answer."""
    transcript = record.transcript
    written = (
        [message.content for message in transcript.messages if message.role == "assistant"]
        if transcript
        else []
    )
    if transcript and transcript.reasoning:
        written.insert(max(0, len(written) - 1), f"<think>\n{transcript.reasoning}\n</think>")
    return {
        # The id in the files; a translation's sample id has a number appended.
        "id": record.tags["cluster"],
        "model_name": model,
        "question": record.input,
        "generation": "\n\n".join(written),
        "pred_answer": transcript.answer if transcript else "",
    }
