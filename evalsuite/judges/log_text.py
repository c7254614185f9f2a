"""A judge's log as text to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SHOWN_APART = ("kind", "role", "content", "reasoning", "speaker", "turn", "order", "model", "cut_off")


def minutes(log: Sequence[Mapping[str, Any]]) -> str:
    """Everything that was said, one paragraph per message, each headed by who said it and when.

    Args:
        log: a `Score.log`, or the events of a judge's transcript; other keys of an entry are shown by name.
    """
    return "\n\n".join(f"{_lead(entry)}\n{_words(entry)}".strip() for entry in _each_prompt_once(log))


def _each_prompt_once(log: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """A judge that is asked twenty times is asked the same: its prompt is shown before the first answer alone."""
    shown: set[tuple[str, str, str]] = set()
    for entry in log:
        if entry.get("role") in ("system", "user"):
            prompt = (str(entry.get("speaker")), str(entry.get("order")), str(entry.get("content")))
            if prompt in shown:
                continue
            shown.add(prompt)
        yield entry


def _lead(entry: Mapping[str, Any]) -> str:
    speaker = str(entry.get("speaker", "judge"))
    parts = [
        speaker if entry.get("role") in ("assistant", None) else f"to {speaker}",
        f"turn {entry['turn']}" if entry.get("turn") else "",
        f"order {entry['order']}" if entry.get("order") else "",
        str(entry.get("model", "")),
        "cut off" if entry.get("cut_off") else "",
    ]
    return f"[{', '.join(part for part in parts if part)}]"


def _words(entry: Mapping[str, Any]) -> str:
    reasoning = f"(reasoning) {entry['reasoning']}" if entry.get("reasoning") else ""
    others = [f"{name}: {value}" for name, value in entry.items() if name not in SHOWN_APART]
    return "\n".join(part for part in (reasoning, str(entry.get("content", "")).strip(), *others) if part)
