"""Writes a judge's log as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SHOWN_APART = ("kind", "role", "content", "reasoning", "speaker", "turn", "order", "model", "cut_off")


def write_log(log: Sequence[Mapping[str, Any]]) -> str:
    """Write all messages, one paragraph each, which begins with the speaker and the turn.

    Args:
        log: a `Score.log`, or the events of a judge's transcript; further keys of an entry are shown by name.
    """
    return "\n\n".join(
        f"{_write_heading(entry)}\n{_write_message(entry)}".strip() for entry in _show_prompts_once(log)
    )


def _show_prompts_once(log: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Leave out repeated prompts: a judge that is asked twenty times is asked the same."""
    shown: set[tuple[str, str, str]] = set()
    for entry in log:
        if entry.get("role") in ("system", "user"):
            prompt = (str(entry.get("speaker")), str(entry.get("order")), str(entry.get("content")))
            if prompt in shown:
                continue
            shown.add(prompt)
        yield entry


def _write_heading(entry: Mapping[str, Any]) -> str:
    speaker = str(entry.get("speaker", "judge"))
    parts = [
        speaker if entry.get("role") in ("assistant", None) else f"to {speaker}",
        f"turn {entry['turn']}" if entry.get("turn") else "",
        f"order {entry['order']}" if entry.get("order") else "",
        str(entry.get("model", "")),
        "cut off" if entry.get("cut_off") else "",
    ]
    return f"[{', '.join(part for part in parts if part)}]"


def _write_message(entry: Mapping[str, Any]) -> str:
    reasoning = f"(reasoning) {entry['reasoning']}" if entry.get("reasoning") else ""
    others = [f"{name}: {value}" for name, value in entry.items() if name not in SHOWN_APART]
    return "\n".join(part for part in (reasoning, str(entry.get("content", "")).strip(), *others) if part)
